#include "frontend/io/AtLine.h"
#include "frontend/io/DlpackAbi.h"
#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Engine.h"

#include <tressel/interchange.h>
#include <tressel/machine.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace tressel {
namespace {

using io::atLine;

std::optional<DType> dtypeOf(const DLDataType &type) {
  if (type.lanes != 1)
    return {};
  switch (type.code) {
  case io::kDlpackInt:
    switch (type.bits) {
    case 8:
      return i8;
    case 16:
      return i16;
    case 32:
      return i32;
    case 64:
      return i64;
    }
    return {};
  case io::kDlpackUInt:
    return type.bits == 8 ? std::optional(u8) : std::nullopt;
  case io::kDlpackFloat:
    return type.bits == 16   ? std::optional(f16)
           : type.bits == 32 ? std::optional(f32)
           : type.bits == 64 ? std::optional(f64)
                             : std::nullopt;
  case io::kDlpackBfloat:
    return type.bits == 16 ? std::optional(bf16) : std::nullopt;
  case io::kDlpackBool:
    return type.bits == 8 ? std::optional(bool_) : std::nullopt;
  }
  return {};
}

DLDataType dlpackType(DType type) {
  const uint8_t code = type == bf16     ? io::kDlpackBfloat
                       : isFloat(type)  ? io::kDlpackFloat
                       : type == bool_  ? io::kDlpackBool
                       : isSigned(type) ? io::kDlpackInt
                                        : io::kDlpackUInt;
  return {code, static_cast<uint8_t>(8 * sizeOf(type)), 1};
}

/// Another library's tensor, checked.
struct Shared {
  TensorType type;
  const std::byte *data = nullptr;
  std::vector<int64_t> strides;
  bool dense = true; ///< row-major without gaps, aligned to its elements
};

Shared check(const DLTensor &t) {
  auto fail = [](const std::string &why) { throw InputError("a DLPack tensor " + why); };
  const int32_t device = t.device.device_type;
  if (device != io::kDlpackCpu && device != io::kDlpackCudaHost && device != io::kDlpackRocmHost &&
      device != io::kDlpackCuda)
    fail("lies on a device of kind " + std::to_string(device) +
         ", neither on the host nor on an NVIDIA card: copy it to the host first");
  const std::optional<DType> dtype = dtypeOf(t.dtype);
  if (!dtype)
    fail("has elements that are not supported: code " + std::to_string(t.dtype.code) + ", " +
         std::to_string(t.dtype.bits) + " bits, " + std::to_string(t.dtype.lanes) + " lanes");
  if (t.ndim < 0 || t.ndim > kMaxRank)
    fail("has " + std::to_string(t.ndim) + " dimensions: at most " + std::to_string(kMaxRank) + " are supported");
  if (t.ndim > 0 && !t.shape)
    fail("has dimensions, but no sizes");
  Shared shared{.type = {*dtype, {}}};
  int64_t bytes = sizeOf(*dtype);
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0)
      fail("has a size of " + std::to_string(t.shape[i]));
    shared.type.shape.push_back(t.shape[i]);
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(t.shape[i], 1), &bytes))
      fail("has more bytes than can be addressed");
  }
  const bool isEmpty = shared.type.shape.numElements() == 0;
  if (!isEmpty && !t.data)
    fail("has elements, but no memory");
  shared.data = t.data ? static_cast<const std::byte *>(t.data) + t.byte_offset : nullptr;
  shared.strides.resize(static_cast<size_t>(t.ndim));
  int64_t dense = 1;
  for (int32_t i = t.ndim; i-- > 0;) {
    const int64_t stride = t.strides ? t.strides[i] : dense;
    shared.strides[static_cast<size_t>(i)] = stride;
    shared.dense &= isEmpty || t.shape[i] == 1 || stride == dense;
    dense *= t.shape[i];
  }
  shared.dense &= reinterpret_cast<uintptr_t>(shared.data) % static_cast<uintptr_t>(sizeOf(*dtype)) == 0;
  return shared;
}

/// The accelerator of the machine that is this card.
runtime::Device &cardOf(const std::shared_ptr<runtime::Machine> &machine, int32_t ordinal) {
  if (machine && ordinal >= 0) // that of the host is -1
    for (const auto &device : machine->devices())
      if (device->caps().ordinal == ordinal)
        return *device;
  throw InputError("a DLPack tensor lies on card " + std::to_string(ordinal) + ", which machine '" +
                   (machine ? machine->name() : "cpu") +
                   "' has not: call use_machine(\"cuda\"), or copy the tensor to the host first");
}

using CallersStream = std::optional<void *>;

/// Shares memory of a card, or copies it if it is not aligned as kernels expect.
Tensor importFromCard(const Shared &shared, int32_t ordinal, runtime::Storage::Deleter release, void *managed,
                      const CallersStream &stream, SourceLoc where) {
  constexpr uintptr_t kAlign = 64;
  const auto machine = detail::currentMachine();
  runtime::Device &card = cardOf(machine, ordinal);
  const runtime::DeviceRef device = card.caps().device;
  if (!shared.dense)
    throw InputError("a DLPack tensor on a card is not row-major and dense: make it so there first");
  const auto memory = runtime::DeviceMemory::of(machine);
  auto *data = const_cast<std::byte *>(shared.data);
  const int64_t bytes = shared.type.bytes();
  const bool isShared = bytes > 0 && reinterpret_cast<uintptr_t>(data) % kAlign == 0;
  const runtime::Event written = stream ? card.endOf(*stream) : runtime::Event();
  const runtime::StorageRef storage =
      isShared ? memory->adopt(data, bytes, device, release, managed) : memory->allocate(bytes, device);
  auto take = [=] {
    if (isShared)
      return;
    if (bytes > 0)
      memory->copy(storage->data(), device, data, device, bytes);
    release(nullptr, managed);
  };
  if (!written.semaphore) {
    take();
    return detail::makeTensor(shared.type, storage, where);
  }
  runtime::Engine::global().submit({.op = "from_dlpack", .where = where}, {}, {&storage, 1},
                                   [machine, written, take](const runtime::TaskView &) -> int32_t {
                                     constexpr int64_t kPatienceNs = int64_t(3600) * 1'000'000'000;
                                     if (machine->awaitAny({&written, 1}, kPatienceNs) < 0)
                                       throw RuntimeError("the stream that writes a DLPack tensor did not end");
                                     if (written.state() == runtime::Semaphore::State::Failed)
                                       throw RuntimeError(written.semaphore->failure()->message);
                                     take();
                                     return runtime::kKernelOk;
                                   });
  return detail::makeTensor(shared.type, storage, where);
}

template <typename Managed>
Tensor import(Managed *managed, const CallersStream &stream, const std::source_location &where) {
  if (detail::tracing())
    detail::fail<TraceError>("another library's tensor cannot be taken in a trace", detail::toLoc(where), "from_dlpack",
                             "do it before, and pass the tensor in");
  return atLine(where, "from_dlpack", [&] {
    if (!managed)
      throw InputError("the DLPack tensor is null");
    if constexpr (requires { managed->version; })
      if (managed->version.major != io::kDlpackMajor)
        throw InputError("the DLPack tensor has the form of version " + std::to_string(managed->version.major) + "." +
                         std::to_string(managed->version.minor) + ": only version 1 is known");
    const Shared shared = check(managed->dl_tensor);
    auto release = [](void *, void *user) {
      auto *m = static_cast<Managed *>(user);
      if (m->deleter)
        m->deleter(m);
    };
    if (managed->dl_tensor.device.device_type == io::kDlpackCuda)
      return importFromCard(shared, managed->dl_tensor.device.device_id, release, managed, stream,
                            detail::toLoc(where));
    if (stream)
      throw InputError("a DLPack tensor is on the host, where no stream writes it");
    if (shared.dense)
      return detail::makeTensor(
          shared.type,
          runtime::Storage::adopt(const_cast<std::byte *>(shared.data), shared.type.bytes(), release, managed),
          detail::toLoc(where));
    Tensor copy = detail::gatherStrided(shared.data, shared.type, shared.strides, where);
    release(nullptr, managed);
    return copy;
  });
}

/// Makes work that enters the stream from now on wait for the tensor's elements. False where the driver cannot.
bool holdUntilThere(const Tensor &tensor, const std::shared_ptr<runtime::Machine> &machine, void *stream,
                    const std::source_location &where) {
  return atLine(where, "to_dlpack", [&] {
    const runtime::StorageRef &storage = tensor.impl()->storage;
    if (tensor.type().bytes() > 0 && !storage->data())
      return false; // its memory is not known yet
    std::shared_ptr<runtime::HeldStream> held = machine->at(detail::deviceOfHome(tensor.impl()->home)).hold(stream);
    if (!held)
      return false;
    // The task holds the event that the stream waits for. It is destroyed, which releases the stream, when the task has
    // run or was skipped because its input failed.
    runtime::Engine::global().submit(
        {.op = "to_dlpack", .where = detail::toLoc(where)}, {&storage, 1}, {},
        [machine, held = std::move(held)](const runtime::TaskView &) -> int32_t { return runtime::kKernelOk; });
    return true;
  });
}

/// An exported tensor, and what its struct points to.
template <typename Managed> struct Export {
  Managed managed{};
  Tensor tensor;
  std::array<int64_t, kMaxRank> shape{}, strides{};
};

template <typename Managed>
Managed *exportTensor(Tensor tensor, const DlpackOptions &options, const std::source_location &where) {
  const auto machine = detail::machineOf(*tensor.impl());
  const int ordinal = machine ? machine->at(detail::deviceOfHome(tensor.impl()->home)).caps().ordinal : -1;
  const bool isOnCard = ordinal >= 0;
  if (!isOnCard) // tensors on a device that DLPack does not know are copied to the host
    tensor = tensor.to(cpu(), where);
  if (options.stream && !isOnCard)
    throw InputError("the tensor is on the host, where no stream reads it");
  if (!isOnCard)
    tensor.data(where); // waits
  else if (!options.stream || options.copy || !holdUntilThere(tensor, machine, *options.stream, where))
    tensor.wait(where);
  if (options.copy && isOnCard) {
    const runtime::DeviceRef device = detail::deviceOfHome(tensor.impl()->home);
    const auto memory = runtime::DeviceMemory::of(machine);
    const runtime::StorageRef copy = memory->allocate(tensor.type().bytes(), device);
    if (tensor.type().bytes() > 0)
      memory->copy(copy->data(), device, tensor.impl()->storage->data(), device, tensor.type().bytes());
    tensor = detail::makeTensor(tensor.type(), copy, detail::toLoc(where));
  } else if (options.copy) {
    tensor = detail::fromBytes(tensor.data(where), tensor.type(), where);
  }
  auto e = std::make_unique<Export<Managed>>();
  const int rank = tensor.rank();
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    e->shape[static_cast<size_t>(i)] = tensor.type().shape.extent(i);
    e->strides[static_cast<size_t>(i)] = stride;
    stride *= tensor.type().shape.extent(i);
  }
  Managed &m = e->managed;
  m.dl_tensor = {.data = tensor.impl()->storage->data(),
                 .device = isOnCard ? DLDevice{io::kDlpackCuda, ordinal} : DLDevice{io::kDlpackCpu, 0},
                 .ndim = rank,
                 .dtype = dlpackType(tensor.dtype()),
                 .shape = e->shape.data(),
                 .strides = e->strides.data(),
                 .byte_offset = 0};
  m.manager_ctx = e.get();
  m.deleter = [](Managed *self) { delete static_cast<Export<Managed> *>(self->manager_ctx); };
  if constexpr (requires { m.version; }) {
    m.version = {io::kDlpackMajor, io::kDlpackMinor};
    m.flags = options.copy ? io::kDlpackIsCopied : io::kDlpackReadOnly;
  }
  e->tensor = std::move(tensor);
  return &e.release()->managed;
}

} // namespace

Tensor from_dlpack(DLManagedTensor *shared, std::source_location where) { return import(shared, {}, where); }
Tensor from_dlpack(DLManagedTensorVersioned *shared, std::source_location where) { return import(shared, {}, where); }
Tensor from_dlpack(DLManagedTensor *shared, void *stream, std::source_location where) {
  return import(shared, stream, where);
}
Tensor from_dlpack(DLManagedTensorVersioned *shared, void *stream, std::source_location where) {
  return import(shared, stream, where);
}

DLManagedTensorVersioned *to_dlpack(const Tensor &tensor, const DlpackOptions &options, std::source_location where) {
  return exportTensor<DLManagedTensorVersioned>(tensor, options, where);
}
DLManagedTensor *to_dlpack_unversioned(const Tensor &tensor, const DlpackOptions &options, std::source_location where) {
  return exportTensor<DLManagedTensor>(tensor, options, where);
}

namespace detail {

const void *elementsAs(const Tensor &tensor, DType dtype, const std::source_location &where) {
  if (tensor.dtype() != dtype)
    fail<ShapeError>("the elements are " + std::string(nameOf(tensor.dtype())) + " and are asked for as " +
                         std::string(nameOf(dtype)),
                     toLoc(where), "", "cast() the tensor first, or use to_vector(), which converts");
  return tensor.data(where);
}

void checkExtents(const Tensor &tensor, std::span<const int64_t> extents, const std::source_location &where) {
  if (extents.size() != static_cast<size_t>(tensor.rank()))
    fail<ShapeError>("a view of " + std::to_string(extents.size()) + " dimensions does not fit a tensor " +
                         tensor.type().str(),
                     toLoc(where));
  if (Shape(extents) != tensor.type().shape)
    fail<ShapeError>("a view " + Shape(extents).str() + " does not fit a tensor " + tensor.type().str(), toLoc(where));
}

/// Calls fn(offset of the row in memory with strides, offset of the row in dense memory) for each innermost row.
template <typename Fn> static void forEachRow(const Shape &shape, std::span<const int64_t> strides, Fn fn) {
  if (shape.numElements() == 0)
    return;
  std::array<int64_t, kMaxRank> index{};
  const int outer = std::max(shape.rank() - 1, 0);
  int64_t strided = 0;
  for (int64_t dense = 0, step = shape.rank() ? shape.back().number() : 1;; dense += step) {
    fn(strided, dense);
    int d = outer - 1;
    for (; d >= 0; --d) {
      const auto at = static_cast<size_t>(d);
      strided += strides[at];
      if (++index[at] < shape[d])
        break;
      strided -= strides[at] * shape.extent(d);
      index[at] = 0;
    }
    if (d < 0)
      return;
  }
}

/// Copies rows between memory with strides and dense memory.
template <typename Copy> static void copyRows(const TensorType &type, std::span<const int64_t> strides, Copy copy) {
  const int64_t width = sizeOf(type.dtype), length = type.rank() ? type.shape.back().number() : 1;
  const int64_t inner = type.rank() ? strides.back() : 1;
  forEachRow(type.shape, strides, [&](int64_t strided, int64_t dense) {
    if (inner == 1)
      return copy(strided * width, dense * width, length * width);
    for (int64_t i = 0; i < length; ++i)
      copy((strided + i * inner) * width, (dense + i) * width, width);
  });
}

Tensor gatherStrided(const void *from, const TensorType &type, std::span<const int64_t> strides,
                     const std::source_location &where) {
  Tensor t = allocateTensor(type, toLoc(where));
  auto *to = static_cast<std::byte *>(t.impl()->storage->data());
  copyRows(type, strides, [&](int64_t strided, int64_t dense, int64_t bytes) {
    std::memcpy(to + dense, static_cast<const std::byte *>(from) + strided, static_cast<size_t>(bytes));
  });
  return t;
}

void scatterStrided(const Tensor &tensor, void *to, std::span<const int64_t> strides) {
  const auto *from = static_cast<const std::byte *>(tensor.data());
  copyRows(tensor.type(), strides, [&](int64_t strided, int64_t dense, int64_t bytes) {
    std::memcpy(static_cast<std::byte *>(to) + strided, from + dense, static_cast<size_t>(bytes));
  });
}

} // namespace detail
} // namespace tressel
