"""Judges the interpreter where NumPy has no such op, and the records' `numpy` is a definition of our own: by ONNX's reference evaluator or
by JAX, on the same cases as numpy_oracle.py.

    reference_oracle.py --cases build/bin/oracle-cases [--seed N] [--count N] [--only OP] [--inject]

Prints how many cases each op has been judged on, by whom, and how many the judge does not know. Exit status 1 if a result differs, an op
is judged on no case, or test/README.md does not name the judges. With --inject one element of each result was made wrong, and it is an
error if an op and type goes unnoticed.
"""
import argparse
import pathlib
import sys
import warnings

import numpy as np

import numpy_oracle
import references

# Attributes are f32 in ONNX.
TOLERANCE = {**numpy_oracle.TOLERANCE, "f64": numpy_oracle.TOLERANCE["f32"]}
# It compiles for each shape, which takes its time, and floats are widened anyway.
JAX_TYPES = ("f32", "bf16", "i32", "u8", "bool")
README = pathlib.Path(__file__).parent.parent / "README.md"


def names_missing():
    text = README.read_text()
    lines = {judge: next((line for line in text.splitlines() if line.startswith(f"| {judge} |")), "")
             for judge in ("ONNX", "JAX")}
    for judge, table in (("ONNX", references.ONNX), ("JAX", references.JAX)):
        expected = f"| {judge} | " + " ".join(f"`{op}`" for op in sorted(table)) + " |"
        if lines[judge] != expected:
            yield f"test/README.md: the line of {judge} must be\n{expected}"


def case_of(op, case, data):
    raw, wide = {}, {}
    entries = list(case["inputs"])
    for spec in op["operands"]:
        entry = entries.pop(0) if entries else None
        raw[spec["name"]] = None if entry is None else numpy_oracle.read(data, entry)
        wide[spec["name"]] = None if entry is None else numpy_oracle.widen(op, raw[spec["name"]], entry["dtype"])
    return references.Case(wide, raw, numpy_oracle.attributes(case))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True, help="the program oracle-cases")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--count", type=int, default=3, help="cases per op and type")
    parser.add_argument("--only", help="one op")
    parser.add_argument("--inject", action="store_true")
    args = parser.parse_args()
    manifest, data = numpy_oracle.cases(args)
    failures, unnoticed, judged_wrong = list(names_missing()), [], 0
    print(f"{'':28}{'judge':8}{'judged':>8}{'unknown':>8}")
    for op in manifest["ops"]:
        name = op["op"]
        if args.only not in (None, name):
            continue
        for judge, table in (("ONNX", references.ONNX), ("JAX", references.JAX)):
            if name not in table:
                continue
            judged, unknown, noticed = {}, 0, {}
            for case in op["cases"]:
                if judge == "JAX" and case["type"] not in JAX_TYPES:
                    continue
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    try:
                        want = table[name](case_of(op, case, data))
                    except Exception as error:
                        want, problem = [], f"{judge} refuses: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
                    else:
                        if want is None:
                            unknown += 1
                            continue
                        problems = [numpy_oracle.difference_of(numpy_oracle.read(data, e), e["dtype"], np.asarray(w), judge, TOLERANCE)
                                    for e, w in zip(case["outputs"], want)]
                        problem = next((p for p in problems if p), None)
                kind = case["type"]
                judged[kind] = judged.get(kind, 0) + 1
                noticed[kind] = noticed.get(kind, 0) + bool(problem)
                judged_wrong += any(e["bytes"] for e in case["outputs"])
                if problem:
                    failures.append(f"{name}{numpy_oracle.describe(case)}: {problem}")
            print(f"{name:28}{judge:8}{sum(judged.values()):8}{unknown:8}")
            if not judged:
                failures.append(f"{name}: {judge} judges no case of it")
            unnoticed += [f"{name} {kind}" for kind in judged if not noticed[kind]]
    if args.inject:
        print(f"{len(failures)} of {judged_wrong} cases with a wrong element were noticed")
        if unnoticed or len(failures) != judged_wrong:
            sys.exit("not noticed: " + (", ".join(unnoticed) or "some case"))
        return
    for failure in failures[:40]:
        print("FAILED", failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
