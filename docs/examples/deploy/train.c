/* Trains from C, with the runtime library only: the package of export_training, which tells the arms of a spiral apart.
     train PACKAGE STATES STEPS     goes on from the file STATES where there is one, and leaves its states there
   Killed at any moment, it goes on from the last hundredth step when it is called again. */
#include <tressel/runtime/tressel_runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, EVERY = 100 };

static void check(tressel_status status) {
  if (status) {
    fprintf(stderr, "train: %s\n", tressel_error());
    exit(1);
  }
}

static tressel_context *context_of(const tressel_package *package, const char *function, const tressel_context *states_of) {
  tressel_context_options options;
  tressel_context *context;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.function = function;
  options.states_of = states_of;
  check(tressel_context_create(package, &options, &context));
  return context;
}

/* Points of two arms, which a number says: the same for each call. */
static void points(uint64_t number, float *x, int64_t *label) {
  uint64_t random = (number + 1) * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < BATCH; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double t = (double)(random >> 40) / (1 << 24), angle = 7 * t + (i % 2 ? 3.14159265358979 : 0);
    x[2 * i] = (float)(t * cos(angle)), x[2 * i + 1] = (float)(t * sin(angle));
    label[i] = i % 2;
  }
}

/* How many steps the states have behind them: the optimizer counts them. */
static int64_t steps_done(tressel_context *context) {
  for (size_t i = 0; i < tressel_num_states(context); ++i) {
    tressel_value value;
    int64_t steps = 0;
    check(tressel_state(context, i, &value));
    if (strcmp(value.name, "opt.step"))
      continue;
    tressel_tensor tensor = {value.dtype, value.rank, value.sizes, &steps};
    check(tressel_read_state(context, i, &tensor));
    return steps;
  }
  fprintf(stderr, "train: the package has no state 'opt.step'\n");
  exit(1);
}

int main(int argc, char **argv) {
  tressel_package *package;
  if (argc != 4)
    return fprintf(stderr, "usage: train PACKAGE STATES STEPS\n"), 2;
  check(tressel_open(argv[1], &package));
  tressel_context *step = context_of(package, "step", NULL), *predict = context_of(package, "predict", step);
  FILE *saved = fopen(argv[2], "rb");
  if (saved) {
    fclose(saved);
    check(tressel_load_states(step, argv[2]));
  }

  float x[2 * BATCH], loss = 0, scores[2 * BATCH];
  int64_t label[BATCH];
  const int64_t in[] = {BATCH, 2}, labels[] = {BATCH};
  const tressel_tensor batch[] = {{TRESSEL_F32, 2, in, x}, {TRESSEL_I64, 1, labels, label}};
  const tressel_tensor out = {TRESSEL_F32, 0, NULL, &loss}, out_scores = {TRESSEL_F32, 2, in, scores};
  int64_t done = steps_done(step);
  printf("%s after %lld steps\n", done ? "goes on" : "begins", (long long)done);
  for (const int64_t end = done + atoll(argv[3]); done < end;) {
    points((uint64_t)done, x, label);
    check(tressel_run(step, batch, 2, &out, 1));
    if (++done % EVERY == 0 || done == end)
      check(tressel_save_states(step, argv[2]));
  }

  int right = 0;
  points(UINT64_MAX / 2, x, label); /* not trained on */
  check(tressel_run(predict, batch, 1, &out_scores, 1));
  for (int i = 0; i < BATCH; ++i)
    right += (scores[2 * i + 1] > scores[2 * i]) == (label[i] == 1);
  printf("%lld steps: loss %.4f, %d of %d right\n", (long long)done, loss, right, BATCH);
  tressel_context_destroy(predict);
  tressel_context_destroy(step);
  tressel_close(package);
  return 0;
}
