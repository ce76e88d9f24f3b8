#include "History.h"

namespace tressel::standin {

void History::splitAt(uint64_t offset) {
  auto at = pieces_.upper_bound(offset);
  if (at == pieces_.begin())
    return;
  --at;
  if (at->first >= offset || at->second.end <= offset)
    return;
  Piece rest = at->second;
  at->second.end = offset;
  pieces_.emplace_hint(std::next(at), offset, std::move(rest));
}

std::optional<History::Conflict> History::add(Bytes bytes, bool isWrite, const Access &access, const Clock &clock) {
  std::optional<Conflict> conflict;
  if (bytes.begin >= bytes.end)
    return conflict;
  splitAt(bytes.begin);
  splitAt(bytes.end);
  auto note = [&](const Access &other, bool isOtherWrite, uint64_t begin, uint64_t end) {
    if (!conflict && other.tick && !other.isBefore(clock))
      conflict = Conflict{other, isOtherWrite, {begin, end}};
  };
  const auto first = pieces_.lower_bound(bytes.begin);
  auto at = first;
  for (; at != pieces_.end() && at->first < bytes.end; ++at) {
    note(at->second.writer, true, at->first, at->second.end);
    if (isWrite)
      for (const Access &reader : at->second.readers)
        note(reader, false, at->first, at->second.end);
  }
  if (isWrite) {
    pieces_.erase(first, at);
    pieces_[bytes.begin] = {bytes.end, access, {}};
    return conflict;
  }
  uint64_t covered = bytes.begin;
  for (auto piece = first; piece != at; ++piece) {
    if (piece->first > covered)
      pieces_.emplace_hint(piece, covered, Piece{piece->first, {}, {access}});
    covered = piece->second.end;
    std::vector<Access> &readers = piece->second.readers;
    const auto mine = std::ranges::find(readers, access.timeline, &Access::timeline);
    if (mine == readers.end())
      readers.push_back(access);
    else if (mine->tick < access.tick)
      *mine = access;
  }
  if (covered < bytes.end)
    pieces_[covered] = {bytes.end, {}, {access}};
  return conflict;
}

std::optional<History::Conflict> History::findUnordered(const Clock &clock) const {
  for (const auto &[begin, piece] : pieces_) {
    if (piece.writer.tick && !piece.writer.isBefore(clock))
      return Conflict{piece.writer, true, {begin, piece.end}};
    for (const Access &reader : piece.readers)
      if (!reader.isBefore(clock))
        return Conflict{reader, false, {begin, piece.end}};
  }
  return std::nullopt;
}

} // namespace tressel::standin
