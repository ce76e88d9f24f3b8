// Runs a package from C++, with the runtime library only: predict PACKAGE [NAME=SIZE]...
// Inputs are zeros; symbolic dimensions have their lower bounds unless a size is given. Prints each output's type and
// beginning.
#include <tressel/runtime/Error.h>
#include <tressel/runtime/Package.h>

#include <iostream>

using namespace tressel;

int main(int argc, char **argv) try {
  if (argc < 2) {
    std::cerr << "usage: predict PACKAGE [NAME=SIZE]...\n";
    return 2;
  }
  const auto package = runtime::Package::open(argv[1]);
  runtime::Context context = package.context();
  const runtime::Schedule &signature = package.schedule();

  dim::Values sizes;
  for (Size symbol : signature.dims) {
    int64_t size = dim::bounds(symbol).lo;
    const std::string prefix = std::string(dim::symbolName(symbol)) + "=";
    for (int i = 2; i < argc; ++i)
      if (std::string_view(argv[i]).starts_with(prefix))
        size = std::stoll(argv[i] + prefix.size());
    sizes.bind(symbol, size);
  }

  std::vector<std::vector<std::byte>> memory; // of all tensors
  auto provide = [&](const TensorType &type) {
    memory.emplace_back(static_cast<size_t>(type.bytes()));
    return runtime::View{memory.back().data(), type};
  };
  std::vector<runtime::View> inputs, outputs;
  std::vector<TensorType> types;
  for (const auto &input : signature.inputs) {
    types.push_back({input.type.dtype, dim::evaluate(input.type.shape, sizes)});
    inputs.push_back(provide(types.back()));
    std::cout << "input " << input.name << ": " << types.back().str() << "\n";
  }
  for (const TensorType &type : context.outputTypes(types))
    outputs.push_back(provide(type));
  context.run(inputs, outputs);

  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << "output " << signature.outputs[i].name << ": " << outputs[i].type.str();
    if (outputs[i].type.dtype == f32 && outputs[i].type.shape.numElements())
      std::cout << " = [" << *static_cast<const float *>(outputs[i].data) << ", ...]";
    std::cout << "\n";
  }
} catch (const Error &e) {
  std::cerr << "predict: " << e.what() << "\n";
  return 1;
}
