// Our arms of the rows on deployment: `package-bench ROW PACKAGE [PROGRAM]`. Links what a deployed program links, the
// runtime. deploy.py makes the packages.
#include "Bench.h"

#include "runtime/PackageFormat.h"
#include "runtime/Package_generated.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Image.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;
using tressel::bench::Arms;
using tressel::bench::secondsOf;

namespace {

[[noreturn]] void give(const std::string &why) {
  std::cerr << "package-bench: " << why << "\n";
  std::exit(1);
}

/// Opening alone: the file is in the system's cache, and its weights are not read.
Arms startOpen(const std::string &path) {
  return {{"tressel", [=] {
             Package package;
             return secondsOf([&] { package = Package::open(path); });
           }}};
}

/// From the start of a process to the first output that it prints.
Arms startPackage(const std::string &path, const std::string &program) {
  return {{"tressel", [=] {
             int fds[2];
             if (::pipe(fds))
               give("no pipe");
             posix_spawn_file_actions_t actions;
             posix_spawn_file_actions_init(&actions);
             posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
             posix_spawn_file_actions_addclose(&actions, fds[0]);
             const char *arguments[] = {program.c_str(), path.c_str(), nullptr};
             pid_t child = 0;
             std::string text;
             const double seconds = secondsOf([&] {
               if (posix_spawn(&child, program.c_str(), &actions, nullptr, const_cast<char **>(arguments), environ))
                 give("cannot start " + program);
               ::close(fds[1]);
               char piece[512];
               for (ssize_t n; text.find("output ") == text.npos && (n = ::read(fds[0], piece, sizeof piece)) > 0;)
                 text.append(piece, static_cast<size_t>(n));
             });
             int status = 0;
             ::waitpid(child, &status, 0);
             ::close(fds[0]);
             posix_spawn_file_actions_destroy(&actions);
             if (status || text.find("output ") == text.npos)
               give(program + " failed: " + text);
             return seconds;
           }}};
}

/// What a context holds over the least that any plan for its order of commands needs, without what it derives from weights.
Arms memoryBound(const std::string &path) {
  return {{"tressel", [=] {
             const Package package = Package::open(path);
             const Context context = package.context();
             return static_cast<double>(context.arenaBytes()) /
                    static_cast<double>(package.schedule().peakLowerBoundBytes);
           }}};
}

/// The generated code in a package of one function for one level.
std::span<const std::byte> codeOf(const std::vector<std::byte> &file) {
  const auto *package = fb::GetPackage(reinterpret_cast<const uint8_t *>(file.data()) + sizeof(PackageHeader));
  const fb::Section *section = package->functions()->Get(0)->images()->Get(0)->section();
  return std::span(file).subspan(section->offset(), section->bytes());
}

constexpr int kThreads = 16, kCalls = 200000;

/// Seconds of processor time per call, when `kThreads` threads make their calls side by side.
template <typename Fn> double secondsPerCall(Fn inThread) {
  const double elapsed = secondsOf([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] { inThread(i); });
    for (std::thread &thread : threads)
      thread.join();
  });
  const int cores = std::min<int>(kThreads, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  return elapsed * cores / kThreads / kCalls;
}

/// A call through a context of the thread's own, over a call of the kernel that it comes to.
Arms callThreads(const std::string &path) {
  struct Caller {
    std::vector<std::vector<float>> tensors; // inputs, then outputs
    std::vector<const void *> inputs;
    std::vector<void *> outputs, operands;
    Context context;
  };
  const Package package = Package::open(path);
  const Schedule &s = package.schedule();
  if (s.step.commands.size() != 1 || s.kernels.size() != 1 || s.kernels[0].provider != "generated")
    give("the program is not one generated kernel");
  const std::vector<std::byte> file = readFile(path);
  auto image = Image::load(codeOf(file));
  const auto fn = reinterpret_cast<KernelFn>(image->find(s.kernels[0].symbol));
  if (!fn)
    give("the kernel is not in the image");
  auto callers = std::make_shared<std::vector<Caller>>();
  for (int i = 0; i < kThreads; ++i) {
    Caller &caller = callers->emplace_back(Caller{.context = package.context()});
    for (const auto *ports : {&s.inputs, &s.outputs})
      for (const ValueDesc &port : *ports)
        caller.tensors.emplace_back(static_cast<size_t>(port.type.shape.numElements()), 1.0f);
    for (size_t t = 0; t < caller.tensors.size(); ++t)
      if (t < s.inputs.size())
        caller.inputs.push_back(caller.tensors[t].data());
      else
        caller.outputs.push_back(caller.tensors[t].data());
    for (const Operand &operand : s.step.operands) {
      const BufferDesc &b = s.buffers[operand.buffer];
      caller.operands.push_back(caller.tensors[b.index + (b.space == Space::Output ? s.inputs.size() : 0)].data());
    }
  }
  const int64_t range = s.kernels[0].range;
  auto compiled = [=] {
    return secondsPerCall([&](int i) {
      Caller &caller = (*callers)[static_cast<size_t>(i)];
      for (int k = 0; k < kCalls; ++k)
        caller.context.run(caller.inputs, caller.outputs);
    });
  };
  auto direct = [=] {
    return secondsPerCall([&, held = image](int i) {
      KernelArgs args{};
      args.buffers = (*callers)[static_cast<size_t>(i)].operands.data();
      for (int k = 0; k < kCalls; ++k)
        if (fn(&args, 0, range) != kKernelOk)
          give("the kernel failed");
    });
  };
  return {{"tressel", [=] { return 1e6 * (compiled() - direct()); }}, {"direct", [=] { return 1e6 * direct(); }}};
}

Arms armsOf(const std::string &row, const std::string &path, const std::string &program) {
  if (row == "start.open")
    return startOpen(path);
  if (row == "start.package")
    return startPackage(path, program);
  if (row == "memory.resnet50.bound")
    return memoryBound(path);
  if (row == "call.threads16")
    return callThreads(path);
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const Arms arms = argc > 2 ? armsOf(argv[1], argv[2], argc > 3 ? argv[3] : "") : Arms();
  if (arms.empty()) {
    std::cerr << "usage: package-bench ROW PACKAGE [PROGRAM]   (deploy.py calls it)\n";
    return 2;
  }
  return tressel::bench::serve(arms);
}
