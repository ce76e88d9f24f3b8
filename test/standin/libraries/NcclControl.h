// How tests steer the stand-in NCCL, and what they ask it. The library's function tressel_standin_nccl returns it.
// Tests write it while no rank is at work.
#pragma once

#include <atomic>
#include <cstdint>

namespace tressel::standin {

struct NcclControl {
  std::atomic<uint64_t> operations{0};    ///< collectives, sends and receives that were given, of all ranks
  std::atomic<uint64_t> communicators{0}; ///< that are alive
  std::atomic<uint64_t> shrunk{0}, revoked{0}, aborted{0}, finalized{0};
  std::atomic<uint64_t> refused{0};          ///< calls that were answered with an error
  std::atomic<const char *> lastRefusal{""}; ///< why
  std::atomic<uint64_t> mismatches{0};       ///< operations in which the ranks differ; they hang
  std::atomic<int> patience{2};              ///< how often what is in progress says so; 0: calls are done at once
  std::atomic<uint64_t> failAt{0};           ///< the N-th operation from now (1: the next) returns `failure`; 0: none
  std::atomic<uint64_t> asyncFailAt{
      0}; ///< the communicator of the N-th operation from now has `failure` as its asynchronous error
  std::atomic<int> failure{2};           ///< a status
  std::atomic<uint64_t> shrinkFailAt{0}; ///< the N-th ncclCommShrink from now returns `failure`; 0: none
  std::atomic<bool> tellsOthers{false};  ///< when a rank aborts, the others' asynchronous error is ncclRemoteError
  std::atomic<bool> revokes{true};       ///< false: ncclCommRevoke is refused
};

} // namespace tressel::standin
