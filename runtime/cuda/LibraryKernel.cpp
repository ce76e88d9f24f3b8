#include "LibraryKernel.h"

#include "CublasKernel.h"
#include "CudnnAttention.h"
#include "CudnnConvolution.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Notes.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tressel::runtime::cuda {
namespace {

constexpr int kRepetitions = 3;    // of each candidate that is measured
constexpr size_t kMostPlans = 512; // of one kernel: sizes that differ from launch to launch

void note(std::string_view what) {
  const std::string text = concat("tressel: note: ", what, "\n");
  if (isFirstNote(text))
    std::fputs(text.c_str(), stderr);
}

/// An event that measures time, of this call alone.
class TimedEvent {
public:
  explicit TimedEvent(const Driver &driver) : driver_(driver) {
    driver.check(driver.cuEventCreate(&handle_, 0), "cuEventCreate");
  }
  ~TimedEvent() { driver_.cuEventDestroy(handle_); }
  TimedEvent(const TimedEvent &) = delete;
  EventHandle handle() const { return handle_; }

private:
  const Driver &driver_;
  EventHandle handle_ = nullptr;
};

/// Memory of the card for what is measured.
class Scratch {
public:
  Scratch(const Driver &driver, int64_t bytes) : driver_(driver) {
    if (driver.cuMemAlloc(&address_, static_cast<size_t>(bytes)) != kSuccess)
      address_ = 0;
  }
  ~Scratch() {
    if (address_)
      driver_.cuMemFree(address_);
  }
  Scratch(const Scratch &) = delete;
  void *address() const { return reinterpret_cast<void *>(address_); }

private:
  const Driver &driver_;
  Address address_ = 0;
};

/// A kernel of a library whose handle for the card can be had, else the generated one.
template <typename Kernel, typename Library>
DeviceKernelRef kernelOf(const char *what, const KernelDesc &desc, const json::Value &params, const json::Value &call,
                         std::shared_ptr<const GpuKernel> generated, const Card &card, const Driver &driver) {
  std::string why;
  const Library *library = Library::find(driver, &why);
  const auto handle = library ? library->handleFor(card, driver, &why) : nullptr;
  if (!handle) {
    note(concat(what, ": ", why));
    return generated;
  }
  return std::make_shared<Kernel>(desc, params, call, std::move(generated), *library, handle, card, driver);
}

} // namespace

bool overlap(const Region &a, const Region &b) {
  const auto x = reinterpret_cast<uintptr_t>(a.address), y = reinterpret_cast<uintptr_t>(b.address);
  return x < y + static_cast<uintptr_t>(b.bytes) && y < x + static_cast<uintptr_t>(a.bytes);
}

LibraryKernel::LibraryKernel(const Traits &traits, const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated,
                             const Card &card, const Driver &driver)
    : CudaKernel(Form::Library), traits_(traits), symbol_(desc.symbol), generated_(std::move(generated)), card_(card),
      driver_(driver) {}

void LibraryKernel::fail(const std::string &what) const { throwError<Error>("kernel '", symbol_, "': ", what); }

void LibraryKernel::noteGenerated(std::string_view why) const {
  note(concat("kernel '", symbol_, "' runs as generated: ", why));
}

//--- Descriptions -----------------------------------------------------------------------------------------------------
void LibraryKernel::readSymbols(const json::Value &params) { sizes_ = LaunchSizes(params); }

uint32_t LibraryKernel::operandFrom(const json::Value &value) {
  if (value.asInt() < 0 || value.asInt() > UINT16_MAX)
    throwError<InputError>(value.asInt(), " is no number of an operand");
  return static_cast<uint32_t>(value.asInt());
}

void LibraryKernel::refuseDescription(const std::string &problem) const {
  throwError<InputError>("kernel '", symbol_, "': its call of ", traits_.name, " is not understood: ", problem);
}

void LibraryKernel::needElements(const Call &call, uint32_t operand, __int128 elements, DType type) const {
  const int64_t bytes = call.regions[operand].bytes;
  if (elements * sizeOf(type) > bytes)
    fail(concat("operand ", operand, " has ", bytes, " bytes, fewer than its call of ", traits_.name, " touches"));
}

//--- Plans ------------------------------------------------------------------------------------------------------------
LibraryKernel::Key LibraryKernel::keyOf(const Call &call) const {
  Key key;
  key.scalars.assign(call.scalars.begin(), call.scalars.end());
  for (const std::optional<uint32_t> &operand : operands_) {
    if (operand && *operand >= call.regions.size())
      fail(concat("the launch has ", call.regions.size(), " operands, and its call of ", traits_.name, " names number ",
                  *operand));
    const auto address = operand ? reinterpret_cast<uintptr_t>(call.regions[*operand].address) : 0;
    key.alignments.push_back(static_cast<uint16_t>(1u << std::countr_zero(address | traits_.mostAlignment)));
  }
  key.hasWorkspace = call.workspace != nullptr;
  return key;
}

const LibraryKernel::Plan *LibraryKernel::plan(const Call &call) const {
  Key key = keyOf(call);
  auto at = plans_.find(key);
  if (at == plans_.end()) {
    if (plans_.size() >= kMostPlans)
      plans_.clear();
    auto made = make(key, call);
    at = plans_.emplace(std::move(key), std::move(made)).first;
  }
  return at->second && at->second->isTaken ? at->second.get() : nullptr;
}

//--- Choices ----------------------------------------------------------------------------------------------------------
LibraryKernel::Tuning LibraryKernel::tuning(const Call &call) const {
  const char *wanted = std::getenv(traits_.variable);
  if (wanted && std::strcmp(wanted, "0") == 0)
    return Tuning::Off;
  return call.measures || (wanted && *wanted) ? Tuning::On : Tuning::Kept;
}

std::string LibraryKernel::problemOf(size_t version) const {
  std::string card = card_.name;
  std::ranges::replace_if(
      card, [](char c) { return c <= ' ' || c > '~'; }, '_');
  return concat(card, ",", version);
}

std::optional<size_t> LibraryKernel::measure(size_t count, const Call &call, uint32_t resultOperand,
                                             std::optional<uint32_t> residual,
                                             const std::function<bool(size_t, void *)> &launch) const {
  void *result = call.regions[resultOperand].address;
  std::optional<Scratch> scratch;
  if (residual && overlap(call.regions[*residual],
                          call.regions[resultOperand])) { // the residual is needed as it is for each run
    scratch.emplace(driver_, call.regions[resultOperand].bytes);
    if (!scratch->address())
      return std::nullopt;
    result = scratch->address();
  }
  const std::string measuring = concat("measuring kernel '", symbol_, "'");
  const TimedEvent begin(driver_), end(driver_);
  float best = 0;
  std::optional<size_t> fastest;
  for (size_t candidate = 0; candidate < count; ++candidate) {
    if (!launch(candidate, result)) // loads its code
      continue;
    driver_.check(driver_.cuEventRecord(begin.handle(), call.stream), "cuEventRecord");
    bool runs = true;
    for (int i = 0; i < kRepetitions; ++i)
      runs &= launch(candidate, result);
    driver_.check(driver_.cuEventRecord(end.handle(), call.stream), "cuEventRecord");
    driver_.check(driver_.cuEventSynchronize(end.handle()), measuring, card_.name);
    float milliseconds = 0;
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, begin.handle(), end.handle()), "cuEventElapsedTime");
    if (runs && (!fastest || milliseconds < best)) {
      best = milliseconds;
      fastest = candidate;
    }
  }
  if (scratch) // what ran last may have failed and not been waited for
    driver_.check(driver_.cuStreamSynchronize(call.stream), measuring, card_.name);
  return fastest;
}

//--- Loading ----------------------------------------------------------------------------------------------------------
DeviceKernelRef libraryKernel(const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated, const Card &card,
                              const Driver &driver) {
  const json::Value params = json::parse(desc.params);
  const json::Value *call = params.find("library");
  if (!call)
    return generated;
  const std::string name = call->at("name").asString();
  if (name == CublasKernel::kName)
    return kernelOf<CublasKernel, CublasLt>("products run as generated kernels, without cuBLASLt", desc, params, *call,
                                            std::move(generated), card, driver);
  if (name == CudnnConvolution::kName)
    return kernelOf<CudnnConvolution, Cudnn>("convolutions run as generated kernels, without cuDNN", desc, params,
                                             *call, std::move(generated), card, driver);
  if (name == CudnnAttention::kName)
    return kernelOf<CudnnAttention, Cudnn>("attention runs as generated kernels, without cuDNN", desc, params, *call,
                                           std::move(generated), card, driver);
  note(concat("calls of ", name, " are not made: the generated kernels run"));
  return generated;
}

} // namespace tressel::runtime::cuda
