// tressel calibrate: this machine's figures, measured with the kernels that programs run, as a machine file.
#include "tools/tressel/Program.h"
#include "tools/tressel/Tensors.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>
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

/// Of the calls of a kernel: what else the machine does only ever adds, so the time that a quarter of them stay below.
Spread timeOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return {values[n / 4], values[n / 10], values[n / 2]};
}

/// A kernel of a program, alone: what it does, and how long that takes.
struct Sample {
  DType type = f32;
  std::string provider;
  double flops = 0, bytes = 0;
  int64_t tasks = 1;
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
    std::vector<void *> states;
    for (const runtime::StateDesc &state : s.states)
      if (state.kind != runtime::StateKind::Derived)
        states.push_back(states_.emplace_back(randomTensor(state.type, 3, state.name)).data.get());
    context_->bindStates(states);
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
                         static_cast<double>(k.flops), static_cast<double>(k.bytes),
                         (k.range + k.grain - 1) / std::max<int64_t>(1, k.grain), timeOf(times[i])});
    }
    return samples;
  }

private:
  ReadyProgram program_;
  std::optional<runtime::Context> context_;
  std::vector<HostTensor> inputs_, outputs_, states_;
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
/// A program of one op, "tressel.add@ {attributes}"; its inputs from number `states` on are states.
std::string program(const std::vector<std::string> &inputs, const std::string &op, const std::string &output,
                    size_t states = SIZE_MAX) {
  std::string head = "func.func @main(", names, types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i), comma = i ? ", " : "";
    head += comma + "%" + name + ": " + inputs[i] + (i < states ? " {tressel.name = \"" : " {tressel.state = \"") +
            name + "\"}";
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
    calls();
    bandwidth();
    arithmetic();
    movement();
    contention();
    try {
      return runtime::parseMachine(runtime::toJson(machine_));
    } catch (const InputError &error) {
      throw EnvironmentError("what was measured is no machine (" + error.message() +
                             "): measure again while it does nothing else");
    }
  }

private:
  DeviceModel &cpu() { return machine_.devices.front(); }
  const DeviceModel &cpu() const { return machine_.devices.front(); }
  /// A figure, with the range that it lay in.
  void cite(const std::string &figure, const std::string &how, const Spread &range) {
    char text[96];
    std::snprintf(text, sizeof text, ", %.3g, mostly from %.3g to %.3g", range.median, range.least, range.most);
    machine_.sources["cpu/" + figure] = "measured: " + how + text;
    if (range.most > 1.5 * range.least && figure.find("efficiency") == std::string::npos) // kernels differ
      note(figure + ": the measurements lie between " + spell(range.least) + " and " + spell(range.most) +
           "; the machine does other work, or changes its clock");
  }
  static std::string spell(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  std::vector<Sample> measure(const std::string &text) { return Measured(folder_.path, text).kernels(); }
  /// How long all threads would take for it, had each its part.
  double wholeSeconds(const Sample &s, double seconds) const {
    const auto threads = std::min<int64_t>(s.tasks, threads_), parts = std::min<int64_t>(s.tasks, 4 * threads);
    const double share = static_cast<double>((parts + threads - 1) / threads * threads) / static_cast<double>(parts);
    const double calls = cpu().commandSeconds + (threads > 1 ? cpu().splitSeconds : 0);
    return std::max(seconds - calls, 0.1 * seconds) / share * static_cast<double>(threads) / threads_;
  }
  /// Whether most of its time is work.
  bool tells(const Sample &s) const {
    return s.seconds.median > 4 * (cpu().commandSeconds + (s.tasks > 1 ? cpu().splitSeconds : 0));
  }
  double wholeSeconds(const Sample &s) const { return wholeSeconds(s, s.seconds.median); }
  /// Rates of the whole machine.
  Spread rateOf(double work, const Sample &s) const {
    return {work / wholeSeconds(s), work / wholeSeconds(s, s.seconds.most), work / wholeSeconds(s, s.seconds.least)};
  }
  /// As if every thread worked on so many bytes.
  double wholeBytes(const Sample &s) const {
    return s.bytes * threads_ / static_cast<double>(std::min<int64_t>(s.tasks, threads_));
  }

  /// Sums of two tensors, from a few kilobytes to more than most caches hold: plateaus of the rate are caches.
  void bandwidth() {
    struct Point {
      double bytes;
      Spread rate;
    };
    std::vector<Point> points;
    for (double size = 1 << 10; size <= 1 << 24; size *= std::sqrt(2)) {
      const auto n = static_cast<int64_t>(size) / 64 * 64;
      progress_.show("memory: " + std::to_string(n * 12 >> 10) + " KiB");
      const std::string type = tensor({n}, f32);
      for (const Sample &s : measure(program({type, type}, "tressel.add", type)))
        if (tells(s))
          points.push_back({wholeBytes(s), rateOf(s.bytes, s)});
    }
    if (points.size() < 8)
      throw EnvironmentError("the memory's rate cannot be measured: the program has no kernels");
    std::ranges::sort(points, {}, &Point::bytes);
    const Spread far = points.back().rate;
    cpu().bytesPerSecond = far.median;
    cite("bytes_per_second", "x + y, 192 MiB", far);
    // A larger tensor is not faster than a smaller one, but for what disturbs the measurement.
    for (size_t i = 0; i + 2 < points.size(); ++i) { // one that is faster than both of its neighbours was
      const double least = std::max(points[i].rate.median, points[i + 2].rate.median);
      points[i + 1].rate.median = std::min(points[i + 1].rate.median, least);
    }
    for (size_t i = points.size(); i-- > 1;)
      points[i - 1].rate.median = std::max(points[i - 1].rate.median, points[i].rate.median);
    cpu().caches.clear();
    for (size_t i = 0; i < points.size();) {
      size_t end = i;
      std::vector<double> rates;
      for (; end < points.size() && points[end].rate.median >= 0.8 * points[i].rate.median; ++end)
        rates.push_back(points[end].rate.median);
      const Spread rate = spreadOf(rates);
      // One point alone is on the way from one plateau to the next.
      if (rate.median > 1.25 * far.median && (end - i > 1 || i == 0)) {
        cpu().caches.push_back({points[end - 1].bytes, rate.median});
        cite("caches/" + std::to_string(cpu().caches.size() - 1) + "/bytes_per_second",
             "x + y, up to " + std::to_string(static_cast<int64_t>(points[end - 1].bytes)) + " bytes", rate);
      }
      i = end;
    }
    if (cpu().caches.empty())
      throw EnvironmentError(
          "the caches look no faster than memory: measure again while the machine does nothing else");
  }

  double movingSeconds(const Sample &s) const { return s.bytes / cpu().bandwidth(s.bytes); }

  /// Products by type, then what else is bound by arithmetic, by provider.
  void arithmetic() {
    std::map<DType, std::vector<Sample>> products;
    for (DType type : {f32, f64, bf16, f16, i8, i32})
      for (auto [m, k, n] :
           {std::tuple<int64_t, int64_t, int64_t>{64, 256, 256}, {16, 512, 768}, {128, 512, 512}, {256, 768, 768}})
        for (size_t states : {SIZE_MAX, size_t(1)}) { // weights are packed once, other operands in each call
          progress_.show("products of " + std::string(nameOf(type)));
          if ((type == i8 || type == i32) && m > 64)
            continue;
          for (const Sample &s : measure(program({tensor({m, k}, type), tensor({k, n}, type)}, "tressel.matmul",
                                                 tensor({m, n}, type), states)))
            if (s.flops >= static_cast<double>(m * k * n))
              products[type].push_back(s);
        }
    for (const auto &[type, samples] : products) {
      if (samples.empty())
        continue;
      Spread best;
      for (const Sample &s : samples)
        if (const Spread rate = rateOf(s.flops, s); tells(s) && rate.median > best.median)
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
    for (auto [m, n] : {std::pair<int64_t, int64_t>{32, 256}, {256, 512}}) {
      const std::string rows = tensor({m, n}, f32);
      for (const char *op : {"exp", "tanh", "gelu", "sigmoid", "log", "silu", "erf"}) {
        progress_.show(op);
        add(program({rows}, std::string("tressel.") + op, rows));
      }
      progress_.show("softmax");
      add(program({rows}, "tressel.softmax@ {axis = -1 : i64}", rows));
    }
    progress_.show("convolution");
    for (auto [channels, size, window] :
         {std::tuple<int64_t, int64_t, int64_t>{64, 56, 3}, {128, 16, 3}, {64, 28, 1}}) {
      const std::string image = tensor({1, channels, size, size}, f32), pad = std::to_string(window / 2);
      add(program({image, tensor({channels, channels, window, window}, f32)},
                  "tressel.conv@ {pad_high = array<i64: " + pad + ", " + pad + ">, pad_low = array<i64: " + pad + ", " +
                      pad + ">}",
                  image, 1));
    }
    // The share of the limit that each provider reaches where arithmetic bounds it.
    std::map<std::string, std::vector<double>> shares;
    // Some elementwise kernels do what counts as more work than the best product does.
    Spread best;
    for (const Sample &s : samples)
      if (const Spread rate = rateOf(s.flops, s); s.type == f32 && tells(s) && rate.median > best.median)
        best = rate;
    const double limit = cpu().flopsPerSecond[f32] = best.median;
    cite("flops_per_second/f32", "the best of some kernels", best);
    for (const Sample &s : samples)
      if (s.type == f32 && s.flops > 0 && tells(s) && wholeSeconds(s) > 1.5 * movingSeconds(s))
        shares[s.provider].push_back(std::min(1.0, s.flops / wholeSeconds(s) / limit));
    cpu().efficiency.clear();
    for (const auto &[provider, list] : shares) {
      const Spread share = spreadOf(list);
      cpu().efficiency[provider == "generated" ? "" : provider] = share.median;
      cite("efficiency/" + (provider == "generated" ? "other" : provider), "of kernels of " + provider, share);
    }
  }

  /// Transposes: how much slower memory is where the order changes.
  void movement() {
    std::vector<double> shares;
    for (auto [b, m, n] : {std::tuple<int64_t, int64_t, int64_t>{1, 96, 96},
                           {1, 256, 256},
                           {1, 600, 100},
                           {1, 100, 600},
                           {8, 64, 48},
                           {4, 144, 96}}) {
      progress_.show("transposes");
      for (const Sample &s :
           measure(program({tensor({b, m, n}, f32)}, "tressel.transpose@ {permutation = array<i64: 0, 2, 1>}",
                           tensor({b, n, m}, f32))))
        shares.push_back(std::min(1.0, movingSeconds(s) / wholeSeconds(s)));
    }
    if (shares.empty())
      return;
    // What slows the others down further is part of what the compiler counts as their work.
    const Spread share = spreadOf(shares);
    cpu().movementEfficiency = *std::ranges::max_element(shares);
    cite("movement_efficiency", "the best of some transposes", {cpu().movementEfficiency, share.least, share.most});
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
    for (int i = 0; i < 1500; ++i) {
      for (auto wait = Clock::now(); secondsSince(wait) < 3e-6;) // other threads look for work that long
        ;
      const auto start = Clock::now();
      runtime::ThreadPool::global().parallelFor(threads_, 1, [](int64_t, int64_t, int) {});
      times.push_back(secondsSince(start));
    }
    const Spread wake = timeOf(times);
    cpu().splitSeconds = wake.median;
    cite("split_seconds", "nothing to do for each thread, some microseconds after the last time", wake);
  }

  /// x + y of one thread, alone and while another thread copies.
  void contention() {
    if (threads_ == 1)
      return;
    progress_.show("contention");
    constexpr int64_t n = int64_t(1) << 22, bytes = int64_t(1) << 26;
    const std::string type = tensor({n}, f32);
    Measured sum(folder_.path, program({type, type}, "tressel.add", type));
    const HostTensor from = randomTensor({u8, {bytes}}, 1, "from"), to = randomTensor({u8, {bytes}}, 2, "to");
    enum Phase : int { kBusy, kCopy, kEnd };
    std::atomic<int> phase{kBusy};
    std::atomic<bool> entered{false};
    std::atomic<int64_t> copied{0};
    std::thread other([&] {
      // While one thread has the pool, what others run is not split.
      runtime::ThreadPool::global().parallelFor(2, 1, [&](int64_t begin, int64_t, int) {
        if (begin != 0)
          return;
        entered = true;
        while (phase != kEnd)
          if (phase == kCopy) {
            std::memcpy(to.data.get(), from.data.get(), static_cast<size_t>(bytes));
            copied += bytes;
          } else {
            usleep(50);
          }
      });
    });
    while (!entered)
      usleep(50);
    const std::vector<Sample> alone = sum.kernels();
    phase = kCopy;
    const auto start = Clock::now();
    const std::vector<Sample> beside = sum.kernels();
    const double rate = 2 * static_cast<double>(copied) / secondsSince(start); // read and written
    phase = kEnd;
    other.join();
    if (alone.empty() || rate <= 0)
      return;
    auto slower = [&](double seconds) {
      return std::max(0.0, (seconds / alone[0].seconds.median - 1) / (rate / cpu().bytesPerSecond));
    };
    const Spread &s = beside[0].seconds;
    const Spread figure{slower(s.median), slower(s.least), slower(s.most)};
    cpu().contention = figure.median;
    char text[128];
    std::snprintf(text, sizeof text,
                  "measured: one thread's x + y beside one that copies, %.3g times as long at %.3g bytes/s",
                  s.median / alone[0].seconds.median, rate);
    machine_.sources["cpu/contention"] = text;
  }

  ProgressLine &progress_;
  Folder folder_;
  runtime::MachineModel machine_;
  int threads_ = 1;
};

} // namespace

int calibrateCommand(const CalibrateArgs &args) {
  checkWritable(args.output); // before a minute is spent
  ProgressLine progress;
  const runtime::MachineModel machine = Calibration(progress).run();
  writeFile(args.output, runtime::toJson(machine));
  return kOk;
}

} // namespace tressel::tool
