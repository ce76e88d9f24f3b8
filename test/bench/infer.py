#!/usr/bin/env python3
"""Our arm of a model: compiles it with the command line, then becomes bin/package-bench.

usage: infer.py BUILD_DIR ROW      the row's folder holds model.onnx and its inputs (peers.py)
"""
import os
import pathlib
import subprocess
import sys

build, row = pathlib.Path(sys.argv[1]), sys.argv[2]
folder = build / "bench/infer" / row
package = folder / f"{os.getpid()}.tsl"
done = subprocess.run([build / "bin/tressel", "-q", "compile", folder / "model.onnx", "-o", package], capture_output=True, text=True)
if done.returncode:
    sys.exit(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"tressel ended with status {done.returncode}")
bench = str(build / "bin/package-bench")
os.execv(bench, [bench, "infer", str(package), str(folder)])
