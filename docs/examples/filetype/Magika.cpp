#include "Magika.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace fs = std::filesystem;
using json = nlohmann::json;

static json readJson(const std::string &path) {
  std::ifstream in(path);
  if (!in)
    throw std::runtime_error(path + ": cannot be read");
  try {
    return json::parse(in);
  } catch (const json::exception &e) {
    throw std::runtime_error(path + ": " + e.what());
  }
}

MagikaConfig MagikaConfig::load(const std::string &folder) {
  MagikaConfig c;
  const std::string path = folder + "/config.min.json";
  json j = readJson(path);
  try {
    if (j.at("mid_size") != 0 || j.at("use_inputs_at_offsets") != false)
      throw std::runtime_error(path + ": features from the middle of files are not supported");
    c.begSize = j.at("beg_size");
    c.endSize = j.at("end_size");
    c.blockSize = j.at("block_size");
    c.minFileSize = j.at("min_file_size_for_dl");
    c.paddingToken = j.at("padding_token");
    c.mediumThreshold = j.at("medium_confidence_threshold");
    c.labels = j.at("target_labels_space").get<std::vector<std::string>>();
    c.thresholds = j.at("thresholds").get<std::map<std::string, double>>();
    c.overwrite = j.at("overwrite_map").get<std::map<std::string, std::string>>();
    if (c.begSize <= 0 || c.begSize >= c.blockSize || c.endSize < 0 || c.endSize >= c.blockSize || c.minFileSize < 1 ||
        c.minFileSize > c.begSize)
      throw std::runtime_error(path + ": sizes do not fit each other");
    if (const std::string file = folder + "/content_types_kb.min.json"; fs::exists(file)) {
      const json types = readJson(file);
      for (const auto &[label, info] : types.items())
        if (info.at("is_text").get<bool>())
          c.textLabels.insert(label);
    }
  } catch (const json::exception &e) {
    throw std::runtime_error(path + ": " + e.what());
  }
  return c;
}

/// Whether the bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
static bool isUtf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    auto byte = [&](size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
    unsigned lead = byte(i);
    size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 9 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : 9;
    if (more == 9)
      return false;
    for (size_t k = 1; k <= more; ++k)
      if ((byte(i + k) & 0xc0) != 0x80)
        return false;
    unsigned second = byte(i + 1);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second >= 0x90))
      return false;
    i += more + 1;
  }
  return true;
}

Features extractFeatures(const std::string &path, const MagikaConfig &config) {
  std::error_code ec;
  if (fs::is_directory(path, ec))
    return {.label = "directory", .tokens = {}};
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error(path + ": cannot be read");
  in.seekg(0, std::ios::end);
  const int64_t size = in.tellg();
  if (size < 0)
    throw std::runtime_error(path + ": is not a plain file");
  auto read = [&](int64_t from, int64_t count) {
    std::string bytes(static_cast<size_t>(count), '\0');
    in.seekg(from);
    if (count && !in.read(bytes.data(), count))
      throw std::runtime_error(path + ": cannot be read");
    return bytes;
  };
  auto general = [](bool text) { return text ? "txt" : "unknown"; };

  if (size == 0)
    return {.label = "empty", .tokens = {}};
  const int64_t block = std::min(size, config.blockSize);
  const std::string first = read(0, block), last = read(size - block, block);
  const bool text = isUtf8(first);
  if (size < config.minFileSize)
    return {.label = general(text), .tokens = {}};

  // White space at the outer ends says nothing.
  constexpr std::string_view space(" \t\n\r\v\f");
  std::string_view beg(first), end(last);
  beg.remove_prefix(std::min(beg.find_first_not_of(space), beg.size()));
  end.remove_suffix(end.size() - (end.find_last_not_of(space) + 1)); // npos + 1 is 0: nothing but space
  beg = beg.substr(0, static_cast<size_t>(config.begSize));
  if (end.size() > static_cast<size_t>(config.endSize))
    end.remove_prefix(end.size() - static_cast<size_t>(config.endSize));
  if (static_cast<int64_t>(beg.size()) < config.minFileSize)
    return {.label = general(text), .tokens = {}};

  // Padding stands behind a short beginning and before a short end.
  Features f;
  f.looksLikeText = text;
  f.tokens.assign(static_cast<size_t>(config.featureSize()), config.paddingToken);
  auto token = [](char c) { return static_cast<int32_t>(static_cast<unsigned char>(c)); };
  std::transform(beg.begin(), beg.end(), f.tokens.begin(), token);
  std::transform(end.begin(), end.end(), f.tokens.end() - static_cast<long>(end.size()), token);
  return f;
}

Verdict judge(const float *scores, const Features &features, const MagikaConfig &config) {
  const size_t best = static_cast<size_t>(std::max_element(scores, scores + config.labels.size()) - scores);
  const std::string &raw = config.labels[best];
  auto renamed = config.overwrite.find(raw);
  const std::string &label = renamed == config.overwrite.end() ? raw : renamed->second;
  auto threshold = config.thresholds.find(raw);
  const double score = scores[best];
  if (score >= (threshold == config.thresholds.end() ? config.mediumThreshold : threshold->second))
    return {label, score};
  // Not sure enough for a type, but text or not is still known: from the label, else from the bytes.
  bool text = config.textLabels.empty() ? features.looksLikeText : config.textLabels.contains(label);
  return {text ? "txt" : "unknown", score};
}
