// What addresses mean, one access at a time, and what is said of those that mean nothing.
#include "test/standin/ptx/Program.h"

#include <cstdio>

namespace tressel::standin::ptx {
namespace {

std::string hex(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

const char *nameOf(Space space) {
  switch (space) {
  case Space::Shared:
    return "shared";
  case Space::Cluster:
    return "the cluster's shared";
  case Space::Local:
    return "local";
  case Space::Param:
    return "parameter";
  case Space::Const:
    return "constant";
  default:
    return "global";
  }
}

} // namespace

void mark(uint64_t *bits, uint64_t from, uint64_t to) {
  if (from >= to)
    return;
  const uint64_t first = from >> 6, last = (to - 1) >> 6;
  const uint64_t head = ~uint64_t(0) << (from & 63), tail = ~uint64_t(0) >> (63 - ((to - 1) & 63));
  if (first == last) {
    bits[first] |= head & tail;
    return;
  }
  bits[first] |= head;
  for (uint64_t word = first + 1; word < last; ++word)
    bits[word] = ~uint64_t(0);
  bits[last] |= tail;
}

Span *Block::find(uint64_t address) const {
  if (address >= kModuleWindow) {
    Span &span = program->storage->span;
    return address >= span.begin && address < span.end ? &span : nullptr;
  }
  return address >> kWindowShift ? nullptr : memory->find(address);
}

const Region &Block::region(Space space) const {
  return space == Space::Shared ? shared : space == Space::Param ? params : constants;
}

std::string Block::describe(const Warp &warp, unsigned lane) const {
  auto triple = [](unsigned x, unsigned y, unsigned z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  };
  return "kernel '" + program->name + "', block " + triple(index[0], index[1], index[2]) + ", thread " +
         triple(warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]);
}

std::string Block::describe(const Instr &instr) const {
  const auto &place = program->places[static_cast<size_t>(&instr - program->code.data())];
  return "'" + std::string(place.text) + "' (line " + std::to_string(place.line) + ")";
}

void Block::stop(const Warp &warp, const Instr &instr, unsigned lane, Fault::Kind kind, const std::string &what) const {
  throw Stop{{kind, describe(warp, lane) + ": " + what + " in " + describe(instr)}};
}

std::byte *Block::locate(Warp &warp, const Instr &instr, Space space, unsigned lane, uint64_t address, unsigned bytes,
                         bool isRead, bool isWrite) {
  const uint64_t given = address;
  const char *verb = isWrite ? (isRead ? "changes " : "writes ") : "reads ";
  if (space == Space::Generic) {
    const uint64_t window = address & ~(kSharedWindow - 1);
    space = window == kSharedWindow  ? Space::Shared
            : window == kLocalWindow ? Space::Local
            : window == kParamWindow ? Space::Param
            : window == kConstWindow ? Space::Const
                                     : Space::Global;
    if (space != Space::Global)
      address &= kSharedWindow - 1;
  }
  auto fault = [&](Fault::Kind kind, const std::string &what) {
    stop(warp, instr, lane, kind,
         verb + std::to_string(bytes) + " bytes of " + nameOf(space) + " memory at " + hex(given) + what);
  };
  if (address % bytes)
    fault(Fault::Kind::Misaligned, ", which is not a multiple of them,");
  if (space == Space::Global) {
    Span *span = find(address);
    if (!span || address < span->begin || address >= span->end)
      fault(Fault::Kind::IllegalAddress, ", where nothing is,");
    if (bytes > span->end - address)
      fault(Fault::Kind::IllegalAddress,
            ", " + std::to_string(span->end - address) + " before the end of what is there,");
    if (isWrite && span->isReadOnly)
      fault(Fault::Kind::IllegalAddress, ", which is only to be read,");
    const uint64_t offset = address - span->begin;
    if (isWrite)
      markWrites(*span, offset, offset + bytes);
    else if (isRead)
      markReads(*span, offset, offset + bytes);
    return span->host + offset;
  }
  if (space == Space::Local) {
    if (address > program->localBytes || bytes > program->localBytes - address)
      fault(Fault::Kind::IllegalAddress, " of " + std::to_string(program->localBytes) + ",");
    return local.host + (warp.index * uint64_t(kLanes) + lane) * program->localBytes + address;
  }
  const uint64_t peer = space == Space::Cluster ? address >> kPeerShift : 0;
  if (peer > cluster.size())
    fault(Fault::Kind::IllegalAddress, ", where nothing is,");
  if (peer && cluster[peer - 1].hasEnded())
    fault(Fault::Kind::IllegalAddress, ", of a block that has ended,");
  if (space == Space::Cluster)
    space = Space::Shared, address &= (uint64_t(1) << kPeerShift) - 1;
  const Region &place = peer ? cluster[peer - 1].shared : region(space);
  if (address > place.bytes || bytes > place.bytes - address)
    fault(Fault::Kind::IllegalAddress, " of " + std::to_string(place.bytes) + ",");
  if (isWrite && space != Space::Shared)
    fault(Fault::Kind::IllegalAddress, ", which is only to be read,");
  return place.host + address;
}

} // namespace tressel::standin::ptx
