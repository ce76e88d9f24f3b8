/* Two kernels in plain C. */
#include <tressel/runtime/custom_kernel.h>

#include <stdio.h>

/* y = x * x * x, elementwise; any range of elements at a time. */
int32_t acme_cube(const tressel_call *call, int64_t begin, int64_t end) {
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] * x[i] * x[i];
  return 0;
}

/* Counts how often each of `bins` numbers stands in a list; one unit of work. Fails on a number that is none of them. */
int32_t acme_histogram(const tressel_call *call, int64_t begin, int64_t end) {
  const int64_t bins = call->attrs[0].i, n = call->inputs[0].sizes[0];
  const int32_t *x = call->inputs[0].data;
  int64_t *counts = call->outputs[0].data;
  if (begin == end)
    return 0;
  for (int64_t b = 0; b < bins; ++b)
    counts[b] = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < 0 || x[i] >= bins) {
      snprintf(call->message, (size_t)call->message_bytes, "element %lld is %d, but there are %lld bins", (long long)i,
               (int)x[i], (long long)bins);
      return 1;
    }
    ++counts[x[i]];
  }
  return 0;
}
