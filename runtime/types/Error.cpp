#include "tressel/runtime/Error.h"

#include "Concat.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Handle.h"
#include "tressel/runtime/Notes.h"

#include <mutex>
#include <unordered_set>
#include <utility>

namespace tressel {

/// And whether it is new.
static std::pair<const char *, bool> intern(std::string_view text) {
  // Never destroyed: errors may be printed while the process ends.
  static std::mutex &mutex = *new std::mutex();
  static auto &names = *new std::unordered_set<std::string>();
  std::lock_guard lock(mutex);
  const auto [name, isNew] = names.emplace(text);
  return {name->c_str(), isNew};
}
const char *internName(std::string_view text) { return intern(text).first; }
bool runtime::isFirstNote(std::string_view text) { return intern(text).second; }

std::string SourceLoc::str() const { return file ? runtime::concat(file, ":", line) : std::string(); }

std::string runtime::joinParts(std::initializer_list<MessagePart> parts) {
  std::string text;
  for (const MessagePart &part : parts)
    if (part.data)
      text.append(part.data, part.size);
    else if (part.isSize)
      text += dim::str(Size::fromBits(static_cast<int64_t>(part.size)));
    else
      text += part.isUnsigned ? std::to_string(part.size) : std::to_string(static_cast<int64_t>(part.size));
  return text;
}

void runtime::failMoved() { throwError<Error>("a handle that was moved from is used"); }

static std::string format(const Error::Details &d) {
  std::string text;
  if (d.where)
    text += d.where.str() + ": ";
  if (!d.op.empty() && !d.message.starts_with(d.op + ": ")) // what inference says names the op already
    text += d.op + ": ";
  text += d.message;
  if (!d.hint.empty())
    text += " (" + d.hint + ")";
  for (const SourceLoc &loc : d.trace)
    text += "; from " + loc.str();
  return text;
}

Error::Error(Details details) : std::runtime_error(format(details)), details_(std::move(details)) {}
Error::~Error() = default;
ShapeError::~ShapeError() = default;
TraceError::~TraceError() = default;
RuntimeError::~RuntimeError() = default;
OutOfMemory::~OutOfMemory() = default;
InputError::~InputError() = default;
InternalError::~InternalError() = default;

} // namespace tressel
