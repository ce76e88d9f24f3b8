// jit: a function of tensors, recorded once per kind of call, compiled and cached.
//
//   auto f = jit([](Tensor a, Tensor b) { return gelu(a * b + 1.0); });
//   Tensor y = f(x, 0.5f);       // recorded and compiled; later calls with the same types run what was compiled
//   f.stats().traces;            // 1
//
// The function is run with tensors that have a type and no elements, and every op it calls is recorded. So its control
// flow must not depend on elements (TraceError names the line), and everything else that it reads is fixed at
// recording: integers and enums among its arguments are part of the key of the cache, captured tensors become
// constants, and Variables become the program's state, read at each call and written back where the function assigns
// them. In every build the second call of a program records once more, and throws TraceError if the program differs (a
// captured number has changed, say); TRESSEL_CHECK_TRACE=N in the environment does so at each Nth call.
//
// A function whose calls keep differing (in sizes, in static values) is recorded retrace_budget times; further calls
// that have no program run op by op, with one warning that names the argument which changes.
//
// Threads: several threads may call at once; calls of a function that assigns Variables run one at a time.
#pragma once

#include <tressel/arg.h>
#include <tressel/machine.h>
#include <tressel/runtime/MemoryBudget.h>
#include <tressel/scope.h>
#include <tressel/spec.h>
#include <tressel/tree.h>
#include <tressel/variable.h>

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

/// The order in which accelerators take micro-batches. The figures are step times for 4 stages and 16 micro-batches,
/// with 1 for the forward and 2 for the backward pass of a micro-batch.
enum class PipelineOrder : uint8_t {
  Best,                  ///< the fastest by the machine's figures; if two are within 1%, the one that takes less memory
  OneForwardOneBackward, ///< 57: stage s of S keeps the residuals of S - s micro-batches. With several stages an
                         ///< accelerator ("interleaved"), less
  ZeroBubble,      ///< 51 or more: the same, but gradients of weights are deferred until the accelerator would be idle
  AllForwardFirst, ///< 57: keeps the residuals of all micro-batches ("GPipe")
};
/// Accelerators in a row that each take one micro-batch after the other. Ops say which stage they belong to
/// (StageScope, Module::stage). Accelerator k % size computes stage k: of 8 stages on 4 accelerators, the first has 0
/// and 4.
struct Pipeline {
  /// Parts of a call's batch, along shard_axis. Without stages, gradients are accumulated over them.
  int micro_batches = 1;
  int size = 1; ///< accelerators in a row
  PipelineOrder order = PipelineOrder::Best;
};

struct JitOptions {
  std::string name = "jit";         ///< in errors and timelines
  /// The devices that compute: with {gpu(0)} the host only runs ops that need it (printing, checking). Arguments and
  /// Variables may still live on other devices, and results be moved there. Empty: all.
  std::vector<Device> devices = {};
  /// The accelerators as a grid, whose last axis varies fastest: {{"data", 2}, {"model", 4}}. Tensors that are cut
  /// along an axis (shard_axis, shard(), Variable::shard) are computed in parts, one per accelerator. The compiler
  /// derives the sharding of all other values, and inserts the exchanges (docs/parallel.md). The result is that of one
  /// device but for the order of sums; with autocast each rank rounds its sums to the narrow type before they are
  /// added. The accelerators are those of `devices` in their order, else gpu(0), gpu(1), ...; there must be at least as
  /// many as the grid has places, and no device twice. Empty with `shard_axis`: one axis "data" of all of them.
  std::vector<MeshAxis> mesh = {};
  /// The dimension of every argument (that has it) that is cut along the mesh's first axis: 0 splits the batch. Sizes
  /// need not be divisible.
  std::optional<int> shard_axis = {};
  /// Micro-batches and stages. There are `size` times as many accelerators as the mesh has (1 without a mesh): those of
  /// stage 0 first. The batch is cut along shard_axis (default 0) over the mesh's first axis, and each part into
  /// micro-batches. The result is that of the whole batch, statistics of batch normalization included: for these
  /// micro-batches wait for one another.
  std::optional<Pipeline> pipeline = {};
  /// Gradients that the ranks add up are exchanged in buckets of at most so many bytes (`bucket_cap_mb` elsewhere),
  /// overlapped with the rest of the backward pass. Buckets are smaller where there would be fewer than four, or
  /// sixteen with ranks in processes of their own. At least 1 << 62: one bucket, exchanged after the last gradient.
  int64_t bucket_bytes = 25 << 20;
  bool deterministic = false; ///< results do not depend on the number of threads, on measurements of this machine, or
                              ///< on fusion (docs/numbers.md)
  bool disk_cache = true;           ///< kernels are kept on disk for the next process (docs/compile-time.md)
  bool measure = false;             ///< kernels of products and convolutions are chosen by timing them on this machine
  bool winograd = false;            ///< 3 x 3 convolutions may use Winograd's method: faster, off by up to some 1e-4 of the largest
  bool keep_subnormals = false;     ///< f32 arithmetic keeps numbers below 1.2e-38, which takes up to a hundred times as long (docs/numbers.md)
  /// A bound on the intermediate values that are live at once, on the host: 64 << 20 bytes, or MemoryBudget::share(0.5)
  /// of what they take without a bound. Values that do not fit are rematerialized. Compilation throws Error if the
  /// bound cannot be met, and names the least that can. Not for programs on accelerators, whose memory the machine
  /// model has.
  MemoryBudget memory_budget = {};
  /// bf16 or f16: products of f32 (matmul, einsum, convolutions and their gradients) are computed in it, with sums in
  /// f32; all else stays f32 (docs/training.md). Gradients that f16 cannot hold want an optim::LossScale.
  std::optional<DType> autocast = {};
  bool strict_donation = false; ///< a call throws Error if a tensor still holds the value of a Variable that it
                                ///< updates; otherwise that value is copied (variable.h)
  /// The most programs made per function, not counting those that clear_compile_caches() dropped. Further calls that
  /// need another program run op by op, and one warning on standard error names what changes.
  int retrace_budget = 64;
  bool strict_retrace = false;      ///< such a call throws TraceError instead; programs for accelerators always do
  int max_programs = 64;            ///< programs kept per function; the least recently used is dropped
  /// When a dimension gets a second size it becomes dynamic: one program for all sizes from then on. If the function
  /// cannot be recorded with a dynamic size (it turns it into an integer, say), each size has its own program.
  bool infer_dynamic = true;
};

struct JitStats {
  uint64_t traces = 0;               ///< programs recorded and compiled
  uint64_t hits = 0;                 ///< calls that found their program
  uint64_t checks = 0;               ///< programs recorded again to compare
  uint64_t imperative = 0;           ///< calls that ran op by op, as the budget was spent
  uint64_t state_copies = 0;         ///< values of Variables that live programs copied before an update, because a
                                     ///< tensor still held them (variable.h)
  std::vector<std::string> retraces; ///< for each trace after the first: how the call differed from the previous
                                     ///< program
  uint64_t live = 0;                 ///< programs kept now
  double trace_seconds = 0, compile_seconds = 0;
  /// Kernels of those traces: compiled to machine code, or found in the cache of the process or on disk.
  uint64_t kernels_compiled = 0, kernels_cached = 0;
};

/// What a compiled step is predicted to take, by its machine's figures (docs/explain.md).
struct Prediction {
  double step_seconds = 0;
  double lower_bound_seconds = 0; ///< no order of the same commands takes less
  /// (T_c + T_m - T) / min(T_c, T_m), where T is the step, T_c the step if copies took no time, and T_m the step if
  /// computation took none. Nothing without copies or without computation.
  std::optional<double> overlap;
  /// The shorter of an accelerator's copy time and compute time, and the share of it in which the accelerator does
  /// both: as planned, and in the latest call. Nothing if that time is zero, or if the machine has kept no log of a
  /// call.
  std::optional<double> planned_side_by_side = {}, achieved_side_by_side = {};
  double compute_seconds = 0;                         ///< T_c
  double transfer_seconds = 0;                        ///< T_m
  int64_t peak_bytes = 0, peak_lower_bound_bytes = 0; ///< of scratch memory, on all devices together
  /// The bytes of one device: `held` between calls or by the caller (weights, arguments, results), and the most that
  /// intermediate values take at once.
  struct Memory {
    std::string device; ///< "gpu0"
    int64_t held = 0, scratch = 0, capacity = 0;
  };
  std::vector<Memory> memory;
  std::string text;    ///< for people: what runs where, what bounds the step, what would help, and the reasons of the
                       ///< passes' decisions
  std::string drawing; ///< the timeline, a line per engine, 100 columns
};
std::ostream &operator<<(std::ostream &out, const Prediction &prediction); ///< the text

/// The ranks of a program, each in a process of its own, on an accelerator of its own.
struct RankOptions {
  std::vector<MeshAxis> mesh;          ///< of any size: the devices need not exist
  std::optional<int> shard_axis = {0}; ///< as JitOptions::shard_axis: the inputs' types are those of the whole batch
};

/// One way to split a step over accelerators, with the prediction for one rank.
struct ParallelLayout {
  std::string name;                                                   ///< "data = 8, weights in parts"
  std::vector<MeshAxis> mesh;                                         ///< as of RankOptions
  double step_seconds = 0, compute_seconds = 0, transfer_seconds = 0; ///< as of Prediction
  /// Where modules have stages: one process for all accelerators; `mesh` is that of one stage.
  std::optional<Pipeline> pipeline = {};
  int64_t rank_bytes = 0; ///< memory of a rank: weights and other values that stay, and the peak of the step
  std::string error;      ///< why the layout is not possible; then all figures are 0
};
struct ParallelComparison {
  std::vector<ParallelLayout> layouts; ///< the first is one accelerator alone
  std::optional<size_t> best;          ///< the fastest possible one
  std::string text;                    ///< a table, and the reason for the choice
};
std::ostream &operator<<(std::ostream &out, const ParallelComparison &comparison); ///< the text

struct ExportOptions {
  std::vector<TensorSpec> inputs;        ///< those without a name are arg0, arg1, ...; no two have one name
  std::vector<std::string> outputs = {}; ///< names, all different; empty: out0, out1, ...
  std::string cpu = "native";            ///< instruction set: "baseline", "v3", "v4", "native"
  /// Architectures of GPUs, "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120". The package then has kernels for
  /// them, and runs on a server with one such GPU, or on the machine of use_machine() if that is simulated. None needs
  /// to be here. Empty: a package for a processor.
  std::vector<std::string> gpus = {};
  /// For these GPUs: cuBLASLt and cuDNN may compute products, convolutions and attention, where the machine that runs
  /// the package has them (MachineOptions::libraries).
  bool gpu_libraries = false;
};

namespace detail {
class JitCore;
} // namespace detail

/// The names of states in a package and in the files that it saves. named_states() makes them from a TrainingState
/// (checkpoint.h), so that these files are those of save_state().
struct StateNames {
  std::vector<std::pair<std::string, Variable>> variables;
  std::map<std::string, std::string> metadata;
};

/// Several functions in one package: a step of training, and the network that it trains.
///
///   PackageBuilder package(named_states({{"net", net}, {"opt", opt}}));
///   step.export_into(package, "step", {.inputs = {{f32, {64, 784}}, {i64, {64}}}});
///   net.export_into(package, "predict", {.inputs = {{f32, {"batch", 784}}}});
///   package.write("train.tsl");
///
/// A Variable is one state of the package. The package's functions share it if the contexts that run them do
/// (runtime::PackageStates, `states_of` in C). States without a name in `states` are called like their Variables, with
/// a number appended where two names are equal.
class PackageBuilder {
public:
  explicit PackageBuilder(StateNames states = {});
  ~PackageBuilder();
  PackageBuilder(PackageBuilder &&) noexcept;
  PackageBuilder &operator=(PackageBuilder &&) noexcept;

  /// With the current values of Variables. Throws Error if nothing was exported into it, RuntimeError if writing fails.
  void write(const std::string &path, std::source_location where = std::source_location::current()) const;

private:
  friend class detail::JitCore;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Forgets every compiled program of this process that can be compiled again, also those of single ops. The cache on
/// disk, which processes share, stays.
void clear_compile_caches();

namespace detail {

/// The tensors and static words of one call, in order.
class CallArgs {
public:
  void tensor(const Tensor &t) {
    if (numTensors_ < kFew)
      few_[numTensors_] = &t;
    else
      addMore(t);
    ++numTensors_;
  }
  void word(uint64_t w) { words_.push_back(w); }
  std::span<const Tensor *const> tensors() const {
    return numTensors_ <= kFew ? std::span<const Tensor *const>(few_.data(), numTensors_) : more_;
  }
  std::span<const uint64_t> words() const { return words_; }

private:
  static constexpr size_t kFew = 8;
  void addMore(const Tensor &t) {
    if (numTensors_ == kFew)
      more_.assign(few_.begin(), few_.end());
    more_.push_back(&t);
  }
  std::array<const Tensor *, kFew> few_;
  std::vector<const Tensor *> more_;
  std::vector<uint64_t> words_;
  size_t numTensors_ = 0;
};

/// The i-th of the tensors that replace the arguments' tensors. Throws Error when types were given for fewer.
const Tensor &inputAt(std::span<const Tensor> inputs, size_t i);
/// Throws Error when types were given for more tensors than the `used` ones that the arguments hold.
void checkInputsUsed(std::span<const Tensor> inputs, size_t used);

/// The function to be recorded: from the arguments' tensors to the results' tensors, in order.
class TraceBody {
public:
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs, std::shared_ptr<void> *prototype) = 0;
  /// Which of the function's arguments holds tensor number `index`, or static word number `index`.
  virtual size_t argumentOf(bool tensor, size_t index) const = 0;

protected:
  ~TraceBody() = default;
};

template <typename... P> size_t argumentOf(const std::tuple<const P &...> &args, bool tensor, size_t index) {
  struct Count {
    size_t tensors = 0, words = 0;
    void tensor(const Tensor &) { ++tensors; }
    void word(uint64_t) { ++words; }
  } count;
  size_t argument = 0;
  auto look = [&](const auto &arg) {
    if ((tensor ? count.tensors : count.words) > index)
      return;
    visitTree(arg, count);
    argument += (tensor ? count.tensors : count.words) <= index;
  };
  std::apply([&](const auto &...arg) { (look(arg), ...); }, args);
  return argument;
}

/// The programs of one function: the part that does not depend on the function's type.
class JitCore {
public:
  explicit JitCore(JitOptions options);
  ~JitCore();
  JitCore(const JitCore &) = delete;
  JitCore &operator=(const JitCore &) = delete;

  /// Runs the program for this kind of call, made first if there is none. `results` gets the results' tensors in order.
  /// Returns the prototype that the body left when it was recorded.
  std::shared_ptr<void> call(const CallArgs &args, TraceBody &body, std::vector<Tensor> &results,
                             const std::source_location &where);
  /// The same for a function with one tensor as its result.
  Tensor callOne(const CallArgs &args, TraceBody &body, const std::source_location &where);
  void compile(std::span<const TensorSpec> inputs, std::span<const uint64_t> words, TraceBody &body,
               const std::source_location &where);
  /// The graph as text.
  std::string traceOnly(const CallArgs &args, TraceBody &body, bool text, const std::source_location &where);
  void exportInto(PackageBuilder &package, const std::string &name, const ExportOptions &options, TraceBody &body,
                  const std::source_location &where);
  /// Records and compiles anew, and writes every stage and the tensors of one call into a folder.
  void dump(const std::string &path, const CallArgs &args, TraceBody &body, const std::source_location &where);
  JitStats stats() const;
  const std::string &name() const;
  Prediction explain(const std::source_location &where) const;
  ParallelComparison explainParallel(int ranks, std::optional<int> axis, std::span<const TensorSpec> inputs,
                                     TraceBody &body, const std::source_location &where) const;
  Prediction explainRanks(const RankOptions &ranks, std::span<const TensorSpec> inputs, TraceBody &body,
                          const std::source_location &where) const;
  void drawPlan(const std::string &path, const std::source_location &where) const;
  /// Drops the programs of all functions of the process.
  static void clearAll();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Alive while the function itself runs. Throws Error when it calls itself without end.
class CallDepth {
public:
  CallDepth(const JitCore &core, const std::source_location &where) {
    if (!enterCall()) [[unlikely]]
      failEndless("'" + core.name() + "'", where);
  }
  ~CallDepth() { leaveCall(); }
  CallDepth(const CallDepth &) = delete;
  CallDepth &operator=(const CallDepth &) = delete;
};

/// The type of a parameter of the call operator. Tensors become Arg, which also takes a number and knows the caller's
/// line.
template <typename P> struct CallParameter { using Type = const P &; };
template <> struct CallParameter<Tensor> { using Type = const Arg &; };

template <typename Fn> struct Signature : Signature<decltype(&Fn::operator())> {};
template <typename R, typename... P> struct Signature<R (*)(P...)> {
  using Result = R;
  using Parameters = std::tuple<std::decay_t<P>...>;
};
template <typename C, typename R, typename... P> struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};
template <typename C, typename R, typename... P> struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <typename C, typename R, typename... P> struct Signature<R (C::*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <typename C, typename R, typename... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};
template <typename Fn>
concept HasSignature = std::is_pointer_v<Fn> || requires {
  &Fn::operator();
};

template <typename P> using SpecOf = std::conditional_t<std::is_same_v<P, Tensor>, TensorSpec, P>;

/// Converts a number given for a tensor to a tensor that lives through the call; passes everything else on.
template <typename P> decltype(auto) leaf(const P &p) {
  if constexpr (std::is_same_v<P, Arg>)
    return p.as_tensor();
  else
    return (p);
}

} // namespace detail

template <typename Fn, typename R, typename Parameters> class Jitted;

/// A jitted function. Copies share programs. One that was moved from throws Error, whatever is asked of it.
template <typename Fn, typename R, typename... P> class Jitted<Fn, R, std::tuple<P...>> {
  using Result = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;

public:
  Jitted(Fn fn, JitOptions options)
      : fn_(std::make_shared<Fn>(std::move(fn))), core_(std::make_shared<detail::JitCore>(std::move(options))) {}

  /// Throws what the function throws while it is recorded, and Error for what cannot be compiled. A failure while the
  /// program runs is carried by the results.
  R operator()(typename detail::CallParameter<P>::Type... args) const {
    return callWith(lineOf(args...), detail::leaf(args)...);
  }
  /// The same for tensors as they are: no copy of a handle is made.
  R operator()(const P &...args, std::source_location where = std::source_location::current()) const
      requires(std::is_same_v<P, Tensor> || ...) {
    return callWith(where, args...);
  }

  /// Records and compiles ahead of the first call, for inputs of these types; all parameters are Tensors. Named
  /// dimensions are dynamic: f.compile({f32, {"batch", 784}}) makes one program for all sizes, and f.compile({f32,
  /// {DimSpec("batch", 1, 64), 784}}) one for all up to 64. A name that is used twice is one size.
  void compile(detail::SpecOf<P>... types, std::source_location where = std::source_location::current()) const
      requires(std::is_same_v<P, Tensor> &&...) {
    compile(std::vector<TensorSpec>{std::move(types)...}, where);
  }
  /// One type per tensor of the arguments, in order. Static arguments cannot be given this way.
  void compile(const std::vector<TensorSpec> &types,
               std::source_location where = std::source_location::current()) const {
    withDefaults(where,
                 [&](detail::JitCore &core, auto words, Body &body) { core.compile(types, words, body, where); });
  }
  /// Records the function without compiling it, and gives the graph as text.
  std::string graph(typename detail::CallParameter<P>::Type... args) const {
    return record(true, lineOf(args...), detail::leaf(args)...);
  }
  /// Records the function without compiling it: for measuring.
  void trace_only(typename detail::CallParameter<P>::Type... args) const {
    record(false, lineOf(args...), detail::leaf(args)...);
  }
  /// Writes a package that runs without the compiler, with the current values of Variables, compiled with the
  /// function's options. The function's parameters and results are Tensors.
  void export_package(const std::string &path, const ExportOptions &options,
                      std::source_location where = std::source_location::current()) const {
    PackageBuilder package;
    export_into(package, "main", options, where);
    package.write(path, where);
  }
  /// Adds it to a package under that name, which is written later.
  void export_into(PackageBuilder &package, const std::string &name, const ExportOptions &options,
                   std::source_location where = std::source_location::current()) const {
    detail::JitCore &core = have(where);
    std::tuple<P...> defaults;
    Body body(*fn_, defaults);
    core.exportInto(package, name, options, body, where);
  }
  JitStats stats(std::source_location where = std::source_location::current()) const { return have(where).stats(); }
  /// The prediction for the program that was compiled or called last; runs nothing. Throws Error if there is none yet.
  Prediction explain(std::source_location where = std::source_location::current()) const {
    return have(where).explain(where);
  }
  /// The prediction for one of many ranks, on the machine of use_machine: the rank runs on the first accelerator, and
  /// the route to the second one stands for that between ranks. `types` as for compile(), of the whole inputs, whose
  /// dimension shard_axis the ranks divide. Makes, verifies and predicts the program of one rank, in the same time for
  /// any number of ranks; runs nothing (docs/parallel.md). Throws Error for a mesh that is not possible.
  Prediction explain_ranks(const RankOptions &ranks, const std::vector<TensorSpec> &types,
                           std::source_location where = std::source_location::current()) const {
    return withDefaults(
        where, [&](detail::JitCore &core, auto, Body &body) { return core.explainRanks(ranks, types, body, where); });
  }
  /// Compares ways to split the step over so many accelerators, each in a process of its own, by explain_ranks: each
  /// with its share of the batch; also with optimizer states, or all Variables, in parts; and, if Variable::shard()
  /// names further axes, these with each size that is a power of two. `types` are those of the whole batch, cut along
  /// `axis`. Throws Error.
  ParallelComparison explain_parallel(int ranks, const std::vector<TensorSpec> &types, int axis = 0,
                                      std::source_location where = std::source_location::current()) const {
    return withDefaults(where, [&](detail::JitCore &core, auto, Body &body) {
      return core.explainParallel(ranks, axis, types, body, where);
    });
  }
  /// Draws the predicted timeline: FILE.html, FILE.svg, FILE.json for Perfetto, or FILE.dot. Throws Error.
  void draw_plan(const std::string &path, std::source_location where = std::source_location::current()) const {
    have(where).drawPlan(path, where);
  }
  /// As `tressel::dump` says (debug.h).
  void dump(const std::string &path, typename detail::CallParameter<P>::Type... args) const {
    dumpCall(path, lineOf(args...), detail::leaf(args)...);
  }

private:
  /// Rebuilds the arguments around traced tensors and collects the result's.
  class Body final : public detail::TraceBody {
  public:
    Body(Fn &fn, std::tuple<const P &...> args) : fn_(fn), args_(args) {}

    std::vector<Tensor> run(std::span<const Tensor> inputs, std::shared_ptr<void> *prototype) override {
      std::tuple<P...> args = args_;
      size_t next = 0;
      auto take = [&](const Tensor &) -> Tensor { return detail::inputAt(inputs, next++); };
      detail::mapTree(args, take);
      detail::checkInputsUsed(inputs, next);
      auto result = std::make_shared<Result>();
      if constexpr (std::is_void_v<R>)
        std::apply(fn_, args);
      else
        *result = std::apply(fn_, args);
      struct Collect {
        std::vector<Tensor> tensors;
        void tensor(const Tensor &t) { tensors.push_back(t); }
        void word(uint64_t) {}
      } collect;
      detail::visitTree(std::as_const(*result), collect);
      if (prototype)
        *prototype = result;
      return std::move(collect.tensors);
    }
    size_t argumentOf(bool tensor, size_t index) const override { return detail::argumentOf(args_, tensor, index); }

  private:
    Fn &fn_;
    std::tuple<const P &...> args_;
  };

  /// f(core, static words, body) for arguments that have their default values.
  template <typename F> auto withDefaults(const std::source_location &where, F &&f) const {
    detail::JitCore &core = have(where);
    std::tuple<P...> defaults;
    detail::CallArgs args;
    detail::visitTree(defaults, args);
    Body body(*fn_, defaults);
    return f(core, args.words(), body);
  }

  /// The line of the first argument that knows it.
  template <typename... A> static std::source_location lineOf(const A &...args) {
    std::source_location where;
    auto look = [&](const auto &a) {
      if constexpr (std::is_same_v<std::decay_t<decltype(a)>, Arg>)
        if (!where.line())
          where = a.where();
    };
    (look(args), ...);
    return where;
  }

  detail::JitCore &have(const std::source_location &where) const {
    if (!core_) [[unlikely]]
      detail::failMoved("jitted function", where);
    return *core_;
  }

  R callWith(const std::source_location &where, const P &...args) const {
    detail::JitCore &core = have(where);
    if (detail::runsOpByOp()) {
      const detail::CallDepth depth(core, where);
      return (*fn_)(args...);
    }
    detail::CallArgs call;
    (detail::visitTree(args, call), ...);
    Body body(*fn_, std::tie(args...));
    if constexpr (std::is_same_v<R, Tensor>) {
      return core.callOne(call, body, where);
    } else {
      std::vector<Tensor> results;
      auto prototype = core.call(call, body, results, where);
      if constexpr (!std::is_void_v<R>) {
        R out = *static_cast<const R *>(prototype.get());
        size_t next = 0;
        auto take = [&](const Tensor &) -> Tensor { return std::move(results[next++]); };
        detail::mapTree(out, take);
        return out;
      }
    }
  }
  void dumpCall(const std::string &path, const std::source_location &where, const P &...args) const {
    detail::JitCore &core = have(where);
    detail::CallArgs call;
    (detail::visitTree(args, call), ...);
    Body body(*fn_, std::tie(args...));
    core.dump(path, call, body, where);
  }
  std::string record(bool text, const std::source_location &where, const P &...args) const {
    detail::JitCore &core = have(where);
    detail::CallArgs call;
    (detail::visitTree(args, call), ...);
    Body body(*fn_, std::tie(args...));
    return core.traceOnly(call, body, text, where);
  }

  std::shared_ptr<Fn> fn_;
  std::shared_ptr<detail::JitCore> core_;
};

/// See the top of this file. `fn` is a function or a lambda without `auto` parameters, over trees (tree.h).
template <typename Fn> auto jit(Fn fn, JitOptions options = {}) {
  static_assert(detail::HasSignature<Fn>,
                "jit needs to know the parameters' types: give a lambda with `Tensor` instead "
                "of `auto`, or a function that is not overloaded");
  using S = detail::Signature<Fn>;
  return Jitted<Fn, typename S::Result, typename S::Parameters>(std::move(fn), std::move(options));
}

} // namespace tressel
