// Machines known by name. Every figure has a source: a data sheet, arithmetic on a standard's rates, or "typical",
// which stands in for a measurement of the actual machine.
#include "tressel/runtime/MachineModel.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <functional>

namespace tressel::runtime {
namespace {

constexpr const char *kTypical = "typical; measure the machine for its own";
constexpr double kGiB = 1 << 30;

/// Builds a machine model device by device, with a source for each figure.
class Builder {
public:
    DeviceRef host(int threads, double clock, double bytesPerSecond, double memory, const std::string &source) {
    DeviceModel &d = add(DeviceKind::Cpu);
    d.threads = threads;
    d.flopsPerSecond = {{f32, threads * clock * 64},
                        {f64, threads * clock * 32}}; // two multiply-adds of 512 bits per cycle
    d.bytesPerSecond = bytesPerSecond;
    d.memoryBytes = static_cast<int64_t>(memory);
    d.caches = {{threads * double(1 << 20), threads * 60e9}};
    d.commandSeconds = 30e-9;
    d.efficiency = {{"", 0.5}, {"builtin", 0.8}, {"onednn", 0.7}, {"bitcode", 0.02}};
    cite(d, {"flops_per_second", "bytes_per_second", "memory_bytes"}, source);
    cite(d, {"caches", "command_seconds", "efficiency"}, kTypical);
    return d.device;
  }
  DeviceRef gpu(std::map<DType, double> flops, double bytesPerSecond, double memory, const std::string &source) {
    DeviceModel &d = add(DeviceKind::Gpu);
    d.flopsPerSecond = std::move(flops);
    d.bytesPerSecond = bytesPerSecond;
    d.memoryBytes = static_cast<int64_t>(memory);
    d.issueSeconds = 2.5e-6;
    d.commandSeconds = 3e-6;
    d.contention = 1;
    d.efficiency = {{"", 0.8}};
    cite(d, {"flops_per_second", "bytes_per_second", "memory_bytes"}, source);
    cite(d, {"issue_seconds", "command_seconds", "efficiency"}, kTypical);
    cite(d, {"contention"}, "kernels limited by memory give up what copies take");
    return d.device;
  }
  uint32_t link(std::string name, double bytesPerSecond, double latency, const std::string &source) {
    machine.sources["links/" + name + "/bytes_per_second"] = source;
    machine.sources["links/" + name + "/latency_seconds"] = kTypical;
    machine.links.push_back({std::move(name), bytesPerSecond, latency});
    return static_cast<uint32_t>(machine.links.size() - 1);
  }
  void route(DeviceRef from, DeviceRef to, std::vector<uint32_t> links, double pageable = 0) {
    machine.routes.push_back({from, to, std::move(links), pageable});
  }
  void port(DeviceRef device, std::vector<uint32_t> out, std::vector<uint32_t> in) {
    machine.network.push_back({device, std::move(out), std::move(in)});
  }

  MachineModel machine;

private:
  DeviceModel &add(DeviceKind kind) {
    DeviceModel d;
    d.device.kind = kind;
    d.device.index = static_cast<uint16_t>(
        std::ranges::count_if(machine.devices, [&](const DeviceModel &other) { return other.device.kind == kind; }));
    d.name = nameOf(d.device);
    return machine.devices.emplace_back(std::move(d));
  }
  void cite(const DeviceModel &d, std::initializer_list<const char *> figures, const std::string &source) {
    for (const char *figure : figures)
      machine.sources[d.name + "/" + figure] = source;
  }
};

constexpr const char *kPcie3 = "PCIe 3.0: 8 GT/s on 16 lanes, of 130 bits 128 are data",
                     *kInfiniBand100 = "InfiniBand EDR: 100 Gbit/s";

DeviceRef v100(Builder &b) {
  return b.gpu({{f32, 14e12}, {f64, 7e12}, {f16, 112e12}}, 900e9, 16 * kGiB,
               "data sheet of NVIDIA Tesla V100 PCIe 16 GB");
}
DeviceRef server(Builder &b) {
  return b.host(16, 2.5e9, 100e9, 256 * kGiB,
                "a socket of 16 cores at 2.5 GHz with AVX-512, six channels of DDR4-2666 at 80% of 128 GB/s");
}

/// Accelerators on PCIe 3.0 x16 slots of one root complex, with a network adapter beside them.
MachineModel pcie3(int count) {
  Builder b;
  const DeviceRef cpu = server(b);
  const uint32_t down = b.link("root.down", 63e9, 1e-6, "four slots of 15.75 GB/s"),
                 up = b.link("root.up", 63e9, 1e-6, "four slots of 15.75 GB/s");
  std::vector<DeviceRef> gpus;
  std::vector<uint32_t> to, from;
  for (int i = 0; i < count; ++i) {
    gpus.push_back(v100(b));
    to.push_back(b.link(concat("pcie", i, ".down"), 15.75e9, 5e-6, kPcie3));
    from.push_back(b.link(concat("pcie", i, ".up"), 15.75e9, 5e-6, kPcie3));
  }
  const uint32_t out = b.link("infiniband.out", 12.5e9, 2e-6, kInfiniBand100),
                 in = b.link("infiniband.in", 12.5e9, 2e-6, kInfiniBand100);
  b.port(cpu, {out}, {in});
  for (int i = 0; i < count; ++i) {
    const auto g = static_cast<size_t>(i);
    b.route(cpu, gpus[g], {down, to[g]}, 6e9);
    b.route(gpus[g], cpu, {from[g], up}, 6e9);
    b.port(gpus[g], {from[g], out}, {in, to[g]});
    for (size_t k = 0; k < gpus.size(); ++k)
      if (k != g)
        b.route(gpus[g], gpus[k], {from[g], to[k]});
  }
  b.machine.sources["routes/pageable_bytes_per_second"] = kTypical;
  return std::move(b.machine);
}

/// Accelerators on NVLink, each with a network adapter on its PCIe switch.
MachineModel dgxH100(int count) {
  Builder b;
  const DeviceRef cpu = b.host(112, 2.0e9, 490e9, 2048 * kGiB,
                               "two Xeon 8480C of 56 cores; sixteen channels of DDR5-4800 at 80% of 614 GB/s");
  std::vector<DeviceRef> gpus;
  std::vector<uint32_t> out, in, down, up;
  for (int i = 0; i < count; ++i) {
    gpus.push_back(b.gpu({{f32, 67e12}, {f64, 34e12}, {f16, 989e12}, {bf16, 989e12}, {i8, 1979e12}}, 3.35e12, 80e9,
                         "data sheet of NVIDIA H100 SXM, without sparsity"));
    const char *pcie5 = "PCIe 5.0: 32 GT/s on 16 lanes, of 130 bits 128 are data";
    down.push_back(b.link(concat("pcie", i, ".down"), 63e9, 5e-6, pcie5));
    up.push_back(b.link(concat("pcie", i, ".up"), 63e9, 5e-6, pcie5));
    const char *nvlink = "NVLink of the fourth generation: 900 GB/s, half of it in each direction";
    out.push_back(b.link(concat("nvlink", i, ".out"), 450e9, 2e-6, nvlink));
    in.push_back(b.link(concat("nvlink", i, ".in"), 450e9, 2e-6, nvlink));
    b.route(cpu, gpus.back(), {down.back()}, 12e9);
    b.route(gpus.back(), cpu, {up.back()}, 12e9);
  }
  auto adapter = [&](const std::string &name) {
    const char *connectX7 = "data sheet of NVIDIA DGX H100: ConnectX-7 of 400 Gbit/s, one for each accelerator and for storage";
    return std::pair(b.link(name + ".out", 50e9, 2e-6, connectX7), b.link(name + ".in", 50e9, 2e-6, connectX7));
  };
  const auto [storageOut, storageIn] = adapter("storage");
  b.port(cpu, {storageOut}, {storageIn});
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto [nicOut, nicIn] = adapter(concat("nic", i));
    b.port(gpus[i], {up[i], nicOut}, {nicIn, down[i]});
    for (size_t k = 0; k < gpus.size(); ++k)
      if (i != k)
        b.route(gpus[i], gpus[k], {out[i], in[k]});
  }
  b.machine.sources["routes/pageable_bytes_per_second"] = kTypical;
  return std::move(b.machine);
}

/// One accelerator in a current server.
struct Card {
  const char *name, *architecture;
  std::map<DType, double> flops;
  double bytesPerSecond, memory;
  const char *source;
  double link; ///< bytes per second in each direction of its slot
  const char *linkSource;
};
constexpr const char *kPcie4 = "PCIe 4.0: 16 GT/s on 16 lanes, of 130 bits 128 are data",
                     *kPcie5 = "PCIe 5.0: 32 GT/s on 16 lanes, of 130 bits 128 are data";
const std::vector<Card> &cards() {
  static const std::vector<Card> all{
      {"a100", "sm_80", {{f32, 19.5e12}, {f64, 9.7e12}, {f16, 312e12}, {bf16, 312e12}, {i8, 624e12}}, 2.039e12, 80e9,
       "data sheet of NVIDIA A100 80GB SXM, without sparsity", 31.5e9, kPcie4},
      {"h100", "sm_90", {{f32, 67e12}, {f64, 34e12}, {f16, 989e12}, {bf16, 989e12}, {i8, 1979e12}}, 3.35e12, 80e9,
       "data sheet of NVIDIA H100 SXM, without sparsity", 63e9, kPcie5},
      {"h200", "sm_90", {{f32, 67e12}, {f64, 34e12}, {f16, 989e12}, {bf16, 989e12}, {i8, 1979e12}}, 4.8e12, 141e9,
       "data sheet of NVIDIA H200 SXM, without sparsity", 63e9, kPcie5},
      {"b200", "sm_100", {{f32, 75e12}, {f64, 37e12}, {f16, 2.25e15}, {bf16, 2.25e15}, {i8, 4.5e15}}, 8e12, 180e9,
       "data sheet of NVIDIA HGX B200, an eighth of it, without sparsity", 63e9, kPcie5},
      {"rtx5090", "sm_120", {{f32, 104.8e12}, {f64, 1.64e12}, {f16, 209.5e12}, {bf16, 209.5e12}, {i8, 838e12}}, 1.792e12, 32e9,
       "NVIDIA RTX Blackwell GPU architecture, GeForce RTX 5090, without sparsity, sums in f32", 63e9, kPcie5},
  };
  return all;
}
MachineModel withCard(const Card &card) {
  Builder b;
  const DeviceRef cpu = b.host(56, 2.0e9, 245e9, 1024 * kGiB,
                               "a Xeon 8480C of 56 cores; eight channels of DDR5-4800 at 80% of 307 GB/s");
  const DeviceRef gpu = b.gpu(card.flops, card.bytesPerSecond, card.memory, card.source);
  b.route(cpu, gpu, {b.link("pcie.down", card.link, 5e-6, card.linkSource)}, 12e9);
  b.route(gpu, cpu, {b.link("pcie.up", card.link, 5e-6, card.linkSource)}, 12e9);
  b.machine.name = card.name;
  b.machine.sources["routes/pageable_bytes_per_second"] = kTypical;
  return std::move(b.machine);
}

/// A host on Ethernet, whose accelerators have slots of their own.
MachineModel onEthernet(int count) {
  Builder b;
  const DeviceRef cpu = server(b);
  std::vector<DeviceRef> gpus;
  std::vector<uint32_t> down, up;
  for (int i = 0; i < count; ++i) {
    gpus.push_back(v100(b));
    down.push_back(b.link(concat("pcie", i, ".down"), 15.75e9, 5e-6, kPcie3));
    up.push_back(b.link(concat("pcie", i, ".up"), 15.75e9, 5e-6, kPcie3));
    b.route(cpu, gpus.back(), {down.back()}, 6e9);
    b.route(gpus.back(), cpu, {up.back()}, 6e9);
  }
  const uint32_t out = b.link("ethernet.out", 1.25e9, 25e-6, "10 Gbit/s"),
                 in = b.link("ethernet.in", 1.25e9, 25e-6, "10 Gbit/s");
  b.port(cpu, {out}, {in});
  for (size_t i = 0; i < gpus.size(); ++i) {
    b.port(gpus[i], {up[i], out}, {in, down[i]});
    for (size_t k = 0; k < gpus.size(); ++k)
      if (i != k)
        b.route(gpus[i], gpus[k], {up[i], down[k]});
  }
  b.machine.sources["routes/pageable_bytes_per_second"] = kTypical;
  return std::move(b.machine);
}

struct Preset {
  std::string name;
  std::function<MachineModel(int ofHost)> make; ///< makes a host with that many accelerators
  int ofHost = 1, hosts = 1;                    ///< defaults for a name without sizes
  bool hasNetwork = true;
};
const std::vector<Preset> &presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list{
        {"2gpu-pcie3", pcie3, 2},
        {"4gpu-pcie3", pcie3, 4},
        {"dgx-h100", dgxH100, 8},
        {"cluster-10gbe", onEthernet, 1, 4},
    };
    for (const Card &card : cards())
      list.push_back({.name = card.name, .make = [&card](int) { return withCard(card); }, .hasNetwork = false});
    return list;
  }();
  return all;
}

/// A whole number from 1 on; 0 for any other text.
int64_t countOf(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? count : 0;
}

constexpr int64_t kMost = 4096, kMostOfHost = 16; // limits of a name: accelerators in all, and per host

/// "16x4": 16 hosts of 4 accelerators each. "64": 64 accelerators, on hosts of the preset's number.
std::pair<int64_t, int64_t> sizeOf(const Preset &preset, std::string_view text) {
  auto refuse = [&](const auto &...why) {
    throw InputError(concat("machine '", preset.name, ":", text, "': ", why...));
  };
  if (!preset.hasNetwork)
    refuse("'", preset.name, "' is one accelerator in one host, without a network: it has no other size");
  const size_t by = text.find('x');
  const int64_t first = countOf(text.substr(0, by)),
                second = by == std::string_view::npos ? 1 : countOf(text.substr(by + 1));
  if (first == 0 || second == 0)
    refuse("a size is a number of accelerators, as in '", preset.name,
           ":64', or hosts by accelerators of each, as in '", preset.name, ":16x4'");
  int64_t hosts = first, ofHost = second;
  auto refuseMore = [&] { refuse("at most ", kMost, " accelerators, and ", kMostOfHost, " in a host"); };
  if (first > kMost)
    refuseMore();
  if (by == std::string_view::npos) {
    ofHost = std::min<int64_t>(first, preset.ofHost), hosts = first / ofHost;
    if (first % ofHost != 0) {
      int64_t even = ofHost;
      while (first % even != 0)
        --even;
      refuse("hosts of ", ofHost, " accelerators do not make ", first, "; '", preset.name, ":", first / even, "x", even,
             "' is ", first / even, " hosts of ", even);
    }
  }
  if (ofHost > kMostOfHost || hosts * ofHost > kMost)
    refuseMore();
  return {hosts, ofHost};
}

} // namespace

std::vector<std::string> machinePresets() {
  std::vector<std::string> names;
  for (const Preset &preset : presets())
    names.emplace_back(preset.name);
  return names;
}

MachineModel machinePreset(std::string_view name) {
  const size_t colon = name.find(':');
  std::string known;
  for (const Preset &preset : presets()) {
    if (name.substr(0, colon) == preset.name) {
      const auto [hosts, ofHost] = colon == std::string_view::npos
                                       ? std::pair<int64_t, int64_t>(preset.hosts, preset.ofHost)
                                       : sizeOf(preset, name.substr(colon + 1));
      MachineModel machine = preset.make(static_cast<int>(ofHost));
      machine.name = name;
      machine.hosts = hosts;
      return machine.numAccelerators() <= kMostListed ? withAllHosts(machine) : machine;
    }
    known += concat(known.empty() ? "" : ", ", preset.name);
  }
  throw InputError(concat("there is no machine '", name, "'; known are: ", known));
}

std::string presetOfAtLeast(int64_t accelerators) {
  const Preset &preset =
      *std::find_if(presets().begin(), presets().end(), [](const Preset &p) { return p.name == "dgx-h100"; });
  const int64_t hosts = (accelerators + preset.ofHost - 1) / preset.ofHost;
  return hosts * preset.ofHost <= kMost ? concat("sim:", preset.name, ":", hosts * preset.ofHost) : "";
}

MachineModel machineOfArchitecture(std::string_view architecture) {
  // Code for "sm_90a" runs on such cards only, so it is no fallback.
  const auto hasOwn = [](std::string_view name) { return name == "sm_90" || name == "sm_100"; };
  if (architecture.ends_with('a') && hasOwn(architecture.substr(0, architecture.size() - 1)))
    architecture.remove_suffix(1);
  std::string known;
  for (const Card &card : cards()) {
    if (card.architecture == architecture)
      return withCard(card);
    if (known.find(card.architecture) == std::string::npos)
      known += concat(known.empty() ? "" : ", ", card.architecture,
                      hasOwn(card.architecture) ? concat(", ", card.architecture, "a") : std::string());
  }
  throw InputError(concat("there is no GPU architecture '", architecture, "'; known are: ", known));
}

std::string architectureOfMachine(std::string_view name) {
  for (const Card &card : cards())
    if (card.name == name)
      return card.architecture;
  return name.substr(0, name.find(':')) == "dgx-h100" ? "sm_90" : "";
}

MachineModel machineNamed(std::string_view name) {
  if (name == "cpu")
    return hostMachine();
  if (name.starts_with("cpu:")) {
    const int64_t parts = countOf(name.substr(4));
    if (parts < 1 || parts > INT_MAX)
      throw InputError(concat("machine '", name, "': its parts are a number from 1 on, as in 'cpu:2'"));
    return processorParts(static_cast<int>(parts));
  }
  if (!name.starts_with("sim:"))
    throw InputError(
        concat("there is no machine '", name, "'; machines are cpu, cpu:PARTS, sim:NAME and sim:FILE.json"));
  name.remove_prefix(4);
  if (name.find(".json:") != std::string_view::npos)
    throw InputError(
        concat("machine 'sim:", name, "': a file says itself how many hosts it is of, as in \"hosts\": 16"));
  if (!name.ends_with(".json"))
    return machinePreset(name);
  const std::vector<std::byte> file = readFile(std::string(name));
  const MachineModel machine = parseMachine({reinterpret_cast<const char *>(file.data()), file.size()}, name);
  return machine.numAccelerators() <= kMostListed ? withAllHosts(machine) : machine;
}

} // namespace tressel::runtime
