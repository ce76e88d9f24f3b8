#include "CudaLibrary.h"

#include "runtime/executable/Library.h"
#include "tressel/runtime/Error.h"

namespace tressel::runtime {

const CudaLibrary &cudaLibrary() {
  static const auto &library =
      *static_cast<const CudaLibrary *>(libraryEntry("tressel_cuda", "tressel_cuda_library", "the machine 'cuda'"));
  return library;
}

std::vector<GpuCard> gpuCards(std::string *why) {
  const CudaLibrary *library = nullptr;
  try {
    library = &cudaLibrary();
  } catch (const InputError &missing) {
    if (why)
      *why = missing.message();
    return {};
  }
  return library->cards(why);
}

std::vector<GpuLibrary> gpuLibraries() { return cudaLibrary().libraries(); }

} // namespace tressel::runtime
