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

/* Memory for a tensor, zeroed. */
static void provide(tressel_tensor *t) {
  static const size_t bytes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1};
  size_t count = 1;
  for (int i = 0; i < t->rank; ++i)
    count *= (size_t)t->shape[i];
  t->data = calloc(count + 1, bytes[t->dtype]);
}

int main(int argc, char **argv) {
  tressel_package *package;
  tressel_context *context;
  if (argc < 2)
    return fprintf(stderr, "usage: predict PACKAGE [NAME=SIZE]...\n"), 2;
  check(tressel_open(argv[1], &package));
  check(tressel_context_create(package, NULL, &context));

  tressel_tensor inputs[16] = {{0}}, outputs[16] = {{0}};
  const size_t num_inputs = tressel_num_inputs(context), num_outputs = tressel_num_outputs(context);
  if (num_inputs > 16 || num_outputs > 16)
    return fprintf(stderr, "predict: at most 16 inputs and outputs\n"), 1;
  for (size_t i = 0; i < num_inputs; ++i) {
    tressel_value value;
    check(tressel_input(context, i, &value));
    printf("input %s:", value.name);
    inputs[i].dtype = value.dtype, inputs[i].rank = value.rank;
    for (int d = 0; d < value.rank; ++d) {
      inputs[i].shape[d] = value.shape[d];
      for (size_t k = 0; value.symbols[d] && k < tressel_num_dims(context); ++k) {
        tressel_dim dim;
        check(tressel_dim_info(context, k, &dim));
        if (!strcmp(dim.name, value.symbols[d]))
          inputs[i].shape[d] = dim.lo;
        for (int a = 2; a < argc; ++a) /* "NAME=SIZE" */
          if (!strncmp(argv[a], value.symbols[d], strlen(dim.name)) && argv[a][strlen(dim.name)] == '=')
            inputs[i].shape[d] = atoll(argv[a] + strlen(dim.name) + 1);
      }
      printf(" %lld", (long long)inputs[i].shape[d]);
    }
    printf("\n");
    provide(&inputs[i]);
  }
  check(tressel_output_types(context, inputs, num_inputs, outputs, num_outputs));
  for (size_t i = 0; i < num_outputs; ++i)
    provide(&outputs[i]);
  check(tressel_run(context, inputs, num_inputs, outputs, num_outputs));
  for (size_t i = 0; i < num_outputs; ++i) {
    tressel_value value;
    check(tressel_output(context, i, &value));
    printf("output %s", value.name);
    if (value.dtype == TRESSEL_F32)
      printf(": %g", *(float *)outputs[i].data);
    printf("\n");
  }
  tressel_context_destroy(context);
  tressel_close(package);
  return 0;
}
