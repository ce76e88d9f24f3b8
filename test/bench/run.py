#!/usr/bin/env python3
"""Runs the benchmarks and writes report.json and a readable table.

usage: run.py --build BUILD_DIR --out OUT_DIR [--only ID]... [--peers] [--long] [--again] [--rounds N] [--markdown FILE]
       run.py --build BUILD_DIR --out OUT_DIR --check [--only ID]... [--preload LIBRARY]
       run.py --build BUILD_DIR --out OUT_DIR --wheels NAME...

A run that was interrupted goes on where it was: rows that it has measured, of the same commit on the same machine, are kept.
--only measures the rows named (or those that begin with NAME., but for those that take long) and leaves the others of the report. --check compares what all arms
compute, for the first case of each row or all of those that --only names, and times nothing.
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import measure  # noqa: E402
import report as reports  # noqa: E402
from machine import Machine, name as machine_name  # noqa: E402
from rows import ROWS  # noqa: E402


def chosen(args):
    """The rows of this run, in the order of the report."""
    rows = list(ROWS)
    if args.peers or any(only.startswith(("infer.", "peers.")) for only in args.only):
        import peers
        rows = peers.with_training(rows) + peers.rows(args.build)
    if args.only:
        def wanted(row):
            ids = [full for full, _, _ in row.figures_of(False)]
            return any(only in ids or (any(full.startswith(only + ".") for full in ids) and (args.long or not row.long)) for only in args.only)
        known = {full for row in rows for full, _, _ in row.figures_of(False)}
        unknown = [only for only in args.only if only not in known and not any(full.startswith(only + ".") for full in known)]
        if unknown:
            sys.exit(f"run.py: no such row: {', '.join(sorted(unknown))}")
        return [row for row in rows if wanted(row)]
    return [row for row in rows if not row.long or args.long]


def skipped(row, machine):
    """Why a row is not measured here; None if it is."""
    if row.tiles == "off" and not machine.tiles:
        return f"no tile registers here: see {row.full_id(next(iter(row.figures), '')).replace('.notiles', '')}"
    return row.skip(machine) if row.skip else None


def run(args):
    machine, rows = Machine(args.build), chosen(args)
    state = reports.State(args.out, f"{machine.commit} {machine_name()} rounds={args.rounds}", again=args.again or bool(args.only))
    began = time.monotonic()
    for row in rows:
        ids = [full for full, _, _ in row.figures_of(machine.tiles)]
        if state.has(ids):
            print(f"  {', '.join(ids)}: kept from the run that was interrupted", file=sys.stderr, flush=True)
            continue
        print(f"  {', '.join(ids)} ...", file=sys.stderr, flush=True)
        start, why = time.monotonic(), skipped(row, machine)
        if why:
            state.keep([{"id": full, "skipped": why, **machine.record()} for full in ids])
            continue
        arms, repeated = measure.measure_row(row, args.build, args.rounds)
        found = measure.report_row(row, arms, repeated, args.build, machine.record())
        for each in found:
            each["seconds"] = round(time.monotonic() - start, 1)
        state.keep(found)
    if any(row.id.startswith("infer.") and row.program == "infer.py" for row in rows):
        import peers
        state.keep(peers.summaries(list(state.found.values()), machine.record()))
    if args.peers:
        import peers
        state.keep(peers.summaries_of_training(state.rows(merge=bool(args.only)), machine.record()))
    report = state.finish(merge=bool(args.only))
    if args.markdown:
        reports.write_markdown(args.markdown, report)
    mine = set(state.found)
    reports.print_table([r for r in report if r["id"] in mine])
    print(f"{(time.monotonic() - began) / 60:.1f} minutes in all", file=sys.stderr)
    return 1 if any("failed" in r for r in report if r["id"] in mine) else 0


def check(args):
    """Prints for each row whether our arms compute what the reference does."""
    wrong = 0
    for row in chosen(args):
        if row.computes or (row.suffix and not args.only):
            continue
        failed = measure.check_row(row, args.build, range(row.cases if args.only and not args.preload else 1), (args.preload,))[0]
        wrong += bool(failed)
        print(f"{row.full_id()}: {'; '.join(failed) or 'agrees'}", flush=True)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the table into a page of docs/")
    parser.add_argument("--peers", action="store_true", help="also other frameworks on real models and on the networks of hybridize.worst")
    parser.add_argument("--long", action="store_true", help="also rows that take long")
    parser.add_argument("--again", action="store_true", help="measure all rows, also those that an interrupted run has measured")
    parser.add_argument("--check", action="store_true", help="compare outputs, time nothing")
    parser.add_argument("--preload", type=pathlib.Path, help="with --check: a library that our arms load first")
    parser.add_argument("--wheels", nargs="+", metavar="NAME", help="ONNX models out of wheels from the registry: check, time, name what loses most")
    args = parser.parse_args()
    args.build, args.out = args.build.resolve(), args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.wheels:
        import wheels
        sys.exit(wheels.run(args.build, args.out, args.wheels))
    sys.exit(check(args) if args.check else run(args))


main()
