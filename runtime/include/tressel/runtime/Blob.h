// Many bytes where they are: weights need not be put together to be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tressel::runtime {

/// The pieces one after the other, each padded with zeros to a multiple of 64 bytes.
class Blob {
public:
  static constexpr size_t kAlignment = 64;
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner; ///< keeps them alive; null: the caller does
  };

  Blob() = default;
  Blob(std::span<const std::byte> bytes) { add(bytes); } ///< the caller keeps them alive

  void add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);
  const std::vector<Piece> &pieces() const { return pieces_; }
  size_t size() const { return size_; } ///< with the padding
  bool empty() const { return size_ == 0; }
  /// A copy in one run.
  std::shared_ptr<const std::vector<std::byte>> joined() const;
  bool operator==(const Blob &other) const; ///< the same bytes, however they are cut

private:
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

} // namespace tressel::runtime
