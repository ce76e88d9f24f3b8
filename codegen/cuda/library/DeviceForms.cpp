// Ops that name a kernel by their KernelForm (ir/op/KernelForm.h), as calls of the device library: how many blocks they get, and
// which of several functions.
#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/library/DeviceKernel.h"
#include "codegen/cuda/library/DeviceTiles.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <bit>

namespace tressel::codegen::cuda {
namespace {

constexpr int kThreads = 256; // of Scan.cpp and Scatter.cpp

struct Request {
  const op::KernelForm &form;
  const std::vector<TensorType> &types;
  const Arch &arch;
  std::string type; ///< of the kernel's name: "f32", "b4"
  double bytes = 0; ///< of all operands and results
};

/// What the functions below fill in of a kernel and a call: the function, params, threads, blocks, seconds.
using Plan = bool (*)(const Request &, Kernel &, DeviceCall &);

double waves(const Request &r, Size blocks) { return std::max(1.0, typical(blocks) / (4.0 * r.arch.multiprocessors)); }

/// Threads for elements, each of which does several if there are many.
void spread(const Request &r, Kernel &kernel, Size elements) {
  kernel.threads = kThreads;
  kernel.blocks = dim::min(dim::ceilDiv(elements, kThreads), int64_t(32) * r.arch.multiprocessors);
  kernel.seconds = streamedSeconds(r.bytes, r.arch);
}

bool fitsNarrow(const Request &r) {
  return std::ranges::all_of(
      r.types, [](const TensorType &t) { return dim::bounds(dim::numElements(t.shape)).hi < (int64_t(1) << 31); });
}

bool planGather(const Request &r, Kernel &kernel, DeviceCall &call) {
  std::vector<Size> params = r.form.params;
  Size &slice = params[2];
  int width = r.type[1] - '0';
  while (width < 16 && dim::divideExactly(slice, 2))
    slice = *dim::divideExactly(slice, 2), width *= 2;
  call.function = "gather_nd_b" + std::to_string(width);
  call.params = {r.form.range, int(fitsNarrow(r))};
  call.params.insert(call.params.end(), params.begin(), params.end());
  call.constant = {call.buffers[0], call.buffers[1]};
  spread(r, kernel, r.form.range * slice);
  return true;
}

bool planSlice(const Request &r, Kernel &kernel, DeviceCall &call) {
  call.function = r.form.kernel;
  call.params = {r.form.range, int(fitsNarrow(r))};
  call.params.insert(call.params.end(), r.form.params.begin(), r.form.params.end());
  spread(r, kernel, dim::numElements(r.types.back().shape));
  return true;
}

bool planScan(const Request &r, Kernel &kernel, DeviceCall &call) {
  const Size size = r.form.params[0], columns = r.form.params[1];
  const bool warps = columns == 1 && dim::hint(size) <= 512;
  call.function = (warps ? "scan_warps_" : "scan_") + r.type;
  call.params = {r.form.range};
  call.params.insert(call.params.end(), r.form.params.begin(), r.form.params.end());
  kernel.threads = kThreads;
  kernel.blocks = warps ? dim::ceilDiv(r.form.range, kThreads / kWarp) : r.form.range;
  // A block goes through its line piece by piece, and waits for each.
  const double pieces = columns == 1 ? typical(size) / 1024 : typical(size) / 64;
  kernel.seconds = std::max(streamedSeconds(r.bytes, r.arch), waves(r, kernel.blocks) * (1e-6 + pieces * 1e-6));
  return true;
}

bool planScatter(const Request &r, Kernel &kernel, DeviceCall &call) {
  call.function = r.form.kernel;
  call.params = {r.form.range};
  call.params.insert(call.params.end(), r.form.params.begin(), r.form.params.end());
  kernel.threads = kThreads;
  const int64_t wanted = int64_t(2) * r.arch.multiprocessors;
  double walked; // updates that a block looks at, one piece after the other
  if (llvm::StringRef(r.form.kernel).starts_with("scatter_nd")) {
    kernel.blocks = dim::max(1, dim::min(r.form.range, wanted)); // indices are looked at also where there are no places
    walked = typical(r.form.params[0]) / kThreads;
  } else {
    const Size size = r.form.params[0], columns = r.form.params[2];
    const int64_t most = std::max<int64_t>(1, dim::hint(size) / (columns == 1 ? kThreads : 16));
    const int64_t sharing = std::clamp<int64_t>(wanted / std::max<int64_t>(1, dim::hint(r.form.range)), 1, most);
    call.params.push_back(sharing);
    kernel.blocks = r.form.range * sharing;
    walked = columns == 1 ? typical(r.form.params[1]) / kThreads : typical(r.form.params[1]) / 4;
  }
  kernel.seconds = std::max(streamedSeconds(r.bytes, r.arch), waves(r, kernel.blocks) * walked * 0.7e-6);
  return true;
}

bool planOrder(const Request &r, Kernel &kernel, DeviceCall &call) {
  const Size size = r.form.params[0];
  const int64_t entries = (32 << 10) / (sizeOf(r.types[0].dtype) <= 4 ? 8 : 16); // Sort.cpp
  const bool shared = dim::bounds(size).hi <= entries;
  int64_t perBlock = 0;
  kernel.threads = 512;
  kernel.blocks = r.form.range;
  if (shared) {
    perBlock = 1;
    if (size.isNumber()) {
      const auto power =
          static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, size.number()))));
      perBlock = std::max<int64_t>(1, 512 / power);
      kernel.threads = power >= 2048 ? 512 : kThreads;
    }
    kernel.blocks = dim::ceilDiv(r.form.range, perBlock);
  }
  llvm::StringRef name = r.form.kernel;
  call.function = name.drop_back(r.type.size() + 1).str() + (shared ? "_" : "_long_") + r.type;
  call.params = {r.form.range};
  call.params.insert(call.params.end(), r.form.params.begin(), r.form.params.end());
  call.params.push_back(perBlock);
  call.constant = {call.buffers[0]};
  // Of the network: steps in shared memory, and passes over a line in memory. Then finding those that are wanted.
  const double n = std::max(2.0, typical(size)), sorted = std::max(2.0, shared ? n : typical(r.form.params[2]));
  const double pieces = std::max(0.0, std::ceil(std::log2(sorted / static_cast<double>(entries))));
  const double inShared = (std::pow(std::log2(sorted), 2) - pieces * pieces) / 2, passes = pieces * (pieces + 5) / 2;
  const double perPiece = sorted / std::min(sorted, static_cast<double>(entries));
  constexpr double blockBytesPerSecond = 60e9; // of one multiprocessor: typical
  const double network = inShared * perPiece * 0.15e-6 + passes * sorted * 32 / blockBytesPerSecond;
  const double finding = !shared && sorted < n ? static_cast<double>(sizeOf(r.types[0].dtype)) * 8 * n * 4e-11 : 0;
  kernel.seconds = std::max(streamedSeconds(r.bytes, r.arch), waves(r, kernel.blocks) * (network + finding));
  return true;
}

struct Family {
  const char *prefix;
  Plan plan;
};
constexpr Family kFamilies[] = {
    {"gather_nd_", planGather}, {"dynamic_slice_", planSlice},    {"dynamic_update_slice_", planSlice},
    {"scan_", planScan},        {"put_along_axis_", planScatter}, {"scatter_nd_", planScatter},
    {"sort_", planOrder},       {"argsort_", planOrder},          {"top_k_", planOrder}};

} // namespace

std::optional<Kernel> makeFormKernel(const std::string &symbol, const op::KernelForm &form,
                                     const std::vector<TensorType> &types, const std::vector<int32_t> &buffers,
                                     int numBuffers, const std::vector<Size> &symbols, const Arch &arch) {
  if (llvm::StringRef(form.kernel).starts_with("attention_"))
    return makeAttentionKernel(symbol, form, types, buffers, numBuffers, symbols, arch);
  for (const Family &family : kFamilies) {
    llvm::StringRef type = form.kernel;
    if (!type.consume_front(family.prefix))
      continue;
    Request request{form, types, arch, type.str()};
    for (const TensorType &t : types)
      request.bytes += typical(dim::bytes(t));
    Kernel kernel{.symbol = symbol, .numBuffers = numBuffers, .symbols = symbols};
    DeviceCall call{.buffers = buffers};
    if (!family.plan(request, kernel, call) || !hasDeviceFunction(call.function) || !isLaunchable(kernel.blocks))
      return std::nullopt;
    return makeDeviceKernel(std::move(kernel), std::move(call));
  }
  return std::nullopt;
}

} // namespace tressel::codegen::cuda
