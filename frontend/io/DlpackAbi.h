// The structs by which libraries share tensors in memory (DLPack 1.x), with the layout of its ABI.
// tressel/interchange.h only declares them. DLPack's own header defines the same structs under the same names.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct DLPackVersion {
  uint32_t major, minor;
};
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; ///< in elements; null for row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
};

} // extern "C"

namespace tressel::io {

inline constexpr uint32_t kDlpackMajor = 1, kDlpackMinor = 0;
inline constexpr uint64_t kDlpackReadOnly = 1, kDlpackIsCopied = 2;
/// Memory that the host can read: its own, and memory that other devices' drivers pinned.
inline constexpr int32_t kDlpackCpu = 1, kDlpackCudaHost = 3, kDlpackRocmHost = 11;
inline constexpr int32_t kDlpackCuda = 2; ///< device_id is the card, as the driver counts
enum DlpackCode : uint8_t { kDlpackInt = 0, kDlpackUInt = 1, kDlpackFloat = 2, kDlpackBfloat = 4, kDlpackBool = 6 };

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24 && offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

} // namespace tressel::io
