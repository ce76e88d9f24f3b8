// Tensors from and to other libraries' memory: DLPack, spans, and multidimensional views.
//
//   Tensor x = from_dlpack(array.toDLPack());             // shares the memory
//   std::span<const float> elements = span_of<float>(x);  // looks at it
//   Tensor m = from_mdspan(std::mdspan(p, 3, 4));         // copies
//
// Tensors never change: code that shares memory with one must not write to it either.
#pragma once

#include <tressel/tensor.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

// The structs of DLPack, from dlpack.h or a copy of it.
extern "C" {
struct DLManagedTensor;
struct DLManagedTensorVersioned;
}

namespace tressel {

/// Shares the memory of another library's tensor on the host or on an NVIDIA card of the current machine, and calls its
/// deleter when no tensor uses it any more. A tensor that is not row-major and dense, or not aligned to its elements,
/// is copied instead, and the deleter called at once. It may be marked read-only. On a card the elements must be ready:
/// wait for the stream that writes them first. There a tensor that is not aligned to 64 bytes is copied, and one that
/// is not row-major and dense is an InputError. Throws InputError for element types that Tressel has not, vectors of
/// lanes, other devices, more than kMaxRank dimensions, versions other than 1, and null; then the tensor still belongs
/// to the caller. Throws TraceError in a trace.
Tensor from_dlpack(DLManagedTensor *shared, std::source_location where = std::source_location::current());
Tensor from_dlpack(DLManagedTensorVersioned *shared, std::source_location where = std::source_location::current());
/// The same for a tensor on a card that a stream of the caller's writes: a CUstream (a cudaStream_t is one) of that
/// card, null for its default stream. Returns at once; ops that read the tensor wait for the work that is in the stream
/// now. Throws InputError when the tensor is on the host, or the driver rejects the stream.
Tensor from_dlpack(DLManagedTensor *shared, void *stream, std::source_location where = std::source_location::current());
Tensor from_dlpack(DLManagedTensorVersioned *shared, void *stream,
                   std::source_location where = std::source_location::current());

struct DlpackOptions {
  bool copy = false; ///< a copy of its own, which may be written
  /// The caller's stream that will read a tensor on a card, as for from_dlpack. to_dlpack then does not wait: work that
  /// enters the stream afterwards waits until the elements are ready, or have failed, which `Tensor::wait` tells. Has
  /// no effect on a copy.
  std::optional<void *> stream = {};
};
/// The tensor for another library, row-major. That library calls the deleter when it is done (on a card: after the
/// stream that reads the tensor); the elements live until then. Marked read-only unless it is a copy. Waits for the
/// elements, unless a stream is given. A tensor on an NVIDIA card is shared there; one on a simulated accelerator is
/// copied to the host.
DLManagedTensorVersioned *to_dlpack(const Tensor &tensor, const DlpackOptions &options = {},
                                    std::source_location where = std::source_location::current());
/// The same in the form before 1.0, for libraries that know no other. It has no mark for read-only.
DLManagedTensor *to_dlpack_unversioned(const Tensor &tensor, const DlpackOptions &options = {},
                                       std::source_location where = std::source_location::current());

namespace detail {
/// Waits; throws ShapeError when the tensor is of another element type.
const void *elementsAs(const Tensor &tensor, DType dtype, const std::source_location &where);
void checkExtents(const Tensor &tensor, std::span<const int64_t> extents, const std::source_location &where);
/// One tensor's elements, row-major, from or to memory with strides in elements.
Tensor gatherStrided(const void *from, const TensorType &type, std::span<const int64_t> strides,
                     const std::source_location &where);
void scatterStrided(const Tensor &tensor, void *to, std::span<const int64_t> strides);
} // namespace detail

/// The elements in row-major order, where they lie. Valid as long as a tensor shares them. Waits; throws ShapeError
/// when T is not the element type.
template <typename T>
std::span<const T> span_of(const Tensor &tensor, std::source_location where = std::source_location::current()) {
  const void *data = detail::elementsAs(tensor, detail::dtypeFor<T>(), where);
  return {static_cast<const T *>(data), static_cast<size_t>(tensor.size())};
}

/// A view of several dimensions: std::mdspan, or a class of the same form. Its accessor is plain: element (i, j, ...)
/// is at data_handle()[i * stride(0) + j * stride(1) + ...].
template <typename V>
concept MdspanLike = requires(const V &view, size_t i) {
  typename V::element_type;
  { V::rank() } -> std::convertible_to<size_t>;
  { view.data_handle() } -> std::convertible_to<const typename V::element_type *>;
  { view.extent(i) } -> std::convertible_to<int64_t>;
  { view.stride(i) } -> std::convertible_to<int64_t>;
};

namespace detail {
template <MdspanLike V> std::array<int64_t, V::rank()> extentsOf(const V &view) {
  std::array<int64_t, V::rank()> extents{};
  for (size_t i = 0; i < V::rank(); ++i)
    extents[i] = static_cast<int64_t>(view.extent(i));
  return extents;
}
template <MdspanLike V> std::array<int64_t, V::rank()> stridesOf(const V &view) {
  std::array<int64_t, V::rank()> strides{};
  for (size_t i = 0; i < V::rank(); ++i)
    strides[i] = static_cast<int64_t>(view.stride(i));
  return strides;
}
template <typename V, size_t... I>
V makeView(typename V::element_type *data, const Shape &shape, std::index_sequence<I...>) {
  return V(data, shape.extent(static_cast<int>(I))...);
}
} // namespace detail

/// Copies a view's elements, whatever its strides.
template <MdspanLike V>
Tensor from_mdspan(const V &view, std::source_location where = std::source_location::current()) {
  static_assert(V::rank() <= static_cast<size_t>(kMaxRank), "tensors have at most 8 dimensions");
  using T = std::remove_cv_t<typename V::element_type>;
  const auto extents = detail::extentsOf(view);
  return detail::gatherStrided(view.data_handle(), {detail::dtypeFor<T>(), Shape(std::span<const int64_t>(extents))},
                               detail::stridesOf(view), where);
}
/// A row-major view V of the elements where they lie, made by V(pointer, sizes...): V's elements are const. Valid as
/// long as a tensor shares them. Waits; throws ShapeError when rank or element type are others.
template <MdspanLike V>
requires std::is_const_v<typename V::element_type>
    V mdspan_of(const Tensor &tensor, std::source_location where = std::source_location::current()) {
  const void *data = detail::elementsAs(tensor, detail::dtypeFor<std::remove_cv_t<typename V::element_type>>(), where);
  if (tensor.rank() != static_cast<int>(V::rank()))
    detail::checkExtents(tensor, std::array<int64_t, V::rank()>{}, where);
  return detail::makeView<V>(static_cast<typename V::element_type *>(data), tensor.shape(),
                             std::make_index_sequence<V::rank()>());
}
/// Copies the elements to a view of the same sizes and element type. Waits; throws ShapeError when they differ.
template <MdspanLike V>
requires(!std::is_const_v<typename V::element_type>) void copy_to(
    const Tensor &tensor, const V &view, std::source_location where = std::source_location::current()) {
  detail::elementsAs(tensor, detail::dtypeFor<typename V::element_type>(), where);
  detail::checkExtents(tensor, detail::extentsOf(view), where);
  detail::scatterStrided(tensor, view.data_handle(), detail::stridesOf(view));
}

} // namespace tressel
