// Two networks over the test images of Fashion-MNIST, called op by op and compiled: are the results equal, and what
// does compiling gain?
//
//   lenet /usr/share/datasets/fashion-mnist [--images N] [--rounds N] [--weights lenet.safetensors]
#include "lenet.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

using namespace tressel;

namespace {

constexpr int64_t kBatch = 64;

struct Options {
  std::string dir, weights;
  int64_t images = 10'000;
  int rounds = 5;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

/// One result per batch. Calls return at once, so the waiting is at the end.
template <typename Net> std::vector<Tensor> run(const Net &net, const std::vector<Tensor> &batches) {
  std::vector<Tensor> logits;
  for (const Tensor &batch : batches)
    logits.push_back(net(batch));
  for (const Tensor &l : logits)
    l.wait();
  return logits;
}

/// Runs `net` both ways and prints a line. False if the results differ by more than rounding.
template <typename Net> bool compare(const char *name, const Net &net, const std::vector<Tensor> &batches, int rounds) {
  const Net compiled = net.clone(); // equal parameters
  compiled.hybridize();

  const std::vector<Tensor> expected = run(net, batches);
  const std::vector<Tensor> got = run(compiled, batches); // records and compiles, once per batch size
  double difference = 0, largest = 1;
  for (size_t i = 0; i < batches.size(); ++i) {
    const std::vector<float> a = expected[i].to_vector<float>(), b = got[i].to_vector<float>();
    for (size_t k = 0; k < a.size(); ++k) {
      const double d = std::abs(double(a[k]) - double(b[k]));
      difference = d <= difference ? difference : d; // keeps a NaN
      largest = std::max(largest, double(std::abs(a[k])));
    }
  }

  std::vector<double> imperative, hybrid;
  for (int round = 0; round < rounds; ++round) { // alternately: whatever else the machine does hits both
    const double start = seconds();
    run(net, batches);
    const double between = seconds();
    run(compiled, batches);
    imperative.push_back(between - start);
    hybrid.push_back(seconds() - between);
  }
  const double slow = median(imperative), fast = median(hybrid);
  const JitStats stats = compiled.stats();
  const bool equal = difference <= 1e-4 * largest; // false for a NaN
  std::printf("%-8s %9.1f ms %9.1f ms %8.2f x %12.1e %9llu %9.0f ms\n", name, slow * 1e3, fast * 1e3, slow / fast,
              difference, static_cast<unsigned long long>(stats.traces),
              (stats.trace_seconds + stats.compile_seconds) * 1e3);
  if (!equal)
    std::printf("         the results DIFFER: at most %.1e was expected\n", 1e-4 * largest);
  return equal;
}

void printAccuracy(const LeNet &net, const std::vector<Tensor> &batches, const Tensor &labels) {
  const std::vector<int64_t> truth = labels.to_vector<int64_t>();
  size_t at = 0, right = 0;
  for (const Tensor &logits : run(net, batches))
    for (int64_t kind : argmax(logits, -1).to_vector<int64_t>())
      right += kind == truth[at++];
  std::printf("LeNet-5 with these weights is right about %.2f %% of the images.\n", 100.0 * double(right) / double(at));
}

int demo(const Options &options) {
  const data::LabelledImages set = data::fashion_mnist(options.dir, /*train=*/false);
  const int64_t n = std::min(options.images, int64_t(set.images.dim(0)));
  std::vector<Tensor> batches;
  for (int64_t at = 0; at < n; at += kBatch) {
    batches.push_back(slice(set.images, {at, 0, 0, 0}, {std::min(at + kBatch, n), 1, 28, 28}));
    batches.back().wait();
  }

  LeNet lenet;
  lenet.initialize({{f32, {kBatch, 1, 28, 28}}}, /*seed=*/1);
  nn::Sequential mlp{nn::Flatten(), nn::Dense(256, relu), nn::Dense(128, relu), nn::Dense(10)};
  mlp.initialize({{f32, {kBatch, 1, 28, 28}}}, /*seed=*/2);

  std::printf("Fashion-MNIST, %lld test images in %zu batches of %lld; medians of %d passes over all of them.\n",
              static_cast<long long>(n), batches.size(), static_cast<long long>(kBatch), options.rounds);
  if (options.weights.empty()) {
    std::printf("The weights are random: Tressel does not train networks yet. So no accuracy is shown.\n"
                "--weights FILE takes a safetensors file of trained ones for LeNet-5, with the tensors\n ");
    for (const auto &[name, parameter] : lenet.parameters())
      std::printf(" %s%s", name.c_str(), parameter.shape().str().c_str());
    std::printf("\n");
  } else {
    const LoadReport report = lenet.load_weights(options.weights);
    std::cout << options.weights << ": " << report.str() << std::flush;
    printAccuracy(lenet, batches, set.labels);
  }
  std::printf("\n%-8s %12s %12s %10s %12s %9s %12s\n", "network", "imperative", "hybridized", "speed-up", "difference",
              "programs", "compiling");
  const bool lenetEqual = compare("LeNet-5", lenet, batches, options.rounds);
  const bool mlpEqual = compare("MLP", mlp, batches, options.rounds);
  std::printf("\ndifference: the largest, absolute, between any two logits. programs: recorded and compiled, one per\n"
              "batch size that occurred. compiling: done once, not part of the times.\n");
  return lenetEqual && mlpEqual ? 0 : 1;
}

/// False if the arguments make no sense.
bool parse(int argc, char **argv, Options &out) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (!arg.starts_with("--")) {
      if (!out.dir.empty())
        return false;
      out.dir = arg;
      continue;
    }
    if (++i == argc)
      return false;
    if (arg == "--weights")
      out.weights = argv[i];
    else if (arg == "--images")
      out.images = std::atoll(argv[i]);
    else if (arg == "--rounds")
      out.rounds = std::atoi(argv[i]);
    else
      return false;
  }
  return !out.dir.empty() && out.images > 0 && out.rounds > 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::cerr << "usage: lenet DATASET_DIR [--images N] [--rounds N] [--weights FILE]\n";
    return 2;
  }
  try {
    return demo(options);
  } catch (const Error &e) {
    std::cerr << "lenet: " << e.what() << "\n";
    return 1;
  }
}
