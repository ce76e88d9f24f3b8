// tressel calibrate: this machine's figures, measured with the kernels that programs run, as a machine file.
#include "tools/tressel/Runnable.h"
#include "tools/tressel/Tensors.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/CacheFolder.h"
#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/HostLoad.h"
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

/// The median and the quartiles of measurements.
struct Spread {
  double median = 0, least = 0, most = 0;
};
Spread spreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return {values[n / 2], values[n / 4], values[n - 1 - n / 4]};
}

/// The time of a kernel. Disturbances only ever add time, so this is the lower quartile of its calls.
Spread timeOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return {values[n / 4], values[n / 10], values[n / 2]};
}

/// One kernel of a program, measured alone.
struct Sample {
  DType type = f32;
  std::string provider;
  double flops = 0, bytes = 0;
  int64_t tasks = 1;
  std::vector<runtime::KernelCost> costs;
  bool moves = false;
  Spread seconds;
};

/// While alive, kernels that this thread runs are not split: another thread holds the pool, and sleeps.
class OneThread {
public:
  OneThread() {
    if (runtime::ThreadPool::global().numThreads() == 1)
      return;
    holder_ = std::thread([this] {
      runtime::ThreadPool::global().parallelFor(2, 1, [this](int64_t begin, int64_t, int) {
        if (begin != 0)
          return;
        holds_ = true;
        while (!ends_)
          usleep(200);
      });
    });
    while (!holds_)
      usleep(50);
  }
  ~OneThread() {
    ends_ = true;
    if (holder_.joinable())
      holder_.join();
  }
  OneThread(const OneThread &) = delete;
  OneThread &operator=(const OneThread &) = delete;

private:
  std::atomic<bool> holds_{false}, ends_{false};
  std::thread holder_;
};

/// A temporary folder for the programs, which the destructor deletes.
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
                         ((k.range + k.grain - 1) / std::max<Size>(1, k.grain)).number(), k.costs, k.moves,
                         timeOf(times[i])});
    }
    return samples;
  }

private:
  Runnable program_;
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
    machine_ = runtime::typicalHostMachine();
    machine_.name = "calibrated";
    machine_.sources.clear();
    threads_ = runtime::ThreadPool::global().numThreads();
    cpu().threads = threads_;
  }

  runtime::MachineModel run() {
    timePiece();
    calls();
    const std::vector<Sample> alone = measureKinds(/*oneThread=*/true);
    speed(alone);
    bandwidth();
    corrections(alone);
    timePiece();
    if (threads_ > 1)
      together(measureKinds(/*oneThread=*/false));
    arithmetic();
    movement();
    contention();
    timePiece();
    cpu().pieceSeconds = std::ranges::min(pieces_, {}, &runtime::PieceTime::seconds).seconds; // noise only adds time
    if (const std::optional<std::string> busy = runtime::describeBusyCalibration(pieces_))
      note(*busy);
    return runtime::parseMachine(runtime::toJson(machine_));
  }

private:
  DeviceModel &cpu() { return machine_.devices.front(); }
  const DeviceModel &cpu() const { return machine_.devices.front(); }
  void timePiece() { pieces_.push_back(runtime::timePiece(threads_)); }
  /// Notes the source of a figure and the range of its measurements. `differs`: the kernels differ by nature, so that a
  /// wide range does not mean that the machine is busy.
  void cite(const std::string &figure, const std::string &how, const Spread &range, bool differs = false) {
    char text[96];
    std::snprintf(text, sizeof text, ", %.3g, mostly from %.3g to %.3g", range.median, range.least, range.most);
    machine_.sources["cpu/" + figure] = "measured: " + how + text;
    if (range.most > 1.5 * range.least && !differs)
      note(figure + ": the measurements lie between " + spell(range.least) + " and " + spell(range.most) +
           "; the machine does other work, or changes its clock");
  }
  static std::string spell(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  std::vector<Sample> measure(const std::string &text) { return Measured(folder_.path, text).kernels(); }
  /// The time if all threads had an equal part of the work.
  double wholeSeconds(const Sample &s, double seconds) const {
    const auto threads = std::min<int64_t>(s.tasks, threads_), parts = std::min<int64_t>(s.tasks, 4 * threads);
    const double share = static_cast<double>((parts + threads - 1) / threads * threads) / static_cast<double>(parts);
    const double calls = cpu().commandSeconds + (threads > 1 ? cpu().splitSeconds : 0);
    return std::max(seconds - calls, 0.1 * seconds) / share * static_cast<double>(threads) / threads_;
  }
  /// Whether most of its time is work, not the overhead of a call.
  bool tells(const Sample &s) const {
    return s.seconds.median > 4 * (cpu().commandSeconds + (s.tasks > 1 ? cpu().splitSeconds : 0));
  }
  double wholeSeconds(const Sample &s) const { return wholeSeconds(s, s.seconds.median); }
  /// Work per second on all threads.
  Spread rateOf(double work, const Sample &s) const {
    return {work / wholeSeconds(s), work / wholeSeconds(s, s.seconds.most), work / wholeSeconds(s, s.seconds.least)};
  }
  /// Bytes per second of a sum, on all threads.
  Spread bytesRateOf(const Sample &s) const {
    const auto threads = std::min<int64_t>(s.tasks, threads_);
    auto rate = [&](double seconds) {
      const double whole = wholeSeconds(s, seconds);
      return s.bytes / (bytesSeconds(s, whole * threads_ / static_cast<double>(threads), threads) * static_cast<double>(threads) / threads_);
    };
    return {rate(s.seconds.median), rate(s.seconds.most), rate(s.seconds.least)};
  }
  /// The bytes if every thread had such a part.
  double wholeBytes(const Sample &s) const {
    return s.bytes * threads_ / static_cast<double>(std::min<int64_t>(s.tasks, threads_));
  }

  /// The time of a sample's bytes on one of `threads` threads, without the predicted time of its instructions. The two
  /// overlap in part (runtime::workSeconds).
  double bytesSeconds(const Sample &s, double seconds, int64_t threads) const {
    const double computing = cpu().threadSeconds(s.costs) / static_cast<double>(threads);
    return std::max(std::cbrt(std::max(0.0, seconds * seconds * seconds - computing * computing * computing)), 0.3 * seconds);
  }

  /// Kernels of all kinds that have cost models, at sizes that real models have.
  std::vector<Sample> measureKinds(bool oneThread) {
    std::vector<Sample> samples;
    std::optional<OneThread> alone;
    if (oneThread)
      alone.emplace();
    for (const auto &[what, text] : kindPrograms()) {
      progress_.show(what + (oneThread ? ", one thread" : ""));
      for (Sample &s : measure(text)) {
        if (oneThread)
          s.tasks = 1;
        if (!s.costs.empty())
          samples.push_back(std::move(s));
      }
    }
    return samples;
  }
  static std::vector<std::pair<std::string, std::string>> kindPrograms();

  /// Measured over predicted time of a sample's instructions, if they dominate its time.
  std::optional<double> factorOf(const Sample &s) const {
    const double took = s.seconds.median - cpu().commandSeconds, moving = runtime::workSeconds(cpu(), {.bytes = s.bytes, .tasks = s.tasks});
    const double computing = std::cbrt(std::max(0.0, took * took * took - moving * moving * moving)), predicted = cpu().threadSeconds(s.costs);
    return s.costs.size() == 1 && computing > 0.8 * took && took > 4 * cpu().commandSeconds && predicted > 0 ? std::optional(computing / predicted)
                                                                                                      : std::nullopt;
  }

  /// The speed of one thread relative to the processor that the costs were measured on, from products and convolutions.
  void speed(const std::vector<Sample> &samples) {
    cpu().speed = 1, cpu().speedTogether = 1;
    cpu().corrections.clear();
    std::vector<double> factors;
    for (const Sample &s : samples)
      if (s.costs.size() == 1 && s.costs[0].kind.starts_with("builtin/"))
        factors.push_back(s.costs[0].seconds / std::max(s.seconds.median - cpu().commandSeconds, 1e-9));
    if (factors.empty())
      return;
    const Spread speed = spreadOf(factors);
    cpu().speed = speed.median;
    cite("speed", "one thread's products and convolutions", {speed.median, speed.least, speed.most}, /*differs=*/true);
  }

  /// Corrections of those kinds whose cost models are off on this machine.
  void corrections(const std::vector<Sample> &samples) {
    std::map<std::string, std::vector<double>> factors;
    for (const Sample &s : samples)
      if (const std::optional<double> factor = factorOf(s))
        factors[s.costs[0].kind].push_back(*factor);
    for (const auto &[kind, list] : factors) {
      if (list.size() < 3) // too few: the shapes' own errors count as much as the machine
        continue;
      const Spread factor = spreadOf(list);
      if (factor.most > 1.6 * factor.least) // the model's error depends on the shape, which no factor corrects
        continue;
      cpu().corrections[kind] = factor.median;
      cite("corrections/" + kind, std::to_string(list.size()) + " kernels on one thread", factor, /*differs=*/true);
    }
  }

  /// How much slower a thread is when all threads work.
  void together(const std::vector<Sample> &samples) {
    std::vector<double> shares;
    for (const Sample &s : samples) {
      if (s.tasks < threads_ || s.costs.size() != 1)
        continue;
      const double predicted = runtime::workSeconds(cpu(), {.bytes = s.bytes, .tasks = s.tasks, .costs = s.costs}) + cpu().commandSeconds;
      if (predicted > 4 * cpu().splitSeconds && predicted > 30e-6)
        shares.push_back(std::min(1.0, predicted / s.seconds.median));
    }
    if (shares.size() < 3)
      return;
    const Spread share = spreadOf(shares);
    cpu().speedTogether = share.median;
    cite("speed_together", "kernels on all threads, next to what one thread's figures say", share, /*differs=*/true);
  }

  /// Times sums of two tensors, from a few kilobytes to more than most caches hold: each plateau of the rate is a
  /// cache.
  void bandwidth() {
    struct Point {
      double bytes;
      Spread rate;
    };
    std::vector<Point> points;
    double threadRate = 0;
    for (double size = 1 << 10; size <= 1 << 24; size *= std::sqrt(2)) {
      const auto n = static_cast<int64_t>(size) / 64 * 64;
      progress_.show("memory: " + std::to_string(n * 12 >> 10) + " KiB");
      const std::string type = tensor({n}, f32);
      for (const Sample &s : measure(program({type, type}, "tressel.add", type)))
        if (tells(s))
          points.push_back({wholeBytes(s), bytesRateOf(s)});
    }
    {
      const OneThread alone;
      const std::string type = tensor({int64_t(1) << 24}, f32);
      for (Sample &s : measure(program({type, type}, "tressel.add", type))) {
        s.tasks = 1;
        threadRate = s.bytes / bytesSeconds(s, s.seconds.median, 1);
      }
    }
    if (points.size() < 8)
      throw EnvironmentError("the memory's rate cannot be measured: the program has no kernels");
    std::ranges::sort(points, {}, &Point::bytes);
    const Spread far = points.back().rate;
    cpu().bytesPerSecond = far.median;
    cpu().threadBytesPerSecond = std::min(threadRate, far.median);
    machine_.sources["cpu/thread_bytes_per_second"] = "measured: x + y, 192 MiB, one thread";
    cite("bytes_per_second", "x + y, 192 MiB", far);
    // The rate falls with the size; exceptions are noise.
    for (size_t i = 0; i + 2 < points.size(); ++i) { // a point faster than both neighbours is noise
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
      // A single point is a transition between plateaus.
      if (rate.median > 1.25 * far.median && (end - i > 1 || i == 0)) {
        cpu().caches.push_back({points[end - 1].bytes, rate.median});
        cite("caches/" + std::to_string(cpu().caches.size() - 1) + "/bytes_per_second",
             "x + y, up to " + std::to_string(static_cast<int64_t>(points[end - 1].bytes)) + " bytes", rate);
      }
      i = end;
    }
    // Noise may leave a cache slower than the next larger one, or than memory: raise it to that rate.
    for (size_t i = cpu().caches.size(); i-- > 0;) {
      const double behind = i + 1 < cpu().caches.size() ? cpu().caches[i + 1].bytesPerSecond : cpu().bytesPerSecond;
      cpu().caches[i].bytesPerSecond = std::max(cpu().caches[i].bytesPerSecond, behind);
    }
    if (cpu().caches.empty())
      note("the caches look no faster than memory, so the file has none: measure again while the machine does nothing else");
  }

  double movingSeconds(const Sample &s) const { return s.bytes / cpu().bandwidth(s.bytes); }

  /// Rates of products by type, then the efficiency of other kernels that are bound by arithmetic, by provider.
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
    // Some elementwise kernels reach a higher rate of counted work than the best product.
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
      cite("efficiency/" + (provider == "generated" ? "other" : provider), "of kernels of " + provider, share, /*differs=*/true);
    }
  }

  /// Transposes: the share of memory's rate that is left where the order changes.
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
    // The best share is taken: where others are slower, the compiler's cost models account for it.
    const Spread share = spreadOf(shares);
    cpu().movementEfficiency = *std::ranges::max_element(shares);
    cite("movement_efficiency", "the best of some transposes", {cpu().movementEfficiency, share.least, share.most}, /*differs=*/true);
  }

  /// The overhead of a call: a kernel that does almost nothing, and a split over all threads.
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
      // While this thread holds the pool, kernels of other threads are not split.
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
  std::vector<runtime::PieceTime> pieces_; ///< timed before, during and after the measurements
};

/// What is measured, each with a program for it.
std::vector<std::pair<std::string, std::string>> Calibration::kindPrograms() {
  std::vector<std::pair<std::string, std::string>> list;
  using Sizes = std::array<int64_t, 3>;
  for (auto [m, k, n] : {Sizes{1, 768, 768}, {1, 2048, 1000}, {4, 512, 512}, {16, 256, 1024}, {32, 100, 60}, {64, 256, 256}, {128, 512, 512},
                         {256, 384, 384}, {64, 512, 10}, {256, 128, 10}, {512, 320, 8}})
    for (size_t states : {SIZE_MAX, size_t(1)})
      list.emplace_back("products", program({tensor({m, k}, f32), tensor({k, n}, f32)}, "tressel.matmul", tensor({m, n}, f32), states));
  struct Conv {
    int64_t in, out, size, window, stride, groups;
  };
  for (const Conv &c :
       {Conv{64, 64, 56, 3, 1, 1}, {128, 128, 28, 3, 1, 1}, {256, 256, 14, 1, 1, 1}, {64, 256, 56, 1, 1, 1}, {512, 512, 7, 3, 1, 1},
        {24, 144, 28, 1, 1, 1},    {96, 24, 40, 1, 1, 1},   {64, 128, 28, 3, 2, 1},  {3, 32, 112, 3, 2, 1}, {1, 6, 28, 5, 1, 1},
        {6, 16, 14, 5, 1, 1},      {3, 64, 112, 7, 2, 1},   {3, 16, 80, 3, 2, 1},    {8, 16, 64, 3, 1, 1},  {96, 96, 40, 3, 1, 96},
        {240, 240, 14, 5, 1, 240}, {144, 144, 56, 3, 2, 144}, {32, 32, 80, 3, 1, 32}, {64, 64, 20, 7, 1, 64}, {32, 32, 28, 3, 1, 8},
        {64, 64, 28, 3, 1, 16},    {128, 128, 14, 3, 1, 32}})
    for (bool last : {true, false}) {
      const int64_t low = c.window / 2, out = (c.size + c.stride - 1) / c.stride, high = (out - 1) * c.stride + c.window - low - c.size;
      auto images = [&](int64_t channels, int64_t size) {
        return last ? tensor({1, size, size, channels}, f32) : tensor({1, channels, size, size}, f32);
      };
      auto both = [](int64_t value) { return "array<i64: " + std::to_string(value) + ", " + std::to_string(value) + ">"; };
      list.emplace_back("convolutions", program({images(c.in, c.size), tensor({c.out, c.in / c.groups, c.window, c.window}, f32)},
                                                std::string("tressel.conv@ {channels_last = ") + (last ? "true" : "false") +
                                                    ", groups = " + std::to_string(c.groups) + " : i64, pad_high = " + both(std::max<int64_t>(0, high)) +
                                                    ", pad_low = " + both(low) + ", strides = " + both(c.stride) + "}",
                                                images(c.out, out), 1));
    }
  for (auto [heads, queries, size] : {Sizes{8, 64, 64}, {12, 128, 64}, {4, 256, 32}, {8, 32, 64}}) {
    const std::string type = tensor({heads, queries, size}, f32);
    list.emplace_back("attention", program({type, type, type}, "tressel.scaled_dot_product_attention", type));
  }
  for (auto [m, n] : {std::pair<int64_t, int64_t>{32, 256}, {200, 100}, {256, 512}}) {
    const std::string type = tensor({m, n}, f32), row = tensor({m}, f32), column = tensor({n}, f32);
    for (const char *op : {"relu", "exp", "tanh", "gelu", "sigmoid", "silu", "hard_swish", "erf"})
      list.emplace_back("elementwise", program({type}, std::string("tressel.") + op, type));
    list.emplace_back("reductions", program({type}, "tressel.softmax@ {axis = -1 : i64}", type));
    for (const char *op : {"sum", "max"}) {
      const std::string name = std::string("tressel.") + op;
      list.emplace_back("reductions", program({type}, name + "@ {axis = array<i64: 1>, keepdims = false}", row));
      list.emplace_back("reductions", program({type}, name + "@ {axis = array<i64: 0>, keepdims = false}", column));
    }
    list.emplace_back("movement", program({type}, "tressel.transpose@ {permutation = array<i64: 1, 0>}", tensor({n, m}, f32)));
    list.emplace_back("movement", program({type, type}, "tressel.concat@ {axis = 1 : i64}", tensor({m, 2 * n}, f32)));
    list.emplace_back("order", program({type}, "tressel.sort@ {axis = -1 : i64}", type));
    list.emplace_back("order", program({type}, "tressel.cumsum@ {axis = -1 : i64}", type));
  }
  return list;
}

} // namespace

int calibrateCommand(const CalibrateArgs &args) {
  const std::string kept = runtime::calibrationFile();
  std::string path = args.output;
  if (path.empty()) {
    path = kept;
    std::string why;
    if (path.empty() && runtime::cacheFolder(&why).empty())
      throw EnvironmentError("there is no place to keep the figures: " + why + ". Name a file with -o");
    if (path.empty())
      throw EnvironmentError("TRESSEL_CALIBRATION is empty, so no figures are kept. Name a file with -o");
    std::error_code ec;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ec);
  }
  checkWritable(path); // before a minute is spent
  // Measurements are compared with raw costs: without the last calibration, and without learned corrections.
  ::setenv("TRESSEL_CALIBRATION", "", 1);
  ProgressLine progress;
  const runtime::MachineModel machine = Calibration(progress).run();
  writeFile(path, runtime::toJson(machine));
  std::error_code ec;
  if (!kept.empty() && std::filesystem::equivalent(path, kept, ec)) // they were learned with the earlier figures
    runtime::Corrections(runtime::Corrections::fileBeside(kept)).forget();
  if (args.output.empty())
    note("kept in " + path + "; compilations and predictions on this machine go by it");
  return kOk;
}

} // namespace tressel::tool
