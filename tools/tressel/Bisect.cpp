// tressel bisect: which pass or kernel makes a compiled program differ from the interpreter.
#include "tools/tressel/Compiler.h"
#include "tools/tressel/Gpu.h"
#include "tools/tressel/Inputs.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/CustomKernels.h"

#include <cstdio>

namespace tressel::tool {

int bisectCommand(const BisectArgs &args) {
  if (args.model.ends_with(".tsl"))
    throw InputError(args.model + ": is a package, which holds no ops any more; give the model that it was made of");
  BisectRequest request;
  request.machine = machineOf(args.device);
  if (!args.gpus.empty())
    targetMachine(args.device, args.gpus), request.model.gpus = args.gpus; // throws for machines without a GPU
  for (const std::string &library : args.libraries)
    runtime::loadCustomLibrary(library);
  std::vector<Given> given;
  for (const std::string &option : args.inputs)
    for (Given &g : readGiven(option, "--input"))
      given.push_back(std::move(g));
  ModelInfo info = compiler().describe(args.model, /*checksInputs=*/false);
  std::vector<Port> ports = info.inputs;
  ports.insert(ports.end(), info.states.begin(), info.states.end());
  const Named named = assign(std::move(given), ports, "input");
  request.model.path = args.model;
  std::map<std::string, int64_t> sizes = parseSizes(args.dims);
  inferDims(info, named, sizes);
  for (const auto &[name, size] : sizes)
    request.model.dims[name] = {size, size};
  request.model.allowLibrary = !args.noLibrary;
  request.model.keepSubnormals = args.keepSubnormals;
  checkTolerances(args.rtol.value_or(0), args.atol.value_or(0));
  request.rtol = args.rtol;
  request.atol = args.atol;
  request.progress = detail;
  request.value = [&](const std::string &name, const TensorType &type) {
    auto it = named.find(name);
    if (it == named.end())
      return randomTensor(type, args.seed, name);
    if (!(it->second.type == type))
      throw InputError("input '" + name + "' must be " + type.str() + ", not " + it->second.type.str());
    return it->second;
  };
  const BisectOutcome outcome = compiler().bisect(request);
  std::printf("%s\n", outcome.verdict.c_str());
  if (!outcome.differs)
    return kOk;
  writeFile(args.output, outcome.reproducer);
  std::printf("written to %s", args.output.c_str());
  for (size_t i = 0; i < outcome.inputs.size(); ++i) {
    const std::string file = args.output + ".x" + std::to_string(i) + ".npy";
    writeTensor(file, outcome.inputs[i]);
    std::printf(" --input %s", file.c_str());
  }
  std::printf("\n");
  return kDiffers;
}

} // namespace tressel::tool
