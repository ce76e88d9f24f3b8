#!/usr/bin/env python3
"""Checks docs/names.md: each of Tressel's names in it is declared in a public header. An op need
not be in it: most are called the same everywhere, and adding an op touches its record alone.

usage: check_names.py SOURCE_DIR BINARY_DIR   exit status 1 and one line per offence
       check_names.py --self-test             shows that offences are found
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
COMMENT = re.compile(r"//.*")


def offences(page, headers):
    declared = set(re.findall(r"\w+", COMMENT.sub("", headers)))
    rows = ROW.findall(page)
    for row in rows:
        name = re.split(r"[<(]", row)[0]  # x.item<float>()
        last = re.split(r"::|\.", name)[-1]
        if last not in declared:
            yield f"docs/names.md: no public header declares {row}"
    if not rows:
        yield "docs/names.md: has no rows"


def self_test():
    page = "| `add` | `add` |\n| `nn::Gone` | - |\n| `x.item<float>()` | - |\n"
    found = list(offences(page, "template <typename T> T item() const; // Gone\nTensor add(Arg a, Arg b);"))
    assert len(found) == 1 and "nn::Gone" in found[0], found
    assert list(offences("", "")) == ["docs/names.md: has no rows"]
    print("self-test: 2 of 2 offences found")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
if len(sys.argv) != 3:
    sys.exit(__doc__)
source, binary = map(pathlib.Path, sys.argv[1:])
generated = (binary / "frontend/include/tressel/ops.h").read_text()
text = "\n".join(h.read_text() for h in sorted((source / "frontend/include").rglob("*.h"))) + generated
found = list(offences((source / "docs/names.md").read_text(), text))
print("\n".join(found) or "names: clean")
sys.exit(1 if found else 0)
