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
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// One graph, which its stream launches like a kernel. Under the machine's lock but for its making.
class CudaGraph final : public CudaKernel {
public:
  struct Command {
    const DeviceCommand *command;
    std::span<const Region> regions; ///< without addresses
    CudaDevice *device;
    std::vector<uint32_t> after; ///< those of this graph that it is behind
  };
  /// Builds and instantiates it for these addresses, by command and region. Throws Error when the driver refuses; what is found wrong in the graph that was built
  /// is an Error too.
  CudaGraph(const Driver &driver, std::vector<Command> commands, std::span<void *const> addresses);
  ~CudaGraph() override;
  CudaGraph(const CudaGraph &) = delete;

  /// The addresses of the launch that is submitted next.
  void setAddresses(std::span<void *const> addresses) { wanted_.assign(addresses.begin(), addresses.end()); }
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
  void build(std::span<void *const> addresses);
  void addNodes(uint32_t command, std::span<void *const> addresses);
  void checkEdges(std::span<void *const> addresses) const;
  Result setParams(const Node &node, std::span<void *const> addresses) const;
  void destroy();

  const Driver &driver_;
  const std::vector<Command> commands_;
  std::vector<Node> nodes_;              ///< of a command, one behind the other
  std::vector<uint32_t> first_, last_;   ///< node, by command
  Graph graph_ = nullptr;
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

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
