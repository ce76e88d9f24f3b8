// How tests steer the stand-in driver, which is the libcuda.so.1 of their library path. Found by
// dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "tressel_standin_control").
#pragma once

#include <cstddef>
#include <cstdint>

namespace tressel::standin {

/// What is alive: what a program that has ended must have given back.
struct Alive {
  uint64_t allocations = 0, pinned = 0, registered = 0, streams = 0, events = 0, modules = 0, graphs = 0, pending = 0;
};

/// Bytes that a library's call touches, in a card's addresses.
struct LibraryBytes {
  uint64_t address = 0, bytes = 0;
  bool isWrite = false;
};

struct Control {
  /// Options as "name=value name=value", over those that stand. False: one of them is unknown. The environment's
  /// TRESSEL_STANDIN has the first ones.
  ///   order=eager|late|random|reversed  which of the operations that can run does
  ///   seed=N                            of random choices, of graph nodes' order, of blocks and warps within a launch
  ///   cards=N arch=90                   read at cuInit alone: how many cards, and their compute capability
  ///   bytes=N                           memory of each card
  ///   patience=N                        how often a query of what has not ended is told so; 3 by default
  ///   fail=N                            the N-th call from now (1: the next) does nothing and returns `error`, 2 by
  ///   default; 0: none fail-kernel=N                     the N-th kernel that runs from now ends with `error`, 700 by
  ///   default, which sticks error=E                           a CUresult; 0: the default null=0|1 read when the
  ///   library is loaded: launches, copies, events and waits do nothing, for what issuing costs the host
  ///   findings=exit|keep                a finding is printed and ends the process with status 86 (the default), or is
  ///   kept plant=MISTAKE                     calls are taken as if the launcher had made it: swapped-parameters (a
  ///   kernel's first two), early-event (recorded before the stream's
  ///                                     last operation), no-wait (cuStreamWaitEvent does nothing), no-edge (a graph's
  ///                                     node is added without its first edge), lost-edge (the same when it is
  ///                                     instantiated), map-stride (of a tensor map, 16 bytes more), map-swizzle (of a
  ///                                     tensor map, none), none
  ///   trace=0|1                         each operation is printed when it is given and when it runs
  ///   forget=1                          findings, counts and failures asked for
  bool (*configure)(const char *options);
  /// What was found, a line each, cut to `bytes`; returns how many lines there are.
  size_t (*findings)(char *text, size_t bytes);
  /// Calls of the driver, and the name of the last one that failed on demand.
  uint64_t (*calls)();
  const char *(*failedCall)();
  Alive (*alive)();
  /// Runs all that is pending.
  void (*drain)();
  /// For stand-ins of NVIDIA's libraries: an operation of the stream (a CUstream) that calls `work` when it runs. The bytes are checked as a kernel's are. Returns a CUresult.
  int (*enqueue)(void *stream, const char *what, const LibraryBytes *bytes, size_t count, void (*work)(void *user), void *user);
  /// The same for what waits for work of other streams, and is not ordered by that. `meets` says 0: some of it was not
  /// given yet; 1: it runs when all that it follows has run; 2: it waits for nothing any more. Returns its number; 0:
  /// the driver refused it.
  uint64_t (*enqueueMeeting)(void *stream, const char *what, const LibraryBytes *bytes, size_t count,
                             int (*meets)(void *user), void (*work)(void *user), void *user);
  void (*follow)(uint64_t operation, uint64_t before);
  /// The card of the calling thread's context, or of a stream that is not null; -1: there is none.
  int (*card)(void *stream);
  /// Within `work`: where such bytes are in this process; null where the card has none.
  void *(*host)(uint64_t address, uint64_t bytes);
};

} // namespace tressel::standin
