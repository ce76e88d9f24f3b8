// The flat schedule: what the `sched` dialect is lowered to, what the verifier proves, what the executor runs, what
// packages hold, and what timelines, predicted times and `explain` are made from. Plain data, no behaviour.
//
// Order. Commands stand in issue order. In one stream, commands execute in that order; between streams, order exists
// only through waits, each of which names an earlier command of the same list. So a cycle cannot be written.
//
// Memory. A buffer is a range of bytes of an arena, or a whole input, output, state or constant. Commands name buffers;
// two buffers conflict when their byte ranges overlap. Everything about lifetimes follows from commands and ranges.
//
// Sizes. What counts bytes, offsets, units or elements is a Size: a number, or an expression over the symbols in
// `dims`. A schedule with symbols is the structure of a program for all sizes; `instantiate` (Instantiate.h) puts in
// the numbers of one call. `prepare` and what it touches have numbers only.
//
// Bodies. A Branch, While or Loop runs other command lists, its bodies, each of which belongs to one such command; they
// name the same buffers. From outside such a command is one command that touches what its bodies touch. Inside, the
// commands of a body begin when the command does (a later iteration: when the one before has ended), streams order them
// only within the body, and waits name commands of the same body. The command ends when they have.
//
// Host calls. A function of the host program runs as a kernel of one unit does, on a host's stream; the kernels that
// come with the program (KernelLookup) or the provider "host" have it.
//
// Collectives. Several devices, the members, compute something together: one command each, its part, on the member's
// stream. The parts of one collective stand behind each other, in the members' order, so that all members issue their
// collectives in one order. It begins when the last part is ready, and ends on all members at once. For the order of
// accesses a part is a command like any other: it touches its own operands, and nothing of it is known to the other
// members' streams.
//
// Order of collectives. A device may begin its part before the other members are ready, and begins no other part until
// that collective has ended (NCCL's kernels do so). So the parts of each device are ordered by streams and waits. All
// order follows the order of issue, which makes it one acyclic order over all groups: no collective can wait for one
// that waits for it.
//
// Ranks. A schedule with a `mesh` is the program of one rank, the same for all ranks: streams, memory, inputs, outputs
// and states are those of the rank that runs it. A collective over axes of the mesh has one part, on a stream of this
// rank; its members are the ranks whose coordinates differ from this rank's on those axes alone, in row-major order,
// and all of them receive the same bytes where the kind says so. So the length of a program does not depend on the
// number of ranks. Sizes may contain the coordinates of the rank (`rankSymbol` in Ranks.h) and the sizes of axes;
// `dims` have the same values on all ranks. Whether a collective over axes runs is decided only by what is the same on
// all ranks: a flag that a collective over the whole mesh has made, a trip count without coordinates.
//
// Calls. `inFlight` calls may run at once, each with arenas of its own, from a ring of as many; streams and states are
// shared. In each stream, a call's commands follow those of the call before; it begins when the call that had its
// arenas has ended.
//
// Two command lists. `prepare` runs when the executable is bound and again whenever a parameter's version changes; it
// computes derived state (packed weights, say) from parameters and constants only. `step` runs at each call.
#pragma once

#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Home.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::runtime {

/// What a stream is for. Which engine of the device works on it, the machine's model says (EngineModel); a Lane, one thread's share of a
/// host, is an engine of its own. The numeric values are part of the package format.
enum class StreamKind : uint8_t { Compute, CopyIn, CopyOut, Lane, Communication };
inline constexpr size_t kNumStreamKinds = 5;
struct StreamDesc {
  DeviceRef device;
  StreamKind kind = StreamKind::Compute;
  std::string name; ///< for timelines: "cpu", "gpu0.in"
};

/// Scratch memory of the step, allocated once per context. Pinned and Host memory belongs to a host.
struct ArenaDesc {
  DeviceRef device;
  MemoryKind memory = MemoryKind::Device;
  Size bytes;
};

enum class Space : uint8_t { Arena, Input, Output, State, Constant };
inline constexpr size_t kNumSpaces = 5;
/// A range of bytes. For Arena, `index` is the arena and `offset` the first byte; for the others `index` is the number
/// of the input, output, state or constant and `offset` a byte within it. Offsets in arenas are multiples of 64.
struct BufferDesc {
  Space space = Space::Arena;
  uint32_t index = 0;
  Size offset, bytes;
  TensorType type;
};

enum class StateKind : uint8_t {
  Parameter, ///< bound by the caller, only read
  Mutable,   ///< bound by the caller, read and written: the next version replaces the last
  Derived,   ///< owned by the executable, written by `prepare`, only read by `step`
};
struct StateDesc {
  std::string name;
  TensorType type;
  StateKind kind = StateKind::Parameter;
  /// Where the caller's memory lies that is bound; of a derived state, where the executable allocates it: a parameter of the
  /// host that gpu0 reads has one there, copied by `prepare`.
  Home home = {};
};
struct ConstantDesc { ///< on the host
  int64_t offset = 0; ///< in the weights blob, a multiple of 64
  int64_t bytes = 0;
};
struct ValueDesc { ///< an input or output of the program, in the caller's memory
  std::string name;
  TensorType type;
  Home home = {}; ///< where that lies. Pinned: the caller promises that, and copies are planned with it
};

/// Which devices take a kernel, and where its code is found. The numeric values are part of the package format.
enum class KernelTarget : uint8_t {
  Host,         ///< a processor: code in the program's image
  HostLibrary,  ///< a processor: a function that the provider's factory makes of KernelDesc::params
  HostFunction, ///< of the host program (CommandKind::HostCall)
  Gpu,          ///< a GPU: code of the program's modules (GpuCode.h)
  GpuLibrary,   ///< a GPU: a call of a vendor's library
};
constexpr bool isForGpu(KernelTarget target) { return target >= KernelTarget::Gpu; }

/// What a kernel, or a part of it, takes on one thread whose operands are in its nearest cache: `seconds` at DeviceModel::speed 1.
/// `kind` names the model that predicts it, by provider, work and instruction set: "builtin/product/v4". A machine may correct a
/// model (DeviceModel::corrections).
struct KernelCost {
  std::string kind;
  double seconds = 0;
  bool operator==(const KernelCost &) const = default;
};

struct KernelDesc {
  std::string symbol;   ///< unique in the schedule; generated kernels: the image's symbol
  std::string provider; ///< who bid for it and whose figures price it: "generated", "onednn", ...
  KernelTarget target = KernelTarget::Host;
  std::string params;   ///< JSON, understood by the provider's factory; empty for generated kernels
  std::string epilogue; ///< symbol of a generated kernel run on the same chunk after this one, on the same operands
  int32_t numInputs = 0; ///< operands stand inputs first, then results: the first result is operand `numInputs`
  Size range = 1;        ///< units of work
  Size grain = 1;        ///< smallest number of units worth a task
  Size scratchBytes;
  Size flops; ///< of the whole range, for the cost model and timelines
  Size bytes; ///< read and written over the whole range; again what is read again because no compute unit keeps it
  /// Of the whole range on a host; it takes their sum. Empty where no model knows the kernel, and in packages: `flops`
  /// count then.
  std::vector<KernelCost> costs;
  /// The provider with the next cheapest bid for the same ops, and by how much that bid was higher; empty where no other provider bid, and in packages.
  KernelCost runnerUp;
  FloatMode floats = FloatMode::Any;         ///< in which mode its code runs,
  FloatMode epilogueFloats = FloatMode::Any; ///< and that of the epilogue
  bool moves = false; ///< changes the order of elements, as transposes do; packages do not say
  std::string key; ///< what it computes, the same in every program (KernelHistory.h); empty where it was not asked for
};

enum class CollectiveKind : uint8_t {
  AllReduce,     ///< every destination: the sources, combined
  AllGather,     ///< every destination: the sources, one behind the other in the members' order
  ReduceScatter, ///< the sources combined; member i's destination: part i of as many as there are members
  Broadcast,     ///< every destination: the source of the root, which alone has one
};
/// How elements are combined: those of the members in their order, from the first on.
enum class Reduction : uint8_t { Sum, Product, Min, Max };
struct CollectiveDesc {
  std::string name; ///< for timelines: "dense.weight"
  /// A stream of each, all of different devices. Over axes: the stream of this rank.
  std::vector<uint32_t> members;
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::Sum; ///< AllReduce, ReduceScatter
  uint32_t root = 0;                    ///< Broadcast: the number of the member
  /// Numbers of axes of the mesh, ascending. Empty: the members are streams of this schedule. In a broadcast over axes each part has a
  /// source, and the root's is sent.
  std::vector<uint32_t> axes;
};
/// An axis of the mesh of ranks. Ranks are numbered row-major: the last axis varies fastest.
struct MeshAxis {
  std::string name; ///< an identifier: "data", "tensor"
  Size size = 1;    ///< a number, or a symbol that gets its value before the program runs
};

enum class CommandKind : uint8_t {
  Launch,
  Copy,
  Fill,
  HostCall,
  Collective,
  Branch, ///< reads a flag, one byte; runs body 0 if it is set, else body 1
  While,  ///< runs body 0, reads the flag, and runs body 1 and starts again if it is set
  Loop,   ///< runs body 0 as often as its first scalar says
};
constexpr bool hasBodies(CommandKind kind) { return kind >= CommandKind::Branch && kind <= CommandKind::Loop; }
constexpr uint32_t numBodies(CommandKind kind) { return !hasBodies(kind) ? 0 : kind == CommandKind::Loop ? 1 : 2; }
enum class Access : uint8_t { Read, Write, ReadWrite };
struct Operand {
  uint32_t buffer = 0;
  Access access = Access::Read;
};
enum class WaitReason : uint8_t { Data, War, Pace, Rank };
struct Wait {
  uint32_t command = 0; ///< index into the same list, before the waiting one
  WaitReason reason = WaitReason::Data;
};

struct Command {
  CommandKind kind = CommandKind::Launch;
  uint16_t stream = 0;
  uint32_t kernel = 0;       ///< Launch, HostCall: index into Schedule::kernels. Collective: into collectives
  uint32_t body = 0;         ///< Branch, While, Loop: the first of its bodies in Schedule::bodies
  /// Launch: in the kernel's order. HostCall: in the function's. Copy: source, destination. Collective: likewise, of its
  /// member. Fill: destination. Branch, While: the flag. Loop: where the number of the iteration is written first (an i64;
  /// may be absent), then the buffers that move from iteration to iteration.
  uint32_t firstOperand = 0;
  uint16_t numOperands = 0;
  uint16_t numWaits = 0;
  uint32_t firstWait = 0;
  uint32_t loc = 0;         ///< index into Schedule::locations
  /// A range of CommandList::scalars. Launch: KernelArgs::scalars. Loop: the trip count, then by how many bytes each moving
  /// buffer moves: in iteration i the body finds it i times as far behind its own offset.
  uint32_t firstScalar = 0;
  uint16_t numScalars = 0;
  uint64_t fillValue = 0; ///< Fill: one element's bytes, low end first
};

struct CommandList {
  std::vector<Command> commands;
  std::vector<Operand> operands;
  std::vector<Wait> waits;
  std::vector<Size> scalars;
};

struct Location {
  std::string op;   ///< "add", or "cluster: matmul, add, relu"
  std::string file; ///< the user's file, empty if unknown
  uint32_t line = 0;
};

struct Schedule {
  std::string name;
  std::vector<StreamDesc> streams;
  std::vector<ArenaDesc> arenas;
  std::vector<BufferDesc> buffers;
  std::vector<ValueDesc> inputs, outputs;
  std::vector<StateDesc> states;
  std::vector<ConstantDesc> constants;
  std::vector<KernelDesc> kernels;
  std::vector<CollectiveDesc> collectives;
  std::vector<Location> locations; ///< [0] is the unknown location
  std::vector<Size> dims;          ///< symbols of the sizes, each a dimension of an input
  CommandList prepare, step;
  std::vector<CommandList> bodies; ///< of Branch, While and Loop; a body stands behind the one that runs it
  std::vector<MeshAxis> mesh; ///< empty: a program for one process
  uint32_t inFlight = 1;           ///< calls that may run at once
  Size peakBytes;                  ///< arena bytes that the plan needs
  Size peakLowerBoundBytes;        ///< no plan for this order needs less: the largest sum of live bytes
};

/// Where a buffer of the schedule lies. Indices must be in range.
Home homeOf(const Schedule &schedule, const BufferDesc &buffer);
/// The first input, output or state that a caller binds and that does not lie on a host; null if there is none.
const std::string *boundElsewhere(const Schedule &schedule, DeviceRef &device);

} // namespace tressel::runtime
