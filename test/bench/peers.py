"""Rows of other frameworks, with --peers: ONNX Runtime and OpenVINO on every real model that set-up installs; those and IREE, JAX, MLX, LiteRT,
ncnn and Debian's PyTorch on the networks of hybridize.worst; two releases of JAX and PyTorch on steps of training. Each has a virtual environment of its own under build/peers."""
import functools
import pathlib
import statistics
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
# Framework: what pip installs, and the package whose version stands in the report.
FRAMEWORKS = {
    "onnxruntime": (["onnxruntime==1.31.1"], "onnxruntime"), "openvino": (["openvino==2026.4.1"], "openvino"),
    "iree": (["iree-base-compiler[onnx]==3.13.0", "iree-base-runtime==3.13.0"], "iree-base-compiler"), "jax": (["jax==0.9.0", "jaxlib==0.9.0", "onnx==1.22.0"], "jax"),
    "mlx": (["mlx[cpu]==0.32.4", "onnx==1.22.0"], "mlx"), "ncnn": (["ncnn==1.0.20261020", "pnnx==20261020", "onnx==1.22.0"], "ncnn"), "litert": ([], None),
    # Built against NumPy 1: what stands beside it is of that age.
    "torch": (["numpy<2", "onnx==1.16.2", "safetensors==0.8.0"], "torch"),
}
OLDER = {"jax-0.4": (["jax==0.4.31", "jaxlib==0.4.31", "numpy<2.2"], "jax")}  # for steps of training only
# Sizes of real models whose inputs leave some open, by file.
SIZES = {
    "basic-pitch/nmp": [[1, 43844, 1]], "magika/model": [[1, 2048]], "openwakeword/embedding_model": [[1, 76, 32, 1]], "openwakeword/melspectrogram": [[1, 17280]],
    "openwakeword/silero_vad": [[1, 1536], [], [2, 1, 64], [2, 1, 64]], "ppocr/ch_PP-OCRv4_det_infer": [[1, 3, 640, 640]],
    "ppocr/ch_PP-OCRv4_rec_infer": [[1, 3, 48, 320]], "ppocr/ch_ppocr_mobile_v2.0_cls_infer": [[1, 3, 48, 192]], "silero/silero_vad_v6": [[1, 576], [1, 1, 128], [1, 1, 128]],
}


@functools.cache
def environment(build, framework):
    """(the Python of a framework's environment, made if there is none; None), or (None, why it cannot be made)."""
    try:
        return made_environment(build, framework), None
    except RuntimeError as error:
        return None, str(error)


def made_environment(build, framework):
    packages, _ = {**FRAMEWORKS, **OLDER}[framework]
    if not packages:
        return build / "venv/bin/python"
    folder = build / "peers" / framework
    stamp = folder / ".stamp"
    if not stamp.exists() or stamp.read_text() != " ".join(packages):
        print(f"  environment of {framework} (build/peers/{framework}) ...", file=sys.stderr, flush=True)
        system = ["--system-site-packages"] if framework == "torch" else []  # Debian's python3-torch
        commands = [["/usr/bin/python3", "-m", "venv", "--clear", *system, folder],
                    [folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "numpy", *packages]]
        if framework == "torch":
            commands.append([folder / "bin/python", "-c", "import torch"])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                lines = (done.stderr or done.stdout).strip().splitlines() or ["?"]
                why = "python3-torch of Debian is not installed (apt-get install python3-torch)" if "import torch" in command else lines[-1]
                raise RuntimeError(f"{framework} cannot be installed: {why}")
        stamp.write_text(" ".join(packages))
    return folder / "bin/python"


class Peer:
    """The arm of a framework: called, its command."""

    def __init__(self, framework):
        self.framework = framework

    def __call__(self, build, row):
        python, why = environment(build, self.framework)
        if why:
            return [sys.executable, "-c", f"import sys; sys.exit({why!r})"]
        return [str(python), str(HERE / "peer.py"), self.framework, str(folder_of(build, row.id))]

    @functools.cache
    def version(self, build):
        name = {**FRAMEWORKS, **OLDER}[self.framework][1]
        done = subprocess.run([build / "peers" / self.framework / "bin/python", "-c", f"import importlib.metadata as m; print(m.version({name!r}))"],
                              capture_output=True, text=True)
        return f"{self.framework} {done.stdout.strip() or '?'}"


class TrainingPeer(Peer):
    """The arm of a framework that trains (training.py)."""

    def __call__(self, build, row):
        python, why = environment(build, self.framework)
        if why:
            return [sys.executable, "-c", f"import sys; sys.exit({why!r})"]
        return [str(python), str(HERE / "training.py"), self.framework, row.id]


class PillowPeer:
    """The arm that loads images by Pillow (pillow_peer.py), with threads or processes."""

    def __init__(self, workers):
        self.workers = workers

    @staticmethod
    def command(build, what):
        return [str(build / "venv/bin/python"), str(HERE / "pillow_peer.py"), str(build), what]

    def __call__(self, build, row):
        return self.command(build, self.workers)

    @functools.cache
    def version(self, build):
        done = subprocess.run([build / "venv/bin/python", "-c", "import PIL; print(PIL.__version__)"], capture_output=True, text=True)
        return f"Pillow {done.stdout.strip() or '?'}"

    @classmethod
    def prepare(cls, build, _row):
        subprocess.run(cls.command(build, "write"), check=True)


class TextPeer:
    """The arm of JAX that trains on text (text_peer.py)."""

    def __init__(self, steps):
        self.steps = steps

    def __call__(self, build, row):
        return [str(build / "venv/bin/python"), str(HERE / "text_peer.py"), str(self.steps)]

    @functools.cache
    def version(self, build):
        done = subprocess.run([build / "venv/bin/python", "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True)
        return f"jax {done.stdout.strip() or '?'}"


def with_training(rows):
    """Steps of training get their peers."""
    from dataclasses import replace
    peers = {framework: TrainingPeer(framework) for framework in ("jax", "jax-0.4", "torch")}
    return [replace(row, arms={**row.arms, **peers}) if row.id.startswith("train.") and row.id.endswith(".step") else row for row in rows]


def folder_of(build, row_id):
    return build / "bench/infer" / row_id


def fixed(model, sizes):
    """A copy of a model whose inputs have these sizes, and the inputs by name."""
    import onnx
    from values import values
    held = {i.name for i in model.graph.initializer}
    inputs = {}
    names = {}
    for port, shape in zip([i for i in model.graph.input if i.name not in held], sizes):
        tensor = port.type.tensor_type
        for dim, size in zip(tensor.shape.dim, shape):
            if dim.dim_param:
                names[dim.dim_param] = size
            dim.dim_value = size
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(kind, np.floating):
            array = values(port.name, *shape) * 2
        elif kind == np.bool_:
            array = np.ones(shape)
        else:
            array = np.floor((values(port.name, *shape) + 0.5) * 100) if shape else np.array(16000)
        inputs[port.name] = np.ascontiguousarray(array).astype(kind).reshape(shape)
    for port in model.graph.output:
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_value = names[dim.dim_param]
    del model.graph.value_info[:]
    return model, inputs


def write(folder, model, inputs):
    import onnx
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "inputs.npz", **inputs)
    for i, array in enumerate(inputs.values()):
        array.tofile(folder / f"{i}.bin")


def prepare_real(path, sizes):
    def prepare(build, row):
        import onnx
        model = onnx.load(path)
        shapes = sizes or [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input if i.name not in {h.name for h in model.graph.initializer}]
        write(folder_of(build, row.id), *fixed(model, shapes))
    return prepare


def prepare_network(name, batch):
    def prepare(build, row):
        import networks
        model, x = networks.build(name, batch)
        write(folder_of(build, row.id), model, {"x": x})
    return prepare


def row(row_id, what, frameworks, prepare):
    from rows import Row, threads
    return Row(row_id, "s", "lower", what, {name: Peer(name) for name in frameworks}, None, "ratio", rounds=5, samples=1, most_seconds=120, variants=[threads(1), threads(2)],
               case_names=[""], figures={}, tolerance=2e-3, program="infer.py", best_of_each=True, prepare=prepare,
               reference=lambda build: [str(build / "venv/bin/python"), str(HERE / "peer.py"), "onnxruntime", str(folder_of(build, row_id))])


def rows(build):
    from rows import NETWORKS
    made = []
    for path in sorted((build / "models").resolve().rglob("*.onnx")):
        name = f"{path.parent.name}/{path.stem}"
        made.append(row("infer." + name.replace("/", "."), f"{name}.onnx, one example, f32, one and two threads", ["onnxruntime", "openvino"],
                        prepare_real(path, SIZES.get(name))))
    for name in NETWORKS:
        for batch in (1, 64):
            made.append(row(f"infer.network.{name}.b{batch}", f"the network {name} of hybridize.worst as an ONNX model, batch {batch}, one and two threads", list(FRAMEWORKS),
                            prepare_network(name, batch)))
    return made


def summaries(report, facts):
    """infer.geomean and infer.worst over the real models, infer.network.* over the networks; each model with one thread and with two, against the
    faster of ONNX Runtime and OpenVINO. A model that fails in Tressel makes them fail."""
    made = []
    for prefix, aims in (("infer.", (1.2, 0.85)), ("infer.network.", (None, None))):
        mine = [r for r in report if r["id"].startswith(prefix) and (prefix != "infer." or not r["id"].startswith("infer.network."))
                and not r["id"].endswith((".geomean", ".worst"))]
        if not mine:
            continue
        failed = [r["id"] for r in mine if "failed" in r]
        ratios, alone = {}, []
        for r in mine:
            for i, case in enumerate(r.get("cases", [])):
                best = min((case[name] for name in ("onnxruntime", "openvino") if name in case), default=None)
                if best:
                    ratios[f"{r['id'].removeprefix(prefix)} t{i + 1}"] = best / case["tressel"]
            if any("failed" in r.get("peers", {}).get(name, {}) for name in ("onnxruntime", "openvino")):
                alone.append(r["id"])
        for figure, aim in zip(("geomean", "worst"), aims):
            full = prefix + figure
            if failed or not ratios:
                made.append({"id": full, "failed": f"{', '.join(failed) or 'no model'} failed", **facts})
                continue
            ratio = statistics.geometric_mean(ratios.values()) if figure == "geomean" else min(ratios.values())
            worst = ", ".join(f"{name} {value:.3g}" for name, value in sorted(ratios.items(), key=lambda p: p[1])[:12])
            made.append({"id": full, "unit": "ratio", "better": "higher", "tressel": ratio, "spread": [min(ratios.values()), max(ratios.values())], "peers": {}, "ratio": ratio,
                         "note": f"{len(mine)} models with one thread and with two against the faster of ONNX Runtime and OpenVINO; the least: {worst}"
                                 + (f"; without one of them: {', '.join(alone)}" if alone else ""),
                         "aim": aim, "aim_on": "ratio", "aim_met": None if aim is None or alone else ratio >= aim, **facts})
    return made


def summaries_of_training(report, facts):
    """train.geomean and train.worst: the steps of training that were measured of this commit on this machine, with one thread and with two, against the
    fastest of the frameworks."""
    def run_of(r):
        return r["commit"].rstrip("+"), r["machine"]  # a table that was written meanwhile is no other commit

    mine = [r for r in report if r["id"].startswith("train.") and r["id"].endswith((".step", ".step.t1")) and run_of(r) == run_of(facts)]
    ratios, failed = {}, [r["id"] for r in mine if "failed" in r]
    for r in mine:
        rivals = {name: peer for name, peer in r.get("peers", {}).items() if name != "imperative"}
        failed += [f"{name} in {r['id']}" for name, peer in rivals.items() if "failed" in peer]
        medians = [peer["median"] for peer in rivals.values() if "median" in peer]
        if medians:
            ratios[r["id"].removeprefix("train.").replace(".step", "")] = min(medians) / r["tressel"]
    if not ratios:
        return []
    worst = ", ".join(f"{name} {value:.3g}" for name, value in sorted(ratios.items(), key=lambda p: p[1]))
    note = f"{len(ratios)} steps of training against the fastest of JAX (two releases) and PyTorch: {worst}" + (f"; failed: {', '.join(failed)}" if failed else "")
    spread = [min(ratios.values()), max(ratios.values())]
    return [{"id": f"train.{figure}", "unit": "ratio", "better": "higher", "tressel": ratio, "spread": spread, "peers": {}, "ratio": ratio, "note": note, "aim": aim,
             "aim_on": "ratio", "aim_met": None if failed else ratio >= aim, **facts}
            for figure, ratio, aim in (("geomean", statistics.geometric_mean(ratios.values()), 1.8), ("worst", min(ratios.values()), 1.2))]
