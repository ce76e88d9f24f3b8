// The C interface over Package and Context: checks arguments that C cannot, and turns exceptions into a status and a
// message.
#include "tressel/runtime/tressel_runtime.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/MachineContext.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/States.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

using namespace tressel;
using namespace tressel::runtime;

static_assert(TRESSEL_MAX_RANK == kMaxRank);
static_assert(TRESSEL_BOOL == static_cast<int>(DType::boolean) && TRESSEL_BOOL + 1 == kNumDTypes);

struct tressel_package {
  Package package;
  std::vector<std::string> functions;
};
/// Either kind of context.
struct tressel_context {
  std::optional<Context> context;
  std::unique_ptr<MachineContext> machine;
  // states that the context works on; with a machine, those that it has copies of
  std::shared_ptr<PackageStates> states;
  bool areStatesThere = false;       // the machine has updated its copies since they were last read
  std::vector<View> inputs, outputs; // of a call
  [[gnu::noinline]] const Schedule &schedule() const { return machine ? machine->schedule() : context->executable().schedule(); }
};

namespace {

/// Kept small, as all thread-local data of this library: a program that loads it with dlopen has little room for it.
thread_local std::string lastError;
thread_local const char *lastErrorText = "";

tressel_status failed(tressel_status status, const char *why) noexcept {
  try {
    lastErrorText = (lastError = why).c_str();
  } catch (...) {
    lastErrorText = "out of memory";
  }
  return status;
}

template <typename Fn> tressel_status guarded(Fn fn) noexcept {
  try {
    fn();
    return TRESSEL_OK;
  } catch (const InputError &e) {
    return failed(TRESSEL_BAD_PACKAGE, e.what());
  } catch (const OutOfMemory &e) {
    return failed(TRESSEL_OUT_OF_MEMORY, e.what());
  } catch (const std::bad_alloc &) {
    return failed(TRESSEL_OUT_OF_MEMORY, "out of memory");
  } catch (const RuntimeError &e) {
    return failed(TRESSEL_RUN_FAILED, e.what());
  } catch (const InternalError &e) {
    return failed(TRESSEL_INTERNAL, e.what());
  } catch (const Error &e) {
    return failed(TRESSEL_INVALID_ARGUMENT, e.what());
  } catch (const std::exception &e) {
    return failed(TRESSEL_INTERNAL, e.what());
  } catch (...) {
    return failed(TRESSEL_INTERNAL, "unknown failure");
  }
}

void need(const void *pointer, const char *what) {
  if (!pointer)
    throwError<Error>(what, " is null");
}

View viewOf(const tressel_tensor &t, const char *kind, size_t index) {
  if (t.dtype < 0 || t.dtype >= kNumDTypes)
    throwError<Error>(kind, " ", index, " has no element type (dtype ", t.dtype, ")");
  if (t.rank < 0 || t.rank > kMaxRank)
    throwError<Error>(kind, " ", index, " has rank ", t.rank, ", not 0 to ", kMaxRank);
  View view{t.data, {static_cast<DType>(t.dtype), {}}};
  if (t.rank && !t.sizes)
    throwError<Error>(kind, " ", index, " has no sizes: the pointer is null");
  for (int i = 0; i < t.rank; ++i) {
    if (t.sizes[i] < 0)
      throwError<Error>(kind, " ", index, " has ", t.sizes[i], " as the size of dimension ", i);
    view.type.shape.push_back(t.sizes[i]);
  }
  return view;
}

void views(const tressel_tensor *tensors, size_t count, const char *kind, std::vector<View> &out) {
  out.clear();
  if (count)
    need(tensors, kind);
  for (size_t i = 0; i < count; ++i)
    out.push_back(viewOf(tensors[i], kind, i));
}

tressel_value describe(const std::string &name, const TensorType &type) {
  tressel_value made = {};
  made.name = name.c_str();
  made.dtype = static_cast<int32_t>(type.dtype);
  made.rank = type.rank();
  for (int i = 0; i < made.rank; ++i) {
    const Size size = type.shape[i];
    made.sizes[i] = size.numberOr(-1);
    made.symbols[i] = size.isNumber() ? nullptr : internName(dim::str(size));
  }
  return made;
}

tressel_status valueAt(const std::vector<ValueDesc> &values, size_t index, tressel_value *out) {
  return guarded([&] {
    need(out, "value");
    if (index >= values.size())
      throwError<Error>("there are ", values.size(), " of them, none is number ", index);
    *out = describe(values[index].name, values[index].type);
  });
}

/// Copies as many options as the caller's version of the struct has; the others get their defaults.
tressel_context_options complete(const tressel_context_options *options) {
  tressel_context_options all = {};
  if (!options)
    return all;
  if (options->struct_size < sizeof(size_t) || options->struct_size > sizeof(all))
    throwError<Error>("struct_size of the options is ", options->struct_size, ", at most ", sizeof(all), " is known");
  std::memcpy(&all, options, options->struct_size);
  return all;
}

} // namespace

uint32_t tressel_abi_version(void) { return TRESSEL_ABI_VERSION; }
const char *tressel_version(void) { return TRESSEL_VERSION; }
const char *tressel_error(void) { return lastErrorText; }

static tressel_status opened(tressel_package **out, auto open) {
  return guarded([&] {
    need(out, "package");
    Package package = open();
    std::vector<std::string> functions = package.functions();
    *out = new tressel_package{std::move(package), std::move(functions)};
  });
}

tressel_status tressel_open(const char *path, tressel_package **package) {
  return opened(package, [&] { return need(path, "path"), Package::open(std::string(path)); });
}

tressel_status tressel_open_memory(const void *memory, size_t bytes, tressel_package **package) {
  return opened(package, [&] {
    need(memory, "memory");
    return Package::open(std::span(static_cast<const std::byte *>(memory), bytes));
  });
}

void tressel_close(tressel_package *package) { delete package; }

size_t tressel_num_functions(const tressel_package *package) { return package ? package->functions.size() : 0; }

const char *tressel_function_name(const tressel_package *package, size_t index) {
  return package && index < package->functions.size() ? package->functions[index].c_str() : nullptr;
}

tressel_status tressel_context_create(const tressel_package *package, const tressel_context_options *given,
                                      tressel_context **context) {
  return guarded([&] {
    need(package, "package"), need(context, "context");
    const tressel_context_options options = complete(given);
    ContextOptions wanted;
    if (options.num_max_dims)
      need(options.max_dim_names, "max_dim_names"), need(options.max_dims, "max_dims");
    for (size_t i = 0; i < options.num_max_dims; ++i) {
      need(options.max_dim_names[i], "a name in max_dim_names");
      wanted.max_dims.push_back({options.max_dim_names[i], options.max_dims[i]});
    }
    if (options.max_bytes < 0)
      throwError<Error>("max_bytes is negative");
    if (options.max_bytes)
      wanted.max_bytes = options.max_bytes;
    if (!options.allocate != !options.release)
      throwError<Error>("of allocate and release, one is null");
    wanted.allocator = {options.allocate, options.release, options.user};
    const char *function = options.function ? options.function : "";
    auto made = std::make_unique<tressel_context>();
    if (options.states_of && options.states_of->machine)
      throwError<Error>("the context in states_of has its states on a machine, and cannot share them");
    made->states = options.states_of ? options.states_of->states : package->package.states();
    wanted.states = made->states;
    if (options.machine) {
      if (options.num_max_dims || options.max_bytes || options.allocate || options.states_of)
        throwError<Error>(
            "max_dims, max_bytes, allocate and states_of are for contexts on the processor, not for the machine '",
            options.machine, "'");
      made->machine = MachineContext::open(package->package, options.machine, function);
    } else {
      made->context.emplace(package->package.context(wanted, function));
    }
    *context = made.release();
  });
}

void tressel_context_destroy(tressel_context *context) { delete context; }

size_t tressel_num_inputs(const tressel_context *context) { return context ? context->schedule().inputs.size() : 0; }
size_t tressel_num_outputs(const tressel_context *context) { return context ? context->schedule().outputs.size() : 0; }
size_t tressel_num_dims(const tressel_context *context) { return context ? context->schedule().dims.size() : 0; }
int64_t tressel_context_bytes(const tressel_context *context) { return !context ? 0 : context->machine ? context->machine->bytes() : context->context->bytes(); }

tressel_status tressel_input(const tressel_context *context, size_t index, tressel_value *value) {
  return context ? valueAt(context->schedule().inputs, index, value)
                 : failed(TRESSEL_INVALID_ARGUMENT, "context is null");
}

tressel_status tressel_output(const tressel_context *context, size_t index, tressel_value *value) {
  return context ? valueAt(context->schedule().outputs, index, value)
                 : failed(TRESSEL_INVALID_ARGUMENT, "context is null");
}

tressel_status tressel_dim_info(const tressel_context *context, size_t index, tressel_dim *out) {
  return guarded([&] {
    need(context, "context"), need(out, "dim");
    const auto &dims = context->schedule().dims;
    if (index >= dims.size())
      throwError<Error>("there are ", dims.size(), " dimensions, none is number ", index);
    const dim::Bounds bounds = dim::bounds(dims[index]);
    *out = {internName(dim::symbolName(dims[index])), bounds.lo, bounds.hi};
  });
}

tressel_status tressel_output_types(const tressel_context *context, const tressel_tensor *inputs, size_t num_inputs,
                                    tressel_value *outputs, size_t num_outputs) {
  return guarded([&] {
    need(context, "context");
    std::vector<TensorType> given;
    std::vector<View> inputViews;
    views(inputs, num_inputs, "input", inputViews);
    for (const View &view : inputViews)
      given.push_back(view.type);
    const std::vector<TensorType> types = context->machine ? context->machine->outputTypes(given) : context->context->outputTypes(given);
    if (types.size() != num_outputs)
      throwError<Error>("'", context->schedule().name, "' has ", types.size(), " outputs, not ", num_outputs);
    if (num_outputs)
      need(outputs, "outputs");
    for (size_t i = 0; i < num_outputs; ++i)
      outputs[i] = describe(context->schedule().outputs[i].name, types[i]);
  });
}

tressel_status tressel_run(tressel_context *context, const tressel_tensor *inputs, size_t num_inputs,
                           const tressel_tensor *outputs, size_t num_outputs) {
  return guarded([&] {
    need(context, "context");
    views(inputs, num_inputs, "input", context->inputs);
    views(outputs, num_outputs, "output", context->outputs);
    const std::span<const View> in(context->inputs), out(context->outputs);
    context->areStatesThere = context->machine != nullptr;
    context->machine ? context->machine->run(in, out) : context->context->run(in, out);
  });
}

//--- States -----------------------------------------------------------------------------------------------------------

/// Copies states that the machine has updated to the host. After a change there, statesChanged copies them back.
static PackageStates &statesRead(tressel_context *context) {
  if (context->areStatesThere)
    context->machine->readStates(*context->states);
  context->areStatesThere = false;
  return *context->states;
}
static void statesChanged(tressel_context *context) {
  if (context->machine)
    context->machine->writeStates(*context->states);
  context->areStatesThere = false;
}

size_t tressel_num_states(const tressel_context *context) { return context ? context->states->entries().size() : 0; }

static const PackageStates::Entry &stateAt(const tressel_context *context, size_t index) {
  need(context, "context");
  const std::vector<PackageStates::Entry> &entries = context->states->entries();
  if (index >= entries.size())
    throwError<Error>("there are ", entries.size(), " states, none is number ", index);
  return entries[index];
}

tressel_status tressel_state(const tressel_context *context, size_t index, tressel_value *value) {
  return guarded([&] {
    need(value, "value");
    const PackageStates::Entry &entry = stateAt(context, index);
    *value = describe(entry.name, entry.type);
  });
}

/// Throws unless the tensor has the type and shape of the state.
static void checkState(const PackageStates::Entry &entry, const tressel_tensor *tensor) {
  need(tensor, "tensor");
  const View view = viewOf(*tensor, "tensor", 0);
  if (view.type != entry.type)
    throwError<Error>("state '", entry.name, "' is ", entry.type.str(), ", given ", view.type.str());
  if (entry.type.bytes() != 0)
    need(view.data, "the tensor's data");
}

tressel_status tressel_read_state(tressel_context *context, size_t index, const tressel_tensor *tensor) {
  return guarded([&] {
    checkState(stateAt(context, index), tensor);
    const std::span<const std::byte> value = statesRead(context).value(index);
    if (!value.empty())
      std::memcpy(tensor->data, value.data(), value.size());
  });
}

tressel_status tressel_write_state(tressel_context *context, size_t index, const tressel_tensor *tensor) {
  return guarded([&] {
    const PackageStates::Entry &entry = stateAt(context, index);
    checkState(entry, tensor);
    statesRead(context).set(index,
                            {static_cast<const std::byte *>(tensor->data), static_cast<size_t>(entry.type.bytes())});
    statesChanged(context);
  });
}

tressel_status tressel_save_states(tressel_context *context, const char *path) {
  return guarded([&] {
    need(context, "context"), need(path, "path");
    statesRead(context).save(path);
  });
}

tressel_status tressel_load_states(tressel_context *context, const char *path) {
  return guarded([&] {
    need(context, "context"), need(path, "path");
    context->states->load(path);
    statesChanged(context);
  });
}
