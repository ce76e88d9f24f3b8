// Matrix products, convolutions and pooling. Floats accumulate in double, integers in i64, whose low bits equal those
// of any narrower type.
#include "ir/interpreter/Evaluate.h"

#include <algorithm>

namespace tressel::op::interp {
namespace {

struct Dot {
  bool isFloat;
  double f = 0;
  int64_t i = 0;
  void add(Element a, Element b) {
    if (isFloat)
      f += a.as<double>() * b.as<double>();
    else
      i = num::add(i, num::mul(a.as<int64_t>(), b.as<int64_t>()));
  }
  Element value() const { return isFloat ? Element(f) : Element(i); }
};

/// The windows of a convolution or pooling over the spatial dimensions, which are between batch and channels, or after
/// both.
struct Windows {
  int spatial;
  bool channelsLast;
  Ints size, strides, low, dilations;
  Shape window;

  /// The index in x that tap `tap` reads for the result's element `at`, in spatial dimension d; it may be outside.
  int64_t source(const Index &at, const Index &tap, int d) const {
    const auto s = static_cast<size_t>(d);
    return at[d + (channelsLast ? 1 : 2)] * strides[s] - low[s] + tap[d] * dilations[s];
  }
  int64_t channelOf(const Index &at) const { return channelsLast ? at.back() : at[1]; }
  /// The position in x, or false if it is in the padding.
  bool read(const Shape &x, const Index &at, const Index &tap, int64_t channel, int64_t &position) const {
    Index index;
    index.push_back(at[0]);
    if (!channelsLast)
      index.push_back(channel);
    for (int d = 0; d < spatial; ++d) {
      const int64_t p = source(at, tap, d);
      if (p < 0 || p >= x[d + (channelsLast ? 1 : 2)].number())
        return false;
      index.push_back(p);
    }
    if (channelsLast)
      index.push_back(channel);
    position = positionOf(x, index);
    return true;
  }
};

Windows windowsOf(const OpInfo &op, const Attrs &attrs, const Ints &sizes, bool stridesDefaultToSize) {
  Windows w;
  w.spatial = static_cast<int>(sizes.size());
  w.channelsLast = std::get<bool>(attrNamed(op, attrs, "channels_last"));
  w.size = sizes;
  w.strides = intsAttr(op, attrs, "strides", sizes.size(), 0);
  if (std::ranges::all_of(w.strides, [](int64_t s) { return s == 0; }))
    w.strides = stridesDefaultToSize ? sizes : Ints(sizes.size(), 1);
  w.low = intsAttr(op, attrs, "pad_low", sizes.size(), 0);
  w.dilations = intsAttr(op, attrs, "dilations", sizes.size(), 1);
  w.window = Shape(std::span<const int64_t>(sizes));
  return w;
}

} // namespace

void matmul(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &a = in[0], &b = in[1];
  const bool aIsRow = a.type.rank() == 1, bIsColumn = b.type.rank() == 1;
  // Adds the dimensions that a vector lacks: a [..., m, k], b [..., k, n].
  Shape as = a.type.shape, bs = b.type.shape;
  if (aIsRow)
    as = Shape{1, as[0]};
  if (bIsColumn)
    bs = Shape{bs[0], 1};
  const int64_t depth = as.back().number();
  auto batchOf = [](Shape s) {
    s.pop_back();
    s.pop_back();
    return s;
  };
  const Shape aBatch = batchOf(as), bBatch = batchOf(bs);
  const int64_t m = as[as.rank() - 2].number(), n = bs.back().number();
  for (Walk at(out[0].type.shape); at; ++at) {
    Index batch = at.index();
    int64_t row = 0, column = 0;
    if (!bIsColumn) {
      column = batch.back();
      batch.pop_back();
    }
    if (!aIsRow) {
      row = batch.back();
      batch.pop_back();
    }
    const int64_t aStart = broadcastPosition(aBatch, batch) * m * depth + row * depth;
    const int64_t bStart = broadcastPosition(bBatch, batch) * depth * n + column;
    Dot dot{isFloat(out[0].type.dtype)};
    for (int64_t k = 0; k < depth; ++k)
      dot.add(loadFlushed(a, aStart + k), loadFlushed(b, bStart + k * n));
    storeFlushed(out[0], at.position(), dot.value());
  }
}

void conv(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &w = in[1];
  const Shape &ws = w.type.shape;
  const Windows windows = windowsOf(op, attrs, Ints(ws.begin() + 2, ws.end()), false);
  const int64_t groups = intAttr(op, attrs, "groups");
  const int64_t features = ws[0].number(), channels = ws[1].number(); // per group
  for (Walk at(out[0].type.shape); at; ++at) {
    const int64_t feature = windows.channelOf(at.index()), group = feature / (features / groups);
    Dot dot{true};
    for (int64_t c = 0; c < channels; ++c)
      for (Walk tap(windows.window); tap; ++tap) {
        int64_t position;
        if (!windows.read(x.type.shape, at.index(), tap.index(), group * channels + c, position))
          continue;
        const int64_t weight = (feature * channels + c) * windows.window.numElements() + tap.position();
        dot.add(loadFlushed(x, position), loadFlushed(w, weight));
      }
    storeFlushed(out[0], at.position(), dot.value());
  }
}

void convByWeights(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0], &dy = in[1];
  const auto list = [&](const char *name, int64_t otherwise) {
    const Ints given = std::get<Ints>(attrNamed(op, attrs, name));
    return given.empty() ? Ints(static_cast<size_t>(x.type.rank() - 2), otherwise) : given;
  };
  const Ints strides = list("strides", 1), low = list("pad_low", 0), dilations = list("dilations", 1);
  const int64_t features = out[0].type.shape[0].number() / intAttr(op, attrs, "groups"),
                channels = out[0].type.shape[1].number(); // per group
  for (Walk at(out[0].type.shape); at; ++at) {
    const int64_t feature = at.index()[0], channel = feature / features * channels + at.index()[1];
    Dot dot{true};
    for (Walk place(dy.type.shape); place; ++place) {
      if (place.index()[1] != feature)
        continue;
      Index source;
      source.push_back(place.index()[0]);
      source.push_back(channel);
      bool isInside = true;
      for (int d = 2; d < x.type.rank(); ++d) {
        const auto s = static_cast<size_t>(d - 2);
        const int64_t p = place.index()[d] * strides[s] + at.index()[d] * dilations[s] - low[s];
        isInside &= p >= 0 && p < x.type.shape[d].number();
        source.push_back(p);
      }
      if (isInside)
        dot.add(loadFlushed(x, positionOf(x.type.shape, source)), loadFlushed(dy, place.position()));
    }
    storeFlushed(out[0], at.position(), dot.value());
  }
}

void maxPool(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0];
  const Windows windows = windowsOf(op, attrs, std::get<Ints>(attrNamed(op, attrs, "window")), true);
  dispatch(x.type.dtype, [&]<class T>(std::type_identity<T>) {
    using Limits = std::numeric_limits<T>;
    for (Walk at(out[0].type.shape); at; ++at) {
      T best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest(); // for a window that only covers padding
      for (Walk tap(windows.window); tap; ++tap)
        if (int64_t position; windows.read(x.type.shape, at.index(), tap.index(), windows.channelOf(at.index()), position))
          best = num::max(best, loadFlushed(x, position).as<T>());
      storeFlushed(out[0], at.position(), best);
    }
  });
}

void sumPool(const OpInfo &op, Inputs in, const Attrs &attrs, Outputs out) {
  const HostTensor &x = in[0];
  const Windows windows = windowsOf(op, attrs, std::get<Ints>(attrNamed(op, attrs, "window")), true);
  for (Walk at(out[0].type.shape); at; ++at) {
    double sum = 0;
    for (Walk tap(windows.window); tap; ++tap)
      if (int64_t position; windows.read(x.type.shape, at.index(), tap.index(), windows.channelOf(at.index()), position))
        sum += loadFlushed(x, position).as<double>();
    storeFlushed(out[0], at.position(), sum);
  }
}

} // namespace tressel::op::interp
