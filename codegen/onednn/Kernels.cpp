// The kernels of the provider "onednn": oneDNN primitives called for one unit of work at a time, by one thread each.
#include "codegen/onednn/Params.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <dlfcn.h>
#include <dnnl.hpp>
#include <map>
#include <mutex>

namespace tressel::onednn {

using dnnl::memory;
using Dims = memory::dims;
using runtime::KernelArgs;

static dnnl::engine &engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

/// oneDNN brings an OpenMP runtime that would start a team inside each task of our pool. The setting belongs to the
/// thread, which may be the user's own, so it is put back.
class OneThread {
public:
  OneThread() : before(get ? get() : 1) { put(1); }
  ~OneThread() { put(before); }
  OneThread(const OneThread &) = delete;

private:
  void put(int n) {
    if (set && before != 1)
      set(n);
  }
  static inline const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  static inline const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  int before;
};

static dnnl::primitive_attr userScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

static int64_t aligned(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); }

static memory::desc plain(const Dims &dims, const Dims &strides) {
  return memory::desc(dims, memory::data_type::f32, strides);
}
static memory::desc rowMajor(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * dims[i];
  return plain(dims, strides);
}
static memory::desc any(const Dims &dims) {
  return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
}

// --- The primitives of one description -------------------------------------------------------------------------------

/// A matrix product: one primitive for full blocks of rows and one for the last block.
struct MatmulPlan {
  Matmul p;
  dnnl::matmul::primitive_desc full, last;
  memory::desc plainRight;

  explicit MatmulPlan(const Matmul &m, bool packed) : p(m) {
    plainRight = plain({m.k, m.n}, {m.b[1], m.b[2]});
    full = make(m.rows, packed ? any({m.k, m.n}) : plainRight);
    int64_t rest = m.m % m.rows;
    last = rest ? make(rest, packed ? full.weights_desc() : plainRight) : full;
  }
  dnnl::matmul::primitive_desc make(int64_t rows, const memory::desc &right) const {
    // A single row may have any stride; oneDNN wants one that a dense matrix could have.
    Dims left = rows == 1 ? Dims{std::max(p.k * p.a[2], int64_t(1)), p.a[2]} : Dims{p.a[1], p.a[2]};
    return {dnnl::matmul::desc(plain({rows, p.k}, left), right, plain({rows, p.n}, {p.n, 1})), userScratch(), engine()};
  }
  int64_t scratchBytes() const {
    return std::max(aligned(full.scratchpad_desc().get_size()), aligned(last.scratchpad_desc().get_size()));
  }
};

/// A convolution of one image and one range of features.
struct ConvPlan {
  Conv p;
  dnnl::convolution_forward::primitive_desc conv;
  memory::desc src, weights, dst; ///< as the caller has them
  bool packed;

  ConvPlan(const Conv &c, bool packed) : p(c), packed(packed) {
    int64_t features = c.outChannels / c.blocks;
    Dims s{1, c.inChannels}, d{1, features}, w;
    if (c.groups > 1)
      w = {c.groups, features / c.groups, c.inChannels / c.groups};
    else
      w = {features, c.inChannels};
    s.insert(s.end(), c.in.begin(), c.in.end());
    d.insert(d.end(), c.out.begin(), c.out.end());
    w.insert(w.end(), c.window.begin(), c.window.end());
    src = rowMajor(s), weights = rowMajor(w), dst = rowMajor(d);
    Dims dilations;
    for (int64_t x : c.dilations)
      dilations.push_back(x - 1);
    // Blocked layouts pay for their reorders once both channel counts fill vectors; with few channels plain is faster.
    bool blocked = c.inChannels / c.groups >= 16 && features / c.groups >= 16;
    conv = {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                            blocked ? any(s) : src, any(w), blocked ? any(d) : dst, c.strides, dilations,
                                            c.padLow, c.padHigh),
            userScratch(), engine()};
  }
  int64_t imageElements() const { return elements(p.in) * p.inChannels; }
  int64_t unitElements() const { return elements(p.out) * (p.outChannels / p.blocks); }
  int64_t weightElements() const { return elements(p.window) * (p.inChannels / p.groups) * (p.outChannels / p.blocks); }
  bool reorderSrc() const { return conv.src_desc() != src; }
  bool reorderDst() const { return conv.dst_desc() != dst; }
  bool reorderWeights() const { return !packed && conv.weights_desc() != weights; }
  int64_t packedBlockBytes() const { return aligned(conv.weights_desc().get_size()); }
  int64_t scratchBytes() const {
    return aligned(conv.scratchpad_desc().get_size()) + (reorderSrc() ? aligned(conv.src_desc().get_size()) : 0) +
           (reorderDst() ? aligned(conv.dst_desc().get_size()) : 0) +
           (reorderWeights() ? aligned(conv.weights_desc().get_size()) : 0);
  }

private:
  static int64_t elements(const std::vector<int64_t> &sizes) {
    int64_t n = 1;
    for (int64_t s : sizes)
      n *= s;
    return n;
  }
};

// --- Calling ---------------------------------------------------------------------------------------------------------

/// A primitive with its memory objects. One caller at a time.
struct Call {
  dnnl::primitive primitive;
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> args;

  Call(dnnl::primitive p, std::initializer_list<std::pair<int, memory::desc>> operands) : primitive(std::move(p)) {
    for (const auto &[index, desc] : operands) {
      memories.emplace_back(desc, engine(), nullptr);
      args.push_back({index, memories.back().get()});
    }
  }
  /// Pointers in the order of the operands given to the constructor.
  bool run(dnnl::stream &stream, std::initializer_list<void *> pointers) {
    size_t i = 0;
    for (void *p : pointers)
      if (dnnl_memory_set_data_handle_v2(memories[i++].get(), p, stream.get()) != dnnl_success)
        return false;
    return dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(args.size()), args.data()) == dnnl_success;
  }
};

static Call reorder(const memory::desc &from, const memory::desc &to) {
  return Call(dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to)), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

/// What a kernel keeps: one Slot per concurrent caller, made when first needed and used again ever after.
template <class Plan, class Slot> struct State {
  Params params;
  int32_t numInputs;
  Plan plan;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Slot>> free;

  State(const Params &params, int32_t numInputs, Plan plan) : params(params), numInputs(numInputs), plan(std::move(plan)) {
    free.push_back(std::make_unique<Slot>(this->plan));
    free.reserve(64);
  }
  std::unique_ptr<Slot> take() const {
    {
      std::lock_guard lock(mutex);
      if (!free.empty()) {
        auto slot = std::move(free.back());
        free.pop_back();
        return slot;
      }
    }
    return std::make_unique<Slot>(plan);
  }
  void give(std::unique_ptr<Slot> slot) const {
    std::lock_guard lock(mutex);
    free.push_back(std::move(slot));
  }
  template <class Body> static int32_t call(const KernelArgs *args, Body body) {
    OneThread guard;
    const auto &state = *static_cast<const State *>(args->state);
    try {
      auto slot = state.take();
      bool fine = body(state, *slot);
      state.give(std::move(slot));
      return fine ? runtime::kKernelOk : runtime::kKernelLibraryFailed;
    } catch (const std::exception &) { // dnnl::error, bad_alloc: kernels never throw
      return runtime::kKernelLibraryFailed;
    }
  }
};

struct MatmulSlot {
  dnnl::stream stream{engine()};
  Call full, last;
  explicit MatmulSlot(const MatmulPlan &p) : full(call(p.full)), last(call(p.last)) {}
  static Call call(const dnnl::matmul::primitive_desc &pd) {
    return Call(dnnl::matmul(pd), {{DNNL_ARG_SRC, pd.src_desc()},
                                   {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                   {DNNL_ARG_DST, pd.dst_desc()},
                                   {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  }
};
using MatmulState = State<MatmulPlan, MatmulSlot>;

static int32_t runMatmul(const KernelArgs *args, int64_t begin, int64_t end) {
  return MatmulState::call(args, [&](const MatmulState &s, MatmulSlot &slot) {
    const Matmul &p = s.plan.p;
    auto *left = static_cast<float *>(args->buffers[s.params.left]);
    auto *right = static_cast<float *>(args->buffers[s.params.packed >= 0 ? s.params.packed : s.params.right]);
    auto *out = static_cast<float *>(args->buffers[s.numInputs]);
    int64_t perBatch = (p.m + p.rows - 1) / p.rows;
    for (int64_t u = begin; u < end; ++u) {
      int64_t batch = u / perBatch, row = u % perBatch * p.rows;
      Call &call = row + p.rows <= p.m ? slot.full : slot.last;
      if (!call.run(slot.stream, {left + batch * p.a[0] + row * p.a[1], right + batch * p.b[0],
                                  out + (batch * p.m + row) * p.n, args->scratch}))
        return false;
    }
    return true;
  });
}

struct ConvSlot {
  dnnl::stream stream{engine()};
  Call conv;
  std::unique_ptr<Call> src, weights, dst;
  explicit ConvSlot(const ConvPlan &p)
      : conv(dnnl::convolution_forward(p.conv), {{DNNL_ARG_SRC, p.conv.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, p.conv.weights_desc()},
                                                 {DNNL_ARG_DST, p.conv.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, p.conv.scratchpad_desc()}}) {
    if (p.reorderSrc())
      src = std::make_unique<Call>(reorder(p.src, p.conv.src_desc()));
    if (p.reorderWeights())
      weights = std::make_unique<Call>(reorder(p.weights, p.conv.weights_desc()));
    if (p.reorderDst())
      dst = std::make_unique<Call>(reorder(p.conv.dst_desc(), p.dst));
  }
};
using ConvState = State<ConvPlan, ConvSlot>;

static int32_t runConv(const KernelArgs *args, int64_t begin, int64_t end) {
  return ConvState::call(args, [&](const ConvState &s, ConvSlot &slot) {
    const ConvPlan &p = s.plan;
    auto *scratch = static_cast<std::byte *>(args->scratch);
    auto carve = [&](bool wanted, size_t bytes) {
      std::byte *here = scratch;
      if (wanted)
        scratch += aligned(bytes);
      return here;
    };
    std::byte *pad = carve(true, p.conv.scratchpad_desc().get_size());
    std::byte *srcCopy = carve(p.reorderSrc(), p.conv.src_desc().get_size());
    std::byte *dstCopy = carve(p.reorderDst(), p.conv.dst_desc().get_size());
    std::byte *weightsCopy = carve(p.reorderWeights(), p.conv.weights_desc().get_size());
    int64_t lastImage = -1, lastBlock = -1;
    for (int64_t u = begin; u < end; ++u) {
      int64_t image = u / p.p.blocks, block = u % p.p.blocks;
      void *x = static_cast<float *>(args->buffers[s.params.left]) + image * p.imageElements();
      void *y = static_cast<float *>(args->buffers[s.numInputs]) + u * p.unitElements();
      void *w = p.packed ? static_cast<std::byte *>(args->buffers[s.params.packed]) + block * p.packedBlockBytes()
                         : static_cast<std::byte *>(args->buffers[s.params.right]) + block * p.weightElements() * 4;
      if (p.reorderSrc()) {
        if (image != lastImage && !slot.src->run(slot.stream, {x, srcCopy}))
          return false;
        x = srcCopy;
      }
      if (p.reorderWeights()) {
        if (block != lastBlock && !slot.weights->run(slot.stream, {w, weightsCopy}))
          return false;
        w = weightsCopy;
      }
      lastImage = image, lastBlock = block;
      if (!slot.conv.run(slot.stream, {x, w, p.reorderDst() ? dstCopy : y, pad}))
        return false;
      if (p.reorderDst() && !slot.dst->run(slot.stream, {dstCopy, y}))
        return false;
    }
    return true;
  });
}

/// Packs run once per binding, so one kernel makes all of it: operand 0 in, result out.
struct PackState {
  Params params;
  int32_t numInputs;
  memory::desc from, to;
  int64_t blocks, fromStep, toStep; ///< in bytes
};

static int32_t runPack(const KernelArgs *args, int64_t begin, int64_t end) {
  OneThread guard;
  const auto &s = *static_cast<const PackState *>(args->state);
  try {
    dnnl::stream stream(engine());
    Call call = reorder(s.from, s.to);
    for (int64_t b = 0; b < s.blocks && begin == 0; ++b)
      if (!call.run(stream, {static_cast<std::byte *>(args->buffers[0]) + b * s.fromStep,
                             static_cast<std::byte *>(args->buffers[s.numInputs]) + b * s.toStep}))
        return runtime::kKernelLibraryFailed;
    return runtime::kKernelOk;
  } catch (const std::exception &) {
    return runtime::kKernelLibraryFailed;
  }
}

// --- What the rest sees ----------------------------------------------------------------------------------------------

Query query(const Params &params) {
  static std::mutex mutex;
  static std::map<std::string, Query> known;
  std::string key = params.toJson();
  std::lock_guard lock(mutex);
  auto [it, isNew] = known.try_emplace(key);
  if (!isNew)
    return it->second;
  OneThread guard;
  try {
    bool packed = params.packed >= 0;
    if (params.kind == Kind::Matmul) {
      MatmulPlan plan(params.matmul, packed);
      it->second = {true, {packed ? aligned(plan.full.weights_desc().get_size()) : 0, plan.scratchBytes()}};
    } else {
      ConvPlan plan(params.conv, packed);
      it->second = {true, {packed ? plan.packedBlockBytes() * params.conv.blocks : 0, plan.scratchBytes()}};
    }
  } catch (const dnnl::error &) {
    // not supported: the default answer
  }
  return it->second;
}

static runtime::LoadedKernel makeKernel(const runtime::KernelDesc &desc) {
  Params params = Params::fromJson(desc.params);
  for (int32_t operand : {params.left, params.right, params.packed})
    if (operand >= desc.numInputs)
      throw InputError("kernel '" + desc.symbol + "' reads operand " + std::to_string(operand) + " of " +
                       std::to_string(desc.numInputs));
  if (params.left < 0 || params.right < 0)
    throw InputError("kernel '" + desc.symbol + "' has no operands");
  OneThread guard;
  bool packed = params.packed >= 0;
  try {
    auto loaded = [](runtime::KernelFn fn, auto state) {
      return runtime::LoadedKernel{fn, state.get(), state};
    };
    switch (params.kind) {
    case Kind::Matmul:
      return loaded(runMatmul, std::make_shared<MatmulState>(params, desc.numInputs, MatmulPlan(params.matmul, packed)));
    case Kind::Conv:
      return loaded(runConv, std::make_shared<ConvState>(params, desc.numInputs, ConvPlan(params.conv, packed)));
    case Kind::PackMatmul: {
      MatmulPlan plan(params.matmul, true);
      return loaded(runPack, std::make_shared<PackState>(PackState{params, desc.numInputs, plan.plainRight,
                                                                   plan.full.weights_desc(), 1, 0, 0}));
    }
    case Kind::PackConv: {
      ConvPlan plan(params.conv, true);
      return loaded(runPack, std::make_shared<PackState>(PackState{params, desc.numInputs, plan.weights, plan.conv.weights_desc(),
                                                                   params.conv.blocks, plan.weightElements() * 4,
                                                                   plan.packedBlockBytes()}));
    }
    }
  } catch (const dnnl::error &e) {
    throw InputError("oneDNN cannot run kernel '" + desc.symbol + "' on this CPU: " + e.what());
  }
  throw InternalError("unknown kind of oneDNN kernel");
}

void registerKernels() { runtime::registerKernelProvider("onednn", makeKernel); }

} // namespace tressel::onednn
