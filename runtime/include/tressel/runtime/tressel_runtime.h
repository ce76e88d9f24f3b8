/* The runtime's C interface: opens packages (.tsl) and runs their functions. C99; C++ programs may use Package.h instead.

     tressel_package *package;
     tressel_context *context;
     if (tressel_open("mlp.tsl", &package) || tressel_context_create(package, NULL, &context))
       fprintf(stderr, "%s\n", tressel_error());
     const int64_t in[] = {1, 784}, out[] = {1, 10};
     tressel_tensor x = {TRESSEL_F32, 2, in, image}, y = {TRESSEL_F32, 2, out, logits};
     if (tressel_run(context, &x, 1, &y, 1))
       ...
     tressel_context_destroy(context);
     tressel_close(package);

   Status. Every function that can fail returns a tressel_status, 0 when it succeeded, and leaves its results untouched
   otherwise; tressel_error() says what went wrong. No exception leaves the library.

   Threads. A package is immutable: all threads may use it at once. A context belongs to one thread at a time; make one per
   thread. They share code, constants and parameters.

   Lifetime. A context keeps what it needs of its package, so the two may be freed in any order. Strings handed out live as
   long as the package or context they were asked of.

   Trust. A package holds native code: open only what you would run as a program. Damaged or foreign files are refused; damage
   to code or weights when the first context is made that needs them. */
#ifndef TRESSEL_RUNTIME_H
#define TRESSEL_RUNTIME_H

#include "tressel_types.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when functions or options are added; what exists keeps its meaning. */
#define TRESSEL_ABI_VERSION 3

typedef enum tressel_status {
  TRESSEL_OK = 0,
  TRESSEL_INVALID_ARGUMENT = 1, /* the caller's: a wrong shape or type, a null pointer, an unknown name */
  TRESSEL_BAD_PACKAGE = 2, /* missing, damaged, of another format version, for another CPU; a file of states that is so,
                              or of something else */
  TRESSEL_OUT_OF_MEMORY = 3, /* beyond max_bytes, or the allocator has no more */
  TRESSEL_RUN_FAILED = 4,    /* a kernel found its data wrong: an index out of range, a failed assertion */
  TRESSEL_INTERNAL = 5       /* a bug in Tressel */
} tressel_status;

typedef struct tressel_package tressel_package;
typedef struct tressel_context tressel_context;

/* An input or output of a function. */
typedef struct tressel_value {
  const char *name;
  int32_t dtype;
  int32_t rank;
  int64_t sizes[TRESSEL_MAX_RANK];       /* -1 where the size is symbolic */
  const char *symbols[TRESSEL_MAX_RANK]; /* the size then, "batch" or "2*n + 1"; null for numbers */
} tressel_value;

/* A dimension of symbolic size, known only when the function runs. */
typedef struct tressel_dim {
  const char *name;
  int64_t lo, hi; /* both included */
} tressel_dim;

/* Zero-initialize, set struct_size to sizeof, then what is wanted. */
typedef struct tressel_context_options {
  size_t struct_size;
  const char *function; /* null: the package's first */
  /* Memory for dimensions of up to these sizes is taken at once; calls beyond them are refused. */
  size_t num_max_dims;
  const char *const *max_dim_names;
  const int64_t *max_dims;
  /* Most bytes the context may hold beside code, constants and parameters; 0 for no bound. A context grows when a call
     needs more than it has, and holds the old memory until it has the new. */
  int64_t max_bytes;
  /* Where that memory comes from; null for the library's own. Called in the thread that calls a function of the context.
     allocate gives null when there is none. */
  void *(*allocate)(size_t bytes, size_t alignment, void *user);
  void (*release)(void *memory, size_t bytes, void *user);
  void *user;
  /* Null: the processor. "cuda": this computer with its NVIDIA GPUs; "cpu": the processor with a thread for each stream of a program of
     several. The libraries for it, libtressel_devices.so and libtressel_cuda.so, are opened then, beside this one; a missing one is
     TRESSEL_BAD_PACKAGE. Inputs and outputs lie in the host's memory all the same. Goes with none of the options for memory. Since version 2. */
  const char *machine;
  /* A context of the same package whose states this one shares: what a step of training makes of the parameters, a
     function that predicts reads in its next call. The two belong to one thread at a time. Null: states of its own,
     with the package's values. Since version 3. */
  const struct tressel_context *states_of;
} tressel_context_options;

/* TRESSEL_ABI_VERSION of the library, and its release: "0.1.0". */
uint32_t tressel_abi_version(void);
const char *tressel_version(void);
/* What the last function that failed in this thread found; "" if none has. Valid until the next failure in this thread. */
const char *tressel_error(void);

/* Packages. The memory of tressel_open_memory is 64-byte aligned, and stays unchanged until the package and all contexts of
   it are gone. Null is allowed in tressel_close. */
tressel_status tressel_open(const char *path, tressel_package **package);
tressel_status tressel_open_memory(const void *memory, size_t bytes, tressel_package **package);
void tressel_close(tressel_package *package);
size_t tressel_num_functions(const tressel_package *package);
const char *tressel_function_name(const tressel_package *package, size_t index); /* null beyond the last */

/* Contexts. Null options are all zero. Null is allowed in tressel_context_destroy. */
tressel_status tressel_context_create(const tressel_package *package, const tressel_context_options *options,
                                      tressel_context **context);
void tressel_context_destroy(tressel_context *context);
size_t tressel_num_inputs(const tressel_context *context);
size_t tressel_num_outputs(const tressel_context *context);
size_t tressel_num_dims(const tressel_context *context);
tressel_status tressel_input(const tressel_context *context, size_t index, tressel_value *value);
tressel_status tressel_output(const tressel_context *context, size_t index, tressel_value *value);
tressel_status tressel_dim_info(const tressel_context *context, size_t index, tressel_dim *dim);
/* Bytes that max_bytes bounds, held now; with a machine, on all of its devices. */
int64_t tressel_context_bytes(const tressel_context *context);

/* The outputs for inputs of these types, all sizes numbers. The inputs' data is not looked at. */
tressel_status tressel_output_types(const tressel_context *context, const tressel_tensor *inputs, size_t num_inputs,
                                    tressel_value *outputs, size_t num_outputs);
/* Runs the function in the caller's thread and the library's pool, and returns when the outputs are complete. Outputs may
   overlap neither inputs nor each other. Allocates nothing when the sizes are those of one of the last few calls. After
   TRESSEL_RUN_FAILED the outputs' contents, and the context's states, are undefined. */
tressel_status tressel_run(tressel_context *context, const tressel_tensor *inputs, size_t num_inputs,
                           const tressel_tensor *outputs, size_t num_outputs);

/* States: what the package's functions keep between calls, parameters and what an optimizer has. Sorted by name; all
   have sizes that are numbers. Reading copies a value out, writing copies one in; the tensor has the state's type.
   Since version 3. */
size_t tressel_num_states(const tressel_context *context);
tressel_status tressel_state(const tressel_context *context, size_t index, tressel_value *value);
tressel_status tressel_read_state(tressel_context *context, size_t index, const tressel_tensor *tensor);
tressel_status tressel_write_state(tressel_context *context, size_t index, const tressel_tensor *tensor);
/* All of them in one safetensors file, which is written aside, brought to the disk and renamed: at any moment the path
   names a whole file, or none. Loading gives all states the file's values, or fails and changes nothing; what else is
   in the file is left alone. The library for it, libtressel_states.so, is opened then, beside this one. A disk that
   refuses is TRESSEL_RUN_FAILED. Since version 3. */
tressel_status tressel_save_states(tressel_context *context, const char *path);
tressel_status tressel_load_states(tressel_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
