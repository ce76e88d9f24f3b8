// Runs the node tests of the onnx package: each folder holds a model of (mostly) one op with inputs and outputs.
//
//   onnx_node_tests DATA_DIR --interpret|--compile|--symbolic [--list] [--page FILE] [PART_OF_NAME]
//
// With --symbolic, every size above 1 of an input is a symbol, one for equal sizes: what can be imported that way must give the
// same results, so that no importer takes a symbol for a number. (Interpreted.)
//
// With --page, writes the table of docs/onnx.md. Prints how many passed, are unsupported, and failed, and fails if one did. A test whose shapes or axes come in as
// inputs is tried again with its integer inputs as constants: Tressel needs to know those when it compiles.
#include "codegen/Compile.h"
#include "frontend/onnx/Import.h"
#include "frontend/onnx/TensorData.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "onnx.pb.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Half.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

using namespace tressel;
namespace fs = std::filesystem;
namespace importer = tressel::onnx;
using op::HostTensor;

namespace {

enum class Outcome { Passed, Unsupported, Failed };
struct Result {
  Outcome outcome;
  std::string why;
};

std::vector<HostTensor> readTensors(const fs::path &set, const char *prefix) {
  std::vector<HostTensor> list;
  for (int i = 0; fs::exists(set / (prefix + std::to_string(i) + ".pb")); ++i)
    list.push_back(importer::loadTensorFile((set / (prefix + std::to_string(i) + ".pb")).string()));
  return list;
}

double element(const HostTensor &t, int64_t i) {
  switch (t.type.dtype) {
  case DType::f32:
    return t.as<float>()[i];
  case DType::f64:
    return t.as<double>()[i];
  case DType::f16:
    return halfToFloat(t.as<uint16_t>()[i]);
  case DType::bf16:
    return bfloatToFloat(t.as<uint16_t>()[i]);
  case DType::i8:
    return t.as<int8_t>()[i];
  case DType::i16:
    return t.as<int16_t>()[i];
  case DType::i32:
    return t.as<int32_t>()[i];
  case DType::i64:
    return static_cast<double>(t.as<int64_t>()[i]);
  default:
    return t.as<uint8_t>()[i];
  }
}

std::string difference(const HostTensor &got, const HostTensor &want) {
  if (!(got.type == want.type))
    return got.type.str() + " instead of " + want.type.str();
  const bool narrow = sizeOf(got.type.dtype) == 2;
  const double rtol = narrow ? 2e-2 : 1e-3, atol = narrow ? 1e-2 : 1e-5;
  for (int64_t i = 0; i < got.type.shape.numElements(); ++i) {
    double g = element(got, i), w = element(want, i);
    if (g == w || (std::isnan(g) && std::isnan(w)) || std::abs(g - w) <= atol + rtol * std::abs(w))
      continue;
    return "element " + std::to_string(i) + " is " + std::to_string(g) + " instead of " + std::to_string(w);
  }
  return "";
}

/// What is fixed before a model is compiled: nothing, integers that may be shapes, axes or depths, or every list behind the
/// first input (scales, regions, conditions).
enum class Fixed { Nothing, Integers, Lists };

std::string withConstants(const std::string &bytes, std::vector<HostTensor> &inputs, Fixed fixed) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || model.graph().input_size() != static_cast<int>(inputs.size()))
    return bytes;
  auto &graph = *model.mutable_graph();
  std::vector<HostTensor> rest;
  for (int i = 0; i < graph.input_size(); ++i) {
    const HostTensor &t = inputs[static_cast<size_t>(i)];
    const int type = graph.input(i).type().tensor_type().elem_type();
    bool scalar = t.type.shape.numElements() == 1 && t.type.rank() == 0;
    const bool list = t.type.rank() <= 1 && (t.type.dtype == i64 || t.type.dtype == i32 || (fixed == Fixed::Lists && i > 0));
    if (!list && !scalar) {
      rest.push_back(t);
      continue;
    }
    auto *init = graph.add_initializer();
    init->set_name(graph.input(i).name());
    init->set_data_type(type);
    for (Size d : t.type.shape)
      init->add_dims(d.number());
    init->set_raw_data(t.data.get(), static_cast<size_t>(t.type.bytes()));
  }
  inputs = rest;
  return model.SerializeAsString();
}

/// Every size above 1 gets a name, equal ones the same.
std::string withSymbols(const std::string &bytes) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes))
    return bytes;
  for (auto &input : *model.mutable_graph()->mutable_input())
    for (auto &dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (dim.dim_value() > 1)
        dim.set_dim_param("s" + std::to_string(dim.dim_value()));
  return model.SerializeAsString();
}

std::vector<HostTensor> compileAndRun(mlir::ModuleOp module, std::vector<HostTensor> inputs) {
  codegen::CompiledProgram program = codegen::compile(module);
  auto executable = program.load();
  runtime::Context context(executable);
  context.bindStates({});
  std::vector<HostTensor> outputs;
  std::vector<const void *> in;
  std::vector<void *> out;
  for (const HostTensor &t : inputs)
    in.push_back(t.data.get());
  for (const auto &port : executable->schedule().outputs) {
    outputs.push_back(HostTensor::allocate(port.type));
    out.push_back(outputs.back().data.get());
  }
  context.run(in, out);
  return outputs;
}

std::vector<HostTensor> interpret(mlir::ModuleOp module, std::vector<HostTensor> inputs) {
  auto result = graph::interpret(module.lookupSymbol<mlir::func::FuncOp>("main"), inputs);
  if (!result.error.empty())
    throw InternalError("interpreter: " + result.error);
  return result.outputs;
}

enum class How { Interpreted, Compiled, Symbolic };

Result runCase(const fs::path &dir, How how, Fixed fixed = Fixed::Nothing) {
  std::ifstream in(dir / "model.onnx", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  try {
    auto parse = [&] { return importer::ModelFile::parse(bytes, dir.filename().string(), dir.string()); };
    importer::ModelFile model = parse(); // what is no tensor is refused here, before its file is read as one
    std::vector<HostTensor> inputs = readTensors(dir / "test_data_set_0", "input_");
    std::vector<HostTensor> want = readTensors(dir / "test_data_set_0", "output_");
    if (fixed != Fixed::Nothing) {
      bytes = withConstants(bytes, inputs, fixed);
      model = parse();
    }
    if (model.inputs().size() != inputs.size())
      return {Outcome::Unsupported, "optional inputs"};
    importer::ImportOptions options;
    options.keepDynamic = how == How::Symbolic;
    if (how == How::Symbolic) {
      bytes = withSymbols(bytes);
      model = parse();
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t d = 0; d < model.inputs()[i].dims.size(); ++d)
        if (how != How::Symbolic && model.inputs()[i].dims[d].size == kDynamic) {
          int64_t size = inputs[i].type.shape[static_cast<int>(d)].number();
          options.dims[model.inputs()[i].dims[d].name] = {size, size};
        }
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    mlir::OwningOpRef<mlir::ModuleOp> module;
    try {
      module = importer::import(model, context, options).module;
    } catch (const importer::UnsupportedError &) {
      throw;
    } catch (const Error &e) { // a model may be right for the sizes it has, and only for those
      if (how != How::Symbolic || dynamic_cast<const InternalError *>(&e))
        throw;
      return {Outcome::Unsupported, e.message()};
    }
    std::vector<HostTensor> got = how == How::Compiled ? compileAndRun(*module, inputs) : interpret(*module, inputs);
    if (got.size() != want.size())
      return {Outcome::Failed, std::to_string(got.size()) + " outputs instead of " + std::to_string(want.size())};
    for (size_t i = 0; i < got.size(); ++i)
      if (std::string text = difference(got[i], want[i]); !text.empty())
        return {Outcome::Failed, "output " + std::to_string(i) + ": " + text};
    return {Outcome::Passed, ""};
  } catch (const importer::UnsupportedError &e) {
    if (fixed != Fixed::Lists)
      return runCase(dir, how, fixed == Fixed::Nothing ? Fixed::Integers : Fixed::Lists);
    return {Outcome::Unsupported, e.list[0].op + (e.list[0].why.empty() ? "" : ": " + e.list[0].why)};
  } catch (const std::exception &e) {
    return {Outcome::Failed, e.what()};
  }
}

/// What the page says of one op.
struct OpRow {
  int count[3] = {};
  std::set<std::string> reasons;
};

/// The op that a case tests: its model's one, or, where that was expanded into others, that of the case it was made from.
std::string testedOp(const fs::path &dir) {
  const std::string name = dir.filename().string();
  const size_t suffix = name.find("_expanded");
  const fs::path original = dir.parent_path() / name.substr(0, suffix);
  std::ifstream in((fs::exists(original / "model.onnx") ? original : dir) / "model.onnx", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || model.graph().node_size() == 0)
    return "?";
  // Models of several nodes put the op behind constants, or in the middle of sequence ops: the first that is no constant.
  for (const auto &node : model.graph().node())
    if (node.op_type() != "Constant")
      return importer::qualifiedOp(node);
  return "Constant";
}

bool writePage(const std::string &path, const std::map<std::string, OpRow> &rows, const int (&count)[3]) {
  std::ofstream out(path);
  out << "# ONNX\n\nGenerated from the node tests of `onnx==1.22.0` (operator set 27): run `ninja -C build update-onnx-page`.\n\n"
      << "`tressel compile`, `run`, `bisect` and `inspect` take `.onnx` files, and so does `onnx.h`. A model with an op that is not\n"
      << "supported is refused with the list of all of them. `onnx::load` makes a module whose weights are parameters that can be trained\n"
      << "([training.md](training.md#fine-tuning)). The importer's design is in [frontend/onnx/README.md](../frontend/onnx/README.md).\n\n"
      << "Of " << count[0] + count[1] + count[2] << " node tests " << count[0] << " pass, " << count[1] << " are unsupported, "
      << count[2] << " fail. A case whose shapes, axes, scales, regions or conditions come in as\ninputs is also tried with those as constants. An op's expanded "
      << "form (its definition in other ops) counts as the op.\n\n"
      << "Real models that the tests compare with ONNX Runtime: magika, openwakeword's models, silero VAD, basic-pitch, and the\n"
      << "detector, angle classifier and reader of PP-OCR.\n\n"
      << "| op | passed | unsupported | failed | why unsupported |\n|---|---|---|---|---|\n";
  for (const auto &[op, row] : rows) {
    out << "| " << op << " | " << row.count[0] << " | " << row.count[1] << " | " << row.count[2] << " | ";
    const char *separator = "";
    for (const std::string &reason : row.reasons) {
      out << separator << (reason == op ? "has no importer" : reason);
      separator = "; ";
    }
    out << " |\n";
  }
  return out.good();
}

} // namespace

int main(int argc, char **argv) {
  How how = How::Compiled;
  bool list = false;
  std::string folder, part, page;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--interpret")
      how = How::Interpreted;
    else if (arg == "--symbolic")
      how = How::Symbolic;
    else if (arg == "--compile")
      how = How::Compiled;
    else if (arg == "--page" && i + 1 < argc)
      page = argv[++i];
    else if (arg == "--list")
      list = true;
    else
      (folder.empty() ? folder : part) = arg;
  }
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) {
    std::printf("skipped: no node tests in '%s'; ./dev setup gets them\n", folder.c_str());
    return 77;
  }
  std::vector<fs::path> cases;
  for (const auto &entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx") && fs::exists(entry.path() / "test_data_set_0") &&
        entry.path().filename().string().find(part) != std::string::npos)
      cases.push_back(entry.path());
  std::ranges::sort(cases);
  int count[3] = {};
  std::map<std::string, OpRow> rows;
  for (const fs::path &dir : cases) {
    Result r = runCase(dir, how);
    ++count[static_cast<int>(r.outcome)];
    if (!page.empty()) {
      OpRow &row = rows[testedOp(dir)];
      ++row.count[static_cast<int>(r.outcome)];
      if (r.outcome != Outcome::Passed)
        row.reasons.insert(r.why);
    }
    if (r.outcome == Outcome::Failed || list)
      std::printf("%-11s %s%s%s\n",
                  r.outcome == Outcome::Passed   ? "passed"
                  : r.outcome == Outcome::Failed ? "FAILED"
                                                 : "unsupported",
                  dir.filename().c_str(), r.why.empty() ? "" : ": ", r.why.c_str());
    std::fflush(stdout);
  }
  if (!page.empty() && !writePage(page, rows, count)) {
    std::fprintf(stderr, "cannot write '%s'\n", page.c_str());
    return 1;
  }
  const char *name = how == How::Interpreted ? "interpreted" : how == How::Compiled ? "compiled" : "symbolic";
  std::printf("node tests (%s): %d passed, %d unsupported, %d failed\n", name, count[0], count[1], count[2]);
  return count[2] || !count[0];
}
