#include "codegen/cuda/tuning/Tune.h"

#include "codegen/cuda/Library.h"
#include "codegen/cuda/Provider.h"
#include "codegen/cuda/loops/KernelSource.h"
#include "codegen/cuda/target/Code.h"
#include "ir/graph/Graph.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Half.h"
#include "tressel/runtime/MachineModel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tressel::codegen::cuda {
namespace {

using runtime::Access;
using runtime::DeviceRef;
using runtime::Event;
using runtime::Region;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostVariants = 24;
constexpr int kRounds = 9;
constexpr double kWorthwhile = 0.97; // of the time by the cost model
constexpr int64_t kPatienceNs = int64_t(60) * 1'000'000'000;

/// Bytes of elements between -1 and 1; of types that are no floats zeros, which every index may be.
std::vector<std::byte> elementsOf(DType type, int64_t count, uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * sizeOf(type)));
  if (!isFloat(type))
    return bytes;
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = static_cast<double>(static_cast<int64_t>(state) >> 32) * 0x1p-31;
    std::byte *at = bytes.data() + i * sizeOf(type);
    auto put = [&](auto x) { std::memcpy(at, &x, sizeof x); };
    if (type == f64)
      put(value);
    else if (type == f32)
      put(static_cast<float>(value));
    else
      put(type == f16 ? halfFromDouble(value) : bfloatFromDouble(value));
  }
  return bytes;
}
double elementAt(DType type, const std::byte *at) {
  auto get = [&]<typename T>(T x) {
    std::memcpy(&x, at, sizeof x);
    return x;
  };
  return type == f64   ? get(0.0)
         : type == f32 ? get(0.0f)
         : type == f16 ? halfToFloat(get(uint16_t(0)))
                       : bfloatToFloat(get(uint16_t(0)));
}

/// Whether results are the same but for rounding: in sums of another order that is relative to what was added up.
bool agree(DType type, const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
  if (!isFloat(type))
    return a == b;
  const auto width = static_cast<size_t>(sizeOf(type));
  double largest = 0, apart = 0;
  for (size_t at = 0; at < a.size(); at += width) {
    const double x = elementAt(type, a.data() + at), y = elementAt(type, b.data() + at);
    if (std::isnan(x) || std::isnan(y) || std::isinf(x) || std::isinf(y)) {
      if (!(std::isnan(x) && std::isnan(y)) && x != y)
        return false;
      continue;
    }
    largest = std::max(largest, std::abs(x));
    apart = std::max(apart, std::abs(x - y));
  }
  return apart <= (sizeOf(type) == 2 ? 0.02 : 1e-4) * std::max(largest, 1e-30);
}

/// The launches of one kernel's variants on a card.
class Bench {
public:
  Bench(graph::KernelOp kernel, const std::vector<Variant> &variants, const Arch &arch, runtime::Machine &machine)
      : machine_(machine), device_(cardOf(machine)), variants_(variants) {
    mlir::Block &body = kernel.getBody().front();
    for (mlir::Value input : body.getArguments())
      types_.push_back(graph::fromMlir(input.getType()));
    numInputs_ = types_.size();
    for (mlir::Value result : body.getTerminator()->getOperands())
      types_.push_back(graph::fromMlir(result.getType()));
    std::vector<Kernel> kernels;
    for (const Variant &variant : variants)
      kernels.push_back(variant.code());
    code_ = std::make_shared<std::vector<runtime::GpuCode>>(1, compileKernels(kernels, arch, /*assembled=*/false));
    for (const Kernel &each : kernels) {
      runtime::KernelDesc &desc = descs_.emplace_back();
      desc.symbol = each.symbol;
      const std::string &library = variants[descs_.size() - 1].library;
      desc.target = library.empty() ? runtime::KernelTarget::Gpu : runtime::KernelTarget::GpuLibrary;
      desc.params = launchParams(each, library);
      desc.numInputs = static_cast<int32_t>(numInputs_);
      desc.range = dim::hint(each.blocks);
    }
    for (Size symbol : kernels.front().symbols)
      scalars_.push_back(dim::hint(symbol));
    std::vector<runtime::KernelCode> codes;
    for (const runtime::KernelDesc &desc : descs_)
      codes.push_back({.desc = &desc});
    loaded_ = device_.load(codes, code_);
  }
  ~Bench() {
    stream_.reset();
    for (const Region &region : regions_)
      device_.release(region.address);
  }
  Bench(const Bench &) = delete;

  /// By variant; kNever for those that do not compute what the first does. Empty: the first fails.
  std::vector<double> run() {
    for (size_t i = 0; i < types_.size(); ++i) {
      const int64_t bytes = bytesOf(i);
      regions_.push_back({device_.allocate(bytes, runtime::MemoryKind::Device),
                          bytes,
                          i < numInputs_ ? Access::Read : Access::Write,
                          {device_.caps().device, runtime::MemoryKind::Device}});
    }
    const auto call = machine_.beginCall();
    for (size_t i = 0; i < numInputs_; ++i)
      copy(i, elementsOf(types_[i].dtype, bytesOf(i) / sizeOf(types_[i].dtype), i + 1), /*isIn=*/true);
    std::vector<std::vector<std::byte>> wanted;
    std::vector<double> medians(variants_.size(), 0.0);
    for (size_t v = 0; v < variants_.size(); ++v) {
      if (!launch(v)) {
        medians[v] = kNever;
      } else {
        for (size_t i = numInputs_; i < types_.size(); ++i) {
          std::vector<std::byte> result(static_cast<size_t>(bytesOf(i)));
          copy(i, result, /*isIn=*/false);
          if (v == 0)
            wanted.push_back(std::move(result));
          else if (!agree(types_[i].dtype, wanted[i - numInputs_], result))
            medians[v] = kNever;
        }
      }
      if (medians.front() == kNever)
        return {};
    }
    std::vector<std::vector<double>> times(variants_.size());
    device_.takeStamps();
    for (int round = 0; round < kRounds; ++round)
      for (size_t v = 0; v < variants_.size(); ++v)
        if (medians[v] < kNever && launch(v))
          for (const runtime::Stamp &stamp : device_.takeStamps())
            times[v].push_back(static_cast<double>(stamp.endPs - stamp.beginPs) * 1e-12);
    for (size_t v = 0; v < variants_.size(); ++v) {
      if (times[v].empty()) {
        medians[v] = kNever;
        continue;
      }
      std::ranges::nth_element(times[v], times[v].begin() + static_cast<std::ptrdiff_t>(times[v].size() / 2));
      medians[v] = times[v][times[v].size() / 2];
    }
    return medians;
  }

  static runtime::Device &cardOf(runtime::Machine &machine) { return machine.at({runtime::DeviceKind::Gpu, 0}); }

private:
  int64_t bytesOf(size_t i) const {
    int64_t bytes = sizeOf(types_[i].dtype);
    for (Size size : types_[i].shape)
      bytes *= dim::hint(size);
    return bytes;
  }
  runtime::Stream &stream() {
    if (!stream_)
      stream_ = device_.makeStream(runtime::StreamKind::Compute, "tuning");
    return *stream_;
  }
  /// Waits for the end. False: the kernel failed. Throws when the card has.
  bool await(const Event &end, const std::string &what) {
    if (machine_.awaitAny({&end, 1}, kPatienceNs) < 0)
      throw RuntimeError("tuning: " + what + " has not ended after a minute");
    if (end.state() == runtime::Semaphore::State::Reached)
      return true;
    const runtime::DeviceFailureRef why = end.semaphore->failure();
    if (why->kind != runtime::FailureKind::Kernel)
      throw RuntimeError("tuning: " + what + ": " + why->message);
    stream_.reset();
    return false;
  }
  bool launch(size_t v) {
    return await(stream().submit({.kind = runtime::DeviceCommandKind::Launch,
                                  .regions = regions_,
                                  .kernel = loaded_[v].get(),
                                  .desc = &descs_[v],
                                  .scalars = scalars_}),
                 "kernel '" + descs_[v].symbol + "'");
  }
  void copy(size_t i, const std::vector<std::byte> &host, bool isIn) {
    const Region here{const_cast<std::byte *>(host.data()),
                      static_cast<int64_t>(host.size()),
                      isIn ? Access::Read : Access::Write,
                      {}};
    Region there = regions_[i];
    there.access = isIn ? Access::Write : Access::Read;
    const Region both[] = {isIn ? here : there, isIn ? there : here};
    if (!host.empty())
      await(stream().submit({.kind = runtime::DeviceCommandKind::Copy, .regions = both}), "a copy");
  }

  runtime::Machine &machine_;
  runtime::Device &device_;
  const std::vector<Variant> &variants_;
  std::vector<TensorType> types_;
  size_t numInputs_ = 0;
  std::shared_ptr<std::vector<runtime::GpuCode>> code_;
  std::vector<runtime::KernelDesc> descs_;
  std::vector<int64_t> scalars_;
  std::vector<runtime::DeviceKernelRef> loaded_;
  std::vector<Region> regions_;
  std::unique_ptr<runtime::Stream> stream_;
};

/// Whether the loader finds the library that a call is for.
bool isThere(const std::string &call) {
  for (const runtime::GpuLibrary &library : runtime::gpuLibraries())
    for (const auto &[name, provider] : {std::pair("cuBLASLt", kCublasProvider), std::pair("cuDNN", kCudnnProvider)})
      if (library.name == name && call.find("\"" + std::string(provider) + "\"") != std::string::npos)
        return !library.version.empty();
  return false;
}

} // namespace

TuneReport tune(llvm::ArrayRef<graph::KernelOp> kernels, const Arch &arch, runtime::Machine &machine, Tunings &tunings,
                const std::function<void(int done, int all)> &progress) {
  const runtime::DeviceModel *card = machine.model().find({runtime::DeviceKind::Gpu, 0});
  if (!card || card->architecture != arch.card)
    throw InputError("the card of machine '" + machine.name() + "' is a " + (card ? card->architecture : "host") +
                     ", and kernels are to be tuned for " + std::string(arch.name));
  TuneReport report;
  for (size_t number = 0; number < kernels.size(); ++number) {
    graph::KernelOp kernel = kernels[number];
    progress(static_cast<int>(number), static_cast<int>(kernels.size()));
    std::vector<Variant> variants = variantsOf(kernel, arch, kMostVariants);
    if (variants.empty())
      continue;
    if (!variants.back().library.empty() && !isThere(variants.back().library))
      variants.pop_back();
    if (tunings.find(arch, variants.front().kernel)) {
      ++report.known;
      continue;
    }
    std::vector<double> seconds;
    try {
      Bench bench(kernel, variants, arch, machine);
      seconds = bench.run();
    } catch (const OutOfMemory &) {
    }
    if (seconds.empty())
      continue;
    ++report.measured;
    double library = 0;
    if (!variants.back().library.empty()) {
      library = seconds.back() < kNever ? seconds.back() : 0;
      seconds.pop_back();
    }
    size_t best = static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
    if (seconds[best] > kWorthwhile * seconds.front())
      best = 0;
    report.faster += best != 0;
    tunings.add(arch, variants.front().kernel,
                {.cut = variants[best].cut,
                 .seconds = seconds[best],
                 .defaultSeconds = seconds.front(),
                 .librarySeconds = library,
                 .what = graph::describeBody(kernel.getBody(), kernel.getProvider())});
  }
  return report;
}

} // namespace tressel::codegen::cuda
