#include "test/support/RunOnMachine.h"

#include "runtime/executable/ExecutableImpl.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Ranks.h"

namespace tressel::test {

using namespace runtime;

namespace {
using Bytes = std::vector<std::vector<std::byte>>;

std::vector<Bytes> inputsOf(const Schedule &s, uint64_t seed, size_t count = 2) {
  std::vector<Bytes> calls(count);
  for (size_t call = 0; call < count; ++call)
    for (size_t i = 0; i < s.inputs.size(); ++i)
      calls[call].push_back(someBytes(s.inputs[i].type.bytes(), seed * 100 + call * 10 + i));
  return calls;
}
States statesOf(const Schedule &s, uint64_t seed) {
  States states;
  for (size_t i = 0; i < s.states.size(); ++i)
    states.bytes.push_back(someBytes(s.states[i].type.bytes(), seed * 77 + i));
  return states;
}
Bytes boundOf(const Schedule &s, const States &states) {
  Bytes list;
  for (size_t i = 0; i < s.states.size(); ++i)
    if (s.states[i].kind != StateKind::Derived)
      list.push_back(states.bytes[i]);
  return list;
}
std::shared_ptr<const std::vector<std::byte>> blobOf(const Schedule &s) {
  return std::make_shared<const std::vector<std::byte>>(constantsOf(s));
}
} // namespace

std::shared_ptr<const Executable> executableOf(const Schedule &schedule) {
  registerMixKernels();
  return Executable::create(schedule, {}, blobOf(schedule));
}
std::shared_ptr<const Executable> unverifiedExecutableOf(const Schedule &schedule) {
  registerMixKernels();
  auto executable = std::make_shared<ExecutableImpl>();
  for (const KernelDesc &kernel : schedule.kernels)
    executable->kernels.push_back(findKernelProvider(kernel.provider)(kernel));
  executable->epilogues.resize(schedule.kernels.size(), nullptr);
  const auto blob = blobOf(schedule);
  executable->constants = blob->data();
  executable->constantsOwner = blob;
  executable->setSchedule(schedule);
  return executable;
}

namespace {
/// Bytes of the host as the schedule wants them: where they are, or copies on accelerators, which come back with
/// `bringBack`.
class AtHome {
public:
  explicit AtHome(const std::shared_ptr<Machine> &machine) : memory_(DeviceMemory::of(machine)) {}
  void *place(std::vector<std::byte> &bytes, const Home &home) {
    if (isHost(home))
      return bytes.data();
    const auto count = static_cast<int64_t>(bytes.size());
    const StorageRef &there = list_.emplace_back(memory_->allocate(count, home.device), &bytes).first;
    memory_->copy(there->data(), home.device, bytes.data(), {}, count);
    return there->data();
  }
  void bringBack() {
    for (auto &[there, bytes] : list_)
      memory_->copy(bytes->data(), {}, there->data(), there->device(), there->bytes());
  }

private:
  std::shared_ptr<DeviceMemory> memory_;
  std::vector<std::pair<StorageRef, std::vector<std::byte> *>> list_;
};
} // namespace

Results runTwice(const Schedule &s, const std::shared_ptr<Machine> &machine, uint64_t seed, bool verified) {
  Results results;
  States states = statesOf(s, seed);
  Executor executor(verified ? executableOf(s) : unverifiedExecutableOf(s), machine);
  std::vector<void *> pointers;
  AtHome bound(machine);
  for (size_t i = 0; i < s.states.size(); ++i)
    if (s.states[i].kind != StateKind::Derived)
      pointers.push_back(bound.place(states.bytes[i], s.states[i].home));
  executor.bindStates(pointers);
  for (Bytes inputs : inputsOf(s, seed)) {
    Bytes outputs;
    std::vector<const void *> in;
    std::vector<void *> out;
    AtHome given(machine), got(machine);
    for (size_t i = 0; i < inputs.size(); ++i)
      in.push_back(given.place(inputs[i], s.inputs[i].home));
    for (const ValueDesc &output : s.outputs)
      outputs.emplace_back(static_cast<size_t>(output.type.bytes()));
    for (size_t i = 0; i < outputs.size(); ++i)
      out.push_back(got.place(outputs[i], s.outputs[i].home));
    executor.run(in, out);
    got.bringBack();
    results.push_back(std::move(outputs));
  }
  bound.bringBack();
  results.push_back(boundOf(s, states));
  return results;
}

Results runInFlight(const Schedule &s, const std::shared_ptr<Machine> &machine, uint64_t seed, size_t calls,
                    bool verified) {
  States states = statesOf(s, seed);
  Executor executor(verified ? executableOf(s) : unverifiedExecutableOf(s), machine);
  std::vector<void *> pointers;
  AtHome bound(machine), given(machine), got(machine);
  for (size_t i = 0; i < s.states.size(); ++i)
    if (s.states[i].kind != StateKind::Derived)
      pointers.push_back(bound.place(states.bytes[i], s.states[i].home));
  executor.bindStates(pointers);
  std::vector<Bytes> inputs = inputsOf(s, seed, calls);
  Results results(calls);
  std::vector<std::vector<const void *>> in(calls);
  std::vector<std::vector<void *>> out(calls);
  std::vector<Executor::Call> list;
  for (size_t k = 0; k < calls; ++k) {
    for (size_t i = 0; i < inputs[k].size(); ++i)
      in[k].push_back(given.place(inputs[k][i], s.inputs[i].home));
    for (const ValueDesc &output : s.outputs)
      results[k].emplace_back(static_cast<size_t>(output.type.bytes()));
    for (size_t i = 0; i < results[k].size(); ++i)
      out[k].push_back(got.place(results[k][i], s.outputs[i].home));
    list.push_back({in[k], out[k]});
  }
  executor.runCalls(list);
  got.bringBack();
  bound.bringBack();
  results.push_back(boundOf(s, states));
  return results;
}

Results runTwiceSerially(const Schedule &s, uint64_t seed) { return runAllSerially(s, seed, 2); }
Results runAllSerially(const Schedule &s, uint64_t seed, size_t calls) {
  States states = statesOf(s, seed);
  Results results = runSerially(s, states, inputsOf(s, seed, calls));
  results.push_back(boundOf(s, states));
  return results;
}
Results runRanksTwiceSerially(const Schedule &s, uint64_t seed) {
  const Schedule all = expandRanks(s);
  const auto n = static_cast<size_t>(numRanks(s.mesh));
  const States given = statesOf(all, seed);
  std::vector<States> states(n);
  for (size_t i = 0; i < given.bytes.size(); ++i)
    states[i / s.states.size()].bytes.push_back(given.bytes[i]);
  Results results = runRanksSerially(s, states, inputsOf(all, seed));
  States after;
  for (const States &rank : states)
    after.bytes.insert(after.bytes.end(), rank.bytes.begin(), rank.bytes.end());
  results.push_back(boundOf(all, after));
  return results;
}

} // namespace tressel::test
