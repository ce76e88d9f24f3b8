// Holds a task until a test lets it go.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tressel::runtime {

struct Gate {
  std::mutex mutex;
  std::condition_variable condition;
  bool isOpen = false;
  void open() {
    std::lock_guard lock(mutex);
    isOpen = true;
    condition.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return isOpen; });
  }
};

} // namespace tressel::runtime
