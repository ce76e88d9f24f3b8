// What a handle class holds instead of a pointer: one that was moved from is an Error when it is used, not a crash.
#pragma once

#include <utility>

namespace tressel::runtime {

/// Throws Error.
[[noreturn]] void failMoved();

/// A std::unique_ptr or std::shared_ptr that is null only in a handle that was moved from.
template <typename Pointer> class Held {
public:
  Held() = default;
  Held(Pointer pointer) : pointer_(std::move(pointer)) {}

  const Pointer &pointer() const {
    if (!pointer_) [[unlikely]]
      failMoved();
    return pointer_;
  }
  auto *operator->() const { return pointer().get(); }
  auto &operator*() const { return *pointer(); }

private:
  Pointer pointer_;
};

} // namespace tressel::runtime
