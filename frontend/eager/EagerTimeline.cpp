#include "frontend/eager/EagerTimeline.h"

#include "frontend/tensor/Machine.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace tressel::detail {

using namespace runtime;

namespace {

using Kind = TaskRecord::Kind;

bool isWait(const TaskRecord &r) { return r.kind >= Kind::Wait; }
bool isQueued(const TaskRecord &r) { return r.kind == Kind::Lane || r.kind == Kind::Helped; }
/// The thread that owns the record's row. What runs on a lane belongs to the lane, even if a waiting thread ran it.
uint32_t ownerOf(const TaskRecord &r) { return isWait(r) ? r.thread : r.caller; }

/// The name of a wait: the engine's word for it, or the reason where it has none.
std::string reasonOf(const TaskRecord &r) {
  if (r.kind == Kind::QueueFull)
    return "room in the queue";
  if (r.kind == Kind::Memory)
    return "memory";
  return r.op;
}

class Builder {
public:
  Builder(std::span<const TaskRecord> records, std::string name) {
    out_.names.name = out_.timeline.program = std::move(name);
    out_.names.locations.emplace_back();
    out_.timeline.kind = TimelineKind::Measured;
    int64_t first = INT64_MAX;
    for (const TaskRecord &r : records)
      first = std::min(first, isWait(r) ? r.beginNs : r.submitNs);
    first_ = first;
    rows(records);
    for (const TaskRecord &r : records)
      add(r);
    for (const TaskRecord &r : records) // what was handed over before the recording began is not known
      if (isQueued(r))
        for (uint64_t before : r.after)
          if (auto found = ran_.find(before); found != ran_.end())
            out_.timeline.spans[ran_.at(r.sequence)].after.push_back(found->second);
    arrange(out_.timeline);
  }
  EagerTimeline finish() && { return std::move(out_); }

private:
  void rows(std::span<const TaskRecord> records) {
    std::vector<std::pair<int64_t, uint32_t>> seen;
    std::map<uint8_t, uint32_t> lanes;
    for (const TaskRecord &r : records) {
      seen.emplace_back(isWait(r) ? r.beginNs : r.submitNs, ownerOf(r));
      if (isQueued(r))
        lanes[r.lane] = 0;
    }
    std::ranges::sort(seen);
    for (const auto &[at, thread] : seen)
      if (!threads_.contains(thread)) {
        const size_t n = threads_.size();
        threads_[thread] = row("frontend thread" + (n ? " " + std::to_string(n + 1) : ""), StreamKind::Compute);
      }
    for (auto &[lane, index] : lanes)
      lanes_[lane] = row("lane " + std::to_string(lane), StreamKind::Lane);
  }
  uint32_t row(std::string name, StreamKind kind) {
    out_.timeline.resources.push_back({.name = std::move(name), .device = {}, .kind = kind});
    return static_cast<uint32_t>(out_.timeline.resources.size() - 1);
  }

  uint32_t location(const TaskRecord &r) {
    const auto [at, isNew] = locations_.try_emplace({r.op, r.where.file ? r.where.file : "", r.where.line},
                                                    static_cast<uint32_t>(out_.names.locations.size()));
    if (isNew)
      out_.names.locations.push_back({r.op, r.where.file ? r.where.file : "", r.where.line});
    return at->second;
  }

  uint32_t span(const TaskRecord &r, uint32_t row, SpanKind kind, std::string name, int64_t begin, int64_t end) {
    auto &spans = out_.timeline.spans;
    const auto index = static_cast<uint32_t>(spans.size());
    spans.push_back({.command = index,
                     .resource = row,
                     .kind = kind,
                     .begin = (begin - first_) * 1000,
                     .end = (std::max(begin, end) - first_) * 1000,
                     .name = std::move(name),
                     .loc = location(r)});
    return index;
  }

  void add(const TaskRecord &r) {
    const uint32_t own = threads_.at(ownerOf(r));
    if (isWait(r)) {
      span(r, own, r.hidden ? SpanKind::HiddenWait : SpanKind::Wait,
           (r.hidden ? "hidden wait: " : "wait: ") + reasonOf(r), r.beginNs, r.endNs);
      return;
    }
    const std::string name = std::string(r.op) + (r.failed ? ", failed" : "");
    if (r.kind == Kind::Inline) {
      span(r, own, SpanKind::Kernel, name, r.beginNs, r.endNs);
      return;
    }
    // Handing it over takes a fraction of a microsecond: a mark on the caller's row.
    const uint32_t call = span(r, own, SpanKind::Host, std::string("call of ") + r.op, r.submitNs, r.submitNs);
    const uint32_t work =
        span(r, lanes_.at(r.lane), SpanKind::Kernel,
             name + (r.kind == Kind::Helped ? ", run by a thread that waited" : ""), r.beginNs, r.endNs);
    out_.timeline.spans[work].after.push_back(call);
    ran_[r.sequence] = work;
  }

  EagerTimeline out_;
  int64_t first_ = 0;
  std::unordered_map<uint32_t, uint32_t> threads_;
  std::unordered_map<uint8_t, uint32_t> lanes_;
  std::unordered_map<uint64_t, uint32_t> ran_; // by sequence number
  std::map<std::tuple<std::string, std::string, uint32_t>, uint32_t> locations_;
};

} // namespace

EagerTimeline timelineOf(std::span<const TaskRecord> records, std::string name) {
  return Builder(records, std::move(name)).finish();
}

ProfileReport reportOf(std::span<const TaskRecord> records) {
  ProfileReport report;
  int64_t first = INT64_MAX, last = INT64_MIN;
  std::map<std::tuple<std::string, std::string, bool>, ProfiledWait> waits;
  std::map<std::string, ProfiledMove> moves;
  for (const TaskRecord &r : records) {
    first = std::min(first, isWait(r) ? r.beginNs : r.submitNs);
    last = std::max(last, r.endNs);
    const double took = static_cast<double>(r.endNs - r.beginNs) * 1e-9;
    if (isWait(r)) {
      ProfiledWait &wait = waits[{reasonOf(r), r.where.str(), r.hidden}];
      ++wait.times;
      wait.seconds += took;
      report.waiting_seconds += took;
      continue;
    }
    report.inlined += r.kind == Kind::Inline;
    report.queued += isQueued(r);
    report.helped += r.kind == Kind::Helped;
    report.failed += r.failed;
    report.busy_seconds += took;
    if (std::string_view(r.op) == kOperandMove) {
      ProfiledMove &move = moves[r.where.str()];
      ++move.times;
      move.seconds += took;
    }
  }
  report.seconds = records.empty() ? 0 : static_cast<double>(last - first) * 1e-9;
  for (auto &[key, wait] : waits) {
    std::tie(wait.what, wait.where, wait.hidden) = key;
    report.waits.push_back(std::move(wait));
  }
  for (auto &[where, move] : moves) {
    move.where = where;
    report.moves.push_back(std::move(move));
  }
  std::ranges::sort(report.moves, {}, [](const ProfiledMove &m) { return std::tuple(-m.seconds, m.where); });
  std::ranges::sort(report.waits, {}, [](const ProfiledWait &w) { return std::tuple(-w.seconds, w.where, w.what); });
  return report;
}

} // namespace tressel::detail
