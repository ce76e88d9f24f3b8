// How kernels for GPUs are cut where that was measured on a card, by architecture: what the cost model
// (loops/GpuSchedule.cpp, library/DeviceTiles.h) says counts for the others. A JSON file (docs/gpu.md, "Tuning").
//
//   tressel compile model.onnx --device cuda --gpu sm_90 --tune h100.json      measures what the file does not have
//   (Tune.h) tressel compile model.onnx --device cuda --gpu sm_90 --tuning h100.json    goes by it, on any machine
#pragma once

#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/loops/Loops.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::codegen::cuda {

/// A way to cut a kernel: loops by threads and vectors, or a product or convolution by one of the tiles. Both empty: as
/// the cost model has it.
struct Cut {
  LoopTuning loops;
  std::string tile; ///< TileShape::name
  int parts = 0;    ///< blocks that share the depth of a tile, as a cluster; 0: one has it all
  /// "threads 256 row 32 vector 4", "tile 64", "tile 64 parts 8"
  std::string str() const;
  /// Throws InputError for another text.
  static Cut parse(std::string_view text);
  bool operator==(const Cut &) const = default;
};

class Tunings {
public:
  struct Entry {
    Cut cut;
    double seconds = 0;        ///< that it took
    double defaultSeconds = 0; ///< that the cost model's way took
    double librarySeconds = 0; ///< that NVIDIA's library took; 0: not measured
    std::string what;          ///< for readers
  };
  /// What was measured for the kernel that the cost model makes, of this architecture. A kernel is told by its text
  /// (Kernel::text): when the cost model or the generated code changes, what was measured before no longer counts. From
  /// any thread.
  std::optional<Entry> find(const Arch &arch, const Kernel &byModel) const;
  void add(const Arch &arch, const Kernel &byModel, Entry entry);
  size_t size() const;

  /// Throws InputError with line and place; `name` is what the text is called.
  static std::shared_ptr<Tunings> parse(std::string_view json, const std::string &name);
  /// The same for a file. Throws InputError when there is none.
  static std::shared_ptr<Tunings> load(const std::string &path);
  std::string toJson() const;

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, Entry, std::less<>>, std::less<>>
      byArch_; ///< by what identifies a kernel
};

/// Those that kernels are made by in this process: none, or those of the file TRESSEL_GPU_TUNING until others are set.
/// Throws InputError for a file that is none.
std::shared_ptr<const Tunings> currentTunings();
void setTunings(std::shared_ptr<const Tunings> tunings);

/// What they have of a kernel.
inline std::optional<Tunings::Entry> currentTuning(const Arch &arch, const Kernel &byModel) {
  const std::shared_ptr<const Tunings> all = currentTunings();
  return all ? all->find(arch, byModel) : std::nullopt;
}

/// The kernel that the cost model makes, `make({})`, or as it was measured to be faster.
template <typename Make> auto tuned(const Arch &arch, Make &&make) {
  auto byModel = make(Cut());
  if (!byModel)
    return byModel;
  const std::optional<Tunings::Entry> entry = currentTuning(arch, *byModel);
  if (!entry)
    return byModel;
  auto made = entry->cut == Cut() ? byModel : make(entry->cut);
  if (!made)
    return byModel;
  made->seconds = byModel->seconds * entry->seconds /
                  entry->defaultSeconds; // in the cost model's measure, as those that it is compared with
  return made;
}

} // namespace tressel::codegen::cuda
