// tressel/interchange.h: DLPack, spans, multidimensional views.
#include "frontend/io/DlpackAbi.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

using namespace tressel;

namespace {

/// What std::mdspan offers, as far as it is asked for.
template <typename T, size_t Rank> class View {
public:
  using element_type = T;
  static constexpr size_t rank() { return Rank; }
  template <std::integral... I> View(T *data, I... sizes) : data_(data), sizes_{static_cast<int64_t>(sizes)...} {
    int64_t stride = 1;
    for (size_t i = Rank; i-- > 0; stride *= sizes_[i])
      strides_[i] = stride;
  }
  View(T *data, std::array<int64_t, Rank> sizes, std::array<int64_t, Rank> strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  T *data_handle() const { return data_; }
  int64_t extent(size_t i) const { return sizes_[i]; }
  int64_t stride(size_t i) const { return strides_[i]; }

private:
  T *data_;
  std::array<int64_t, Rank> sizes_{}, strides_{};
};

/// A tensor of somebody else's, who sees when it is given back.
template <typename Managed> struct Foreign {
  std::vector<float> elements{0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape{2, 3}, strides{3, 1};
  Managed managed{};
  int returned = 0;
  Foreign() {
    managed.dl_tensor = {elements.data(), {io::kDlpackCpu, 0}, 2, {io::kDlpackFloat, 32, 1},
                         shape.data(),    strides.data(),      0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed *m) { ++static_cast<Foreign *>(m->manager_ctx)->returned; };
    if constexpr (requires { managed.version; })
      managed.version = {1, 3};
  }
};
using Old = Foreign<DLManagedTensor>;
using New = Foreign<DLManagedTensorVersioned>;

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }
template <typename Managed> std::string refused(Foreign<Managed> &foreign) {
  try {
    from_dlpack(&foreign.managed);
  } catch (const InputError &e) {
    EXPECT_EQ(foreign.returned, 0) << "it still belongs to the caller";
    EXPECT_NE(std::string(e.where().file).find("InterchangeTest"), std::string::npos);
    return e.what();
  }
  return "nothing was thrown";
}

} // namespace

TEST(Dlpack, SharesUntilTheLastTensorGoes) {
  New foreign;
  foreign.managed.flags = io::kDlpackReadOnly;
  {
    Tensor x = from_dlpack(&foreign.managed), y = x + 1;
    EXPECT_EQ(x.data(), foreign.elements.data());
    EXPECT_EQ(x.type(), (TensorType{f32, {2, 3}}));
    EXPECT_EQ(floats(y), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    Tensor copy = x;
    x = Tensor();
    EXPECT_EQ(foreign.returned, 0);
    wait_all();
  }
  wait_all();
  EXPECT_EQ(foreign.returned, 1);
  Old old;
  { EXPECT_EQ(from_dlpack(&old.managed).data(), old.elements.data()); }
  EXPECT_EQ(old.returned, 1);
  old.managed.deleter = nullptr;
  EXPECT_EQ(floats(from_dlpack(&old.managed)).back(), 5);
}

TEST(Dlpack, CopiesWhatIsNotRowMajor) {
  New foreign; // seen transposed
  foreign.shape = {3, 2};
  foreign.strides = {1, 3};
  Tensor x = from_dlpack(&foreign.managed);
  EXPECT_EQ(foreign.returned, 1) << "given back at once";
  EXPECT_EQ(floats(x), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  New backwards; // negative steps from the end
  backwards.managed.dl_tensor.byte_offset = 5 * sizeof(float);
  backwards.strides = {-3, -1};
  EXPECT_EQ(floats(from_dlpack(&backwards.managed)), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  New repeated; // one row, three times
  repeated.shape = {3, 3};
  repeated.strides = {0, 1};
  EXPECT_EQ(floats(from_dlpack(&repeated.managed)), (std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
  New unaligned;
  alignas(8) char bytes[5] = {};
  const float one = 1;
  std::memcpy(bytes + 1, &one, 4);
  unaligned.managed.dl_tensor.data = bytes + 1;
  unaligned.managed.dl_tensor.ndim = 0;
  EXPECT_EQ(from_dlpack(&unaligned.managed).item<float>(), 1);
  EXPECT_EQ(unaligned.returned, 1);
}

TEST(Dlpack, OddShapes) {
  New foreign;
  foreign.managed.dl_tensor.strides = nullptr; // row-major
  foreign.shape = {6, 1};
  EXPECT_EQ(from_dlpack(&foreign.managed).data(), foreign.elements.data());
  New single; // strides of dimensions of size 1 mean nothing
  single.shape = {1, 6};
  single.strides = {77, 1};
  EXPECT_EQ(from_dlpack(&single.managed).data(), single.elements.data());
  New empty;
  empty.shape = {0, 3};
  empty.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&empty.managed).size(), 0);
  New scalar;
  scalar.managed.dl_tensor.ndim = 0;
  scalar.managed.dl_tensor.shape = scalar.managed.dl_tensor.strides = nullptr;
  scalar.managed.dl_tensor.byte_offset = 8;
  EXPECT_EQ(from_dlpack(&scalar.managed).item<float>(), 2);
}

TEST(Dlpack, RefusesWhatItCannotHold) {
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor *>(nullptr)), InputError);
  New future;
  future.managed.version.major = 2;
  EXPECT_NE(refused(future).find("version 2.3"), std::string::npos);
  New gpu;
  gpu.managed.dl_tensor.device.device_type = 2;
  EXPECT_NE(refused(gpu).find("lies on card 0, which machine 'cpu' has not"), std::string::npos) << refused(gpu);
  gpu.managed.dl_tensor.device.device_type = 7; // Vulkan's
  EXPECT_NE(refused(gpu).find("device of kind 7"), std::string::npos);
  New lanes;
  lanes.managed.dl_tensor.dtype.lanes = 4;
  EXPECT_NE(refused(lanes).find("4 lanes"), std::string::npos);
  Old complex;
  complex.managed.dl_tensor.dtype = {5, 64, 1};
  EXPECT_NE(refused(complex).find("code 5, 64 bits"), std::string::npos);
  Old wide;
  wide.managed.dl_tensor.dtype = {io::kDlpackUInt, 32, 1};
  refused(wide);
  Old deep;
  deep.managed.dl_tensor.ndim = 9;
  EXPECT_NE(refused(deep).find("9 dimensions"), std::string::npos);
  Old negative;
  negative.shape = {2, -3};
  EXPECT_NE(refused(negative).find("-3"), std::string::npos);
  Old huge;
  huge.shape = {int64_t(1) << 40, int64_t(1) << 40};
  EXPECT_NE(refused(huge).find("addressed"), std::string::npos);
  Old nothing;
  nothing.managed.dl_tensor.data = nullptr;
  EXPECT_NE(refused(nothing).find("no memory"), std::string::npos);
  Old traced;
  EXPECT_THROW(jit([&](Tensor x) { return x + from_dlpack(&traced.managed); })(ones({2, 3})), TraceError);
}

TEST(Dlpack, EveryTypeGoesOutAndIn) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    Tensor x = cast(tensor({{0.0, 1, 2}, {3, 4, 5}}), dtype);
    DLManagedTensorVersioned *out = to_dlpack(x);
    EXPECT_EQ(out->dl_tensor.data, x.data());
    EXPECT_EQ(out->flags, io::kDlpackReadOnly);
    EXPECT_EQ(out->version.major, 1u);
    EXPECT_EQ(out->dl_tensor.strides[0], 3);
    EXPECT_EQ(out->dl_tensor.dtype.bits, 8 * sizeOf(dtype));
    x = Tensor();
    Tensor y = from_dlpack(out); // the elements live on
    EXPECT_EQ(y.type(), (TensorType{dtype, {2, 3}})) << nameOf(dtype);
    EXPECT_EQ(y.to_vector<float>().back(), dtype == bool_ ? 1 : 5);
    DLManagedTensor *old = to_dlpack_unversioned(y);
    EXPECT_EQ(old->dl_tensor.data, y.data());
    old->deleter(old);
  }
  Tensor x = ones({2});
  DLManagedTensorVersioned *copy = to_dlpack(x, {.copy = true});
  EXPECT_EQ(copy->flags, io::kDlpackIsCopied);
  static_cast<float *>(copy->dl_tensor.data)[0] = 7;
  EXPECT_EQ(floats(x), (std::vector<float>{1, 1}));
  copy->deleter(copy);
}

TEST(Spans, LookAtTheElements) {
  Tensor x = tensor({{1.0, 2}, {3, 4}});
  std::span<const float> elements = span_of<float>(x);
  EXPECT_EQ(elements.data(), x.data());
  EXPECT_EQ(elements.size(), 4u);
  EXPECT_EQ(elements[3], 4);
  EXPECT_EQ(span_of<bool>(x > 2)[3], true);
  EXPECT_THROW(span_of<int64_t>(x), ShapeError);
  std::vector<Half> halves{Half(1.5), Half(-2)};
  Tensor h = from_span(halves, {2});
  EXPECT_EQ(h.dtype(), f16);
  EXPECT_EQ(span_of<Half>(h)[1], -2.0f);
  EXPECT_EQ(x.to_vector<BFloat16>()[3], 4.0f);
}

TEST(Views, FromAnyStrides) {
  std::vector<double> p(24);
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = static_cast<double>(i);
  Tensor x = from_mdspan(View<double, 3>(p.data(), 2, 3, 4));
  EXPECT_EQ(x.type(), (TensorType{f64, {2, 3, 4}}));
  EXPECT_EQ(x.to_vector<double>(), p);
  Tensor columns = from_mdspan(View<const double, 2>(p.data(), {4, 3}, {1, 4})); // column-major
  EXPECT_EQ(columns.to_vector<double>(), (std::vector<double>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(from_mdspan(View<double, 2>(p.data(), 0, 5)).size(), 0);
}

TEST(Views, OfTensorsAndBack) {
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, i32);
  auto view = mdspan_of<View<const int32_t, 2>>(x);
  EXPECT_EQ(view.data_handle(), x.data());
  EXPECT_EQ(view.extent(1), 3);
  EXPECT_EQ(view.data_handle()[view.stride(0)], 4);
  EXPECT_THROW((mdspan_of<View<const int32_t, 3>>(x)), ShapeError);
  EXPECT_THROW((mdspan_of<View<const float, 2>>(x)), ShapeError);
  std::vector<int32_t> columns(8, -1);
  copy_to(x, View<int32_t, 2>(columns.data(), {2, 3}, {1, 3})); // with a gap after each column
  EXPECT_EQ(columns, (std::vector<int32_t>{1, 4, -1, 2, 5, -1, 3, 6}));
  EXPECT_THROW(copy_to(x, View<int32_t, 2>(columns.data(), 3, 2)), ShapeError);
}
