"""Measures one row: compares what its arms compute, then times them in turns."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

import numpy as np

from arms import Arm

HERE = pathlib.Path(__file__).parent
IMPLAUSIBLE = 1.6  # the 80th percentile of a case's samples over the 20th, from which on they are taken again
REPEATS = 2


def number(value):
    return "-" if value is None else f"{value:.3g}"


def bench_command(row, build):
    script = row.program.endswith(".py")
    return [sys.executable, str(HERE / row.program), str(build)] if script else [str(build / "bin" / row.program)]


def environment(row, arm, variant):
    count = str(row.threads or os.cpu_count())
    threads = {name: count for name in ("TRESSEL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    return {"TRESSEL_CALIBRATION": "", **threads, **row.env.get(arm, {}), **variant}  # nothing that was measured before


def start_arms(row, build, variant, preload=None):
    """Our arm first. `preload`: a library that our own programs load first."""
    bench, arms = bench_command(row, build), []
    for name, kind in [("tressel", "tressel"), *row.arms.items()]:
        env = environment(row, name, variant)
        if kind == "tressel" and preload:
            env["LD_PRELOAD"] = str(preload)
        if kind == "numpy":
            arms.append(Arm(name, [str(build / "venv/bin/python"), str(HERE / "numpy_peer.py"), row.id], "numpy", env))
        elif callable(kind):
            arms.append(Arm(name, kind(build, row), name, env))
        else:
            arms.append(Arm(name, [*bench, row.id], name, env, row.crowded))
    return arms


def version_of(kind, row, build):
    if kind == "numpy":
        return "numpy " + np.__version__
    if kind == "tressel":
        return "this build"
    if callable(kind):
        return kind.version(build)
    return subprocess.run([*bench_command(row, build), "--libraries"], capture_output=True, text=True).stdout.strip()


def difference(got, expected):
    """The largest difference over the largest element; infinite where an element is no number, or there are too many or few."""
    if got.size != expected.size:
        return float("inf")
    if not np.isfinite(got).all():
        return float("inf")
    scale = np.abs(expected).max(initial=0)
    return float(np.abs(got - expected).max(initial=0) / (scale or 1))


def reference_of(row, build):
    """The command of the arm that computes what is expected."""
    return row.reference(build) if row.reference else [str(build / "venv/bin/python"), str(HERE / "reference.py"), str(build), row.id]


def compare(row, arms, build, cases):
    """What each arm computes in each case, against the reference. Those that differ have failed."""
    if row.computes:
        return
    reference = Arm("reference", reference_of(row, build), "reference")
    with tempfile.TemporaryDirectory(dir=build) as folder:
        path = os.path.join(folder, "outputs")
        for case in cases:
            expected = {}
            for arm in arms:
                if arm.failed:
                    continue
                reference.arm = arm.name if row.by_arm else "reference"
                if reference.arm not in expected:
                    expected[reference.arm] = reference.outputs(case, path)
                if expected[reference.arm] is None:
                    arm.failed = f"case {case}: the reference {reference.failed}"
                    continue
                got = arm.outputs(case, path)
                if got is None:
                    continue
                off = difference(got, expected[reference.arm])
                if not off <= row.tolerance:
                    arm.failed = f"case {case}: outputs differ from the reference by {off:.2g} of its largest element, more than {row.tolerance:g}"
    reference.close()


def check_row(row, build, cases, preloads=(None,), level=None):
    """For each library to preload, and then for a level of instruction sets: what is wrong with our own arms' outputs, without timing any. The reference
    is computed once for all."""
    ours = replace(row, arms={name: kind for name, kind in row.arms.items() if kind == "tressel"})
    arms = [start_arms(ours, build, row.variants[0], preload) for preload in preloads]
    if level:
        arms.append(start_arms(ours, build, {**row.variants[0], "TRESSEL_CPU_LEVEL": level}))
    compare(row, [arm for some in arms for arm in some], build, cases)
    for arm in (arm for some in arms for arm in some):
        arm.close()
    return [[f"{arm.name}: {arm.failed}" for arm in some if arm.failed] for some in arms]


def turn(row, arms, case):
    """Each arm in turn, once the others have stopped computing."""
    for arm in arms:
        for other in arms:
            if other is not arm and not other.failed:
                other.settle()
        arm.measure(row.samples, case)


def take_turns(row, arms, rounds, cases):
    # Rounds over all cases, so that a drift of the machine's speed meets all of them; where a case holds much memory, one case after the other.
    for group in [[case] for case in cases] if row.one_by_one else [list(cases)]:
        for case in group if row.warms_up else []:  # compiles, fills caches; not counted
            for arm in arms:
                arm.measure(max(1, row.samples // 2), case)
                arm.samples.pop(case, None)
        start = time.monotonic()
        for done in range(rounds):
            if done >= 3 and time.monotonic() - start > row.most_seconds:
                break
            for case in group:
                turn(row, arms, case)


def spread(samples):
    """How far a case's samples lie apart; 1 where there are too few to say."""
    if len(samples) < 5:
        return 1
    ordered = sorted(samples)
    low, high = ordered[len(ordered) // 5], ordered[-1 - len(ordered) // 5]
    return high / low if low > 0 else 1


def repeat_implausible(row, arms, rounds):
    """Cases of which an arm's samples lie too far apart are measured again, by all arms; the run with the least spread counts."""
    repeated = 0
    for case in range(row.cases):
        alive = [arm for arm in arms if not arm.failed]
        for _ in range(REPEATS):
            worst = max((spread(arm.samples[case]) for arm in alive), default=1)
            if worst < IMPLAUSIBLE:
                break
            repeated += 1
            before = {arm: arm.samples[case] for arm in alive}
            for arm in alive:
                arm.samples[case] = []
            for _ in range(rounds):
                turn(row, alive, case)
            if any(arm.failed for arm in alive) or max(spread(arm.samples[case]) for arm in alive) > worst:
                for arm in alive:
                    arm.samples[case] = before[arm]
    return repeated


def joined(parts, cases):
    """The arms of several variants as one set: the cases of the second behind those of the first."""
    for i, arms in enumerate(parts[1:], 1):
        for arm, into in zip(arms, parts[0]):
            into.failed = into.failed or arm.failed
            into.disturbed += arm.disturbed
            into.samples.update({i * cases + case: samples for case, samples in arm.samples.items()})
    return parts[0]


def measure_row(row, build, rounds=None, preload=None):
    """The arms, measured, and how many cases were repeated."""
    rounds, parts, repeated = rounds or row.rounds, [], 0
    if row.prepare:
        row.prepare(build, row)
    for variant in row.variants:
        arms = start_arms(row, build, variant, preload)
        compare(row, arms, build, range(row.cases))
        if not arms[0].failed:
            take_turns(row, arms, rounds, range(row.cases))
            for arm in arms:
                if not arm.failed and set(arm.samples) != set(range(row.cases)):
                    arm.failed = "gave no samples"
            if not arms[0].failed and rounds >= 5:
                repeated += repeat_implausible(row, arms, rounds)
        for arm in arms:
            arm.close()
        parts.append(arms)
        if arms[0].failed:
            break
    return joined(parts, row.cases), repeated


def over_cases(arm, pick, combine):
    return combine([pick(samples) for samples in arm.samples.values()])


def geometric(values):
    return values[0] if len(values) == 1 else statistics.geometric_mean(values)


def report_row(row, arms, repeated, build, facts):
    """The rows of the report for what was measured: one, or one per figure."""
    ours, rivals = arms[0], [arm for arm in arms[1:] if not arm.failed]
    if ours.failed:
        return [{"id": full, "failed": ours.failed, **facts} for full, _, _ in row.figures_of(facts["tiles"])]
    pick = {"median": statistics.median, "best": min if row.better == "lower" else max}[row.pick]
    mean = {"geometric": geometric, "median": statistics.median}[row.combine]
    peers = {}
    for arm in arms[1:]:
        counts = [variant["OMP_NUM_THREADS"] for variant in row.variants if "OMP_NUM_THREADS" in variant]
        flags = " ".join([f"{' and '.join(dict.fromkeys(counts)) or row.threads or os.cpu_count()} threads", *(f"{k}={v}" for k, v in row.env.get(arm.name, {}).items())])
        peers[arm.name] = {"failed": arm.failed} if arm.failed else {
            "median": over_cases(arm, pick, mean), "spread": [over_cases(arm, min, mean), over_cases(arm, max, mean)],
            "version": version_of(row.arms[arm.name], row, build), "flags": flags}
    median = over_cases(ours, pick, mean)
    lower = row.better == "lower"
    each = []  # of each case: the ratio against its best peer
    if rivals:
        for case, mine in ours.samples.items():
            best = (min if lower else max)(pick(rival.samples[case]) for rival in rivals)
            each.append(best / pick(mine) if lower else pick(mine) / best)
    report = []
    for full, kind, aim in row.figures_of(facts["tiles"]):
        ratio = None
        if each:
            medians = [peer["median"] for peer in peers.values() if "median" in peer]
            over_best = min(medians) / median if lower else median / max(medians)
            ratio = min(each) if kind == "worst" else statistics.geometric_mean(each) if row.best_of_each or kind == "geomean" else over_best
        note = row.what
        if row.combine == "median" and row.case_names:
            note += ": " + ", ".join(f"{name} {number(pick(ours.samples[i]))}" for i, name in enumerate(row.names_of_cases()))
        elif len(each) > 1:
            note += f" (ratios of the cases {number(min(each))} to {number(max(each))})"
        if kind == "worst" and each and row.case_names:
            names = row.names_of_cases()
            note += "; " + ", ".join(f"{names[i]} {number(value)}" for i, value in sorted(enumerate(each), key=lambda p: p[1])[:row.list_cases])
        figure = ratio if row.aim_on == "ratio" else median
        met = None
        if aim is not None and figure is not None and len(rivals) == len(row.arms):
            met = figure <= aim if row.aim_on == "tressel" and lower else figure >= aim
        report.append({"id": full, "unit": row.unit, "better": row.better, "tressel": median,
                       "spread": [over_cases(ours, min, mean), over_cases(ours, max, mean)], "peers": peers, "ratio": ratio,
                       "note": note, "aim": aim, "aim_on": row.aim_on, "aim_met": met, "compared": row.computes is None,
                       "cases": [{"tressel": pick(s), **{r.name: pick(r.samples[c]) for r in rivals}} for c, s in ours.samples.items()],
                       "repeated": repeated, "disturbed": sum(arm.disturbed for arm in arms), **facts})
    return report
