// Ways to train over several accelerators, as other frameworks name them. Each is some annotations on what one writes
// for one device (JitOptions::mesh, Variable::on, Variable::shard), set here at once; docs/parallel.md has all of them.
#pragma once

#include <tressel/jit.h>
#include <tressel/module.h>

namespace tressel::parallel {

/// Cuts each Variable of at least so many bytes along its first dimension that the axis' size divides; one that has
/// none, or is smaller (its exchanges would take their latencies alone), is whole on each accelerator from then on, as
/// explain_parallel has them. Of the states of an optimizer (`opt.states()`) it is what others call ZeRO 1 and 2:
/// each rank sums its part of a gradient, updates its part of state and weight, and weights are gathered. Of
/// parameters, before the optimizer is made, it is ZeRO 3, or fully sharded: weights too are held in parts, and
/// gathered where they are used. Throws as Variable::shard; Error for a size below 1.
void shard_each(const std::vector<std::pair<std::string, Variable>> &variables, const MeshAxis &axis,
                int64_t least_bytes = 64 << 10, std::source_location where = std::source_location::current());

/// A network of which each accelerator has a replica: a call scatters the batch (dimension 0 of each argument, whose
/// size the accelerators need not divide), applies all replicas, and gathers the result, which is that of one device.
///
///   parallel::DataParallel net(resnet18(), {gpu(0), gpu(1)});
///   Tensor scores = net(images);
///   auto step = jit(f, net.options());       // f trains net.module(), as on one device
///
/// In such a step gradients are summed over the accelerators in buckets (JitOptions::bucket_bytes) beside what is still
/// computed of the backward pass. Statistics of batch normalization are of the whole batch, on every replica.
template <typename Net> class DataParallel {
public:
  /// Moves what `net` holds to these accelerators, and hybridizes it. Throws as Variable::on.
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
  /// Those of a function over the same replicas: `rest` with `devices`, `mesh` and `shard_axis` set.
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
