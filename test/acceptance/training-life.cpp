// A training that may be interrupted at any instant: interrupted.test kills it, or lets its disk fail, and goes on.
//
//   training-life STATE STEPS      goes on from the file STATE if there is one, saves to it after every second step, and
//                                  prints a line that holds all bits of where it ended
#include <tressel/tressel.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

using namespace tressel;

namespace {
struct Batch {
  Tensor x, y;
};

uint64_t hashOf(const TrainingState &, const nn::Sequential &net, const optim::AdamW &opt) {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](const NamedVariables &variables) {
    for (const auto &[name, v] : variables) {
      const Tensor value = v.value();
      const auto *bytes = static_cast<const unsigned char *>(value.data());
      for (int64_t i = 0; i < value.type().bytes(); ++i)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
  };
  add(net.parameters());
  add(net.buffers());
  add(net.states());
  add(opt.states());
  return hash;
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  const std::string path = argv[1];
  const int64_t steps = std::atoll(argv[2]);
  try {
    nn::Sequential net{nn::Dense(64, tanh), nn::BatchNorm(), nn::Dropout(0.3), nn::Dense(1)};
    net.initialize({{f32, {8, 16}}}, 1);
    optim::AdamW opt(net.parameters(), {.lr = optim::cosine(0.01, steps, 2)});
    data::Loader<Batch> loader(data::rows(Batch{random_normal(1, {100, 16}), random_normal(2, {100, 1})}),
                               {.batch = 8, .shuffle = true, .drop_last = true, .seed = 5});
    const TrainingState state{{"net", net}, {"opt", opt}, {"loader", loader}};
    if (std::filesystem::exists(path))
      load_state(path, state);
    // One order of sums and no contraction, whatever the rest of the program is: the same bits wherever it went on from.
    auto step = jit(
        [net, opt](Batch b) {
          auto [loss, grads] = value_and_grad([&] { return mse_loss(net(b.x), b.y); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        {.deterministic = true});
    PendingSave saving;
    while (opt.steps() < steps)
      for (Batch b : loader.epoch(loader.position().epoch)) {
        step(b).wait();
        const int64_t done = opt.steps();
        if (done % 4 == 0) {
          save_state(path, state);
        } else if (done % 4 == 2) { // written beside the next steps
          saving.wait();
          saving = save_state_async(path, state);
        }
        if (done == steps)
          break;
      }
    saving.wait();
    std::printf("ended at step %lld with %016llx\n", static_cast<long long>(opt.steps()), static_cast<unsigned long long>(hashOf(state, net, opt)));
  } catch (const Error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
