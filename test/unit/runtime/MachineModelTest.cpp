#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

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
     "command_seconds": 3e-6, "efficiency": {"builtin": 0.5, "other": 0.25}}],
  "links": [{"name": "bus", "bytes_per_second": 8e9, "latency_seconds": 1e-6}],
  "routes": [{"from": "cpu", "to": "gpu0", "links": ["bus"]}]})";

DeviceModel eightThreads() {
  DeviceModel d{.name = "cpu", .threads = 8};
  d.flopsPerSecond[f32] = 1e12;
  d.bytesPerSecond = 1e11;
  d.splitSeconds = 2e-6;
  return d;
}

TEST(MachineModel, AKernelTakesAsManyThreadsAsItHasTasksFor) {
  const DeviceModel d = eightThreads();
  auto seconds = [&](int64_t tasks) { return workSeconds(d, {.flops = 1e9, .tasks = tasks}); };
  EXPECT_DOUBLE_EQ(seconds(1), 8e-3); // nobody is woken
  EXPECT_DOUBLE_EQ(seconds(0), 8e-3); // nothing said
  EXPECT_DOUBLE_EQ(seconds(2), 4e-3 + 2e-6);
  EXPECT_DOUBLE_EQ(seconds(8), 1e-3 + 2e-6);
  EXPECT_DOUBLE_EQ(seconds(9), 2 * 8e-3 / 9 + 2e-6); // one thread has two
  EXPECT_DOUBLE_EQ(seconds(32), 1e-3 + 2e-6);
  EXPECT_DOUBLE_EQ(seconds(1000), 1e-3 + 2e-6); // the pool makes no more than 32 parts
  const DeviceModel lane = d.lane();
  EXPECT_DOUBLE_EQ(workSeconds(lane, {.flops = 1e9, .tasks = 8}), 8e-3);
  EXPECT_EQ(lane.bytesPerSecond, d.bytesPerSecond / 8);
}

TEST(MachineModel, BytesComeFromTheCacheThatTheyFitInto) {
  DeviceModel d = eightThreads();
  d.caches = {{1e6, 1.6e12}, {1e7, 4e11}};
  EXPECT_EQ(d.cacheBytes(), 1e7);
  EXPECT_EQ(d.bandwidth(0), 1.6e12);
  EXPECT_EQ(d.bandwidth(1e6), 1.6e12);
  EXPECT_EQ(d.bandwidth(2e6), 4e11);
  EXPECT_EQ(d.bandwidth(1e7), 4e11);
  EXPECT_EQ(d.bandwidth(2e7), 1e11);
  EXPECT_NEAR(d.bandwidth(1e6 * std::sqrt(2)), 8e11, 1e3); // half way, by factors
  double last = 0;
  for (double bytes = 1e4; bytes < 1e9; bytes *= 1.01) { // more bytes never take less time
    const double now = bytes / d.bandwidth(bytes);
    EXPECT_GE(now, last) << bytes;
    last = now;
  }
  // One thread has an eighth of the caches and of the rates.
  EXPECT_DOUBLE_EQ(workSeconds(d, {.bytes = 1e6, .tasks = 1}), 1e6 / (4e11 / 8));
  EXPECT_DOUBLE_EQ(workSeconds(d, {.bytes = 1e6, .tasks = 8}), 1e6 / 1.6e12 + 2e-6);
  // Whoever changes the order is slower; whoever copies slows what comes from memory, and nothing else.
  d.movementEfficiency = 0.25;
  EXPECT_DOUBLE_EQ(workSeconds(d, {.bytes = 1e6, .moves = true, .tasks = 8}), 4e6 / 1.6e12 + 2e-6);
  EXPECT_DOUBLE_EQ(workSeconds(d, {.bytes = 1e9, .tasks = 8}, 1.5), 1.5e9 / 1e11 + 2e-6);
  EXPECT_DOUBLE_EQ(workSeconds(d, {.bytes = 1e6, .tasks = 8}, 1.5), 1e6 / 1.6e12 + 2e-6);
}

TEST(MachineModel, ReadsNamesOfEarlierVersions) {
  const std::string before = replaced(kSmall, "\"builtin\": 0.5", "\"kernels\": 0.5, \"prebuilt\": 0.125");
  const MachineModel m = parseMachine(
      replaced(before, "\"command_seconds\": 1e-7", "\"command_seconds\": 1e-7, \"corrections\": {\"kernels/product/v4\": 1.5}"));
  EXPECT_EQ(m.devices[1].efficiencyOf("builtin"), 0.5);
  EXPECT_EQ(m.devices[1].efficiencyOf("bitcode"), 0.125);
  EXPECT_EQ(m.devices[0].corrections.at("builtin/product/v4"), 1.5);
}

TEST(MachineModel, ReadsAndWritesItself) {
  const MachineModel m = parseMachine(kSmall);
  ASSERT_EQ(m.devices.size(), 2u);
  EXPECT_EQ(m.devices[1].device, (DeviceRef{DeviceKind::Gpu, 0}));
  EXPECT_EQ(m.devices[1].flops(f16), 5e13);
  EXPECT_EQ(m.devices[1].flops(i32), 1e13);
  EXPECT_EQ(m.devices[1].efficiencyOf("builtin"), 0.5);
  EXPECT_EQ(m.devices[1].efficiencyOf("library"), 0.25);
  EXPECT_NE(m.route({DeviceKind::Cpu, 0}, {DeviceKind::Gpu, 0}), nullptr);
  EXPECT_EQ(m.route({DeviceKind::Gpu, 0}, {DeviceKind::Cpu, 0}), nullptr);
  EXPECT_EQ(toJson(parseMachine(toJson(m))), toJson(m));
  // One cache may be given without a list.
  const MachineModel cached =
      parseMachine(replaced(kSmall, "\"command_seconds\": 1e-7",
                            "\"command_seconds\": 1e-7, \"cache_bytes\": 1e6, \"cached_bytes_per_second\": 4e10"));
  ASSERT_EQ(cached.devices[0].caches.size(), 1u);
  EXPECT_EQ(cached.devices[0].bandwidth(1e6), 4e10);
  EXPECT_EQ(toJson(parseMachine(toJson(cached))), toJson(cached));
}

TEST(MachineModel, EnginesWorkOnKindsOfStreams) {
  const std::string oneCopies =
      replaced(kSmall, "\"command_seconds\": 3e-6",
               "\"command_seconds\": 3e-6, \"engines\": [{\"name\": \"copy\", \"streams\": [\"copy_out\", \"copy_in\"]}]");
  const MachineModel own = parseMachine(kSmall), shared = parseMachine(oneCopies);
  EXPECT_EQ(toJson(parseMachine(toJson(shared))), toJson(shared));
  const DeviceRef gpu{DeviceKind::Gpu, 0};
  const std::vector<StreamDesc> streams{{gpu, StreamKind::CopyIn, "a"},        {{}, StreamKind::Lane, "lane0"},
                                        {gpu, StreamKind::Compute, "b"},       {gpu, StreamKind::CopyOut, "c"},
                                        {gpu, StreamKind::Communication, "d"}, {gpu, StreamKind::Compute, "e"},
                                        {{}, StreamKind::Lane, "lane1"}};
  auto names = [&](const EngineTable &table) {
    std::string text;
    for (uint32_t engine : table.ofStream)
      text += table.engines[engine].name + " ";
    return text;
  };
  EXPECT_EQ(names({own, streams}), "gpu0.in lane0 gpu0 gpu0.out gpu0.comm gpu0 lane1 ");
  EXPECT_EQ(names({shared, streams}), "gpu0.copy lane0 gpu0 gpu0.copy gpu0.comm gpu0 lane1 ");
  EXPECT_EQ(names({MachineModel{}, streams}), names({own, streams})); // of a device that is not known
  EXPECT_EQ(refusal(replaced(oneCopies, "\"copy_in\"", "\"lane\"")),
            "machine:5: devices[1].engines[0].streams: 'lane' is no kind of stream: compute, copy_in, copy_out, communication");
  EXPECT_EQ(refusal(replaced(oneCopies, "\"copy_in\"", "\"copy_out\"")),
            "machine:5: devices[1].engines[0].streams: 'copy_out' streams have an engine already");
  EXPECT_EQ(refusal(replaced(oneCopies, "[\"copy_out\", \"copy_in\"]", "[]")),
            "machine:5: devices[1].engines[0].streams: must name a kind of stream");
}

TEST(MachineModel, PresetsAreSoundAndEachFigureHasASource) {
  ASSERT_EQ(machinePresets().size(), 9u);
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

TEST(MachineModel, PresetsWithANetworkTakeASize) {
  auto shapeOf = [](const char *name) {
    const MachineModel m = machinePreset(name);
    EXPECT_EQ(m.name, name);
    EXPECT_EQ(toJson(parseMachine(toJson(m))), toJson(m)) << name;
    return std::tuple(m.hosts, m.devices.size(), m.numAccelerators());
  };
  using Is = std::tuple<int64_t, size_t, int64_t>;
  EXPECT_EQ(shapeOf("dgx-h100:4"), Is(1, 5, 4));
  EXPECT_EQ(shapeOf("dgx-h100:16"), Is(1, 18, 16)); // all listed, of two hosts
  EXPECT_EQ(shapeOf("dgx-h100:16x4"), Is(1, 80, 64));
  EXPECT_EQ(shapeOf("dgx-h100:1024"), Is(128, 9, 1024)); // the first host
  EXPECT_EQ(shapeOf("cluster-10gbe:1024"), Is(1024, 2, 1024));
  EXPECT_EQ(shapeOf("cluster-10gbe:2x4"), Is(1, 10, 8));
  EXPECT_EQ(shapeOf("4gpu-pcie3:3"), Is(1, 4, 3));
  const MachineModel listed = machinePreset("dgx-h100:16"), first = machinePreset("dgx-h100:1024");
  const DeviceRef gpu0{DeviceKind::Gpu, 0}, gpu9{DeviceKind::Gpu, 9}, gpu1000{DeviceKind::Gpu, 1000};
  EXPECT_EQ(listed.hostOf(gpu0), 0);
  EXPECT_EQ(listed.hostOf(gpu9), 1);
  EXPECT_EQ(first.hostOf(gpu1000), 125);
  const RouteModel *across = listed.route(gpu0, gpu9);
  ASSERT_NE(across, nullptr);
  std::string through;
  for (uint32_t link : across->links)
    through += listed.links[link].name + " ";
  EXPECT_EQ(through, "host0.pcie0.up host0.nic0.out host1.nic1.in host1.pcie1.down ");
  for (const DeviceModel &d : listed.devices)
    EXPECT_TRUE(listed.sources.contains(d.name + "/bytes_per_second")) << d.name;
  for (const LinkModel &link : listed.links)
    EXPECT_TRUE(listed.sources.contains("links/" + link.name + "/bytes_per_second")) << link.name;
  EXPECT_THROW(withAllHosts(first), InputError);

  auto refusalOf = [](const char *name) -> std::string {
    try {
      machinePreset(name);
    } catch (const InputError &e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusalOf("dgx-h100:20"),
            "machine 'dgx-h100:20': hosts of 8 accelerators do not make 20; 'dgx-h100:4x5' is 4 hosts of 5");
  for (const char *none : {"dgx-h100:", "dgx-h100:0", "dgx-h100:x8", "dgx-h100:2x", "dgx-h100:-1", "dgx-h100:8 ", "dgx-h100:2x8x2"})
    EXPECT_NE(refusalOf(none).find("a size is a number of accelerators, as in 'dgx-h100:64', or hosts by accelerators of each"), std::string::npos)
        << refusalOf(none);
  EXPECT_EQ(refusalOf("dgx-h100:99999992"), "machine 'dgx-h100:99999992': at most 4096 accelerators, and 16 in a host");
  EXPECT_EQ(refusalOf("dgx-h100:99999999"), "machine 'dgx-h100:99999999': at most 4096 accelerators, and 16 in a host");
  EXPECT_EQ(refusalOf("dgx-h100:1x17"), "machine 'dgx-h100:1x17': at most 4096 accelerators, and 16 in a host");
  EXPECT_EQ(refusalOf("h100:8"), "machine 'h100:8': 'h100' is one accelerator in one host, without a network: it has no other size");
}

TEST(MachineModel, FilesMayDescribeOneOfSeveralHosts) {
  const std::string network = "\"network\": [{\"device\": \"gpu0\", \"out\": [\"out\"], \"in\": [\"in\"]}], ",
                    links = "{\"name\": \"out\", \"bytes_per_second\": 1e9, \"latency_seconds\": 1e-5}, "
                            "{\"name\": \"in\", \"bytes_per_second\": 1e9, \"latency_seconds\": 1e-5}, ",
                    many = replaced(replaced(kSmall, "\"links\": [{", "\"links\": [" + links + "{"), "\"schema\"",
                                    "\"hosts\": 3, " + network + "\"schema\"");
  const MachineModel m = parseMachine(many);
  EXPECT_EQ(m.hosts, 3);
  EXPECT_EQ(m.numAccelerators(), 3);
  EXPECT_EQ(toJson(parseMachine(toJson(m))), toJson(m));
  const MachineModel all = withAllHosts(m);
  EXPECT_EQ(all.devices.size(), 6u);
  EXPECT_EQ(all.devices[5].host, 2);
  EXPECT_NE(all.route({DeviceKind::Gpu, 2}, {DeviceKind::Gpu, 0}), nullptr);
  EXPECT_EQ(all.route({DeviceKind::Cpu, 0}, {DeviceKind::Gpu, 1}), nullptr); // the cpu has no port
  EXPECT_EQ(toJson(parseMachine(toJson(all))), toJson(all));
  auto hint = [&](const std::string &from, const std::string &to) { return refusal(replaced(many, from, to)); };
  EXPECT_NE(hint("\"hosts\": 3", "\"hosts\": 0").find("hosts: must be a whole number from 1 to 4096"), std::string::npos);
  EXPECT_NE(hint(network, "").find("network: is missing: it says how devices reach the other hosts"), std::string::npos);
  EXPECT_NE(hint("\"out\", \"bytes_per_second\": 1e9", "\"out\", \"bytes_per_second\": 1e13")
                .find("network[0].out: is faster than the memory of gpu0"),
            std::string::npos);
  EXPECT_NE(hint("[\"out\"]", "[\"far\"]").find("network[0].out: there is no link 'far'"), std::string::npos);
  EXPECT_NE(hint("[\"in\"]", "[\"out\"]").find("link 'out' is one of 'out' too"), std::string::npos);
  EXPECT_NE(hint("\"kind\": \"gpu\"", "\"kind\": \"gpu\", \"host\": 1").find("devices[1].host: is of a machine whose devices are all listed"),
            std::string::npos);
}

TEST(MachineModel, DamagedCalibrationIsToldOnce) {
  const std::string path = testing::TempDir() + "tressel-damaged-" + std::to_string(::getpid()) + ".json", text = "{";
  writeFile(path, std::as_bytes(std::span(text)));
  const char *before = std::getenv("TRESSEL_CALIBRATION");
  const std::string value = before ? before : "";
  ::setenv("TRESSEL_CALIBRATION", path.c_str(), 1);
  testing::internal::CaptureStderr();
  for (int threads : {77, 78}) // numbers of threads that no other test uses, so that no machine is kept for them
    EXPECT_EQ(hostMachine(threads).devices.front().pieceSeconds, 0);
  const std::string said = testing::internal::GetCapturedStderr();
  before ? ::setenv("TRESSEL_CALIBRATION", value.c_str(), 1) : ::unsetenv("TRESSEL_CALIBRATION");
  std::filesystem::remove(path);
  const size_t first = said.find("cannot be used");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot be used", first + 1), std::string::npos) << said;
}

TEST(MachineModel, FaultsNameTheirPlace) {
  EXPECT_EQ(refusal("{\n  \"schema\": 1,\n  }").rfind("machine:3:3: is no JSON: ", 0), 0u)
      << refusal("{\n  \"schema\": 1,\n  }");
  EXPECT_EQ(refusal("[]"), "machine:1: must be an object");
  EXPECT_EQ(refusal("{}"), "machine:1: schema: is missing");
  EXPECT_EQ(refusal(replaced(kSmall, "1e10,", "-1,")),
            "machine:3: devices[0].bytes_per_second: must be positive, and below 1e24");
  EXPECT_EQ(refusal(replaced(kSmall, "1e10,", "\"x\",")), "machine:3: devices[0].bytes_per_second: must be a number");
  EXPECT_EQ(refusal(replaced(kSmall, "\"name\": \"gpu0\"", "\"name\": \"gpu1\"")),
            "machine:4: devices[1].name: is 'gpu1', but devices are named in order: this one is 'gpu0'");
  EXPECT_EQ(refusal(replaced(kSmall, "\"kind\": \"gpu\"", "\"kind\": \"tpu\"")),
            "machine:4: devices[1].kind: is 'tpu', but can be cpu or gpu");
  EXPECT_EQ(refusal(replaced(kSmall, "\"command_seconds\": 3e-6", "\"command_secs\": 3e-6")),
            "machine:4: devices[1].command_seconds: is missing");
  EXPECT_EQ(refusal(replaced(kSmall, "\"command_seconds\": 3e-6", "\"command_seconds\": 3e-6, \"colour\": 1")),
            "machine:5: devices[1].colour: is not known here");
  EXPECT_EQ(refusal(replaced(kSmall, "0.25", "1.5")), "machine:5: devices[1].efficiency.other: is a share, at most 1");
  EXPECT_EQ(refusal(replaced(kSmall, "8e9, \"latency", "2e10, \"latency")),
            "machine:7: routes[0].links: link 'bus' is faster than the memory of cpu");
  EXPECT_EQ(refusal(replaced(kSmall, "[\"bus\"]", "[\"train\"]")),
            "machine:7: routes[0].links: there is no link 'train'");
  EXPECT_EQ(refusal(replaced(kSmall, "\"latency_seconds\": 1e-6", "\"latency_seconds\": 0")),
            "machine:6: links[0].latency_seconds: must be positive, and below 1e24");
  EXPECT_EQ(
      refusal(replaced(kSmall, "\"links\": [\"bus\"]", "\"links\": [\"bus\"], \"pageable_bytes_per_second\": 9e9")),
      "machine:7: routes[0].pageable_bytes_per_second: is more than link 'bus' carries");
  EXPECT_EQ(refusal(replaced(kSmall, "\"to\": \"gpu0\"", "\"to\": \"cpu\"")),
            "machine:7: routes[0]: leads from a device to itself");
  const std::string withCaches =
      replaced(kSmall, "\"command_seconds\": 1e-7",
               "\"command_seconds\": 1e-7,\n \"caches\": [{\"bytes\": 1e6, \"bytes_per_second\": 4e10}, {\"bytes\": "
               "1e7,\n \"bytes_per_second\": 2e10}]");
  EXPECT_EQ(refusal(withCaches), "accepted");
  EXPECT_EQ(refusal(replaced(withCaches, "1e7,\n", "1e5,\n")),
            "machine:4: devices[0].caches[1].bytes: must be more than that of the cache before it");
  EXPECT_EQ(refusal(replaced(withCaches, "2e10", "5e10")),
            "machine:5: devices[0].caches[1].bytes_per_second: is more than that of the smaller cache before it");
  EXPECT_EQ(refusal(replaced(withCaches, "2e10", "2e9")),
            "machine:5: devices[0].caches[1].bytes_per_second: is less than that of the memory behind the cache");
  EXPECT_EQ(refusal(replaced(withCaches, "\"caches\"", "\"movement_efficiency\": 2, \"caches\"")),
            "machine:4: devices[0].movement_efficiency: is a share, at most 1");
  MachineModel swapped = parseMachine(kSmall);
  std::swap(swapped.devices[0], swapped.devices[1]);
  EXPECT_EQ(refusal(toJson(swapped)), "machine:5: devices[0]: must be the cpu: hosts come first");
}

} // namespace
} // namespace tressel::runtime
