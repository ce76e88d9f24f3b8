// A kernel of a program that one of NVIDIA's libraries computes, as codegen/cuda/Library.h describes it. The generated
// kernel of the same symbol stands beside it, for launches that the library does not take.
//
//   load ──libraryKernel──> LibraryKernel ──plan (by sizes and alignments)──> Plan ──run──> the library's call on the
//   launch's stream
//                  └──no library────────────────────┐       └──not taken──> the generated kernel
//                                                   └──────────────────────────^
//
// Which of its algorithms computes a call the library proposes, fastest first by its own estimate. Where they are
// measured (TRESSEL_CUBLAS_TUNE, TRESSEL_CUDNN_TUNE), the choice is kept for the process, and in the folder of caches.
#pragma once

#include "GpuKernel.h"
#include "LaunchSizes.h"
#include "LibraryChoices.h"
#include "runtime/files/Json.h"
#include "tressel/runtime/Dim.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class LibraryKernel : public CudaKernel {
public:
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// A launch. The card's context is the thread's.
  struct Call {
    std::span<const Region> regions;
    std::span<const int64_t> scalars;
    StreamHandle stream = nullptr;
    void *workspace = nullptr; ///< of this stream alone; null: there is none
    bool measures = false;     ///< measures the algorithms if no choice is known
  };
  /// What runs launches of the same sizes.
  struct Plan {
    Plan() = default;
    virtual ~Plan() = default;
    Plan(const Plan &) = delete;
    mutable bool isTaken = false; ///< false: the generated kernel runs
  };

  LibraryKernel(const LibraryKernel &) = delete;
  const GpuKernel &generated() const { return *generated_; }

  //--- Under the machine's lock -------------------------------------------------------------------------------------
  /// What runs such a launch; null: the generated kernel does. The first launch of its sizes may compute the result
  /// several times, to measure that. Throws Error, which names the kernel.
  const Plan *plan(const Call &call) const;
  /// False: the library does not take it after all, and nothing was issued. Throws Error, which names the kernel.
  virtual bool run(const Plan &plan, const Call &call) const = 0;

protected:
  struct Traits {
    const char *name;       ///< "cuBLASLt"
    const char *choices;    ///< of LibraryChoices
    const char *variable;   ///< of the environment: 0, or whether algorithms are measured
    unsigned mostAlignment; ///< bytes; more helps no algorithm
  };
  /// What plans differ in.
  struct Key {
    std::vector<int64_t> scalars;
    std::vector<uint16_t> alignments; ///< bytes, of `operands_`
    bool hasWorkspace = false;
    auto operator<=>(const Key &) const = default;
  };
  enum class Tuning : uint8_t { Off, Kept, On };
  static constexpr size_t kMostCandidates = 8; ///< that are measured

  LibraryKernel(const Traits &traits, const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated,
                const Card &card, const Driver &driver);
  /// Null, with a note: the generated kernel runs.
  virtual std::unique_ptr<Plan> make(const Key &key, const Call &call) const = 0;

  //--- Reading descriptions: throw InputError -----------------------------------------------------------------------
  void readSymbols(const json::Value &params);
  static Size sizeFrom(const json::Value &value) { return cuda::sizeFrom(value); }
  static uint32_t operandFrom(const json::Value &value);
  /// InputError of what is wrong with the description.
  [[noreturn]] void refuseDescription(const std::string &problem) const;
  /// The numbers of a launch. `numberOf` throws Error for a symbol that it does not carry.
  dim::Values valuesOf(std::span<const int64_t> scalars) const { return sizes_.valuesOf(scalars); }
  static int64_t numberOf(Size size, const dim::Values &values) { return LaunchSizes::numberOf(size, values); }
  /// Throws Error unless an operand has so many elements.
  void needElements(const Call &call, uint32_t operand, __int128 elements, DType type) const;

  //--- Choices ------------------------------------------------------------------------------------------------------
  /// Whether algorithms are measured. Else choices that were kept still count, unless that is off.
  Tuning tuning(const Call &call) const;
  LibraryChoices &choices() const { return LibraryChoices::of(traits_.choices); }
  /// The card and the library's version, as a problem's name begins.
  std::string problemOf(size_t version) const;
  /// The fastest of `count` candidates, which `launch` runs once each time, with the result at an address. It returns
  /// false where one does not run. Nothing if none does, or there is no memory to measure in.
  std::optional<size_t> measure(size_t count, const Call &call, uint32_t result, std::optional<uint32_t> residual,
                                const std::function<bool(size_t candidate, void *result)> &launch) const;

  void noteGenerated(std::string_view why) const;
  /// An Error that begins with the kernel's name.
  [[noreturn]] void fail(const std::string &what) const;

  const Traits traits_;
  const std::string symbol_;
  const std::shared_ptr<const GpuKernel> generated_;
  const Card &card_;
  const Driver &driver_;
  LaunchSizes sizes_;                             ///< whose symbols' values a launch's scalars are
  std::vector<std::optional<uint32_t>> operands_; ///< whose alignments count

private:
  Key keyOf(const Call &call) const;
  mutable std::map<Key, std::unique_ptr<Plan>> plans_;
};

bool overlap(const Region &a, const Region &b);

/// The kernel as this card runs it: a LibraryKernel if `desc` describes a call of a library that is there, else
/// `generated`, with a note for what the description names and is missing.
DeviceKernelRef libraryKernel(const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated, const Card &card,
                              const Driver &driver);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
