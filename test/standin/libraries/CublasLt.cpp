// A stand-in for cuBLASLt, on the stand-in driver: libcublasLt.so.13. It computes what the descriptors say, by plain
// loops over the addresses that they lead to, as an operation of the stream. So a wrong leading dimension, type,
// epilogue or pointer shows in the numbers, and a missing wait among the findings.
//
// It takes column-major and row-major matrices of f32, f16 and bf16, sums in f32, batches, alpha and beta from the
// host, bias and relu. It has four algorithms, which add up in different orders and differ in what they need; what one
// of them cannot do is refused, as NVIDIA's library refuses it. By the documentation ("cuBLAS", "Using the cuBLASLt
// API"); nothing of the project is used.
#include "CublasControl.h"
#include "Library.h"
#include "Numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace {

using tressel::standin::CublasControl;
using tressel::standin::driver;
using tressel::standin::LibraryBytes;
using tressel::standin::Number;

enum Status : int { kOk = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
enum Type : int { kFloat = 0, kHalf = 2, kBfloat = 14 };
constexpr int kColumns = 0, kRows = 1; // orders
constexpr int kCompute32F = 68;
constexpr int kNone = 0, kTranspose = 1;
constexpr uint32_t kReluBit = 2, kBiasBit = 4, kDefaultEpilogue = 1;

struct Context {
  uint64_t tag = 0x4c74;
};
struct Layout {
  uint32_t type = 0;
  int32_t order = kColumns;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batch = 1;
  int64_t batchStride = 0;
};
struct Operation {
  int32_t compute = kCompute32F, scale = kFloat, pointers = 0, transA = kNone, transB = kNone, transC = kNone, fill = 2;
  uint32_t epilogue = kDefaultEpilogue;
  uint64_t bias = 0;
  int64_t biasStride = 0;
  int32_t biasType = -1;
};
struct Preference {
  uint32_t search = 0;
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};
  float waves = 0;
  uint64_t implementations = ~uint64_t(0);
};
struct Algorithm {
  uint64_t data[8];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

CublasControl state;
std::mutex mutex;

int refuse(int status, const char *why) { return tressel::standin::refuse(state, status, why); }

//--- Attributes -------------------------------------------------------------------------------------------------------
struct Attribute {
  int number;
  void *value;
  size_t bytes;
};
int set(std::initializer_list<Attribute> all, int number, const void *value, size_t bytes) {
  for (const Attribute &each : all)
    if (each.number == number) {
      if (!value || bytes != each.bytes)
        return refuse(kInvalidValue, "the attribute has other bytes");
      std::memcpy(each.value, value, bytes);
      return kOk;
    }
  return refuse(kInvalidValue, "no such attribute");
}
#define ATTRIBUTE(number, member)                                                                                      \
  Attribute { number, &(member), sizeof(member) }

//--- Numbers ----------------------------------------------------------------------------------------------------------
size_t bytesOf(int type) { return type == kFloat ? 4 : 2; }
bool isKnown(int type) { return type == kFloat || type == kHalf || type == kBfloat; }

Number numberOf(int type) { return type == kFloat ? Number::Float : type == kHalf ? Number::Half : Number::Bfloat; }
float load(const std::byte *at, int type) { return tressel::standin::load(at, numberOf(type)); }
void store(std::byte *at, int type, float value) { tressel::standin::store(at, numberOf(type), value); }

//--- Algorithms -------------------------------------------------------------------------------------------------------
/// In the order in which the heuristic proposes them.
enum Kind : uint64_t {
  kWide = 11,  ///< needs pointers at 256 bytes, and columns at 16
  kTiled = 12, ///< needs pointers and columns at 16 bytes
  kSplit = 13, ///< adds up two halves of k apart from each other, in the workspace
  kPlain = 14,
};
constexpr Kind kKinds[] = {kWide, kTiled, kSplit, kPlain};

struct Problem {
  Operation operation;
  Layout a, b, c, d;
  int64_t m = 0, n = 0, k = 0;
};
/// Checks that they fit each other.
int problemOf(const Operation *operation, const Layout *a, const Layout *b, const Layout *c, const Layout *d,
              Problem &out) {
  if (!operation || !a || !b || !c || !d)
    return refuse(kInvalidValue, "a descriptor is missing");
  out = {*operation, *a, *b, *c, *d};
  const Operation &o = out.operation;
  if (o.compute != kCompute32F || o.scale != kFloat)
    return refuse(kNotSupported, "the type of computing");
  if (o.pointers != 0 || o.transC != kNone || o.fill != 2)
    return refuse(kNotSupported, "pointer mode, transposed result or fill mode");
  if (o.transA < kNone || o.transA > kTranspose || o.transB < kNone || o.transB > kTranspose)
    return refuse(kInvalidValue, "the transposition");
  if (o.epilogue != kDefaultEpilogue && o.epilogue != kReluBit && o.epilogue != kBiasBit &&
      o.epilogue != (kReluBit | kBiasBit))
    return refuse(kNotSupported, "the epilogue");
  for (const Layout *l : {a, b, c, d}) {
    if (!isKnown(static_cast<int>(l->type)))
      return refuse(kNotSupported, "the type of a matrix");
    if (l->order != kColumns && l->order != kRows)
      return refuse(kNotSupported, "the order of a matrix");
    if (l->rows == 0 || l->columns == 0)
      return refuse(kInvalidValue, "a matrix is empty");
    if (l->leading < static_cast<int64_t>(l->order == kColumns ? l->rows : l->columns))
      return refuse(kInvalidValue, "a leading dimension is less than the matrix");
    if (l->batch < 1 || l->batch != d->batch)
      return refuse(kInvalidValue, "the numbers of matrices differ");
  }
  if (a->type != b->type || c->type != d->type || (d->type != a->type && d->type != kFloat))
    return refuse(kNotSupported, "the types of the matrices together");
  if (o.epilogue & kBiasBit && o.biasType != -1 && o.biasType != static_cast<int32_t>(d->type))
    return refuse(kNotSupported, "the type of the bias");
  auto rows = [](const Layout &l, int transpose) {
    return static_cast<int64_t>(transpose == kNone ? l.rows : l.columns);
  };
  auto columns = [](const Layout &l, int transpose) {
    return static_cast<int64_t>(transpose == kNone ? l.columns : l.rows);
  };
  out.m = rows(*a, o.transA), out.k = columns(*a, o.transA), out.n = columns(*b, o.transB);
  for (const Layout *l : {c, d})
    if (static_cast<int64_t>(l->rows) != out.m || static_cast<int64_t>(l->columns) != out.n)
      return refuse(kInvalidValue, "the result has another size than the product");
  if (rows(*b, o.transB) != out.k)
    return refuse(kInvalidValue, "the inner sizes of the product differ");
  return kOk;
}

size_t workspaceOf(Kind kind, const Problem &p) {
  return kind == kSplit
             ? 2 * sizeof(float) * static_cast<size_t>(p.m) * static_cast<size_t>(p.n) * static_cast<size_t>(p.d.batch)
             : 0;
}
/// Null: it serves these matrices at these alignments.
const char *missing(Kind kind, const Problem &p, const uint64_t (&alignment)[4]) {
  const Layout *layouts[] = {&p.a, &p.b, &p.c, &p.d};
  for (int i = 0; i < 4; ++i) {
    const Layout &l = *layouts[i];
    const uint64_t element = bytesOf(static_cast<int>(l.type));
    if (alignment[i] % element)
      return "a matrix is not at a multiple of its element";
    if (kind != kWide && kind != kTiled)
      continue;
    if (alignment[i] % (kind == kWide ? 256 : 16))
      return "the algorithm needs matrices that are aligned better";
    if (static_cast<uint64_t>(l.leading) * element % 16 ||
        (l.batch > 1 && static_cast<uint64_t>(l.batchStride) * element % 16))
      return "the algorithm needs columns at 16 bytes";
  }
  return kind == kSplit && p.k < 2 ? "there is nothing to split" : nullptr;
}
bool find(const Algorithm &algorithm, Kind &kind) {
  for (const Kind each : kKinds)
    if (algorithm.data[0] == each && algorithm.data[7] == ~uint64_t(each))
      return kind = each, true;
  return false;
}
Algorithm spell(Kind kind) { return {{kind, 0, 0, 0, 0, 0, 0, ~uint64_t(kind)}}; }

//--- Products ---------------------------------------------------------------------------------------------------------
uint64_t offsetOf(const Layout &l, int64_t batch, int64_t row, int64_t column) {
  const int64_t inside = l.order == kColumns ? column * l.leading + row : row * l.leading + column;
  return static_cast<uint64_t>(batch * l.batchStride + inside) * bytesOf(static_cast<int>(l.type));
}
/// The bytes of a matrix without what lies between its columns.
void addBytes(std::vector<LibraryBytes> &list, uint64_t at, const Layout &l, bool isWrite) {
  const auto inner = static_cast<int64_t>(l.order == kColumns ? l.rows : l.columns),
             outer = static_cast<int64_t>(l.order == kColumns ? l.columns : l.rows);
  const uint64_t element = bytesOf(static_cast<int>(l.type));
  for (int32_t batch = 0; batch < l.batch; ++batch) {
    if (batch > 0 && l.batchStride == 0)
      return;
    const uint64_t first = at + static_cast<uint64_t>(batch * l.batchStride) * element;
    if (l.leading == inner) {
      list.push_back({first, static_cast<uint64_t>(inner * outer) * element, isWrite});
      continue;
    }
    for (int64_t i = 0; i < outer; ++i)
      list.push_back(
          {first + static_cast<uint64_t>(i * l.leading) * element, static_cast<uint64_t>(inner) * element, isWrite});
  }
}

struct Product {
  Problem problem;
  Kind kind;
  float alpha, beta;
  uint64_t a, b, c, d, workspace;

  void compute() const {
    const Problem &p = problem;
    auto at = [&](uint64_t address, int type) { return tressel::standin::hostOf(address, bytesOf(type)); };
    auto value = [&](uint64_t address, const Layout &l, int64_t batch, int64_t row, int64_t column) {
      return load(at(address + offsetOf(l, batch, row, column), static_cast<int>(l.type)), static_cast<int>(l.type));
    };
    std::vector<float> left(static_cast<size_t>(p.m * p.k)),
        right(static_cast<size_t>(p.n * p.k)); // op(A) by rows, op(B) by columns
    for (int32_t batch = 0; batch < p.d.batch; ++batch) {
      for (int64_t i = 0; i < p.k; ++i) {
        for (int64_t row = 0; row < p.m; ++row)
          left[static_cast<size_t>(row * p.k + i)] =
              p.operation.transA == kNone ? value(a, p.a, batch, row, i) : value(a, p.a, batch, i, row);
        for (int64_t column = 0; column < p.n; ++column)
          right[static_cast<size_t>(column * p.k + i)] =
              p.operation.transB == kNone ? value(b, p.b, batch, i, column) : value(b, p.b, batch, column, i);
      }
      for (int64_t row = 0; row < p.m; ++row)
        for (int64_t column = 0; column < p.n; ++column) {
          const float *x = &left[static_cast<size_t>(row * p.k)], *y = &right[static_cast<size_t>(column * p.k)];
          auto term = [&](int64_t i) { return x[i] * y[i]; }; // f16 and bf16: exact
          float sum = 0;
          if (kind == kSplit) {
            float parts[2] = {0, 0};
            for (int64_t i = 0; i < p.k; ++i)
              parts[i >= p.k / 2] += term(i);
            const uint64_t place = workspace + 8 * static_cast<uint64_t>((batch * p.n + column) * p.m + row);
            for (int half = 0; half < 2; ++half)
              store(at(place + 4 * static_cast<uint64_t>(half), kFloat), kFloat, parts[half]);
            sum = load(at(place, kFloat), kFloat) + load(at(place + 4, kFloat), kFloat);
          } else if (kind == kPlain)
            for (int64_t i = p.k; i-- > 0;)
              sum += term(i);
          else
            for (int64_t i = 0; i < p.k; ++i)
              sum += term(i);
          sum *= alpha;
          if (beta != 0)
            sum += beta * value(c, p.c, batch, row, column);
          const int type = static_cast<int>(p.d.type);
          if (p.operation.epilogue & kBiasBit)
            sum +=
                load(at(p.operation.bias + static_cast<uint64_t>(batch * p.operation.biasStride + row) * bytesOf(type),
                        type),
                     type);
          if (p.operation.epilogue & kReluBit)
            sum = sum > 0 ? sum : 0; // of NaN too
          store(at(d + offsetOf(p.d, batch, row, column), type), type, sum);
        }
    }
  }
};

} // namespace

PUBLIC CublasControl *tressel_standin_cublaslt() { return &state; }

PUBLIC size_t cublasLtGetVersion() { return tressel::standin::versionFrom("TRESSEL_STANDIN_CUBLASLT_VERSION", 130100); }

PUBLIC const char *cublasLtGetStatusName(int status) {
  switch (status) {
  case kOk:
    return "CUBLAS_STATUS_SUCCESS";
  case kNotInitialized:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case kInvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case kExecutionFailed:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case kNotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown cublas status";
}

PUBLIC int cublasLtCreate(Context **out) {
  const std::lock_guard lock(mutex);
  if (!out)
    return refuse(kInvalidValue, "no place for the handle");
  if (!driver())
    return refuse(kNotInitialized, "the stand-in driver is not there");
  *out = new Context;
  return kOk;
}
PUBLIC int cublasLtDestroy(Context *context) {
  delete context;
  return kOk;
}

PUBLIC int cublasLtMatrixLayoutCreate(Layout **out, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *out = new Layout{.type = static_cast<uint32_t>(type), .rows = rows, .columns = columns, .leading = leading};
  return kOk;
}
PUBLIC int cublasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return kOk;
}
PUBLIC int cublasLtMatrixLayoutSetAttribute(Layout *l, int attribute, const void *value, size_t bytes) {
  const std::lock_guard lock(mutex);
  return set({ATTRIBUTE(0, l->type), ATTRIBUTE(1, l->order), ATTRIBUTE(2, l->rows), ATTRIBUTE(3, l->columns),
              ATTRIBUTE(4, l->leading), ATTRIBUTE(5, l->batch), ATTRIBUTE(6, l->batchStride)},
             attribute, value, bytes);
}

PUBLIC int cublasLtMatmulDescCreate(Operation **out, int compute, int scale) {
  *out = new Operation{.compute = compute, .scale = scale};
  return kOk;
}
PUBLIC int cublasLtMatmulDescDestroy(Operation *operation) {
  delete operation;
  return kOk;
}
PUBLIC int cublasLtMatmulDescSetAttribute(Operation *o, int attribute, const void *value, size_t bytes) {
  const std::lock_guard lock(mutex);
  return set({ATTRIBUTE(0, o->compute), ATTRIBUTE(1, o->scale), ATTRIBUTE(2, o->pointers), ATTRIBUTE(3, o->transA),
              ATTRIBUTE(4, o->transB), ATTRIBUTE(5, o->transC), ATTRIBUTE(6, o->fill), ATTRIBUTE(7, o->epilogue),
              ATTRIBUTE(8, o->bias), ATTRIBUTE(10, o->biasStride), ATTRIBUTE(26, o->biasType)},
             attribute, value, bytes);
}

PUBLIC int cublasLtMatmulPreferenceCreate(Preference **out) {
  *out = new Preference;
  return kOk;
}
PUBLIC int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  delete preference;
  return kOk;
}
PUBLIC int cublasLtMatmulPreferenceSetAttribute(Preference *p, int attribute, const void *value, size_t bytes) {
  const std::lock_guard lock(mutex);
  return set({ATTRIBUTE(0, p->search), ATTRIBUTE(1, p->workspace), ATTRIBUTE(3, p->reductions),
              ATTRIBUTE(5, p->alignment[0]), ATTRIBUTE(6, p->alignment[1]), ATTRIBUTE(7, p->alignment[2]),
              ATTRIBUTE(8, p->alignment[3]), ATTRIBUTE(9, p->waves), ATTRIBUTE(12, p->implementations)},
             attribute, value, bytes);
}

PUBLIC int cublasLtMatmulAlgoGetHeuristic(Context *context, Operation *operation, Layout *a, Layout *b, Layout *c,
                                          Layout *d, Preference *preference, int wanted, Candidate *candidates,
                                          int *found) {
  const std::lock_guard lock(mutex);
  ++state.heuristics;
  if (!context || !preference || !candidates || !found || wanted <= 0)
    return refuse(kInvalidValue, "an argument of the heuristic");
  *found = 0;
  Problem p;
  if (const int status = problemOf(operation, a, b, c, d, p))
    return status;
  if (p.operation.epilogue & kBiasBit && (!p.operation.bias || p.operation.bias % bytesOf(static_cast<int>(p.d.type))))
    return refuse(kNotSupported, "the bias is not there, or not at a multiple of its element");
  if (state.hasNoAlgorithm)
    return refuse(kNotSupported, "asked for by a test");
  uint64_t alignment[4];
  std::copy(std::begin(preference->alignment), std::end(preference->alignment), alignment);
  for (const Kind kind : kKinds) {
    if (*found == wanted || (state.onlyAlgorithm && kind != state.onlyAlgorithm) ||
        workspaceOf(kind, p) > preference->workspace || missing(kind, p, alignment) ||
        (kind == kSplit && !(preference->reductions & 2)))
      continue;
    candidates[(*found)++] = {spell(kind), workspaceOf(kind, p), kOk, 1, {}};
  }
  return *found ? kOk : refuse(kNotSupported, "no algorithm");
}

PUBLIC int cublasLtMatmulAlgoCheck(Context *context, Operation *operation, Layout *a, Layout *b, Layout *c, Layout *d,
                                   const Algorithm *algorithm, Candidate *result) {
  const std::lock_guard lock(mutex);
  Problem p;
  if (!context || !algorithm || !result)
    return refuse(kInvalidValue, "an argument of the check");
  if (const int status = problemOf(operation, a, b, c, d, p))
    return status;
  Kind kind;
  if (!find(*algorithm, kind))
    return refuse(kInvalidValue, "no such algorithm");
  const uint64_t best[4] = {256, 256, 256, 256}; // pointers are not known here
  if (const char *why = missing(kind, p, best))
    return refuse(kNotSupported, why);
  result->workspace = workspaceOf(kind, p);
  result->state = kOk;
  return kOk;
}

PUBLIC int cublasLtMatmul(Context *context, Operation *operation, const float *alpha, uint64_t a, Layout *aLayout,
                          uint64_t b, Layout *bLayout, const float *beta, uint64_t c, Layout *cLayout, uint64_t d,
                          Layout *dLayout, const Algorithm *algorithm, uint64_t workspace, size_t workspaceBytes,
                          void *stream) {
  const std::lock_guard lock(mutex);
  if (!context || !driver())
    return refuse(kNotInitialized, "no handle");
  if (!alpha || !beta || !a || !b || !d)
    return refuse(kInvalidValue, "an argument of the product");
  if (state.failure)
    return refuse(state.failure, "asked for by a test");
  auto product = std::make_unique<Product>();
  Problem &p = product->problem;
  if (const int status = problemOf(operation, aLayout, bLayout, cLayout, dLayout, p))
    return status;
  const bool usesC = *beta != 0;
  if (usesC && !c)
    return refuse(kInvalidValue, "no matrix to add");
  if (usesC && c == d && (p.c.leading != p.d.leading || p.c.order != p.d.order || p.c.batchStride != p.d.batchStride))
    return refuse(kInvalidValue, "what is added in place has another layout");
  const uint64_t element = bytesOf(static_cast<int>(p.d.type));
  const bool hasBias = p.operation.epilogue & kBiasBit;
  if (hasBias && (!p.operation.bias || p.operation.bias % element))
    return refuse(kInvalidValue, "the bias is not there, or not at a multiple of its element");
  const uint64_t alignment[4] = {a | 256, b | 256, usesC ? c | 256 : 256, d | 256};
  product->kind = kPlain;
  if (algorithm) {
    if (!find(*algorithm, product->kind))
      return refuse(kInvalidValue, "no such algorithm");
    if (workspaceOf(product->kind, p) > workspaceBytes)
      return refuse(kInvalidValue, "the workspace is too small");
    if (workspaceOf(product->kind, p) && (!workspace || workspace % 16))
      return refuse(kInvalidValue, "the workspace is not there, or not aligned");
  }
  if (const char *why = missing(product->kind, p, alignment))
    return refuse(kNotSupported, why);
  product->alpha = *alpha, product->beta = *beta;
  product->a = a, product->b = b, product->c = c, product->d = d, product->workspace = workspace;
  std::vector<LibraryBytes> bytes;
  addBytes(bytes, a, p.a, false);
  addBytes(bytes, b, p.b, false);
  if (usesC)
    addBytes(bytes, c, p.c, false);
  if (hasBias)
    bytes.push_back({p.operation.bias, static_cast<uint64_t>(p.m) * element, false});
  addBytes(bytes, d, p.d, true);
  if (const size_t used = workspaceOf(product->kind, p))
    bytes.push_back({workspace, used, true});
  const int kind = static_cast<int>(product->kind);
  if (!tressel::standin::issue(stream, "cublasLtMatmul", bytes, std::move(product)))
    return refuse(kExecutionFailed, "the driver");
  ++state.products;
  state.lastAlgorithm = kind;
  return kOk;
}
