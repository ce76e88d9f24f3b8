// Packages (.tsl): compiled functions in one file, with their code, constants and the values of their states. Opening
// one needs this library only, no compiler.
//
//   auto package = runtime::Package::open("mlp.tsl");
//   runtime::Context context = package.context();
//   context.run(inputs, outputs);
//
// A package runs native code, so it is trusted like a program. Files that are damaged, truncated, foreign, of another
// format version or for another CPU are told apart, and refused with one clear InputError.
//
// The file is mapped, not read: constants and parameters are used where they lie, shared between processes. It must not
// be changed in place while in use; writePackage replaces files by renaming, which is safe.
#pragma once

#include "tressel/runtime/Blob.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Handle.h"
#include "tressel/runtime/Schedule.h"
#include "tressel/runtime/States.h"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::runtime {

inline constexpr uint32_t kPackageVersion = 2;

//--- Writing ---------------------------------------------------------------------------------------------------------

/// Linked, import-free code of one function for a CPU level.
struct PackageImage {
  CpuLevel level = CpuLevel::Baseline;
  std::span<const std::byte> elf;
};
/// Several of one name are the same function compiled for different CPU levels: kernels and schedules may differ,
/// inputs, outputs and states may not.
struct PackageFunction {
  std::string name = "main";
  const Schedule *schedule = nullptr;
  std::vector<PackageImage> images;     ///< none if no kernel is generated
  Blob constants;                       ///< the weights that the schedule's constants lie in
};
struct PackageState {
  std::string name;
  TensorType type;
  std::span<const std::byte> bytes; ///< as many as the type needs
};

/// The bytes of a package. Equal images, constants and values are stored once. Throws Error if functions
/// of one name differ in their signature or share a level, or a value does not fit its type; whether schedules are safe is checked when the package is opened.
std::vector<std::byte> packageBytes(std::span<const PackageFunction> functions,
                                    std::span<const PackageState> states = {});
/// The same without a copy of the sections: the pieces one after the other are the file. They lie in `head` and in the arguments' bytes,
/// which must outlive them.
struct PackageFile {
  std::vector<std::byte> head;
  std::vector<std::span<const std::byte>> pieces;
};
PackageFile packageFile(std::span<const PackageFunction> functions, std::span<const PackageState> states = {});
/// Writes it aside and renames. Throws RuntimeError too.
void writePackage(const std::string &path, std::span<const PackageFunction> functions,
                  std::span<const PackageState> states = {});

//--- Reading ---------------------------------------------------------------------------------------------------------

/// An opened package: immutable, cheap to copy, usable from any thread. One that was moved from, or never opened,
/// throws Error.
class Package {
public:
  /// Maps the file and checks its metadata: checksum, structure, that sections of bytes lie where they may, and that
  /// every schedule is safe. The bytes of code, constants and values are compared with their checksums where they are
  /// first needed (executable, context, stateValue), so that opening costs the same for small and large weights. Throws
  /// InputError.
  static Package open(const std::string &path);
  /// A package that lies in memory, 64-byte aligned: linked into the program, say. The bytes must not change and stay where
  /// they are; `owner`, if any, is held as long as they are used. Throws Error when misaligned.
  static Package open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);

  /// Compares all that is left to compare: afterwards every byte of the file is known to be undamaged. Throws InputError.
  void check() const;

  /// Names, in the order of writing. Functions below are meant by name; "" is the first.
  std::vector<std::string> functions() const;
  /// Of the code that runs on this CPU; if there is none, of any.
  const Schedule &schedule(const std::string &function = "") const;
  /// The levels that there is code for; empty if the function needs none.
  std::vector<CpuLevel> levels(const std::string &function = "") const;
  int64_t constantBytes(const std::string &function = "") const;
  int64_t fileBytes() const;

  /// Names and types of all stored values. Those of states, and those whose names begin with a dot, of what the package
  /// is beside that.
  std::vector<std::pair<std::string, TensorType>> values() const;
  /// The stored value of a state: 64-byte aligned, alive while the package or an executable of it is. Empty span if
  /// there is none. Throws InputError when it is damaged.
  std::span<const std::byte> stateValue(const std::string &name) const;

  /// Code of the highest level that `cpu` has, made at the first call and shared. Throws InputError if the CPU lacks
  /// what all images need, code or constants are damaged, or a library is missing. With kernels of its own it is made anew.
  std::shared_ptr<const Executable> executable(const std::string &function = "", CpuLevel cpu = hostCpuLevel(),
                                               const ProgramCode &code = {}) const;

  /// The states of all functions, with the values of the file: for contexts that share them, to change, save and load.
  std::shared_ptr<PackageStates> states() const;
  /// A context whose states are bound: to those of the options or, without, to the file's bytes where they are only
  /// read, and to copies of the context's own. Throws InputError too if the package has no value for a state. With
  /// memory for the largest sizes: context({.max_dims = {{"batch", 64}}}).
  Context context(const ContextOptions &options = {}, const std::string &function = "") const;
  /// A template, so that context({}) means the one above.
  template <std::convertible_to<std::string_view> Name> Context context(const Name &function) const {
    return context(ContextOptions(), std::string(std::string_view(function)));
  }

private:
  struct Impl;
  Held<std::shared_ptr<const Impl>> impl_;
};

} // namespace tressel::runtime
