#!/usr/bin/env python3
"""Runs the benchmarks and writes report.json and a readable table.

usage: run.py --build BUILD_DIR --out OUT_DIR [--only ID]... [--rounds N] [--markdown FILE]
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from rows import ROWS  # noqa: E402

HERE = pathlib.Path(__file__).parent


class Arm:
    """A process that measures on request."""

    def __init__(self, name, command, arm, env=None):
        self.name, self.arm, self.samples, self.failed = name, arm, {}, None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})

    def measure(self, count, case=0):
        if self.failed:
            return
        time.sleep(0.03)  # threads of the arm before look for more work for some 15 ms, if they are OpenMP's
        try:
            self.process.stdin.write(f"{self.arm} {count} {case}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"ended with status {self.process.wait()}")
            self.samples.setdefault(case, []).extend(json.loads(line))
        except (OSError, RuntimeError, json.JSONDecodeError) as error:
            self.failed = str(error)

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def summary(self):
        if self.failed:
            return {"failed": self.failed}
        return {"median": self.mean_of(statistics.median), "spread": [self.mean_of(min), self.mean_of(max)]}

    def mean_of(self, pick):
        """What `pick` takes of all samples; of several cases, the geometric mean of what it takes of each."""
        picked = [pick(samples) for samples in self.samples.values()]
        return picked[0] if len(picked) == 1 else statistics.geometric_mean(picked)


def machine():
    model = platform.processor() or "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores"


def run_row(row, build, rounds):
    script = row.program.endswith(".py")
    bench = [sys.executable, str(HERE / row.program), str(build)] if script else [str(build / "bin" / row.program)]
    env = {}
    if row.threads:
        env = {name: str(row.threads) for name in ("TRESSEL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    arms = [Arm("tressel", [*bench, row.id], "tressel", {**env, **row.env.get("tressel", {})})]
    versions = {}
    for name, kind in row.arms.items():
        if kind == "numpy":
            python = str(build / "venv/bin/python")
            arms.append(Arm(name, [python, str(HERE / "numpy_peer.py"), row.id], "numpy"))
            versions[name] = subprocess.run([python, "-c", "import numpy; print('numpy', numpy.__version__)"],
                                            capture_output=True, text=True).stdout.strip()
        else:
            arms.append(Arm(name, [*bench, row.id], name, {**env, **row.env.get(name, {})}))
            versions[name] = "this build" if kind == "tressel" else subprocess.run(
                [*bench, "--libraries"], capture_output=True, text=True).stdout.strip()
    for arm in arms:  # warm-up: compiles, fills caches; not counted
        for case in range(row.cases):
            arm.measure(max(1, row.samples // 2), case)
        arm.samples = {}
    for _ in range(rounds or row.rounds):
        for case in range(row.cases):
            for arm in arms:
                arm.measure(row.samples, case)
    for arm in arms:
        arm.close()
    for arm in arms:
        if not arm.failed and not arm.samples:
            arm.failed = "gave no samples"
    ours = arms[0].summary()
    if "failed" in ours:
        return {"id": row.id, "failed": ours["failed"]}
    def flags(name):
        return " ".join([f"{row.threads or 'all'} threads", *(f"{key}={value}" for key, value in row.env.get(name, {}).items())])

    peers = {a.name: {**a.summary(), "version": versions[a.name], "flags": flags(a.name)} for a in arms[1:]}
    medians = [p["median"] for p in peers.values() if "median" in p]
    ratio = None
    if medians:
        ratio = min(medians) / ours["median"] if row.better == "lower" else ours["median"] / max(medians)
    note = row.what
    rivals = [arm for arm in arms[1:] if not arm.failed]
    if row.cases > 1 and rivals:  # the worst and the best case, each against its best peer
        best = min if row.better == "lower" else max
        each = [best(statistics.median(rival.samples[case]) for rival in rivals) / statistics.median(mine)
                for case, mine in arms[0].samples.items()]
        each = each if row.better == "lower" else [1 / ratio for ratio in each]
        if row.best_of_each:
            ratio = statistics.geometric_mean(each)
        note += f" (ratios of the cases {number(min(each))} to {number(max(each))})"
    figure = ratio if row.aim_on == "ratio" else ours["median"]
    met = None
    if row.aim is not None and figure is not None:
        met = figure <= row.aim if row.aim_on == "tressel" and row.better == "lower" else figure >= row.aim
    return {"id": row.id, "unit": row.unit, "better": row.better, "tressel": ours["median"], "spread": ours["spread"],
            "peers": peers, "ratio": ratio, "machine": machine(), "note": note,
            "aim": row.aim, "aim_on": row.aim_on, "aim_met": met}


def number(value):
    return "-" if value is None else f"{value:.3g}"


HEAD = "| row | what | Tressel | spread | peers | ratio | aim | machine |\n|---|---|---|---|---|---|---|---|\n"


def table_line(r):
    """A row of the table of docs/performance.md."""
    if "failed" in r:
        return f"| `{r['id']}` | failed: {r['failed']} | | | | | | {machine()} |"
    peers = ", ".join(f"{n} {number(p['median'])}" if "median" in p else f"{n} failed" for n, p in r["peers"].items())
    aim = "" if r["aim"] is None else f"{number(r['aim'])} ({'met' if r['aim_met'] else 'missed'})"
    return (f"| `{r['id']}` | {r['note']} | {number(r['tressel'])} {r['unit']} | "
            f"{number(r['spread'][0])} to {number(r['spread'][1])} | {peers} | {number(r['ratio'])} | {aim} | {r['machine']} |")


MARKER = "<!-- table: written by ./dev bench --markdown docs/performance.md -->\n"


def write_markdown(path, report):
    """Replaces what stands after the marker, but for rows that were not measured now; the prose before it is kept."""
    head, _, table = (path.read_text() if path.exists() else "# Performance\n\n" + MARKER).partition(MARKER)
    lines = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    lines |= {r["id"]: table_line(r) for r in report}
    ordered = [lines[row.id] for row in ROWS if row.id in lines]
    path.write_text(head + MARKER + "\n" + HEAD + "\n".join(ordered) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the table as a page for docs/")
    args = parser.parse_args()
    unknown = set(args.only) - {row.id for row in ROWS}
    if unknown:
        sys.exit(f"run.py: no such row: {', '.join(sorted(unknown))}")
    report = []
    for row in ROWS:
        if args.only and row.id not in args.only:
            continue
        print(f"  {row.id} ...", file=sys.stderr, flush=True)
        report.append(run_row(row, args.build, args.rounds))
    args.out.mkdir(parents=True, exist_ok=True)
    temporary = args.out / "report.json.tmp"
    temporary.write_text(json.dumps(report, indent=1) + "\n")
    temporary.rename(args.out / "report.json")

    if args.markdown:
        write_markdown(args.markdown, report)
    print(f"{'row':28} {'unit':24} {'tressel':>10} {'spread':>21} {'best peer':>22} {'ratio':>7} {'aim':>12}")
    for r in report:
        if "failed" in r:
            print(f"{r['id']:28} FAILED: {r['failed']}")
            continue
        alive = {n: p["median"] for n, p in r["peers"].items() if "median" in p}
        pick = (min if r["better"] == "lower" else max)(alive, key=alive.get) if alive else None
        peer = f"{pick} {number(alive[pick])}" if pick else "-"
        aim = "-" if r["aim"] is None else f"{number(r['aim'])} {'met' if r['aim_met'] else 'missed'}"
        spread = f"{number(r['spread'][0])}..{number(r['spread'][1])}"
        print(f"{r['id']:28} {r['unit']:24} {number(r['tressel']):>10} {spread:>21} {peer:>22} {number(r['ratio']):>7} {aim:>12}")
    sys.exit(1 if any("failed" in r for r in report) else 0)


main()
