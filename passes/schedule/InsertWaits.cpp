#include "passes/Passes.h"

#include "ir/sched/Sched.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/MapVector.h"

#include <limits>
#include <map>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_INSERTWAITS
#include "passes/Passes.h.inc"

namespace {
constexpr int32_t kData = static_cast<int32_t>(sched::WaitReason::Data),
                  kWar = static_cast<int32_t>(sched::WaitReason::War);

/// Last accesses to a piece of memory: commands by number, -1 for none.
struct Touched {
  int64_t writer = -1;
  SmallVector<int64_t, 2> readers; ///< the last reader in each stream
};

/// The pieces of one arena or binding, keyed by their first byte. Every access splits the pieces at its ends.
class Pieces {
public:
  template <typename Fn> void forEach(int64_t begin, int64_t end, Fn fn) {
    split(begin);
    split(end);
    for (auto at = pieces.find(begin); at != pieces.end() && at->first < end; ++at)
      fn(at->second);
  }

private:
  void split(int64_t at) {
    auto next = pieces.upper_bound(at);
    if (next == pieces.begin())
      pieces[at] = {};
    else if (auto before = std::prev(next); before->first != at)
      pieces[at] = before->second;
  }
  std::map<int64_t, Touched> pieces;
};

class InsertWaits : public impl::InsertWaitsBase<InsertWaits> {
public:
  void runOnOperation() override {
    for (auto program : getOperation().getOps<sched::ProgramOp>()) {
      streams.clear();
      for (auto stream : program.getBody().getOps<sched::StreamOp>())
        streams.insert({stream.getStream(), streams.size()});
      if (program.getPrepare())
        order(program.getPrepare().getBody().front());
      order(program.getStep().getBody().front());
    }
  }

private:
  struct Command {
    sched::CommandOpInterface op;
    size_t stream;
    /// By stream: the last command known to have ended when this one ends.
    SmallVector<int64_t, 4> after;
  };

  void order(Block &block) {
    std::vector<Command> commands;
    std::vector<int64_t> lastOf(streams.size(), -1);
    std::map<std::pair<Operation *, int64_t>, Pieces> memory; // the number tells places at symbolic offsets apart
    for (auto op : block.getOps<sched::CommandOpInterface>()) {
      for (Region &body : op->getRegions())
        order(body.front()); // a body has an order of its own; it begins when its command does
      int64_t number = static_cast<int64_t>(commands.size());
      Command command{op, streams.lookup(op.getStream()), {}};
      command.after.assign(streams.size(), -1);
      if (int64_t before = lastOf[command.stream]; before >= 0)
        command.after = commands[static_cast<size_t>(before)].after;

      // Conflicts: a read with the last write; a write with the last write and all reads since.
      std::map<int64_t, int32_t, std::greater<>> conflicts; // latest first, as it may imply the others
      auto conflict = [&](int64_t with, int32_t reason) {
        if (with < 0 || with == number)
          return;
        auto [at, isNew] = conflicts.insert({with, reason});
        if (!isNew && reason == kData)
          at->second = kData;
      };
      auto touch = [&](Value buffer, bool writes) {
        sched::BufferRange range = sched::rangeOf(buffer);
        Operation *space = range.base;
        Size slot, whole = kDynamic; // of the place
        if (auto place = dyn_cast<sched::BufferOp>(space)) {
          // Without an offset, a buffer shares its bytes with no other.
          if (place.getOffset()) {
            slot = *place.getOffset();
            whole = dim::alignUp(sched::bytesOf(sched::typeOf(place.getBuffer())), 64);
            space = place.getArena().getDefiningOp();
          }
        }
        // Slots of symbolic size follow all others and are disjoint whatever the sizes are; those with the same begin
        // are one place (PlanMemory), in which bytes are counted from there. A range without known ends covers its
        // whole place, which ends where the next begins if that offset is a number.
        const bool placed = slot.isNumber(), known = range.bytes.isNumber() && range.offset.isNumber();
        const int64_t place = placed ? slot.number() : 0, begin = place + (known ? range.offset.number() : 0),
                      most = std::min(dim::bounds(range.offset + range.bytes).hi, dim::bounds(whole).hi);
        const int64_t end = known                    ? begin + range.bytes.number()
                            : most < dim::kUnbounded ? place + most
                                                     : std::numeric_limits<int64_t>::max();
        memory[{space, placed ? 0 : slot.bits()}].forEach(begin, end, [&](Touched &piece) {
          conflict(piece.writer, writes ? kWar : kData);
          if (!writes) {
            llvm::erase_if(piece.readers, [&](int64_t reader) {
              return reader != number && commands[static_cast<size_t>(reader)].stream == command.stream;
            });
            piece.readers.push_back(number);
            return;
          }
          for (int64_t reader : piece.readers)
            conflict(reader, kWar);
          piece = {number, {}};
        });
      };
      // All reads of a command come before its writes.
      for (Value buffer : sched::readsOf(op))
        touch(buffer, false);
      for (Value buffer : sched::writesOf(op))
        touch(buffer, true);

      SmallVector<Value> events;
      SmallVector<int32_t> reasons;
      for (auto [with, reason] : conflicts) {
        Command &other = commands[static_cast<size_t>(with)];
        if (command.after[other.stream] >= with) {
          ++numImplied;
          continue;
        }
        events.push_back(other.op.getEvent());
        reasons.push_back(reason);
        for (auto [mine, theirs] : llvm::zip(command.after, other.after))
          mine = std::max(mine, theirs);
      }
      op.setWaits(events, reasons);
      numWaits += events.size();
      command.after[command.stream] = number;
      lastOf[command.stream] = number;
      commands.push_back(std::move(command));
    }
  }

  llvm::MapVector<Value, size_t> streams;
};
} // namespace
} // namespace tressel::passes
