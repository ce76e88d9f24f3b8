// Ways to train over several accelerators, under the names of other frameworks. Each sets the annotations that the code
// for one device needs (JitOptions::mesh, Variable::on, Variable::shard); docs/parallel.md describes all of them.
#pragma once

#include <tressel/jit.h>
#include <tressel/module.h>

namespace tressel::parallel {

/// Shards each Variable of at least so many bytes along the first dimension that the axis' size divides. A Variable
/// without such a dimension is whole on each accelerator from then on; so is a smaller one, as its exchanges would cost
/// only latency. explain_parallel does the same. For the states of an optimizer (`opt.states()`) this is ZeRO 1 and 2:
/// each rank sums its part of a gradient, updates its part of state and weight, and weights are gathered. For
/// parameters, before the optimizer is made, it is ZeRO 3, or fully sharded: weights are held in parts too, and
/// gathered where they are used. Throws as Variable::shard; Error for a size below 1.
void shard_each(const std::vector<std::pair<std::string, Variable>> &variables, const MeshAxis &axis,
                int64_t least_bytes = 64 << 10, std::source_location where = std::source_location::current());

/// A network with a replica on each accelerator. A call scatters the batch (dimension 0 of each argument, which the
/// accelerators need not divide), runs all replicas, and gathers the result, which is that of one device.
///
///   parallel::DataParallel net(resnet18(), {gpu(0), gpu(1)});
///   Tensor scores = net(images);
///   auto step = jit(f, net.options());       // f trains net.module(), as on one device
///
/// In such a step gradients are summed over the accelerators in buckets (JitOptions::bucket_bytes), overlapped with the
/// rest of the backward pass. Statistics of batch normalization are of the whole batch, on every replica.
template <typename Net> class DataParallel {
public:
  /// Moves the Variables of `net` to these accelerators, and hybridizes it. Throws as Variable::on.
  explicit DataParallel(Net net, std::vector<Device> devices,
                        std::source_location where = std::source_location::current())
      : net_(std::move(net)), devices_(std::move(devices)) {
    net_.on(devices_, where);
    net_.hybridize(options(), where);
  }
  auto operator()(Arg x) const { return net_.call_at(x.where(), x.as_tensor()); }
  /// Of several arguments, or trees of tensors.
  template <typename... Args>
  requires(sizeof...(Args) != 1 || !(std::is_convertible_v<Args, Arg> && ...)) auto operator()(const Args &...args) const {
    return net_.call_at(std::source_location(), args...);
  }
  const Net &module() const { return net_; }
  const std::vector<Device> &devices() const { return devices_; }
  /// The options for a function over the same replicas: `rest` with `devices`, `mesh` and `shard_axis` set.
  JitOptions options(JitOptions rest = {}) const {
    rest.devices = devices_;
    rest.devices.push_back(cpu());
    rest.mesh = {{"data", static_cast<int>(devices_.size())}};
    rest.shard_axis = 0;
    return rest;
  }

private:
  Net net_;
  std::vector<Device> devices_;
};

} // namespace tressel::parallel
