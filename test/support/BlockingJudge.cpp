#include "test/support/BlockingJudge.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace tressel::test {

using namespace runtime;

namespace {

struct Node {
  std::vector<size_t> after;
  int device = -1;  ///< of a part
  int meeting = -1; ///< of a part: with which others
};

class Hangs {
public:
  Hangs(const Schedule &s, size_t mostStates) : s(s), mostStates(mostStates) {
    for (const MeshAxis &axis : s.mesh)
      ranks *= axis.size.number();
  }

  std::optional<bool> run() {
    for (int64_t rank = 0; rank < ranks; ++rank)
      write(s.step, rank, {});
    if (unknown)
      return std::nullopt;
    std::set<std::string> seen;
    std::vector<std::string> open{std::string(nodes.size(), kWaiting)};
    advance(open[0]);
    seen.insert(open[0]);
    while (!open.empty()) {
      const std::string state = open.back();
      open.pop_back();
      bool moves = false;
      for (size_t i = 0; i < nodes.size(); ++i)
        if (mayBegin(state, i)) {
          moves = true;
          std::string next = state;
          next[i] = kAtWork;
          advance(next);
          if (seen.insert(next).second)
            open.push_back(std::move(next));
        }
      if (!moves && state.find_first_not_of(kEnded) != std::string::npos)
        return true;
      if (seen.size() > mostStates)
        return std::nullopt;
    }
    return false;
  }

private:
  static constexpr char kWaiting = 'w', kAtWork = 'a', kEnded = 'e';

  //--- Writing out --------------------------------------------------------------------------------------------------
  /// Commands of a program on streams of their own, after `begin`. Returns the node of its end.
  size_t write(const CommandList &p, int64_t rank, std::vector<size_t> begin) {
    std::map<uint16_t, size_t> last;
    std::vector<size_t> ends;
    for (const Command &c : p.commands) {
      Node node{.after = begin};
      if (last.contains(c.stream))
        node.after.push_back(last[c.stream]);
      for (uint32_t w = 0; w < c.numWaits; ++w)
        node.after.push_back(ends[p.waits[c.firstWait + w].command]);
      if (c.kind == CommandKind::Collective) {
        node.device = deviceOf(s.streams[c.stream].device, rank);
        node.meeting = meetingOf(c, rank);
      }
      size_t end = add(std::move(node));
      if (c.kind == CommandKind::Loop)
        for (int64_t trip = 0; trip < p.scalars[c.firstScalar]; ++trip)
          end = write(s.bodies[c.body], rank, {end});
      else if (hasBodies(c.kind))
        unknown = true;
      last[c.stream] = end;
      ends.push_back(end);
    }
    Node all{.after = begin};
    all.after.insert(all.after.end(), ends.begin(), ends.end());
    return add(std::move(all));
  }
  size_t add(Node node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
  }
  int deviceOf(DeviceRef device, int64_t rank) {
    return numberOf(devices, std::tuple(device.kind, device.index, rank));
  }
  int meetingOf(const Command &c, int64_t rank) {
    const CollectiveDesc &desc = s.collectives[c.kernel];
    std::vector<int64_t> group; // where this rank's others are
    size_t members = desc.members.size();
    int64_t rest = rank;
    for (size_t axis = s.mesh.size(); axis-- > 0; rest /= s.mesh[axis].size.number()) {
      bool over = false;
      for (uint32_t each : desc.axes)
        over |= each == axis;
      group.push_back(over ? -1 : (rest % s.mesh[axis].size).number());
      if (over)
        members *= static_cast<size_t>(s.mesh[axis].size);
    }
    const size_t turn = turns[{c.kernel, c.stream, rank}]++;
    const int meeting = numberOf(meetings, std::tuple(c.kernel, group, turn));
    sizes[meeting] = members;
    return meeting;
  }
  template <typename K> static int numberOf(std::map<K, int> &numbers, const K &key) {
    return numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
  }

  //--- Going on -----------------------------------------------------------------------------------------------------
  bool isFree(const std::string &state, size_t i) const {
    for (size_t before : nodes[i].after)
      if (state[before] != kEnded)
        return false;
    return state[i] == kWaiting;
  }
  bool mayBegin(const std::string &state, size_t i) const {
    if (nodes[i].meeting < 0 || !isFree(state, i))
      return false;
    for (size_t k = 0; k < nodes.size(); ++k)
      if (state[k] == kAtWork && nodes[k].device == nodes[i].device)
        return false;
    return true;
  }
  /// What nothing can prevent: commands that are no parts, and collectives of which all parts are at work. No order of
  /// these matters.
  void advance(std::string &state) const {
    for (bool again = true; again;) {
      again = false;
      std::map<int, size_t> begun;
      for (size_t i = 0; i < nodes.size(); ++i)
        begun[nodes[i].meeting] += state[i] == kAtWork;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const bool ends = nodes[i].meeting < 0
                              ? isFree(state, i)
                              : state[i] == kAtWork && begun[nodes[i].meeting] == sizes.at(nodes[i].meeting);
        if (ends) {
          state[i] = kEnded;
          again = true;
        }
      }
    }
  }

  const Schedule &s;
  const size_t mostStates;
  int64_t ranks = 1;
  bool unknown = false;
  std::vector<Node> nodes;
  std::map<std::tuple<DeviceKind, uint16_t, int64_t>, int> devices;
  std::map<std::tuple<uint32_t, std::vector<int64_t>, size_t>, int> meetings;
  std::map<std::tuple<uint32_t, uint16_t, int64_t>, size_t> turns;
  std::map<int, size_t> sizes; ///< members, by meeting
};

} // namespace

std::optional<bool> canHang(const Schedule &schedule, size_t mostStates) { return Hangs(schedule, mostStates).run(); }

} // namespace tressel::test
