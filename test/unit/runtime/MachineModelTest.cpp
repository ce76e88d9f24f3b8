#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

namespace tressel::runtime {
namespace {

std::string refusal(const std::string &json) {
  try {
    parseMachine(json);
  } catch (const InputError &e) {
    return e.message();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const std::string kSmall = R"({"schema": 1, "name": "small",
  "devices": [
    {"name": "cpu", "kind": "cpu", "flops_per_second": {"f32": 1e11}, "bytes_per_second": 1e10, "memory_bytes": 8e9, "command_seconds": 1e-7},
    {"name": "gpu0", "kind": "gpu", "flops_per_second": {"f32": 1e13, "f16": 5e13}, "bytes_per_second": 5e11, "memory_bytes": 1e10,
     "command_seconds": 3e-6, "efficiency": {"kernels": 0.5, "other": 0.25}}],
  "links": [{"name": "bus", "bytes_per_second": 8e9, "latency_seconds": 1e-6}],
  "routes": [{"from": "cpu", "to": "gpu0", "links": ["bus"]}]})";

TEST(MachineModel, TimeGrowsWithTheWork) {
  DeviceModel d{.name = "cpu", .threads = 8};
  d.flopsPerSecond[f32] = 1e12;
  d.bytesPerSecond = 1e11;
  for (double split : {0.0, 5e-6, 100e-6}) {
    d.splitSeconds = split;
    double last = workSeconds(d, f32, 1e5, 0, 1);
    for (double flops = 1e5; flops < 1e10; flops *= 1.01) {
      const double now = workSeconds(d, f32, flops, 0, 1);
      EXPECT_GE(now, last);
      EXPECT_LE(now, last * 1.02) << flops;
      last = now;
    }
    EXPECT_DOUBLE_EQ(workSeconds(d, f32, 1e6, 0, 1), 8e-6);           // one thread
    EXPECT_DOUBLE_EQ(workSeconds(d, f32, 1e10, 0, 1), 10e-3 + split); // all of them
  }
}

TEST(MachineModel, ReadsAndWritesItself) {
  const MachineModel m = parseMachine(kSmall);
  ASSERT_EQ(m.devices.size(), 2u);
  EXPECT_EQ(m.devices[1].device, (DeviceRef{DeviceKind::Gpu, 0}));
  EXPECT_EQ(m.devices[1].flops(f16), 5e13);
  EXPECT_EQ(m.devices[1].flops(i32), 1e13);
  EXPECT_EQ(m.devices[1].efficiencyOf("kernels"), 0.5);
  EXPECT_EQ(m.devices[1].efficiencyOf("library"), 0.25);
  EXPECT_NE(m.route({DeviceKind::Cpu, 0}, {DeviceKind::Gpu, 0}), nullptr);
  EXPECT_EQ(m.route({DeviceKind::Gpu, 0}, {DeviceKind::Cpu, 0}), nullptr);
  EXPECT_EQ(toJson(parseMachine(toJson(m))), toJson(m));
}

TEST(MachineModel, PresetsAreSoundAndEachFigureHasASource) {
  ASSERT_EQ(machinePresets().size(), 4u);
  for (const std::string &name : machinePresets()) {
    const MachineModel m = machinePreset(name);
    EXPECT_EQ(m.name, name);
    EXPECT_EQ(toJson(parseMachine(toJson(m))), toJson(m));
    for (const DeviceModel &d : m.devices) {
      for (const char *figure :
           {"flops_per_second", "bytes_per_second", "memory_bytes", "command_seconds", "efficiency"})
        EXPECT_TRUE(m.sources.contains(d.name + "/" + figure)) << name << " " << d.name << " " << figure;
      for (const DeviceModel &other : m.devices)
        if (other.device != d.device) {
          EXPECT_NE(m.route(d.device, other.device), nullptr) << name << " " << d.name << " " << other.name;
        }
    }
    for (const LinkModel &link : m.links)
      EXPECT_TRUE(m.sources.contains("links/" + link.name + "/bytes_per_second")) << name << " " << link.name;
  }
  EXPECT_EQ(parseMachine(toJson(hostMachine())).devices.size(), 1u);
  EXPECT_THROW(machinePreset("abacus"), InputError);
}

TEST(MachineModel, FaultsNameTheirPlace) {
  EXPECT_EQ(refusal("{"), "machine: is no JSON");
  EXPECT_EQ(refusal("[]"), "machine: must be an object");
  EXPECT_EQ(refusal("{}"), "machine: schema: is missing");
  EXPECT_EQ(refusal(replaced(kSmall, "1e10,", "-1,")),
            "machine: devices[0].bytes_per_second: must be positive, and below 1e24");
  EXPECT_EQ(refusal(replaced(kSmall, "1e10,", "\"x\",")), "machine: devices[0].bytes_per_second: must be a number");
  EXPECT_EQ(refusal(replaced(kSmall, "\"name\": \"gpu0\"", "\"name\": \"gpu1\"")),
            "machine: devices[1].name: is 'gpu1', but devices are named in order: this one is 'gpu0'");
  EXPECT_EQ(refusal(replaced(kSmall, "\"kind\": \"gpu\"", "\"kind\": \"tpu\"")),
            "machine: devices[1].kind: is 'tpu', but can be cpu or gpu");
  EXPECT_EQ(refusal(replaced(kSmall, "\"command_seconds\": 3e-6", "\"command_secs\": 3e-6")),
            "machine: devices[1].command_seconds: is missing");
  EXPECT_EQ(refusal(replaced(kSmall, "\"command_seconds\": 3e-6", "\"command_seconds\": 3e-6, \"colour\": 1")),
            "machine: devices[1].colour: is not known here");
  EXPECT_EQ(refusal(replaced(kSmall, "0.25", "1.5")), "machine: devices[1].efficiency.other: is a share, at most 1");
  EXPECT_EQ(refusal(replaced(kSmall, "8e9, \"latency", "2e10, \"latency")),
            "machine: routes[0].links: link 'bus' is faster than the memory of cpu");
  EXPECT_EQ(refusal(replaced(kSmall, "[\"bus\"]", "[\"train\"]")),
            "machine: routes[0].links: there is no link 'train'");
  EXPECT_EQ(refusal(replaced(kSmall, "\"latency_seconds\": 1e-6", "\"latency_seconds\": 0")),
            "machine: links[0].latency_seconds: must be positive, and below 1e24");
  EXPECT_EQ(refusal(replaced(kSmall, "\"links\": [\"bus\"]", "\"links\": [\"bus\"], \"pageable_bytes_per_second\": 9e9")),
            "machine: routes[0].pageable_bytes_per_second: is more than link 'bus' carries");
  EXPECT_EQ(refusal(replaced(kSmall, "\"to\": \"gpu0\"", "\"to\": \"cpu\"")),
            "machine: routes[0]: leads from a device to itself");
  MachineModel swapped = parseMachine(kSmall);
  std::swap(swapped.devices[0], swapped.devices[1]);
  EXPECT_EQ(refusal(toJson(swapped)), "machine: devices[0]: must be the cpu: hosts come first");
}

} // namespace
} // namespace tressel::runtime
