#include "tressel/runtime/States.h"

#include "runtime/executable/Library.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <cstring>

namespace tressel::runtime {

struct PackageStates::Impl {
  Package package;
  std::vector<Entry> entries;
  std::vector<StorageRef> own; ///< by entry: what is no longer the file's

  size_t find(const std::string &name) const {
    const auto at = std::lower_bound(entries.begin(), entries.end(), name, [](const Entry &e, const std::string &n) { return e.name < n; });
    return at != entries.end() && at->name == name ? static_cast<size_t>(at - entries.begin()) : entries.size();
  }
  std::span<const std::byte> valueOf(size_t index) const {
    const Entry &entry = entries[index];
    const auto size = static_cast<size_t>(entry.type.bytes());
    if (own[index])
      return {static_cast<const std::byte *>(own[index]->data()), size};
    const std::span<const std::byte> value = package.stateValue(entry.name);
    if (value.size() != size) // a value that there is has its type: the package was checked
      throwError<InputError>("the package has no value for state '", entry.name, "'");
    return value;
  }
  /// Memory of its own for a state, with its value.
  void *owned(size_t index) {
    if (!own[index]) {
      const std::span<const std::byte> value = valueOf(index);
      own[index] = copyOf(value);
    }
    return own[index]->data();
  }
  static StorageRef copyOf(std::span<const std::byte> value) {
    StorageRef copy = Storage::allocate(static_cast<int64_t>(value.size()));
    if (!value.empty())
      std::memcpy(copy->data(), value.data(), value.size());
    return copy;
  }
  std::vector<NamedView> views() const {
    std::vector<NamedView> views;
    for (size_t i = 0; i < entries.size(); ++i)
      views.push_back({entries[i].name, entries[i].type, valueOf(i).data()});
    return views;
  }
  std::string_view metadata() const {
    const std::span<const std::byte> bytes = package.stateValue(kStateMetadata);
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
};

static const StateFiles &stateFiles() {
  return *static_cast<const StateFiles *>(libraryEntry("tressel_states", "tressel_state_files", "a file of states"));
}

PackageStates::PackageStates(const Package &package) : impl_(std::make_unique<Impl>(package)) {
  Impl &impl = *impl_;
  for (const std::string &function : package.functions())
    for (const StateDesc &state : package.schedule(function).states)
      if (state.kind != StateKind::Derived)
        impl.entries.push_back({state.name, state.type, state.kind == StateKind::Mutable});
  for (const auto &[name, type] : package.values()) // also those that no function reads: they are part of what was trained
    if (!name.starts_with('.'))
      impl.entries.push_back({name, type, false});
  // Of one name there is one, which is updated where a function does so.
  std::sort(impl.entries.begin(), impl.entries.end(),
            [](const Entry &a, const Entry &b) { return a.name != b.name ? a.name < b.name : a.isUpdated > b.isUpdated; });
  impl.entries.erase(std::unique(impl.entries.begin(), impl.entries.end(), [](const Entry &a, const Entry &b) { return a.name == b.name; }),
                     impl.entries.end());
  impl.own.resize(impl.entries.size());
}
PackageStates::~PackageStates() = default;

const std::vector<PackageStates::Entry> &PackageStates::entries() const { return impl_->entries; }
std::span<const std::byte> PackageStates::value(size_t index) const { return impl_->valueOf(index); }

void PackageStates::set(size_t index, std::span<const std::byte> value) {
  const Entry &entry = impl_->entries[index];
  if (static_cast<int64_t>(value.size()) != entry.type.bytes())
    throwError<Error>("state '", entry.name, "' is ", entry.type.str(), " and has ", entry.type.bytes(), " bytes, given ", value.size());
  impl_->own[index] = Impl::copyOf(value); // it may be the value itself
  change();
}

void PackageStates::save(const std::string &path) const { stateFiles().save(path, impl_->views(), impl_->metadata()); }

void PackageStates::load(const std::string &path) {
  std::vector<StorageRef> values = stateFiles().load(path, impl_->views(), impl_->metadata());
  impl_->own = std::move(values);
  change();
}

std::vector<void *> PackageStates::pointersFor(const Schedule &schedule) {
  Impl &impl = *impl_;
  std::vector<void *> pointers;
  for (const StateDesc &state : schedule.states) {
    if (state.kind == StateKind::Derived)
      continue;
    const size_t index = impl.find(state.name);
    if (index == impl.entries.size() || impl.entries[index].type != state.type)
      throwError<Error>("the states are of another package than '", schedule.name, "', which has '", state.name, "', ", state.type.str());
    // What is only read may lie in the file: the schedule was verified.
    pointers.push_back(impl.entries[index].isUpdated ? impl.owned(index) : const_cast<std::byte *>(impl.valueOf(index).data()));
  }
  return pointers;
}

} // namespace tressel::runtime
