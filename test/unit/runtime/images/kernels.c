// Kernels for the tests of image loader, executor and packages; the argument struct as in Kernel.h.
typedef struct {
  void *const *buffers;
  const long *scalars;
  void *scratch;
  unsigned long randomOffset;
  const void *state;
  long worker;
} Args;

/// out = a + b
int add(const Args *args, long begin, long end) {
  const float *a = args->buffers[0], *b = args->buffers[1];
  float *out = args->buffers[2];
  for (long i = begin; i < end; ++i)
    out[i] = a[i] + b[i];
  return 0;
}

/// out = 2 * in, through scratch memory
int twice(const Args *args, long begin, long end) {
  const float *in = args->buffers[0];
  float *out = args->buffers[1], *scratch = args->scratch;
  for (long i = begin; i < end; ++i) {
    scratch[0] = in[i];
    out[i] = 2.0f * scratch[0];
  }
  return 0;
}

/// An epilogue on add's operands: out = max(out, 0)
int addRelu(const Args *args, long begin, long end) {
  float *out = args->buffers[2];
  for (long i = begin; i < end; ++i)
    out[i] = out[i] > 0 ? out[i] : 0;
  return 0;
}

/// out = table[index], 4 rows
int gather(const Args *args, long begin, long end) {
  const float *table = args->buffers[0];
  const int *index = args->buffers[1];
  float *out = args->buffers[2];
  for (long i = begin; i < end; ++i) {
    if (index[i] < 0 || index[i] >= 4)
      return 1;
    out[i] = table[index[i]];
  }
  return 0;
}

/// flag = a[0] < b[0]
int less(const Args *args, long begin, long end) {
  const float *a = args->buffers[0], *b = args->buffers[1];
  *(unsigned char *)args->buffers[2] = a[0] < b[0];
  return (int)(end - begin) - 1;
}

/// out = the number of an iteration, as floats
int number(const Args *args, long begin, long end) {
  float *out = args->buffers[1];
  for (long i = begin; i < end; ++i)
    out[i] = (float)*(const long *)args->buffers[0];
  return 0;
}

int answer = 42;
