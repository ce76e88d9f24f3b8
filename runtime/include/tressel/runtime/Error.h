// What the public API throws. Three kinds of failure are kept apart: the user's (thrown at the call), the run time's
// (carried by the tensors it concerns, thrown where somebody waits) and the system's own bugs (InternalError).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tressel {

/// A copy of `text` that lives as long as the process, one per distinct text: for SourceLoc::file.
const char *internName(std::string_view text);

/// A place in the user's source. `file` must outlive the object: string literals and interned names only.
struct SourceLoc {
  const char *file = nullptr;
  uint32_t line = 0;
  explicit operator bool() const { return file != nullptr; }
  /// "train.cpp:42", or "" when unknown.
  std::string str() const;
};

/// The user's error. `what()` is one line: where, op, message, and the hint if there is one.
class Error : public std::runtime_error {
public:
  struct Details {
    std::string message;           ///< what is wrong, with the operands' types
    SourceLoc where = {};          ///< the user's line
    std::string op = {};           ///< the op, empty if none is to blame
    std::string hint = {};         ///< what to do about it, may be empty
    std::vector<SourceLoc> trace = {}; ///< further lines: callers, the line that waited
  };
  explicit Error(Details details);
  explicit Error(std::string message) : Error(Details{std::move(message)}) {}
  /// Out of line, like those below: their type information must come from a file that is compiled with it.
  ~Error() override;

  const SourceLoc &where() const { return details_.where; }
  const std::string &op() const { return details_.op; }
  const std::string &hint() const { return details_.hint; }
  const std::string &message() const { return details_.message; }
  const std::vector<SourceLoc> &trace() const { return details_.trace; }

private:
  Details details_;
};

/// Operand shapes or types do not fit the op.
struct ShapeError : Error { using Error::Error; ~ShapeError() override; };
/// The traced function does what a trace cannot hold.
struct TraceError : Error { using Error::Error; ~TraceError() override; };
/// A failure while a kernel or copy ran; travels with the tensors computed from it.
struct RuntimeError : Error { using Error::Error; ~RuntimeError() override; };
/// Memory is short: says how many bytes were asked for.
struct OutOfMemory : Error { using Error::Error; ~OutOfMemory() override; };
/// A file or a model is malformed or unsupported.
struct InputError : Error { using Error::Error; ~InputError() override; };
/// A bug in Tressel.
struct InternalError : Error { using Error::Error; ~InternalError() override; };

} // namespace tressel
