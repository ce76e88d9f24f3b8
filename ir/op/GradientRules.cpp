// Reverse rules that are longer than a few lines.
#include "ir/op/Exprs.h"
#include "ir/op/Gradient.h"
#include "ir/op/Infer.h"

#include <numeric>

namespace tressel::op::expr {

Expr unslice(const Expr &x, const Sizes &sizes, const Sizes &starts, const Ints &strides) {
  Expr result = x;
  Sizes low = starts, high(low.size());
  for (size_t i = 0; i < low.size(); ++i) {
    const int d = static_cast<int>(i);
    const Size n = x.size(d);
    const Size behind = sizes[i] - starts[i] - (n - 1) * strides[i] - 1;
    if (strides[i] > 1 && (dim::bounds(starts[i]).lo < 0 || dim::bounds(behind).lo < 0)) {
      // With symbolic sizes there may be no elements; each is padded into place.
      Sizes whole = result.sizes(), along(whole.size(), 1);
      along[i] = n;
      const Expr places = reshape(iota({n}, 0, DType::i64) * strides[i] + Expr::number(starts[i]), along);
      whole[i] = sizes[i];
      result = put_along_axis(zeros({result.dtype(), Shape(std::span<const Size>(whole))}),
                              broadcast_to(places, result.sizes()), result, d, "add");
      low[i] = 0;
      continue;
    }
    if (strides[i] > 1) { // interleave elements with zeros
      Sizes split = result.sizes(), before(split.size() + 1, 0), after = before, joined = split;
      split.insert(split.begin() + static_cast<ptrdiff_t>(i) + 1, 1);
      after[i + 1] = strides[i] - 1;
      joined[i] *= strides[i];
      result = reshape(pad(reshape(result, split), before, after), joined);
      Sizes from(joined.size(), 0), to = joined; // no zeros after the last one
      to[i] = (n - 1) * strides[i] + 1;
      result = slice(result, from, to);
    }
    const Size room = sizes[i] - result.size(static_cast<int>(i));
    if (dim::bounds(room - low[i]).lo < 0) // a size may be 0, and a slice that begins behind it is empty
      low[i] = dim::min(low[i], room);
    high[i] = room - low[i];
  }
  return pad(result, low, high);
}

Expr broadcastIndices(const Expr &indices, const Expr &x, int64_t axis) {
  Sizes shape = x.sizes();
  const int d = *normalizeAxis(axis, x.rank());
  shape[static_cast<size_t>(d)] = indices.size(d);
  return broadcast_to(cast(indices, DType::i64), shape);
}

Expr sliceGradient(const Expr &dy, const Expr &x, const Sizes &starts, const Ints &strides) {
  Sizes from(starts.size());
  Ints by(starts.size(), 1), turned;
  for (size_t i = 0; i < from.size(); ++i) {
    const int d = static_cast<int>(i);
    const Size n = dy.size(d), size = x.size(d);
    if (n == 0)
      return zeros({dy.dtype(), x.type().shape});
    from[i] = starts[i].numberOr(0) < 0 ? dim::max(starts[i] + size, strides.empty() || strides[i] > 0 ? Size(0) : Size(-1)) : starts[i];
    if (!strides.empty())
      by[i] = strides[i];
    if (by[i] < 0) { // count from the other end
      from[i] = dim::min(from[i], size - 1) + (n - 1) * by[i];
      by[i] = -by[i];
      turned.push_back(d);
    }
    if (n == size)
      from[i] = 0;
  }
  return unslice(turned.empty() ? dy : flip(dy, turned), x.sizes(), from, by);
}

/// Moves dimension `from` to `to`.
static Expr moved(const Expr &x, int64_t from, int64_t to) { return moveaxis(x, {from}, {to}); }

/// The cotangent of a convolution's data: each element of the result passes its share back to the elements that it
/// read.
static Expr convByData(const Expr &dy, const Expr &w, const TensorType &x, const Ints &strides, const Ints &padLow,
                       const Ints &padHigh, const Ints &dilations, int64_t groups) {
  auto entry = [](const Ints &list, size_t i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; };
  Ints beyond, low(static_cast<size_t>(x.rank() - 2)), high = low;
  Sizes none(static_cast<size_t>(x.rank()), 0), after = none, begin = none, end = none;
  bool isPadded = false, isCut = false;
  for (int i = 0; i < x.rank() - 2; ++i) {
    const auto at = static_cast<size_t>(i), d = at + 2;
    low[at] = entry(padLow, at, 0), high[at] = entry(padHigh, at, 0);
    if (dim::bounds(dy.size(i + 2)).lo < 1)
      throw NoGradient("a convolution with " + dim::str(dy.size(i + 2)) + " places along a dimension, which may be 0,",
                       "give the dimension a lower bound: DimSpec(\"height\", 8, 512)");
    const Size size = x.shape[i + 2], reached = (dy.size(i + 2) - 1) * entry(strides, at, 1) +
                                                (w.size(i + 2) - 1) * entry(dilations, at, 1) + 1 - low[at] - high[at];
    const Size rest = size - reached; // elements that no window reads, or only windows that reach into the padding
    beyond.push_back(rest.numberOr(0));
    if (!rest.isNumber()) { // pad what windows read with zeros, then slice to the size of x
      high[at] = 0;
      after[d] = size, isPadded = isCut = true;
    }
    // conv_transpose has no empty results, so the padding is cut off afterwards
    if (dim::bounds(reached + beyond[at]).lo < 1) {
      begin[d] = low[at];
      low[at] = high[at] = 0, isCut = true;
    }
    end[d] = begin[d] + size;
  }
  Expr result = conv_transpose(dy, w, strides, low, high, beyond, dilations, groups);
  if (isPadded)
    result = pad(result, none, after);
  end[0] = result.size(0), end[1] = result.size(1);
  return isCut ? slice(result, begin, end) : result;
}

Cotangents batchNormGradient(const Expr &dy, const Expr &dMean, const Expr &dVariance, const Expr &x, const Expr &scale,
                             double epsilon) {
  Ints axes{0};
  Sizes perChannel(static_cast<size_t>(x.rank()) - 1, 1);
  perChannel[0] = -1;
  for (int d = 2; d < x.rank(); ++d)
    axes.push_back(d);
  auto toChannels = [&](const Expr &e) { return reshape(wide(e), perChannel); };
  // Recomputed as the op computes them.
  const Expr v = wide(x);
  const auto [m, variance] = moments(v, axes, true);
  const Expr centered = v - m, perDeviation = rsqrt(variance + epsilon), count = countAlong(x, &axes);
  std::vector<Expr> all(3);
  auto add = [&](const Expr &term) { all[0] = all[0] ? all[0] + term : term; };
  if (dy) {
    const Expr g = wide(dy), normalized = centered * perDeviation;
    const Expr sumOf = sum(g, axes, true), sumOfScaled = sum(g * normalized, axes, true);
    add(toChannels(scale) * perDeviation * (g - sumOf / count - normalized * (sumOfScaled / count)));
    all[1] = reshape(sumOfScaled, {-1});
    all[2] = reshape(sumOf, {-1});
  }
  if (dMean)
    add(broadcast_to(toChannels(dMean) / count, x.sizes()));
  if (dVariance)
    add(centered * (toChannels(dVariance) * 2 / count));
  return all;
}

Cotangents convGradient(const Expr &dy, const Expr &x, const Expr &w, const Ints &strides, const Ints &padLow,
                        const Ints &padHigh, const Ints &dilations, int64_t groups, bool channelsLast) {
  if (channelsLast) {
    const Cotangents first = convGradient(moved(dy, -1, 1), moved(x, -1, 1), w, strides, padLow, padHigh, dilations, groups, false);
    return {moved(first.values[0], 1, -1), first.values[1]};
  }
  const Ints window = numbersOf({w.type().shape.begin() + 2, w.type().shape.end()});
  return {convByData(dy, w, x.type(), strides, padLow, padHigh, dilations, groups),
          conv_by_weights(x, dy, window, strides, padLow, padHigh, dilations, groups)};
}

Cotangents convByWeightsGradient(const Expr &d, const Expr &x, const Expr &dy, const Ints &, const Ints &strides,
                                 const Ints &padLow, const Ints &padHigh, const Ints &dilations, int64_t groups) {
  return {convByData(dy, d, x.type(), strides, padLow, padHigh, dilations, groups),
          conv(x, d, strides, padLow, padHigh, dilations, groups)};
}

/// Gradient of pooling whose windows do not overlap: each element is in at most one of them.
static Expr tiledPoolGradient(const Expr &dy, const Expr &x, const Expr &y, const Ints &window, int space) {
  Sizes covered = x.sizes(), split, one, start(covered.size(), 0), rest = start;
  Ints inside;
  for (int d = 0; d < x.rank(); ++d) {
    const int i = d - space;
    split.push_back(dy.size(d)), one.push_back(dy.size(d));
    if (i < 0 || i >= static_cast<int>(window.size()))
      continue;
    const int64_t size = window[static_cast<size_t>(i)];
    covered[static_cast<size_t>(d)] = dy.size(d) * size;
    rest[static_cast<size_t>(d)] = x.size(d) - dy.size(d) * size;
    inside.push_back(static_cast<int64_t>(split.size()));
    split.push_back(size), one.push_back(1);
  }
  Expr spread = reshape(dy, one);
  if (y) {
    const Expr isIt = cast(equal(reshape(slice(x, start, covered), split), reshape(y, one)), dy.dtype());
    spread = isIt * (spread / sum(isIt, inside, true)); // equal elements of a window share the cotangent
  } else {
    spread = broadcast_to(spread, split);
  }
  return pad(reshape(spread, covered), start, rest);
}

/// How many elements to add to `have` to get at least `need`, as an expression for which bounds of symbols prove that
/// it is enough.
static Size lacking(Size have, Size need) {
  const Size least = dim::max(0, need - have);
  return dim::bounds(have + least - need).lo >= 0 ? least : dim::max(0, need);
}

Expr poolGradient(const Expr &dy, const Expr &x, const Expr &y, const Ints &window, const Ints &strides, const Ints &padLow,
                  const Ints &dilations, bool channelsLast) {
  const int spatial = x.rank() - 2, space = channelsLast ? 1 : 2;
  auto filled = [&](const Ints &list, int64_t value) { return list.empty() ? Ints(static_cast<size_t>(spatial), value) : list; };
  const Ints stride = strides.empty() ? window : strides, low = filled(padLow, 0), dilation = filled(dilations, 1);
  bool isTiled = stride == window && low == Ints(low.size(), 0) && dilation == Ints(dilation.size(), 1) &&
                 x.rank() + spatial <= kMaxRank;
  for (int i = 0; i < spatial; ++i) // no window reaches beyond x
    isTiled &= dim::bounds(x.size(i + space) - dy.size(i + space) * window[static_cast<size_t>(i)]).lo >= 0;
  if (isTiled)
    return tiledPoolGradient(dy, x, y, window, space);
  // x padded so that every window fits, and its size in whole steps of the windows.
  Sizes before(x.type().shape.size(), 0), after = before, sizes = x.sizes(), steps = sizes, none = before;
  Ints by(sizes.size(), 1), first(sizes.size(), 0);
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i), d = at + static_cast<size_t>(space);
    const Size covered = (dy.size(i + space) - 1) * stride[at] + (window[at] - 1) * dilation[at] + 1;
    by[d] = stride[at];
    first[d] = -low[at];
    steps[d] = dim::ceilDiv(sizes[d], stride[at]);
    before[d] = low[at];
    after[d] = lacking(low[at] + sizes[d], covered);
  }
  std::vector<Sizes> places{Sizes(sizes.size(), 0)}; // position of each element of the first window
  for (int i = 0; i < spatial; ++i) {
    std::vector<Sizes> more;
    for (const Sizes &place : places)
      for (int64_t k = 0; k < window[static_cast<size_t>(i)]; ++k) {
        more.push_back(place);
        more.back()[static_cast<size_t>(i + space)] = k * dilation[static_cast<size_t>(i)];
      }
    places = std::move(more);
  }
  Expr padded = y ? pad(x, before, after, -std::numeric_limits<double>::infinity()) : Expr(), share = dy;
  auto isEqual = [&](const Expr &a, const Expr &b) { return cast(equal(a, b), dy.dtype()); };
  if (y) { // equal elements of a window share the cotangent
    Expr count;
    for (const Sizes &place : places) {
      Sizes limits = place;
      for (size_t i = 0; i < limits.size(); ++i)
        limits[i] = place[i] + (dy.size(static_cast<int>(i)) - 1) * by[i] + 1;
      const Expr isIt = isEqual(slice(padded, place, limits, by), y);
      count = count ? count + isIt : isIt;
    }
    share = dy / count;
  }
  // Elements at the same position within a step of the windows (their phase) are in windows at the same distances. So
  // the gradient of each phase is a sum of shifted shares, without dilation. Phases are in row-major order.
  auto floorDiv = [](int64_t a, int64_t b) { return (a >= 0 ? a : a - b + 1) / b; };
  Ints earliest(steps.size(), 0), latest = earliest; // steps from an element to the windows that contain it
  for (const Sizes &place : places)
    for (size_t d = 0; d < steps.size(); ++d) {
      const int64_t step = floorDiv(first[d] + place[d].number(), by[d]);
      earliest[d] = std::min(earliest[d], step), latest[d] = std::max(latest[d], step);
    }
  Sizes ahead(latest.begin(), latest.end()), behind = steps, whole = steps, rest = steps;
  for (size_t d = 0; d < steps.size(); ++d) {
    behind[d] = lacking(dy.size(static_cast<int>(d)), steps[d] - earliest[d]);
    whole[d] = steps[d] * by[d];
    rest[d] = lacking(sizes[d], whole[d]);
  }
  const Expr shares = pad(share, ahead, behind), largest = y ? pad(y, ahead, behind) : Expr(),
             wholeSteps = y ? pad(x, none, rest) : Expr();
  size_t numPhases = 1;
  for (int64_t each : by)
    numPhases *= static_cast<size_t>(each);
  std::vector<Expr> phases(numPhases), ofPhase(numPhases); // their gradients, and their elements of x
  for (const Sizes &place : places) {
    size_t phase = 0;
    Sizes from = place, shift = place, to = place;
    for (size_t d = 0; d < steps.size(); ++d) {
      const int64_t at = first[d] + place[d].number(), step = floorDiv(at, by[d]);
      from[d] = at - step * by[d];
      phase = phase * static_cast<size_t>(by[d]) + static_cast<size_t>(from[d].number());
      shift[d] = latest[d] - step;
      to[d] = shift[d] + steps[d];
    }
    Expr part = slice(shares, shift, to);
    if (y) {
      if (!ofPhase[phase])
        ofPhase[phase] = slice(wholeSteps, from, whole, by);
      part = isEqual(ofPhase[phase], slice(largest, shift, to)) * part;
    }
    phases[phase] = phases[phase] ? phases[phase] + part : part;
  }
  for (Expr &phase : phases)
    if (!phase) // no window contains these elements
      phase = full(steps, 0, dy.dtype());
  // Interleaves the phases again, from the last dimension on.
  for (size_t d = steps.size(); d-- > 0;) {
    const auto count = static_cast<size_t>(by[d]);
    if (count == 1)
      continue;
    steps[d] *= by[d];
    std::vector<Expr> joined;
    for (size_t i = 0; i < phases.size(); i += count)
      joined.push_back(reshape(
          stack({phases.begin() + static_cast<ptrdiff_t>(i), phases.begin() + static_cast<ptrdiff_t>(i + count)},
                static_cast<int64_t>(d) + 1),
          steps));
    phases = std::move(joined);
  }
  return slice(phases.front(), none, sizes);
}

Expr prodGradient(const Expr &dy, const Expr &x, const Ints *axis) {
  // Moves the multiplied dimensions to the end as one; each of its elements needs the product of all others.
  const uint32_t mask = *normalizeAxes(axis, x.rank());
  Ints order, back(x.type().shape.size());
  Sizes kept;
  for (const bool reduced : {false, true})
    for (int i = 0; i < x.rank(); ++i)
      if ((mask >> i & 1) == reduced) {
        back[static_cast<size_t>(i)] = static_cast<int64_t>(order.size());
        order.push_back(i);
        if (!reduced)
          kept.push_back(x.size(i));
      }
  Size count = 1;
  for (int i = 0; i < x.rank(); ++i)
    count = mask >> i & 1 ? count * x.size(i) : count;
  const Expr turned = transpose(x, order);
  kept.push_back(count);
  const Expr rows = reshape(turned, kept);
  const Expr others = cumprod(rows, -1, false, true) * cumprod(rows, -1, true, true);
  return unreduced(dy, x, axis) * transpose(reshape(others, turned.sizes()), back);
}

Expr cumprodGradient(const Expr &dy, const Expr &x, int64_t axis, bool reverse, bool exclusive) {
  // The derivative of result j by element i is the product of the other elements in it. Computing these is exact where
  // elements are zero, but takes a square number of products.
  const int d = *normalizeAxis(axis, x.rank());
  Sizes row = x.sizes(), square = x.sizes();
  row.insert(row.begin() + d, 1);
  square.insert(square.begin() + d, x.size(d));
  const Expr i = iota(square, d, DType::i64), j = iota(square, d + 1, DType::i64);
  const Expr others =
      cumprod(where(equal(i, j), Expr::scalar(1, x.dtype()), reshape(x, row)), d + 1, reverse, exclusive);
  const Expr first = reverse ? j : i, second = reverse ? i : j;
  const Expr isIn = exclusive ? less(first, second) : less_equal(first, second);
  return sum(where(isIn, reshape(dy, row) * others, Expr::scalar(0, dy.dtype())), {d + 1}, false);
}

Expr extremumScanGradient(const Expr &dy, const Expr &x, const Expr &y, int64_t axis, bool reverse) {
  // Finds the last element so far that equals the extremum.
  const int d = *normalizeAxis(axis, x.rank());
  const Expr place = iota(x.sizes(), d, DType::i64);
  const Expr isIt = equal(x, y);
  const Expr at = reverse ? cummin(where(isIt, place, Expr::number(dim::max(0, x.size(d) - 1))), d, true)
                          : cummax(where(isIt, place, Expr::number(0)), d, false);
  return put_along_axis(zeros(dy.type()), at, dy, d, "add");
}

} // namespace tressel::op::expr
