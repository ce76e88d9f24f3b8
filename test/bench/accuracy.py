#!/usr/bin/env python3
"""What trainings of real data come to: each sample trains with another seed, on the machine's own threads. With --long only.

usage: accuracy.py BUILD_DIR ROW   answers requests (protocol: Bench.h)
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from protocol import serve

# Of each row: the program, and what it prints the figure behind.
ROWS = {
    "train.mlp.accuracy": (["train_images", "--net", "mlp", "--epochs", "10"], r"accuracy ([0-9.]+) on"),
    "train.lenet.accuracy": (["train_images", "--net", "lenet", "--epochs", "10"], r"accuracy ([0-9.]+) on"),
    "train.resnet.accuracy": (["train_images", "--net", "resnet", "--epochs", "5"], r"accuracy ([0-9.]+) on"),
    "train.finetune.gain": (["finetune"], r"^gain (-?[0-9.]+)"),
    "train.charlm.bits": (["train_text", "--steps", "1000", "--write", "0"], r"([0-9.]+) bits per character"),
}


def main():
    build, row = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    (program, *options), pattern = ROWS[row]
    seed = 0

    def measure(_arm, _case):
        nonlocal seed
        seed += 1
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([build / "bin" / program, *options, "--seed", str(seed)], cwd=folder, capture_output=True, text=True)
        found = re.search(pattern, done.stdout, re.M)
        if done.returncode or not found:
            sys.exit(f"{program} with seed {seed}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        return float(found[1])

    serve(measure)


main()
