#include "tressel/runtime/Corrections.h"

#include "Concat.h"
#include "JsonPlace.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

Corrections::Corrections(std::string path) : path_(std::move(path)) {
  std::error_code ec;
  if (path_.empty() || !std::filesystem::exists(path_, ec))
    return;
  try {
    const std::vector<std::byte> bytes = readFile(path_);
    const json file = json::parse(reinterpret_cast<const char *>(bytes.data()), reinterpret_cast<const char *>(bytes.data()) + bytes.size());
    for (const json &entry : file.at("corrections")) {
      const double factor = entry.at("factor").get<double>(), seconds = entry.at("seconds").get<double>();
      if (std::isfinite(factor) && factor > 0 && std::isfinite(seconds) && entries_.size() < kMost)
        entries_[{entry.at("kind").get<std::string>(), seconds}] = {factor, ++youngest_};
    }
  } catch (const std::exception &) {
    entries_.clear(); // what was seen will be seen again
  }
}

Corrections &Corrections::ofHost() {
  static Corrections &all = *[] { // programs may run while the process ends
    const std::string path = calibrationFile();
    return new Corrections(path.empty() ? path : path + ".corrections");
  }();
  return all;
}

KernelCost Corrections::apply(KernelCost cost) {
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find({cost.kind, cost.seconds});
  if (entry == entries_.end())
    return cost;
  const double model = cost.seconds;
  cost.seconds *= entry->second.factor;
  modelSeconds_[{cost.kind, cost.seconds}] = model;
  return cost;
}

bool Corrections::isCorrected(const KernelCost &cost) const {
  std::lock_guard lock(mutex_);
  return modelSeconds_.contains({cost.kind, cost.seconds});
}

bool Corrections::note(const KernelCost &cost, double factor) {
  constexpr double little = 1.15, most = 50;
  if (!std::isfinite(factor) || factor <= 0 || (factor < little && factor > 1 / little))
    return false;
  std::lock_guard lock(mutex_);
  if (path_.empty())
    return false;
  Key key{cost.kind, cost.seconds};
  if (const auto model = modelSeconds_.find(key); model != modelSeconds_.end()) {
    factor *= key.second / model->second;
    key.second = model->second;
  }
  if (entries_.size() >= kMost && !entries_.contains(key))
    entries_.erase(std::ranges::min_element(entries_, {}, [](const auto &entry) { return entry.second.age; }));
  entries_[key] = {std::clamp(factor, 1 / most, most), ++youngest_};
  return isChanged_ = true;
}

void Corrections::save() {
  json list = json::array();
  {
    std::lock_guard lock(mutex_);
    if (!isChanged_)
      return;
    isChanged_ = false;
    std::vector<std::pair<Key, Entry>> all(entries_.begin(), entries_.end());
    std::ranges::sort(all, {}, [](const auto &entry) { return entry.second.age; });
    for (const auto &[key, entry] : all)
      list.push_back({{"kind", key.first}, {"seconds", key.second}, {"factor", entry.factor}});
  }
  try {
    std::error_code ec;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ec);
    const std::string text = json{{"schema", 1}, {"corrections", std::move(list)}}.dump(1) + "\n";
    writeFile(path_, std::as_bytes(std::span(text)));
  } catch (const Error &) { // a full disk is no reason for a program to fail
  }
}

size_t Corrections::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

FirstCalls::FirstCalls(const Schedule &schedule) : schedule_(schedule) {
  const bool isKnown = std::ranges::any_of(schedule.kernels, [](const KernelDesc &kernel) { return !kernel.costs.empty(); });
  open_ = isKnown && schedule.dims.empty(); // a cost is of one size
}

void FirstCalls::add(const Profile &profile, const DeviceModel &cpu, Corrections &corrections) {
  std::lock_guard lock(mutex_);
  if (!open_ || profile.commands.size() != schedule_.step.commands.size() || ++calls_ <= kSkipped)
    return;
  spans_.resize(profile.commands.size());
  for (size_t i = 0; i < spans_.size(); ++i) {
    const double took = 1e-9 * static_cast<double>(profile.commands[i].endNs - profile.commands[i].startNs);
    spans_[i].least = calls_ == kSkipped + 1 ? took : std::min(spans_[i].least, took);
    spans_[i].most = std::max(spans_[i].most, took);
  }
  if (calls_ < kSkipped + kCalls)
    return;
  open_ = false;
  judge(cpu, corrections);
}

Decisions FirstCalls::findings() const {
  std::lock_guard lock(mutex_);
  return findings_;
}

void FirstCalls::judge(const DeviceModel &cpu, Corrections &corrections) {
  struct Finding {
    const Location *where;
    const KernelDesc *kernel;
    double predicted, took;
    const KernelCost *cost;
    double rest, ratio, factor;
  };
  std::vector<Finding> findings;
  std::vector<double> ratios;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Command &c = schedule_.step.commands[i];
    if (c.kind != CommandKind::Launch || spans_[i].least <= 0)
      continue;
    const KernelDesc &kernel = schedule_.kernels[c.kernel];
    if (kernel.costs.empty())
      continue;
    KernelWork work = workOf(kernel, f32);
    const double predicted = workSeconds(cpu, work), took = spans_[i].least;
    ratios.push_back(took / predicted);
    // What decides the time of a root and what follows it is mostly one of them.
    const KernelCost &largest = *std::ranges::max_element(kernel.costs, {}, &KernelCost::seconds);
    double sum = 0;
    for (const KernelCost &cost : kernel.costs)
      sum += cost.seconds;
    constexpr double noise = 1.5, leastSeconds = 2e-6;
    const bool isSteady = spans_[i].most < noise * noise * took;
    if (largest.seconds < 0.7 * sum || !isSteady || std::max(took / predicted, predicted / took) < noise || std::abs(took - predicted) < leastSeconds)
      continue;
    // By how much its instructions must be longer or shorter for the whole to take what it took.
    work.costs = {};
    work.flops = 0;
    const double moving = workSeconds(cpu, work);
    const double computed = std::cbrt(std::max(0.0, predicted * predicted * predicted - moving * moving * moving));
    const double seen = std::cbrt(std::max(0.0, took * took * took - moving * moving * moving));
    if (computed > 0.5 * predicted && seen > 0.1 * took)
      findings.push_back({&schedule_.locations[c.loc], &kernel, predicted, took, &largest, sum - largest.seconds, took / predicted, seen / computed});
  }
  if (findings.empty())
    return;
  // Where everything takes longer, the machine does other work, or is not calibrated: no kernel's own affair.
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2));
  const double typical = ratios.size() >= 4 ? std::clamp(ratios[ratios.size() / 2], 0.5, 2.0) : 1;
  for (const Finding &finding : findings) {
    const double factor = ((finding.cost->seconds + finding.rest) * finding.factor / typical - finding.rest) / finding.cost->seconds;
    if (!corrections.note(*finding.cost, factor))
      continue;
    std::string text = concat("predicted ", spellSeconds(finding.predicted), ", took ", spellSeconds(finding.took), " in its first calls; the next compilation counts ",
                              spellSeconds(finding.cost->seconds * factor), " for ", finding.cost->kind);
    if (const KernelCost &other = finding.kernel->alternative; !other.kind.empty())
      text += concat(finding.took / typical - finding.predicted > other.seconds ? " and would choose " : " and would keep ",
                     finding.took / typical - finding.predicted > other.seconds ? other.kind : finding.kernel->provider);
    findings_.push_back({"first-calls", *finding.where, std::move(text)});
  }
  corrections.save();
}

} // namespace tressel::runtime
