#include "tressel/runtime/KernelHistory.h"

#include "runtime/types/Concat.h"
#include "runtime/files/JsonPlace.h"
#include "tressel/runtime/Error.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

void MeasuredTime::add(double seconds) {
  ++count;
  const double before = seconds - mean;
  mean += before / static_cast<double>(count);
  deviations += before * (seconds - mean);
}

/// Combines two sets of measurements (Chan, Golub and LeVeque, 1979).
void MeasuredTime::add(const MeasuredTime &other) {
  if (other.count == 0)
    return;
  const auto n = static_cast<double>(count), m = static_cast<double>(other.count);
  const double apart = other.mean - mean;
  mean += apart * m / (n + m);
  deviations += other.deviations + apart * apart * n * m / (n + m);
  count += other.count;
}

void KernelHistory::add(const Key &key, double seconds, std::string_view name) {
  if (key.kernel.empty() || key.device.empty())
    throw InputError("history: a time needs a kernel and a device");
  if (!std::isfinite(seconds) || seconds <= 0)
    throw InputError(concat("history: '", key.kernel, "' took ", std::to_string(seconds), " s, which is no time"));
  Entry &entry = entries_[key];
  entry.time.add(seconds);
  if (entry.name.empty())
    entry.name = name;
}

void KernelHistory::add(const KernelHistory &other) {
  for (const auto &[key, entry] : other.entries_) {
    Entry &mine = entries_[key];
    mine.time.add(entry.time);
    if (mine.name.empty())
      mine.name = entry.name;
  }
}

std::string shapeOf(const std::vector<TensorType> &operands, size_t inputs) {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i)
    text += concat(text.empty() ? "" : " ", i == inputs ? "-> " : "", operands[i].str());
  return text;
}

int64_t KernelHistory::add(const Schedule &s, const Timeline &timeline) {
  int64_t recorded = 0;
  for (const Span &span : timeline.spans) {
    if (span.kind != SpanKind::Kernel || span.end <= span.begin)
      continue;
    const Command &c = s.step.commands[span.command];
    const KernelDesc &kernel = s.kernels[c.kernel];
    if (kernel.key.empty())
      continue;
    std::vector<TensorType> types;
    for (uint32_t i = 0; i < c.numOperands; ++i)
      types.push_back(s.buffers[s.step.operands[c.firstOperand + i].buffer].type);
    add({kernel.key, shapeOf(types, static_cast<size_t>(kernel.numInputs)), nameOf(s.streams[c.stream].device)},
        runtime::seconds(span.end - span.begin), s.locations[c.loc].op);
    ++recorded;
  }
  return recorded;
}

const MeasuredTime *KernelHistory::find(const Key &key) const {
  const auto it = entries_.find(key);
  return it != entries_.end() && it->second.time.count >= kEnough ? &it->second.time : nullptr;
}

std::optional<double> measuredSeconds(const MachineModel &machine, const DeviceModel &device, std::string_view kernel,
                                      const std::string &shape) {
  if (!machine.history || kernel.empty())
    return std::nullopt;
  KernelHistory::Key key{std::string(kernel), shape, nameOf(device.device)};
  if (const MeasuredTime *time = machine.history->find(key))
    return time->mean;
  // Uses the measurement of an equal device. With a prediction for one and a measurement for the other, work would move
  // back and forth between them.
  for (const DeviceModel &other : machine.devices) {
    if (other.device.kind != device.device.kind || other.flopsPerSecond != device.flopsPerSecond ||
        other.bytesPerSecond != device.bytesPerSecond || other.threads != device.threads)
      continue;
    key.device = nameOf(other.device);
    if (const MeasuredTime *time = machine.history->find(key))
      return time->mean;
  }
  return std::nullopt;
}

//--- The file ---------------------------------------------------------------------------------------------------------

std::string KernelHistory::toJson() const {
  json file{{"schema", 1}, {"machine", machine_}, {"kernels", json::array()}};
  for (const auto &[key, entry] : entries_)
    file["kernels"].push_back({{"kernel", key.kernel},
                               {"name", entry.name},
                               {"shape", key.shape},
                               {"device", key.device},
                               {"count", entry.time.count},
                               {"seconds", entry.time.mean},
                               {"variance", entry.time.variance()}});
  return file.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

const json &member(const json &object, const std::string &where, const char *key) {
  if (!object.is_object())
    throw JsonFault{where, "must be an object"};
  const auto it = object.find(key);
  if (it == object.end())
    throw JsonFault{where.empty() ? key : where + "." + key, "is missing"};
  return *it;
}
std::string textIn(const json &object, const std::string &where, const char *key, bool mayBeEmpty = false) {
  const json &value = member(object, where, key);
  if (!value.is_string() || (!mayBeEmpty && value.get<std::string>().empty()))
    throw JsonFault{where.empty() ? key : where + "." + key, "must be a text"};
  return value.get<std::string>();
}
double numberIn(const json &object, const std::string &where, const char *key) {
  const json &value = member(object, where, key);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    throw JsonFault{where + "." + key, "must be a number, and not negative"};
  return value.get<double>();
}

} // namespace

KernelHistory KernelHistory::parse(std::string_view text, std::string_view name) {
  const json file = parseJson(text, name);
  return withLines(text, name, [&] {
    if (const json &schema = member(file, "", "schema"); !schema.is_number_integer() || schema != 1)
      throw JsonFault{"schema", "must be 1"};
    KernelHistory history(textIn(file, "", "machine"));
    const json &list = member(file, "", "kernels");
    if (!list.is_array())
      throw JsonFault{"kernels", "must be a list"};
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = concat("kernels[", i, "]");
      const json &in = list[i];
      Key key{textIn(in, where, "kernel"), textIn(in, where, "shape", true), textIn(in, where, "device")};
      const json &count = member(in, where, "count");
      if (!count.is_number_integer() || count < 1)
        throw JsonFault{where + ".count", "must be a whole number, at least 1"};
      MeasuredTime time{.count = count.get<int64_t>(), .mean = numberIn(in, where, "seconds")};
      if (time.mean <= 0)
        throw JsonFault{where + ".seconds", "must be more than 0"};
      time.deviations = numberIn(in, where, "variance") * static_cast<double>(time.count - 1);
      Entry &entry = history.entries_[key];
      if (entry.time.count)
        throw JsonFault{where, "is the second one of this kernel, shape and device"};
      entry = {time, textIn(in, where, "name", true)};
    }
    return history;
  });
}

} // namespace tressel::runtime
