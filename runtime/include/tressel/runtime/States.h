// What the functions of a package keep between calls: parameters, and in a step of training what the optimizer has.
//
//   auto package = runtime::Package::open("train.tsl");
//   auto states = package.states();
//   runtime::Context step = package.context({.states = states}, "step"), predict = package.context({.states = states}, "predict");
//   states->load("run.safetensors");
//   step.run(batch, loss);
//   predict.run(image, scores);   // with what the step has made of the parameters
//   states->save("run.safetensors");
#pragma once

#include "tressel/runtime/Schedule.h"
#include "tressel/runtime/Storage.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::runtime {

class Package;

/// The values of all states of a package, in the host's memory: those of the file until something changes them. The contexts that it is given to
/// share them, and belong with it to one thread at a time; each of them reads what the others have written.
class PackageStates {
public:
  struct Entry {
    std::string name;
    TensorType type;
    bool isUpdated = false; ///< by a function of the package
  };
  explicit PackageStates(const Package &package);
  ~PackageStates();
  PackageStates(const PackageStates &) = delete;
  PackageStates &operator=(const PackageStates &) = delete;

  const std::vector<Entry> &entries() const; ///< sorted by name
  /// Valid until something changes it. Throws InputError where the package has no value, or a damaged one.
  std::span<const std::byte> value(size_t index) const;
  /// Throws Error for another number of bytes.
  void set(size_t index, std::span<const std::byte> value);

  /// Writes all values into a safetensors file, aside, brought to the disk and then renamed: the name stands for a whole file at any moment. For a
  /// package whose states were named as parts of a TrainingState (ExportOptions::state), it is the file that save_state() writes for them. Throws
  /// InputError for a library that is missing: libtressel_states.so lies beside the runtime; and RuntimeError if the disk refuses.
  void save(const std::string &path) const;
  /// Gives all states the values that the file has for them, or throws InputError, which lists all that is missing or of another type or optimizer,
  /// and changes nothing. What else is in the file is left alone.
  void load(const std::string &path);

  /// For contexts: the states of a function that its caller binds, in order. Valid until `version` changes, which contexts do as well (`change`),
  /// when they have updated states. Throws Error for a function of another package.
  std::vector<void *> pointersFor(const Schedule &schedule);
  uint64_t version() const { return version_; }
  uint64_t change() { return ++version_; }

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  uint64_t version_ = 0;
};

/// A value by its name.
struct NamedView {
  std::string name;
  TensorType type;
  const void *data;
};
/// What libtressel_states.so has, as its symbol tressel_state_files. `metadata` is an object of strings in JSON, or empty.
struct StateFiles {
  void (*save)(const std::string &path, std::span<const NamedView> values, std::string_view metadata);
  /// New values, in the order of `values`, whose data is not looked at.
  std::vector<StorageRef> (*load)(const std::string &path, std::span<const NamedView> values, std::string_view metadata);
};
/// The value in a package that is no state: the metadata of its files of states.
inline constexpr const char *kStateMetadata = ".state";

} // namespace tressel::runtime
