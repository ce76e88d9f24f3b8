#include "tressel/runtime/Package.h"

#include "runtime/types/Concat.h"
#include "runtime/executable/ExecutableImpl.h"
#include "PackageFormat.h"
#include "runtime/Package_generated.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Storage.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tressel::runtime {
namespace {

/// The bytes of a package: a read-only mapping of a whole file, or somebody else's memory.
class Mapping {
public:
  Mapping(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes(bytes), owned_(false), owner_(std::move(owner)) {}
  explicit Mapping(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info = {};
    std::string why;
    if (fd < 0 || ::fstat(fd, &info) != 0)
      why = std::strerror(errno);
    else if (!S_ISREG(info.st_mode))
      why = "not a regular file";
    else if (info.st_size > 0) {
      void *mapped = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (mapped == MAP_FAILED)
        why = std::strerror(errno);
      else
        bytes = {static_cast<const std::byte *>(mapped), static_cast<size_t>(info.st_size)};
    }
    if (fd >= 0)
      ::close(fd);
    if (!why.empty())
      throwError<InputError>(path, ": cannot be read: ", why);
  }
  ~Mapping() {
    if (owned_ && !bytes.empty())
      ::munmap(const_cast<std::byte *>(bytes.data()), bytes.size());
  }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  std::span<const std::byte> bytes;

private:
  bool owned_ = true;
  std::shared_ptr<const void> owner_;
};

//--- Metadata to schedule --------------------------------------------------------------------------------------------
// Only what the C++ types cannot hold is checked here; verifySchedule judges the rest.

std::string text(const flatbuffers::String *s) { return s ? s->str() : std::string(); }

/// FlatBuffers' verifier looks at the place of a vector's length, not of its elements, which may want more.
[[gnu::noinline]] void checkPlace(const uint8_t *elements) {
  if (reinterpret_cast<uintptr_t>(elements) % 8)
    throw InputError("vectors of the metadata");
}
template <typename V> const V *aligned(const V *items) {
  checkPlace(items && items->size() ? items->Data() : nullptr);
  return items;
}

/// Sizes are numbers, or stand for expressions of the schedule (kFirstExpression).
class SizeReader {
public:
  SizeReader() = default;
  explicit SizeReader(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *spelled) {
    if (spelled)
      for (const auto *one : *spelled)
        expressions_.push_back(parse(one));
  }
  static Size parse(const flatbuffers::String *spelled) {
    const auto size = dim::parse(text(spelled));
    if (!size)
      throwError<InputError>("'", text(spelled), "' is no size");
    return *size;
  }
  [[gnu::noinline]] Size operator()(int64_t number) const {
    if (number >= Size::kLeast)
      return number;
    if (number < kFirstExpression || number - kFirstExpression >= static_cast<int64_t>(expressions_.size()))
      throwError<InputError>("a size is no number and no expression of the schedule");
    return expressions_[static_cast<size_t>(number - kFirstExpression)];
  }

private:
  std::vector<Size> expressions_;
};

[[gnu::noinline]] TensorType decode(const fb::Type &t, const SizeReader &size) {
  TensorType type;
  type.dtype = static_cast<DType>(t.dtype());
  if (t.dtype() >= kNumDTypes)
    throwError<InputError>("a tensor has an unknown element type");
  if (!aligned(t.dims()))
    return type;
  if (t.dims()->size() > kMaxRank)
    throwError<InputError>("a tensor has more than ", kMaxRank, " dimensions");
  for (int64_t d : *t.dims())
    type.shape.push_back(size(d));
  return type;
}

/// Elements of a table into a vector; absent tables are empty.
template <typename T, typename V, typename Fn> void decodeAll(std::vector<T> &out, const V *items, Fn decodeOne) {
  if (!items)
    return;
  out.reserve(items->size());
  for (const auto *item : *items) // structs and tables both come as pointers
    out.push_back(decodeOne(*item));
}

/// Packages of earlier versions call the provider "builtin" by its library.
std::string providerOf(std::string name) { return name == "kernels" ? std::string("builtin") : name; }

CommandList decode(const fb::CommandList &p, const SizeReader &size) {
  CommandList list;
  decodeAll(list.commands, aligned(p.commands()), [](const fb::Command &c) {
    return Command{.kind = static_cast<CommandKind>(c.kind()),
                   .stream = c.stream(),
                   .kernel = c.kernel(),
                   .body = c.body(),
                   .firstOperand = c.first_operand(),
                   .numOperands = c.num_operands(),
                   .numWaits = c.num_waits(),
                   .firstWait = c.first_wait(),
                   .loc = c.loc(),
                   .firstScalar = c.first_scalar(),
                   .numScalars = c.num_scalars(),
                   .fillValue = c.fill_value()};
  });
  decodeAll(list.operands, p.operands(), [](const fb::Operand &o) {
    return Operand{o.buffer(), static_cast<Access>(o.access())};
  });
  decodeAll(list.waits, p.waits(), [](const fb::Wait &w) {
    return Wait{w.command(), static_cast<WaitReason>(w.reason())};
  });
  if (aligned(p.scalars()))
    for (int64_t scalar : *p.scalars())
      list.scalars.push_back(size(scalar));
  return list;
}

/// Packages of before kernels told their target name providers whose target is known.
KernelTarget targetOf(const fb::Kernel &k) {
  if (k.target() != 255)
    return static_cast<KernelTarget>(k.target());
  const std::string_view provider = k.provider()->string_view();
  return provider == "generated" ? KernelTarget::Host
         : provider == "cuda"    ? KernelTarget::Gpu
         : provider == "host"    ? KernelTarget::HostFunction
                                 : KernelTarget::HostLibrary;
}

Schedule decode(const fb::Schedule &s) {
  Schedule schedule;
  schedule.name = text(s.name());
  const SizeReader size(s.sizes());
  decodeAll(schedule.streams, s.streams(), [](const fb::Stream &d) {
    return StreamDesc{{static_cast<DeviceKind>(d.device_kind()), d.device_index()},
                      static_cast<StreamKind>(d.kind()),
                      text(d.name())};
  });
  decodeAll(schedule.arenas, aligned(s.arenas()), [&](const fb::Arena &d) {
    return ArenaDesc{{static_cast<DeviceKind>(d.device_kind()), d.device_index()},
                     static_cast<MemoryKind>(d.memory()),
                     size(d.bytes())};
  });
  decodeAll(schedule.buffers, s.buffers(), [&](const fb::Buffer &d) {
    return BufferDesc{static_cast<Space>(d.space()), d.index(), size(d.offset()), size(d.bytes()),
                      decode(*d.type(), size)};
  });
  auto value = [&](const fb::Value &v) {
    return ValueDesc{
        text(v.name()),
        decode(*v.type(), size),
        {{static_cast<DeviceKind>(v.device_kind()), v.device_index()}, static_cast<MemoryKind>(v.memory())}};
  };
  decodeAll(schedule.inputs, s.inputs(), value);
  decodeAll(schedule.outputs, s.outputs(), value);
  decodeAll(schedule.states, s.states(), [&](const fb::State &d) {
    return StateDesc{
        text(d.name()),
        decode(*d.type(), size),
        static_cast<StateKind>(d.kind()),
        {{static_cast<DeviceKind>(d.device_kind()), d.device_index()}, static_cast<MemoryKind>(d.memory())}};
  });
  decodeAll(schedule.constants, aligned(s.constants()), [](const fb::Constant &d) {
    return ConstantDesc{d.offset(), d.bytes()};
  });
  decodeAll(schedule.kernels, s.kernels(), [&](const fb::Kernel &k) {
    return KernelDesc{.symbol = text(k.symbol()),
                      .provider = providerOf(text(k.provider())),
                      .target = targetOf(k),
                      .params = text(k.params()),
                      .epilogue = text(k.epilogue()),
                      .numInputs = k.num_inputs(),
                      .range = size(k.range()),
                      .grain = size(k.grain()),
                      .scratchBytes = size(k.scratch_bytes()),
                      .flops = size(k.flops()),
                      .bytes = size(k.bytes()),
                      .floats = static_cast<FloatMode>(k.floats()),
                      .epilogueFloats = static_cast<FloatMode>(k.epilogue_floats())};
  });
  decodeAll(schedule.collectives, s.collectives(), [](const fb::Collective &c) {
    CollectiveDesc desc{
        text(c.name()), {}, static_cast<CollectiveKind>(c.kind()), static_cast<Reduction>(c.reduction()), c.root()};
    if (c.members())
      desc.members.assign(c.members()->begin(), c.members()->end());
    if (c.axes())
      desc.axes.assign(c.axes()->begin(), c.axes()->end());
    return desc;
  });
  decodeAll(schedule.mesh, s.mesh(), [&](const fb::MeshAxis &axis) {
    return MeshAxis{text(axis.name()), size(axis.size())};
  });
  schedule.inFlight = s.in_flight();
  decodeAll(schedule.locations, s.locations(), [](const fb::Location &l) {
    return Location{text(l.op()), text(l.file()), l.line()};
  });
  schedule.prepare = decode(*s.prepare(), size);
  schedule.step = decode(*s.step(), size);
  decodeAll(schedule.bodies, s.bodies(), [&](const fb::CommandList &p) { return decode(p, size); });
  schedule.peakBytes = size(s.peak_bytes());
  schedule.peakLowerBoundBytes = size(s.peak_lower_bound_bytes());
  if (s.dims())
    for (const auto *spelled : *s.dims())
      schedule.dims.push_back(SizeReader::parse(spelled));
  return schedule;
}

/// Bytes of the file with their checksum, which is compared when they are first needed: opening a package reads its
/// metadata and no more, whatever the weights are.
struct Section {
  std::span<const std::byte> bytes;
  uint64_t sum = 0;
  std::string what;
  mutable std::atomic<bool> checked{false};
};

struct Function {
  std::string name;
  Schedule schedule;
  struct Code {
    CpuLevel level;
    const Section *elf;
  };
  std::vector<Code> images;
  const Section *constants;
};
struct StateValue {
  TensorType type;
  const Section *section;
};

} // namespace

bool sameSignature(const Schedule &a, const Schedule &b) {
  auto same = [](const std::vector<ValueDesc> &x, const std::vector<ValueDesc> &y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const ValueDesc &v, const ValueDesc &w) {
      return v.name == w.name && v.type == w.type && v.home.device == w.home.device;
    });
  };
  auto bound = [](const Schedule &s) { // in the caller's order
    std::vector<StateDesc> states;
    std::copy_if(s.states.begin(), s.states.end(), std::back_inserter(states),
                 [](const StateDesc &d) { return d.kind != StateKind::Derived; });
    return states;
  };
  const std::vector<StateDesc> x = bound(a), y = bound(b);
  return same(a.inputs, b.inputs) && same(a.outputs, b.outputs) && a.dims == b.dims &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const StateDesc &v, const StateDesc &w) {
           return v.name == w.name && v.type == w.type && v.kind == w.kind && v.home.device == w.home.device;
         });
}

struct Package::Impl {
  std::string path;
  Mapping mapping;
  std::map<uint64_t, Section> sections; // by offset
  std::vector<Function> functions;
  std::map<std::string, StateValue> states;

  mutable std::mutex mutex;
  /// Weak: executables keep the mapping alive, not the other way round.
  mutable std::map<std::pair<std::string, CpuLevel>, std::weak_ptr<const Executable>> executables;

  explicit Impl(const std::string &path) : path(path), mapping(path) { read(); }
  Impl(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : path("package in memory"), mapping(bytes, std::move(owner)) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % 64)
      throwError<Error>("the memory of a package must be aligned to 64 bytes");
    read();
  }

  [[noreturn, gnu::noinline]] void fail(std::initializer_list<MessagePart> why) const {
    throwError<InputError>(path, ": ", joinParts(why));
  }
  [[noreturn, gnu::noinline]] void damaged(std::initializer_list<MessagePart> where) const {
    throwError<InputError>(path, ": the package is damaged (", joinParts(where), ")");
  }

  void read() {
    const auto bytes = mapping.bytes;
    PackageHeader header;
    const size_t magic = std::min(bytes.size(), sizeof(kPackageMagic));
    if (magic == 0 || std::memcmp(bytes.data(), kPackageMagic, magic) != 0)
      fail({"not a Tressel package"});
    if (bytes.size() < sizeof(header))
      fail({"the package is truncated: it ends in its header"});
    std::memcpy(&header, bytes.data(), sizeof(header));
    // The version stands before the checksum: another version may compute that differently.
    if (header.version != kPackageVersion)
      fail({"the package has format version ", header.version, ", this library reads version ", kPackageVersion,
            header.version < kPackageVersion ? " (compile the model again)"
                                             : " (it is from a newer Tressel: update the library)"});
    if (checksum(bytes.first(offsetof(PackageHeader, headerChecksum))) != header.headerChecksum ||
        header.headerBytes != sizeof(header))
      damaged({"header"});
    if (header.fileBytes != bytes.size())
      fail({"the package is truncated or extended: it has ", bytes.size(), " bytes instead of ", header.fileBytes});
    if (header.metadataBytes > bytes.size() - sizeof(header))
      damaged({"header"});
    const auto metadata = bytes.subspan(sizeof(header), header.metadataBytes);
    if (checksum(metadata) != header.metadataChecksum)
      damaged({"metadata"});
    const auto *data = reinterpret_cast<const uint8_t *>(metadata.data());
    // As deep as the schema, as many tables as the file may hold.
    flatbuffers::Verifier verifier(data, metadata.size(), 16, static_cast<uint32_t>(metadata.size() / 4 + 1));
    if (metadata.size() > INT32_MAX || !fb::VerifyPackageBuffer(verifier))
      damaged({"structure of the metadata"});
    try {
      decodePackage(*fb::GetPackage(data), sizeof(header) + metadata.size());
    } catch (const InputError &e) {
      if (e.message().starts_with(path))
        throw;
      damaged({e.message()});
    }
  }

  void decodePackage(const fb::Package &package, uint64_t metadataEnd) {
    auto section = [&](const fb::Section *s, const std::string &what) -> const Section * {
      static const Section none;
      if (!s || s->bytes() == 0)
        return &none;
      const auto bytes = mapping.bytes;
      if (s->offset() % 64 || s->offset() < metadataEnd || s->offset() > bytes.size() ||
          s->bytes() > bytes.size() - s->offset())
        damaged({what, " lies outside"});
      Section &known = sections[s->offset()];
      if (known.bytes.empty()) {
        known.bytes = bytes.subspan(s->offset(), s->bytes());
        known.sum = s->checksum();
        known.what = what;
      } else if (known.bytes.size() != s->bytes() || known.sum != s->checksum()) {
        damaged({what});
      }
      return &known;
    };
    for (const fb::Function *f : *package.functions()) {
      Function function{.name = text(f->name()), .schedule = decode(*f->schedule())};
      if (f->images())
        for (const fb::Image *image : *f->images()) {
          if (image->level() > raw(CpuLevel::V4))
            fail({"function '", function.name, "' needs an unknown level of the CPU"});
          function.images.push_back({static_cast<CpuLevel>(image->level()), section(image->section(), "code")});
        }
      function.constants = section(f->constants(), "constants");
      if (const auto violations = verifySchedule(function.schedule); !violations.empty())
        fail({"the schedule of function '", function.name, "' is not safe to run: ", violations[0].message});
      for (const Function &other : functions)
        if (other.name == function.name && !sameSignature(other.schedule, function.schedule))
          damaged({"two functions '", function.name, "' differ in their inputs, outputs or states"});
      functions.push_back(std::move(function));
    }
    if (functions.empty())
      damaged({"no functions"});
    if (package.states())
      for (const fb::StateValue *s : *package.states()) {
        const std::string name = text(s->name());
        StateValue value{decode(*s->type(), SizeReader()),
                         section(s->section(), concat("value of state '", name, "'"))};
        if (!states.emplace(name, value).second)
          damaged({"two values of state '", name, "'"});
      }
    checkGaps(metadataEnd);
    for (const Function &f : functions)
      for (const StateDesc &state : f.schedule.states)
        if (auto it = states.find(state.name); it != states.end() && state.kind != StateKind::Derived)
          if (it->second.type != state.type ||
              static_cast<int64_t>(it->second.section->bytes.size()) != state.type.bytes())
            damaged({"the value of state '", state.name, "' is not of type ", state.type.str()});
  }

  /// The bytes of a section, compared with their checksum if nobody has yet.
  std::span<const std::byte> bytesOf(const Section *section) const {
    if (!section->checked.load(std::memory_order_relaxed)) {
      if (!section->bytes.empty() && checksum(section->bytes) != section->sum)
        damaged({section->what});
      section->checked.store(true, std::memory_order_relaxed);
    }
    return section->bytes;
  }

  /// Nothing hides between the sections: every byte of the file belongs to one or is zero.
  void checkGaps(uint64_t metadataEnd) const {
    auto zero = [&](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; ++i)
        if (mapping.bytes[i] != std::byte(0))
          damaged({"padding"});
    };
    uint64_t at = metadataEnd;
    for (const auto &[begin, section] : sections) {
      if (begin < at)
        damaged({"sections overlap"});
      zero(at, begin);
      at = begin + section.bytes.size();
    }
    zero(at, mapping.bytes.size());
  }

  static uint8_t raw(CpuLevel level) { return static_cast<uint8_t>(level); }

  /// Calls fn for all functions of that name, of the first function's if it is empty.
  template <typename Fn> void forEachVariant(const std::string &name, Fn fn) const {
    bool any = false;
    for (const Function &f : functions)
      if (f.name == (name.empty() ? functions.front().name : name))
        any = true, fn(f);
    if (!any)
      throwError<Error>(path, " has no function '", name, "'");
  }
  /// The one with the best code that `cpu` has, and that code, which is null if all need more or none is needed.
  std::pair<const Function *, const Function::Code *> find(const std::string &name, CpuLevel cpu) const {
    const Function *function = nullptr;
    const Function::Code *best = nullptr;
    forEachVariant(name, [&](const Function &f) {
      function = function ? function : &f;
      for (const Function::Code &code : f.images)
        if (code.level <= cpu && (!best || code.level > best->level))
          function = &f, best = &code;
    });
    return {function, best};
  }
};

Package Package::open(const std::string &path) {
  Package package;
  package.impl_ = std::make_shared<const Impl>(path);
  return package;
}

Package Package::open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Package package;
  package.impl_ = std::make_shared<const Impl>(bytes, std::move(owner));
  return package;
}

std::vector<std::string> Package::functions() const {
  std::vector<std::string> names;
  for (const Function &f : impl_->functions)
    if (std::find(names.begin(), names.end(), f.name) == names.end())
      names.push_back(f.name);
  return names;
}
const Schedule &Package::schedule(const std::string &function) const {
  return impl_->find(function, hostCpuLevel()).first->schedule;
}
std::vector<CpuLevel> Package::levels(const std::string &function) const {
  std::vector<CpuLevel> levels;
  impl_->forEachVariant(function, [&](const Function &f) {
    for (const auto &image : f.images)
      levels.push_back(image.level);
  });
  return levels;
}
int64_t Package::constantBytes(const std::string &function) const {
  return static_cast<int64_t>(impl_->find(function, hostCpuLevel()).first->constants->bytes.size());
}
int64_t Package::fileBytes() const { return static_cast<int64_t>(impl_->mapping.bytes.size()); }

std::vector<std::pair<std::string, TensorType>> Package::values() const {
  std::vector<std::pair<std::string, TensorType>> values;
  for (const auto &[name, value] : impl_->states)
    values.emplace_back(name, value.type);
  return values;
}

std::span<const std::byte> Package::stateValue(const std::string &name) const {
  const Impl &impl = *impl_;
  auto it = impl.states.find(name);
  return it == impl.states.end() ? std::span<const std::byte>() : impl.bytesOf(it->second.section);
}

void Package::check() const {
  const Impl &impl = *impl_;
  for (const auto &[offset, section] : impl.sections)
    impl.bytesOf(&section);
}

std::shared_ptr<const Executable> Package::executable(const std::string &name, CpuLevel cpu, const ProgramCode &code) const {
  const Impl &impl = *impl_;
  const auto [found, best] = impl.find(name, cpu);
  const Function &function = *found;
  std::lock_guard lock(impl.mutex);
  auto &cached = impl.executables[{function.name, cpu}];
  if (auto alive = cached.lock(); alive && !code.kernels && !code.gpu)
    return alive;
  std::string needed;
  for (CpuLevel level : levels(name))
    needed += concat(needed.empty() ? "" : " or ", nameOf(level));
  if (!function.images.empty() && !best)
    throwError<InputError>(impl.path, ": the code is for x86-64 ", needed, ", this CPU has ", nameOf(cpu),
                           " (compile it with --cpu ", nameOf(cpu), ")");
  try {
    auto made =
        ExecutableImpl::createVerified(function.schedule, best ? impl.bytesOf(best->elf) : std::span<const std::byte>(),
                                       impl.bytesOf(function.constants), impl_.pointer(), code);
    if (!code.kernels && !code.gpu)
      cached = made;
    return made;
  } catch (const InputError &e) {
    if (e.message().starts_with(impl.path)) // of the file itself
      throw;
    throw InputError({.message = concat(impl.path, ": ", e.message()), .op = e.op(), .hint = e.hint()});
  }
}

std::shared_ptr<PackageStates> Package::states() const { return std::make_shared<PackageStates>(*this); }

Context Package::context(const ContextOptions &options, const std::string &name) const {
  ContextOptions mine = options;
  const std::vector<StateDesc> &states = schedule(name).states;
  if (!mine.states && std::any_of(states.begin(), states.end(),
                                  [](const StateDesc &state) { return state.kind != StateKind::Derived; }))
    mine.states = this->states();
  return Context(executable(name), mine);
}

} // namespace tressel::runtime
