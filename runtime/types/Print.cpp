// Printing in NumPy's form: one column width for all elements, and the middle left out of large tensors.
#include "tressel/runtime/Print.h"

#include "tressel/runtime/Half.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tressel::runtime {
namespace {

template <typename T> T elementAt(const void *data, int64_t i) { return static_cast<const T *>(data)[i]; }

int64_t loadInt(const void *data, DType type, int64_t i) {
  switch (type) {
  case DType::i8:
    return elementAt<int8_t>(data, i);
  case DType::i16:
    return elementAt<int16_t>(data, i);
  case DType::i32:
    return elementAt<int32_t>(data, i);
  case DType::i64:
    return elementAt<int64_t>(data, i);
  default:
    return elementAt<uint8_t>(data, i);
  }
}

double loadDouble(const void *data, DType type, int64_t i) {
  switch (type) {
  case DType::f32:
    return static_cast<double>(elementAt<float>(data, i));
  case DType::f64:
    return elementAt<double>(data, i);
  case DType::f16:
    return static_cast<double>(static_cast<float>(elementAt<Half>(data, i)));
  case DType::bf16:
    return static_cast<double>(static_cast<float>(elementAt<BFloat16>(data, i)));
  default:
    return static_cast<double>(loadInt(data, type, i));
  }
}

constexpr int64_t kFullElements = 1000; // more than this, and only the edges are printed
constexpr int64_t kEdge = 3;

class Printer {
public:
  Printer(const void *data, const TensorType &type) : data_(data), type_(type) {
    shorten_ = type.shape.numElements() > kFullElements;
    chooseFormat();
    visit(0, 0, [this](int64_t i) { width_ = std::max(width_, text(i).size()); });
  }
  std::string print() {
    row(0, 0);
    return std::move(out_);
  }

private:
  /// Calls fn with the offset of every element that is shown.
  template <typename Fn> void visit(int depth, int64_t offset, Fn fn) {
    if (depth == type_.rank())
      return fn(offset);
    for (int64_t i = 0, n = type_.shape[depth].number(); i < n; ++i) {
      if (skips(i, n))
        i = n - kEdge;
      visit(depth + 1, offset * n + i, fn);
    }
  }
  bool skips(int64_t i, int64_t n) const { return shorten_ && n > 2 * kEdge && i == kEdge; }

  /// Floats share one form: plain with as many digits as needed up to 4 decimals, or with exponents for a wide range.
  void chooseFormat() {
    if (!isFloat(type_.dtype))
      return;
    double largest = 0, smallest = HUGE_VAL;
    visit(0, 0, [&](int64_t i) {
      double v = std::fabs(loadDouble(data_, type_.dtype, i));
      if (std::isfinite(v) && v != 0) {
        largest = std::max(largest, v);
        smallest = std::min(smallest, v);
      }
    });
    scientific_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e3 * 1e5));
  }

  std::string text(int64_t i) const {
    if (type_.dtype == DType::boolean)
      return loadInt(data_, type_.dtype, i) ? "true" : "false";
    if (!isFloat(type_.dtype))
      return std::to_string(loadInt(data_, type_.dtype, i));
    char buffer[64];
    double v = loadDouble(data_, type_.dtype, i);
    if (!std::isfinite(v))
      return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
    std::snprintf(buffer, sizeof buffer, scientific_ ? "%.4e" : "%.4f", v);
    std::string s = buffer;
    if (!scientific_) // 1.5000 as 1.5, 2.0000 as 2.
      s.erase(s.find_last_not_of('0') + 1);
    return s;
  }

  void row(int depth, int64_t offset) {
    if (depth == type_.rank()) {
      std::string s = text(offset);
      out_ += std::string(width_ - s.size(), ' ') + s;
      return;
    }
    out_ += '[';
    const bool innermost = depth + 1 == type_.rank();
    for (int64_t i = 0, n = type_.shape[depth].number(); i < n; ++i) {
      if (i)
        separate(innermost, depth);
      if (skips(i, n)) {
        out_ += "...";
        separate(innermost, depth);
        i = n - kEdge;
      }
      row(depth + 1, offset * n + i);
    }
    out_ += ']';
  }
  void separate(bool innermost, int depth) {
    if (innermost)
      out_ += ", ";
    else
      out_ += (type_.rank() - depth > 2 ? ",\n\n" : ",\n") + std::string(static_cast<size_t>(depth) + 1, ' ');
  }

  std::string out_;
  const void *data_;
  TensorType type_;
  bool shorten_ = false, scientific_ = false;
  size_t width_ = 0;
};

} // namespace

std::string formatTensor(const void *data, const TensorType &type) {
  return Printer(data, type).print() + " " + type.str();
}

Statistics statisticsOf(const void *data, const TensorType &type) {
  Statistics s;
  double sum = 0;
  for (int64_t i = 0, n = type.shape.numElements(); i < n; ++i) {
    const double v = loadDouble(data, type.dtype, i);
    if (std::isnan(v)) {
      s.firstNan = s.numNan++ ? s.firstNan : i;
    } else if (std::isinf(v)) {
      s.firstInf = s.numInf++ ? s.firstInf : i;
    } else {
      s.min = s.numFinite ? std::min(s.min, v) : v;
      s.max = s.numFinite ? std::max(s.max, v) : v;
      sum += v;
      ++s.numFinite;
    }
  }
  s.mean = s.numFinite ? sum / static_cast<double>(s.numFinite) : 0;
  return s;
}

std::string Statistics::str() const {
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "" : ", ") + part; };
  if (numNan)
    add(std::to_string(numNan) + " NaN");
  if (numInf)
    add(std::to_string(numInf) + " infinite");
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "min %.6g, mean %.6g, max %.6g", min, mean, max);
  add(numFinite ? numbers : numNan || numInf ? "nothing finite" : "no elements");
  return text;
}

} // namespace tressel::runtime
