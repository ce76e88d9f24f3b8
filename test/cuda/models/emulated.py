"""Runs models with the kernels of a GPU, emulated on the processor, and compares what they give with ONNX Runtime's results on the same seeded inputs.

emulated.py --build BUILD [--gpu sm_90] [MODEL...]: the models that are named, else all, of which some take a minute. An element may differ from ONNX Runtime's
by as much as one that the processor's own kernels compute: RTOL and ATOL of test/onnx/compare_models.py. With --device cuda a card runs them; with
--device standin the stand-in driver does (test/standin), and interprets their PTX. --keep FOLDER writes inputs and ONNX Runtime's results there and runs nothing else;
--kept FOLDER compares with those, on a machine without ONNX Runtime.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]

# The file in build/models, or what make.py writes; and sizes that are not 1.
MODELS = {
    "silero": ("silero/silero_vad_v6.onnx", {}),
    "magika": ("magika/model.onnx", {}),
    "alexa": ("openwakeword/alexa_v0.1.onnx", {}),
    "timer": ("openwakeword/timer_v0.1.onnx", {}),
    "hey_rhasspy": ("openwakeword/hey_rhasspy_v0.1.onnx", {}),
    "hey_jarvis": ("openwakeword/hey_jarvis_v0.1.onnx", {}),
    "ppocr.angle": ("ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x.2": 48, "x.3": 192}),
    "embedding": ("openwakeword/embedding_model.onnx", {}),
    "basic-pitch": ("basic-pitch/nmp.onnx", {}),
    "resnet18": (None, {}),
    "encoder": (None, {}),
}


def expected(model, dims):
    """Seeded inputs, what ONNX Runtime makes of them, and how far results may be apart."""
    import onnxruntime
    sys.path.insert(0, str(ROOT / "test/onnx"))
    from compare_models import ATOL, RTOL, seeded_input
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)  # as compare_models.py: with others ONNX Runtime differs from itself, optimized and not, by more (basic-pitch)
    inputs = {port.name: seeded_input(port, dims, {}, rng) for port in session.get_inputs()}
    return inputs, dict(zip((port.name for port in session.get_outputs()), session.run(None, inputs))), (RTOL, ATOL)


def keep(path, inputs, want, tolerance):
    np.savez(path, tolerance=tolerance, **{f"in:{name}": value for name, value in inputs.items()}, **{f"out:{name}": value for name, value in want.items()})


def read_kept(path):
    with np.load(path) as file:
        def of(kind):
            return {name[len(kind):]: file[name] for name in file.files if name.startswith(kind)}
        return of("in:"), of("out:"), tuple(file["tolerance"])


def emulated(tressel, model, inputs, flags, folder):
    command = [tressel, "run", model, *flags, "--output-dir", folder / "out", "-q"]
    for number, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"in{number}.npy", value)
        command += ["--input", f"{name}={folder / f'in{number}.npy'}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    listed = json.loads((folder / "out/outputs.json").read_text())["outputs"]
    return {output["name"]: np.load(folder / "out" / output["file"]) for output in listed}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--gpu", default="sm_90")
    parser.add_argument("--device", default="sim:h100", help="cuda: on a card instead; standin: on the stand-in driver")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--kept", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=[])
    args = parser.parse_args()
    tressel = pathlib.Path(args.build).resolve() / "bin/tressel"
    if args.device == "standin":
        args.device = "cuda"
        os.environ["LD_LIBRARY_PATH"] = str(pathlib.Path(args.build).resolve() / "standin")
    failed = []
    for name in args.models or MODELS:
        file, dims = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            model = (args.kept or ROOT / "build/models") / file if file else folder / f"{name}.onnx"
            if not file:
                subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make.py", name, model], check=True)
            inputs, want, tolerance = read_kept(args.kept / f"{name}.npz") if args.kept else expected(model, dims)
            if args.keep:
                keep(args.keep / f"{name}.npz", inputs, want, tolerance)
                continue
            flags = [flag for dim, size in dims.items() for flag in ("--dim", f"{dim}={size}")]
            start = time.monotonic()
            got = emulated(tressel, model, inputs, [*flags, "--device", args.device, "--gpu", args.gpu], folder)
        assert got.keys() == want.keys(), (got.keys(), want.keys())
        good = all(got[o].shape == want[o].shape and np.allclose(got[o], want[o], rtol=tolerance[0], atol=tolerance[1], equal_nan=True) for o in want)
        worst = max(float(np.max(np.abs(got[o].astype(np.float64) - want[o]), initial=0)) for o in want)
        print(f"{'agrees ' if good else 'DIFFERS'}  {name}: {len(want)} outputs, largest difference from ONNX Runtime {worst:.2g}, "
              f"{time.monotonic() - start:.0f} s", flush=True)
        failed += [] if good else [name]
    sys.exit(1 if failed else 0)


main()
