// What a machine can do, in figures: the cost model of plans and predictions, and the truth of simulated devices. A
// JSON file (docs/machines.md), a preset, or the machine at hand.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {

class KernelHistory;

/// A cache of a device, of all its threads together: work whose operands fit moves them at this rate.
struct CacheModel {
  double bytes = 0, bytesPerSecond = 0;
};

/// "compute", "copy_in", "copy_out", "lane", "communication".
std::string_view nameOf(StreamKind kind);

/// An engine of a device. It works on one command at a time of all streams of its kinds, so two copies overlap only where two engines
/// copy.
struct EngineModel {
  std::string name; ///< behind the device's: "copy" makes "gpu0.copy"; "" for the engine that computes
  std::vector<StreamKind> kinds;
  bool operator==(const EngineModel &) const = default;
};

/// One device with a memory of its own. Rates are limits that the best code reaches, not averages.
struct DeviceModel {
  std::string name; ///< "cpu", "gpu0"
  DeviceRef device;
  uint16_t host = 0; ///< where the devices of several hosts are listed: the number of its host
  /// Of an accelerator for which kernels are generated: "sm_90". Empty: it is simulated with the host's kernels. Chosen for a
  /// compilation, not part of the file.
  std::string architecture;
  int threads = 1; ///< of a host, which share a kernel's tasks; streams of kind Lane have one each
  std::map<DType, double> flopsPerSecond; ///< of all threads, by type of the operands; f32 is always there, others
                                          ///< count as f32 where they are not
  double bytesPerSecond = 0;              ///< of its memory
  std::vector<CacheModel> caches;         ///< the smallest first; each is slower than the one before
  int64_t memoryBytes = 0;
  double splitSeconds = 0;   ///< until the other threads of a host have begun
  double issueSeconds = 0;   ///< of the host's time, for one command of this device
  double commandSeconds = 0; ///< least time of a kernel or fill on the device
  double contention =
      0; ///< a kernel's bytes from memory take 1 + contention * (bytes per second of copies / bytesPerSecond) times as long
         ///< beside copies; where arithmetic bounds it, they may hide in that
  /// Of a host, and of accelerators that are parts of one: how fast one of its threads runs kernels that have costs
  /// (KernelDesc::costs), relative to the processor that those were measured on. 0: of a host as its arithmetic
  /// compares with that processor's; of an accelerator, costs say nothing.
  double speed = 0;
  double pieceSeconds = 0;  ///< of a host: what timePiece() measured with its threads when it was calibrated (HostLoad.h); 0: not known
  double speedTogether = 1; ///< speed of each thread while all of them work, over that of one thread alone
  std::map<std::string, double, std::less<>> corrections; ///< times of kernels by KernelCost::kind, over what their costs say
  double threadBytesPerSecond = 0; ///< of its memory, for one thread of a host alone; 0: an equal share
  double movementEfficiency = 1; ///< share of the rates of memory that kernels reach which change the order of elements
  /// Share of the limits that kernels of a provider reach; "" stands for all others.
  std::map<std::string, double, std::less<>> efficiency;

  std::vector<EngineModel> engines; ///< kinds of streams that none names have an engine each

  double flops(DType type) const;
  /// The engines of the device, those that `engines` leaves out included; those that compute first.
  std::vector<EngineModel> allEngines() const;
  double efficiencyOf(std::string_view provider) const;
  /// Seconds of the costs on one thread that works alone.
  double threadSeconds(std::span<const KernelCost> costs) const;
  /// Bytes per second of work whose operands take so many: a cache's where they fit into it; where they are up to twice
  /// as large, on the way from there to the next.
  double bandwidth(double bytes) const;
  double cacheBytes() const { return caches.empty() ? 0 : caches.back().bytes; } ///< more than these come from memory
  /// The same device with one thread's share of everything.
  DeviceModel lane() const;
};

/// What a kernel does, for its price.
struct KernelWork {
  DType type = DType::f32; ///< of the operands
  double flops = 0, bytes = 0;
  std::string_view provider = {};
  bool moves = false;        ///< KernelDesc::moves
  int64_t tasks = INT64_MAX; ///< in so many parts it can be given to threads
  /// Of `bytes`, what was last touched before `distance` bytes of other data: it comes from the cache that holds so many, or from memory.
  double oldBytes = 0, distance = 0;
  std::span<const KernelCost> costs = {}; ///< KernelDesc::costs: on a host they count instead of `flops`
};
/// As the schedule describes it; symbols count as what is typical. `type`: of the first operand.
KernelWork workOf(const KernelDesc &kernel, DType type);
/// A roofline: the time of its arithmetic or of its bytes, whichever is longer, on as many threads as it has tasks for;
/// with several, the slowest one's share and splitSeconds. Where the kernel's costs are known, neither hides the other fully: the root of the sum
/// of their cubes. Bytes from memory take `slower` times as long. Without DeviceModel::commandSeconds.
double workSeconds(const DeviceModel &device, const KernelWork &work, double slower = 1);

/// One direction of a cable or bus, shared by all routes through it.
struct LinkModel {
  std::string name;
  double bytesPerSecond = 0;
  double latencySeconds = 0;
};
/// How bytes come from one device's memory to another's.
struct RouteModel {
  DeviceRef from, to;
  std::vector<uint32_t> links;       ///< indices into MachineModel::links
  double pageableBytesPerSecond = 0; ///< for host memory that is not pinned; 0: as fast as pinned memory
};

/// How a device reaches the network between hosts. A message to a device of another host passes `out` of its sender and `in` of
/// its receiver.
struct NetworkPort {
  DeviceRef device;
  std::vector<uint32_t> out, in; ///< indices into MachineModel::links
};

/// One host with its devices, or `hosts` equal ones: then devices, links and routes are those of the first, and the others are reached
/// over its network by the ranks of a mesh. A program of one process uses the devices that are listed.
struct MachineModel {
  std::string name;
  std::vector<DeviceModel> devices; ///< first the hosts
  std::vector<LinkModel> links;
  std::vector<RouteModel> routes;             ///< at most one per pair and direction
  int64_t hosts = 1;
  std::vector<NetworkPort> network;           ///< at most one per device
  std::map<std::string, std::string> sources; ///< where figures are from: "gpu0/bytes_per_second" and a text
  /// Times of kernels that were measured on such devices, which count instead of what the figures say. Not part of the
  /// file; null: none.
  std::shared_ptr<const KernelHistory> history;

  const DeviceModel *find(DeviceRef device) const; ///< null: no such device
  const RouteModel *route(DeviceRef from, DeviceRef to) const;
  const NetworkPort *portOf(DeviceRef device) const; ///< null: it has none
  int64_t numAccelerators() const;                   ///< of all hosts
  /// The host of a device, or of accelerator number `device.index` of all hosts.
  int64_t hostOf(DeviceRef device) const;
};
/// Routes grow with the square of the devices that are listed.
inline constexpr int64_t kMostListed = 64;
/// The same machine with the devices of all hosts listed, and a route from each to each that the network allows: what simulation can run as
/// one process. Throws InputError for more than kMostListed accelerators.
MachineModel withAllHosts(const MachineModel &machine);

/// The engines that work on the streams of a program or log.
struct EngineTable {
  struct Engine {
    std::string name; ///< "gpu0", "gpu0.in"; of a lane, the stream's
    DeviceRef device;
    StreamKind kind = StreamKind::Compute; ///< of the first stream
  };
  std::vector<Engine> engines;    ///< in the order of the first stream of each
  std::vector<uint32_t> ofStream; ///< into `engines`
  /// Devices that the machine does not have count as ones with an engine for each kind.
  EngineTable(const MachineModel &machine, std::span<const StreamDesc> streams);
};

/// Throws InputError, which names line and place ("here.json:7: devices[1].bytes_per_second: must be positive"; `name`
/// is what the text is called), for what is missing, unknown, no number, negative or impossible: a link faster than the
/// memories at its ends, a route through links that are not there.
MachineModel parseMachine(std::string_view json, std::string_view name = "machine");
std::string toJson(const MachineModel &machine);
/// Names of the machines that come with Tressel; and one of them. Throws for other names, listing these. Those that have a network take a
/// size: "dgx-h100:64" is of 64 accelerators, in hosts of as many as the preset has; "dgx-h100:4" is one host of 4;
/// "dgx-h100:16x4" is 16 hosts of 4.
std::vector<std::string> machinePresets();
MachineModel machinePreset(std::string_view name);
/// What a message can name where a machine has too few accelerators: "sim:dgx-h100:64", of at least so many. Empty
/// where no preset has so many.
std::string presetOfAtLeast(int64_t accelerators);
/// A server with one typical card of an architecture ("sm_90": an H100). Throws InputError for others, listing these.
MachineModel machineOfArchitecture(std::string_view architecture);
/// The architecture of a preset's accelerators; empty where code is not generated for them, or for other names.
std::string architectureOfMachine(std::string_view name);
/// This machine's processor, of which programs use so many threads (0: as many as the pool has). Vector width, threads and memory are read; other figures are typical of servers.
MachineModel typicalHostMachine(int threads = 0);
/// This machine's processor as a host with so many accelerators, each an equal share of its threads (of hostMachine)
/// and memory, with copies between them: "cpu:2". Throws InputError for less than one, and for more than there are
/// threads.
MachineModel processorParts(int parts);
/// The same as typicalHostMachine with the figures of calibrationFile(), if that is there: what compilation and
/// predictions go by unless they are to be deterministic. The same on every call; a file that cannot be read costs a
/// note on standard error.
MachineModel hostMachine(int threads = 0);
/// Where `tressel calibrate` keeps what it measures: TRESSEL_CALIBRATION, or a file beside the cache of kernels, of this processor and as many threads
/// of the pool. Empty: nowhere.
std::string calibrationFile(int threads = 0);
/// This machine, as far as it decides how long kernels take: its processor's name, the threads of the pool, limits on instructions.
std::string hostName(int threads = 0);
/// By the name that commands and programs give: "cpu" (this host), "cpu:2" (processorParts), "sim:NAME" (a preset, with
/// its size if it has one), "sim:FILE.json". Throws InputError for others, and what reading or parsing the file throws,
/// with its name.
MachineModel machineNamed(std::string_view name);

} // namespace tressel::runtime
