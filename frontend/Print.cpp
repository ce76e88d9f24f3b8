// Printing in NumPy's form: one column width for all elements, and the middle left out of large tensors.
#include "frontend/Convert.h"
#include "frontend/Record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

namespace tressel {
namespace {

constexpr int64_t kFullElements = 1000; // more than this, and only the edges are printed
constexpr int64_t kEdge = 3;

class Printer {
public:
  Printer(std::ostream &os, const void *data, const TensorType &type) : os_(os), data_(data), type_(type) {
    shorten_ = type.shape.numElements() > kFullElements;
    chooseFormat();
    visit(0, 0, [this](int64_t i) { width_ = std::max(width_, text(i).size()); });
  }
  void print() { row(0, 0); }

private:
  /// Calls fn with the offset of every element that is shown.
  template <typename Fn> void visit(int depth, int64_t offset, Fn fn) {
    if (depth == type_.rank())
      return fn(offset);
    for (int64_t i = 0, n = type_.shape[depth]; i < n; ++i) {
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
      double v = std::fabs(detail::loadDouble(data_, type_.dtype, i));
      if (std::isfinite(v) && v != 0) {
        largest = std::max(largest, v);
        smallest = std::min(smallest, v);
      }
    });
    scientific_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e3 * 1e5));
  }

  std::string text(int64_t i) const {
    if (type_.dtype == DType::boolean)
      return detail::loadInt(data_, type_.dtype, i) ? "true" : "false";
    if (!isFloat(type_.dtype))
      return std::to_string(detail::loadInt(data_, type_.dtype, i));
    char buffer[64];
    double v = detail::loadDouble(data_, type_.dtype, i);
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
      os_ << std::string(width_ - s.size(), ' ') << s;
      return;
    }
    os_ << '[';
    const bool innermost = depth + 1 == type_.rank();
    for (int64_t i = 0, n = type_.shape[depth]; i < n; ++i) {
      if (i)
        separate(innermost, depth);
      if (skips(i, n)) {
        os_ << "...";
        separate(innermost, depth);
        i = n - kEdge;
      }
      row(depth + 1, offset * n + i);
    }
    os_ << ']';
  }
  void separate(bool innermost, int depth) {
    if (innermost)
      os_ << ", ";
    else
      os_ << (type_.rank() - depth > 2 ? ",\n\n" : ",\n") << std::string(static_cast<size_t>(depth) + 1, ' ');
  }

  std::ostream &os_;
  const void *data_;
  TensorType type_;
  bool shorten_ = false, scientific_ = false;
  size_t width_ = 0;
};

} // namespace

std::ostream &operator<<(std::ostream &os, const Tensor &t) {
  if (!t.defined())
    return os << "(no tensor)";
  if (t.traced())
    return os << "<traced " << t.type().str() << " at " << t.impl()->where.str() << ">";
  const void *data = t.data();
  Printer(os, data, t.type()).print();
  return os << " " << t.type().str();
}

} // namespace tressel
