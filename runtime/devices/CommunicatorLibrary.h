// Communicators are a library of their own, libtressel_communicators.so, opened when one is first made.
#pragma once

#include "tressel/runtime/Communicator.h"

#include <memory>
#include <string>

namespace tressel::runtime {

/// What that library has, as its symbol tressel_communicator_library.
struct CommunicatorLibrary {
  std::shared_ptr<Communicator> (*local)(const std::string &name, uint32_t rank, uint32_t size,
                                         int64_t timeoutNs) = nullptr;
};

} // namespace tressel::runtime
