// What a card is capable of, and what compiled programs take on it. Needs the runtime alone, so that it can be carried
// to a machine with a card.
//
//   gpu-bench --machine [BYTES]                  copies of so many bytes (256 MiB), launches and graphs, by the driver
//   itself gpu-bench [--seconds S] PACKAGE.tsl...       steps of programs: what the caller waits for, in S seconds (1),
//   and what each kernel takes by the card's clock gpu-bench --losses COUNT PACKAGE.tsl...      losses of so many steps
//   of training alone
//
// One JSON object a line. Times are medians, in microseconds.
#include "runtime/cuda/Driver.h"
#include "test/bench/Values.h"
#include "test/unit/runtime/GpuTestKernels.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Package.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

using namespace tressel;
using namespace tressel::runtime;
using json = nlohmann::ordered_json;

namespace {

using Clock = std::chrono::steady_clock;
double usSince(Clock::time_point begin) { return std::chrono::duration<double, std::micro>(Clock::now() - begin).count(); }
double median(std::vector<double> list) {
  if (list.empty())
    return 0;
  std::ranges::sort(list);
  return list[list.size() / 2];
}
void print(const json &line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

//--- The card ---------------------------------------------------------------------------------------------------------
void measureMachine(size_t bytes) {
  using namespace tressel::runtime::cuda;
  std::string why;
  const Driver *found = Driver::find(&why);
  if (!found)
    throw Error(why);
  const Driver &d = *found;
  const Card &card = cards(d).front();
  card.use(d);
  auto check = [&](Result result) { d.check(result, "a call"); };
  json info{{"card", card.name}, {"architecture", card.architecture()}, {"multiprocessors", card.multiprocessors}, {"memory_bytes", card.memoryBytes},
            {"cuda_version", d.version}};
  print(info);
  StreamHandle s = nullptr, other = nullptr;
  check(d.cuStreamCreate(&s, 1));
  check(d.cuStreamCreate(&other, 1));
  EventHandle begin = nullptr, end = nullptr;
  check(d.cuEventCreate(&begin, 0));
  check(d.cuEventCreate(&end, 0));
  auto onCard = [&](const std::function<void()> &work, int runs = 20) {
    std::vector<double> us;
    work();
    for (int i = 0; i < runs; ++i) {
      check(d.cuEventRecord(begin, s));
      work();
      check(d.cuEventRecord(end, s));
      check(d.cuEventSynchronize(end));
      float ms = 0;
      check(d.cuEventElapsedTime(&ms, begin, end));
      us.push_back(1e3 * double(ms));
    }
    return median(us);
  };
  Address a = 0, b = 0;
  check(d.cuMemAlloc(&a, bytes));
  check(d.cuMemAlloc(&b, bytes));
  void *pinned = nullptr;
  check(d.cuMemHostAlloc(&pinned, bytes, 3));
  std::vector<char> pageable(bytes, 1);
  auto rate = [&](const char *what, Address to, Address from, double factor = 1) {
    const double us = onCard([&] { check(d.cuMemcpyAsync(to, from, bytes, s)); });
    print({{"copy", what}, {"bytes", bytes}, {"us", us}, {"gb_per_second", factor * double(bytes) / us / 1e3}});
  };
  rate("on the card, read and written", b, a, 2);
  rate("pinned to card", a, reinterpret_cast<Address>(pinned));
  rate("card to pinned", reinterpret_cast<Address>(pinned), a);
  rate("pageable to card", a, reinterpret_cast<Address>(pageable.data()));
  rate("card to pageable", reinterpret_cast<Address>(pageable.data()), a);
  { // both ways at once
    std::vector<double> us;
    for (int i = 0; i < 10; ++i) {
      const auto start = Clock::now();
      check(d.cuMemcpyAsync(a, reinterpret_cast<Address>(pinned), bytes / 2, s));
      check(d.cuMemcpyAsync(reinterpret_cast<Address>(pinned) + bytes / 2, b, bytes / 2, other));
      check(d.cuStreamSynchronize(s));
      check(d.cuStreamSynchronize(other));
      us.push_back(usSince(start));
    }
    print({{"copy", "pinned, both ways at once"}, {"bytes", bytes}, {"us", median(us)}, {"gb_per_second", double(bytes) / median(us) / 1e3}});
  }
  check(d.cuMemFree(a));
  check(d.cuMemFree(b));
  check(d.cuMemFreeHost(pinned));

  // Small kernels, one by one and as a graph.
  const GpuCode code = test::gpuTestCode();
  Module module = nullptr;
  check(d.cuModuleLoadDataEx(&module, code.ptx.c_str(), 0, nullptr, nullptr));
  Function add = nullptr;
  check(d.cuModuleGetFunction(&add, module, "twice"));
  check(d.cuMemAlloc(&a, 4096));
  Address out = a + 1024, status = a + 2048;
  void *params[] = {&a, &out, &status};
  auto launch = [&](StreamHandle on) { check(d.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, on, params, nullptr)); };
  auto host = [&](const std::function<void()> &work, int perRun, int runs = 50) {
    std::vector<double> us;
    for (int i = 0; i < runs; ++i) {
      check(d.cuStreamSynchronize(s));
      const auto start = Clock::now();
      work();
      us.push_back(usSince(start) / perRun);
    }
    check(d.cuStreamSynchronize(s));
    return median(us);
  };
  auto launches = [&](int n) {
    for (int i = 0; i < n; ++i)
      launch(s);
  };
  print({{"launch", "issued by the host"}, {"us", host([&] { launches(200); }, 200)}});
  print({{"launch", "on the card, one behind the other"}, {"us", onCard([&] { launches(200); }) / 200}});
  print({{"launch", "one, until the host knows that it has ended"}, {"us", host([&] { launch(s), check(d.cuStreamSynchronize(s)); }, 1)}});
  std::vector<EventHandle> events(200);
  for (EventHandle &event : events)
    check(d.cuEventCreate(&event, 3));
  auto recorded = [&](int n) {
    for (int i = 0; i < n; ++i)
      launch(s), check(d.cuEventRecord(events[size_t(i)], s));
  };
  print({{"launch", "with an event behind each, issued by the host"}, {"us", host([&] { recorded(200); }, 200)}});
  print({{"launch", "with an event behind each, on the card"}, {"us", onCard([&] { recorded(200); }) / 200}});
  for (int n : {20, 100}) {
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    check(d.cuGraphCreate(&graph, 0));
    KernelNodeParams node{.function = add, .blockX = 32, .params = params};
    GraphNode last = nullptr;
    for (int i = 0; i < n; ++i) // one behind the other, as in the stream
      check(d.cuGraphAddKernelNode(&last, graph, &last, i ? 1 : 0, &node));
    check(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
    const double issued = host([&] { check(d.cuGraphLaunch(exec, s)); }, 1);
    const double took = onCard([&] { check(d.cuGraphLaunch(exec, s)); });
    const double roundTrip = host([&] { check(d.cuGraphLaunch(exec, s)), check(d.cuStreamSynchronize(s)); }, 1);
    const double plain = host([&] { launches(n), check(d.cuStreamSynchronize(s)); }, 1);
    print({{"graph", n}, {"issued_us", issued}, {"on_card_us", took}, {"until_ended_us", roundTrip}, {"same_one_by_one_us", plain}});
    check(d.cuGraphExecDestroy(exec));
    check(d.cuGraphDestroy(graph));
  }
  for (EventHandle event : events)
    check(d.cuEventDestroy(event));
  check(d.cuMemFree(a));
  check(d.cuModuleUnload(module));
}

//--- Programs ---------------------------------------------------------------------------------------------------------
std::vector<std::byte> valuesOf(const TensorType &type, uint32_t seed) {
  std::vector<std::byte> bytes(size_t(type.bytes()));
  uint32_t state = seed * 2654435761u + 12345;
  auto next = [&] { return state = state * 1664525u + 1013904223u, double(state >> 8) / double(1 << 24); };
  const size_t n = size_t(type.shape.numElements());
  for (size_t i = 0; i < n; ++i) {
    const auto value = float(2 * next() - 1);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    switch (type.dtype) {
    case DType::f32:
      std::memcpy(&bytes[4 * i], &value, 4);
      break;
    case DType::bf16: {
      const auto half = uint16_t(bits >> 16);
      std::memcpy(&bytes[2 * i], &half, 2);
      break;
    }
    case DType::f16: { // numbers from 0.25 to 1, cut off
      const uint16_t half = uint16_t((bits >> 31 << 15) | ((13 + (bits >> 23 & 1)) << 10) | (bits >> 13 & 0x3ff));
      std::memcpy(&bytes[2 * i], &half, 2);
      break;
    }
    default:
      break; // zeros
    }
  }
  return bytes;
}

/// The value of a state in the package, or by its name where the package has NaN in its place: weights of steps of
/// training do not travel.
std::vector<std::byte> stateOf(const Package &package, const std::string &name, const TensorType &type) {
  const std::span<const std::byte> kept = package.stateValue(name);
  float first = 0;
  if (type.dtype == DType::f32 && kept.size() >= sizeof first)
    std::memcpy(&first, kept.data(), sizeof first);
  if (!std::isnan(first))
    return {kept.begin(), kept.end()};
  std::vector<int64_t> extents;
  for (const Size &size : type.shape)
    extents.push_back(size.number());
  const std::vector<float> values = bench::parameterValues(name, extents);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// `losses`: so many steps of a step of training, and no times; null: the machine of times.
void measureProgram(const std::string &path, int losses, double seconds, const std::shared_ptr<Machine> &plain,
                    const std::shared_ptr<Machine> &stamping) {
  const Package package = Package::open(path);
  const auto executable = package.executable("", hostCpuLevel(), {.gpu = std::make_shared<std::vector<GpuCode>>(gpuCodeOf(package))});
  const Schedule &s = executable->schedule();
  std::vector<std::vector<std::byte>> kept;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  for (const ValueDesc &input : s.inputs)
    inputs.push_back(kept.emplace_back(valuesOf(input.type, uint32_t(inputs.size() + 1))).data());
  for (const ValueDesc &output : s.outputs)
    outputs.push_back(kept.emplace_back(size_t(output.type.bytes())).data());
  std::vector<StorageRef> states; // of both machines
  auto bind = [&](Executor &executor, const std::shared_ptr<Machine> &machine) {
    std::vector<void *> pointers;
    for (const StateDesc &state : s.states)
      if (state.kind != StateKind::Derived) {
        states.push_back(
            DeviceMemory::of(machine)->copyOf(stateOf(package, state.name, state.type), state.home.device));
        pointers.push_back(states.back()->data());
      }
    executor.bindStates(pointers);
  };
  json line{{"program", path.substr(path.rfind('/') + 1)}};
  {
    Executor executor(executable, plain);
    bind(executor, plain);
    executor.run(inputs, outputs);
    if (!states.empty() && s.outputs.size() == 1 && s.outputs[0].type.dtype == DType::f32 &&
        s.outputs[0].type.bytes() == 4) {
      std::vector<float> seen; // of a step of training: compared with those of the processor
      for (int step = 0; step < losses; ++step) {
        if (step > 0)
          executor.run(inputs, outputs);
        std::memcpy(&seen.emplace_back(), outputs[0], 4);
      }
      line["losses"] = seen;
    }
    if (!stamping)
      return print(line);
    std::vector<double> us;
    const auto start = Clock::now();
    while (us.size() < 5 || (us.size() < 200 && usSince(start) < 1e6 * seconds)) {
      const auto begin = Clock::now();
      executor.run(inputs, outputs);
      us.push_back(usSince(begin));
    }
    line["step_us"] = median(us);
    line["step_us_spread"] = {std::ranges::min(us), std::ranges::max(us)};
  }
  Executor executor(executable, stamping);
  bind(executor, stamping);
  executor.run(inputs, outputs);
  std::map<uint32_t, std::vector<double>> byCommand;
  std::vector<double> spans, totals;
  for (int run = 0; run < 20; ++run) {
    for (const auto &device : stamping->devices())
      device->takeStamps();
    executor.run(inputs, outputs);
    int64_t first = INT64_MAX, last = 0;
    double all = 0;
    for (const auto &device : stamping->devices())
      for (const Stamp &stamp : device->takeStamps())
        if (const CommandTag tag = CommandTag::unpack(stamp.tag); tag.list == 1) {
          byCommand[tag.command].push_back(double(stamp.endPs - stamp.beginPs) * 1e-6);
          if (const Command &c = s.step.commands[tag.command]; c.kind == CommandKind::Launch) {
            first = std::min(first, stamp.beginPs), last = std::max(last, stamp.endPs);
            if (s.streams[c.stream].device.kind != DeviceKind::Cpu)
              all += double(stamp.endPs - stamp.beginPs) * 1e-6;
          }
        }
    spans.push_back(double(last - first) * 1e-6);
    totals.push_back(all);
  }
  json kernels = json::array(), copies = json::array();
  double total = 0;
  for (const auto &[number, us] : byCommand) {
    const Command &c = s.step.commands[number];
    if (c.kind == CommandKind::Launch) {
      const KernelDesc &desc = s.kernels[c.kernel];
      const bool isHost = s.streams[c.stream].device.kind == DeviceKind::Cpu;
      kernels.push_back({{"kernel", desc.symbol},
                         {"us", median(us)},
                         {"bytes", desc.bytes.number()},
                         {"flops", desc.flops.number()}});
      if (const json params = json::parse(desc.params, nullptr, false);
          params.is_object() && params.contains("library"))
        kernels.back()["library"] = params["library"]["name"];
      if (isHost)
        kernels.back()["on"] = "cpu";
      else
        total += median(us);
    } else if (c.kind == CommandKind::Copy) {
      const Operand &from = s.step.operands[c.firstOperand], &to = s.step.operands[c.firstOperand + 1];
      copies.push_back({{"from", nameOf(homeOf(s, s.buffers[from.buffer]).device)},
                        {"to", nameOf(homeOf(s, s.buffers[to.buffer]).device)},
                        {"bytes", s.buffers[from.buffer].bytes.number()},
                        {"us", median(us)}});
    }
  }
  line["kernels_us"] = total;
  line["kernels_us_spread"] = {std::ranges::min(totals), std::ranges::max(totals)};
  line["first_kernel_to_last_us"] = median(spans);
  line["kernels"] = kernels;
  line["copies"] = copies;
  print(line);
}

} // namespace

int main(int argc, char **argv) {
  try {
    const std::string option = argc > 1 ? argv[1] : "";
    if (option == "--machine") {
      measureMachine(argc > 2 ? size_t(std::atoll(argv[2])) : size_t(1) << 28);
      return 0;
    }
    const bool isLossesAlone = argc > 3 && option == "--losses", hasSeconds = argc > 3 && option == "--seconds";
    const int losses = isLossesAlone ? std::atoi(argv[2]) : 10;
    const double seconds = hasSeconds ? std::atof(argv[2]) : 1;
    const auto plain = openMachine("cuda"), stamping = isLossesAlone ? nullptr : openMachine("cuda", {.stamps = true});
    for (int i = isLossesAlone || hasSeconds ? 3 : 1; i < argc; ++i)
      try {
        measureProgram(argv[i], losses, seconds, plain, stamping);
      } catch (const Error &problem) {
        print({{"program", argv[i]}, {"failed", problem.what()}});
      }
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "gpu-bench: %s\n", problem.what());
    return 3;
  }
}
