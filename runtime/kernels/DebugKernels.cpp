// Kernels of debug_print and assert_true. The runtime loads this library when it looks up one of their symbols.
#include "tressel/runtime/CustomKernels.h"
#include "tressel/runtime/Print.h"

#include <cstdio>
#include <string>

namespace tressel::runtime {
namespace {

TensorType typeOf(const tressel_tensor &t) {
  return {static_cast<DType>(t.dtype), Shape(std::span<const int64_t>(t.sizes, static_cast<size_t>(t.rank)))};
}

/// One write per tensor, so that output of several threads does not mix. To standard error, as standard output is for
/// results.
int32_t print(const tressel_call *call, int64_t, int64_t) {
  std::string text = call->attrs[0].s;
  if (!text.empty())
    text += ": ";
  for (int32_t i = 0; i < call->num_inputs; ++i)
    text += formatTensor(call->inputs[i].data, typeOf(call->inputs[i])) + "\n";
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return 0;
}

/// A negative status means that the message is complete.
int32_t check(const tressel_call *call, int64_t, int64_t) {
  if (*static_cast<const uint8_t *>(call->inputs[0].data))
    return 0;
  std::snprintf(call->message, static_cast<size_t>(call->message_bytes), "%s", call->attrs[0].s);
  return -1;
}

const bool registered =
    (registerCustomKernel("tressel_debug_print", print), registerCustomKernel("tressel_debug_assert", check), true);

} // namespace
} // namespace tressel::runtime
