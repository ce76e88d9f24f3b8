#include "tressel/runtime/KernelHistory.h"

#include "test/unit/runtime/ScheduleBuilder.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Simulate.h"

#include <gtest/gtest.h>

namespace tressel::runtime {
namespace {

const KernelHistory::Key kKey{"00ff", "f32[4] -> f32[4]", "gpu0"};

std::string refusal(const std::string &json) {
  try {
    KernelHistory::parse(json, "h.json");
  } catch (const InputError &e) {
    return e.message();
  }
  return "accepted";
}

TEST(KernelHistory, CountsMeanAndVariance) {
  KernelHistory first("m"), second("m");
  for (double seconds : {1.0, 2.0, 4.0})
    first.add(kKey, seconds, "exp");
  for (double seconds : {3.0, 5.0})
    second.add(kKey, seconds);
  first.add(second);
  const MeasuredTime *time = first.find(kKey);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->count, 5);
  EXPECT_DOUBLE_EQ(time->mean, 3);
  EXPECT_DOUBLE_EQ(time->variance(), 2.5);
  EXPECT_EQ(second.find(kKey), nullptr); // two are too few
  EXPECT_EQ(first.find({"00ff", "f32[5] -> f32[5]", "gpu0"}), nullptr);
  EXPECT_THROW(first.add(kKey, 0), InputError);
  EXPECT_THROW(first.add({"", "", "gpu0"}, 1), InputError);
}

TEST(KernelHistory, ReadsWhatItWrites) {
  KernelHistory history("a \"machine\"");
  for (double seconds : {1e-6, 2e-6, 2.5e-6})
    history.add(kKey, seconds, "exp, add");
  history.add({"01", "-> f32[2]", "cpu"}, 1e-3);
  const KernelHistory again = KernelHistory::parse(history.toJson());
  EXPECT_EQ(again.toJson(), history.toJson());
  EXPECT_EQ(again.machine(), history.machine());
  EXPECT_DOUBLE_EQ(again.find(kKey)->variance(), history.find(kKey)->variance());
  EXPECT_EQ(again.size(), 2u);
}

TEST(KernelHistory, FaultsNameTheirPlace) {
  EXPECT_EQ(refusal("{\n  3}").rfind("h.json:2:3: is no JSON: ", 0), 0u) << refusal("{\n  3}");
  EXPECT_EQ(refusal("[]"), "h.json:1: must be an object");
  EXPECT_EQ(refusal("{\"schema\": 2}"), "h.json:1: schema: must be 1");
  const std::string head = "{\"schema\": 1, \"machine\": \"m\",\n \"kernels\": [\n  ",
                    entry =
                        "{\"kernel\": \"k\", \"name\": \"\", \"shape\": \"\", \"device\": \"cpu\", \"count\": 3,\n   "
                        "\"seconds\": 1e-3, \"variance\": 0}";
  auto with = [&](const std::string &from, const std::string &to) {
    std::string text = head + entry + "]}";
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(refusal(head + entry + "]}"), "accepted");
  EXPECT_EQ(refusal(with("3,", "0,")), "h.json:3: kernels[0].count: must be a whole number, at least 1");
  EXPECT_EQ(refusal(with("1e-3", "-1")), "h.json:4: kernels[0].seconds: must be a number, and not negative");
  EXPECT_EQ(refusal(with("\"seconds\"", "\"secs\"")), "h.json:3: kernels[0].seconds: is missing");
  EXPECT_EQ(refusal(head + entry + ",\n  " + entry + "]}"),
            "h.json:5: kernels[1]: is the second one of this kernel, shape and device");
}

MachineModel twoLikeGpus() {
  return parseMachine(R"({"schema": 1, "name": "two",
    "devices": [
      {"name": "cpu", "kind": "cpu", "flops_per_second": {"f32": 1e11}, "bytes_per_second": 1e10, "memory_bytes": 8e9, "command_seconds": 1e-7},
      {"name": "gpu0", "kind": "gpu", "flops_per_second": {"f32": 1e13}, "bytes_per_second": 5e11, "memory_bytes": 1e10, "command_seconds": 3e-6},
      {"name": "gpu1", "kind": "gpu", "flops_per_second": {"f32": 1e13}, "bytes_per_second": 5e11, "memory_bytes": 1e10, "command_seconds": 3e-6}],
    "links": [{"name": "bus", "bytes_per_second": 8e9, "latency_seconds": 1e-6}],
    "routes": [{"from": "cpu", "to": "gpu0", "links": ["bus"]}, {"from": "cpu", "to": "gpu1", "links": ["bus"]}]})");
}

TEST(KernelHistory, ADeviceLearnsFromOthersOfItsKind) {
  MachineModel machine = twoLikeGpus();
  auto history = std::make_shared<KernelHistory>(machine.name);
  for (int i = 0; i < 3; ++i)
    history->add(kKey, 5e-6);
  EXPECT_FALSE(measuredSeconds(machine, machine.devices[1], "00ff", kKey.shape));
  machine.history = history;
  EXPECT_DOUBLE_EQ(measuredSeconds(machine, machine.devices[1], "00ff", kKey.shape).value(), 5e-6);
  EXPECT_DOUBLE_EQ(measuredSeconds(machine, machine.devices[2], "00ff", kKey.shape).value(), 5e-6);
  EXPECT_FALSE(measuredSeconds(machine, machine.devices[0], "00ff", kKey.shape)); // another kind
  EXPECT_FALSE(measuredSeconds(machine, machine.devices[1], "", kKey.shape));
  machine.devices[2].bytesPerSecond *= 2;
  EXPECT_FALSE(measuredSeconds(machine, machine.devices[2], "00ff", kKey.shape)); // other figures
}

/// What a call took is what the next plan expects, and only of the kernels that it was measured for.
TEST(KernelHistory, PlansGoByWhatWasMeasured) {
  MachineModel machine = twoLikeGpus();
  ScheduleBuilder b(0);
  b.s.streams.push_back({{DeviceKind::Gpu, 0}, StreamKind::Compute, "gpu0"});
  b.s.arenas.push_back({{DeviceKind::Gpu, 0}, MemoryKind::Device, 128});
  const uint32_t x = b.buffer(Space::Arena, 0, 0, ScheduleBuilder::floats(16)),
                 y = b.buffer(Space::Arena, 0, 64, ScheduleBuilder::floats(16));
  for (const char *key : {"aa", "", "bb"}) {
    const uint32_t kernel = b.kernel(std::string("k") + key);
    b.s.kernels[kernel].flops = 10'000'000; // a microsecond, and three for the command
    b.s.kernels[kernel].key = key;
    b.s.kernels[kernel].numInputs = 1;
    b.launch(kernel, {x}, {y});
  }
  Timeline planned = simulate(b.s, machine);
  ASSERT_EQ(planned.end, picoseconds(12e-6));
  auto history = std::make_shared<KernelHistory>(machine.name);
  for (int call = 0; call < 3; ++call) {
    Timeline took = planned;
    for (Span &span : took.spans)
      span.end = span.begin + picoseconds((10 + call) * 1e-6);
    EXPECT_EQ(history->add(b.s, took), 2); // the one without a key is nobody's
  }
  EXPECT_EQ(history->find({"bb", "f32[16] -> f32[16]", "gpu0"})->count, 3);
  machine.history = history;
  EXPECT_EQ(simulate(b.s, machine).end, picoseconds(11e-6) + picoseconds(4e-6) + picoseconds(11e-6));
  // Beside copies it takes as many times longer as by the figures: here no copy, so no more.
  machine.devices[1].contention = 1;
  EXPECT_EQ(simulate(b.s, machine).end, picoseconds(26e-6));
}

} // namespace
} // namespace tressel::runtime
