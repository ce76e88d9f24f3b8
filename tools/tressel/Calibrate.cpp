// tressel calibrate: this machine's figures, measured with the kernels that programs run, as a machine file.
#include "tools/tressel/Program.h"
#include "tools/tressel/Tensors.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <unistd.h>

namespace tressel::tool {
namespace {

using runtime::DeviceModel;
using runtime::KernelDesc;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Of several measurements; half of them lie between `least` and `most`.
struct Spread {
  double median = 0, least = 0, most = 0;
};
Spread spreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return {values[n / 2], values[n / 4], values[n - 1 - n / 4]};
}

/// A kernel of a program, alone: what it does, and how long that takes.
struct Sample {
  DType type = f32;
  std::string provider;
  double flops = 0, bytes = 0;
  bool isSplit = false; ///< over the threads
  Spread seconds;
};

/// A folder for the programs, gone with this.
class Folder {
public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tressel-calibrate-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw EnvironmentError("there is no place for temporary files: " + name);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  std::filesystem::path path;
};

/// A program of the graph dialect, with inputs of which no value is extreme.
class Measured {
public:
  Measured(const std::filesystem::path &folder, const std::string &text) {
    const std::string path = folder / "program.mlir";
    writeFile(path, text);
    program_ = compileModel({.path = path, .useCache = false});
    context_.emplace(program_.executable);
    const runtime::Schedule &s = program_.schedule();
    for (const runtime::ValueDesc &input : s.inputs)
      inputs_.push_back(randomTensor(input.type, 1, input.name));
    for (const runtime::ValueDesc &output : s.outputs)
      outputs_.push_back(randomTensor(output.type, 2, output.name));
    for (const HostTensor &t : inputs_)
      in_.push_back(t.data.get());
    for (const HostTensor &t : outputs_)
      out_.push_back(t.data.get());
  }
  const runtime::Schedule &schedule() const { return program_.schedule(); }
  void run() { context_->run(in_, out_); }

  /// Its kernels, each over at least 7 calls and 30 ms after some that are not counted.
  std::vector<Sample> kernels() {
    runtime::Profile profile;
    context_->setProfile(&profile);
    const runtime::Schedule &s = schedule();
    std::vector<std::vector<double>> times(s.step.commands.size());
    for (auto start = Clock::now(); secondsSince(start) < 10e-3;)
      run();
    const auto start = Clock::now();
    for (int calls = 0; calls < 7 || (secondsSince(start) < 30e-3 && calls < 2000); ++calls) {
      run();
      for (size_t i = 0; i < times.size(); ++i)
        times[i].push_back(static_cast<double>(profile.commands[i].endNs - profile.commands[i].startNs) * 1e-9);
    }
    context_->setProfile(nullptr);
    std::vector<Sample> samples;
    for (size_t i = 0; i < times.size(); ++i) {
      const runtime::Command &c = s.step.commands[i];
      if (c.kind != runtime::CommandKind::Launch)
        continue;
      const KernelDesc &k = s.kernels[c.kernel];
      samples.push_back({s.buffers[s.step.operands[c.firstOperand].buffer].type.dtype, k.provider,
                         static_cast<double>(k.flops), static_cast<double>(k.bytes), k.range > k.grain,
                         spreadOf(times[i])});
    }
    return samples;
  }

private:
  ReadyProgram program_;
  std::optional<runtime::Context> context_;
  std::vector<HostTensor> inputs_, outputs_;
  std::vector<const void *> in_;
  std::vector<void *> out_;
};

std::string tensor(std::initializer_list<int64_t> sizes, DType type) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  const std::string name(nameOf(type));
  return text + (name == "u8" ? "ui8" : name) + ">";
}
std::string program(const std::vector<std::string> &inputs, const std::string &op, const std::string &output) {
  std::string head = "func.func @main(", names, types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i), comma = i ? ", " : "";
    head += comma + "%" + name + ": " + inputs[i] + " {tressel.name = \"" + name + "\"}";
    names += comma + "%" + name;
    types += comma + inputs[i];
  }
  return head + ") -> (" + output + " {tressel.name = \"y\"}) {\n  %y = " + op.substr(0, op.find('@')) + " " + names +
         (op.find('@') == std::string::npos ? "" : op.substr(op.find('@') + 1)) + " : (" + types + ") -> " + output +
         "\n  return %y : " + output + "\n}\n";
}

class Calibration {
public:
  explicit Calibration(ProgressLine &progress) : progress_(progress) {
    machine_ = runtime::hostMachine();
    machine_.name = "calibrated";
    machine_.sources.clear();
    threads_ = runtime::ThreadPool::global().numThreads();
    cpu().threads = threads_;
  }

  runtime::MachineModel run() {
    bandwidth();
    arithmetic();
    calls();
    try {
      return runtime::parseMachine(runtime::toJson(machine_));
    } catch (const InputError &error) {
      throw EnvironmentError("what was measured is no machine (" + error.message() +
                             "): measure again while it does nothing else");
    }
  }

private:
  DeviceModel &cpu() { return machine_.devices.front(); }
  /// A figure, with the range that it lay in.
  void cite(const std::string &figure, const std::string &how, const Spread &range) {
    char text[96];
    std::snprintf(text, sizeof text, ", median %.3g, half of them from %.3g to %.3g", range.median, range.least,
                  range.most);
    machine_.sources["cpu/" + figure] = "measured: " + how + text;
    if (range.most > 1.5 * range.least && figure.find("efficiency") == std::string::npos) // kernels differ
      note(figure + ": half of the measurements lie between " + spell(range.least) + " and " + spell(range.most) +
           "; the machine does other work, or changes its clock");
  }
  static std::string spell(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  std::vector<Sample> measure(const std::string &text) { return Measured(folder_.path, text).kernels(); }
  /// Rates of the whole machine, where a kernel of one thread reached so much.
  double whole(double rate, const Sample &sample) const { return sample.isSplit ? rate : rate * threads_; }
  Spread rateOf(double work, const Sample &s) const {
    return {whole(work / s.seconds.median, s), whole(work / s.seconds.most, s), whole(work / s.seconds.least, s)};
  }

  /// Sums of two tensors, from a few kilobytes to more than any cache holds.
  void bandwidth() {
    std::vector<std::pair<double, Spread>> rates;
    for (int64_t n = int64_t(1) << 13; n <= int64_t(1) << 24; n *= 2) {
      progress_.show("memory: " + std::to_string(n * 12 >> 10) + " KiB");
      const std::string type = tensor({n}, f32);
      for (const Sample &s : measure(program({type, type}, "tressel.add", type)))
        rates.emplace_back(s.bytes, rateOf(s.bytes, s));
    }
    if (rates.size() < 4)
      throw EnvironmentError("the memory's rate cannot be measured: the program has no kernels");
    const Spread far = rates.back().second;
    // The rate of caches is that of a megabyte a thread and less.
    std::vector<double> near;
    for (const auto &[bytes, rate] : rates)
      if (bytes <= threads_ * 1e6)
        near.push_back(rate.median);
    const Spread cached = spreadOf(near);
    cpu().bytesPerSecond = far.median;
    cite("bytes_per_second", "x + y, 192 MiB", far);
    if (cached.median <= far.median)
      throw EnvironmentError(
          "the caches look no faster than memory: measure again while the machine does nothing else");
    cpu().cachedBytesPerSecond = cached.median;
    cite("cached_bytes_per_second", "x + y, up to 1 MB a thread", cached);
    double size = 0;
    for (const auto &[bytes, rate] : rates)
      if (rate.median >= std::sqrt(cached.median * far.median))
        size = std::max(size, bytes);
    cpu().cacheBytes = size;
    machine_.sources["cpu/cache_bytes"] =
        "measured: the largest x + y that is nearer to the caches' rate than to memory's";
  }

  /// Products by type, then what else is bound by arithmetic, by provider.
  void arithmetic() {
    std::map<DType, std::vector<Sample>> products;
    for (DType type : {f32, f64, bf16, f16, i8, i32})
      for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{64, 256, 256}, {128, 512, 512}, {256, 768, 768}}) {
        progress_.show("products of " + std::string(nameOf(type)));
        if ((type == i8 || type == i32) && m > 64)
          continue;
        for (const Sample &s :
             measure(program({tensor({m, k}, type), tensor({k, n}, type)}, "tressel.matmul", tensor({m, n}, type))))
          if (s.flops >= static_cast<double>(m * k * n))
            products[type].push_back(s);
      }
    for (const auto &[type, samples] : products) {
      if (samples.empty())
        continue;
      Spread best;
      for (const Sample &s : samples)
        if (const Spread rate = rateOf(s.flops, s); rate.median > best.median)
          best = rate;
      cpu().flopsPerSecond[type] = best.median;
      cite("flops_per_second/" + std::string(nameOf(type)), "the best of some products", best);
    }
    if (!cpu().flopsPerSecond.contains(f32))
      throw EnvironmentError("no product of f32 could be measured");
    std::vector<Sample> samples = products[f32];
    auto add = [&](const std::string &text) {
      for (const Sample &s : measure(text))
        samples.push_back(s);
    };
    const std::string rows = tensor({256, 512}, f32), image = tensor({1, 64, 56, 56}, f32);
    for (const char *op : {"exp", "tanh", "gelu", "sigmoid", "log"}) {
      progress_.show(op);
      add(program({rows}, std::string("tressel.") + op, rows));
    }
    progress_.show("softmax");
    add(program({rows}, "tressel.softmax@ {axis = -1 : i64}", rows));
    progress_.show("convolution");
    add(program({image, tensor({64, 64, 3, 3}, f32)},
                "tressel.conv@ {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>}", image));
    // The share of the limit that each provider reaches where arithmetic bounds it.
    std::map<std::string, std::vector<double>> shares;
    // Some elementwise kernels do what counts as more work than the best product does.
    Spread best;
    for (const Sample &s : samples)
      if (const Spread rate = rateOf(s.flops, s); s.type == f32 && rate.median > best.median)
        best = rate;
    const double limit = cpu().flopsPerSecond[f32] = best.median;
    cite("flops_per_second/f32", "the best of some kernels", best);
    for (const Sample &s : samples) {
      const double moving = s.bytes / (s.bytes <= cpu().cacheBytes ? cpu().cachedBytesPerSecond : cpu().bytesPerSecond);
      const double all = s.seconds.median / (s.isSplit ? 1 : threads_);
      if (s.type == f32 && s.flops > 0 && all > 1.5 * moving)
        shares[s.provider].push_back(std::min(1.0, s.flops / all / limit));
    }
    cpu().efficiency.clear();
    for (const auto &[provider, list] : shares) {
      const Spread share = spreadOf(list);
      cpu().efficiency[provider == "generated" ? "" : provider] = share.median;
      cite("efficiency/" + (provider == "generated" ? "other" : provider), "of kernels of " + provider, share);
    }
  }

  /// A kernel with nothing to do; and what it costs to have the other threads begin.
  void calls() {
    progress_.show("calls");
    const std::string few = tensor({4}, f32);
    std::vector<double> times;
    Measured tiny(folder_.path, program({few}, "tressel.negative", few));
    for (int round = 0; round < 9; ++round) {
      constexpr int calls = 5000;
      const auto start = Clock::now();
      for (int i = 0; i < calls; ++i)
        tiny.run();
      times.push_back(secondsSince(start) / calls);
    }
    const Spread call = spreadOf(times);
    cpu().commandSeconds = call.median;
    cite("command_seconds", "a call of one kernel of four elements", call);
    if (threads_ == 1)
      return;
    times.clear();
    for (int round = 0; round < 31; ++round) {
      usleep(2000); // so that the others sleep, as between calls
      const auto start = Clock::now();
      runtime::ThreadPool::global().parallelFor(threads_, 1, [](int64_t, int64_t, int) {});
      times.push_back(secondsSince(start));
    }
    const Spread wake = spreadOf(times);
    cpu().splitSeconds = wake.median;
    cite("split_seconds", "nothing to do for each thread, after 2 ms without work", wake);
  }

  ProgressLine &progress_;
  Folder folder_;
  runtime::MachineModel machine_;
  int threads_ = 1;
};

} // namespace

int calibrateCommand(const CalibrateArgs &args) {
  ProgressLine progress;
  const runtime::MachineModel machine = Calibration(progress).run();
  writeFile(args.output, runtime::toJson(machine));
  return kOk;
}

} // namespace tressel::tool
