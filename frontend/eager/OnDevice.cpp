#include "frontend/eager/OnDevice.h"
#include "frontend/eager/Class.h"
#include "frontend/eager/Eager.h"
#include "frontend/eager/OneOp.h"
#include "frontend/eager/Prebuilt.h"
#include "frontend/eager/prebuilt/CommonCalls.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Make.h"
#include "frontend/trace/Record.h"
#include "frontend/trace/Trace.h"

#include "tressel/runtime/Dim.h"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tressel::eager {
using namespace detail;

namespace {

constexpr size_t kMost = 512; ///< functions kept; the oldest are evicted

struct Functions {
  std::mutex mutex; ///< held while one is compiled
  std::shared_ptr<runtime::Machine> machine;
  std::unordered_map<std::string, std::shared_ptr<CompiledFunction>> all;
  std::deque<std::string> order;

  static Functions &instance() {
    static auto *functions = new Functions; // queued tasks may outlive static destruction
    return *functions;
  }
  void clear() {
    all.clear();
    order.clear();
    machine.reset();
  }
};

std::shared_ptr<CompiledFunction> compile(const codegen::OpCall &call, std::span<const uint32_t> homes,
                                          const std::shared_ptr<runtime::Machine> &machine, Device device) {
  TraceRecorder recorder;
  std::vector<Tensor> results;
  {
    const DeviceScope scope(device);
    results = recordOp(recorder, call, homes);
  }
  FinishOptions options{
      .name = call.op->name, .machine = machine, .model = &machine->model(), .gpuLibraries = allowsLibraries()};
  if (!call.symbols.empty()) {
    options.architecture = kPrebuiltArchitecture;
    options.gpuArchive = &prebuiltGpuCode();
  }
  return recorder.finish(results, options).function;
}

std::shared_ptr<CompiledFunction> functionOf(const codegen::OpCall &call, std::span<const uint32_t> homes,
                                             const std::shared_ptr<runtime::Machine> &machine, Device device,
                                             SourceLoc where) {
  std::string key = call.str() + "|" + device.name();
  for (uint32_t home : homes)
    key += "," + std::to_string(home);
  Functions &functions = Functions::instance();
  std::lock_guard lock(functions.mutex);
  if (functions.machine != machine) {
    functions.clear();
    functions.machine = machine;
  }
  if (auto known = functions.all.find(key); known != functions.all.end())
    return known->second;
  std::shared_ptr<CompiledFunction> made;
  try {
    made = compile(call, homes, machine, device);
  } catch (const InternalError &) {
    throw;
  } catch (const Error &) { // the device has no kernel for it, or no room
    try {
      made = compile(call, homes, machine, cpu());
    } catch (const InternalError &) {
      throw;
    } catch (const Error &e) {
      fail<Error>(e.message(), where, call.op->name, e.hint());
    }
  }
  functions.all.emplace(key, made);
  functions.order.push_back(std::move(key));
  if (functions.order.size() > kMost) {
    functions.all.erase(functions.order.front());
    functions.order.pop_front();
  }
  return made;
}

/// The class of a common op's call, if its program is as good as one for the exact call.
std::optional<Classified> commonClassOf(const codegen::OpCall &call, const TensorType &result) {
  // A reduction of many elements to few is faster split in two, which needs known sizes.
  if (!isCommon(*call.op) || result.shape.numElements() == 0 ||
      (call.operands.size() == 1 && splitReduction(*call.op, call.operands.front(), result, call.attrs)))
    return std::nullopt;
  op::Attrs attrs = call.attrs;
  if (!op::completeAttrs(*call.op, attrs).empty())
    return std::nullopt;
  return deviceClassOf(*call.op, call.operands, result, attrs);
}

} // namespace

void runOnDevice(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs,
                 SourceLoc where, std::span<Tensor> results) {
  const auto machine = currentMachine();
  std::vector<uint32_t> homes;
  uint32_t home = 0;
  for (const Tensor &t : inputs) {
    checkMachine(*t.impl(), machine, where, info.name);
    homes.push_back(t.impl()->home);
    home = home ? home : homes.back();
  }
  const SourceLoc user = userLine(where);
  if (info.hasEffects || info.custom) {
    std::vector<Tensor> onHost;
    for (const Tensor &t : inputs)
      onHost.push_back(t.impl()->home ? moved(t, {}, nullptr, user, kOperandMove) : t);
    return runEager(info, onHost, attrs, where, results);
  }
  codegen::OpCall call{&info, {}, op::Attrs(attrs.begin(), attrs.end()), {}};
  for (const Tensor &t : inputs)
    call.operands.push_back(t.type());
  const std::vector<TensorType> types = inferResults(info, inputs, call.attrs, where);
  if (info.isView) { // the same bytes in another shape
    results.front() = makeTensor(types.front(), inputs.front().impl()->storage, user);
    return;
  }
  // Scalars are copied by the op's program. Larger operands are moved by tasks of their own, which profiles show.
  std::vector<Tensor> brought(inputs.begin(), inputs.end());
  std::vector<const Tensor *> arguments;
  for (size_t i = 0; i < brought.size(); ++i) {
    if (homes[i] != home && brought[i].type().rank() > 0) {
      brought[i] = moved(brought[i], deviceOfHome(home), machine, user, kOperandMove);
      homes[i] = home;
    }
    arguments.push_back(&brought[i]);
  }
  const Device device{static_cast<int>(home) - 1};
  const auto common = types.size() == 1 ? commonClassOf(call, types.front()) : std::nullopt;
  if (!common)
    return functionOf(call, homes, machine, device, user)->run(arguments, results, user);
  // The same elements, reshaped as the class has them.
  dim::Values sizes;
  for (size_t i = 0; i < common->sizes.size(); ++i)
    sizes.bind(common->call.symbols[i], common->sizes[i]);
  for (size_t i = 0; i < brought.size(); ++i) {
    const TensorType &own = common->call.operands[i];
    brought[i] = makeTensor({own.dtype, dim::evaluate(own.shape, sizes)}, brought[i].impl()->storage, user);
  }
  functionOf(common->call, homes, machine, device, user)->run(arguments, results, user);
  results.front() = makeTensor(types.front(), results.front().impl()->storage, user);
}

void clearDevicePrograms() {
  Functions &functions = Functions::instance();
  std::lock_guard lock(functions.mutex);
  functions.clear();
}

} // namespace tressel::eager
