#!/usr/bin/env python3
"""Checks that README.md is true to the letter where a program can check it: its C++ program is docs/examples/hello.cpp,
and every path it names exists (build/ aside).

usage: check_docs.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "README.md").read_text()
problems = []
program = re.search(r"```cpp\n(.*?)```", text, re.S).group(1)
if program != (root / "docs/examples/hello.cpp").read_text():
    problems.append("README.md: the program differs from docs/examples/hello.cpp")
for file in [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("*/README.md"))]:
    for name in re.findall(r"`((?:runtime|ir|passes|codegen|frontend|tools|docs|test|cmake)/[\w./-]*[\w/])`", file.read_text()):
        if not (root / name).exists():
            problems.append(f"{file.relative_to(root)}: names {name}, which does not exist")
print("\n".join(problems) or "docs: paths exist, the program is the example's")
sys.exit(1 if problems else 0)
