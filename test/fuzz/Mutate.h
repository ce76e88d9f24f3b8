// Changes of bytes and of text, from a seed: what the seeded programs use in place of libFuzzer's.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tressel::fuzz {

class Mutator {
public:
  using Bytes = std::vector<uint8_t>;

  Mutator(uint64_t seed, std::vector<std::string> dictionary, const std::vector<Bytes> &corpus)
      : random_(seed), dictionary_(std::move(dictionary)), corpus_(corpus) {}

  /// One to six changes in a row.
  void mutate(Bytes &bytes, size_t maxSize);
  /// One change, whatever comes.
  void once(Bytes &bytes, size_t maxSize);

  /// Below n, which is above 0.
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

private:
  void overwriteNumber(Bytes &bytes);
  void replaceDigits(Bytes &bytes);
  void insertPiece(Bytes &bytes, const uint8_t *from, size_t length);
  std::pair<size_t, size_t> range(const Bytes &bytes, size_t longest);

  std::mt19937_64 random_;
  std::vector<std::string> dictionary_;
  const std::vector<Bytes> &corpus_; ///< other inputs, to take pieces from
};

/// The words of a dictionary in libFuzzer's form: lines of "word" or name="word" with \\, \" and \xAB inside.
std::vector<std::string> readDictionary(const std::string &path);

} // namespace tressel::fuzz
