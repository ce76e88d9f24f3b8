#!/usr/bin/env python3
"""An elementwise op is added by one record alone, as docs/adding-an-op.md tells it.

Copies the records, adds the record that the guide shows to the family it names, runs the generator over the copy, and checks that
everything of the op appears: table entry, scalar template, interpreter's loop, expression, frontend function, documentation.
Then the new table, linked with the rest of the op library, must infer, record and evaluate the op.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include "ir/interpreter/Evaluate.h"
#include "ir/op/Sym.h"
#include "ir/op/Table.h"
#include <cstdio>
using namespace tressel;
using namespace tressel::op;
int main() {
  const OpInfo &info = table::softsign;
  TensorType type{f32, {3}};
  Attrs attrs;
  Inferred inferred = info.infer(info, {&type, 1}, attrs);
  ScalarProgram program = recordElementwise(info, {&type, 1}, type, attrs);
  HostTensor x = HostTensor::allocate(type);
  x.as<float>()[0] = -3;
  x.as<float>()[1] = 0;
  x.as<float>()[2] = 1;
  interp::Evaluation e = interp::run(info, {&x, 1});
  if (!inferred || !e || !info.loopForm(info, {&type, 1}, inferred.types, attrs))
    return 1;
  const float *y = e.outputs[0].as<float>();
  std::printf("%s %s %zu %g %g %g\n", info.name, inferred.types[0].str().c_str(), program.nodes.size(), y[0], y[1], y[2]);
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--tblgen", required=True)
    parser.add_argument("--mlir-include", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", default="", help="the build's, so that sanitizers match")
    args = parser.parse_args()

    guide = (args.source / "docs/adding-an-op.md").read_text()
    record = re.search(r"```tablegen\n(def SoftsignOp.*?\n)```", guide, re.S)
    if not record:
        sys.exit("docs/adding-an-op.md shows no record 'def SoftsignOp'")

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(args.source / "ir/ops", root / "ir/ops")
        (root / "ir/graph").mkdir()
        shutil.copy(args.source / "ir/graph/Dialect.td", root / "ir/graph")
        family = root / "ir/ops/Activation.td"
        if "def SoftsignOp" not in family.read_text():  # it is there when somebody has followed the guide
            family.write_text(family.read_text() + record.group(1))

        def generate(backend, name, output):
            target = root / output
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([args.tblgen, f"-gen-{backend}", "-I", root, "-I", args.mlir_include,
                            root / f"ir/ops/{name}.td", "-o", target], check=True)
            return target.read_text()

        expected = [
            ("op-table-header", "All", "ir/op/Table.h", "extern const OpInfo softsign;"),
            ("op-registry", "All", "ir/op/Registry.cpp", "&table::softsign"),
            ("op-scalars", "Activation", "ir/op/Activation.scalar.h", "auto scalar_softsign("),
            ("op-table", "Activation", "ir/op/Activation.table.cpp", "const OpInfo table::softsign{"),
            ("op-evaluate", "Activation", "ir/op/Activation.evaluate.cpp", "void softsign(const OpInfo &info"),
            ("op-exprs-header", "All", "ir/op/Exprs.h", "Expr softsign(const Expr &x);"),
            ("op-exprs", "All", "ir/op/Exprs.cpp", "Expr::apply(table::softsign"),
            ("frontend-header", "All", "tressel/ops.h", "/// x / (1 + |x|), elementwise.\n"),
            ("frontend-header", "All", "tressel/ops.h", "\nTensor softsign(Arg x);"),
            ("frontend", "All", "ops.cpp", "detail::record(op::table::softsign"),
            ("op-docs", "All", "ops.md", "### `softsign(x)`"),
            ("op-examples", "All", "examples.cpp", "show(os, softsign(tensor({-1.0, 0, 3})))"),
        ]
        missing = [f"{backend}: {text!r}" for backend, name, output, text in expected
                   if text not in generate(backend, name, output)]
        if missing:
            sys.exit("the op is missing in\n  " + "\n  ".join(missing))
        if str(family) not in (root / "ir/op/Activation.scalar.h").read_text():
            sys.exit("the fragment has no #line that points to its record")

        (root / "main.cpp").write_text(PROGRAM)
        program = root / "one-record-op"
        subprocess.run([args.compiler, "-std=c++20", *args.flags.split(), "-O0", "-I", root, "-I", args.source, "-I", args.build,
                        "-I", args.source / "runtime/include", root / "main.cpp", root / "ir/op/Activation.table.cpp",
                        root / "ir/op/Activation.evaluate.cpp", args.build / "lib/libtressel_op.a",
                        "-L", args.build / "lib", "-ltressel_runtime", f"-Wl,-rpath,{args.build / 'lib'}",
                        "-o", program], check=True)
        result = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        if result != "softsign f32[3] 5 -0.75 0 0.5\n":
            sys.exit(f"the op computes {result!r}")
    print("softsign, added by its record alone, is complete")


if __name__ == "__main__":
    main()
