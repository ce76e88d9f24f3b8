#!/usr/bin/env python3
"""Bytes of the libraries that are deployed, stripped as an installer would; lines of what a reader has to get through.

usage: sizes.py BUILD_DIR ROW      an arm of the rows size.* and lines.ir-passes-runtime (see run.py)
       sizes.py BUILD_DIR --check  exit status 1 when a library has outgrown its bound
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from protocol import serve

CORE, KERNELS, DEVICES, CUDA, COMMUNICATORS, STATES = (f"libtressel_{name}.so" for name in ("runtime", "kernels", "devices", "cuda", "communicators", "states"))
ROWS = {"size.runtime.core": [CORE], "size.runtime": [CORE, KERNELS], "size.devices": [DEVICES], "size.cuda": [CUDA], "size.communicators": [COMMUNICATORS],
        "size.states": [STATES]}
BOUNDS = {"size.runtime.core": 320 << 10, "size.runtime": 3 << 19, "size.devices": 272 << 10, "size.cuda": 360 << 10, "size.communicators": 96 << 10,
          "size.states": 256 << 10}


def stripped(build, row):
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ROWS[row]:
            library = build / "lib" / name
            if not library.exists():
                sys.exit(f"sizes.py: {library} is not there")
            copy = pathlib.Path(folder) / name
            shutil.copy(library, copy)
            subprocess.run(["strip", copy], check=True)
            total += copy.stat().st_size
    return total


def lines():
    printed = subprocess.run([pathlib.Path(__file__).parents[2] / "dev", "lines"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"^runtime, ir and passes together: (\d+)", printed, re.M).group(1))


def main():
    build, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    if what == "--check":
        sizes = {row: stripped(build, row) for row in ROWS}
        for row, size in sizes.items():
            print(f"{row}: {size} bytes of {BOUNDS[row]}")
        sys.exit(any(size > BOUNDS[row] for row, size in sizes.items()))
    serve(lambda arm, case: lines() if what.startswith("lines.") else stripped(build, what))


main()
