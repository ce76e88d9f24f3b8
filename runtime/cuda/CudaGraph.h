// Recorded commands as CUDA graphs: what cards execute between two pieces of the host's work is launched with one call (DeviceGraphs.h says which commands are nodes of
// which graph).
//
//   record ──parts: graphs, and single commands──> submit ──first time──> each command by itself
//                                                    └──from then on──> CudaGraph::launch, a command of the group's own stream
//
// A graph has the edges of its commands and no others: order within a stream, and waits. Once built, it is read back from the driver and checked: its edges are
// those, and any two of its commands that touch the same bytes, one of them writing, are ordered by them. A submission with other addresses or other status words sets parameters of the
// nodes concerned; nothing is built again.
//
// The graph begins when everything that one of its commands waits for is reached, and commands end when the graph does: later than one by one. What a submission cannot
// do as a graph is done command by command, with the same bits: a graph whose launch before has not ended, a machine that keeps stamps, a driver that
// refuses the graph, TRESSEL_CUDA_GRAPHS=0.
#pragma once

#include "../devices/StreamGroup.h"
#include "CudaMachine.h"

#include <memory>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Not with TRESSEL_CUDA_GRAPHS=0.
bool areGraphsWanted();

/// One graph, which its stream launches like a kernel. Under the machine's lock but for its making.
class CudaGraph final : public CudaKernel {
public:
  struct Command {
    const DeviceCommand *command;
    std::span<const Region> regions; ///< without addresses
    CudaDevice *device;
    std::vector<uint32_t> after; ///< those of this graph, and of the same scope, that it is behind
    uint32_t scope = 0;          ///< 0: once. Else the bodies of a choice
  };
  /// A while: scope 0 computes the flag, scope 1 is repeated as long as that is set, and computes it again. A branch:
  /// scope 1 runs if the flag is set, scope 2 if it is not.
  struct Choice {
    bool repeats = false;
    CudaDevice *device = nullptr;
    const void *flag = nullptr;
  };
  /// Builds and instantiates it for these addresses, by command and region. Throws Error when the driver refuses; what is found wrong in the graph that was built
  /// is an Error too.
  CudaGraph(const Driver &driver, std::vector<Command> commands, std::span<void *const> addresses,
            const Choice *choice = nullptr);
  ~CudaGraph() override;
  CudaGraph(const CudaGraph &) = delete;

  /// The addresses of the launch that is submitted next.
  void setAddresses(std::span<void *const> addresses) { wanted_.assign(addresses.begin(), addresses.end()); }
  std::span<void *const> addresses() const { return current_; } ///< that it has
  Result launch(StreamHandle stream) const;
  /// Of the launch that has ended: the first command that failed, none if none did.
  struct Failed {
    const KernelDesc *kernel = nullptr;
    int32_t status = 0;
    uint64_t tag = 0;
  };
  Failed failed() const;

private:
  struct Node {
    uint32_t command = 0;
    GraphNode handle = nullptr;
    size_t firstAddress = 0;
    int32_t *status = nullptr;
  };
  struct Params; ///< of a node, as the driver takes them
  void build(std::span<void *const> addresses, const Choice *choice);
  void addChoice(const Choice &choice, std::span<void *const> addresses);
  void addScope(uint32_t scope, std::span<void *const> addresses);
  /// A body's graph, which runs, or is repeated as long as, the handle's value is not 0; behind `after`.
  Graph addConditional(const Choice &choice, ConditionalHandle handle, std::span<const GraphNode> after);
  /// Gives the handle the flag's value, or the other one if `inverted`.
  GraphNode addSetter(const Choice &choice, Graph graph, ConditionalHandle handle, std::span<const GraphNode> after,
                      bool inverted);
  std::vector<GraphNode> endsOf(uint32_t scope) const;
  void added(Graph graph, GraphNode node, std::span<const GraphNode> after);
  void addNodes(uint32_t command, std::span<void *const> addresses);
  void checkEdges(std::span<void *const> addresses) const;
  Result setParams(const Node &node, std::span<void *const> addresses) const;
  void destroy();

  const Driver &driver_;
  const std::vector<Command> commands_;
  std::vector<Node> nodes_;              ///< of a command, one behind the other
  std::vector<uint32_t> first_, last_;   ///< node, by command
  Graph graph_ = nullptr;
  std::vector<Graph> scopes_; ///< the graph, and those of bodies
  using Edge = std::pair<GraphNode, GraphNode>;
  std::vector<std::vector<Edge>> edges_; ///< that were asked for, by place in `scopes_`
  GraphExec exec_ = nullptr;
  mutable std::vector<void *> current_; ///< addresses that the instantiated graph has
  std::vector<void *> wanted_;
};

class CudaGroup final : public StreamGroup {
public:
  CudaGroup(CudaMachine &machine, std::span<Stream *const> streams, std::span<const GroupCommand> commands);
  ~CudaGroup() override;
  void submit(std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) override;

private:
  struct Part {
    std::vector<uint32_t> commands;
    bool isGraph = false;
    std::vector<CudaStream *> streams; ///< of its commands
    std::unique_ptr<CudaGraph> graph;  ///< made by the second submission
    Event last;                        ///< of the graph's latest launch
    uint32_t submissions = 0;
  };
  bool submitGraph(Part &part, std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends);
  std::unique_ptr<CudaGraph> build(const Part &part);
  std::span<void *const> addressesOf(const Part &part); ///< until the next call of it

  CudaMachine &machine_;
  std::vector<Part> parts_;
  std::vector<int> partOf_;             ///< by command
  std::unique_ptr<CudaStream> stream_; ///< of the graphs' launches
  std::vector<Event> waits_;
  std::vector<void *> addresses_;
};

/// A branch or a `while` as a graph with conditional nodes. It is built anew for other addresses: parameters within
/// bodies are not updated.
class CudaChoice final : public ChoiceGroup {
public:
  /// Null where it cannot be one.
  static std::unique_ptr<CudaChoice> make(CudaMachine &machine, std::span<Stream *const> streams,
                                          const GroupChoice &choice);
  ~CudaChoice() override;
  bool submit(std::span<const Event> events, uint64_t tag, Event &end) override;

private:
  CudaChoice(CudaMachine &machine, CudaDevice &device) : machine_(machine), device_(device) {}
  struct Recorded {
    DeviceCommand command;
    std::vector<Region> regions;
    std::span<void *const> addresses;
    std::vector<uint32_t> after;
    uint32_t scope;
  };
  void add(std::span<Stream *const> streams, std::span<const GroupCommand> commands, uint32_t scope);
  CudaMachine &machine_;
  CudaDevice &device_;
  bool repeats_ = false, isRefused_ = false;
  void *const *flag_ = nullptr;
  std::vector<Recorded> commands_;
  std::vector<void *> addresses_;
  std::unique_ptr<CudaGraph> graph_;
  std::unique_ptr<CudaStream> stream_;
  Event last_;
  uint32_t submissions_ = 0;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
