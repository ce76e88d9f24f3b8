#include "frontend/tensor/Convert.h"
#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/trace/Recorder.h"
#include "tressel/runtime/Engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <tressel/ops.h>

namespace tressel {
using detail::TensorImpl;
using detail::toLoc;
using runtime::Engine;
using runtime::Storage;

void Dim::failConversion() const {
  detail::fail<TraceError>("the size " + str() +
                               " of a dimension, which is only known when the program runs, was turned into an integer "
                               "while tracing",
                           toLoc(where_), "dim",
                           "keep it a Dim: shapes take it, and + - * / % work on it; or fix the size of the dimension");
}

Dim Dim::divide(const Dim &by, bool rest) const {
  if (by.size_ == 0)
    detail::fail<Error>("a size is divided by 0", toLoc(where_), "dim");
  return {rest ? dim::mod(size_, by.size_) : dim::floorDiv(size_, by.size_), where_};
}

static void failUndecided(const Dim &a, const Dim &b, const char *what) {
  detail::fail<TraceError>("whether " + a.str() + what + b.str() + " is only known when the program runs",
                           toLoc(a.is_static() ? b.where() : a.where()), "dim",
                           "give the dimension bounds that decide it, or write the program so that it fits all sizes");
}
bool Dim::isEqual(const Dim &other) const {
  if (dim::equal(size_, other.size_))
    return true;
  if (!dim::distinct(size_, other.size_))
    failUndecided(*this, other, " == ");
  return false;
}
bool Dim::isLess(const Dim &other) const {
  const auto less = dim::less(size_, other.size_);
  if (!less)
    failUndecided(*this, other, " < ");
  return *less;
}

void Tensor::failEmpty(const std::source_location &where) {
  detail::fail<Error>("an empty Tensor was used", toLoc(where), "",
                      "it never had a value, or was moved from: assign it one first");
}

void detail::failMoved(const std::string &what, const std::source_location &where) {
  fail<Error>("this " + what + " was moved from", toLoc(where), "",
              "use what it was moved to, or copy instead of moving");
}

void Tensor::destroy(TensorImpl *impl) { delete impl; }

namespace detail {
namespace {

/// The memory of a freed tensor, linked through its first bytes.
struct FreeTensor {
  FreeTensor *next;
};
constexpr uint32_t kFreeTensors = 32;
thread_local constinit FreeTensor *freeTensors = nullptr;
thread_local constinit uint32_t numFreeTensors = kFreeTensors; // full until AtEnd, which frees them, exists
thread_local constinit bool endFreesThem = false;

struct AtEnd {
  ~AtEnd() {
    numFreeTensors = kFreeTensors;
    while (FreeTensor *tensor = freeTensors) {
      freeTensors = tensor->next;
      ::operator delete(tensor);
    }
  }
};

[[gnu::noinline]] void deleteOrBegin(void *memory) {
  if (!std::exchange(endFreesThem, true)) {
    static thread_local AtEnd atEnd;
    (void)atEnd;
    numFreeTensors = 0;
  }
  ::operator delete(memory);
}

} // namespace

void *TensorImpl::operator new(size_t bytes) {
  if (FreeTensor *tensor = freeTensors) {
    freeTensors = tensor->next;
    --numFreeTensors;
    return tensor;
  }
  return ::operator new(bytes);
}

void TensorImpl::operator delete(void *memory) {
  if (numFreeTensors == kFreeTensors)
    return deleteOrBegin(memory);
  freeTensors = new (memory) FreeTensor{freeTensors};
  ++numFreeTensors;
}

} // namespace detail

Dim Tensor::dim(int i, std::source_location where) const {
  const int n = get(where).type.rank();
  if (i < -n || i >= n)
    detail::fail<ShapeError>("there is no dimension " + std::to_string(i) + " in " + type().str(), toLoc(where), "dim");
  return {type().shape[i < 0 ? i + n : i], where};
}

/// Waits for the elements.
static const TensorImpl &waitFor(const TensorImpl &t, SourceLoc where, const char *what) {
  if (t.trace)
    detail::fail<TraceError>(std::string(what) + " of a traced tensor " + t.type.str() + " (made at " + t.where.str() +
                                 ") has no value while the program is being recorded",
                             where, what,
                             "choose between values with where() or cond(), loop with while_loop(), for_loop() or "
                             "scan(), or return the tensor and read it outside");
  Engine::global().wait(*t.storage, where, what);
  return t;
}

bool Tensor::ready() const {
  const TensorImpl &t = get();
  return !t.trace && Engine::reached(t.storage->ready());
}

void Tensor::wait(std::source_location where) const { waitFor(get(where), toLoc(where), "wait"); }

const void *Tensor::data(std::source_location where) const {
  return detail::elementsOf(waitFor(get(where), toLoc(where), "data"), toLoc(where), "data");
}

static const void *oneElement(const TensorImpl &t, SourceLoc where, const char *what) {
  if (!t.trace && t.type.shape.numElements() != 1)
    detail::fail<ShapeError>(std::string(what) + " needs exactly one element, not " + t.type.str(), where, what);
  return detail::elementsOf(waitFor(t, where, what), where, what);
}

double Tensor::itemAsDouble(std::source_location where) const {
  return detail::loadDouble(oneElement(get(where), toLoc(where), "item"), dtype(), 0);
}
int64_t Tensor::itemAsInt(std::source_location where) const {
  return detail::loadInt(oneElement(get(where), toLoc(where), "item"), dtype(), 0);
}

Tensor::operator bool() const {
  const TensorImpl &t = get();
  return detail::loadDouble(oneElement(t, t.where, "conversion to bool"), t.type.dtype, 0) != 0;
}

void Tensor::copyTo(void *to, DType as, std::source_location where) const {
  const TensorImpl &t = waitFor(get(where), toLoc(where), "to_vector");
  detail::convertElements(to, as, detail::elementsOf(t, toLoc(where), "to_vector"), t.type.dtype,
                          t.type.shape.numElements());
}

Tensor &Tensor::operator+=(Arg other) { return *this = Arg(*this, other.where()) + std::move(other); }
Tensor &Tensor::operator-=(Arg other) { return *this = Arg(*this, other.where()) - std::move(other); }
Tensor &Tensor::operator*=(Arg other) { return *this = Arg(*this, other.where()) * std::move(other); }
Tensor &Tensor::operator/=(Arg other) { return *this = Arg(*this, other.where()) / std::move(other); }

namespace detail {

std::atomic<uint64_t> variableEpoch{0};
std::atomic<uint64_t> structureEpoch{0};

Tensor makeTensor(const TensorType &type, runtime::StorageRef storage, SourceLoc where) {
  auto *impl = new TensorImpl;
  impl->type = type;
  if (storage)
    impl->home = homeNumber(storage->device());
  impl->storage = std::move(storage);
  impl->where = where;
  return Tensor(impl);
}

int64_t bytesOf(const TensorType &type, SourceLoc where, const char *op) {
  int64_t bytes = sizeOf(type.dtype);
  bool isEmpty = false;
  for (Size size : type.shape)
    isEmpty |= size == 0;
  for (Size size : type.shape)
    if (!isEmpty && __builtin_mul_overflow(bytes, size.number(), &bytes))
      fail<ShapeError>("a tensor " + type.str() + " has more bytes than can be addressed", where, op);
  return isEmpty ? 0 : bytes;
}

Tensor allocateTensor(const TensorType &type, SourceLoc where, const char *op) {
  return allocateTensor(type, bytesOf(type, where, op), where, op);
}

Tensor resultTensor(const TensorType &type, int64_t bytes, SourceLoc where) {
  return makeTensor(type, Engine::output(bytes), where);
}

/// From this size on, memory that the host writes counts against the bound.
static constexpr int64_t kBounded = int64_t(1) << 20;

Tensor allocateTensor(const TensorType &type, int64_t bytes, SourceLoc where, const char *op) {
  try {
    if (bytes >= kBounded)
      Engine::global().makeRoomFor(bytes, {.op = op, .where = where});
    return makeTensor(type, Storage::allocate(bytes), where);
  } catch (const OutOfMemory &e) {
    fail<OutOfMemory>(type.str() + ": " + e.message(), where, op);
  }
}

void checkCount(size_t have, const Shape &shape, std::source_location where) {
  for (Size d : shape)
    if (d < 0)
      fail<ShapeError>("a size of " + shape.str() + " is negative", toLoc(where), "from_span");
  if (static_cast<int64_t>(have) != shape.numElements())
    fail<ShapeError>(std::to_string(have) + " elements do not fill the shape " + shape.str(), toLoc(where),
                     "from_span");
}

Tensor fromBytes(const void *data, const TensorType &type, std::source_location where) {
  Tensor t = allocateTensor(type, toLoc(where));
  if (type.bytes())
    std::memcpy(t.impl()->storage->data(), data, static_cast<size_t>(type.bytes()));
  return t;
}

static void collect(const Nested &n, int depth, const Shape &shape, std::vector<const Nested *> &out, SourceLoc where) {
  const bool isList = n.kind == Nested::Kind::List;
  if (isList != (depth < shape.rank()) || (isList && static_cast<int64_t>(n.list.size()) != shape[depth]))
    fail<ShapeError>("the rows of the list differ in length or depth", where, "tensor");
  if (!isList)
    out.push_back(&n);
  for (const Nested &e : n.list)
    collect(e, depth + 1, shape, out, where);
}

/// Whether its integer part fits the integer type.
static bool fitsInteger(const Nested &n, DType type) {
  const int bits = static_cast<int>(sizeOf(type)) * 8 - (isSigned(type) ? 1 : 0);
  const double limit = std::ldexp(1.0, bits); // one beyond the largest
  if (!n.isInteger)
    return n.number < limit && (isSigned(type) ? n.number >= -limit : n.number > -1);
  if (type == DType::i64)
    return true;
  const int64_t end = int64_t(1) << bits;
  return n.integer < end && n.integer >= (isSigned(type) ? -end : 0);
}

static std::string textOf(const Nested &n) {
  std::ostringstream text;
  if (n.isInteger)
    text << n.integer;
  else
    text << n.number;
  return text.str();
}

/// The element type of a list for which none is given.
static DType typeOf(std::span<const Nested *const> numbers, SourceLoc where) {
  auto any = [&](Nested::Kind kind) {
    return std::ranges::any_of(numbers, [kind](const Nested *n) { return n->kind == kind; });
  };
  if (!any(Nested::Kind::Float))
    return any(Nested::Kind::Int) ? DType::i64 : any(Nested::Kind::Bool) ? DType::boolean : DType::f32;
  for (const Nested *n : numbers)
    if (n->kind == Nested::Kind::Int &&
        (!n->isInteger || static_cast<__int128>(static_cast<float>(n->integer)) != n->integer))
      fail<Error>(textOf(*n) + " stands beside fractional numbers, which are f32, and f32 has no such number", where,
                  "tensor", "name a type: tensor({...}, f64)");
  return DType::f32;
}

Tensor fromNested(const Nested &list, std::optional<DType> given, std::source_location where) {
  Shape shape;
  for (const Nested *n = &list; n && n->kind == Nested::Kind::List; n = n->list.empty() ? nullptr : &n->list.front()) {
    if (shape.rank() == kMaxRank)
      fail<ShapeError>("the list is nested deeper than " + std::to_string(kMaxRank) + " levels", toLoc(where),
                       "tensor");
    shape.push_back(static_cast<int64_t>(n->list.size()));
  }
  std::vector<const Nested *> numbers;
  collect(list, 0, shape, numbers, toLoc(where));
  const DType dtype = given ? *given : typeOf(numbers, toLoc(where));
  Tensor t = allocateTensor({dtype, shape}, toLoc(where));
  auto *out = static_cast<std::byte *>(t.impl()->storage->data());
  for (const Nested *n : numbers) {
    if (isInteger(dtype) && !fitsInteger(*n, dtype))
      fail<Error>(textOf(*n) + " does not fit " + std::string(nameOf(dtype)), toLoc(where), "tensor");
    // From the integer where there is one: not every i64 is a double.
    if (n->isInteger)
      convertElements(out, dtype, &n->integer, DType::i64, 1);
    else
      convertElements(out, dtype, &n->number, DType::f64, 1);
    out += sizeOf(dtype);
  }
  return t;
}

Tensor filled(const Shape &shape, double value, DType dtype, const std::source_location &where, const char *op) {
  for (Size d : shape)
    if (d < 0)
      fail<ShapeError>("a size of " + shape.str() + " is negative", toLoc(where), op);
  Tensor t = allocateTensor({dtype, shape}, toLoc(where), op);
  auto *data = static_cast<std::byte *>(t.impl()->storage->data());
  const size_t width = static_cast<size_t>(sizeOf(dtype)), bytes = static_cast<size_t>(t.type().bytes());
  if (!bytes)
    return t;
  convertElements(data, dtype, &value, DType::f64, 1);
  for (size_t done = width; done < bytes; done *= 2)
    std::memcpy(data + done, data, std::min(done, bytes - done));
  return t;
}

} // namespace detail

Tensor from_bytes(const void *data, const TensorType &type, std::source_location where) {
  return detail::fromBytes(data, type, where);
}

Tensor adopt(void *data, const TensorType &type, runtime::Storage::Deleter deleter, void *user) {
  if (!data && type.bytes())
    throw Error("adopt: the memory of " + type.str() + " is null");
  return detail::makeTensor(type, Storage::adopt(data, type.bytes(), deleter, user), {});
}

/// With symbolic sizes an op of the trace, else a constant.
static Tensor constantOf(const Sizes &sizes, double value, DType dtype, const std::source_location &where,
                         const char *op) {
  if (std::any_of(sizes.values().begin(), sizes.values().end(), [](Size size) { return size.isSymbolic(); }))
    return full(sizes, value, dtype, where);
  if (sizes.size() > static_cast<size_t>(kMaxRank))
    detail::fail<ShapeError>("a tensor has at most " + std::to_string(kMaxRank) + " dimensions", toLoc(where), op);
  return detail::filled(Shape(std::span<const Size>(sizes.values())), value, dtype, where, op);
}
Tensor zeros(const Sizes &shape, DType dtype, std::source_location where) {
  return constantOf(shape, 0, dtype, where, "zeros");
}
Tensor ones(const Sizes &shape, DType dtype, std::source_location where) {
  return constantOf(shape, 1, dtype, where, "ones");
}

Tensor arange(const Dim &from, const Dim &to, int64_t step, DType dtype, std::source_location where) {
  if (step == 0)
    detail::fail<ShapeError>("the step is 0", toLoc(where), "arange");
  if (!from.is_static() || !to.is_static()) {
    const Size count =
        dim::max(0, dim::ceilDiv(step > 0 ? to.raw() - from.raw() : from.raw() - to.raw(), step > 0 ? step : -step));
    Tensor indices = iota(Sizes{Dim(count, where)}, 0, dtype, where) * step;
    return from.is_static() ? indices + int64_t(from) : indices + dim_size(from, dtype, where);
  }
  const int64_t start = from, stop = to;
  std::vector<int64_t> values;
  for (int64_t v = start; step > 0 ? v < stop : v > stop; v += step)
    values.push_back(v);
  Tensor t = detail::allocateTensor({dtype, {static_cast<int64_t>(values.size())}}, toLoc(where));
  detail::convertElements(t.impl()->storage->data(), dtype, values.data(), DType::i64, t.size());
  return t;
}

void wait_all(std::source_location where) { Engine::global().waitAll(toLoc(where)); }

Variable::Variable(Tensor value, std::string name) : Variable() {
  if (value.traced())
    detail::fail<TraceError>("a Variable cannot be made from a traced tensor", value.impl()->where, "Variable",
                             "make Variables outside of the traced function and assign them inside");
  impl_->home = value.impl()->home;
  impl_->value = std::move(value);
  impl_->name = std::move(name);
}

Tensor Variable::value(std::source_location where) const {
  if (!get(where).value.defined())
    detail::fail<Error>("the Variable '" + impl_->name + "' has no value yet", toLoc(where), "",
                        "initialize the module it belongs to, or assign it");
  if (detail::Recorder *r = detail::Recorder::current())
    return r->readVariable(impl_, toLoc(where));
  return impl_->get(toLoc(where));
}

void Variable::assign(const Tensor &value, std::source_location where) const {
  if (!value.defined())
    detail::fail<Error>("the Variable '" + get(where).name + "' is assigned an empty Tensor", toLoc(where), "assign",
                        "assign it one that has a value");
  if (get(where).value.defined() && impl_->value.type() != value.type())
    detail::fail<ShapeError>("the Variable '" + impl_->name + "' is " + impl_->value.type().str() +
                                 " and cannot be assigned " + value.type().str(),
                             toLoc(where), "assign");
  if (detail::Recorder *r = detail::Recorder::current()) {
    if (!impl_->value.defined())
      detail::fail<TraceError>("the Variable '" + impl_->name + "' gets its first value inside a traced function",
                               toLoc(where), "assign", "give it a value before");
    return r->assignVariable(impl_, value, toLoc(where));
  }
  impl_->set(value);
}

} // namespace tressel
