#include "CublasKernel.h"

#include "CublasChoices.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Notes.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tressel::runtime::cuda {
namespace {

constexpr const char *kName = "cublaslt"; // codegen/cuda/Library.h
constexpr unsigned kMostAlignment = 256;  // more helps no algorithm
constexpr int kMostCandidates = 8;        // that are measured
constexpr int kRepetitions = 3;           // of each
constexpr size_t kMostPlans = 512;        // of one kernel: sizes that differ from launch to launch
constexpr int64_t kMostStride = int64_t(1) << 40;

void note(std::string_view what) {
  const std::string text = concat("tressel: note: ", what, "\n");
  if (isFirstNote(text))
    std::fputs(text.c_str(), stderr);
}

uint16_t alignmentOf(const void *address) {
  const int zeros = std::countr_zero(reinterpret_cast<uintptr_t>(address) | kMostAlignment);
  return static_cast<uint16_t>(1u << zeros);
}

std::optional<lt::DataType> dataType(DType type) {
  switch (type) {
  case f32:
    return lt::kF32;
  case f16:
    return lt::kF16;
  case bf16:
    return lt::kBf16;
  default:
    return std::nullopt;
  }
}

/// A matrix as the library is told of it: `rows` values behind each other, `leading` from column to column.
struct Stored {
  int64_t rows = 0, columns = 0, leading = 0;
  lt::Transpose transpose = lt::kAsStored;
};
/// For an operand of rows x columns with these strides. Nothing if the library has no such form.
std::optional<Stored> stored(int64_t rows, int64_t rowStride, int64_t columns, int64_t columnStride) {
  if ((rowStride == 1 || rows == 1) && (columnStride >= rows || columns == 1))
    return Stored{rows, columns, columns == 1 ? rows : columnStride, lt::kAsStored};
  if ((columnStride == 1 || columns == 1) && (rowStride >= columns || rows == 1))
    return Stored{columns, rows, rows == 1 ? columns : rowStride, lt::kTransposed};
  return std::nullopt;
}

bool overlap(const Region &a, const Region &b) {
  const auto x = reinterpret_cast<uintptr_t>(a.address), y = reinterpret_cast<uintptr_t>(b.address);
  return x < y + static_cast<uintptr_t>(b.bytes) && y < x + static_cast<uintptr_t>(a.bytes);
}

enum class Tuning : uint8_t { Off, Kept, On };
/// Whether algorithms are measured. Else choices that were kept still count, unless that is off.
Tuning tuning(bool measures) {
  const char *wanted = std::getenv("TRESSEL_CUBLAS_TUNE");
  if (wanted && std::strcmp(wanted, "0") == 0)
    return Tuning::Off;
  return measures || (wanted && *wanted) ? Tuning::On : Tuning::Kept;
}

/// An event that measures time, of this call alone.
class TimedEvent {
public:
  explicit TimedEvent(const Driver &driver) : driver_(driver) {
    driver.check(driver.cuEventCreate(&handle_, 0), "cuEventCreate");
  }
  ~TimedEvent() { driver_.cuEventDestroy(handle_); }
  TimedEvent(const TimedEvent &) = delete;
  EventHandle handle() const { return handle_; }

private:
  const Driver &driver_;
  EventHandle handle_ = nullptr;
};

/// Memory of the card for what is measured.
class Scratch {
public:
  Scratch(const Driver &driver, int64_t bytes) : driver_(driver) {
    if (driver.cuMemAlloc(&address_, static_cast<size_t>(bytes)) != kSuccess)
      address_ = 0;
  }
  ~Scratch() {
    if (address_)
      driver_.cuMemFree(address_);
  }
  Scratch(const Scratch &) = delete;
  void *address() const { return reinterpret_cast<void *>(address_); }

private:
  const Driver &driver_;
  Address address_ = 0;
};

} // namespace

struct CublasKernel::Plan {
  explicit Plan(const CublasLt &library) : library(library) {}
  ~Plan() {
    if (operation)
      library.cublasLtMatmulDescDestroy(operation);
    for (lt::Layout layout : {a, b, d})
      if (layout)
        library.cublasLtMatrixLayoutDestroy(layout);
    if (preference)
      library.cublasLtMatmulPreferenceDestroy(preference);
  }
  Plan(const Plan &) = delete;

  const CublasLt &library;
  lt::Operation operation = nullptr;
  lt::Layout a = nullptr, b = nullptr, d = nullptr; ///< of the right operand, the left one, and of result and residual
  lt::Preference preference = nullptr;
  lt::Algorithm algorithm{};
  mutable bool isTaken = false; ///< false: the generated kernel runs
};

CublasKernel::CublasKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                           std::shared_ptr<const GpuKernel> generated, const CublasLt &library, lt::Handle handle,
                           const Card &card, const Driver &driver)
    : CudaKernel(Form::Library), symbol_(desc.symbol), generated_(std::move(generated)), library_(library),
      handle_(handle), card_(card), driver_(driver) {
  auto size = [&](const json::Value &value) -> Size {
    if (value.kind() != json::Value::Kind::String)
      return value.asInt();
    const auto parsed = dim::parse(value.asString());
    if (!parsed)
      throwError<InputError>("'", value.asString(), "' is no size");
    return *parsed;
  };
  auto index = [&](const json::Value &value) {
    if (value.asInt() < 0 || value.asInt() > UINT16_MAX)
      throwError<InputError>(value.asInt(), " is no number of an operand");
    return static_cast<uint32_t>(value.asInt());
  };
  auto side = [&](const json::Value &value) {
    const auto &strides = value.at("strides").items();
    if (strides.size() != 3)
      throwError<InputError>("an operand has ", strides.size(), " strides instead of 3");
    return Side{index(value.at("buffer")), {size(strides[0]), size(strides[1]), size(strides[2])}};
  };
  try {
    if (!parseDType(call.at("type").asString(), type_) || !dataType(type_))
      throwError<InputError>("products of ", call.at("type").asString(), " are not computed by cuBLASLt");
    batch_ = size(call.at("batch")), m_ = size(call.at("m")), n_ = size(call.at("n")), k_ = size(call.at("k"));
    left_ = side(call.at("left")), right_ = side(call.at("right"));
    result_ = index(call.at("result"));
    if (const json::Value *found = call.find("bias"))
      bias_ = index(*found);
    if (const json::Value *found = call.find("residual"))
      residual_ = index(*found);
    if (const json::Value *found = call.find("alpha"))
      alpha_ = static_cast<float>(found->asDouble());
    if (const json::Value *found = call.find("relu"))
      relu_ = found->asBool();
    if (const json::Value *found = params.find("symbols"))
      for (const json::Value &symbol : found->items())
        symbols_.push_back(size(symbol));
  } catch (const InputError &problem) {
    throwError<InputError>("kernel '", symbol_, "': its call of cuBLASLt is not understood: ", problem.message());
  }
}

CublasKernel::~CublasKernel() = default;

void CublasKernel::check(lt::Status status, const char *what) const {
  if (status != lt::kDone)
    throwError<Error>("kernel '", symbol_, "': ", what, " failed: ", library_.describe(status));
}

void CublasKernel::noteGenerated(std::string_view why) const {
  note(concat("kernel '", symbol_, "' runs as generated: ", why));
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
std::optional<CublasKernel::Numbers> CublasKernel::numbersOf(std::span<const int64_t> scalars) const {
  dim::Values values;
  for (size_t i = 0; i < std::min(symbols_.size(), scalars.size()); ++i)
    values.bind(symbols_[i], scalars[i]);
  Numbers n;
  try {
    auto number = [&](Size size) { return size.isNumber() ? size.number() : dim::evaluate(size, values); };
    n.batch = number(batch_), n.m = number(m_), n.n = number(n_), n.k = number(k_);
    for (size_t i = 0; i < 3; ++i)
      n.left[i] = number(left_.strides[i]), n.right[i] = number(right_.strides[i]);
  } catch (const Error &) { // a symbol that the launch does not carry
    noteGenerated("the launch does not carry the sizes of its product");
    return std::nullopt;
  }
  for (int64_t extent : {n.batch, n.m, n.n, n.k})
    if (extent < 0 || extent > INT_MAX)
      return std::nullopt;
  for (const auto &strides : {n.left, n.right})
    for (int64_t stride : strides)
      if (stride < 0 || stride > kMostStride)
        return std::nullopt;
  return n;
}

CublasKernel::Key CublasKernel::keyOf(const Call &call) const {
  Key key;
  key.scalars.assign(call.scalars.begin(), call.scalars.end());
  auto of = [&](std::optional<uint32_t> buffer) {
    if (buffer && *buffer >= call.regions.size())
      throwError<Error>("kernel '", symbol_, "': the launch has ", call.regions.size(),
                        " operands, and its call of cuBLASLt names number ", *buffer);
    return buffer ? alignmentOf(call.regions[*buffer].address) : static_cast<uint16_t>(kMostAlignment);
  };
  key.alignments = {of(left_.buffer), of(right_.buffer), of(residual_ ? residual_ : result_), of(result_), of(bias_)};
  key.hasWorkspace = call.workspace != nullptr;
  return key;
}

void CublasKernel::checkBytes(const Numbers &n, const Call &call) const {
  auto need = [&](uint32_t buffer, const std::array<int64_t, 3> &extents, const std::array<int64_t, 3> &strides) {
    __int128 elements = 1;
    for (size_t i = 0; i < 3; ++i)
      elements += static_cast<__int128>(extents[i] - 1) * strides[i];
    if (elements * sizeOf(type_) > call.regions[buffer].bytes)
      throwError<Error>("kernel '", symbol_, "': operand ", buffer, " has ", call.regions[buffer].bytes,
                        " bytes, which its product is not within");
  };
  need(left_.buffer, {n.batch, n.m, n.k}, n.left);
  need(right_.buffer, {n.batch, n.k, n.n}, n.right);
  for (const std::optional<uint32_t> &buffer : {std::optional(result_), residual_})
    if (buffer)
      need(*buffer, {n.batch, n.m, n.n}, {n.m * n.n, n.n, 1});
  if (bias_)
    need(*bias_, {1, 1, n.n}, {0, 0, 1});
}

//--- Plans ------------------------------------------------------------------------------------------------------------
const CublasKernel::Plan *CublasKernel::plan(const Call &call) const {
  Key key = keyOf(call);
  auto at = plans_.find(key);
  if (at == plans_.end()) {
    if (plans_.size() >= kMostPlans)
      plans_.clear();
    auto made = make(key, call);
    at = plans_.emplace(std::move(key), std::move(made)).first;
  }
  return at->second && at->second->isTaken ? at->second.get() : nullptr;
}

std::unique_ptr<CublasKernel::Plan> CublasKernel::make(const Key &key, const Call &call) const {
  const auto n = numbersOf(call.scalars);
  if (!n || n->batch == 0 || n->m == 0 || n->n == 0 || n->k == 0)
    return nullptr;
  checkBytes(*n, call);
  const auto a = stored(n->n, n->right[2], n->k, n->right[1]), b = stored(n->k, n->left[2], n->m, n->left[1]);
  if (!a || !b) {
    noteGenerated("cuBLASLt does not take the strides of its operands");
    return nullptr;
  }
  auto plan = std::make_unique<Plan>(library_);
  const int type = *dataType(type_);
  auto layout = [&](lt::Layout &made, int64_t rows, int64_t columns, int64_t leading, int64_t batchStride) {
    check(library_.cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                              leading),
          "cublasLtMatrixLayoutCreate");
    if (n->batch == 1)
      return;
    const auto count = static_cast<int32_t>(n->batch);
    check(library_.cublasLtMatrixLayoutSetAttribute(made, lt::kBatchCount, &count, sizeof count),
          "setting a number of matrices");
    check(library_.cublasLtMatrixLayoutSetAttribute(made, lt::kBatchStride, &batchStride, sizeof batchStride),
          "setting the distance of matrices");
  };
  layout(plan->a, a->rows, a->columns, a->leading, n->right[0]);
  layout(plan->b, b->rows, b->columns, b->leading, n->left[0]);
  layout(plan->d, n->n, n->m, n->n, n->m * n->n);

  check(library_.cublasLtMatmulDescCreate(&plan->operation, lt::kComputeF32, lt::kF32), "cublasLtMatmulDescCreate");
  auto set = [&](int attribute, const auto &value) {
    check(library_.cublasLtMatmulDescSetAttribute(plan->operation, attribute, &value, sizeof value),
          "describing the product");
  };
  set(lt::kTransposeA, static_cast<int32_t>(a->transpose));
  set(lt::kTransposeB, static_cast<int32_t>(b->transpose));
  uint32_t epilogue = (bias_ ? lt::kBias : 0u) | (relu_ ? lt::kRelu : 0u);
  set(lt::kEpilogue, epilogue ? epilogue : static_cast<uint32_t>(lt::kPlain));
  if (bias_) {
    set(lt::kBiasType, static_cast<int32_t>(type));
    set(lt::kBiasPointer,
        static_cast<const void *>(call.regions[*bias_].address)); // its alignment counts in the choice
  }
  choose(*plan, key, *n, call);
  return plan;
}

std::string CublasKernel::problemOf(const Key &key, const Numbers &n) const {
  std::string card = card_.name;
  std::ranges::replace_if(
      card, [](char c) { return c <= ' ' || c > '~'; }, '_');
  std::string text =
      concat(card, ",", library_.version, ",", nameOf(type_), ",", n.batch, ",", n.m, ",", n.n, ",", n.k);
  for (const auto &strides : {n.left, n.right})
    for (int64_t stride : strides)
      text += concat(",", stride);
  text += concat(bias_ ? ",bias" : "", relu_ ? ",relu" : "", residual_ ? ",residual" : "",
                 key.hasWorkspace ? ",workspace" : "");
  for (uint16_t alignment : key.alignments)
    text += concat(",", alignment);
  return text;
}

void CublasKernel::choose(Plan &plan, const Key &key, const Numbers &numbers, const Call &call) const {
  check(library_.cublasLtMatmulPreferenceCreate(&plan.preference), "cublasLtMatmulPreferenceCreate");
  auto prefer = [&](int attribute, const auto &value) {
    check(library_.cublasLtMatmulPreferenceSetAttribute(plan.preference, attribute, &value, sizeof value),
          "saying what algorithms may use");
  };
  const uint64_t workspaceBytes = call.workspace ? kWorkspaceBytes : 0;
  prefer(lt::kWorkspaceBytes, workspaceBytes);
  prefer(lt::kAlignmentA, uint32_t{key.alignments[1]});
  prefer(lt::kAlignmentB, uint32_t{key.alignments[0]});
  prefer(lt::kAlignmentC, uint32_t{key.alignments[2]});
  prefer(lt::kAlignmentD, uint32_t{key.alignments[3]});
  if (type_ != f32)
    prefer(lt::kReductions, static_cast<uint32_t>(lt::kInComputeType));

  const Tuning tuned = tuning(call.measures);
  const std::string problem = tuned == Tuning::Off ? "" : problemOf(key, numbers);
  if (tuned != Tuning::Off)
    if (const auto kept = CublasChoices::get().find(problem)) {
      lt::Candidate checked{};
      if (library_.cublasLtMatmulAlgoCheck(handle_, plan.operation, plan.a, plan.b, plan.d, plan.d, &*kept, &checked) ==
              lt::kDone &&
          checked.workspaceBytes <= workspaceBytes) {
        plan.algorithm = *kept;
        plan.isTaken = true;
        return;
      }
    }
  std::array<lt::Candidate, kMostCandidates> candidates{};
  int found = 0;
  const int wanted = tuned == Tuning::On ? kMostCandidates : 1;
  const lt::Status status = library_.cublasLtMatmulAlgoGetHeuristic(
      handle_, plan.operation, plan.a, plan.b, plan.d, plan.d, plan.preference, wanted, candidates.data(), &found);
  if (status != lt::kDone && status != lt::kNotSupported && status != lt::kArchitectureMismatch)
    check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<lt::Candidate> usable;
  for (int i = 0; status == lt::kDone && i < std::min(found, wanted); ++i)
    if (const lt::Candidate &candidate = candidates[static_cast<size_t>(i)];
        candidate.state == lt::kDone && candidate.workspaceBytes <= workspaceBytes)
      usable.push_back(candidate);
  if (usable.empty()) {
    noteGenerated(concat("cuBLASLt has no algorithm for its product (", nameOf(type_), ", ", numbers.batch, " x ",
                         numbers.m, " x ", numbers.n, " x ", numbers.k, ")",
                         status == lt::kDone ? "" : concat(": ", library_.describe(status))));
    return;
  }
  plan.algorithm = usable.front().algorithm;
  plan.isTaken = true;
  if (tuned != Tuning::On || usable.size() == 1)
    return;
  measure(plan, usable, call);
  CublasChoices::get().keep(problem, plan.algorithm);
}

void CublasKernel::measure(Plan &plan, std::span<const lt::Candidate> candidates, const Call &call) const {
  void *result = call.regions[result_].address;
  std::optional<Scratch> scratch;
  if (residual_ &&
      overlap(call.regions[*residual_], call.regions[result_])) { // the residual is needed as it is for each run
    scratch.emplace(driver_, call.regions[result_].bytes);
    if (!scratch->address())
      return;
    result = scratch->address();
  }
  const TimedEvent begin(driver_), end(driver_);
  float best = 0;
  bool any = false;
  for (const lt::Candidate &candidate : candidates) {
    if (multiply(plan, candidate.algorithm, call, result) != lt::kDone) // loads its code
      continue;
    driver_.check(driver_.cuEventRecord(begin.handle(), call.stream), "cuEventRecord");
    bool runs = true;
    for (int i = 0; i < kRepetitions; ++i)
      runs &= multiply(plan, candidate.algorithm, call, result) == lt::kDone;
    driver_.check(driver_.cuEventRecord(end.handle(), call.stream), "cuEventRecord");
    driver_.check(driver_.cuEventSynchronize(end.handle()), concat("measuring kernel '", symbol_, "'"), card_.name);
    float milliseconds = 0;
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, begin.handle(), end.handle()), "cuEventElapsedTime");
    if (runs && (!any || milliseconds < best)) {
      best = milliseconds;
      plan.algorithm = candidate.algorithm;
      any = true;
    }
  }
  if (scratch) // what ran last may have failed and not been waited for
    driver_.check(driver_.cuStreamSynchronize(call.stream), concat("measuring kernel '", symbol_, "'"), card_.name);
}

//--- Launches ---------------------------------------------------------------------------------------------------------
lt::Status CublasKernel::multiply(const Plan &plan, const lt::Algorithm &algorithm, const Call &call,
                                  void *result) const {
  const float beta = residual_ ? 1 : 0;
  const void *residual = residual_ ? call.regions[*residual_].address : result;
  return library_.cublasLtMatmul(handle_, plan.operation, &alpha_, call.regions[right_.buffer].address, plan.a,
                                 call.regions[left_.buffer].address, plan.b, &beta, residual, plan.d, result, plan.d,
                                 &algorithm, call.workspace, call.workspace ? kWorkspaceBytes : 0, call.stream);
}

bool CublasKernel::run(const Plan &plan, const Call &call) const {
  if (bias_) {
    const void *bias = call.regions[*bias_].address;
    check(library_.cublasLtMatmulDescSetAttribute(plan.operation, lt::kBiasPointer, &bias, sizeof bias),
          "setting the bias");
  }
  const lt::Status status = multiply(plan, plan.algorithm, call, call.regions[result_].address);
  if (status == lt::kNotSupported || status == lt::kArchitectureMismatch) {
    noteGenerated(concat("cuBLASLt does not compute its product: ", library_.describe(status)));
    plan.isTaken = false;
    return false;
  }
  check(status, "cublasLtMatmul");
  return true;
}

//--- Loading ----------------------------------------------------------------------------------------------------------
DeviceKernelRef libraryKernel(const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated, const Card &card,
                              const Driver &driver) {
  const json::Value params = json::parse(desc.params);
  const json::Value *call = params.find("library");
  if (!call)
    return generated;
  const std::string name = call->at("name").asString();
  if (name != kName) {
    note(concat("calls of ", name, " are not made: the generated kernels run"));
    return generated;
  }
  std::string why;
  const CublasLt *library = CublasLt::find(driver, &why);
  const lt::Handle handle = library ? library->handleFor(card, driver, &why) : nullptr;
  if (!handle) {
    note(concat("products run as generated kernels, without cuBLASLt: ", why));
    return generated;
  }
  return std::make_shared<CublasKernel>(desc, params, *call, std::move(generated), *library, handle, card, driver);
}

} // namespace tressel::runtime::cuda
