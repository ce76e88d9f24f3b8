#!/usr/bin/env python3
"""Fits the cost models of kernels (codegen/CostTable.inc) to measurements.

usage: fit_costs.py measure BUILD SAMPLES.jsonl [--seed N] [--scale X]
       fit_costs.py fit SAMPLES.jsonl... [--old codegen/CostTable.inc] [-o codegen/CostTable.inc]

`measure` compiles and runs programs drawn at random (cost_programs.py), each with the kernels of one provider, on one thread, for each
instruction set that this machine has: an hour on two cores for --scale 1. Other work on the machine should rest.

`fit` finds for each model the coefficients, none below 0, whose predictions are nearest to the measurements in relative terms: least squares of
the logarithm of predicted over measured, where outliers count by their distance alone. What bytes take is known (the caches and the memory of the
machine that measured are fitted first, from kernels that do little else), and neither hides the other fully: the root of the sum of their cubes, as
runtime::workSeconds has it. A fifth of the programs is left out of the fit and judges it. Needs NumPy and SciPy.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile
import zlib

import cost_programs

LEVELS = ["baseline", "v3", "v4"]


def measure(build, path, seed, scale, only):
    programs = cost_programs.programs(seed, scale)
    with tempfile.TemporaryDirectory() as folder, open(path, "a") as out:
        files = collections.defaultdict(list)
        for i, (provider, text) in enumerate(programs):
            file = pathlib.Path(folder) / f"{i}.mlir"
            file.write_text(text)
            files[provider].append(file)
        for level in LEVELS:
            environment = dict(os.environ, TRESSEL_NUM_THREADS="1", TRESSEL_KERNEL_LEVEL=level, TRESSEL_KERNEL_TILES="0", DNNL_MAX_CPU_ISA={
                "baseline": "SSE41", "v3": "AVX2", "v4": "AVX512_CORE"}[level])
            for provider, paths in files.items():
                if only and provider != only:
                    continue
                done = subprocess.run([build / "bin" / "cost-bench", provider, level], input="\n".join(map(str, paths)), text=True,
                                      capture_output=True, env=environment)
                for line in done.stdout.splitlines():
                    sample = json.loads(line)
                    sample.update(seed=seed, program=pathlib.Path(sample["program"]).stem, level=level, provider=provider)
                    out.write(json.dumps(sample) + "\n")
                print(level, provider, len(done.stdout.splitlines()), done.stderr[-300:], flush=True)


def bandwidth(points, size):
    """As DeviceModel::bandwidth."""
    import math
    for i, (bytes, rate) in enumerate(points):
        if size <= bytes:
            return rate
        behind = points[i + 1][1] if i + 1 < len(points) else points[-1][1]
        end = min(2 * bytes, points[i + 1][0]) if i + 1 < len(points) else 2 * bytes
        if size < end:
            return rate * (behind / rate) ** (math.log(size / bytes) / math.log(end / bytes))
    return points[-1][1]


def old_table(path):
    table = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if found := re.match(r'\{"([^"]+)", \{\{(.*)\}\}\},', line):
            table[found[1]] = [[float(x) for x in row.split(",")] for row in found[2].strip("{}").split("}, {")]
    return table


def fit_model(samples, caches):
    import numpy
    from scipy.optimize import least_squares, nnls
    counts = numpy.array([s["costs"][0]["counts"] for s in samples])
    took = numpy.array([s["seconds"] for s in samples]) * 1e9
    moving = numpy.array([s["bytes"] / bandwidth(caches, s["bytes"]) for s in samples]) * 1e9
    scale = counts.max(axis=0)
    scale[scale == 0] = 1
    x = counts / scale
    # A start: linear, relative.
    start, _ = nnls(x / took[:, None], numpy.ones(len(took)))

    def predicted(c):
        return numpy.cbrt((x @ c) ** 3 + moving ** 3) + CALL

    def residuals(c):
        return numpy.log(predicted(c) / took)
    c = least_squares(residuals, numpy.maximum(start, 1e-6 * took.mean()), bounds=(0, numpy.inf), loss="soft_l1", f_scale=0.1, x_scale=numpy.maximum(start, 1e-3 * took.mean())).x
    c[x.max(axis=0) == 0] = 0
    # Coefficients that do not show.
    share = (x * c).max(axis=0) / took.max()
    c[(x * c / predicted(c)[:, None]).max(axis=0) < 0.003] = 0
    return c / scale, predicted


HEADER = """// Coefficients of the cost models, in nanoseconds: baseline, v3, v4. Written by test/bench/fit_costs.py from kernels measured on one thread of an
// AMD EPYC of the fourth generation (AVX-512, no tile registers). Extrapolated, not measured: products and convolutions on tiles (from a Xeon's
// shares of its peak), Winograd's method, and bitcode kernels other than sort, argsort, scan, gather_nd and scatter_nd.
"""
CALL = 20.0  # nanoseconds: what a launch takes besides its kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "fit"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", help="measure kernels of this provider alone")
    parser.add_argument("--old")
    parser.add_argument("--caches", default="[[32768, 1.5e11], [1048576, 8e10], [16777216, 3.5e10], [1e18, 1.2e10]]",
                        help="of the machine that measured: bytes and bytes per second of each level for one thread")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if args.command == "measure":
        return measure(pathlib.Path(args.paths[0]).resolve(), args.paths[1], args.seed, args.scale, args.only)
    import numpy
    caches = json.loads(args.caches)
    groups = collections.defaultdict(list)
    for path in args.paths:
        for line in open(path):
            sample = json.loads(line)
            if len(sample["costs"]) == 1 and sample["seconds"] > 250e-9:
                groups[sample["costs"][0]["kind"]].append(sample)
    table = old_table(args.old) if args.old else {}
    print(f"{'model':44} {'n':>4} {'fit':>6} {'held out':>8} {'90%':>6}")
    for kind, samples in sorted(groups.items()):
        name, level = kind.rsplit("/", 1)
        width = len(samples[0]["costs"][0]["counts"])
        if len(samples) < 2 * width:
            print(f"{kind:44} {len(samples):4} too few")
            continue
        held = [s for s in samples if zlib.crc32(f"{s['program']} {s['seed']}".encode()) % 5 == 0]
        used = [s for s in samples if s not in held]
        c, _ = fit_model(used, caches)

        def errors(list):
            return [abs(numpy.cbrt((numpy.dot(s["costs"][0]["counts"], c)) ** 3 + (1e9 * s["bytes"] / bandwidth(caches, s["bytes"])) ** 3) + CALL
                        - 1e9 * s["seconds"]) / (1e9 * s["seconds"]) for s in list]
        e, h = errors(used), errors(held) or [0]
        print(f"{kind:44} {len(samples):4} {numpy.median(e):6.3f} {numpy.median(h):8.3f} {numpy.quantile(e + h, 0.9):6.3f}  {' '.join(f'{v:.3g}' for v in c)}")
        rows = table.setdefault(name, [[0.3] * width for _ in LEVELS])
        rows[LEVELS.index(level)] = [float(f"{v:.4g}") for v in fit_model(samples, caches)[0]]
    # Functions take as long in any loop: where a kind's samples have none of a class (divisions to powers), those of elementwise code tell.
    functions = range(1, 8)
    for name in ("generated/contraction", "generated/movement", "generated/reduction"):
        for row, of in zip(table.get(name, []), table.get("generated/elementwise", [])):
            for i in functions:
                row[i] = row[i] or of[i]
    if args.output:
        text = HEADER + "".join('{"%s", {{{%s}}}},\n' % (name, "}, {".join(", ".join(f"{v:.4g}" for v in row) for row in rows))
                       for name, rows in sorted(table.items()))
        pathlib.Path(args.output).write_text(text)


if __name__ == "__main__":
    main()
