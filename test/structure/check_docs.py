#!/usr/bin/env python3
"""Checks that README.md is true to the letter where a program can check it: its C++ program is docs/examples/hello.cpp,
and every path it names exists (build/ aside), as do the files and headings that links lead to. The C++ of the pages in TAKEN is part of docs/examples, but for its indentation.

usage: check_docs.py SOURCE_DIR
"""
import pathlib
import re
import sys

TAKEN = ["modules", "interchange", "data"]


def plain(code):
    return "\n".join(line.strip() for line in code.strip().splitlines())


root = pathlib.Path(sys.argv[1])
text = (root / "README.md").read_text()
problems = []
program = re.search(r"```cpp\n(.*?)```", text, re.S).group(1)
if program != (root / "docs/examples/hello.cpp").read_text():
    problems.append("README.md: the program differs from docs/examples/hello.cpp")
for page in TAKEN:
    example = plain((root / f"docs/examples/{page}.cpp").read_text())
    blocks = re.findall(r"```cpp\n(.*?)```", (root / f"docs/{page}.md").read_text(), re.S)
    problems += [] if blocks else [f"docs/{page}.md: has no C++"]
    problems += [f"docs/{page}.md: not in docs/examples/{page}.cpp: {block.strip().splitlines()[0]}"
                 for block in blocks if plain(block) not in example]
for file in [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("*/README.md"))]:
    for name in re.findall(r"`((?:runtime|ir|passes|codegen|frontend|tools|docs|test|cmake)/[\w./-]*[\w/])`", file.read_text()):
        if not (root / name).exists():
            problems.append(f"{file.relative_to(root)}: names {name}, which does not exist")


def anchors(file):
    """What links call the headings of a page, as renderers of Markdown make it of their text."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.S | re.M)
    found = set(re.findall(r'<a id="([^"]*)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower())
        found.add(words.strip().replace(" ", "-"))
    return found


for file in sorted(f for f in root.rglob("*.md") if "build" not in f.relative_to(root).parts):
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", file.read_text()):
        if re.match(r"\w+:", path):
            continue
        to = file.parent / path if path else file
        if not to.exists():
            problems.append(f"{file.relative_to(root)}: links to {path}, which does not exist")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            problems.append(f"{file.relative_to(root)}: links to {path}#{anchor}, a heading that does not exist")
print("\n".join(problems) or "docs: paths exist, the program is the example's")
sys.exit(1 if problems else 0)
