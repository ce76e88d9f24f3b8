#!/usr/bin/env python3
"""Checks that each folder includes only those below it, that no public header reaches MLIR or LLVM, and that nothing starts
another program.

usage: check_layers.py SOURCE_DIR   exit status 1 and one line per offence
       check_layers.py --self-test  shows that offences are found
"""
import pathlib
import re
import sys
import tempfile

# From the bottom up. A file may include its own layer and the ones before it.
LAYERS = ["runtime", "ir", "passes", "codegen", "frontend", "tools"]
# Include paths that do not begin with the folder's name.
PUBLIC = {"tressel/runtime/": "runtime", "tressel/": "frontend"}
COMPILER = re.compile(r"^(mlir|llvm|lld|mlir-c|llvm-c)/")
# Below ir/ nothing knows MLIR, and ir/op is the part of ir/ that does not either.
NO_COMPILER = ("runtime/", "ir/op/", "frontend/include/")
# No part of Tressel needs another program. One uses one where it is: ptxas, for figures of GPU code that nothing depends on, on machines
# that have it and no nvJitLink.
MAY_START = {"codegen/cuda/target/Assemble.cpp"}
SUBPROCESS = re.compile(r"\b(popen|system|v?fork|exec[vl]\w*|posix_spawnp?|(?:sys::)?Execute(?:AndWait|NoWait))\s*\(")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def layer_of_include(path):
    for prefix, layer in PUBLIC.items():
        if path.startswith(prefix):
            return layer
    head = path.split("/")[0]
    return head if head in LAYERS else None


def offences(root):
    for layer in LAYERS:
        for file in sorted((root / layer).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".td", ".inc"):
                continue
            name = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                if name not in MAY_START and SUBPROCESS.search(STRING.sub('""', line).split("//")[0]):
                    yield f"{name}:{number}: starts another program"
                match = INCLUDE.match(line)
                if not match:
                    continue
                included = match.group(1)
                target = layer_of_include(included)
                if target and LAYERS.index(target) > LAYERS.index(layer):
                    yield f"{name}:{number}: {layer}/ includes {included}, which is above it"
                if COMPILER.match(included) and name.startswith(NO_COMPILER):
                    yield f"{name}:{number}: includes {included}; no MLIR or LLVM is allowed here"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for layer in LAYERS:
            (root / layer).mkdir()
        (root / "runtime/a.cpp").write_text('#include "passes/Pipeline.h"\n#include "tressel/runtime/Types.h"\n')
        (root / "ir/b.h").write_text('#include "tressel/tensor.h"\n#include "mlir/IR/Builders.h"\n')
        (root / "frontend/include").mkdir()
        (root / "tools/d.cpp").write_text("// system(1)\nint n = std::system(command);\n")
        (root / "frontend/include/c.h").write_text('#include "mlir/IR/Value.h"\n#include "ir/op/OpInfo.h"\n')
        found = list(offences(root))
        assert len(found) == 4, found
        assert found[0].startswith("runtime/a.cpp:1") and found[1].startswith("ir/b.h:1"), found
        assert found[2].startswith("frontend/include/c.h:1"), found
        assert found[3].startswith("tools/d.cpp:2"), found
    print("self-test: 4 of 4 offences found")


if len(sys.argv) != 2:
    sys.exit(__doc__)
if sys.argv[1] == "--self-test":
    self_test()
    sys.exit(0)
found = list(offences(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "layers: clean")
sys.exit(1 if found else 0)
