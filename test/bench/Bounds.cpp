#include "Bounds.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Util.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

using namespace mlir;

namespace tressel::bench {
namespace {

using runtime::DeviceModel;
using runtime::MachineModel;
using runtime::RouteModel;

constexpr double kNever = std::numeric_limits<double>::infinity();

class Bound {
public:
  Bound(ModuleOp program, const MachineModel &machine)
      : machine(machine), main(*program.getOps<func::FuncOp>().begin()) {
    for (const DeviceModel &device : machine.devices)
      if (device.device == runtime::DeviceRef{} || device.device.kind == runtime::DeviceKind::Gpu)
        devices.push_back(&device);
    for (Operation &op : main.getBody().front())
      if (passes::isComputation(&op))
        ops.push_back(&op);
  }

  double seconds() { return std::max({arithmetic(), chain(), forcedBytes(), freeBytes()}); }

private:
  /// Infinite where the op is annotated for another device.
  double secondsOf(Operation *op, size_t device) const {
    const auto annotated = graph::deviceOf(op);
    if (annotated && *annotated != devices[device]->device)
      return kNever;
    if (op->getNumOperands() == 0)
      return 0;
    runtime::KernelWork work;
    work.type = graph::fromMlir(op->getOperand(0).getType()).dtype;
    work.flops = static_cast<double>(passes::flopsOf(op));
    work.provider = "builtin";
    return runtime::workSeconds(*devices[device], work);
  }

  /// T is at least the sum over the ops of the least, over the devices, of weight * seconds, for all weights whose sum
  /// is 1.
  double arithmetic() const {
    std::vector<std::vector<double>> weights;
    double rates = 0;
    for (const DeviceModel *device : devices)
      rates += device->flops(DType::f32) * device->efficiencyOf("builtin");
    weights.emplace_back();
    for (const DeviceModel *device : devices)
      weights.back().push_back(device->flops(DType::f32) * device->efficiencyOf("builtin") / rates);
    for (size_t one = 0; one < devices.size(); ++one) {
      weights.emplace_back(devices.size(), 0.0);
      weights.back()[one] = 1;
    }
    double best = 0;
    for (const std::vector<double> &weight : weights) {
      double sum = 0;
      for (Operation *op : ops) {
        double least = kNever;
        for (size_t d = 0; d < devices.size(); ++d)
          if (const double seconds = secondsOf(op, d); seconds < kNever)
            least = std::min(least, weight[d] * seconds);
        sum += least < kNever ? least : 0;
      }
      best = std::max(best, sum);
    }
    return best;
  }

  double rateOf(const RouteModel &route) const {
    double rate = kNever;
    for (uint32_t link : route.links)
      rate = std::min(rate, machine.links[link].bytesPerSecond);
    return rate;
  }
  static double bytesOf(Value value) { return static_cast<double>(passes::bytesOf(value.getType())); }
  bool isState(Value value) const {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg && main.getArgAttr(arg.getArgNumber(), "tressel.state");
  }
  /// An input that comes with each call, on the host.
  bool isInput(Value value) const { return isa<BlockArgument>(value) && !isState(value); }

  /// Each op where it takes least, one behind the other. Transfers may hide: ops can be cut into blocks of rows.
  double chain() const {
    llvm::DenseMap<Value, double> ends;
    double longest = 0;
    for (Operation &op : main.getBody().front()) {
      double least = passes::isComputation(&op) ? kNever : 0, begin = 0;
      for (size_t d = 0; d < devices.size() && least > 0; ++d)
        least = std::min(least, secondsOf(&op, d));
      for (Value operand : op.getOperands())
        begin = std::max(begin, ends.lookup(operand));
      for (Value result : op.getResults())
        longest = std::max(longest, ends[result] = begin + (least < kNever ? least : 0));
    }
    return longest;
  }

  /// Nothing where any device will do.
  std::optional<size_t> placeOf(Value value) const {
    if (isInput(value))
      return 0;
    const auto annotated = value.getDefiningOp() ? graph::deviceOf(value.getDefiningOp()) : std::nullopt;
    for (size_t d = 0; annotated && d < devices.size(); ++d)
      if (devices[d]->device == *annotated)
        return d;
    return std::nullopt;
  }
  /// Values whose place is given and that are needed in another place that is given cross a link of the way there, once
  /// for each such place; where the machine has one way between two devices, it is that one.
  double forcedBytes() const {
    std::map<uint32_t, double> carried;
    auto need = [&](Value value, size_t at, std::set<std::pair<void *, size_t>> &seen) {
      const std::optional<size_t> from = placeOf(value);
      if (!from || *from == at || !seen.insert({value.getAsOpaquePointer(), at}).second)
        return;
      // It could also come from a third device that needs it too: only what leaves the first one, or reaches the last,
      // once, is certain.
      if (const RouteModel *route = machine.route(devices[*from]->device, devices[at]->device);
          route && !route->links.empty())
        carried[route->links.back()] += at == 0 ? 0 : bytesOf(value);
      if (at == 0)
        if (const RouteModel *route = machine.route(devices[*from]->device, devices[0]->device))
          for (uint32_t link : route->links)
            carried[link] += bytesOf(value);
    };
    std::set<std::pair<void *, size_t>> seen;
    for (Operation *op : ops)
      if (const std::optional<size_t> at = placeOf(op->getResult(0)))
        for (Value operand : op->getOperands())
          need(operand, *at, seen);
    for (Value result : main.getBody().front().getTerminator()->getOperands())
      need(result, 0, seen);
    double longest = 0;
    for (auto [link, bytes] : carried)
      longest = std::max(longest, bytes / machine.links[link].bytesPerSecond);
    return longest;
  }

  /// Bytes per second between the host and all accelerators: the sum of the ways, or the rate of a link that all of
  /// them share.
  double hostRate(bool out) const {
    double sum = 0;
    std::optional<std::set<uint32_t>> shared;
    for (size_t d = 1; d < devices.size(); ++d) {
      const RouteModel *route = out ? machine.route(devices[0]->device, devices[d]->device)
                                    : machine.route(devices[d]->device, devices[0]->device);
      if (!route)
        continue;
      sum += rateOf(*route);
      const std::set<uint32_t> links(route->links.begin(), route->links.end());
      if (!shared)
        shared = links;
      else
        std::erase_if(*shared, [&](uint32_t link) { return !links.contains(link); });
    }
    for (uint32_t link : shared.value_or(std::set<uint32_t>()))
      sum = std::min(sum, machine.links[link].bytesPerSecond);
    return sum;
  }
  /// Bytes B that move at rate L, of which the host saves at most s for each second that it computes: T >= B / (L + s),
  /// as it has T seconds.
  double freeBytes() const {
    double in = 0, out = 0, savedIn = 0, savedOut = 0;
    std::set<void *> seen;
    for (Value result : main.getBody().front().getTerminator()->getOperands()) {
      Operation *op = result.getDefiningOp();
      if (!op || !passes::isComputation(op) || graph::deviceOf(op) || !seen.insert(result.getAsOpaquePointer()).second)
        continue;
      out += bytesOf(result);
      savedOut = std::max(savedOut, bytesOf(result) / secondsOf(op, 0));
    }
    for (Operation *op : ops) {
      if (graph::deviceOf(op))
        continue;
      double read = 0;
      for (Value operand : op->getOperands())
        if (isInput(operand)) {
          read += bytesOf(operand);
          if (seen.insert(operand.getAsOpaquePointer()).second)
            in += bytesOf(operand);
        }
      if (read > 0)
        savedIn = std::max(savedIn, read / secondsOf(op, 0));
    }
    return std::max(out > 0 ? out / (hostRate(false) + savedOut) : 0, in > 0 ? in / (hostRate(true) + savedIn) : 0);
  }

  const MachineModel &machine;
  mutable func::FuncOp main;                ///< a handle, whose accessors are not const
  std::vector<const DeviceModel *> devices; ///< the host first
  std::vector<Operation *> ops;             ///< that compute
};

} // namespace

double leastSeconds(ModuleOp program, const MachineModel &machine) { return Bound(program, machine).seconds(); }

} // namespace tressel::bench
