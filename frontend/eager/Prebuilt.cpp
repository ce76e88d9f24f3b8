#include "frontend/eager/Prebuilt.h"

#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <charconv>
#include <string_view>
#include <unordered_map>

// The images, as the build made them: an index as text, then the code (prebuilt/Host.cpp); and the archive for GPUs.
#define TRESSEL_PREBUILT(level)                                                                                        \
  asm(".section .rodata,\"a\",@progbits\n.balign 64\n"                                                                 \
      "tressel_prebuilt_" #level "_begin:\n.incbin \"" TRESSEL_PREBUILT_DIR "/prebuilt-" #level ".bin\"\n"             \
      "tressel_prebuilt_" #level "_end:\n.byte 0\n.previous\n");                                                       \
  extern "C" const char tressel_prebuilt_##level##_begin[], tressel_prebuilt_##level##_end[];
TRESSEL_PREBUILT(baseline)
TRESSEL_PREBUILT(v3)
TRESSEL_PREBUILT(v4)
TRESSEL_PREBUILT(gpu)
#undef TRESSEL_PREBUILT

namespace tressel::eager {
namespace {

std::string_view fileOf(runtime::CpuLevel level) {
  switch (level) {
  case runtime::CpuLevel::V4:
    return {tressel_prebuilt_v4_begin, tressel_prebuilt_v4_end};
  case runtime::CpuLevel::V3:
    return {tressel_prebuilt_v3_begin, tressel_prebuilt_v3_end};
  case runtime::CpuLevel::Baseline:
    break;
  }
  return {tressel_prebuilt_baseline_begin, tressel_prebuilt_baseline_end};
}

/// The part of `text` before the next `end`, which is cut off.
std::string_view next(std::string_view &text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

class Images {
public:
  /// Never destroyed: kernels may run while the process ends.
  static const Images &of(runtime::CpuLevel level) {
    switch (level) {
    case runtime::CpuLevel::V4: {
      static const Images &v4 = *new Images(level);
      return v4;
    }
    case runtime::CpuLevel::V3: {
      static const Images &v3 = *new Images(level);
      return v3;
    }
    case runtime::CpuLevel::Baseline:
      break;
    }
    static const Images &baseline = *new Images(runtime::CpuLevel::Baseline);
    return baseline;
  }
  std::optional<Kernel::Code> find(const codegen::OpCall &call) const {
    const std::string symbol = call.symbol();
    const auto it = lines_.find(symbol);
    if (it == lines_.end())
      return std::nullopt;
    std::string_view line = it->second;
    const auto range = dim::parse(next(line, ' ')), points = dim::parse(next(line, ' '));
    Kernel::Code code;
    const auto ns = std::from_chars(line.data(), line.data() + line.size(), code.nsPerPoint);
    code.fn = reinterpret_cast<runtime::KernelFn>(image_->find(symbol));
    const int floats = ns.ptr + 1 < line.data() + line.size() ? ns.ptr[1] - '0' : -1;
    if (!range || !points || ns.ec != std::errc() || floats < 0 || floats > static_cast<int>(runtime::FloatMode::Flush) || !code.fn)
      throw InternalError("the index of prebuilt kernels is damaged at " + symbol);
    code.range = *range, code.points = *points, code.floats = static_cast<runtime::FloatMode>(floats);
    code.owner = image_;
    return code;
  }
  size_t size() const { return lines_.size(); }

private:
  explicit Images(runtime::CpuLevel level) {
    std::string_view file = fileOf(level), index = file.substr(0, file.find("\n\n") + 1);
    const size_t begin = (index.size() + 1 + 63) / 64 * 64; // the index is padded to a multiple of 64 bytes
    image_ = runtime::Image::load(std::as_bytes(std::span(file.substr(begin))));
    while (!index.empty()) {
      std::string_view line = next(index, '\n');
      const std::string_view symbol = next(line, ' ');
      lines_.emplace(symbol, line);
    }
  }
  std::shared_ptr<const runtime::Image> image_;
  std::unordered_map<std::string_view, std::string_view> lines_;
};

} // namespace

std::optional<Kernel::Code> findPrebuilt(const codegen::OpCall &call, runtime::CpuLevel level) {
  return Images::of(level).find(call);
}
const codegen::PackedArchive &prebuiltGpuCode() {
  static const auto &archive =
      *new codegen::PackedArchive(std::as_bytes(std::span(tressel_prebuilt_gpu_begin, tressel_prebuilt_gpu_end)));
  return archive;
}
size_t numPrebuilt() { return Images::of(runtime::hostCpuLevel()).size(); }

} // namespace tressel::eager
