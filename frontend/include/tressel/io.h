// Tensors and parameters in files: NumPy's .npy and .npz, and safetensors.
//
//   std::map<std::string, Tensor> t = load_safetensors("vectors.safetensors");
//   save_npy("mean.npy", mean(t["x"]));
//
// Files are untrusted. Anything wrong in a file throws one InputError that names the file and the tensor, before any of
// it is used. Files are written under a temporary name and renamed, so that a reader sees the old or the new one. A
// failed write is a RuntimeError. Saving waits for the elements; none of this may be done in a trace (TraceError).
#pragma once

#include <tressel/tensor.h>
#include <tressel/variable.h>

#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

/// One array. Fortran order and big-endian elements are converted; unsupported element types are refused.
Tensor load_npy(const std::string &path, std::source_location where = std::source_location::current());
/// bf16 becomes f32, as NumPy has no such type.
void save_npy(const std::string &path, const Tensor &tensor,
              std::source_location where = std::source_location::current());

/// Named arrays, packed or not. An archive that would unpack to more than `max_bytes` in all is refused.
std::map<std::string, Tensor> load_npz(const std::string &path, int64_t max_bytes = int64_t(16) << 30,
                                       std::source_location where = std::source_location::current());
void save_npz(const std::string &path, const std::map<std::string, Tensor> &tensors,
              std::source_location where = std::source_location::current());

/// All tensors of the file, and its metadata if `metadata` is given. One error lists the tensors of unsupported element
/// types.
std::map<std::string, Tensor> load_safetensors(const std::string &path,
                                               std::map<std::string, std::string> *metadata = nullptr,
                                               std::source_location where = std::source_location::current());
/// The file's metadata alone.
std::map<std::string, std::string> safetensors_metadata(const std::string &path,
                                                        std::source_location where = std::source_location::current());
void save_safetensors(const std::string &path, const std::map<std::string, Tensor> &tensors,
                      const std::map<std::string, std::string> &metadata = {},
                      std::source_location where = std::source_location::current());

struct LoadOptions {
  /// Throw if a parameter is missing in the file, a tensor of the file is unexpected, or types or shapes differ.
  /// Otherwise load what fits and report the rest.
  bool strict = true;
  /// From names in the file to names of parameters. A key that ends in '.' replaces a prefix: {"module.", ""}. A key
  /// that is the whole name takes precedence, then the longest one.
  std::map<std::string, std::string> rename = {};
  /// Applied to names afterwards, one after the other: each place where the regular expression (ECMAScript) matches is
  /// replaced, $1 standing for its first group: {"layer\\.(\\d+)\\.", "layers.$1."}.
  std::vector<std::pair<std::string, std::string>> rename_regex = {};
  /// Parameters, and tensors of the file, that are left alone: names in which * stands for any characters and ? for
  /// one.
  std::vector<std::string> skip = {};
  /// Parameters, by the same patterns, whose matrices the file holds transposed: other frameworks keep a dense layer's
  /// weight as [out, in].
  std::vector<std::string> transpose = {};
};

/// What happened to each name. Names are the parameters', and for unexpected ones the file's after renaming.
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected;
  std::vector<std::string> converted;  ///< of those loaded, what has another float type in the file
  std::vector<std::string> mismatched; ///< with both types: "fc.weight (file f32[10, 84], network f32[5, 84])"
  std::vector<std::string> skipped;
  std::vector<std::string> unused; ///< keys of `rename` and patterns of the others that fit nothing: misspelt, mostly
  /// One line for each kind that is there.
  std::string str() const;
};

/// Sets the named parameters from a safetensors file. Floats of another width are converted, rounded to nearest where
/// they become narrower; everything else must have the parameter's type. Throws one InputError that lists everything
/// that prevents a strict load; then nothing was assigned.
LoadReport load_parameters(const std::vector<std::pair<std::string, Variable>> &named, const std::string &path,
                           const LoadOptions &options = {},
                           std::source_location where = std::source_location::current());
void save_parameters(const std::vector<std::pair<std::string, Variable>> &named, const std::string &path,
                     std::source_location where = std::source_location::current());

} // namespace tressel
