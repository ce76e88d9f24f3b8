/* The signature of a kernel written outside of Tressel, in C or C++. Nothing else of Tressel is needed to write one:
 *
 *   int32_t acme_cube(const tressel_call *call, int64_t begin, int64_t end) {
 *     const float *x = call->inputs[0].data;
 *     float *y = call->outputs[0].data;
 *     for (int64_t i = begin; i < end; ++i)
 *       y[i] = x[i] * x[i] * x[i];
 *     return 0;
 *   }
 *
 * A call of the op is `range` units of work (1 unless its registration says more). The kernel is called for parts
 * [begin, end) of them, from several threads at once, and no two parts may write the same byte. It must not keep any
 * pointer beyond the call. It returns 0, or a status of its own choice (above 0) after writing a line to `message`: then
 * the results are undefined, and who waits for them gets a RuntimeError with op, line, status and message. A C++
 * exception that leaves it is caught and treated the same way. docs/custom-ops.md is the guide.
 */
#ifndef TRESSEL_CUSTOM_KERNEL_H
#define TRESSEL_CUSTOM_KERNEL_H

#include "tressel_types.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tressel_attr_kind { TRESSEL_ATTR_INT = 0, TRESSEL_ATTR_FLOAT = 1, TRESSEL_ATTR_STRING = 2, TRESSEL_ATTR_INTS = 3 };

/* The value of an attribute: the member that `kind` tells. */
typedef struct tressel_attr {
  const char *name;
  int32_t kind; /* of tressel_attr_kind; a bool is an int */
  int64_t i;
  double f;
  const char *s; /* ends with a zero byte */
  const int64_t *ints;
  int64_t num_ints;
} tressel_attr;

typedef struct tressel_call {
  uint32_t struct_bytes; /* sizeof(tressel_call) of the caller: later versions append members */
  int32_t num_inputs, num_outputs, num_attrs;
  const tressel_tensor *inputs, *outputs;
  const tressel_attr *attrs; /* in the order of registration */
  void *scratch;             /* as many bytes as were asked for, this thread's own, 64-byte aligned; else null */
  int64_t scratch_bytes;
  char *message; /* room for a text that ends with a zero byte */
  int64_t message_bytes;
} tressel_call;

typedef int32_t (*tressel_kernel)(const tressel_call *call, int64_t begin, int64_t end);

#ifdef __cplusplus
}
#endif

#endif
