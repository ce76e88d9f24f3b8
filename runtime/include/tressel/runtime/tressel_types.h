/* Tensors as C sees them: shared by the runtime's interface (tressel_runtime.h) and by custom kernels (custom_kernel.h). */
#ifndef TRESSEL_TYPES_H
#define TRESSEL_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. bool is one byte holding 0 or 1; f16 and bf16 are two bytes. */
typedef enum tressel_dtype {
  TRESSEL_F32 = 0,
  TRESSEL_F64 = 1,
  TRESSEL_F16 = 2,
  TRESSEL_BF16 = 3,
  TRESSEL_I8 = 4,
  TRESSEL_I16 = 5,
  TRESSEL_I32 = 6,
  TRESSEL_I64 = 7,
  TRESSEL_U8 = 8,
  TRESSEL_BOOL = 9
} tressel_dtype;

#define TRESSEL_MAX_RANK 8

/* A dense row-major tensor. `data` is aligned to the element at least, to 64 bytes for speed; it may be null only when there
   are no elements. */
typedef struct tressel_tensor {
  int32_t dtype; /* of tressel_dtype */
  int32_t rank;  /* 0 to TRESSEL_MAX_RANK */
  const int64_t *sizes; /* `rank` of them, outermost first */
  void *data;           /* inputs are not written */
} tressel_tensor;

#ifdef __cplusplus
}
#endif
#endif
