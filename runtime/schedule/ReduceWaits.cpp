// Drops waits that are implied by others, using one vector clock per stream.
#include "ByteHistory.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>

namespace tressel::runtime {

void reduceWaits(CommandList &list, size_t numStreams) {
  std::vector<Clock> streamClocks(numStreams, Clock(numStreams, 0));
  std::vector<uint32_t> position(list.commands.size()), issued(numStreams, 0);
  std::vector<bool> waitedFor(list.commands.size(), false);
  for (const Wait &w : list.waits)
    waitedFor[w.command] = true;
  std::vector<Clock> finished(list.commands.size());
  std::vector<Wait> kept, own;
  for (size_t i = 0; i < list.commands.size(); ++i) {
    Command &c = list.commands[i];
    own.assign(list.waits.begin() + c.firstWait, list.waits.begin() + c.firstWait + c.numWaits);
    // Latest first: a wait for an earlier command may be implied by one for a later command, never the reverse.
    std::sort(own.begin(), own.end(), [](const Wait &a, const Wait &b) {
      return a.command != b.command ? a.command > b.command : a.reason < b.reason;
    });
    Clock &clock = streamClocks[c.stream];
    c.firstWait = static_cast<uint32_t>(kept.size());
    for (const Wait &w : own) {
      const uint32_t stream = list.commands[w.command].stream;
      if (position[w.command] < clock[stream])
        continue;
      kept.push_back(w);
      join(clock, finished[w.command]);
    }
    c.numWaits = static_cast<uint16_t>(kept.size() - c.firstWait);
    position[i] = issued[c.stream]++;
    clock[c.stream] = issued[c.stream];
    if (waitedFor[i])
      finished[i] = clock;
  }
  list.waits = std::move(kept);
}

} // namespace tressel::runtime
