// tressel inspect and tressel devices.
#include "tools/tressel/Gpu.h"
#include "tools/tressel/Runnable.h"
#include "tools/tressel/Timelines.h"
#include "tools/tressel/Tool.h"

#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/ThreadPool.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>
#include <utility>

namespace tressel::tool {

using json = nlohmann::ordered_json;

static std::string dump(const json &j) { return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

static std::string typeOf(const Port &port) {
  std::string text(nameOf(port.dtype));
  text += "[";
  for (size_t i = 0; i < port.sizes.size(); ++i)
    text += (i ? ", " : "") + (port.sizes[i] == kDynamic ? port.dimNames[i] : dim::str(port.sizes[i]));
  return text + "]";
}

static json portsJson(const std::vector<Port> &ports) {
  json list = json::array();
  for (const Port &p : ports) {
    json sizes = json::array();
    for (size_t i = 0; i < p.sizes.size(); ++i)
      p.sizes[i] == kDynamic ? sizes.push_back(p.dimNames[i]) : sizes.push_back(p.sizes[i].number());
    list.push_back({{"name", p.name}, {"dtype", nameOf(p.dtype)}, {"shape", sizes}});
    if (!p.home.empty())
      list.back()["home"] = p.home;
  }
  return list;
}

static void printPorts(const char *title, const std::vector<Port> &ports) {
  if (ports.empty())
    return;
  std::printf("%s\n", title);
  for (const Port &p : ports)
    std::printf("  %s: %s%s\n", harmless(p.name).c_str(), harmless(typeOf(p)).c_str(),
                p.home.empty() ? "" : (" on " + p.home).c_str());
}

static int inspectModel(const InspectArgs &args) {
  ModelInfo info = compiler().describe(args.file, /*checksInputs=*/true);
  std::set<std::string> dims;
  for (const Port &p : info.inputs)
    for (const std::string &name : p.dimNames)
      if (!name.empty())
        dims.insert(name);
  if (args.json) {
    json j{{"schema", 1}, {"file", args.file}, {"format", info.format}, {"producer", info.producer}};
    j["opsets"] = info.opsets;
    j["inputs"] = portsJson(info.inputs);
    j["outputs"] = portsJson(info.outputs);
    j["states"] = portsJson(info.states);
    j["dims"] = dims;
    if (!info.mesh.empty())
      j["mesh"] = info.mesh;
    j["weight_bytes"] = info.weightBytes;
    j["ops"] = info.opCounts;
    j["unsupported"] = json::array();
    for (const UnsupportedOp &u : info.unsupported)
      j["unsupported"].push_back({{"op", u.op}, {"node", u.node}, {"opset", u.opset}, {"why", u.why}});
    j["malformed"] = json::array();
    for (const UnsupportedOp &m : info.malformed)
      j["malformed"].push_back({{"op", m.op}, {"node", m.node}, {"why", m.why}});
    std::fputs(dump(j).c_str(), stdout);
    return info.malformed.empty() ? kOk : kInput;
  }
  std::printf("%s: %s model", args.file.c_str(), info.format.c_str());
  if (!info.producer.empty())
    std::printf(" by %s", harmless(info.producer).c_str());
  for (const auto &[domain, version] : info.opsets)
    std::printf(", opset %s%s%lld", harmless(domain).c_str(), domain.empty() ? "" : " ", static_cast<long long>(version));
  std::printf(", %s of weights\n", humanBytes(info.weightBytes).c_str());
  printPorts("inputs", info.inputs);
  printPorts("outputs", info.outputs);
  printPorts("states", info.states);
  if (!info.mesh.empty())
    std::printf("mesh\n  %s\n", harmless(info.mesh).c_str());
  if (!dims.empty()) {
    std::printf("dimensions to give with --dim (else 1)\n ");
    for (const std::string &name : dims)
      std::printf(" %s", harmless(name).c_str());
    std::printf("\n");
  }
  std::printf("ops\n ");
  for (const auto &[op, count] : info.opCounts)
    std::printf(" %s:%d", harmless(op).c_str(), count);
  std::printf("\n");
  if (info.unsupported.empty() && info.malformed.empty())
    std::printf("every op is supported\n");
  if (!info.unsupported.empty())
    std::printf("not supported\n");
  for (const UnsupportedOp &u : info.unsupported)
    std::printf("  %s (opset %lld) at node '%s'%s%s\n", harmless(u.op).c_str(), static_cast<long long>(u.opset), harmless(u.node).c_str(),
                u.why.empty() ? "" : ": ", u.why.c_str());
  if (!info.malformed.empty())
    std::printf("malformed\n");
  for (const UnsupportedOp &m : info.malformed)
    std::printf("  %s at node '%s': %s\n", harmless(m.op).c_str(), harmless(m.node).c_str(), harmless(m.why).c_str());
  return info.malformed.empty() ? kOk : kInput;
}

static Port portOf(const std::string &name, const TensorType &type) {
  Port p{name, type.dtype, {}, {}};
  for (Size size : type.shape) {
    p.sizes.push_back(size.isNumber() ? size : kDynamic);
    p.dimNames.push_back(size.isSymbolic() ? dim::str(size) : "");
  }
  return p;
}

static int inspectPackage(const InspectArgs &args) {
  PackageInfo info = describePackage(args.file, args.function);
  const runtime::Schedule &s = info.schedule;
  std::vector<Port> inputs, outputs, states;
  for (const auto &v : s.inputs)
    inputs.push_back(portOf(v.name, v.type));
  for (const auto &v : s.outputs)
    outputs.push_back(portOf(v.name, v.type));
  for (const auto &v : s.states)
    if (v.kind != runtime::StateKind::Derived) {
      states.push_back(portOf(v.name, v.type));
      if (!runtime::isHost(v.home))
        states.back().home = runtime::nameOf(v.home.device);
    }
  std::map<std::string, int> providers;
  int flushing = 0, keeping = 0; // kernels that flush subnormals (f32), and that keep them (f64, --keep-subnormals)
  for (const auto &k : s.kernels)
    ++providers[k.provider], flushing += k.floats == runtime::FloatMode::Flush, keeping += k.floats == runtime::FloatMode::Keep;
  if (args.json) {
    json j{{"schema", 1}, {"file", args.file}, {"format", "package"}};
    j["functions"] = info.functions;
    j["inputs"] = portsJson(inputs);
    j["outputs"] = portsJson(outputs);
    j["states"] = portsJson(states);
    j["needs"] = {{"cpu", info.cpuLevels}, {"kernels", providers}, {"arena_bytes", dim::bounds(s.peakBytes).lo}};
    j["subnormals"] = {{"flushed_by", flushing}, {"kept_by", keeping}};
    if (!s.peakBytes.isNumber()) // a lower bound, and the symbols it depends on
      j["needs"]["arena_bytes_by_size"] = dim::str(s.peakBytes);
    j["weight_bytes"] = info.weightBytes;
    for (const runtime::GpuCode &code : info.gpu) {
      json gpu{{"arch", code.arch}, {"ptx_bytes", code.ptx.size()}, {"cubin_bytes", code.cubin.size()}, {"assembler", code.assembler}, {"kernels", json::array()}};
      for (const runtime::GpuCode::Kernel &k : code.kernels)
        gpu["kernels"].push_back({{"symbol", k.symbol}, {"registers", k.registers}, {"spill_stores", k.spillStores}, {"spill_loads", k.spillLoads},
                                  {"stack_bytes", k.stackBytes}, {"shared_bytes", k.sharedBytes}});
      j["gpu"].push_back(std::move(gpu));
    }
    std::fputs(dump(j).c_str(), stdout);
    return kOk;
  }
  std::printf("%s: package, %s of weights\n", args.file.c_str(), humanBytes(info.weightBytes).c_str());
  if (info.functions.size() > 1) {
    std::printf("functions, of which '%s' is shown (--function)\n ",
                harmless(args.function.empty() ? info.functions.front() : args.function).c_str());
    for (const std::string &function : info.functions)
      std::printf(" %s", harmless(function).c_str());
    std::printf("\n");
  }
  printPorts("inputs", inputs);
  printPorts("outputs", outputs);
  printPorts("states", states);
  std::string levels;
  for (const std::string &level : info.cpuLevels)
    levels += (levels.empty() ? "" : " or ") + level;
  std::printf("needs\n  cpu level %s, %s of scratch memory%s\n ", levels.empty() ? "baseline" : levels.c_str(),
              humanBytes(dim::bounds(s.peakBytes).lo).c_str(), s.peakBytes.isNumber() ? "" : " or more, by the sizes");
  for (const char *before = " kernels by provider: "; const auto &[provider, count] : providers)
    std::printf("%s%s %d", std::exchange(before, ", "), provider.c_str(), count);
  std::printf("\n");
  if (flushing + keeping)
    std::printf("subnormal numbers\n  kernels that flush them: %d, that keep them: %d\n", flushing, keeping);
  if (!info.gpu.empty())
    std::printf("code for GPUs\n%s", gpuTable(info.gpu, /*perKernel=*/true).c_str());
  return kOk;
}

int inspectCommand(const InspectArgs &args) {
  if (args.file.ends_with(".tsl"))
    return inspectPackage(args);
  if (!args.function.empty())
    throw UsageError("--function chooses among those of a package, and " + args.file + " is none");
  return inspectModel(args);
}

int devicesCommand(bool asJson) {
  int threads = runtime::ThreadPool::global().numThreads();
  std::string level(runtime::nameOf(runtime::hostCpuLevel()));
  int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::string model = processorName();
  std::string missing;
  const std::vector<runtime::GpuCard> cards = runtime::gpuCards(&missing);
  const std::vector<runtime::GpuLibrary> libraries = cards.empty() ? std::vector<runtime::GpuLibrary>() : runtime::gpuLibraries();
  if (asJson) {
    json cpu{{"name", "cpu"}, {"model", model}, {"threads", threads}, {"level", level}, {"memory_bytes", memory}};
    json devices = json::array({cpu});
    for (size_t i = 0; i < cards.size(); ++i)
      devices.push_back({{"name", "gpu" + std::to_string(i)}, {"model", cards[i].name}, {"architecture", cards[i].architecture},
                         {"multiprocessors", cards[i].multiprocessors}, {"memory_bytes", cards[i].memoryBytes}, {"cuda_version", cards[i].cudaVersion}});
    json all{{"schema", 1}, {"devices", devices}};
    if (cards.empty())
      all["no_gpu"] = missing;
    for (const runtime::GpuLibrary &library : libraries) {
      json entry{{"name", library.name}, {"found", !library.version.empty()}};
      if (!library.version.empty())
        entry.update({{"version", library.version}, {"file", library.file}});
      all["libraries"].push_back(entry);
    }
    std::fputs(dump(all).c_str(), stdout);
  } else {
    std::printf("cpu  %s, %d threads, level %s, %s\n", model.c_str(), threads, level.c_str(),
                humanBytes(memory).c_str());
    for (size_t i = 0; i < cards.size(); ++i)
      std::printf("gpu%zu  %s (%s), %d multiprocessors, %s, driver for CUDA %d.%d; %s\n", i, cards[i].name.c_str(),
                  cards[i].architecture.c_str(), cards[i].multiprocessors, humanBytes(cards[i].memoryBytes).c_str(),
                  cards[i].cudaVersion / 1000, cards[i].cudaVersion % 1000 / 10,
                  runtime::GpuArchitecture::of(cards[i].architecture).number < 80
                      ? "too old: code is generated for sm_80 and later"
                      : "programs run on it with --device cuda");
    for (const runtime::GpuLibrary &library : libraries)
      std::printf("%s  %s\n", library.name.c_str(), library.version.empty() ? "not found" : (library.version + " (" + library.file + ")").c_str());
    if (cards.empty())
      std::printf("no GPU: %s\n", missing.c_str());
  }
  return kOk;
}

} // namespace tressel::tool
