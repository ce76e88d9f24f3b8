// The public functions of tressel/onnx.h.
#include "tressel/onnx.h"

#include "codegen/Compile.h"
#include "tressel/runtime/Shutdown.h"
#include "frontend/onnx/Import.h"
#include "ir/graph/Graph.h"
#include "tressel/runtime/Executable.h"

namespace tressel::onnx {

struct Compiled::Impl {
  explicit Impl(std::shared_ptr<const runtime::Executable> executable) : context(executable) {
    for (const auto &v : executable->schedule().inputs)
      inputs.push_back({v.name, v.type});
    for (const auto &v : executable->schedule().outputs)
      outputs.push_back({v.name, v.type});
    context.bindStates({});
  }
  runtime::Context context;
  std::vector<Port> inputs, outputs;
};

Compiled::Compiled() = default;
Compiled::Compiled(Compiled &&) noexcept = default;
Compiled &Compiled::operator=(Compiled &&) noexcept = default;
Compiled::~Compiled() = default;

const std::vector<Port> &Compiled::inputs() const { return impl_->inputs; }
const std::vector<Port> &Compiled::outputs() const { return impl_->outputs; }

void Compiled::run(std::span<const void *const> inputs, std::span<void *const> outputs) {
  if (inputs.size() != impl_->inputs.size() || outputs.size() != impl_->outputs.size())
    throw Error("the model has " + std::to_string(impl_->inputs.size()) + " inputs and " +
                std::to_string(impl_->outputs.size()) + " outputs; " + std::to_string(inputs.size()) + " and " +
                std::to_string(outputs.size()) + " arrays were given");
  impl_->context.run(inputs, outputs);
}

DeclaredShape declared_input(const std::string &path, size_t index) {
  ModelFile model = ModelFile::load(path);
  if (index >= model.inputs().size())
    model.fail("has no input number " + std::to_string(index));
  DeclaredShape shape;
  for (const DeclaredDim &dim : model.inputs()[index].dims) {
    shape.sizes.push_back(dim.size);
    shape.names.push_back(dim.name);
  }
  return shape;
}

Compiled compile(const std::string &path, const CompileOptions &options) {
  const runtime::StaticsUse use;
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  ImportOptions request;
  for (const auto &[name, size] : options.dims)
    request.dims[name] = {size, size};
  Imported imported = import(ModelFile::load(path), context, request);
  codegen::CompiledProgram program = codegen::compile(*imported.module);
  Compiled result;
  result.impl_ = std::make_unique<Compiled::Impl>(
      program.load());
  return result;
}

} // namespace tressel::onnx
