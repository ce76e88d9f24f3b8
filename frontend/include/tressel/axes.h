// The dimensions a reduction runs over.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tressel {

/// Nothing, {}: all dimensions. One number, or a list: those; negative ones count from the last.
class Axes {
public:
  Axes() = default;
  Axes(int64_t axis) : all_(false), values_{axis} {}
  Axes(int axis) : Axes(static_cast<int64_t>(axis)) {}
  Axes(std::initializer_list<int64_t> axes) : all_(false), values_(axes) {}
  Axes(std::vector<int64_t> axes) : all_(false), values_(std::move(axes)) {}

  bool all() const { return all_; }
  const std::vector<int64_t> &values() const & { return values_; }
  std::vector<int64_t> &&values() && { return std::move(values_); }

private:
  bool all_ = true;
  std::vector<int64_t> values_;
};

} // namespace tressel
