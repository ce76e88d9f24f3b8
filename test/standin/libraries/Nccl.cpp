// A stand-in for NCCL, on the stand-in driver: libnccl.so.2. Ranks are threads of one process, each with a card of its
// own. A rank's operation is two of its stream: one that reads what it sends, and one that writes what it receives,
// which runs when those that it meets have run their first. So a missing wait is among the findings, and what the ranks
// do not do together hangs, as it would with the library; which that is, is printed. Non-blocking communicators are in
// progress for a while after each call, and what they were given is in the stream only then.
//
// By the documentation ("NVIDIA Collective Communication Library"); nothing of the project is used.
#include "../driver/Control.h"
#include "NcclControl.h"
#include "Numbers.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using tressel::standin::Control;
using tressel::standin::LibraryBytes;
using tressel::standin::NcclControl;
using tressel::standin::Number;

enum Status : int {
  kOk = 0,
  kCudaError = 1,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};
enum Type : int { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBf16 };
enum Reduction : int { kSum, kProduct, kMax, kMin };
enum class Kind : int { AllReduce, ReduceScatter, AllGather, Broadcast };

struct Id {
  char bytes[128];
};
struct Config { // as far as this looks at it
  size_t size;
  unsigned magic, version;
  int blocking;
};

NcclControl state;
std::recursive_mutex mutex; ///< of all but what operations do, which is under the driver's

int refuse(int status, const char *why) {
  ++state.refused;
  state.lastRefusal = why;
  return status;
}
const Control *driver() {
  static const Control *const found = [] {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? static_cast<const Control *>(dlsym(library, "tressel_standin_control")) : nullptr;
  }();
  return found;
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
size_t bytesOf(int type) {
  const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return bytes[type];
}
template <typename T> T combine(T a, T b, int how) {
  switch (how) {
  case kSum:
    return static_cast<T>(a + b);
  case kProduct:
    return static_cast<T>(a * b);
  case kMax:
    return a > b ? a : b;
  default:
    return a < b ? a : b;
  }
}
template <typename T> void combineAt(std::byte *to, const std::byte *from, int how) {
  using Wide = std::conditional_t<std::is_integral_v<T>,
                                  std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>, T>;
  T a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  const T result = how == kSum || how == kProduct
                       ? static_cast<T>(combine<Wide>(static_cast<Wide>(a), static_cast<Wide>(b), how))
                       : combine(a, b, how);
  std::memcpy(to, &result, sizeof result);
}
void combineAt(std::byte *to, const std::byte *from, int type, int how) {
  switch (type) {
  case kI8:
    return combineAt<int8_t>(to, from, how);
  case kU8:
    return combineAt<uint8_t>(to, from, how);
  case kI32:
    return combineAt<int32_t>(to, from, how);
  case kU32:
    return combineAt<uint32_t>(to, from, how);
  case kI64:
    return combineAt<int64_t>(to, from, how);
  case kU64:
    return combineAt<uint64_t>(to, from, how);
  case kF32:
    return combineAt<float>(to, from, how);
  case kF64:
    return combineAt<double>(to, from, how);
  default:
    break;
  }
  const Number number = type == kF16 ? Number::Half : Number::Bfloat;
  tressel::standin::store(to, number,
                          combine(tressel::standin::load(to, number), tressel::standin::load(from, number), how));
}

//--- Operations -------------------------------------------------------------------------------------------------------
using Bytes = std::vector<std::byte>;

/// A send and its receive.
struct Message {
  uint64_t sender = 0, senderSecond = 0; ///< operations of the two, by number
  uint64_t first = 0, receiver = 0;
  size_t sentBytes = SIZE_MAX, receivedBytes = SIZE_MAX;
  Bytes bytes;
  std::atomic<bool> isComplete{false};
};
/// A collective of all ranks.
struct Meeting {
  Kind kind;
  size_t count;
  int type, how, root;
  std::string text;
  std::vector<uint64_t> firsts, seconds; ///< by rank; 0: not given
  std::vector<Bytes> sources;
  std::atomic<bool> isComplete{false};
  bool isMismatched = false;
  explicit Meeting(size_t ranks) : firsts(ranks), seconds(ranks), sources(ranks) {}
};

struct Group;
struct Comm {
  std::shared_ptr<Group> group;
  int rank = 0, card = -1;
  int patience = 0;                            ///< further looks until what is in progress is done
  std::vector<std::function<void()>> deferred; ///< what is done then
  std::function<bool()> awaits;                ///< what has to be the case besides; null: nothing
  int error = kOk, laterError = kOk;           ///< asynchronous; and one that shows when it is asked for
  std::shared_ptr<std::atomic<bool>> isStopped = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
  uint64_t collectives = 0;
  std::map<int, uint64_t> sent, received; ///< by peer
  bool isBlocking = false, isFinalized = false, isRevoked = false, isReady = false;
};
/// What the ranks of a communicator share.
struct Group {
  explicit Group(int size) : members(static_cast<size_t>(size)) {}
  std::vector<Comm *> members;
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<Message>> messages; ///< from, to, number
  std::map<std::vector<int>, std::pair<std::shared_ptr<Group>, int>>
      shrunk; ///< by those left out: their group, and how many have come
  int joined = 0;
  bool sharesCards = false, hasAborted = false;
};
std::map<std::string, std::shared_ptr<Group>> groups; ///< that ranks still join
std::set<Comm *> alive;

/// A rank's part of something in its stream.
struct Part {
  std::shared_ptr<std::atomic<bool>> isStopped;
  std::shared_ptr<std::atomic<int>> pending;
  std::function<void()> read, write;
  std::function<bool()> isComplete; ///< all that it meets was given
};
void runRead(void *user) {
  auto &part = *static_cast<std::shared_ptr<Part> *>(user);
  if (!*part->isStopped)
    part->read();
  delete &part;
}
int meets(void *user) {
  const auto &part = *static_cast<std::shared_ptr<Part> *>(user);
  return *part->isStopped ? 2 : part->isComplete() ? 1 : 0;
}
void runWrite(void *user) {
  auto &part = *static_cast<std::shared_ptr<Part> *>(user);
  if (!*part->isStopped)
    part->write();
  --*part->pending;
  delete &part;
}
struct Numbers {
  uint64_t first, second;
};
Numbers enqueue(Comm &comm, void *stream, const char *what, const std::vector<LibraryBytes> &reads,
                const std::vector<LibraryBytes> &writes, std::function<void()> read, std::function<bool()> isComplete,
                std::function<void()> write) {
  auto part = std::make_shared<Part>(
      Part{comm.isStopped, comm.pending, std::move(read), std::move(write), std::move(isComplete)});
  ++*comm.pending;
  const uint64_t first = driver()->enqueueMeeting(stream, what, reads.data(), reads.size(), nullptr, runRead,
                                                  new std::shared_ptr<Part>(part));
  const uint64_t second = driver()->enqueueMeeting(stream, what, writes.data(), writes.size(), meets, runWrite,
                                                   new std::shared_ptr<Part>(part));
  if (!first || !second)
    comm.error = kCudaError;
  return {first, second};
}

struct Collective {
  Kind kind;
  uint64_t from, to;
  size_t count;
  int type, how, root;
  void *stream;
};
const char *nameOf(Kind kind) {
  const char *const names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};
  return names[static_cast<int>(kind)];
}

void give(Comm &comm, const Collective &c) {
  const auto ranks = comm.group->members.size();
  const auto rank = static_cast<size_t>(comm.rank);
  const uint64_t number = ++comm.collectives;
  std::shared_ptr<Meeting> &known = comm.group->meetings[number];
  const std::string text = std::string(nameOf(c.kind)) + "(count " + std::to_string(c.count) + ", type " +
                           std::to_string(c.type) + ", operation " + std::to_string(c.how) + ", root " +
                           std::to_string(c.root) + ")";
  if (!known)
    known = std::make_shared<Meeting>(ranks);
  const std::shared_ptr<Meeting> m = known;
  if (m->text.empty()) {
    m->kind = c.kind, m->count = c.count, m->type = c.type, m->how = c.how, m->root = c.root, m->text = text;
  } else if (m->text != text && !m->isMismatched) {
    size_t other = 0;
    while (!m->firsts[other])
      ++other;
    m->isMismatched = true;
    ++state.mismatches;
    std::fprintf(stderr, "stand-in NCCL: operation %llu of a communicator hangs: rank %zu calls %s, rank %zu %s\n",
                 static_cast<unsigned long long>(number), other, m->text.c_str(), rank, text.c_str());
  }
  const size_t element = bytesOf(c.type), n = c.count * element;
  const size_t sends = c.kind == Kind::ReduceScatter ? n * ranks : n,
               receives = c.kind == Kind::AllGather ? n * ranks : n;
  const bool hasSource = c.kind != Kind::Broadcast || c.root == comm.rank;
  std::vector<LibraryBytes> reads;
  if (hasSource)
    reads.push_back({c.from, sends, false});
  const Numbers numbers = enqueue(
      comm, c.stream, nameOf(c.kind), reads, {{c.to, receives, true}},
      [m, rank, hasSource, from = c.from, sends] {
        if (hasSource)
          if (const void *bytes = driver()->host(from, sends))
            m->sources[rank].assign(static_cast<const std::byte *>(bytes),
                                    static_cast<const std::byte *>(bytes) + sends);
      },
      [m] { return m->isComplete.load(); },
      [m, rank, ranks, n, element, to = c.to, receives] {
        auto *result = static_cast<std::byte *>(driver()->host(to, receives));
        if (!result)
          return;
        if (m->kind == Kind::Broadcast)
          return static_cast<void>(std::memcpy(result, m->sources[static_cast<size_t>(m->root)].data(), n));
        if (m->kind == Kind::AllGather) {
          for (size_t r = 0; r < ranks; ++r)
            std::memcpy(result + r * n, m->sources[r].data(), n);
          return;
        }
        // Added up in the order of a ring that begins elsewhere than at rank 0.
        const size_t at = m->kind == Kind::ReduceScatter ? rank * n : 0;
        std::memcpy(result, m->sources[1 % ranks].data() + at, n);
        for (size_t r = 1; r < ranks; ++r)
          for (size_t i = 0; i < n; i += element)
            combineAt(result + i, m->sources[(1 + r) % ranks].data() + at + i, m->type, m->how);
      });
  m->firsts[rank] = numbers.first;
  m->seconds[rank] = numbers.second;
  for (size_t r = 0; r < ranks; ++r)
    if (r != rank && m->firsts[r]) {
      driver()->follow(numbers.second, m->firsts[r]);
      driver()->follow(m->seconds[r], numbers.first);
    }
  if (std::count(m->firsts.begin(), m->firsts.end(), 0u) == 0) {
    m->isComplete = !m->isMismatched;
    comm.group->meetings.erase(number);
  }
}

struct Transfer {
  bool isSend;
  uint64_t address;
  size_t bytes;
  int peer;
  void *stream;
};
/// Sends and receives of a group.
void give(Comm &comm, const std::vector<Transfer> &transfers) {
  struct Side {
    Transfer transfer;
    std::shared_ptr<Message> message;
  };
  std::vector<Side> sides;
  std::vector<LibraryBytes> reads, writes;
  for (const Transfer &t : transfers) {
    const int from = t.isSend ? comm.rank : t.peer, to = t.isSend ? t.peer : comm.rank;
    const uint64_t number = t.isSend ? comm.sent[t.peer]++ : comm.received[t.peer]++;
    std::shared_ptr<Message> &known = comm.group->messages[{from, to, number}];
    if (!known)
      known = std::make_shared<Message>();
    (t.isSend ? known->sentBytes : known->receivedBytes) = t.bytes;
    if (known->sentBytes != SIZE_MAX && known->receivedBytes != SIZE_MAX && known->sentBytes != known->receivedBytes) {
      ++state.mismatches;
      std::fprintf(stderr, "stand-in NCCL: a message hangs: rank %d sends %zu bytes, rank %d receives %zu\n", from,
                   known->sentBytes, to, known->receivedBytes);
    }
    sides.push_back({t, known});
    (t.isSend ? reads : writes).push_back({t.address, t.bytes, !t.isSend});
  }
  const Numbers numbers = enqueue(
      comm, transfers.front().stream, "ncclSend, ncclRecv", reads, writes,
      [sides] {
        for (const Side &side : sides) {
          if (side.transfer.isSend)
            if (const auto *bytes =
                    static_cast<const std::byte *>(driver()->host(side.transfer.address, side.transfer.bytes)))
              side.message->bytes.assign(bytes, bytes + side.transfer.bytes);
        }
      },
      [sides] {
        return std::all_of(sides.begin(), sides.end(),
                           [](const Side &side) { return side.message->isComplete.load(); });
      },
      [sides] {
        for (const Side &side : sides)
          if (!side.transfer.isSend)
            if (void *to = driver()->host(side.transfer.address, side.transfer.bytes))
              std::memcpy(to, side.message->bytes.data(), side.transfer.bytes);
      });
  for (const Side &side : sides) {
    Message &m = *side.message;
    if (side.transfer.isSend)
      m.sender = numbers.first, m.senderSecond = numbers.second;
    else
      m.first = numbers.first, m.receiver = numbers.second;
    if (m.sender && m.first) {
      driver()->follow(m.receiver, m.sender);
      driver()->follow(m.senderSecond, m.first);
      m.isComplete = m.sentBytes == m.receivedBytes;
    }
  }
}

//--- Progress ---------------------------------------------------------------------------------------------------------
Comm *at(Comm *comm) { return alive.contains(comm) ? comm : nullptr; }
bool isInProgress(const Comm &comm) { return !comm.deferred.empty() || comm.patience > 0 || comm.awaits; }
/// Done now, or after a while.
int begin(Comm &comm, std::function<void()> work, std::function<bool()> awaits = nullptr) {
  if (comm.isBlocking || (state.patience == 0 && !awaits)) {
    work();
    return comm.error;
  }
  comm.patience = state.patience;
  comm.deferred.push_back(std::move(work));
  comm.awaits = std::move(awaits);
  return kInProgress;
}
int look(Comm &comm) {
  if (comm.laterError != kOk)
    comm.error = std::exchange(comm.laterError, kOk);
  if (comm.error != kOk)
    return comm.error;
  if (!isInProgress(comm))
    return kOk;
  if (comm.patience > 0 && comm.patience--)
    return kInProgress;
  if (comm.awaits && !comm.awaits())
    return kInProgress;
  comm.awaits = nullptr;
  for (auto &work : std::exchange(comm.deferred, {}))
    work();
  return comm.error;
}
/// Why nothing can be given to it now; 0: it can.
int unusable(const Comm *comm) {
  if (!comm)
    return refuse(kInvalidArgument, "no such communicator");
  if (comm->error != kOk)
    return refuse(kInvalidUsage, "the communicator has an asynchronous error");
  if (isInProgress(*comm))
    return refuse(kInvalidUsage, "the communicator is in progress");
  if (comm->isRevoked || comm->isFinalized)
    return refuse(kInvalidUsage, "the communicator was revoked or finalized");
  return kOk;
}
void stop(Comm &comm) {
  *comm.isStopped = true;
  comm.deferred.clear();
  comm.awaits = nullptr;
  comm.patience = 0;
}
void destroy(Comm *comm) {
  for (Comm *&member : comm->group->members)
    if (member == comm)
      member = nullptr;
  alive.erase(comm);
  state.communicators = alive.size();
  delete comm;
}
Comm *make(std::shared_ptr<Group> group, int rank, int card, bool isBlocking) {
  auto *comm = new Comm;
  comm->group = std::move(group);
  comm->rank = rank;
  comm->card = card;
  comm->isBlocking = isBlocking;
  for (const Comm *other : comm->group->members)
    comm->group->sharesCards |= other && other->card == card;
  comm->group->members[static_cast<size_t>(rank)] = comm;
  ++comm->group->joined;
  alive.insert(comm);
  state.communicators = alive.size();
  return comm;
}
std::function<bool()> allJoined(Comm *comm) {
  return [comm] { return comm->group->joined == static_cast<int>(comm->group->members.size()); };
}
std::function<void()> becomeReady(Comm *comm) {
  return [comm] {
    comm->isReady = true;
    if (comm->group->sharesCards) {
      comm->error = kInvalidUsage;
      refuse(kInvalidUsage, "two ranks have one card");
    }
  };
}

//--- Groups of calls --------------------------------------------------------------------------------------------------
thread_local int depth = 0;
thread_local Comm *grouped = nullptr;
thread_local std::vector<Transfer> transfers;

int admit(Comm *comm, const void *stream, int type, int peer) {
  if (!driver())
    return refuse(kCudaError, "no driver");
  if (const int status = unusable(at(comm)))
    return status;
  if (!stream)
    return refuse(kInvalidArgument, "the legacy stream would wait for others");
  if (driver()->card(const_cast<void *>(stream)) != comm->card)
    return refuse(kInvalidUsage, "the stream is none of the communicator's card");
  if (type < 0 || type > kBf16 || peer < 0 || peer >= static_cast<int>(comm->group->members.size()))
    return refuse(kInvalidArgument, "no such type or rank");
  ++state.operations;
  if (state.failAt && --state.failAt == 0)
    return refuse(state.failure, "asked for by a test");
  if (state.asyncFailAt && --state.asyncFailAt == 0)
    comm->laterError = state.failure;
  return kOk;
}
int collective(Comm *comm, Collective c) {
  const std::lock_guard lock(mutex);
  if (const int status = admit(comm, c.stream, c.type, c.root))
    return status;
  if (c.how < 0 || c.how > kMin)
    return refuse(kInvalidArgument, "no such operation");
  if (c.count == 0)
    return kOk;
  if (depth > 0)
    return refuse(kInvalidUsage, "the stand-in takes no collectives in groups");
  return begin(*comm, [comm, c] { give(*comm, c); });
}
int transfer(Comm *comm, Transfer t, int type) {
  const std::lock_guard lock(mutex);
  if (const int status = admit(comm, t.stream, type, t.peer))
    return status;
  if (t.peer == comm->rank || (grouped && (grouped != comm || transfers.front().stream != t.stream)))
    return refuse(kInvalidUsage, "the stand-in takes groups of one communicator and stream, with other ranks");
  if (depth == 0)
    return begin(*comm, [comm, t] { give(*comm, std::vector{t}); });
  grouped = comm;
  transfers.push_back(t);
  return kOk;
}

} // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC NcclControl *tressel_standin_nccl() { return &state; }

PUBLIC int ncclGetVersion(int *version) {
  const char *wanted = std::getenv("TRESSEL_STANDIN_NCCL_VERSION");
  *version = wanted ? std::atoi(wanted) : 22900;
  return kOk;
}
PUBLIC const char *ncclGetErrorString(int status) {
  const char *const texts[] = {"no error",
                               "unhandled cuda error",
                               "unhandled system error",
                               "internal error",
                               "invalid argument",
                               "invalid usage",
                               "remote process exited or there was a network error",
                               "NCCL operation in progress"};
  return status >= 0 && status < 8 ? texts[status] : "unknown result code";
}
PUBLIC const char *ncclGetLastError(Comm *) { return state.lastRefusal; }
PUBLIC int ncclGetUniqueId(Id *id) {
  const std::lock_guard lock(mutex);
  static uint64_t made = 0;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "stand-in %llu", static_cast<unsigned long long>(++made));
  return kOk;
}
PUBLIC int ncclCommInitRankConfig(Comm **comm, int ranks, Id id, int rank, const Config *config) {
  const std::lock_guard lock(mutex);
  if (!driver() || driver()->card(nullptr) < 0)
    return refuse(kCudaError, "the thread has no context");
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(kInvalidArgument, "no such rank");
  if (!config || config->magic != 0xcafebeef || config->size < sizeof(Config) ||
      (config->blocking != 0 && config->blocking != 1 && config->blocking != INT_MIN))
    return refuse(kInvalidArgument, "the configuration was not initialized");
  std::shared_ptr<Group> &known = groups[id.bytes];
  if (!known)
    known = std::make_shared<Group>(ranks);
  const std::shared_ptr<Group> group = known;
  if (group->members.size() != static_cast<size_t>(ranks) || group->members[static_cast<size_t>(rank)])
    return refuse(kInvalidArgument, "another number of ranks, or a rank twice");
  if (config->blocking != 0)
    return refuse(kInvalidUsage, "the stand-in makes non-blocking communicators alone");
  *comm = make(group, rank, driver()->card(nullptr), false);
  if (group->joined == ranks)
    groups.erase(id.bytes);
  return begin(**comm, becomeReady(*comm), allJoined(*comm));
}
PUBLIC int ncclCommGetAsyncError(Comm *comm, int *status) {
  const std::lock_guard lock(mutex);
  if (!at(comm) || !status)
    return refuse(kInvalidArgument, "no such communicator");
  if (comm->group->hasAborted && state.tellsOthers)
    comm->error = kRemoteError;
  *status = look(*comm);
  return kOk;
}
PUBLIC int ncclCommFinalize(Comm *comm) {
  const std::lock_guard lock(mutex);
  if (const int status = unusable(at(comm)))
    return status;
  comm->isFinalized = true;
  ++state.finalized;
  return begin(
      *comm, [] {}, [pending = comm->pending] { return *pending == 0; });
}
PUBLIC int ncclCommDestroy(Comm *comm) {
  const std::lock_guard lock(mutex);
  if (!at(comm))
    return refuse(kInvalidArgument, "no such communicator");
  if (isInProgress(*comm) || *comm->pending != 0)
    return refuse(kInvalidUsage, "destroyed before it is quiet");
  destroy(comm);
  return kOk;
}
PUBLIC int ncclCommAbort(Comm *comm) {
  const std::lock_guard lock(mutex);
  if (!at(comm))
    return refuse(kInvalidArgument, "no such communicator");
  ++state.aborted;
  stop(*comm);
  comm->group->hasAborted = true;
  destroy(comm);
  return kOk;
}
PUBLIC int ncclCommRevoke(Comm *comm, int flags) {
  const std::lock_guard lock(mutex);
  if (!at(comm) || flags != 0 || comm->isRevoked || comm->isFinalized)
    return refuse(kInvalidArgument, "revoked twice, or after it was finalized");
  if (!state.revokes)
    return refuse(kInvalidUsage, "asked for by a test");
  ++state.revoked;
  stop(*comm);
  comm->error = kOk;
  comm->isRevoked = true;
  return begin(*comm, [] {});
}
PUBLIC int ncclCommShrink(Comm *comm, int *lost, int count, Comm **child, const Config *config, int flags) {
  const std::lock_guard lock(mutex);
  if (!at(comm) || !lost || count < 1 || !child || (flags & ~1))
    return refuse(kInvalidArgument, "no communicator, or none to leave out");
  const std::vector<int> out = [&] {
    std::vector<int> sorted(lost, lost + count);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }();
  if (std::binary_search(out.begin(), out.end(), comm->rank))
    return refuse(kInvalidArgument, "a rank that is left out calls it");
  if (!(flags & 1) && *comm->pending != 0)
    return refuse(kInvalidUsage, "it has work in flight, and is not to abort it");
  if (isInProgress(*comm) && !(flags & 1))
    return refuse(kInvalidUsage, "the communicator is in progress");
  if (state.shrinkFailAt && --state.shrinkFailAt == 0)
    return refuse(state.failure, "asked for by a test");
  ++state.shrunk;
  stop(*comm); // of the parent; what is given to the child has a flag of its own
  comm->error = kOk;
  auto &[group, come] = comm->group->shrunk[out];
  if (!group)
    group = std::make_shared<Group>(static_cast<int>(comm->group->members.size()) - count);
  ++come;
  const int before = static_cast<int>(std::lower_bound(out.begin(), out.end(), comm->rank) - out.begin());
  *child = nullptr;
  // The child is there when all have called, and the parent is no longer in progress.
  return begin(
      *comm,
      [comm, child, before, group = group, blocking = config ? config->blocking : 0] {
        *child = make(group, comm->rank - before, comm->card, blocking == 1);
        begin(**child, becomeReady(*child), allJoined(*child));
      },
      [come = &come, group = group] { return *come == static_cast<int>(group->members.size()); });
}

PUBLIC int ncclAllReduce(uint64_t from, uint64_t to, size_t count, int type, int how, Comm *comm, void *stream) {
  return collective(comm, {Kind::AllReduce, from, to, count, type, how, 0, stream});
}
PUBLIC int ncclReduceScatter(uint64_t from, uint64_t to, size_t count, int type, int how, Comm *comm, void *stream) {
  return collective(comm, {Kind::ReduceScatter, from, to, count, type, how, 0, stream});
}
PUBLIC int ncclAllGather(uint64_t from, uint64_t to, size_t count, int type, Comm *comm, void *stream) {
  return collective(comm, {Kind::AllGather, from, to, count, type, 0, 0, stream});
}
PUBLIC int ncclBroadcast(uint64_t from, uint64_t to, size_t count, int type, int root, Comm *comm, void *stream) {
  return collective(comm, {Kind::Broadcast, from, to, count, type, 0, root, stream});
}
PUBLIC int ncclSend(uint64_t from, size_t count, int type, int peer, Comm *comm, void *stream) {
  return transfer(comm, {true, from, count * bytesOf(type), peer, stream}, type);
}
PUBLIC int ncclRecv(uint64_t to, size_t count, int type, int peer, Comm *comm, void *stream) {
  return transfer(comm, {false, to, count * bytesOf(type), peer, stream}, type);
}
PUBLIC int ncclGroupStart() {
  ++depth;
  return kOk;
}
PUBLIC int ncclGroupEnd() {
  const std::lock_guard lock(mutex);
  if (depth == 0)
    return refuse(kInvalidUsage, "no group was begun");
  if (--depth > 0 || !grouped)
    return kOk;
  Comm *const comm = std::exchange(grouped, nullptr);
  auto all = std::exchange(transfers, {});
  return begin(*comm, [comm, all = std::move(all)] { give(*comm, all); });
}
