#!/usr/bin/env python3
"""Every row of the benchmarks compares what it computes: with kernels that do nothing, each one fails. Steps of training, in which a gradient's kernels meet
values of the forward ones, are also compared in code for processors without AVX-512, which is rounded otherwise.

usage: check_compared.py BUILD_DIR [PART OF AN ID]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import measure  # noqa: E402
from rows import ROWS  # noqa: E402

# Its call takes as long as a sample, a minute, and its kernel is that of dispatch.op.
TOO_LONG = {"memory.queue.10m"}


def main():
    build, only = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    library = build / "lib/libbench_noop_kernels.so"
    wrong = []
    for row in ROWS:
        if row.suffix or row.long or only not in row.id:
            continue
        if row.computes or row.id in TOO_LONG:
            print(f"{row.id}: not run, {row.computes or 'a call takes a minute'}", flush=True)
            continue
        real, none, *older = measure.check_row(row, build, [0], (None, library), "v3" if row.id.startswith("train.") else None)
        ours = 1 + sum(kind == "tressel" for kind in row.arms.values())
        verdict = "as it should be"
        if real:
            verdict = "WRONG with its kernels: " + "; ".join(real)
        elif any(older):
            verdict = "WRONG in code for v3: " + "; ".join(older[0])
        elif len(none) < ours:
            verdict = f"PASSES without kernels in {ours - len(none)} of {ours} arms: {'; '.join(none)}"
        if verdict != "as it should be":
            wrong.append(row.id)
        print(f"{row.id}: {verdict}", flush=True)
    print(f"{len(wrong)} rows wrong: {', '.join(wrong)}" if wrong else "all rows compare what they compute")
    return 1 if wrong else 0


sys.exit(main())
