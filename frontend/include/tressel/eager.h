// Counts what imperative ops compiled in this process. An op that is called outside of jitted functions runs one kernel
// for all sizes of its layout; docs/eager.md says which kernels come with the library.
//
//   EagerStats before = eager_stats();
//   for (int64_t n = 1; n <= 5000; ++n)
//     y = x(n) + 1;                                       // eager_stats().compiled == before.compiled
#pragma once

#include <cstdint>

namespace tressel {

struct EagerStats {
  uint64_t available = 0; ///< kernels that come with the library, for this processor
  uint64_t prebuilt = 0;  ///< those of them that are in use
  uint64_t compiled = 0;  ///< kernels compiled by this process, or found in the cache on disk
  uint64_t programs = 0;  ///< ops that are not one kernel (products, convolutions, sorts), compiled as programs
  uint64_t failed = 0;    ///< compilations that failed; the tensors carry the reason
  double seconds = 0;     ///< spent compiling, over all threads
};
/// Of the whole process since its start; from any thread.
EagerStats eager_stats();

} // namespace tressel
