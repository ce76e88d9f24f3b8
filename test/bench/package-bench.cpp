// Our arms of the rows on deployment: `package-bench ROW PACKAGE [PROGRAM]`. Links what a deployed program links, the
// runtime. deploy.py makes the packages.
#include "Bench.h"
#include "Values.h"

#include "runtime/package/PackageFormat.h"
#include "runtime/Package_generated.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Image.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;
using tressel::bench::Arm;
using tressel::bench::Arms;
using tressel::bench::Outputs;
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
  auto text = std::make_shared<std::string>();
  auto run = [=] {
    int fds[2];
    if (::pipe(fds))
      give("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    const char *arguments[] = {program.c_str(), path.c_str(), nullptr};
    pid_t child = 0;
    text->clear();
    const double seconds = secondsOf([&] {
      if (posix_spawn(&child, program.c_str(), &actions, nullptr, const_cast<char **>(arguments), environ))
        give("cannot start " + program);
      ::close(fds[1]);
      char piece[512];
      for (ssize_t n; text->find("output ") == text->npos && (n = ::read(fds[0], piece, sizeof piece)) > 0;)
        text->append(piece, static_cast<size_t>(n));
    });
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(fds[0]);
    posix_spawn_file_actions_destroy(&actions);
    if (status || text->find("output ") == text->npos)
      give(program + " failed: " + *text);
    return seconds;
  };
  // It prints "output NAME SIZES: FIRST", the first element.
  return {{"tressel", Arm(run, [=] {
             run();
             const size_t colon = text->find(':', text->find("output "));
             return Outputs{colon == text->npos ? NAN : std::strtof(text->c_str() + colon + 1, nullptr)};
           })}};
}

/// The most bytes of arenas that hold what a later command of the step reads, or what the command itself writes, found
/// from the commands' accesses alone: where ranges begin and end cuts an arena into segments, and a segment is live
/// from a write to the last read before the next write.
int64_t mostLiveBytes(const Schedule &s) {
  if (!s.bodies.empty() || !s.dims.empty())
    give("liveness is found for straight programs of fixed sizes");
  const size_t count = s.step.commands.size();
  std::vector<int64_t> live(count, 0);
  for (uint32_t arena = 0; arena < s.arenas.size(); ++arena) {
    std::vector<int64_t> cuts;
    for (const BufferDesc &b : s.buffers)
      if (b.space == Space::Arena && b.index == arena)
        cuts.insert(cuts.end(), {b.offset.number(), (b.offset + b.bytes).number()});
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      int64_t since = -1,
              last = -1; // of the value that is there: the command that wrote it, the last one that touched it
      auto ends = [&] {
        for (int64_t c = since; since >= 0 && c <= last; ++c)
          live[static_cast<size_t>(c)] += cuts[i + 1] - cuts[i];
      };
      for (size_t c = 0; c < count; ++c) {
        bool reads = false, writes = false;
        const Command &command = s.step.commands[c];
        for (uint32_t o = command.firstOperand; o < command.firstOperand + command.numOperands; ++o) {
          const BufferDesc &b = s.buffers[s.step.operands[o].buffer];
          if (b.space != Space::Arena || b.index != arena || b.offset > cuts[i] || b.offset + b.bytes < cuts[i + 1])
            continue;
          reads |= s.step.operands[o].access != Access::Write;
          writes |= s.step.operands[o].access == Access::Write;
        }
        if (reads)
          last = static_cast<int64_t>(c);
        if (writes) {
          if (reads) // in its place: the new value follows the old one without more bytes
            --last;
          ends();
          since = last = static_cast<int64_t>(c);
        }
      }
      ends();
    }
  }
  return *std::ranges::max_element(live);
}

/// What a context holds over the bytes that are live at once in its order of commands, without what it derives from
/// weights.
Arms memoryBound(const std::string &path) {
  return {{"tressel", [=] {
             const Package package = Package::open(path);
             const Context context = package.context();
             return static_cast<double>(context.arenaBytes()) / static_cast<double>(mostLiveBytes(package.schedule()));
           }}};
}

/// The generated code in a package of one function for one level.
std::span<const std::byte> codeOf(const std::vector<std::byte> &file) {
  const auto *package = fb::GetPackage(reinterpret_cast<const uint8_t *>(file.data()) + sizeof(PackageHeader));
  const fb::Section *section = package->functions()->Get(0)->images()->Get(0)->section();
  return std::span(file).subspan(section->offset(), section->bytes());
}

constexpr int kThreads = 16, kCalls = 200000;

int numCores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

/// Seconds of processor time per call, when so many threads make their calls side by side.
template <typename Fn> double secondsPerThreadCall(Fn inThread, int count = kThreads) {
  const double elapsed = secondsOf([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] { inThread(i); });
    for (std::thread &thread : threads)
      thread.join();
  });
  return elapsed * std::min(count, numCores()) / count / kCalls;
}

/// A call through a context of the thread's own, over a call of the kernel that it comes to. Or, for `scaling`, the
/// processor time of a call with one thread over that with as many as there are cores, which locks and shared lines
/// would make less than 1.
Arms callThreads(const std::string &path, bool scaling) {
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
        caller.tensors.emplace_back(static_cast<size_t>(port.type.shape.numElements()), 0.0f);
    for (size_t t = 0; t < s.inputs.size(); ++t)
      for (size_t e = 0; e < caller.tensors[t].size(); ++e)
        caller.tensors[t][e] = tressel::bench::valueAt(tressel::bench::seedOf(s.inputs[t].name), e);
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
  const int64_t range = s.kernels[0].range.number();
  auto compiled = [=](int threads) {
    return secondsPerThreadCall(
        [&](int i) {
          Caller &caller = (*callers)[static_cast<size_t>(i)];
          for (int k = 0; k < kCalls; ++k)
            caller.context.run(caller.inputs, caller.outputs);
        },
        threads);
  };
  auto direct = [=] {
    return secondsPerThreadCall([&, held = image](int i) {
      KernelArgs args{};
      args.buffers = (*callers)[static_cast<size_t>(i)].operands.data();
      for (int k = 0; k < kCalls; ++k)
        if (fn(&args, 0, range) != kKernelOk)
          give("the kernel failed");
    });
  };
  // Of all threads, one behind the other.
  auto outputs = [=](auto call) {
    return [=] {
      Outputs all;
      for (Caller &caller : *callers)
        std::ranges::fill(caller.tensors.back(), 0.0f);
      call();
      for (const Caller &caller : *callers)
        all.insert(all.end(), caller.tensors.back().begin(), caller.tensors.back().end());
      return all;
    };
  };
  const Arm compiledOnAll([=] { return 1e6 * (compiled(kThreads) - direct()); }, outputs([=] { compiled(kThreads); }));
  if (scaling)
    return {{"tressel", Arm([=] { return compiled(1) / compiled(std::min(kThreads, numCores())); },
                            outputs([=] { compiled(kThreads); }))}};
  return {{"tressel", compiledOnAll}, {"direct", Arm([=] { return 1e6 * direct(); }, outputs(direct))}};
}

/// Elements of any type as f32.
void append(Outputs &out, const void *data, const TensorType &type) {
  auto of = [&]<typename T>(const T *values) { out.insert(out.end(), values, values + type.shape.numElements()); };
  switch (type.dtype) {
  case f32:
    return of(static_cast<const float *>(data));
  case f64:
    return of(static_cast<const double *>(data));
  case i32:
    return of(static_cast<const int32_t *>(data));
  case i64:
    return of(static_cast<const int64_t *>(data));
  case i8:
    return of(static_cast<const int8_t *>(data));
  case u8:
  case bool_:
    return of(static_cast<const uint8_t *>(data));
  case f16:
    return of(static_cast<const _Float16 *>(data));
  default:
    give("an output of type " + type.str());
  }
}

/// A model's calls; FOLDER/0.bin and so on hold the inputs. The package, which is this process's own, is removed.
Arms infer(const std::string &path, const std::string &folder) {
  struct Call {
    Package package;
    Context context;
    std::vector<std::vector<std::byte>> held, results;
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
  };
  Package package = Package::open(path);
  auto call = std::make_shared<Call>(Call{.package = package, .context = package.context()});
  std::remove(path.c_str());
  const Schedule &s = call->package.schedule();
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    call->held.push_back(readFile(folder + "/" + std::to_string(i) + ".bin"));
    if (static_cast<int64_t>(call->held.back().size()) != s.inputs[i].type.bytes())
      give("input " + s.inputs[i].name + " is " + s.inputs[i].type.str() + ", but its file has " +
           std::to_string(call->held.back().size()) + " bytes");
    call->inputs.push_back(call->held.back().data());
  }
  for (const ValueDesc &output : s.outputs) {
    call->results.emplace_back(static_cast<size_t>(output.type.bytes()));
    call->outputs.push_back(call->results.back().data());
  }
  auto run = [call] { call->context.run(call->inputs, call->outputs); };
  return {{"tressel", Arm([=] { return tressel::bench::secondsPerCall(run, 50e-3); },
                          [=] {
                            run();
                            Outputs all;
                            const Schedule &s = call->package.schedule();
                            for (size_t i = 0; i < s.outputs.size(); ++i)
                              append(all, call->results[i].data(), s.outputs[i].type);
                            return all;
                          })}};
}

Arms armsOf(const std::string &row, const std::string &path, const std::string &program) {
  if (row == "infer")
    return infer(path, program);
  if (row == "start.open")
    return startOpen(path);
  if (row == "start.package")
    return startPackage(path, program);
  if (row == "memory.resnet50.bound" || row == "memory.train.resnet18.bound")
    return memoryBound(path);
  if (row == "call.threads16" || row == "call.scaling")
    return callThreads(path, row == "call.scaling");
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const Arms arms = argc > 2 ? armsOf(argv[1], argv[2], argc > 3 ? argv[3] : "") : Arms();
  if (arms.empty()) {
    std::cerr << "usage: package-bench ROW PACKAGE [PROGRAM or FOLDER]   (deploy.py and infer.py call it)\n";
    return 2;
  }
  return tressel::bench::serve(arms);
}
