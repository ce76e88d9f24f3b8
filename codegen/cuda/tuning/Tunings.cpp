#include "codegen/cuda/tuning/Tunings.h"

#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MD5.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>

namespace tressel::codegen::cuda {
namespace {

constexpr int64_t kVersion = 1;

std::string keyOf(const Kernel &kernel) {
  llvm::MD5::MD5Result hash = llvm::MD5::hash(llvm::arrayRefFromStringRef(kernel.text));
  return hash.digest().str().str();
}

[[noreturn]] void refuse(const std::string &name, const std::string &why) {
  throw InputError(name + " is no file of GPU tunings: " + why);
}

} // namespace

std::string Cut::str() const {
  std::string text;
  auto add = [&](const char *word, int number) {
    if (number)
      text += (text.empty() ? "" : " ") + std::string(word) + " " + std::to_string(number);
  };
  add("threads", loops.threads);
  add("row", loops.threadsPerRow);
  add("vector", loops.vector);
  if (!tile.empty())
    text += (text.empty() ? "tile " : " tile ") + tile;
  add("parts", parts);
  return text;
}

Cut Cut::parse(std::string_view given) {
  Cut cut;
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef text(given);
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (size_t i = 0; i < words.size(); i += 2) {
    int number = 0;
    const bool isNumber =
        i + 1 < words.size() && !words[i + 1].getAsInteger(10, number) && number > 0 && number <= kMaxBlockThreads;
    if (words[i] == "tile" && i + 1 < words.size())
      cut.tile = words[i + 1].str();
    else if (words[i] == "parts" && isNumber && (number == 2 || number == 4 || number == 8))
      cut.parts = number;
    else if (words[i] == "threads" && isNumber)
      cut.loops.threads = number;
    else if (words[i] == "row" && isNumber)
      cut.loops.threadsPerRow = number;
    else if (words[i] == "vector" && isNumber)
      cut.loops.vector = number;
    else
      throw InputError(
          "'" + std::string(given) +
          "' is no way to cut a kernel: it is threads, row and vector with numbers, or tile with a name and "
          "parts with 2, 4 or 8");
  }
  return cut;
}

std::optional<Tunings::Entry> Tunings::find(const Arch &arch, const Kernel &byModel) const {
  if (byModel.text.empty())
    return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto kernels = byArch_.find(arch.name);
  if (kernels == byArch_.end())
    return std::nullopt;
  const auto at = kernels->second.find(keyOf(byModel));
  return at == kernels->second.end() ? std::nullopt : std::optional(at->second);
}

void Tunings::add(const Arch &arch, const Kernel &byModel, Entry entry) {
  std::lock_guard lock(mutex_);
  byArch_[std::string(arch.name)][keyOf(byModel)] = std::move(entry);
}

size_t Tunings::size() const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto &[arch, kernels] : byArch_)
    count += kernels.size();
  return count;
}

std::shared_ptr<Tunings> Tunings::parse(std::string_view json, const std::string &name) {
  auto tunings = std::make_shared<Tunings>();
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(llvm::StringRef(json));
  if (!parsed)
    refuse(name, llvm::toString(parsed.takeError()));
  const llvm::json::Object *root = parsed->getAsObject();
  if (!root || root->getInteger("version") != kVersion)
    refuse(name, "it has no \"version\": " + std::to_string(kVersion));
  const llvm::json::Object *architectures = root->getObject("architectures");
  if (!architectures)
    refuse(name, "it has no \"architectures\"");
  for (const auto &[arch, value] : *architectures) {
    const llvm::json::Object *kernels = value.getAsObject();
    if (!kernels)
      refuse(name, "\"" + arch.str() + "\" is no object");
    for (const auto &[key, kernel] : *kernels) {
      const llvm::json::Object *o = kernel.getAsObject();
      const auto cut = o ? o->getString("cut") : std::nullopt;
      const auto seconds = o ? o->getNumber("seconds") : std::nullopt,
                 byModel = o ? o->getNumber("by_model") : std::nullopt;
      const std::string place = "kernel " + key.str() + " of " + arch.str();
      if (!cut || !seconds || !byModel)
        refuse(name, place + " lacks \"cut\", \"seconds\" or \"by_model\"");
      if (!std::isfinite(*seconds) || !std::isfinite(*byModel) || *seconds <= 0 || *byModel <= 0)
        refuse(name, place + " takes no time");
      const double library = o->getNumber("library").value_or(0);
      if (!std::isfinite(library) || library < 0)
        refuse(name, place + " has a \"library\" that is no time");
      Entry entry{.seconds = *seconds,
                  .defaultSeconds = *byModel,
                  .librarySeconds = library,
                  .what = o->getString("what").value_or("").str()};
      try {
        entry.cut = Cut::parse(*cut);
      } catch (const InputError &problem) {
        refuse(name, place + ": " + problem.message());
      }
      tunings->byArch_[arch.str()][key.str()] = std::move(entry);
    }
  }
  return tunings;
}

std::shared_ptr<Tunings> Tunings::load(const std::string &path) {
  const std::vector<std::byte> bytes = runtime::readFile(path);
  return parse({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

std::string Tunings::toJson() const {
  std::lock_guard lock(mutex_);
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out, 1);
  json.object([&] {
    json.attribute("version", kVersion);
    json.attributeObject("architectures", [&] {
      for (const auto &[arch, kernels] : byArch_)
        json.attributeObject(arch, [&] {
          for (const auto &[key, entry] : kernels)
            json.attributeObject(key, [&] {
              json.attribute("what", entry.what);
              json.attribute("cut", entry.cut.str());
              json.attribute("seconds", entry.seconds);
              json.attribute("by_model", entry.defaultSeconds);
              if (entry.librarySeconds > 0)
                json.attribute("library", entry.librarySeconds);
            });
        });
    });
  });
  return text + "\n";
}

namespace {

struct Current {
  std::mutex mutex;
  bool isSet = false;
  std::shared_ptr<const Tunings> tunings;
};
Current &current() {
  static Current &one = *new Current; // kernels may be made while the process ends
  return one;
}

} // namespace

std::shared_ptr<const Tunings> currentTunings() {
  std::lock_guard lock(current().mutex);
  if (!current().isSet) {
    if (const char *path = std::getenv("TRESSEL_GPU_TUNING"); path && *path)
      current().tunings = Tunings::load(path);
    current().isSet = true;
  }
  return current().tunings;
}
void setTunings(std::shared_ptr<const Tunings> tunings) {
  std::lock_guard lock(current().mutex);
  current().isSet = true;
  current().tunings = std::move(tunings);
}

} // namespace tressel::codegen::cuda
