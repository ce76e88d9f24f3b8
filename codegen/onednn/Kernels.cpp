// The kernels of the provider "onednn": oneDNN primitives called for one unit of work at a time, by one thread each.
#include "codegen/onednn/Params.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

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
/// A range of `channels` of the `all` that images have: [images, channels, space...] whatever the order in memory.
static memory::desc imagesOf(int64_t images, int64_t channels, int64_t all, const std::vector<int64_t> &space,
                             bool channelsLast) {
  Dims dims{images, channels}, strides(2 + space.size(), 1);
  dims.insert(dims.end(), space.begin(), space.end());
  int64_t step = channelsLast ? all : 1;
  for (size_t i = dims.size() - 1; i > 1; --i)
    strides[i] = step, step *= dims[i];
  strides[1] = channelsLast ? 1 : step;
  strides[0] = channelsLast ? step : step * all;
  return plain(dims, strides);
}
static memory::desc any(const Dims &dims) {
  return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
}

// --- The primitives of one description -------------------------------------------------------------------------------

/// A matrix product: one primitive for full blocks of rows and one for the last block.
struct MatmulPlan {
  Matmul<int64_t> p;
  dnnl::matmul::primitive_desc full, last;
  memory::desc plainRight;

  explicit MatmulPlan(const Numbers &params, bool packed) : p(params.matmul) {
    const Matmul<int64_t> &m = p;
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

/// A convolution of the images of a unit, for a range of their features; or its derivative by the images, for a range
/// of their channels.
struct ConvPlan {
  Conv<int64_t> p;
  bool byData;
  dnnl::primitive_desc conv;
  memory::desc given, weights, made; ///< as the caller has them
  bool packed;
  memory::desc stored; ///< one block of the packed weights

  /// Packed weights have the layout that suits `layout` best, where that is another plan; what this one wants is made
  /// of it.
  ConvPlan(const Numbers &params, bool packed, const ConvPlan *layout = nullptr)
      : p(params.conv), byData(params.kind == Kind::ConvByData), packed(packed) {
    const Conv<int64_t> &c = p;
    Dims w = c.groups > 1 ? Dims{c.groups, outs() / c.groups, ins() / c.groups} : Dims{outs(), ins()}, dilations;
    w.insert(w.end(), c.window.begin(), c.window.end());
    weights = rowMajor(w);
    if (c.groups == 1) { // by the data, a range of the channels is a part of each feature's weights
      Dims strides(w.size(), 1);
      for (size_t d = w.size() - 1; d > 0; --d)
        strides[d - 1] = strides[d] * (d == 1 ? c.inChannels : w[d]);
      weights = plain(w, strides);
    }
    const memory::desc image = imagesOf(c.images, ins(), c.inChannels, c.in, c.channelsLast),
                       result = imagesOf(c.images, outs(), c.outChannels, c.out, c.channelsLast);
    given = byData ? result : image, made = byData ? image : result;
    for (int64_t x : c.dilations)
      dilations.push_back(x - 1);
    // Plain layouts mean a product over a copy of the image for each tap. Blocked ones pay for their reorders, but
    // where there is one tap and few channels.
    const bool fillsVectors = ins() / c.groups >= 16 && outs() / c.groups >= 16;
    const bool blocked = !c.channelsLast && (fillsVectors || (c.groups == 1 && elements(c.window) > 1));
    const memory::desc from = blocked ? any(image.dims()) : imagesOf(c.images, ins(), ins(), c.in, c.channelsLast),
                       to = blocked ? any(result.dims()) : imagesOf(c.images, outs(), outs(), c.out, c.channelsLast);
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    auto make = [&](const memory::desc &right) -> dnnl::primitive_desc {
      using dnnl::convolution_backward_data, dnnl::convolution_forward;
      auto forward = [&](dnnl::prop_kind kind) {
        return convolution_forward::desc(kind, direct, from, right, to, c.strides, dilations, c.padLow, c.padHigh);
      };
      if (!byData)
        return convolution_forward::primitive_desc(forward(dnnl::prop_kind::forward_inference), userScratch(),
                                                   engine());
      return convolution_backward_data::primitive_desc(
          convolution_backward_data::desc(direct, from, right, to, c.strides, dilations, c.padLow, c.padHigh),
          userScratch(), engine(),
          convolution_forward::primitive_desc(forward(dnnl::prop_kind::forward_training), engine()));
    };
    if (!packed || !layout) {
      conv = make(any(w));
    } else {
      try {
        conv = make(layout->stored);
      } catch (const dnnl::error &) { // these sizes want another layout
        conv = make(any(w));
      }
    }
    stored = !packed ? weights : layout ? layout->stored : weightsDesc();
  }
  // As the library wants them.
  memory::desc givenDesc() const { return byData ? conv.diff_dst_desc(0) : conv.src_desc(0); }
  memory::desc weightsDesc() const { return conv.weights_desc(0); }
  memory::desc madeDesc() const { return byData ? conv.diff_src_desc(0) : conv.dst_desc(0); }
  /// Channels of a unit.
  int64_t ins() const { return byData ? p.inChannels / p.blocks : p.inChannels; }
  int64_t outs() const { return byData ? p.outChannels : p.outChannels / p.blocks; }
  /// Where the images of a unit begin, and a range of their channels.
  int64_t givenElements() const {
    return p.images * (byData ? elements(p.out) * p.outChannels : elements(p.in) * p.inChannels);
  }
  int64_t madeElements() const {
    return p.images * (byData ? elements(p.in) * p.inChannels : elements(p.out) * p.outChannels);
  }
  int64_t madeRange() const {
    return (byData ? ins() : outs()) * (p.channelsLast ? 1 : elements(byData ? p.in : p.out));
  }
  int64_t weightRange() const { return elements(p.window) * (byData ? ins() : outs() * (p.inChannels / p.groups)); }
  int64_t weightElements() const { return elements(p.window) * (ins() / p.groups) * outs(); }
  bool reordersGiven() const { return givenDesc() != given; }
  bool reordersMade() const { return madeDesc() != made; }
  bool reordersWeights() const { return weightsDesc() != stored; }
  int64_t packedBlockBytes() const { return aligned(stored.get_size()); }
  int64_t scratchBytes() const {
    return aligned(conv.scratchpad_desc().get_size()) + (reordersGiven() ? aligned(givenDesc().get_size()) : 0) +
           (reordersMade() ? aligned(madeDesc().get_size()) : 0) +
           (reordersWeights() ? aligned(weightsDesc().get_size()) : 0);
  }

private:
  static int64_t elements(const std::vector<int64_t> &sizes) {
    int64_t n = 1;
    for (int64_t s : sizes)
      n *= s;
    return n;
  }
};

/// The derivative of a convolution by a range of its weights, a number of images at a time, whose sums are added up:
/// what the library wants in another layout than it has is copied, and stays in the cache so.
struct ByWeightsPlan {
  struct Part {
    dnnl::convolution_backward_weights::primitive_desc conv;
    memory::desc src, dst; ///< as the caller has them
    bool reorderSrc() const { return conv.src_desc() != src; }
    bool reorderDst() const { return conv.diff_dst_desc() != dst; }
  };
  Conv<int64_t> p;
  int64_t images; ///< of a full part
  Part full, last;
  memory::desc weights; ///< as the caller has them

  explicit ByWeightsPlan(const Numbers &params) : p(params.conv) {
    const int64_t groups = groupsOf();
    Dims w = p.groups > 1 ? Dims{groups, features() / groups, channels() / groups} : Dims{features(), channels()};
    w.insert(w.end(), p.window.begin(), p.window.end());
    weights = rowMajor(w);
    constexpr int64_t kBytes = int64_t(2) << 20;
    const int64_t each = 4 * (channels() * imageElements() + features() * placeElements());
    images = std::clamp<int64_t>(std::max(kBytes, 4 * weightElements()) / std::max<int64_t>(each, 1), 1,
                                 std::max<int64_t>(p.batch, 1));
    full = make(images);
    last = p.batch % images ? make(p.batch % images) : full;
  }
  /// Of the range.
  int64_t groupsOf() const { return p.groups > 1 ? p.groups / p.blocks : 1; }
  int64_t features() const { return p.outChannels / p.blocks; }
  int64_t channels() const { return p.groups > 1 ? p.inChannels / p.blocks : p.inChannels; }
  int64_t imageElements() const { return elements(p.in); }
  int64_t placeElements() const { return elements(p.out); }
  int64_t weightElements() const { return features() * (channels() / groupsOf()) * elements(p.window); }
  bool reorderWeights(const Part &part) const { return part.conv.diff_weights_desc() != weights; }
  int64_t scratchBytes() const { return std::max(scratchBytes(full), scratchBytes(last)); }
  int64_t scratchBytes(const Part &part) const {
    return aligned(part.conv.scratchpad_desc().get_size()) +
           (part.reorderSrc() ? aligned(part.conv.src_desc().get_size()) : 0) +
           (part.reorderDst() ? aligned(part.conv.diff_dst_desc().get_size()) : 0) +
           (reorderWeights(part) ? aligned(part.conv.diff_weights_desc().get_size()) : 0) + aligned(weights.get_size());
  }

private:
  static int64_t elements(const std::vector<int64_t> &sizes) {
    int64_t n = 1;
    for (int64_t s : sizes)
      n *= s;
    return n;
  }
  Part make(int64_t count) const {
    Part part;
    part.src = imagesOf(count, channels(), p.inChannels, p.in, /*channelsLast=*/false);
    part.dst = imagesOf(count, features(), p.outChannels, p.out, /*channelsLast=*/false);
    Dims dilations;
    for (int64_t x : p.dilations)
      dilations.push_back(x - 1);
    const bool blocked =
        (channels() / groupsOf() >= 16 && features() / groupsOf() >= 16) || (groupsOf() == 1 && elements(p.window) > 1);
    const memory::desc src = blocked ? any(part.src.dims()) : part.src, dst = blocked ? any(part.dst.dims()) : part.dst,
                       w = any(weights.dims());
    const dnnl::convolution_forward::primitive_desc hint{
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, src, w,
                                        dst, p.strides, dilations, p.padLow, p.padHigh),
        engine()};
    part.conv = {dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, src, w, dst, p.strides,
                                                          dilations, p.padLow, p.padHigh),
                 userScratch(), engine(), hint};
    return part;
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

constexpr std::align_val_t kAlignment{64};
struct FreeAligned {
  void operator()(std::byte *memory) const { ::operator delete(memory, kAlignment); }
};
/// Scratch memory where the launch brings none.
struct SlotBase {
  dnnl::stream stream{engine()};
  std::unique_ptr<std::byte, FreeAligned> scratch;
  void *scratchOr(void *launch) const { return scratch ? scratch.get() : launch; }
};

/// What a kernel keeps: one Slot per concurrent caller, made when first needed and used again ever after.
template <class Plan, class Slot> struct State {
  Numbers params;
  int32_t numInputs;
  Plan plan;
  bool ownScratch; ///< of each slot; else the launch's
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Slot>> free;

  State(const Numbers &params, int32_t numInputs, Plan plan, bool ownScratch)
      : params(params), numInputs(numInputs), plan(std::move(plan)), ownScratch(ownScratch) {
    free.push_back(make());
    free.reserve(64);
  }
  std::unique_ptr<Slot> make() const {
    auto slot = std::make_unique<Slot>(plan);
    if (ownScratch)
      slot->scratch.reset(
          static_cast<std::byte *>(::operator new(static_cast<size_t>(plan.scratchBytes()) + 1, kAlignment)));
    return slot;
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
    return make();
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

struct MatmulSlot : SlotBase {
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
    const Matmul<int64_t> &p = s.plan.p;
    auto *left = static_cast<float *>(args->buffers[s.params.left]);
    auto *right = static_cast<float *>(args->buffers[s.params.packed >= 0 ? s.params.packed : s.params.right]);
    auto *out = static_cast<float *>(args->buffers[s.numInputs]);
    int64_t perBatch = (p.m + p.rows - 1) / p.rows;
    for (int64_t u = begin; u < end; ++u) {
      int64_t batch = u / perBatch, row = u % perBatch * p.rows;
      Call &call = row + p.rows <= p.m ? slot.full : slot.last;
      if (!call.run(slot.stream, {left + batch * p.a[0] + row * p.a[1], right + batch * p.b[0],
                                  out + (batch * p.m + row) * p.n, slot.scratchOr(args->scratch)}))
        return false;
    }
    return true;
  });
}

/// Pieces of scratch memory, one behind the other.
struct Pieces {
  void *next;
  void *take(const memory::desc &desc) {
    return std::exchange(next, static_cast<std::byte *>(next) + aligned(desc.get_size()));
  }
};

struct ConvSlot : SlotBase {
  Call conv;
  std::unique_ptr<Call> given, weights, made;
  explicit ConvSlot(const ConvPlan &p)
      : conv(dnnl::primitive(p.conv), {{p.byData ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, p.givenDesc()},
                                       {DNNL_ARG_WEIGHTS, p.weightsDesc()},
                                       {p.byData ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, p.madeDesc()},
                                       {DNNL_ARG_SCRATCHPAD, p.conv.scratchpad_desc()}}) {
    if (p.reordersGiven())
      given = std::make_unique<Call>(reorder(p.given, p.givenDesc()));
    if (p.reordersWeights())
      weights = std::make_unique<Call>(reorder(p.stored, p.weightsDesc()));
    if (p.reordersMade())
      made = std::make_unique<Call>(reorder(p.madeDesc(), p.made));
  }
};
using ConvState = State<ConvPlan, ConvSlot>;

static int32_t runConv(const KernelArgs *args, int64_t begin, int64_t end) {
  return ConvState::call(args, [&](const ConvState &s, ConvSlot &slot) {
    const ConvPlan &p = s.plan;
    Pieces scratch{slot.scratchOr(args->scratch)};
    void *pad = scratch.take(p.conv.scratchpad_desc());
    void *givenCopy = slot.given ? scratch.take(p.givenDesc()) : nullptr;
    void *madeCopy = slot.made ? scratch.take(p.madeDesc()) : nullptr;
    void *weightsCopy = slot.weights ? scratch.take(p.weightsDesc()) : nullptr;
    int64_t lastImage = -1, lastBlock = -1;
    for (int64_t u = begin; u < end; ++u) {
      int64_t image = u / p.p.blocks, block = u % p.p.blocks;
      void *x = static_cast<float *>(args->buffers[s.params.left]) + image * p.givenElements();
      void *y = static_cast<float *>(args->buffers[s.numInputs]) + image * p.madeElements() + block * p.madeRange();
      void *w = p.packed ? static_cast<std::byte *>(args->buffers[s.params.packed]) + block * p.packedBlockBytes()
                         : static_cast<std::byte *>(args->buffers[s.params.right]) + block * p.weightRange() * 4;
      if (slot.given) {
        if (image != lastImage && !slot.given->run(slot.stream, {x, givenCopy}))
          return false;
        x = givenCopy;
      }
      if (slot.weights) {
        if (block != lastBlock && !slot.weights->run(slot.stream, {w, weightsCopy}))
          return false;
        w = weightsCopy;
      }
      lastImage = image, lastBlock = block;
      if (!slot.conv.run(slot.stream, {x, w, slot.made ? madeCopy : y, pad}))
        return false;
      if (slot.made && !slot.made->run(slot.stream, {madeCopy, y}))
        return false;
    }
    return true;
  });
}

struct ByWeightsSlot : SlotBase {
  struct Part {
    Call conv;
    std::unique_ptr<Call> src, dst, weights;
    Part(const ByWeightsPlan &plan, const ByWeightsPlan::Part &p)
        : conv(dnnl::convolution_backward_weights(p.conv), {{DNNL_ARG_SRC, p.conv.src_desc()},
                                                            {DNNL_ARG_DIFF_DST, p.conv.diff_dst_desc()},
                                                            {DNNL_ARG_DIFF_WEIGHTS, p.conv.diff_weights_desc()},
                                                            {DNNL_ARG_SCRATCHPAD, p.conv.scratchpad_desc()}}) {
      if (p.reorderSrc())
        src = std::make_unique<Call>(reorder(p.src, p.conv.src_desc()));
      if (p.reorderDst())
        dst = std::make_unique<Call>(reorder(p.dst, p.conv.diff_dst_desc()));
      if (plan.reorderWeights(p))
        weights = std::make_unique<Call>(reorder(p.conv.diff_weights_desc(), plan.weights));
    }
  };
  Part full, last;
  explicit ByWeightsSlot(const ByWeightsPlan &p) : full(p, p.full), last(p, p.last) {}
};
using ByWeightsState = State<ByWeightsPlan, ByWeightsSlot>;

static int32_t runByWeights(const KernelArgs *args, int64_t begin, int64_t end) {
  return ByWeightsState::call(args, [&](const ByWeightsState &s, ByWeightsSlot &slot) {
    const ByWeightsPlan &plan = s.plan;
    auto *x = static_cast<float *>(args->buffers[s.params.left]),
         *dy = static_cast<float *>(args->buffers[s.params.right]),
         *out = static_cast<float *>(args->buffers[s.numInputs]);
    for (int64_t u = begin; u < end; ++u) {
      float *sum = out + u * plan.weightElements();
      for (int64_t first = 0; first < plan.p.batch; first += plan.images) {
        const bool isFull = first + plan.images <= plan.p.batch;
        const ByWeightsPlan::Part &part = isFull ? plan.full : plan.last;
        ByWeightsSlot::Part &calls = isFull ? slot.full : slot.last;
        Pieces scratch{slot.scratchOr(args->scratch)};
        void *pad = scratch.take(part.conv.scratchpad_desc());
        void *image =
            x + (first * plan.p.inChannels + (plan.p.groups > 1 ? u * plan.channels() : 0)) * plan.imageElements();
        void *given = dy + (first * plan.p.outChannels + u * plan.features()) * plan.placeElements();
        auto inLayout = [&](std::unique_ptr<Call> &call, void *&data, const memory::desc &layout) {
          if (!call)
            return true;
          void *copy = scratch.take(layout);
          return call->run(slot.stream, {std::exchange(data, copy), copy});
        };
        if (!inLayout(calls.src, image, part.conv.src_desc()) || !inLayout(calls.dst, given, part.conv.diff_dst_desc()))
          return false;
        float *to = first == 0 ? sum : static_cast<float *>(scratch.take(plan.weights));
        void *made = calls.weights ? scratch.take(part.conv.diff_weights_desc()) : to;
        if (!calls.conv.run(slot.stream, {image, given, made, pad}) ||
            (calls.weights && !calls.weights->run(slot.stream, {made, to})))
          return false;
        if (first > 0)
          for (int64_t i = 0; i < plan.weightElements(); ++i)
            sum[i] += to[i];
      }
    }
    return true;
  });
}

/// Packs run once per binding, so one kernel makes all of it: operand 0 in, result out.
struct PackState {
  Numbers params;
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
    const Numbers sizes = params.typical();
    if (params.kind == Kind::Matmul) {
      // Sizes of more than 32 bits: the library counts blocks of them in fewer, and divides by zero.
      if (const auto &m = sizes.matmul; std::max({m.m, m.n, m.k}) > std::numeric_limits<int32_t>::max())
        return it->second;
      MatmulPlan plan(sizes, packed);
      it->second = {true, true, {packed ? aligned(plan.full.weights_desc().get_size()) : 0, plan.scratchBytes()}};
    } else if (params.kind == Kind::ConvByWeights) {
      it->second = {true, true, {0, ByWeightsPlan(sizes).scratchBytes()}};
    } else {
      ConvPlan plan(sizes, packed);
      const std::string_view code = plan.conv.impl_info_str();
      it->second = {true,
                    code.find("gemm") == code.npos && code.find("ref") == code.npos,
                    {packed ? plan.packedBlockBytes() * params.conv.blocks : 0, plan.scratchBytes()}};
    }
  } catch (const dnnl::error &) {
    // not supported: the default answer
  }
  return it->second;
}

template <class State> static runtime::LoadedKernel loaded(runtime::KernelFn fn, std::shared_ptr<State> state) {
  return {fn, state.get(), state};
}

/// A kernel of fixed sizes. `layout` is the plan by which weights were packed, where that is another one. Throws
/// dnnl::error.
static runtime::LoadedKernel makeFixed(const Numbers &params, int32_t numInputs, bool ownScratch = false,
                                       const ConvPlan *layout = nullptr) {
  const bool packed = params.packed >= 0;
  switch (params.kind) {
  case Kind::Matmul:
    return loaded(runMatmul, std::make_shared<MatmulState>(params, numInputs, MatmulPlan(params, packed), ownScratch));
  case Kind::Conv:
  case Kind::ConvByData:
    return loaded(runConv,
                  std::make_shared<ConvState>(params, numInputs, ConvPlan(params, packed, layout), ownScratch));
  case Kind::ConvByWeights:
    return loaded(runByWeights, std::make_shared<ByWeightsState>(params, numInputs, ByWeightsPlan(params), ownScratch));
  case Kind::PackMatmul: {
    MatmulPlan plan(params, true);
    return loaded(runPack, std::make_shared<PackState>(
                               PackState{params, numInputs, plan.plainRight, plan.full.weights_desc(), 1, 0, 0}));
  }
  case Kind::PackConv: {
    ConvPlan plan(params, true);
    return loaded(
        runPack, std::make_shared<PackState>(PackState{params, numInputs, plan.weights, plan.stored, params.conv.blocks,
                                                       plan.weightElements() * 4, plan.packedBlockBytes()}));
  }
  }
  throw InternalError("unknown kind of oneDNN kernel");
}

/// A kernel of symbolic sizes: one of fixed sizes for each of the last few sizes it was called with.
struct SizedState {
  static constexpr size_t kMostSizes = 16;
  struct Entry {
    std::vector<int64_t> sizes;
    uint64_t used;
    runtime::LoadedKernel kernel; ///< no function: the result is empty
  };
  Params params;
  int32_t numInputs;
  std::optional<ConvPlan> layout;
  mutable std::mutex mutex;
  mutable std::vector<Entry> entries;
  mutable uint64_t clock = 0;

  SizedState(const Params &params, int32_t numInputs) : params(params), numInputs(numInputs) {
    if (params.kind == Kind::Conv && params.packed >= 0)
      layout.emplace(params.typical(), true);
    entries.reserve(kMostSizes + 1);
  }

  runtime::LoadedKernel find(const int64_t *scalars) const {
    const std::span<const int64_t> sizes(scalars, params.symbols.size());
    std::lock_guard lock(mutex);
    for (Entry &entry : entries)
      if (std::ranges::equal(entry.sizes, sizes)) {
        entry.used = ++clock;
        return entry.kernel;
      }
    dim::Values values;
    for (size_t i = 0; i < sizes.size(); ++i)
      values.bind(params.symbols[i], sizes[i]);
    const Numbers fixed = params.at(values);
    const bool isEmpty = fixed.kind == Kind::Matmul ? fixed.matmul.batch < 1 || fixed.matmul.m < 1 || fixed.matmul.n < 1
                                                    : fixed.conv.batch < 1 || std::ranges::min(fixed.conv.out) < 1;
    runtime::LoadedKernel kernel;
    if (!isEmpty)
      kernel = makeFixed(fixed, numInputs, /*ownScratch=*/true, layout ? &*layout : nullptr);
    if (entries.size() == kMostSizes)
      entries.erase(std::ranges::min_element(entries, {}, &Entry::used)); // running calls share it
    entries.push_back({{sizes.begin(), sizes.end()}, ++clock, kernel});
    return kernel;
  }
};

static int32_t runSized(const KernelArgs *args, int64_t begin, int64_t end) {
  OneThread guard;
  try {
    const runtime::LoadedKernel kernel = static_cast<const SizedState *>(args->state)->find(args->scalars);
    KernelArgs fixed = *args;
    fixed.state = kernel.state;
    return kernel.fn ? kernel.fn(&fixed, begin, end) : runtime::kKernelOk;
  } catch (const std::exception &) {
    return runtime::kKernelLibraryFailed;
  }
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
  try {
    if (!params.symbols.empty())
      return loaded(runSized, std::make_shared<SizedState>(params, desc.numInputs));
    return makeFixed(params.at({}), desc.numInputs);
  } catch (const dnnl::error &e) {
    throw InputError("oneDNN cannot run kernel '" + desc.symbol + "' on this CPU: " + e.what());
  }
}

void registerKernels() { runtime::registerKernelProvider("onednn", makeKernel); }

} // namespace tressel::onednn
