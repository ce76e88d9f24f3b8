// The build step that compiles common imperative ops for GPUs: prebuild-gpu OUT CACHE.
//
// Each class of the common calls becomes the program that a call on an accelerator looks for (OnDevice.h); OUT is the
// archive of its kernels' PTX. PTX is kept in the folder CACHE: a build that changes no kernel compiles none.
#include "codegen/CodeArchive.h"
#include "frontend/eager/Class.h"
#include "frontend/eager/Eager.h"
#include "frontend/eager/OneOp.h"
#include "frontend/eager/Prebuilt.h"
#include "frontend/eager/prebuilt/CommonCalls.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/MachineModel.h"

#include <tressel/machine.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace tressel;

// Stubs of imperative ops, as this program only records ops. The library of imperative ops cannot be linked: it needs
// the archive that is made here.
namespace tressel::detail {
void runEager(const op::OpInfo &, std::span<const Tensor>, std::span<const op::Attr>, SourceLoc, std::span<Tensor>) {
  throw InternalError("an op is run while kernels are compiled for GPUs");
}
bool runFlat(const op::OpInfo &, std::span<const Arg *const>, std::span<const op::Attr>, Tensor &) { return false; }
} // namespace tressel::detail

namespace {

std::vector<codegen::OpCall> commonClasses() {
  std::map<std::string, codegen::OpCall> all;
  eager::forEachCommonCall([&](const op::OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                               const op::Attrs &attrs) {
    if (auto c = eager::deviceClassOf(op, operands, result, attrs))
      all.emplace(c->call.str(), std::move(c->call));
  });
  std::vector<codegen::OpCall> classes;
  for (auto &[text, call] : all)
    classes.push_back(std::move(call));
  return classes;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 3) {
    std::cerr << "usage: prebuild-gpu OUT CACHE\n";
    return 2;
  }
  setenv("TRESSEL_CACHE_DIR", argv[2], 1); // before the compiler asks for it
  const std::vector<codegen::OpCall> classes = commonClasses();
  const runtime::MachineModel model = runtime::machineOfArchitecture(eager::kPrebuiltArchitecture);
  std::map<codegen::CacheKey, codegen::Code> archive;
  std::mutex mutex;
  std::string problem;
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread &thread : threads)
    thread = std::jthread([&] {
      for (size_t i; (i = next.fetch_add(1)) < classes.size();)
        try {
          detail::TraceRecorder recorder;
          std::vector<Tensor> results;
          {
            const DeviceScope scope(gpu(0));
            results = eager::recordOp(recorder, classes[i], std::vector<uint32_t>(classes[i].operands.size(), 1));
          }
          recorder.finish(results, {.name = classes[i].op->name,
                                    .model = &model,
                                    .architecture = eager::kPrebuiltArchitecture,
                                    .gpuCodeUsed = [&](const codegen::CacheKey &key, const codegen::Code &code) {
                                      std::lock_guard lock(mutex);
                                      archive.emplace(key, code);
                                    }});
        } catch (const std::exception &e) {
          std::lock_guard lock(mutex);
          problem = classes[i].str() + ": " + e.what();
        }
    });
  threads.clear();
  if (!problem.empty())
    throw Error(problem);
  const std::vector<std::byte> file = codegen::packArchive(archive);
  runtime::writeFile(argv[1], file);
  std::printf("gpu: %zu kernels of %zu classes, %zu bytes\n", archive.size(), classes.size(), file.size());
  return 0;
} catch (const Error &e) {
  std::cerr << "prebuild-gpu: " << e.what() << "\n";
  return 1;
}
