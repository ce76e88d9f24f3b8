#include "tressel/runtime/MachineModel.h"

#include "runtime/files/JsonPlace.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

/// The current name of a provider or a kind of kernels ("builtin/product/v4"). Files of earlier versions have "kernels"
/// for "builtin" and "prebuilt" for "bitcode".
static std::string currentName(const std::string &name) {
  const size_t end = std::min(name.find('/'), name.size());
  const std::string first = name.substr(0, end);
  return (first == "kernels" ? "builtin" : first == "prebuilt" ? "bitcode" : first) + name.substr(end);
}

double DeviceModel::flops(DType type) const {
  auto it = flopsPerSecond.find(type);
  return it != flopsPerSecond.end() ? it->second : flopsPerSecond.at(f32);
}
double DeviceModel::efficiencyOf(std::string_view provider) const {
  auto it = efficiency.find(provider);
  if (it == efficiency.end())
    it = efficiency.find("");
  return it == efficiency.end() ? 1 : it->second;
}
double DeviceModel::bandwidth(double bytes) const {
  for (size_t i = 0; i < caches.size(); ++i) {
    if (bytes <= caches[i].bytes)
      return caches[i].bytesPerSecond;
    const bool isLast = i + 1 == caches.size();
    const double behind = isLast ? bytesPerSecond : caches[i + 1].bytesPerSecond;
    const double end = isLast ? 2 * caches[i].bytes : std::min(2 * caches[i].bytes, caches[i + 1].bytes);
    if (bytes < end) // part of the bytes is still in the cache
      return caches[i].bytesPerSecond * std::pow(behind / caches[i].bytesPerSecond,
                                                 std::log(bytes / caches[i].bytes) / std::log(end / caches[i].bytes));
  }
  return bytesPerSecond;
}
DeviceModel DeviceModel::lane() const {
  DeviceModel one = *this;
  for (auto &[type, rate] : one.flopsPerSecond)
    rate /= threads;
  one.bytesPerSecond = std::max(one.bytesPerSecond / threads, threadBytesPerSecond);
  for (CacheModel &cache : one.caches)
    cache.bytes /= threads, cache.bytesPerSecond /= threads;
  one.threads = 1;
  return one;
}
KernelWork workOf(const KernelDesc &kernel, DType type) {
  const int64_t grain = std::max<int64_t>(1, dim::hint(kernel.grain)), range = dim::hint(kernel.range);
  return {.type = type,
          .flops = static_cast<double>(dim::hint(kernel.flops)),
          .bytes = static_cast<double>(dim::hint(kernel.bytes)),
          .provider = kernel.provider,
          .moves = kernel.moves,
          .tasks = range / grain + (range % grain != 0),
          .costs = kernel.costs};
}
double DeviceModel::threadSeconds(std::span<const KernelCost> costs) const {
  /// f32 flops per second of one thread of the processor on which the costs were measured.
  constexpr double referenceFlops = 1.1e11;
  double sum = 0;
  for (const KernelCost &cost : costs) {
    const auto correction = corrections.find(cost.kind);
    sum += cost.seconds * (correction == corrections.end() ? 1 : correction->second);
  }
  return sum / (speed > 0 ? speed : flops(f32) / threads / referenceFlops);
}
double workSeconds(const DeviceModel &d, const KernelWork &work, double slower) {
  const int64_t threads = std::clamp<int64_t>(work.tasks, 1, d.threads);
  // The pool makes at most four chunks per thread, and the kernel ends with the thread that gets one more than others.
  const int64_t parts = std::clamp<int64_t>(work.tasks, 1, 4 * threads);
  const double share = static_cast<double>((parts + threads - 1) / threads * threads) / static_cast<double>(parts);
  const double part = static_cast<double>(threads) / d.threads; // share of the device that works on the kernel
  const double near = work.bytes / part;
  const bool known = (d.device.kind == DeviceKind::Cpu || d.speed > 0) && !work.costs.empty();
  auto seconds = [&](double bytes, double from) {
    const bool isFar = from > d.cacheBytes();
    double rate = d.bandwidth(from) * part;
    if (isFar && threads < d.threads)
      rate = std::max(rate, std::min(d.bytesPerSecond, d.threadBytesPerSecond * static_cast<double>(threads)));
    return bytes / (rate * (work.moves && !known ? d.movementEfficiency : 1)) * (isFar ? slower : 1);
  };
  const double moving = seconds(work.bytes - work.oldBytes, near) + seconds(work.oldBytes, std::max(near, work.distance));
  const double splitting = threads > 1 ? d.splitSeconds : 0;
  if (!known) {
    const double computing = work.flops / (d.flops(work.type) * d.efficiencyOf(work.provider) * part);
    return std::max(computing, moving) * share + splitting;
  }
  // Concurrent threads slow each other down, as they share power and execution units.
  const double together = d.threads == 1 ? 1 : 1 - (1 - d.speedTogether) * static_cast<double>(threads - 1) / (d.threads - 1);
  const double computing = d.threadSeconds(work.costs) / (static_cast<double>(threads) * together);
  return std::cbrt(computing * computing * computing + moving * moving * moving) * share + splitting;
}

//--- Engines ----------------------------------------------------------------------------------------------------------
std::string_view nameOf(StreamKind kind) {
  static constexpr std::string_view kNames[kNumStreamKinds] = {"compute", "copy_in", "copy_out", "lane", "communication"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<EngineModel> DeviceModel::allEngines() const {
  static constexpr std::pair<StreamKind, const char *> kOwn[] = {{StreamKind::Compute, ""},
                                                                 {StreamKind::CopyIn, "in"},
                                                                 {StreamKind::CopyOut, "out"},
                                                                 {StreamKind::Communication, "comm"}};
  std::vector<EngineModel> all = engines;
  for (const auto &[kind, name] : kOwn)
    if (std::ranges::none_of(engines, [&](const EngineModel &e) { return std::ranges::find(e.kinds, kind) != e.kinds.end(); }))
      all.push_back({name, {kind}});
  std::ranges::stable_partition(
      all, [](const EngineModel &e) { return std::ranges::find(e.kinds, StreamKind::Compute) != e.kinds.end(); });
  return all;
}

EngineTable::EngineTable(const MachineModel &machine, std::span<const StreamDesc> streams) {
  const DeviceModel unknown;
  std::map<std::pair<std::string, size_t>, uint32_t> known; // by device and index of the engine
  for (const StreamDesc &stream : streams) {
    const auto next = static_cast<uint32_t>(engines.size());
    const std::string device = nameOf(stream.device);
    if (stream.kind == StreamKind::Lane) {
      engines.push_back({stream.name.empty() ? device : stream.name, stream.device, stream.kind});
      ofStream.push_back(next);
      continue;
    }
    const DeviceModel *model = machine.find(stream.device);
    const std::vector<EngineModel> all = (model ? model : &unknown)->allEngines();
    const auto engine = std::ranges::find_if(
        all, [&](const EngineModel &e) { return std::ranges::find(e.kinds, stream.kind) != e.kinds.end(); });
    const auto [at, isNew] = known.try_emplace({device, static_cast<size_t>(engine - all.begin())}, next);
    if (isNew)
      engines.push_back({engine->name.empty() ? device : concat(device, ".", engine->name), stream.device, stream.kind});
    ofStream.push_back(at->second);
  }
}

const DeviceModel *MachineModel::find(DeviceRef device) const {
  auto it = std::ranges::find(devices, device, &DeviceModel::device);
  return it == devices.end() ? nullptr : &*it;
}
const RouteModel *MachineModel::route(DeviceRef from, DeviceRef to) const {
  auto it = std::ranges::find_if(routes, [&](const RouteModel &r) { return r.from == from && r.to == to; });
  return it == routes.end() ? nullptr : &*it;
}
const NetworkPort *MachineModel::portOf(DeviceRef device) const {
  auto it = std::ranges::find(network, device, &NetworkPort::device);
  return it == network.end() ? nullptr : &*it;
}
static int64_t numListed(const MachineModel &machine, DeviceKind kind) {
  return std::ranges::count_if(machine.devices, [&](const DeviceModel &d) { return d.device.kind == kind; });
}
int64_t MachineModel::numAccelerators() const { return hosts * numListed(*this, DeviceKind::Gpu); }
int64_t MachineModel::hostOf(DeviceRef device) const {
  if (const DeviceModel *listed = find(device))
    return listed->host;
  return device.index / std::max<int64_t>(1, numListed(*this, device.kind));
}

MachineModel withAllHosts(const MachineModel &machine) {
  if (machine.hosts == 1)
    return machine;
  if (machine.numAccelerators() > kMostListed)
    throw InputError(concat("machine '", machine.name, "' has ", machine.numAccelerators(), " accelerators: of more than ", kMostListed,
                            " only the first host's are listed"));
  MachineModel all{.name = machine.name, .history = machine.history};
  auto deviceOf = [&](DeviceRef device, int64_t host) {
    device.index = static_cast<uint16_t>(device.index + host * numListed(machine, device.kind));
    return device;
  };
  auto linksOf = [&](std::vector<uint32_t> links, int64_t host) {
    for (uint32_t &link : links)
      link += static_cast<uint32_t>(static_cast<size_t>(host) * machine.links.size());
    return links;
  };
  for (DeviceKind kind : {DeviceKind::Cpu, DeviceKind::Gpu})
    for (int64_t host = 0; host < machine.hosts; ++host)
      for (DeviceModel device : machine.devices)
        if (device.device.kind == kind) {
          const std::string name = device.name;
          device.device = deviceOf(device.device, host);
          device.name = nameOf(device.device);
          device.host = static_cast<uint16_t>(host);
          for (const auto &[figure, source] : machine.sources)
            if (figure.starts_with(name + "/"))
              all.sources[device.name + figure.substr(name.size())] = source;
          all.devices.push_back(std::move(device));
        }
  for (int64_t host = 0; host < machine.hosts; ++host) {
    for (LinkModel link : machine.links) {
      const std::string name = link.name;
      link.name = concat("host", host, ".", name);
      for (const auto &[figure, source] : machine.sources)
        if (figure.starts_with(concat("links/", name, "/")))
          all.sources[concat("links/", link.name, figure.substr(6 + name.size()))] = source;
      all.links.push_back(std::move(link));
    }
    for (const RouteModel &route : machine.routes)
      all.routes.push_back({deviceOf(route.from, host), deviceOf(route.to, host), linksOf(route.links, host),
                            route.pageableBytesPerSecond});
    for (const NetworkPort &from : machine.network)
      for (int64_t other = 0; other < machine.hosts; ++other)
        for (const NetworkPort &to : machine.network) {
          if (other == host)
            continue;
          std::vector<uint32_t> links = linksOf(from.out, host);
          const std::vector<uint32_t> in = linksOf(to.in, other);
          links.insert(links.end(), in.begin(), in.end());
          all.routes.push_back({deviceOf(from.device, host), deviceOf(to.device, other), std::move(links)});
        }
  }
  if (const auto pageable = machine.sources.find("routes/pageable_bytes_per_second"); pageable != machine.sources.end())
    all.sources.insert(*pageable);
  return all;
}

namespace {

[[noreturn]] void fault(const std::string &where, const std::string &what) { throw JsonFault{where, what}; }

/// An object of the file. Its members are read by name; those that were never read are reported at the end.
class Reader {
public:
  Reader(const json &value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object())
      fault(where_, "must be an object");
  }
  void finish() const {
    for (const auto &[key, value] : value_.items())
      if (!asked_.contains(key))
        fault(at(key), "is not known here");
  }

  const json *optional(const char *key) {
    asked_.insert(key);
    auto it = value_.find(key);
    return it == value_.end() ? nullptr : &*it;
  }
  const json &required(const char *key) {
    const json *found = optional(key);
    if (!found)
      fault(at(key), "is missing");
    return *found;
  }
  std::string text(const char *key) { return textOf(required(key), at(key)); }
  double positive(const char *key) { return positiveOf(required(key), at(key)); }
  double positiveOr(const char *key, double otherwise) {
    const json *found = optional(key);
    return found ? positiveOf(*found, at(key)) : otherwise;
  }
  double atLeastZero(const char *key, double otherwise) {
    const json *found = optional(key);
    if (!found)
      return otherwise;
    if (found->is_number() && found->get<double>() == 0)
      return 0;
    return positiveOf(*found, at(key));
  }
  const json &array(const char *key) {
    const json &found = required(key);
    if (!found.is_array())
      fault(at(key), "must be a list");
    return found;
  }
  std::string at(const std::string &key) const { return where_.empty() ? key : where_ + "." + key; }

  static std::string textOf(const json &value, const std::string &where) {
    if (!value.is_string() || value.get<std::string>().empty())
      fault(where, "must be a text");
    return value.get<std::string>();
  }
  static double positiveOf(const json &value, const std::string &where) {
    if (!value.is_number())
      fault(where, "must be a number");
    const double number = value.get<double>();
    if (!std::isfinite(number) || number <= 0 || number > 1e24)
      fault(where, "must be positive, and below 1e24");
    return number;
  }

private:
  const json &value_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
};

DeviceRef deviceNamed(const MachineModel &machine, const json &value, const std::string &where) {
  const std::string name = Reader::textOf(value, where);
  auto it = std::ranges::find(machine.devices, name, &DeviceModel::name);
  if (it == machine.devices.end())
    fault(where, concat("there is no device '", name, "'"));
  return it->device;
}

/// "caches", the smallest first; or cache_bytes and cached_bytes_per_second for a single cache.
void readCaches(Reader &in, DeviceModel &d) {
  const json *list = in.optional("caches");
  const double bytes = in.atLeastZero("cache_bytes", 0);
  if (list && bytes > 0)
    fault(in.at("cache_bytes"), "is given beside caches");
  if (bytes > 0)
    d.caches.push_back({bytes, in.positive("cached_bytes_per_second")});
  else if (in.optional("cached_bytes_per_second"))
    fault(in.at("cached_bytes_per_second"), "is given, but cache_bytes is not");
  if (list && !list->is_array())
    fault(in.at("caches"), "must be a list");
  if (list && list->size() > 16)
    fault(in.at("caches"), "are more than 16");
  for (size_t i = 0; list && i < list->size(); ++i) {
    Reader cache((*list)[i], concat(in.at("caches"), "[", i, "]"));
    d.caches.push_back({cache.positive("bytes"), cache.positive("bytes_per_second")});
    cache.finish();
    if (i > 0 && d.caches[i].bytes <= d.caches[i - 1].bytes)
      fault(cache.at("bytes"), "must be more than that of the cache before it");
    if (i > 0 && d.caches[i].bytesPerSecond > d.caches[i - 1].bytesPerSecond)
      fault(cache.at("bytes_per_second"), "is more than that of the smaller cache before it");
  }
  if (!d.caches.empty() && d.caches.back().bytesPerSecond < d.bytesPerSecond)
    fault(list ? concat(in.at("caches"), "[", d.caches.size() - 1, "].bytes_per_second")
               : in.at("cached_bytes_per_second"),
          "is less than that of the memory behind the cache");
}

/// "engines": each has the kinds of streams that it executes; no kind is in two engines.
void readEngines(Reader &in, DeviceModel &d) {
  const json *list = in.optional("engines");
  if (!list)
    return;
  if (!list->is_array() || list->size() > kNumStreamKinds)
    fault(in.at("engines"), concat("must be a list, of at most ", kNumStreamKinds, " engines"));
  std::set<StreamKind> named;
  for (size_t i = 0; i < list->size(); ++i) {
    Reader engine((*list)[i], concat(in.at("engines"), "[", i, "]"));
    EngineModel made;
    if (engine.optional("name"))
      made.name = engine.text("name");
    for (const EngineModel &other : d.engines)
      if (other.name == made.name)
        fault(engine.at("name"), concat("'", made.name, "' is the name of another engine"));
    for (const json &entry : engine.array("streams")) {
      const std::string text = Reader::textOf(entry, engine.at("streams"));
      size_t kind = 0;
      while (kind < kNumStreamKinds && nameOf(static_cast<StreamKind>(kind)) != text)
        ++kind;
      const auto found = static_cast<StreamKind>(kind);
      if (kind == kNumStreamKinds || found == StreamKind::Lane)
        fault(engine.at("streams"), concat("'", text, "' is no kind of stream: compute, copy_in, copy_out, communication"));
      if (!named.insert(found).second)
        fault(engine.at("streams"), concat("'", text, "' streams have an engine already"));
      made.kinds.push_back(found);
    }
    engine.finish();
    if (made.kinds.empty())
      fault(engine.at("streams"), "must name a kind of stream");
    d.engines.push_back(std::move(made));
  }
}

void readDevice(const json &value, const std::string &where, MachineModel &machine) {
  Reader in(value, where);
  DeviceModel d;
  d.name = in.text("name");
  const std::string kind = in.text("kind");
  if (kind != "cpu" && kind != "gpu")
    fault(in.at("kind"), concat("is '", kind, "', but can be cpu or gpu"));
  d.device.kind = kind == "cpu" ? DeviceKind::Cpu : DeviceKind::Gpu;
  for (const DeviceModel &other : machine.devices) {
    if (other.name == d.name)
      fault(in.at("name"), concat("'", d.name, "' is the name of another device"));
    d.device.index = static_cast<uint16_t>(d.device.index + (other.device.kind == d.device.kind));
  }
  if (d.name != nameOf(d.device))
    fault(in.at("name"),
          concat("is '", d.name, "', but devices are named in order: this one is '", nameOf(d.device), "'"));
  Reader flops(in.required("flops_per_second"), in.at("flops_per_second"));
  for (DType type : {f32, f64, f16, bf16, i8, i16, i32, i64, u8, DType::boolean})
    if (const std::string name(nameOf(type)); flops.optional(name.c_str()))
      d.flopsPerSecond[type] = flops.positive(name.c_str());
  flops.required("f32");
  flops.finish();
  if (const json *threads = in.optional("threads")) {
    if (!threads->is_number_integer() || *threads < 1 || *threads > 4096)
      fault(in.at("threads"), "must be a whole number from 1 to 4096");
    d.threads = threads->get<int>();
  }
  d.bytesPerSecond = in.positive("bytes_per_second");
  d.memoryBytes = static_cast<int64_t>(std::min(in.positive("memory_bytes"), 1e18));
  readCaches(in, d);
  d.splitSeconds = in.atLeastZero("split_seconds", 0);
  d.issueSeconds = in.atLeastZero("issue_seconds", 0);
  d.commandSeconds = in.positive("command_seconds");
  d.contention = in.atLeastZero("contention", 0);
  d.speed = in.atLeastZero("speed", 0);
  d.threadBytesPerSecond = in.atLeastZero("thread_bytes_per_second", 0);
  if (d.threadBytesPerSecond > d.bytesPerSecond)
    fault(in.at("thread_bytes_per_second"), "is more than bytes_per_second, which is that of all threads");
  d.pieceSeconds = in.atLeastZero("piece_seconds", 0);
  d.speedTogether = in.positiveOr("speed_together", 1);
  if (d.speedTogether > 1)
    fault(in.at("speed_together"), "is a share, at most 1");
  if (const json *corrections = in.optional("corrections")) {
    if (!corrections->is_object())
      fault(in.at("corrections"), "must be an object");
    for (const auto &[kind, factor] : corrections->items())
      d.corrections[currentName(kind)] = Reader::positiveOf(factor, in.at("corrections." + kind));
  }
  d.movementEfficiency = in.positiveOr("movement_efficiency", 1);
  if (d.movementEfficiency > 1)
    fault(in.at("movement_efficiency"), "is a share, at most 1");
  if (const json *shares = in.optional("efficiency")) {
    if (!shares->is_object())
      fault(in.at("efficiency"), "must be an object");
    for (const auto &[provider, share] : shares->items()) {
      const std::string place = in.at("efficiency." + provider);
      if (const double number = Reader::positiveOf(share, place); number <= 1)
        d.efficiency[provider == "other" ? "" : currentName(provider)] = number;
      else
        fault(place, "is a share, at most 1");
    }
  }
  readEngines(in, d);
  if (const json *host = in.optional("host")) {
    if (!host->is_number_integer() || *host < 0 || *host > 4095)
      fault(in.at("host"), "must be a whole number from 0 to 4095");
    d.host = host->get<uint16_t>();
  }
  in.finish();
  machine.devices.push_back(std::move(d));
}

void readLink(const json &value, const std::string &where, MachineModel &machine) {
  Reader in(value, where);
  LinkModel link{.name = in.text("name")};
  if (std::ranges::find(machine.links, link.name, &LinkModel::name) != machine.links.end())
    fault(in.at("name"), concat("'", link.name, "' is the name of another link"));
  link.bytesPerSecond = in.positive("bytes_per_second");
  link.latencySeconds = in.positive("latency_seconds");
  in.finish();
  machine.links.push_back(std::move(link));
}

std::vector<uint32_t> readLinks(Reader &in, const char *key, const MachineModel &machine) {
  std::vector<uint32_t> links;
  for (const json &entry : in.array(key)) {
    const std::string name = Reader::textOf(entry, in.at(key));
    auto it = std::ranges::find(machine.links, name, &LinkModel::name);
    if (it == machine.links.end())
      fault(in.at(key), concat("there is no link '", name, "'"));
    const auto index = static_cast<uint32_t>(it - machine.links.begin());
    if (std::ranges::find(links, index) != links.end())
      fault(in.at(key), concat("link '", name, "' stands twice"));
    links.push_back(index);
  }
  if (links.empty())
    fault(in.at(key), "must name a link");
  return links;
}

void readPort(const json &value, const std::string &where, MachineModel &machine) {
  Reader in(value, where);
  NetworkPort port{.device = deviceNamed(machine, in.required("device"), in.at("device"))};
  if (machine.portOf(port.device))
    fault(in.at("device"), concat("'", nameOf(port.device), "' has another port"));
  port.out = readLinks(in, "out", machine);
  port.in = readLinks(in, "in", machine);
  for (const auto &[key, links] : {std::pair("out", &port.out), std::pair("in", &port.in)})
    if (std::ranges::all_of(*links, [&](uint32_t link) {
          return machine.links[link].bytesPerSecond > machine.find(port.device)->bytesPerSecond;
        }))
      fault(in.at(key), concat("is faster than the memory of ", nameOf(port.device)));
  for (uint32_t link : port.in)
    if (std::ranges::find(port.out, link) != port.out.end())
      fault(in.at("in"), concat("link '", machine.links[link].name, "' is one of 'out' too: a link is one direction"));
  in.finish();
  machine.network.push_back(std::move(port));
}

void readRoute(const json &value, const std::string &where, MachineModel &machine) {
  Reader in(value, where);
  RouteModel route;
  route.from = deviceNamed(machine, in.required("from"), in.at("from"));
  route.to = deviceNamed(machine, in.required("to"), in.at("to"));
  if (route.from == route.to)
    fault(where, "leads from a device to itself");
  if (machine.route(route.from, route.to))
    fault(where, concat("is the second one from ", nameOf(route.from), " to ", nameOf(route.to)));
  route.links = readLinks(in, "links", machine);
  if (route.links.size() == 1)
    for (DeviceRef end : {route.from, route.to})
      if (const LinkModel &link = machine.links[route.links[0]]; link.bytesPerSecond > machine.find(end)->bytesPerSecond)
        fault(in.at("links"), concat("link '", link.name, "' is faster than the memory of ", nameOf(end)));
  route.pageableBytesPerSecond = in.atLeastZero("pageable_bytes_per_second", 0);
  for (uint32_t link : route.links)
    if (route.pageableBytesPerSecond > machine.links[link].bytesPerSecond)
      fault(in.at("pageable_bytes_per_second"), concat("is more than link '", machine.links[link].name, "' carries"));
  in.finish();
  machine.routes.push_back(std::move(route));
}

template <typename Fn> void forEach(const json &list, const std::string &name, MachineModel &machine, Fn fn) {
  for (size_t i = 0; i < list.size(); ++i)
    fn(list[i], concat(name, "[", i, "]"), machine);
}

} // namespace

static MachineModel readMachine(const json &file) {
  Reader in(file, "");
  if (const json &schema = in.required("schema"); !schema.is_number_integer() || schema != 1)
    fault("schema", "must be 1");
  MachineModel machine{.name = in.text("name")};
  if (in.array("devices").size() > 4096)
    fault("devices", "are more than 4096");
  forEach(in.array("devices"), "devices", machine, readDevice);
  if (!machine.find({DeviceKind::Cpu, 0}))
    fault("devices", "have no cpu");
  if (machine.devices.front().device != DeviceRef())
    fault("devices[0]", "must be the cpu: hosts come first");
  if (const json *links = in.optional("links"); links)
    forEach(in.array("links"), "links", machine, readLink);
  if (const json *routes = in.optional("routes"); routes)
    forEach(in.array("routes"), "routes", machine, readRoute);
  if (const json *hosts = in.optional("hosts")) {
    if (!hosts->is_number_integer() || *hosts < 1 || *hosts > 4096)
      fault("hosts", "must be a whole number from 1 to 4096");
    machine.hosts = hosts->get<int64_t>();
  }
  if (in.optional("network"))
    forEach(in.array("network"), "network", machine, readPort);
  for (size_t i = 0; i < machine.devices.size() && machine.hosts > 1; ++i)
    if (machine.devices[i].host != 0)
      fault(concat("devices[", i, "].host"), "is of a machine whose devices are all listed, and 'hosts' says that they are those of one");
  if (machine.hosts > 1 && machine.network.empty())
    fault("network", "is missing: it says how devices reach the other hosts");
  if (machine.numAccelerators() > UINT16_MAX)
    fault("hosts", concat("are too many: together they have ", machine.numAccelerators(), " accelerators, of at most ", UINT16_MAX));
  for (const DeviceModel &d : machine.devices)
    if (d.device.kind == DeviceKind::Gpu &&
        std::ranges::none_of(machine.routes, [&](const RouteModel &r) { return r.to == d.device; }))
      fault("routes", concat("none leads to ", d.name));
  if (const json *sources = in.optional("sources")) {
    if (!sources->is_object())
      fault("sources", "must be an object");
    for (const auto &[key, value] : sources->items())
      machine.sources[key] = Reader::textOf(value, "sources." + key);
  }
  in.finish();
  return machine;
}

MachineModel parseMachine(std::string_view text, std::string_view name) {
  if (text.size() > size_t(16) << 20)
    throw InputError(concat(name, ": is larger than 16 MiB"));
  const json file = parseJson(text, name);
  return withLines(text, name, [&] { return readMachine(file); });
}

std::string toJson(const MachineModel &machine) {
  json file{{"schema", 1}, {"name", machine.name}};
  file["devices"] = json::array();
  for (const DeviceModel &d : machine.devices) {
    json flops = json::object(), efficiency = json::object();
    for (const auto &[type, rate] : d.flopsPerSecond)
      flops[std::string(nameOf(type))] = rate;
    for (const auto &[provider, share] : d.efficiency)
      efficiency[provider.empty() ? "other" : provider] = share;
    json device{{"name", d.name},
                {"kind", d.device.kind == DeviceKind::Cpu ? "cpu" : "gpu"},
                {"threads", d.threads},
                {"flops_per_second", flops},
                {"bytes_per_second", d.bytesPerSecond},
                {"memory_bytes", d.memoryBytes},
                {"issue_seconds", d.issueSeconds},
                {"command_seconds", d.commandSeconds},
                {"contention", d.contention},
                {"efficiency", efficiency}};
    if (d.host > 0)
      device["host"] = d.host;
    for (const CacheModel &cache : d.caches)
      device["caches"].push_back({{"bytes", cache.bytes}, {"bytes_per_second", cache.bytesPerSecond}});
    for (const EngineModel &engine : d.engines) {
      json entry{{"streams", json::array()}};
      if (!engine.name.empty())
        entry["name"] = engine.name;
      for (StreamKind kind : engine.kinds)
        entry["streams"].push_back(nameOf(kind));
      device["engines"].push_back(std::move(entry));
    }
    if (d.movementEfficiency < 1)
      device["movement_efficiency"] = d.movementEfficiency;
    if (d.splitSeconds > 0)
      device["split_seconds"] = d.splitSeconds;
    if (d.speed > 0)
      device["speed"] = d.speed;
    if (d.threadBytesPerSecond > 0)
      device["thread_bytes_per_second"] = d.threadBytesPerSecond;
    if (d.pieceSeconds > 0)
      device["piece_seconds"] = d.pieceSeconds;
    if (d.speedTogether < 1)
      device["speed_together"] = d.speedTogether;
    for (const auto &[kind, factor] : d.corrections)
      device["corrections"][kind] = factor;
    file["devices"].push_back(std::move(device));
  }
  file["links"] = file["routes"] = json::array();
  for (const LinkModel &link : machine.links)
    file["links"].push_back(
        {{"name", link.name}, {"bytes_per_second", link.bytesPerSecond}, {"latency_seconds", link.latencySeconds}});
  for (const RouteModel &route : machine.routes) {
    json entry{{"from", nameOf(route.from)}, {"to", nameOf(route.to)}, {"links", json::array()}};
    for (uint32_t link : route.links)
      entry["links"].push_back(machine.links[link].name);
    if (route.pageableBytesPerSecond > 0)
      entry["pageable_bytes_per_second"] = route.pageableBytesPerSecond;
    file["routes"].push_back(std::move(entry));
  }
  if (machine.hosts > 1)
    file["hosts"] = machine.hosts;
  for (const NetworkPort &port : machine.network) {
    json entry{{"device", nameOf(port.device)}, {"out", json::array()}, {"in", json::array()}};
    for (uint32_t link : port.out)
      entry["out"].push_back(machine.links[link].name);
    for (uint32_t link : port.in)
      entry["in"].push_back(machine.links[link].name);
    file["network"].push_back(std::move(entry));
  }
  file["sources"] = json::object();
  for (const auto &[key, text] : machine.sources)
    file["sources"][key] = text;
  return file.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace tressel::runtime
