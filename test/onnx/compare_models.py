#!/usr/bin/env python3
"""Runs a real model with `tressel run` and with ONNX Runtime on the same seeded inputs, and compares.

    compare_models.py TRESSEL MODEL [--dim NAME=N]... [--package] [--seeds N]

Run by the Python of build/venv, which has NumPy and ONNX Runtime. Exit status 77: the model is not there.
"""
import argparse
import os
import subprocess
import sys
import tempfile

RTOL, ATOL = 1e-4, 1e-5


def seeded_input(port, dims, rng):
    import numpy as np
    shape = [d if isinstance(d, int) else dims.get(d, 1) for d in port.shape]
    if port.type == "tensor(int32)":  # bytes of a file, and 256 for padding
        return rng.integers(0, 257, shape).astype(np.int32)
    assert port.type == "tensor(float)", port.type
    return rng.standard_normal(shape).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tressel")
    parser.add_argument("model")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--package", action="store_true", help="compile to a package first, and run that")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    if not os.path.exists(args.model):
        print(f"skipped: no {args.model}; ./dev setup gets it")
        return 77
    import numpy as np
    import onnxruntime as ort

    dims = {k: int(v) for k, v in (d.rsplit("=", 1) for d in args.dim)}
    session = ort.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    dim_options = [x for d in args.dim for x in ("--dim", d)]
    with tempfile.TemporaryDirectory() as work:
        program, options = args.model, dim_options
        if args.package:
            program, options = os.path.join(work, "model.tsl"), []
            subprocess.run([args.tressel, "compile", "-q", args.model, *dim_options, "-o", program], check=True)
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            inputs = {p.name: seeded_input(p, dims, rng) for p in session.get_inputs()}
            names = [p.name for p in session.get_outputs()]
            command = [args.tressel, "run", "-v", program, *options, "--rtol", str(RTOL), "--atol", str(ATOL)]
            for i, (name, value) in enumerate(inputs.items()):
                path = os.path.join(work, f"in{i}.npy")
                np.save(path, value)
                command += ["--input", f"{name}={path}"]
            for i, (name, value) in enumerate(zip(names, session.run(names, inputs))):
                path = os.path.join(work, f"out{i}.npy")
                np.save(path, value)
                command += ["--expect", f"{name}={path}"]
            done = subprocess.run(command, capture_output=True, text=True)
            print(done.stdout + done.stderr, end="")
            if done.returncode:
                print(f"seed {seed}: exit status {done.returncode} of {' '.join(command)}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
