// Cards, contexts, modules, and what the library says of itself.
#include "Entries.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace tressel::standin {

Context *&current() {
  static thread_local Context *context = nullptr;
  return context;
}
int mostSharedBytes(const World &world) {
  const int kib = world.architecture >= 120 ? 99 : world.architecture >= 90 ? 227 : world.architecture >= 80 ? 163 : 48;
  return kib << 10;
}
bool isOtherProcess(const World &world) { return world.process != getpid(); }

namespace {

constexpr int kDriverVersion = 13000, kPtxVersion = 90;

struct Named {
  Result error;
  const char *name, *text;
};
constexpr Named kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "driver version is insufficient"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kPeerAccessAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {kMisaligned, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {kNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kGraphUpdateFailure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

Result cuInit(unsigned flags) {
  return call("cuInit", Needs::Nothing, [&](World &world) -> Result {
    if (flags != 0)
      return kInvalidValue;
    if (world.isInitialized)
      return isOtherProcess(world) ? kNotInitialized : kSuccess;
    // CUDA_VISIBLE_DEVICES leaves cards out, from the first that is none of them on.
    if (const char *visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
      int count = 0;
      for (const char *at = visible; *at; ++count) {
        char *end = nullptr;
        const long ordinal = std::strtol(at, &end, 10);
        if (end == at || ordinal < 0 || ordinal >= world.numCards)
          break;
        at = *end == ',' ? end + 1 : end;
      }
      world.numCards = count;
    }
    if (world.numCards == 0)
      return kNoDevice;
    world.isInitialized = true;
    world.process = getpid();
    for (int i = 0; i < world.numCards; ++i) {
      world.contexts.emplace_back().card = i;
      Stream &null = world.legacy.emplace_back();
      null.context = &world.contexts.back();
      null.timeline = world.newTimeline();
    }
    return kSuccess;
  });
}
Result cuDriverGetVersion(int *version) {
  return call("cuDriverGetVersion", Needs::Nothing, [&](World &) {
    *version = kDriverVersion;
    return kSuccess;
  });
}
Result errorText(Result error, const char **text, const char *Named::*which) {
  for (const Named &known : kErrors)
    if (known.error == error) {
      *text = known.*which;
      return kSuccess;
    }
  *text = nullptr;
  return kInvalidValue;
}
Result cuGetErrorName(Result error, const char **text) { return errorText(error, text, &Named::name); }
Result cuGetErrorString(Result error, const char **text) { return errorText(error, text, &Named::text); }

Result cuDeviceGetCount(int *count) {
  return call("cuDeviceGetCount", Needs::Init, [&](World &world) {
    *count = world.numCards;
    return kSuccess;
  });
}
Result cuDeviceGet(int *device, int ordinal) {
  return call("cuDeviceGet", Needs::Init, [&](World &world) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < world.numCards ? kSuccess : kInvalidDevice;
  });
}
/// The body of a function about one card.
template <typename Body> Result ofCard(const char *name, int device, Body &&body) {
  return call(name, Needs::Init, [&](World &world) -> Result {
    if (device < 0 || device >= world.numCards)
      return kInvalidDevice;
    return body(world);
  });
}
Result cuDeviceGetName(char *name, int bytes, int device) {
  return ofCard("cuDeviceGetName", device, [&](World &) {
    std::snprintf(name, static_cast<size_t>(bytes), "stand-in card");
    return kSuccess;
  });
}
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  return ofCard("cuDeviceGetAttribute", device, [&](World &world) {
    switch (attribute) { // CUdevice_attribute
    case 1: *value = 1024; break;                       // MAX_THREADS_PER_BLOCK
    case 8: *value = 48 << 10; break;                   // MAX_SHARED_MEMORY_PER_BLOCK
    case 10: *value = 32; break;                        // WARP_SIZE
    case 16: *value = 132; break;                       // MULTIPROCESSOR_COUNT
    case 41: *value = 1; break;                         // UNIFIED_ADDRESSING
    case 75: *value = world.architecture / 10; break;   // COMPUTE_CAPABILITY_MAJOR
    case 76: *value = world.architecture % 10; break;   // COMPUTE_CAPABILITY_MINOR
    case 91: *value = 1; break;                         // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    case 97:
      *value = mostSharedBytes(world);
      break;                                            // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    case 115: *value = 1; break;                        // MEMORY_POOLS_SUPPORTED
    default: *value = 0;
    }
    return kSuccess;
  });
}
Result cuDeviceTotalMem(size_t *bytes, int device) {
  return ofCard("cuDeviceTotalMem", device, [&](World &world) {
    *bytes = world.heap.capacity;
    return kSuccess;
  });
}
Result cuDeviceCanAccessPeer(int *can, int device, int peer) {
  return ofCard("cuDeviceCanAccessPeer", device, [&](World &) {
    *can = device != peer;
    return kSuccess;
  });
}
Result cuDevicePrimaryCtxRetain(Context **context, int device) {
  return ofCard("cuDevicePrimaryCtxRetain", device, [&](World &world) {
    *context = &world.contexts[static_cast<size_t>(device)];
    return kSuccess;
  });
}
Result cuCtxSetCurrent(Context *context) {
  return call("cuCtxSetCurrent", Needs::Init, [&](World &world) -> Result {
    if (context && std::ranges::none_of(world.contexts, [&](const Context &known) { return &known == context; }))
      return kInvalidContext;
    current() = context;
    return kSuccess;
  });
}
Result cuCtxSynchronize() {
  return call("cuCtxSynchronize", Needs::Context, [&](World &world) {
    const Context *context = current();
    world.finish(world.legacy[static_cast<size_t>(context->card)].last);
    for (const auto &[handle, stream] : world.streams)
      if (stream->context == context)
        world.finish(stream->last);
    for (const OperationRef &last : world.orphans)
      if (last->context == context)
        world.finish(last);
    return context->sticky;
  });
}
Result cuCtxEnablePeerAccess(Context *peer, unsigned) {
  return call("cuCtxEnablePeerAccess", Needs::Context, [&](World &) {
    return current()->peers.insert(peer->card).second ? kSuccess : kPeerAccessAlreadyEnabled;
  });
}

//--- Modules ----------------------------------------------------------------------------------------------------------
/// The function of the driver's that sets a condition, where the text declares it: here a handle is an address.
std::string withBuiltins(std::string text) {
  const std::string name = "cudaGraphSetConditional", declared = ".extern .func " + name;
  const size_t begin = text.find(declared), end = begin == std::string::npos ? begin : text.find(';', begin);
  if (end == std::string::npos)
    return text;
  return text.replace(begin, end + 1 - begin, ".func " + name + R"((.param .b64 handle, .param .b32 value) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
)");
}
Result cuModuleLoadDataEx(LoadedModule **module, const void *image, unsigned count, int *options, void **values) {
  return call("cuModuleLoadDataEx", Needs::Context, [&](World &world) -> Result {
    constexpr int kErrorLog = 5, kErrorLogBytes = 6; // CUjit_option
    char *log = nullptr;
    size_t logBytes = 0;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kErrorLog)
        log = static_cast<char *>(values[i]);
      else if (options[i] == kErrorLogBytes)
        logBytes = reinterpret_cast<size_t>(values[i]);
    auto refuse = [&](const std::string &why, Result result) {
      if (log && logBytes)
        std::snprintf(log, logBytes, "%s", why.c_str());
      return result;
    };
    const char *text = static_cast<const char *>(image);
    if (std::memcmp(text, "\177ELF", 4) == 0)
      return refuse("the stand-in driver takes PTX alone", kNoBinaryForGpu);
    auto loaded = std::make_unique<LoadedModule>();
    try {
      loaded->code = ptx::Module::parse(withBuiltins(text));
    } catch (const ptx::ParseError &problem) {
      return refuse(std::string("ptxas error: ") + problem.what(), kInvalidPtx);
    }
    if (loaded->code->version > kPtxVersion)
      return refuse("PTX of a newer version than the driver's", kUnsupportedPtxVersion);
    const bool runs = loaded->code->isArchitectureSpecific ? loaded->code->target == world.architecture : loaded->code->target <= world.architecture;
    if (!runs)
      return refuse("PTX for sm_" + std::to_string(loaded->code->target), kNoBinaryForGpu);
    loaded->context = current();
    *module = loaded.get();
    world.modules[loaded.get()] = std::move(loaded);
    return kSuccess;
  });
}
Result cuModuleGetFunction(Function **function, LoadedModule *module, const char *name) {
  return call("cuModuleGetFunction", Needs::Context, [&](World &world) -> Result {
    LoadedModule *loaded = at(world.modules, module);
    if (!loaded)
      return kInvalidHandle;
    const ptx::Kernel *kernel = loaded->code->find(name);
    if (!kernel)
      return kNotFound;
    auto made = std::make_unique<Function>();
    made->module = loaded;
    made->kernel = kernel;
    *function = made.get();
    world.functions[made.get()] = std::move(made);
    return kSuccess;
  });
}
Result cuModuleUnload(LoadedModule *module) {
  return call("cuModuleUnload", Needs::Context, [&](World &world) -> Result {
    if (!at(world.modules, module))
      return kInvalidHandle;
    for (const OperationRef &operation : world.pending())
      if (operation->module == module) {
        world.find("cuModuleUnload of the module of " + *operation->self.what + ", which has not run");
        break;
      }
    std::erase_if(world.functions, [&](const auto &entry) { return entry.second->module == module; });
    world.modules.erase(module);
    return kSuccess;
  });
}
Result cuFuncGetAttribute(int *value, int attribute, Function *function) {
  return call("cuFuncGetAttribute", Needs::Context, [&](World &world) -> Result {
    const Function *known = at(world.functions, function);
    if (!known)
      return kInvalidHandle;
    switch (attribute) { // CUfunction_attribute
    case 0: *value = static_cast<int>(known->kernel->maxThreads); break;
    case 1: *value = static_cast<int>(known->kernel->staticSharedBytes); break;
    case 5: *value = known->module->code->version; break;
    case 8: *value = known->maxDynamicShared; break;
    default: *value = 0;
    }
    return kSuccess;
  });
}
Result cuFuncSetAttribute(Function *function, int attribute, int value) {
  return call("cuFuncSetAttribute", Needs::Context, [&](World &world) -> Result {
    Function *known = at(world.functions, function);
    if (!known)
      return kInvalidHandle;
    // MAX_DYNAMIC_SHARED_SIZE_BYTES: with what is static no more than a block may ask for
    if (attribute != 8 || value < 0 ||
        value > mostSharedBytes(world) - static_cast<int>(known->kernel->staticSharedBytes))
      return kInvalidValue;
    known->maxDynamicShared = value;
    return kSuccess;
  });
}

#define ENTRY(name) {#name, reinterpret_cast<void *>(&name)}
const Entry kEntries[] = {ENTRY(cuInit), ENTRY(cuDriverGetVersion), ENTRY(cuGetErrorName), ENTRY(cuGetErrorString), ENTRY(cuDeviceGetCount),
                          ENTRY(cuDeviceGet), ENTRY(cuDeviceGetName), ENTRY(cuDeviceGetAttribute), ENTRY(cuDeviceTotalMem), ENTRY(cuDeviceCanAccessPeer),
                          ENTRY(cuDevicePrimaryCtxRetain), ENTRY(cuCtxSetCurrent), ENTRY(cuCtxSynchronize), ENTRY(cuCtxEnablePeerAccess),
                          ENTRY(cuModuleLoadDataEx), ENTRY(cuModuleGetFunction), ENTRY(cuModuleUnload), ENTRY(cuFuncGetAttribute), ENTRY(cuFuncSetAttribute)};

} // namespace

std::span<const Entry> deviceEntries() { return kEntries; }

} // namespace tressel::standin
