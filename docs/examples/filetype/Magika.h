// What surrounds the network of magika: which bytes of a file it looks at, and how its scores become a label. All
// numbers come from the configuration that is shipped with the model.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

struct MagikaConfig {
  int64_t begSize = 0, endSize = 0; ///< tokens from the file's beginning and end
  int64_t blockSize = 0;            ///< bytes read at either end
  int64_t minFileSize = 0;          ///< shorter files are not shown to the network
  int32_t paddingToken = 256;       ///< stands where there is no byte
  double mediumThreshold = 0.5;     ///< for labels without a threshold of their own
  std::vector<std::string> labels;  ///< by output of the network
  std::map<std::string, double> thresholds;
  std::map<std::string, std::string> overwrite; ///< labels that users see under another name
  std::set<std::string> textLabels;             ///< labels of text; empty if the knowledge base is not at hand

  /// Reads `config.min.json`, and `content_types_kb.min.json` if it is there. Throws std::runtime_error.
  static MagikaConfig load(const std::string &folder);
  int64_t featureSize() const { return begSize + endSize; }
};

struct Features {
  std::string label;           ///< set when no network is needed: "empty", "txt", ...
  std::vector<int32_t> tokens; ///< else the network's input
  bool looksLikeText = false;  ///< the blocks read are valid UTF-8
};

/// Reads both ends of a file. Throws std::runtime_error if it cannot be read.
Features extractFeatures(const std::string &path, const MagikaConfig &config);

struct Verdict {
  std::string label;
  double score = 1;
};
/// The label with the highest score, or a general one if that score is below its threshold.
Verdict judge(const float *scores, const Features &features, const MagikaConfig &config);
