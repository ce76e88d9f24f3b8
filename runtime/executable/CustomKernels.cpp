#include "tressel/runtime/CustomKernels.h"

#include "runtime/types/Concat.h"
#include "runtime/files/Json.h"
#include "tressel/runtime/CustomOp.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"
#include "tressel/runtime/Storage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace tressel::runtime {
namespace {

struct Kernels {
  std::mutex mutex;
  std::map<std::string, tressel_kernel> bySymbol;
};
/// Created at first use: libraries register kernels before main.
Kernels &kernels() {
  static Kernels &instance = *new Kernels();
  return instance;
}

void loadNamedLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char *list = std::getenv("TRESSEL_LIBRARIES");
    for (std::string_view rest = list ? list : ""; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end)
        loadCustomLibrary(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  });
}

/// Sizes as integers. Symbolic ones are meaningless until a call gives them values.
const int64_t *sizesOf(const Shape &shape) { return bitsOf(shape); }

/// A call with its tables in the form that the kernel reads; the data pointers are set at each call.
class Prepared {
public:
  Prepared(tressel_kernel kernel, CustomCall call) : kernel_(kernel), call_(std::move(call)) {
    for (const TensorType &type : call_.operands)
      tensors_.push_back({static_cast<int32_t>(type.dtype), type.rank(), sizesOf(type.shape), nullptr});
    for (const CustomAttr &attr : call_.attrs) {
      tressel_attr a{};
      a.name = attr.name.c_str();
      a.kind = static_cast<int32_t>(attr.value.index());
      if (auto *i = std::get_if<int64_t>(&attr.value))
        a.i = *i;
      else if (auto *f = std::get_if<double>(&attr.value))
        a.f = *f;
      else if (auto *s = std::get_if<std::string>(&attr.value))
        a.s = s->c_str();
      else if (auto *ints = std::get_if<std::vector<int64_t>>(&attr.value)) {
        a.ints = ints->data();
        a.num_ints = static_cast<int64_t>(ints->size());
      }
      attrs_.push_back(a);
    }
  }
  Prepared(tressel_kernel kernel, CustomCall call, bool withSymbols) : Prepared(kernel, std::move(call)) {
    if (!withSymbols)
      return;
    for (const TensorType &type : call_.operands)
      for (Size size : type.shape)
        dim::collectSymbols(size, symbols_);
    // In the order of the launch's scalars.
    std::ranges::sort(symbols_, {}, [](Size symbol) { return dim::spell(symbol); });
    if (!call_.countsLater)
      return;
    for (const CustomOp *op : customOps())
      if (op->name == call_.op)
        counts_ = op;
    if (!counts_)
      throw InputError({.message = "counts its work by functions that are not in this program",
                        .op = call_.op,
                        .hint = "register the op before, or load the library that does"});
  }
  Prepared(const Prepared &) = delete;
  Prepared &operator=(const Prepared &) = delete;

  std::string run(void *const *buffers, const int64_t *scalars, void *scratch, int64_t begin, int64_t end) const {
    std::array<tressel_tensor, 8> few;
    std::vector<tressel_tensor> many(tensors_.size() > few.size() ? tensors_.size() : 0);
    tressel_tensor *tensors = many.empty() ? few.data() : many.data();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tensors[i] = tensors_[i];
      tensors[i].data = buffers[call_.buffers.empty() ? i : static_cast<size_t>(call_.buffers[i])];
    }
    std::vector<Shape> shapes; // of a call with symbolic sizes
    if (!symbols_.empty()) {
      dim::Values values;
      for (size_t i = 0; i < symbols_.size(); ++i)
        values.bind(symbols_[i], scalars[i]);
      for (const TensorType &type : call_.operands)
        shapes.push_back(dim::evaluate(type.shape, values));
      for (size_t i = 0; i < shapes.size(); ++i)
        tensors[i].sizes = sizesOf(shapes[i]);
    }
    int64_t scratchBytes = call_.scratchBytes;
    end = std::min(end, call_.range);
    StorageRef own;
    if (counts_) {
      std::vector<TensorType> types = call_.operands;
      for (size_t i = 0; i < shapes.size(); ++i)
        types[i].shape = shapes[i];
      const auto inputs = std::span<const TensorType>(types).first(static_cast<size_t>(call_.numInputs));
      const auto results = std::span<const TensorType>(types).subspan(inputs.size());
      begin = 0;
      end = counts_->range ? counts_->range(inputs, results, call_.attrs).number() : 1;
      scratchBytes = counts_->scratch ? counts_->scratch(inputs, results, call_.attrs).number() : 0;
      if (end < 0 || scratchBytes < 0)
        return "gives a negative amount of work or scratch memory";
      own = Storage::allocate(scratchBytes);
      scratch = own->data();
    }
    char message[512] = "";
    tressel_call call{};
    call.struct_bytes = sizeof call;
    call.num_inputs = call_.numInputs;
    call.num_outputs = static_cast<int32_t>(tensors_.size()) - call_.numInputs;
    call.num_attrs = static_cast<int32_t>(attrs_.size());
    call.inputs = tensors;
    call.outputs = tensors + call_.numInputs;
    call.attrs = attrs_.data();
    call.scratch = scratchBytes ? scratch : nullptr;
    call.scratch_bytes = scratchBytes;
    call.message = message;
    call.message_bytes = sizeof message;
    int32_t status = 0;
    try {
      status = kernel_(&call, begin, end);
    } catch (const std::exception &e) {
      return concat("its kernel '", call_.symbol, "' threw: ", e.what());
    } catch (...) {
      return concat("its kernel '", call_.symbol, "' threw");
    }
    if (status == 0)
      return {};
    message[sizeof message - 1] = 0;
    if (status < 0 && *message)
      return message;
    return concat(*message ? message : "it failed", " (status ", status, " of kernel '", call_.symbol, "')");
  }

private:
  tressel_kernel kernel_;
  CustomCall call_;
  std::vector<tressel_tensor> tensors_;
  std::vector<tressel_attr> attrs_;
  std::vector<Size> symbols_;
  const CustomOp *counts_ = nullptr;
};

int32_t runPrepared(const KernelArgs *args, int64_t begin, int64_t end) {
  std::string error;
  try {
    error = static_cast<const Prepared *>(args->state)->run(args->buffers, args->scalars, args->scratch, begin, end);
  } catch (const std::bad_alloc &) {
    error = "out of memory";
  } catch (const std::exception &e) { // thrown by the op's shape functions
    error = e.what();
  }
  if (error.empty())
    return kKernelOk;
  if (!args->failure)
    return kKernelLibraryFailed;
  args->failure->say(error);
  return kKernelSaysWhy;
}

LoadedKernel makeCustomKernel(const KernelDesc &desc) {
  CustomCall call = CustomCall::fromJson(desc.params);
  tressel_kernel kernel = findCustomKernel(call.symbol);
  if (!kernel)
    throw InputError({.message = concat("needs the kernel '", call.symbol, "'",
                                        call.library.empty() ? "" : concat(" of '", call.library, "'"),
                                        ", which is not in this program"),
                      .op = call.op,
                      .hint = "load the library that has it (tressel run --load-library FILE.so, "
                              "TRESSEL_LIBRARIES=FILE.so, or dlopen with RTLD_GLOBAL), or register the kernel before"});
  auto prepared = std::make_shared<const Prepared>(kernel, std::move(call), /*withSymbols=*/true);
  return {runPrepared, prepared.get(), prepared};
}

const bool registered = (registerKernelProvider(kCustomProvider, makeCustomKernel), true);

} // namespace

void registerCustomKernel(std::string symbol, tressel_kernel kernel) {
  std::lock_guard lock(kernels().mutex);
  kernels().bySymbol[std::move(symbol)] = kernel;
}

tressel_kernel findCustomKernel(const std::string &symbol) {
  auto find = [&]() -> tressel_kernel {
    {
      std::lock_guard lock(kernels().mutex);
      if (auto it = kernels().bySymbol.find(symbol); it != kernels().bySymbol.end())
        return it->second;
    }
    return symbol.empty() ? nullptr : reinterpret_cast<tressel_kernel>(dlsym(RTLD_DEFAULT, symbol.c_str()));
  };
  if (tressel_kernel kernel = find())
    return kernel;
  if (symbol.starts_with("tressel_")) // Tressel's own symbols are in the library of its kernels, which registers them
    (void)findKernelProvider("builtin");
  else
    loadNamedLibraries();
  return find();
}

void loadCustomLibrary(const std::string &path) {
  // Never unloaded: programs hold addresses of its kernels. A name without '/' is searched for in the loader's path.
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) {
    const char *why = dlerror();
    throwError<InputError>("the library '", path, "' cannot be loaded: ", why ? why : "unknown reason");
  }
}

CustomCall CustomCall::fromJson(const std::string &text) {
  try {
    const json::Value j = json::parse(text);
    CustomCall call;
    call.op = j.at("op").asString();
    call.symbol = j.at("symbol").asString();
    call.library = j.at("library").asString();
    call.numInputs = static_cast<int32_t>(j.at("inputs").asInt());
    call.scratchBytes = j.at("scratch").asInt();
    call.range = j.at("range").asInt();
    call.countsLater = j.at("counts_later").asBool();
    for (int64_t buffer : j.at("buffers").asInts())
      call.buffers.push_back(static_cast<int32_t>(buffer));
    for (const json::Value &t : j.at("operands").items()) {
      TensorType type;
      if (t.items().size() != 2 || !parseDType(t.items()[0].asString(), type.dtype) ||
          t.items()[1].items().size() > static_cast<size_t>(kMaxRank))
        throw InputError("");
      for (const json::Value &size : t.items()[1].items()) {
        const std::optional<Size> value =
            size.kind() == json::Value::Kind::String ? dim::parse(size.asString()) : std::optional(Size(size.asInt()));
        if (!value || value->numberOr(0) < 0)
          throw InputError("");
        type.shape.push_back(*value);
      }
      call.operands.push_back(type);
    }
    for (const json::Value &a : j.at("attrs").items()) {
      CustomAttr attr{a.at("name").asString(), {}};
      const json::Value &value = a.at("value");
      switch (a.at("kind").asInt()) {
      case TRESSEL_ATTR_INT:
        attr.value = value.asInt();
        break;
      case TRESSEL_ATTR_FLOAT:
        attr.value = std::bit_cast<double>(value.asInt()); // as bits, since text cannot represent infinities
        break;
      case TRESSEL_ATTR_STRING:
        attr.value = value.asString();
        break;
      default:
        attr.value = value.asInts();
      }
      call.attrs.push_back(std::move(attr));
    }
    bool fits = call.numInputs >= 0 && static_cast<size_t>(call.numInputs) <= call.operands.size() &&
                call.scratchBytes >= 0 && (call.buffers.empty() || call.buffers.size() == call.operands.size());
    for (int32_t b : call.buffers)
      fits &= b >= 0 && static_cast<size_t>(b) < call.operands.size();
    if (!fits)
      throw InputError("");
    return call;
  } catch (const std::exception &) {
    throwError<InputError>("the description of a custom kernel is damaged or of another version");
  }
}

std::string callCustomKernel(tressel_kernel kernel, const CustomCall &call, std::span<void *const> buffers,
                             void *scratch, int64_t begin, int64_t end) {
  return Prepared(kernel, call).run(buffers.data(), nullptr, scratch, begin, end);
}

} // namespace tressel::runtime
