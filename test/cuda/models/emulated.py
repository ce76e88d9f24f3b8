"""Runs models with the kernels of a GPU, emulated on the processor, and compares what they give with the processor's own kernels.

emulated.py --build BUILD [--all] [--gpu sm_90]: without --all the small ones, which take some seconds each; with --all also those that take up to a minute.
Fails where an element differs by more than 1e-3 + 1e-3 of its size.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

SMALL = {"silero/silero_vad_v6.onnx": [], "openwakeword/alexa_v0.1.onnx": [], "ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx": ["--dim", "x.2=48", "--dim", "x.3=192"]}
LARGE = {"openwakeword/embedding_model.onnx": [], "basic-pitch/nmp.onnx": []}


def outputs(tressel, model, flags, folder):
    subprocess.run([tressel, "run", model, "--random-inputs", "1", *flags, "--output-dir", folder, "-q"], check=True, stdout=subprocess.DEVNULL)
    listed = json.loads((folder / "outputs.json").read_text())
    names = [o["name"] for o in (listed["outputs"] if isinstance(listed, dict) else listed)]
    return {name: np.load(folder / (name.replace("/", "_") + ".npy")).astype(np.float64) for name in names}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--gpu", default="sm_90")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    tressel = build / "bin" / "tressel"
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        models = {name: (build / "models" / name, flags) for name, flags in {**SMALL, **(LARGE if args.all else {})}.items()}
        if args.all:
            for name in ("resnet18", "encoder"):
                path = folder / f"{name}.onnx"
                subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make.py", name, path], check=True)
                models[name] = (path, [])
        for name, (path, flags) in models.items():
            if not path.exists():
                print(f"skipped: {name} is not there (./dev setup brings it)")
                skipped += 1
                continue
            want = outputs(tressel, path, flags, folder / "cpu")
            start = time.monotonic()
            got = outputs(tressel, path, [*flags, "--device", "sim:h100", "--gpu", args.gpu], folder / "gpu")
            worst = max(float(np.max(np.abs(got[o] - want[o]), initial=0)) for o in want)
            good = all(np.allclose(got[o], want[o], rtol=1e-3, atol=1e-3, equal_nan=True) for o in want)
            print(f"{'agrees ' if good else 'DIFFERS'}  {name}: {len(want)} outputs, largest difference {worst:.2g}, {time.monotonic() - start:.0f} s")
            failed += not good
    sys.exit(1 if failed else 77 if skipped == len(models) else 0)


main()
