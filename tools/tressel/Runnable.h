// A program to run, compiled from a model or loaded from a package.
#pragma once

#include "tools/tressel/Compiler.h"
#include "tools/tressel/Tensors.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Package.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tressel::tool {

struct Runnable {
  std::shared_ptr<const runtime::Executable> executable;
  std::optional<runtime::Package> package; ///< if it was loaded: the package, which has the values of its states
  std::string function;                    ///< of the package; empty: its first
  std::vector<AssumedDim> assumed;
  double compileSeconds = 0; ///< 0 for a package
  const runtime::Schedule &schedule() const { return executable->schedule(); }
};

/// CompilerLibrary::compile with a line of progress if it takes long.
CompiledModel compileWithProgress(CompileRequest request);
/// "12 kernels, 0 of a library; ...".
std::string kernelCounts(const CompiledModel &program);
/// Compiles `request`, a model.
Runnable compileModel(const CompileRequest &request);
/// Loads a function of a .tsl file (empty: the first), to run on a machine; null: the processor.
Runnable loadPackage(const std::string &path, const runtime::Machine *machine = nullptr,
                     const std::string &function = "");

/// The description of a .tsl file, read without mapping its code.
struct PackageInfo {
  runtime::Schedule schedule;
  std::vector<std::string> cpuLevels; ///< instruction-set levels that it has code for
  std::vector<runtime::GpuCode> gpu;
  int64_t weightBytes = 0;
  std::vector<std::string> functions;
};
PackageInfo describePackage(const std::string &path, const std::string &function = "");
/// The contents of a .tsl file, as pieces that refer to the programs and to `storage`.
runtime::PackageFile packageFile(std::span<const CompiledModel> levels, std::vector<std::vector<std::byte>> &storage);

/// Binds the program's symbols to sizes by name. Throws InputError for names that it does not have.
void bindSizes(const runtime::Schedule &schedule, const std::map<std::string, int64_t> &sizes, dim::Values &dims);
/// Binds symbols without a value to their lower bounds, with a note, and checks all values against their bounds.
void bindRest(const runtime::Schedule &schedule, dim::Values &dims);

/// Throws InputError, which says how many bytes are needed, when a program is larger than this machine's memory.
/// Symbolic sizes count as their lower bounds, unless `dims` has all of them.
void checkMemory(const runtime::Schedule &schedule, const dim::Values &dims = {});

} // namespace tressel::tool
