#!/usr/bin/env python3
"""Runs a real model with `tressel run` and with ONNX Runtime on the same seeded inputs, and compares.

    compare_models.py TRESSEL MODEL [--dim NAME=N]... [--value INPUT=N]... [--package] [--any NAME=N,N...] [--seeds N]

With --any, one package is compiled in which that dimension stays open, and run at each of the sizes.

Run by the Python of build/venv, which has NumPy and ONNX Runtime.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

RTOL, ATOL = 1e-4, 1e-5


def seeded_input(port, dims, values, rng):
    if port.name in values:
        return np.array(values[port.name], np.int64)
    # A dimension without a name, or one that names nothing ("?"), has the port's and its place.
    shape = [d if isinstance(d, int) else dims.get(d, 1) if d and any(c.isalnum() for c in d) else dims.get(f"{port.name}.{i}", 1)
             for i, d in enumerate(port.shape)]
    if port.type == "tensor(int32)":  # bytes of a file, and 256 for padding
        return rng.integers(0, 257, shape).astype(np.int32)
    assert port.type == "tensor(float)", port.type
    return rng.standard_normal(shape).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tressel")
    parser.add_argument("model")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--value", action="append", default=[], help="an integer that is not to be random")
    parser.add_argument("--package", action="store_true", help="compile to a package first, and run that")
    parser.add_argument("--any", help="a dimension that stays open in the package, and the sizes to run at")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    dims = {k: int(v) for k, v in (d.rsplit("=", 1) for d in args.dim)}
    values = {k: int(v) for k, v in (d.rsplit("=", 1) for d in args.value)}
    session = ort.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    dim_options = [x for d in args.dim for x in ("--dim", d)]
    with tempfile.TemporaryDirectory() as work:
        program, options = args.model, dim_options
        runs = [(seed, {}) for seed in range(args.seeds)]
        if args.any:
            name, sizes = args.any.rsplit("=", 1)
            runs = [(seed, {name: int(n)}) for seed in range(args.seeds) for n in sizes.split(",")]
        if args.package or args.any:
            program, options = os.path.join(work, "model.tsl"), []
            done = subprocess.run([args.tressel, "compile", args.model, *dim_options, "-o", program],
                                  capture_output=True, text=True)
            print(done.stdout + done.stderr, end="")
            if done.returncode or (args.any and f"'{args.any.rsplit('=', 1)[0]}' is not given" in done.stderr):
                print("the package was not compiled for all sizes")
                return 1
        for seed, open_dims in runs:
            dims |= open_dims
            rng = np.random.default_rng(seed)
            inputs = {p.name: seeded_input(p, dims, values, rng) for p in session.get_inputs()}
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
