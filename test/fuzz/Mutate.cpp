#include "test/fuzz/Mutate.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

namespace tressel::fuzz {

/// Sizes and offsets that code gets wrong: around zero, around the limits of types, large but harmless by themselves.
static constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 7, 8, 16, 63, 64, 65, 127, 128, 255, 256, 1000, 4096, 65535, 65536,
                                       1 << 20, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min(),
                                       int64_t(1) << 32, int64_t(1) << 40, int64_t(1) << 62, std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min() + 1};

std::pair<size_t, size_t> Mutator::range(const Bytes &bytes, size_t longest) {
  size_t at = below(bytes.size());
  size_t length = 1 + below(std::min(longest, bytes.size() - at));
  return {at, length};
}

void Mutator::insertPiece(Bytes &bytes, const uint8_t *from, size_t length) {
  Bytes piece(from, from + length); // it may lie in `bytes`
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size() + 1)), piece.begin(), piece.end());
}

void Mutator::overwriteNumber(Bytes &bytes) {
  static constexpr size_t widths[] = {1, 2, 4, 8};
  size_t width = std::min(widths[below(4)], bytes.size());
  size_t at = below(bytes.size() - width + 1);
  int64_t number = kNumbers[below(std::size(kNumbers))];
  if (below(2)) { // near what is there
    number = 0;
    std::memcpy(&number, &bytes[at], width);
    number += static_cast<int64_t>(below(9)) - 4;
  }
  std::memcpy(&bytes[at], &number, width);
}

void Mutator::replaceDigits(Bytes &bytes) {
  auto isDigit = [](uint8_t c) { return c >= '0' && c <= '9'; };
  auto begin = std::find_if(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())), bytes.end(), isDigit);
  if (begin == bytes.end())
    return;
  auto end = std::find_if_not(begin, bytes.end(), isDigit);
  std::string text = std::to_string(kNumbers[below(std::size(kNumbers))]);
  auto at = bytes.erase(begin, end);
  bytes.insert(at, text.begin(), text.end());
}

void Mutator::once(Bytes &bytes, size_t maxSize) {
  if (bytes.empty()) {
    if (maxSize)
      bytes.push_back(static_cast<uint8_t>(below(256)));
    return;
  }
  switch (below(12)) {
  case 0:
    bytes[below(bytes.size())] ^= static_cast<uint8_t>(1 << below(8));
    break;
  case 1:
    bytes[below(bytes.size())] = static_cast<uint8_t>(below(256));
    break;
  case 2:
  case 3:
    overwriteNumber(bytes);
    break;
  case 4:
  case 5:
    replaceDigits(bytes);
    break;
  case 6: {
    auto [at, length] = range(bytes, bytes.size() / 4 + 1);
    auto from = bytes.begin() + static_cast<ptrdiff_t>(at);
    bytes.erase(from, from + static_cast<ptrdiff_t>(length));
    break;
  }
  case 7: { // a piece again, sometimes very often: nesting, repetition
    auto [at, length] = range(bytes, 64);
    Bytes piece(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + length));
    size_t times = below(8) ? 1 : 1 + below(2000);
    Bytes all;
    for (size_t i = 0; i < times && all.size() < maxSize; ++i)
      all.insert(all.end(), piece.begin(), piece.end());
    insertPiece(bytes, all.data(), all.size());
    break;
  }
  case 8: {
    const Bytes &other = corpus_[below(corpus_.size())];
    if (other.empty())
      break;
    auto [at, length] = range(other, 256);
    insertPiece(bytes, other.data() + at, length);
    break;
  }
  case 9: { // two places change places
    auto [a, n] = range(bytes, 64);
    auto [b, m] = range(bytes, n);
    for (size_t i = 0; i < std::min(n, m); ++i)
      std::swap(bytes[a + i], bytes[b + i]);
    break;
  }
  case 10:
    if (!dictionary_.empty()) {
      const std::string &word = dictionary_[below(dictionary_.size())];
      if (below(2) && word.size() <= bytes.size())
        std::memcpy(&bytes[below(bytes.size() - word.size() + 1)], word.data(), word.size());
      else
        insertPiece(bytes, reinterpret_cast<const uint8_t *>(word.data()), word.size());
    }
    break;
  case 11:
    bytes.resize(below(bytes.size() + 1));
    break;
  }
  if (bytes.size() > maxSize)
    bytes.resize(maxSize);
}

void Mutator::mutate(Bytes &bytes, size_t maxSize) {
  for (size_t i = 0, n = 1 + below(6); i < n; ++i)
    once(bytes, maxSize);
}

std::vector<std::string> readDictionary(const std::string &path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t begin = line.find('"'), end = line.rfind('"');
    if (line.starts_with('#') || begin == std::string::npos || end == begin)
      continue;
    std::string word;
    for (size_t i = begin + 1; i < end; ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[i + 1] == 'x' && i + 3 < end) {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        word += line[++i];
      }
    }
    words.push_back(word);
  }
  return words;
}

} // namespace tressel::fuzz
