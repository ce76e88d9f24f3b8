// Runs the node tests of the onnx package: each folder holds a model of (mostly) one op with inputs and outputs.
//
//   onnx_node_tests DATA_DIR --interpret|--compile [--list] [PART_OF_NAME]
//
// Prints how many passed, are unsupported, and failed, and fails if one did. A test whose shapes or axes come in as
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

/// The integer inputs (shapes, axes, depths) become constants.
std::string withConstants(const std::string &bytes, std::vector<HostTensor> &inputs) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || model.graph().input_size() != static_cast<int>(inputs.size()))
    return bytes;
  auto &graph = *model.mutable_graph();
  std::vector<HostTensor> rest;
  for (int i = 0; i < graph.input_size(); ++i) {
    const HostTensor &t = inputs[static_cast<size_t>(i)];
    const int type = graph.input(i).type().tensor_type().elem_type();
    bool scalar = t.type.shape.numElements() == 1 && t.type.rank() == 0;
    if (!(t.type.rank() <= 1 && (t.type.dtype == i64 || t.type.dtype == i32)) && !scalar) {
      rest.push_back(t);
      continue;
    }
    auto *init = graph.add_initializer();
    init->set_name(graph.input(i).name());
    init->set_data_type(type);
    for (int64_t d : t.type.shape)
      init->add_dims(d);
    init->set_raw_data(t.data.get(), static_cast<size_t>(t.type.bytes()));
  }
  inputs = rest;
  return model.SerializeAsString();
}

std::vector<HostTensor> compileAndRun(mlir::ModuleOp module, std::vector<HostTensor> inputs) {
  codegen::CompiledProgram program = codegen::compile(module);
  auto executable = runtime::Executable::create(std::move(program.schedule), program.image, program.constants);
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

Result runCase(const fs::path &dir, bool interpreted, bool constants) {
  std::ifstream in(dir / "model.onnx", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  try {
    auto parse = [&] { return importer::Model::parse(bytes, dir.filename().string(), dir.string()); };
    importer::Model model = parse(); // what is no tensor is refused here, before its file is read as one
    std::vector<HostTensor> inputs = readTensors(dir / "test_data_set_0", "input_");
    std::vector<HostTensor> want = readTensors(dir / "test_data_set_0", "output_");
    if (constants) {
      bytes = withConstants(bytes, inputs);
      model = parse();
    }
    if (model.inputs().size() != inputs.size())
      return {Outcome::Unsupported, "optional inputs"};
    importer::ImportOptions options;
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t d = 0; d < model.inputs()[i].dims.size(); ++d)
        if (model.inputs()[i].dims[d].size == kDynamic)
          options.dims[model.inputs()[i].dims[d].name] = inputs[i].type.shape[static_cast<int>(d)];
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    auto module = importer::import(model, context, options).module;
    std::vector<HostTensor> got = interpreted ? interpret(*module, inputs) : compileAndRun(*module, inputs);
    if (got.size() != want.size())
      return {Outcome::Failed, std::to_string(got.size()) + " outputs instead of " + std::to_string(want.size())};
    for (size_t i = 0; i < got.size(); ++i)
      if (std::string text = difference(got[i], want[i]); !text.empty())
        return {Outcome::Failed, "output " + std::to_string(i) + ": " + text};
    return {Outcome::Passed, ""};
  } catch (const importer::UnsupportedError &e) {
    if (!constants)
      return runCase(dir, interpreted, true);
    return {Outcome::Unsupported, e.list[0].op + (e.list[0].why.empty() ? "" : ": " + e.list[0].why)};
  } catch (const std::exception &e) {
    return {Outcome::Failed, e.what()};
  }
}

} // namespace

int main(int argc, char **argv) {
  bool interpreted = false, list = false;
  std::string folder, part;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--interpret")
      interpreted = true;
    else if (arg == "--compile")
      interpreted = false;
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
  for (const fs::path &dir : cases) {
    Result r = runCase(dir, interpreted, false);
    ++count[static_cast<int>(r.outcome)];
    if (r.outcome == Outcome::Failed || list)
      std::printf("%-11s %s%s%s\n",
                  r.outcome == Outcome::Passed   ? "passed"
                  : r.outcome == Outcome::Failed ? "FAILED"
                                                 : "unsupported",
                  dir.filename().c_str(), r.why.empty() ? "" : ": ", r.why.c_str());
    std::fflush(stdout);
  }
  std::printf("node tests (%s): %d passed, %d unsupported, %d failed\n", interpreted ? "interpreted" : "compiled",
              count[0], count[1], count[2]);
  return count[2] || !count[0];
}
