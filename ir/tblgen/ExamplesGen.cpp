// Generates the examples of the records as C++ functions, for the program that runs them.
#include "ir/tblgen/Records.h"

#include "mlir/TableGen/GenInfo.h"

using namespace llvm;
using namespace tressel::tblgen;

/// One function per example; `show` prints the value of the example's expression.
static bool genExamples(const RecordKeeper &records, raw_ostream &os) {
  os << "// Generated from the records in ir/ops.\n#include \"test/examples/OpExamples.h\"\n\nnamespace tressel {\n\n"
     << "std::span<const OpExample> opExamples() {\n  static constexpr OpExample kExamples[] = {\n";
  for (const OpRecord &op : collect(records)) {
    StringRef example = op.get("example").trim();
    os << "      {\"" << op.name << "\", ";
    if (example.empty())
      os << "nullptr},\n";
    else
      os << "[](std::ostream &os) { show(os, " << example << "); }},\n";
  }
  os << "  };\n  return kExamples;\n}\n\n} // namespace tressel\n";
  return false;
}

static mlir::GenRegistration examples("gen-op-examples", "The examples of all ops as C++", genExamples);
