"""Steps of training on the stand-in driver, their kernels interpreted: losses beside those that the processor's kernels give (docs/training.md compares these with JAX and PyTorch).

steps.py --build BUILD [--steps 3] ROW...: rows of test/bench, train.lenet.step for example.
"""
import argparse
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

AGREE = 1e-4  # of the loss, as test/cuda/check/report.py asks of a card


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("rows", nargs="+")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    bench = build / "bin/tressel-bench"
    worst = 0.0
    for row in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            package, kept = pathlib.Path(folder) / "step.tsl", pathlib.Path(folder) / "losses"
            subprocess.run([bench, "--export-step", row, package, "sm_90"], check=True)
            subprocess.run([bench, row], input=f"outputs tressel 0 {kept}\n", text=True, check=True, stdout=subprocess.DEVNULL)
            processor = list(array.array("f", kept.read_bytes()))
            ran = subprocess.run([build / "bin/gpu-bench", "--losses", str(args.steps), package], check=True, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "LD_LIBRARY_PATH": str(build / "standin")})
        losses = json.loads(ran.stdout.splitlines()[-1]).get("losses")
        if losses is None:
            sys.exit(f"{row}: {ran.stdout}")
        apart = max(abs(a - b) / max(abs(b), 0.01 * processor[0]) for a, b in zip(losses, processor))
        print(f"{'agrees ' if apart <= AGREE else 'DIFFERS'}  {row}: losses of {len(losses)} steps at most {apart:.1e} of their value apart")
        worst = max(worst, apart)
    sys.exit(0 if worst <= AGREE else 1)


main()
