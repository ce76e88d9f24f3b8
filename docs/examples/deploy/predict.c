/* Runs a package from C, with the runtime library only.
     predict PACKAGE [NAME=SIZE]...      sizes of symbolic dimensions; their lower bounds when not given
   Inputs are zeros. Prints the signature, and what each output begins with. */
#include <tressel/runtime/tressel_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(tressel_status status) {
  if (status) {
    fprintf(stderr, "predict: %s\n", tressel_error());
    exit(1);
  }
}

/* A zeroed tensor of a known type. */
static tressel_tensor provide(const tressel_value *type) {
  static const size_t bytes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1};
  tressel_tensor t = {type->dtype, type->rank, type->sizes, NULL};
  size_t count = 1;
  for (int i = 0; i < type->rank; ++i)
    count *= (size_t)type->sizes[i];
  t.data = calloc(count + 1, bytes[type->dtype]);
  return t;
}

int main(int argc, char **argv) {
  tressel_package *package;
  tressel_context *context;
  if (argc < 2)
    return fprintf(stderr, "usage: predict PACKAGE [NAME=SIZE]...\n"), 2;
  check(tressel_open(argv[1], &package));
  check(tressel_context_create(package, NULL, &context));

  tressel_tensor inputs[16], outputs[16];
  tressel_value in[16], out[16];
  const size_t num_inputs = tressel_num_inputs(context), num_outputs = tressel_num_outputs(context);
  if (num_inputs > 16 || num_outputs > 16)
    return fprintf(stderr, "predict: at most 16 inputs and outputs\n"), 1;
  for (size_t i = 0; i < num_inputs; ++i) {
    check(tressel_input(context, i, &in[i]));
    printf("input %s:", in[i].name);
    for (int d = 0; d < in[i].rank; ++d) {
      for (size_t k = 0; in[i].symbols[d] && k < tressel_num_dims(context); ++k) {
        tressel_dim dim;
        check(tressel_dim_info(context, k, &dim));
        if (strcmp(dim.name, in[i].symbols[d]))
          continue;
        in[i].sizes[d] = dim.lo;
        for (int a = 2; a < argc; ++a) /* "NAME=SIZE" */
          if (!strncmp(argv[a], dim.name, strlen(dim.name)) && argv[a][strlen(dim.name)] == '=')
            in[i].sizes[d] = atoll(argv[a] + strlen(dim.name) + 1);
      }
      printf(" %lld", (long long)in[i].sizes[d]);
    }
    printf("\n");
    inputs[i] = provide(&in[i]);
  }
  check(tressel_output_types(context, inputs, num_inputs, out, num_outputs));
  for (size_t i = 0; i < num_outputs; ++i)
    outputs[i] = provide(&out[i]);
  check(tressel_run(context, inputs, num_inputs, outputs, num_outputs));
  for (size_t i = 0; i < num_outputs; ++i) {
    printf("output %s", out[i].name);
    if (out[i].dtype == TRESSEL_F32)
      printf(": %g", *(float *)outputs[i].data);
    printf("\n");
  }
  tressel_context_destroy(context);
  tressel_close(package);
  return 0;
}
