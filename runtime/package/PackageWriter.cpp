#include "tressel/runtime/Package.h"

#include "runtime/types/Concat.h"
#include "PackageFormat.h"
#include "runtime/Package_generated.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Instantiate.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace tressel::runtime {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// The bytes of a section, one run behind the other.
using Runs = std::vector<std::span<const std::byte>>;
constexpr std::byte kZeros[kPackageAlignment] = {};

Runs runsOf(std::span<const std::byte> bytes) { return bytes.empty() ? Runs() : Runs{bytes}; }
Runs runsOf(const Blob &blob) {
  static_assert(Blob::kAlignment == kPackageAlignment);
  Runs runs;
  for (const Blob::Piece &piece : blob.pieces()) {
    runs.push_back(piece.bytes);
    if (const uint64_t padding = alignUp(piece.bytes.size()) - piece.bytes.size())
      runs.push_back(std::span(kZeros).first(padding));
  }
  return runs;
}
uint64_t bytesOf(const Runs &runs) {
  uint64_t bytes = 0;
  for (auto run : runs)
    bytes += run.size();
  return bytes;
}

/// As of all bytes in one run.
uint64_t checksum(const Runs &runs) {
  ChecksumLanes lanes;
  std::array<std::byte, ChecksumLanes::kBlock> block; // begun in one run, ended in another
  size_t begun = 0;
  for (auto run : runs) {
    if (begun) {
      const size_t count = std::min(run.size(), block.size() - begun);
      std::copy_n(run.begin(), count, block.begin() + static_cast<ptrdiff_t>(begun));
      run = run.subspan(count);
      if ((begun += count) < block.size())
        continue;
      lanes.addBlock(block.data());
    }
    size_t at = 0;
    for (; at + block.size() <= run.size(); at += block.size())
      lanes.addBlock(run.data() + at);
    begun = run.size() - at;
    std::copy_n(run.begin() + static_cast<ptrdiff_t>(at), begun, block.begin());
  }
  return lanes.finish(std::span(block).first(begun), bytesOf(runs));
}

/// Of the same size together.
bool sameBytes(const Runs &a, const Runs &b) {
  size_t i = 0, k = 0;
  std::span<const std::byte> x, y;
  for (;;) {
    while (x.empty() && i < a.size())
      x = a[i++];
    while (y.empty() && k < b.size())
      y = b[k++];
    if (x.empty() || y.empty())
      return x.empty() && y.empty();
    const size_t count = std::min(x.size(), y.size());
    if (x.data() != y.data() && std::memcmp(x.data(), y.data(), count) != 0)
      return false;
    x = x.subspan(count), y = y.subspan(count);
  }
}

/// The sections of the file. Where they lie is known only when the metadata is, whose size does not depend on it: so
/// the metadata is built twice, with offsets that count from the first section, then from the beginning of the file.
class Sections {
public:
  fb::Section add(Runs runs) {
    std::vector<std::pair<const void *, size_t>> key;
    for (auto run : runs)
      key.emplace_back(run.data(), run.size());
    auto [sumOf, isNew] = sums.try_emplace(std::move(key), 0);
    if (isNew)
      sumOf->second = checksum(runs);
    const uint64_t sum = sumOf->second, size = bytesOf(runs);
    for (auto [it, end] = known.equal_range(sum); it != end; ++it) {
      const Piece &old = pieces[it->second];
      if (old.bytes == size && sameBytes(old.runs, runs))
        return {base + old.offset, size, sum};
    }
    known.emplace(sum, pieces.size());
    pieces.push_back({used, size, std::move(runs)});
    const fb::Section section(base + used, size, sum);
    used += alignUp(size);
    return section;
  }
  void restart(uint64_t newBase) {
    base = newBase;
    used = 0;
    pieces.clear();
    known.clear();
  }
  uint64_t bytes() const { return used; }
  /// In order, with zeros between them, up to `bytes()`.
  void appendTo(Runs &file) const {
    for (const Piece &piece : pieces) {
      file.insert(file.end(), piece.runs.begin(), piece.runs.end());
      if (const uint64_t padding = alignUp(piece.bytes) - piece.bytes)
        file.push_back(std::span(kZeros).first(padding));
    }
  }

private:
  struct Piece {
    uint64_t offset, bytes;
    Runs runs;
  };
  uint64_t base = 0, used = 0;
  std::vector<Piece> pieces;
  std::multimap<uint64_t, size_t> known;
  std::map<std::vector<std::pair<const void *, size_t>>, uint64_t>
      sums; ///< by where the bytes are: each is given twice
};

template <typename T> uint8_t raw(T value) { return static_cast<uint8_t>(value); }

/// One offset per element of a table.
template <typename T, typename Fn> auto tables(FlatBufferBuilder &b, const std::vector<T> &items, Fn encode) {
  std::vector<decltype(encode(items[0]))> offsets;
  offsets.reserve(items.size());
  for (const T &item : items)
    offsets.push_back(encode(item));
  return b.CreateVector(offsets);
}
template <typename F, typename T, typename Fn>
auto structs(FlatBufferBuilder &b, const std::vector<T> &items, Fn encode) {
  std::vector<F> encoded;
  encoded.reserve(items.size());
  for (const T &item : items)
    encoded.push_back(encode(item));
  return b.CreateVectorOfStructs(encoded);
}

/// Expressions are numbered: they have no bits that mean something in another process.
class SizeWriter {
public:
  int64_t operator()(Size size) {
    if (!size.isSymbolic())
      return size.bits();
    const auto [it, isNew] =
        numbers_.try_emplace(size.bits(), kFirstExpression + static_cast<int64_t>(spellings_.size()));
    if (isNew)
      spellings_.push_back(dim::spell(size));
    return it->second;
  }
  std::vector<int64_t> operator()(std::span<const Size> sizes) {
    std::vector<int64_t> all;
    for (Size size : sizes)
      all.push_back((*this)(size));
    return all;
  }
  const std::vector<std::string> &spellings() const { return spellings_; }

private:
  std::unordered_map<int64_t, int64_t> numbers_; ///< by bits
  std::vector<std::string> spellings_;
};

Offset<fb::Type> encode(FlatBufferBuilder &b, const TensorType &type, SizeWriter &size) {
  return fb::CreateType(b, raw(type.dtype), b.CreateVector(size(type.shape)));
}

Offset<fb::CommandList> encode(FlatBufferBuilder &b, const CommandList &p, SizeWriter &size) {
  auto commands = structs<fb::Command>(b, p.commands, [](const Command &c) {
    return fb::Command(raw(c.kind), c.stream, c.kernel, c.body, c.firstOperand, c.numOperands, c.numWaits, c.firstWait,
                       c.loc, c.firstScalar, c.numScalars, c.fillValue);
  });
  auto operands =
      structs<fb::Operand>(b, p.operands, [](const Operand &o) { return fb::Operand(o.buffer, raw(o.access)); });
  auto waits = structs<fb::Wait>(b, p.waits, [](const Wait &w) { return fb::Wait(w.command, raw(w.reason)); });
  return fb::CreateCommandList(b, commands, operands, waits, b.CreateVector(size(p.scalars)));
}

Offset<fb::Schedule> encode(FlatBufferBuilder &b, const Schedule &s) {
  SizeWriter size;
  std::vector<std::string> dims;
  for (Size symbol : s.dims)
    dims.push_back(dim::spell(symbol));
  auto value = [&](const ValueDesc &v) {
    return fb::CreateValue(b, b.CreateString(v.name), encode(b, v.type, size), raw(v.home.memory),
                           raw(v.home.device.kind), v.home.device.index);
  };
  auto name = b.CreateString(s.name);
  auto streams = tables(b, s.streams, [&](const StreamDesc &d) {
    return fb::CreateStream(b, raw(d.device.kind), d.device.index, raw(d.kind), b.CreateString(d.name));
  });
  auto arenas = structs<fb::Arena>(b, s.arenas, [&](const ArenaDesc &d) {
    return fb::Arena(raw(d.device.kind), d.device.index, raw(d.memory), size(d.bytes));
  });
  auto buffers = tables(b, s.buffers, [&](const BufferDesc &d) {
    return fb::CreateBuffer(b, raw(d.space), d.index, size(d.offset), size(d.bytes), encode(b, d.type, size));
  });
  auto inputs = tables(b, s.inputs, value), outputs = tables(b, s.outputs, value);
  auto states = tables(b, s.states, [&](const StateDesc &d) {
    return fb::CreateState(b, b.CreateString(d.name), encode(b, d.type, size), raw(d.kind), raw(d.home.device.kind),
                           d.home.device.index, raw(d.home.memory));
  });
  auto constants =
      structs<fb::Constant>(b, s.constants, [](const ConstantDesc &d) { return fb::Constant(d.offset, d.bytes); });
  auto kernels = tables(b, s.kernels, [&](const KernelDesc &k) {
    return fb::CreateKernel(b, b.CreateString(k.symbol), b.CreateString(k.provider), b.CreateString(k.params),
                            b.CreateString(k.epilogue), size(k.range), size(k.grain), size(k.scratchBytes),
                            size(k.flops), size(k.bytes), k.numInputs, raw(k.floats), raw(k.epilogueFloats),
                            raw(k.target));
  });
  auto locations = tables(b, s.locations, [&](const Location &l) {
    return fb::CreateLocation(b, b.CreateSharedString(l.op), b.CreateSharedString(l.file), l.line);
  });
  auto prepare = encode(b, s.prepare, size), step = encode(b, s.step, size);
  auto bodies = tables(b, s.bodies, [&](const CommandList &p) { return encode(b, p, size); });
  auto collectives = tables(b, s.collectives, [&](const CollectiveDesc &c) {
    return fb::CreateCollective(b, b.CreateString(c.name), b.CreateVector(c.members), raw(c.kind), raw(c.reduction),
                                c.root, b.CreateVector(c.axes));
  });
  auto mesh = tables(b, s.mesh, [&](const MeshAxis &axis) {
    return fb::CreateMeshAxis(b, b.CreateString(axis.name), size(axis.size));
  });
  const int64_t peakBytes = size(s.peakBytes), peakLowerBoundBytes = size(s.peakLowerBoundBytes);
  return fb::CreateSchedule(b, name, streams, arenas, buffers, inputs, outputs, states, constants, kernels, locations,
                            prepare, step, peakBytes, peakLowerBoundBytes, b.CreateVectorOfStrings(dims),
                            b.CreateVectorOfStrings(size.spellings()), bodies, collectives, s.inFlight, mesh);
}

void build(FlatBufferBuilder &b, Sections &sections, std::span<const PackageFunction> functions,
           std::span<const PackageState> states) {
  std::vector<Offset<fb::Function>> functionTables;
  for (const PackageFunction &f : functions) {
    auto name = b.CreateString(f.name);
    auto schedule = encode(b, *f.schedule);
    auto images = tables(b, f.images, [&](const PackageImage &image) {
      const fb::Section section = sections.add(runsOf(image.elf));
      return fb::CreateImage(b, raw(image.level), &section);
    });
    const fb::Section constants = sections.add(runsOf(f.constants));
    functionTables.push_back(fb::CreateFunction(b, name, schedule, images, &constants));
  }
  std::vector<Offset<fb::StateValue>> stateTables;
  for (const PackageState &state : states) {
    auto name = b.CreateString(state.name);
    SizeWriter numbers;
    auto type = encode(b, state.type, numbers);
    const fb::Section section = sections.add(runsOf(state.bytes));
    stateTables.push_back(fb::CreateStateValue(b, name, type, &section));
  }
  auto producer = b.CreateString("tressel 0.1.0");
  auto functionVector = b.CreateVector(functionTables);
  b.Finish(fb::CreatePackage(b, producer, functionVector, b.CreateVector(stateTables)));
}

} // namespace

PackageFile packageFile(std::span<const PackageFunction> functions, std::span<const PackageState> states) {
  if (functions.empty())
    throwError<Error>("a package holds at least one function");
  for (size_t i = 0; i < functions.size(); ++i) {
    const PackageFunction &f = functions[i];
    if (f.name.empty())
      throwError<Error>("a function of a package needs a name");
    for (const PackageFunction &other : functions.first(i)) {
      if (other.name != f.name)
        continue;
      if (!sameSignature(*other.schedule, *f.schedule))
        throwError<Error>("two functions '", f.name, "' differ in their inputs, outputs or states");
      if (f.images.empty() || other.images.empty())
        throwError<Error>("two functions '", f.name, "', one of which has no code for a CPU level");
      for (const PackageImage &image : f.images)
        for (const PackageImage &taken : other.images)
          if (image.level == taken.level)
            throwError<Error>("two functions '", f.name, "' for the CPU level ", nameOf(image.level));
    }
  }
  std::set<std::string> names;
  for (const PackageState &state : states) {
    if (!names.insert(state.name).second)
      throwError<Error>("two values for state '", state.name, "'");
    if (!state.type.shape.isStatic() || static_cast<int64_t>(state.bytes.size()) != state.type.bytes())
      throwError<Error>("the value of state '", state.name, "' has ", state.bytes.size(), " bytes, ", state.type.str(),
                        " needs another number");
  }

  Sections sections;
  FlatBufferBuilder builder(1 << 16);
  builder.ForceDefaults(true); // sizes must not depend on offsets
  build(builder, sections, functions, states);
  const uint64_t metadataBytes = builder.GetSize();
  sections.restart(sizeof(PackageHeader) + alignUp(metadataBytes));
  builder.Clear();
  build(builder, sections, functions, states);
  if (builder.GetSize() != metadataBytes)
    throwError<InternalError>("package metadata changed its size");

  PackageHeader header = {};
  std::memcpy(header.magic, kPackageMagic, sizeof(header.magic));
  header.version = kPackageVersion;
  header.headerBytes = sizeof(header);
  header.fileBytes = sizeof(header) + alignUp(metadataBytes) + sections.bytes();
  header.metadataBytes = metadataBytes;
  PackageFile file;
  file.head.resize(sizeof(header) + alignUp(metadataBytes));
  std::memcpy(file.head.data() + sizeof(header), builder.GetBufferPointer(), metadataBytes);
  header.metadataChecksum = checksum(std::span(file.head).subspan(sizeof(header), metadataBytes));
  header.headerChecksum = checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(PackageHeader, headerChecksum)));
  std::memcpy(file.head.data(), &header, sizeof(header));
  file.pieces.push_back(file.head); // moving a vector moves none of its elements
  sections.appendTo(file.pieces);
  return file;
}

std::vector<std::byte> packageBytes(std::span<const PackageFunction> functions, std::span<const PackageState> states) {
  const PackageFile file = packageFile(functions, states);
  std::vector<std::byte> bytes;
  size_t size = 0;
  for (std::span<const std::byte> piece : file.pieces)
    size += piece.size();
  bytes.reserve(size);
  for (std::span<const std::byte> piece : file.pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

void writePackage(const std::string &path, std::span<const PackageFunction> functions,
                  std::span<const PackageState> states) {
  writeFile(path, packageFile(functions, states).pieces);
}

} // namespace tressel::runtime
