#!/usr/bin/env python3
"""Every numbered rule of docs/ops.md is broken by a test in test/ir/invalid-*.mlir that names it, and every pass has a lit test under
its name.

Ops of one family that share their rules word for word need one test between them.
"""
import pathlib
import re
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/ops.md").read_text()
    tests = "".join(p.read_text() for p in sorted((root / "test/ir").glob("invalid-*.mlir")))
    broken = set(re.findall(r"expected-error[^{]*\{\{(\w+): \((C\d+)\)", tests))

    groups = {}  # (family, rules' text) -> ops
    for family in re.split(r"^## ", page, flags=re.M)[1:]:
        for op in re.split(r"^### `", family, flags=re.M)[1:]:
            rules = tuple(re.findall(r"^\s*- (\(C\d+\).*)$", op, flags=re.M))
            groups.setdefault((family.split("\n")[0], rules), []).append(op.split("(")[0])
    missing = []
    checked = 0
    for (_, rules), ops in groups.items():
        for rule in rules:
            number = rule[1:rule.index(")")]
            checked += 1
            if not any((op, number) in broken for op in ops):
                missing.append(f"{', '.join(ops)}: {rule}")
    if checked < 40:
        sys.exit(f"only {checked} rules found: has the page's form changed?")
    if missing:
        sys.exit("no test in test/ir/invalid-*.mlir breaks\n  " + "\n  ".join(missing))
    passes = re.findall(r'Pass<"tressel-([\w-]+)"', (root / "passes/Passes.td").read_text())
    untested = [name for name in passes if not any((root / "test/passes").glob(f"{name}*.mlir"))]
    if len(passes) < 15 or untested:
        sys.exit("passes without a test of their own in test/passes: " + (", ".join(untested) or "none is found"))
    print(f"{checked} rules, each broken by a test; {len(passes)} passes, each with a test")


if __name__ == "__main__":
    main()
