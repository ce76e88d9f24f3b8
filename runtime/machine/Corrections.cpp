#include "tressel/runtime/Corrections.h"

#include "runtime/types/Concat.h"
#include "runtime/files/JsonPlace.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

/// Excludes other processes, and other objects of this one. Gives up after a moment, as a stopped process may hold the
/// lock.
class Corrections::FileLock {
public:
  explicit FileLock(const std::string &path) : fd_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)) {
    constexpr int kTries = 100;
    constexpr auto kPause = std::chrono::milliseconds(2);
    for (int i = 0; fd_ >= 0 && i < kTries && !isHeld_; ++i) {
      if (i > 0)
        std::this_thread::sleep_for(kPause);
      isHeld_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
    }
  }
  ~FileLock() {
    if (isHeld_)
      // unlocked explicitly: close() does not suffice while the child of a fork has the descriptor too
      ::flock(fd_, LOCK_UN);
    if (fd_ >= 0)
      ::close(fd_);
  }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;
  bool isHeld() const { return isHeld_; }

private:
  const int fd_;
  bool isHeld_ = false;
};

Corrections::Corrections(std::string path) : path_(std::move(path)), entries_(read()), youngest_(entries_.size()) {}

std::map<Corrections::Key, Corrections::Entry> Corrections::read() const {
  std::map<Key, Entry> entries;
  std::error_code ec;
  if (path_.empty() || !std::filesystem::exists(path_, ec))
    return entries;
  try {
    const std::vector<std::byte> bytes = readFile(path_);
    const json file = json::parse(reinterpret_cast<const char *>(bytes.data()), reinterpret_cast<const char *>(bytes.data()) + bytes.size());
    for (const json &entry : file.at("corrections")) {
      const double factor = entry.at("factor").get<double>(), seconds = entry.at("seconds").get<double>();
      if (std::isfinite(factor) && factor > 0 && std::isfinite(seconds) && entries.size() < kMost) {
        const uint64_t age = entries.size() + 1;
        entries[{entry.at("kind").get<std::string>(), seconds}] = {factor, age};
      }
    }
  } catch (const std::exception &) {
    entries.clear(); // a damaged file: corrections will be measured again
  }
  return entries;
}

void Corrections::dropOldest(std::map<Key, Entry> &entries) {
  while (entries.size() > kMost)
    entries.erase(std::ranges::min_element(entries, {}, [](const auto &entry) { return entry.second.age; }));
}

Corrections &Corrections::ofHost() {
  // never destroyed: programs may run while the process ends
  static Corrections &all = *new Corrections(fileBeside(calibrationFile()));
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

std::optional<double> Corrections::note(const KernelCost &cost, double factor) {
  constexpr double little = 1.15, most = 50;
  if (!std::isfinite(factor) || factor <= 0)
    return std::nullopt;
  std::lock_guard lock(mutex_);
  if (path_.empty())
    return std::nullopt;
  Key key{cost.kind, cost.seconds};
  double before = 1; // correction that the cost contains already
  if (const auto model = modelSeconds_.find(key); model != modelSeconds_.end()) {
    before = key.second / model->second;
    key.second = model->second;
  }
  const double whole = std::clamp(factor * before, 1 / most, most);
  factor = whole / before;
  if (factor < little && factor > 1 / little)
    return std::nullopt;
  entries_[key] = {whole, ++youngest_};
  changed_.insert(key);
  dropOldest(entries_);
  return factor;
}

void Corrections::save() {
  {
    std::lock_guard lock(mutex_);
    if (changed_.empty())
      return;
  }
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ec);
  const FileLock fileLock(path_);
  if (!fileLock.isHeld())
    return; // busy: the next save() tries again
  std::map<Key, Entry> merged = read();
  std::vector<std::pair<Key, Entry>> sorted;
  {
    std::lock_guard lock(mutex_);
    const uint64_t count = merged.size();
    for (const Key &key : changed_)
      if (const auto entry = entries_.find(key); entry != entries_.end())
        merged[key] = {entry->second.factor, count + entry->second.age}; // younger than all entries of the file
    changed_.clear();
    dropOldest(merged);
    sorted.assign(merged.begin(), merged.end());
    std::ranges::sort(sorted, {}, [](const auto &entry) { return entry.second.age; });
    entries_.clear(), youngest_ = 0;
    for (const auto &[key, entry] : sorted)
      entries_[key] = {entry.factor, ++youngest_};
  }
  json list = json::array();
  for (const auto &[key, entry] : sorted)
    list.push_back({{"kind", key.first}, {"seconds", key.second}, {"factor", entry.factor}});
  try {
    const std::string text = json{{"schema", 1}, {"corrections", std::move(list)}}.dump(1) + "\n";
    writeFile(path_, std::as_bytes(std::span(text)));
  } catch (const Error &) { // a full disk must not fail the program
  }
}

void Corrections::forget() {
  if (path_.empty())
    return;
  const FileLock fileLock(path_); // without the lock, a process that merges now would write the file again
  std::lock_guard lock(mutex_);
  entries_.clear(), changed_.clear(), modelSeconds_.clear();
  std::error_code ec;
  std::filesystem::remove(path_, ec);
}

size_t Corrections::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

FirstCalls::FirstCalls(const Schedule &schedule) : schedule_(schedule) {
  const bool isKnown = std::ranges::any_of(schedule.kernels, [](const KernelDesc &kernel) { return !kernel.costs.empty(); });
  open_ = isKnown && schedule.dims.empty(); // costs are for one size
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

namespace {
/// A kernel of the step, with the time of its steady calls.
struct Launch {
  const Location *where;
  const KernelDesc *kernel;
  double predicted, took;
  bool isSteady;
};

/// The factor by which the kernel's instructions must take longer than predicted for the whole to take `took`. Nothing
/// if most of the time goes into moving bytes, which says nothing on instructions.
std::optional<double> factorOfInstructions(const DeviceModel &cpu, const Launch &launch, double took) {
  KernelWork work = workOf(*launch.kernel, f32);
  work.costs = {};
  work.flops = 0;
  auto cube = [](double x) { return x * x * x; };
  const double moving = workSeconds(cpu, work), predicted = launch.predicted;
  const double computed = std::cbrt(std::max(0.0, cube(predicted) - cube(moving))), seen = std::cbrt(std::max(0.0, cube(took) - cube(moving)));
  return computed > 0.5 * predicted && seen > 0.1 * took ? std::optional(seen / computed) : std::nullopt;
}
} // namespace

void FirstCalls::judge(const DeviceModel &cpu, Corrections &corrections) {
  std::vector<Launch> launches;
  std::vector<double> ratios;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Command &c = schedule_.step.commands[i];
    if (c.kind != CommandKind::Launch || spans_[i].least <= 0)
      continue;
    const KernelDesc &kernel = schedule_.kernels[c.kernel];
    if (kernel.costs.empty())
      continue;
    constexpr double noise = 2.25;
    launches.push_back({&schedule_.locations[c.loc], &kernel, workSeconds(cpu, workOf(kernel, f32)), spans_[i].least,
                        spans_[i].most < noise * spans_[i].least});
    ratios.push_back(launches.back().took / launches.back().predicted);
  }
  if (launches.empty())
    return;
  // If most kernels take longer, the machine is under load or not calibrated, and no single kernel's cost is wrong.
  constexpr double differs = 1.3;
  double typical = 1;
  if (ratios.size() >= 4) {
    std::ranges::nth_element(ratios, ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2));
    typical = ratios[ratios.size() / 2];
  }
  if (typical > differs || typical < 1 / differs)
    return;
  for (const Launch &launch : launches) {
    // `typical` is closer to 1 than `contradicts` is, so a kernel that took longer than predicted never becomes
    // cheaper.
    constexpr double contradicts = 1.5, leastSeconds = 2e-6;
    static_assert(differs < contradicts);
    const double took = launch.took / typical, ratio = took / launch.predicted;
    // The factor is attributed to the largest cost, which dominates the time of a kernel with an epilogue.
    const KernelCost &cost = *std::ranges::max_element(launch.kernel->costs, {}, &KernelCost::seconds);
    double sum = 0;
    for (const KernelCost &part : launch.kernel->costs)
      sum += part.seconds;
    if (cost.seconds < 0.7 * sum || !launch.isSteady || (ratio < contradicts && ratio > 1 / contradicts) ||
        std::abs(took - launch.predicted) < leastSeconds)
      continue;
    const std::optional<double> whole = factorOfInstructions(cpu, launch, took);
    if (!whole)
      continue;
    const double rest = sum - cost.seconds;
    const std::optional<double> factor = corrections.note(cost, (sum * *whole - rest) / cost.seconds);
    if (!factor)
      continue;
    char times[32];
    std::snprintf(times, sizeof times, "%.2g", *factor);
    std::string text = concat("predicted ", spellSeconds(launch.predicted), ", took ", spellSeconds(launch.took),
                              " in its first calls; the next compilation counts ", times, " times as much for ", cost.kind);
    if (const KernelCost &other = launch.kernel->runnerUp; !other.kind.empty()) {
      const bool isBeaten = took - launch.predicted > other.seconds;
      text += concat(isBeaten ? " and would choose " : " and would keep ", isBeaten ? other.kind : launch.kernel->provider);
    }
    findings_.push_back({"first-calls", *launch.where, std::move(text)});
  }
  corrections.save();
}

} // namespace tressel::runtime
