#include "Compilation.h"
#include "Networks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tressel::bench {
namespace {

namespace fs = std::filesystem;

/// `compileOnce` with every cache of the process emptied before, and none on disk; the first request warms the compiler itself
/// (tables of targets and ops), as in any process that compiles more than once.
Arms compileCold(std::function<void()> compileOnce) {
  setenv("TRESSEL_CACHE_LIMIT", "0", 1);
  return {{"tressel", [=] {
             clear_compile_caches();
             return secondsOf(compileOnce);
           }}};
}

/// Seconds of a whole process `tressel ARGUMENTS`, from its start to its end.
double runTool(const std::vector<std::string> &arguments) {
  const std::string tool = fs::canonical("/proc/self/exe").parent_path() / "tressel";
  std::vector<char *> argv{const_cast<char *>(tool.c_str())};
  for (const std::string &a : arguments)
    argv.push_back(const_cast<char *>(a.c_str()));
  argv.push_back(nullptr);
  return secondsOf([&] {
    pid_t pid;
    int status = 1;
    if (posix_spawn(&pid, tool.c_str(), nullptr, nullptr, argv.data(), environ) != 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
      std::cerr << "tressel failed\n";
      std::exit(1);
    }
  });
}

/// The model that deploy.py has made for this row.
std::string givenModel() {
  const char *model = std::getenv("TRESSEL_BENCH_MODEL");
  if (!model) {
    std::cerr << "this row is run by deploy.py, which makes its model\n";
    std::exit(1);
  }
  return model;
}

/// A network of `layers` residual layers, each with weights of its own.
void compileDeep(int layers) {
  constexpr int64_t width = 32;
  std::vector<Tensor> weights;
  for (int i = 0; i < layers; ++i)
    weights.push_back(rng::normal({width, width}, static_cast<uint64_t>(i)));
  auto net = jit([&](Tensor x) {
    for (const Tensor &w : weights)
      x = x + gelu(matmul(x, w) / 6.0f);
    return x;
  });
  net.compile(TensorType{f32, {8, width}});
}

} // namespace

Arms compileArms(const std::string &row) {
  if (row == "compile.add1.cold")
    return compileCold([f = jit([](Tensor x) { return x + 1.0f; })] { f.compile(TensorType{f32, {2, 2}}); });
  if (row == "compile.lenet.cold") {
    nn::Sequential net = lenet();
    net.initialize({{f32, {64, 1, 28, 28}}}, 1);
    net.hybridize();
    return compileCold([=] { net.compile({{f32, {64, 1, 28, 28}}}); });
  }
  if (row == "compile.resnet50.cold")
    return {{"tressel", [model = givenModel()] { return runTool({"compile", model, "-o", "/dev/null", "--no-cache"}); }}};
  if (row == "compile.resnet50.warm") {
    std::string folder = (fs::temp_directory_path() / "tressel-bench-XXXXXX").string();
    setenv("TRESSEL_CACHE_DIR", mkdtemp(folder.data()), 1);
    const auto removed = std::shared_ptr<void>(nullptr, [folder](void *) { fs::remove_all(folder); });
    const std::string model = givenModel();
    runTool({"compile", model, "-o", "/dev/null"});
    return {{"tressel", [model, removed] { return runTool({"compile", model, "-o", "/dev/null"}); }}};
  }
  if (row == "compile.linear")
    return {{"tressel", [] {
               constexpr int layers = 500;
               setenv("TRESSEL_CACHE_LIMIT", "0", 1);
               double once = INFINITY, twice = INFINITY; // the best of three, in turn: what disturbs one alone would be a factor
               for (int i = 0; i < 3; ++i) {
                 once = std::min(once, secondsOf([] { compileDeep(layers); }));
                 twice = std::min(twice, secondsOf([] { compileDeep(2 * layers); }));
               }
               return twice / once;
             }},
            {"seconds", [] { return secondsOf([] { compileDeep(1000); }); }}};
  return {};
}

} // namespace tressel::bench
