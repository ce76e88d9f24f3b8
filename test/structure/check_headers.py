#!/usr/bin/env python3
"""Checks that each public header compiles on its own and reaches no header of MLIR or LLVM.

usage: check_headers.py SOURCE_DIR BINARY_DIR [COMPILER]   exit status 1 and one line per offence
       check_headers.py --self-test [COMPILER]             shows that offences are found
The compiler is g++ unless it is named: another one than the build's, as users may have.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Folders of public headers below the source folder and below the build's (generated ones).
PUBLIC = ["runtime/include", "frontend/include"]
FORBIDDEN = re.compile(r"/(mlir|llvm|lld|mlir-c|llvm-c|nlohmann)/|/(dnnl|zip|zlib)\.h$")
# Parts of the project that no user's program may need.
INTERNAL = re.compile(r"^(ir|passes|codegen|frontend/(?!include/)|tools)/")


def headers(roots):
    for root in roots:
        for folder in PUBLIC:
            for header in sorted((root / folder).rglob("*.h")):
                yield root / folder, header


def offences(header, includes, roots, compiler):
    flags = [compiler, "-std=c++20", "-x", "c++", "-Wall", "-Wextra"]
    paths = [f"-I{p}" for p in includes]
    name = next(h.as_posix() for h in [header.relative_to(i) for i in includes if i in header.parents])
    with tempfile.TemporaryDirectory() as folder:
        user, list_file = pathlib.Path(folder, "user.cpp"), pathlib.Path(folder, "user.d")
        user.write_text(f"#include <{name}>\n#include <{name}>\n")
        compiled = subprocess.run([*flags, *paths, "-fsyntax-only", "-MD", "-MF", list_file, user],
                                  capture_output=True, text=True)
        if compiled.returncode or "warning:" in compiled.stderr:
            first = re.search(r".*(error|warning):.*", compiled.stderr)
            return [f"{name}: does not compile on its own: {first.group(0) if first else compiled.stderr[:300]}"]
        listed = list_file.read_text()
    found = []
    for path in listed.replace("\\\n", " ").split()[1:]:
        inside = next((os.path.relpath(path, r) for r in roots if pathlib.Path(path).is_relative_to(r)), "")
        if FORBIDDEN.search(path) or INTERNAL.match(inside):
            found.append(f"{name}: reaches {inside or path}")
    return found


def check(roots, compiler):
    """The offences, and how many headers there are."""
    includes = [root / folder for root in roots for folder in PUBLIC if (root / folder).is_dir()]
    files = [header for _, header in headers(roots)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda h: offences(h, includes, roots, compiler), files)
    return [o for result in results for o in result], len(files)


def self_test(compiler):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {
                "runtime/include/tressel/runtime/good.h": "#pragma once\n#include <vector>\nstd::vector<int> f();\n",
                "runtime/include/tressel/runtime/lacks.h": "#pragma once\nstd::string f();\n",
                "frontend/include/tressel/reaches.h": "#pragma once\n#include <tressel/between.h>\n",
                "frontend/include/tressel/between.h": "#pragma once\n#include <../../system/mlir/IR/Value.h>\n",
                "frontend/include/tressel/internal.h": "#pragma once\n#include <../../ir/op/OpInfo.h>\n",
                "system/mlir/IR/Value.h": "#pragma once\n",
                "ir/op/OpInfo.h": "#pragma once\n",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found, count = check([root], compiler)
        assert count == 5, count
        assert len(found) == 4, found
        for name in ("tressel/between.h: reaches", "tressel/reaches.h: reaches", "tressel/internal.h: reaches ir/op",
                     "tressel/runtime/lacks.h: does not compile"):
            assert any(f.startswith(name) for f in found), (name, found)
    print("self-test: 4 of 4 offences found")


arguments = sys.argv[1:]
if arguments[:1] == ["--self-test"] and len(arguments) <= 2:
    self_test(*arguments[1:] or ["g++"])
elif len(arguments) in (2, 3):
    found, count = check([pathlib.Path(a).resolve() for a in arguments[:2]], *arguments[2:] or ["g++"])
    print("\n".join(found) or f"headers: {count} compile on their own")
    sys.exit(1 if found or not count else 0)
else:
    sys.exit(__doc__)
