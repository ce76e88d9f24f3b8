#include "CublasKernel.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <climits>
#include <cstdio>

namespace tressel::runtime::cuda {
namespace {

constexpr int64_t kMostStride = int64_t(1) << 40;

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

std::string spell(const lt::Algorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

std::optional<lt::Algorithm> parseAlgorithm(const std::string &text) {
  lt::Algorithm algorithm{};
  if (text.size() != 16 * std::size(algorithm.data) || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(text.substr(16 * i, 16), nullptr, 16);
  return algorithm;
}

} // namespace

struct CublasKernel::Plan final : LibraryKernel::Plan {
  explicit Plan(const CublasLt &library) : library(library) {}
  ~Plan() override {
    if (operation)
      library.cublasLtMatmulDescDestroy(operation);
    for (lt::Layout layout : {a, b, d})
      if (layout)
        library.cublasLtMatrixLayoutDestroy(layout);
    if (preference)
      library.cublasLtMatmulPreferenceDestroy(preference);
  }

  const CublasLt &library;
  lt::Operation operation = nullptr;
  lt::Layout a = nullptr, b = nullptr, d = nullptr; ///< of the right operand, the left one, and of result and residual
  lt::Preference preference = nullptr;
  lt::Algorithm algorithm{};
};

CublasKernel::CublasKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                           std::shared_ptr<const GpuKernel> generated, const CublasLt &library, lt::Handle handle,
                           const Card &card, const Driver &driver)
    : LibraryKernel({.name = "cuBLASLt", .choices = kName, .variable = "TRESSEL_CUBLAS_TUNE", .mostAlignment = 256},
                    desc, std::move(generated), card, driver),
      library_(library), handle_(handle) {
  auto side = [&](const json::Value &value) {
    const auto &strides = value.at("strides").items();
    if (strides.size() != 3)
      throwError<InputError>("an operand has ", strides.size(), " strides instead of 3");
    return Side{operandFrom(value.at("buffer")), {sizeFrom(strides[0]), sizeFrom(strides[1]), sizeFrom(strides[2])}};
  };
  try {
    if (!parseDType(call.at("type").asString(), type_) || !dataType(type_))
      throwError<InputError>("products of ", call.at("type").asString(), " are not computed by cuBLASLt");
    batch_ = sizeFrom(call.at("batch")), m_ = sizeFrom(call.at("m")), n_ = sizeFrom(call.at("n")),
    k_ = sizeFrom(call.at("k"));
    left_ = side(call.at("left")), right_ = side(call.at("right"));
    result_ = operandFrom(call.at("result"));
    if (const json::Value *found = call.find("bias"))
      bias_ = operandFrom(*found);
    if (const json::Value *found = call.find("residual"))
      residual_ = operandFrom(*found);
    if (const json::Value *found = call.find("alpha"))
      alpha_ = static_cast<float>(found->asDouble());
    if (const json::Value *found = call.find("relu"))
      relu_ = found->asBool();
    readSymbols(params);
  } catch (const InputError &problem) {
    refuseDescription(problem.message());
  }
  operands_ = {left_.buffer, right_.buffer, residual_ ? residual_ : result_, result_, bias_};
}

void CublasKernel::check(lt::Status status, const char *what) const {
  if (status != lt::kDone)
    fail(concat(what, " failed: ", library_.describe(status)));
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
std::optional<CublasKernel::Numbers> CublasKernel::numbersOf(std::span<const int64_t> scalars) const {
  const dim::Values values = valuesOf(scalars);
  Numbers n;
  try {
    auto number = [&](Size size) { return numberOf(size, values); };
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

void CublasKernel::checkBytes(const Numbers &n, const Call &call) const {
  auto need = [&](uint32_t buffer, const std::array<int64_t, 3> &extents, const std::array<int64_t, 3> &strides) {
    __int128 elements = 1;
    for (size_t i = 0; i < 3; ++i)
      elements += static_cast<__int128>(extents[i] - 1) * strides[i];
    needElements(call, buffer, elements, type_);
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
std::unique_ptr<LibraryKernel::Plan> CublasKernel::make(const Key &key, const Call &call) const {
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
  std::string text = concat(LibraryKernel::problemOf(library_.version), ",", nameOf(type_), ",", n.batch, ",", n.m, ",",
                            n.n, ",", n.k);
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

  const Tuning tuned = tuning(call);
  const std::string problem = tuned == Tuning::Off ? "" : problemOf(key, numbers);
  if (tuned != Tuning::Off)
    if (const auto kept = parseAlgorithm(choices().find(problem).value_or(""))) {
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
  const int wanted = tuned == Tuning::On ? static_cast<int>(kMostCandidates) : 1;
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
  const auto fastest = measure(usable.size(), call, result_, residual_, [&](size_t candidate, void *result) {
    return multiply(plan, usable[candidate].algorithm, call, result) == lt::kDone;
  });
  if (!fastest)
    return;
  plan.algorithm = usable[*fastest].algorithm;
  choices().keep(problem, spell(plan.algorithm));
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

bool CublasKernel::run(const LibraryKernel::Plan &of, const Call &call) const {
  const auto &plan = static_cast<const Plan &>(of);
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

} // namespace tressel::runtime::cuda
