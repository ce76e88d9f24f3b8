/* A deployed program: linked with libtressel_runtime.so alone, it runs the first function of a package and prints the outputs, all of them f32.

   usage: deployed PACKAGE [MACHINE]   inputs are 0, 1, 2, ...; exit status 1 and the library's message where it fails */
#include <tressel/runtime/tressel_runtime.h>

#include <stdio.h>

#define MOST 1024

static int fail(void) { return fprintf(stderr, "%s\n", tressel_error()), 1; }

static int describe(tressel_tensor *tensor, const tressel_value *value, float *data) {
  int64_t count = 1;
  for (int i = 0; i < value->rank; ++i)
    count *= value->sizes[i];
  if (value->dtype != TRESSEL_F32 || count < 0 || count > MOST)
    return -1;
  *tensor = (tressel_tensor){TRESSEL_F32, value->rank, value->sizes, data};
  return (int)count;
}

int main(int argc, char **argv) {
  static float in[4][MOST], out[4][MOST];
  static tressel_value values[8];
  tressel_tensor inputs[4], outputs[4];
  int counts[4];
  tressel_package *package;
  tressel_context *context;
  tressel_context_options options = {0};
  options.struct_size = sizeof options;
  options.machine = argc > 2 ? argv[2] : NULL;
  if (argc < 2 || tressel_open(argv[1], &package) || tressel_context_create(package, &options, &context))
    return fail();
  tressel_close(package);
  const size_t num_inputs = tressel_num_inputs(context), num_outputs = tressel_num_outputs(context);
  if (num_inputs > 4 || num_outputs > 4)
    return 2;
  for (size_t i = 0; i < num_inputs; ++i) {
    if (tressel_input(context, i, &values[i]))
      return fail();
    const int count = describe(&inputs[i], &values[i], in[i]);
    for (int k = 0; k < count; ++k)
      in[i][k] = (float)k;
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    if (tressel_output(context, i, &values[4 + i]))
      return fail();
    counts[i] = describe(&outputs[i], &values[4 + i], out[i]);
  }
  for (int run = 0; run < 2; ++run)
    if (tressel_run(context, inputs, num_inputs, outputs, num_outputs))
      return fail();
  for (size_t i = 0; i < num_outputs; ++i) {
    printf("%s:", values[4 + i].name);
    for (int k = 0; k < counts[i]; ++k)
      printf(" %g", out[i][k]);
    printf("\n");
  }
  printf("%s\n", tressel_context_bytes(context) > 0 ? "holds memory" : "holds none");
  tressel_context_destroy(context);
  return 0;
}
