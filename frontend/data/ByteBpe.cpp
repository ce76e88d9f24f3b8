#include "frontend/data/Unicode.h"
#include "frontend/io/AtLine.h"
#include "tressel/runtime/File.h"

#include <tressel/text.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>

namespace tressel::text {
namespace {

constexpr int64_t kBytes = 256;

/// The bytes in the order of their token numbers, and the character that represents each in files: printable bytes are written as themselves, the others as
/// characters from U+0100 on.
struct ByteNames {
  std::array<uint8_t, kBytes> byteOf;
  std::array<int64_t, kBytes> idOf;
  std::array<std::string, kBytes> nameOf; ///< by byte
  std::map<std::string, uint8_t, std::less<>> byName;

  ByteNames() {
    std::vector<int> printable, others;
    for (int b = 0; b < kBytes; ++b)
      ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? printable : others).push_back(b);
    for (int b : printable)
      append(nameOf[static_cast<size_t>(b)], b);
    for (size_t i = 0; i < others.size(); ++i)
      append(nameOf[static_cast<size_t>(others[i])], static_cast<int32_t>(256 + i));
    printable.insert(printable.end(), others.begin(), others.end());
    for (size_t i = 0; i < printable.size(); ++i)
      byteOf[i] = static_cast<uint8_t>(printable[i]), idOf[static_cast<size_t>(printable[i])] = static_cast<int64_t>(i);
    for (size_t b = 0; b < kBytes; ++b)
      byName.emplace(nameOf[b], static_cast<uint8_t>(b));
  }
  std::string named(std::string_view bytes) const {
    std::string name;
    for (char c : bytes)
      name += nameOf[static_cast<uint8_t>(c)];
    return name;
  }
  /// Nothing for a name with other characters.
  std::optional<std::string> bytesOf(std::string_view name) const {
    std::string bytes;
    while (!name.empty()) {
      const size_t length = firstOf(name).bytes;
      const auto at = byName.find(name.substr(0, length));
      if (at == byName.end())
        return std::nullopt;
      bytes += static_cast<char>(at->second);
      name.remove_prefix(length);
    }
    return bytes;
  }
};
const ByteNames &byteNames() {
  static const ByteNames names;
  return names;
}

/// The length of the next word; merges do not cross words. GPT-2's words: 's 't 're 've 'm 'll 'd; or letters, or
/// numbers, or other characters, each with one blank in front; or blanks, the last of which belongs to the word that
/// follows.
size_t lengthOfWord(std::string_view text) {
  for (std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending))
      return ending.size();
  enum Kind { Letter, Number, Space, Other };
  auto kindAt = [&](size_t at) {
    const int32_t code = firstOf(text.substr(at)).code;
    return code < 0 ? Other : isLetter(code) ? Letter : isNumber(code) ? Number : isSpace(code) ? Space : Other;
  };
  auto run = [&](size_t from, Kind kind) {
    size_t at = from;
    while (at < text.size() && kindAt(at) == kind)
      at += firstOf(text.substr(at)).bytes;
    return at;
  };
  const size_t begin = text[0] == ' ' ? 1 : 0;
  if (begin < text.size())
    if (const Kind kind = kindAt(begin); kind != Space)
      return run(begin, kind);
  const size_t end = run(0, Space);
  if (end == text.size())
    return end;
  size_t last = 0; // begin of the last blank
  for (size_t at = 0; at < end; at += firstOf(text.substr(at)).bytes)
    last = at;
  return last > 0 ? last : end;
}

using Pair = std::pair<int64_t, int64_t>;

} // namespace

struct ByteBPE::Impl {
  std::vector<std::string> tokens; ///< their bytes
  std::map<Pair, std::pair<int64_t, int64_t>> merges; ///< rank, and the token that a pair becomes
  std::vector<Pair> order;
  std::array<int64_t, kBytes> idOfByte = byteNames().idOf;

  void encodeWord(std::string_view word, std::vector<int64_t> &out) const {
    std::vector<int64_t> parts;
    for (char c : word)
      parts.push_back(idOfByte[static_cast<uint8_t>(c)]);
    for (;;) {
      int64_t rank = INT64_MAX, made = -1;
      Pair best;
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        if (const auto at = merges.find({parts[i], parts[i + 1]}); at != merges.end() && at->second.first < rank)
          rank = at->second.first, made = at->second.second, best = at->first;
      if (made < 0)
        break;
      size_t to = 0;
      for (size_t i = 0; i < parts.size();)
        if (i + 1 < parts.size() && Pair(parts[i], parts[i + 1]) == best)
          parts[to++] = made, i += 2;
        else
          parts[to++] = parts[i++];
      parts.resize(to);
    }
    out.insert(out.end(), parts.begin(), parts.end());
  }
};

ByteBPE ByteBPE::train(std::string_view text, int64_t size, std::source_location where) {
  if (size < kBytes || size > INT32_MAX)
    detail::fail<Error>("a vocabulary of " + std::to_string(size) + " tokens was asked for", detail::toLoc(where), "ByteBPE::train", "the bytes alone are 256");
  auto impl = std::make_shared<Impl>();
  const ByteNames &names = byteNames();
  for (int64_t i = 0; i < kBytes; ++i)
    impl->tokens.emplace_back(1, static_cast<char>(names.byteOf[static_cast<size_t>(i)]));

  struct Word {
    std::vector<int64_t> parts;
    int64_t count;
  };
  std::map<std::string_view, int64_t> counted; // sorted: the same for the same text
  for (std::string_view left = text; !left.empty();) {
    const size_t length = lengthOfWord(left);
    ++counted[left.substr(0, length)];
    left.remove_prefix(length);
  }
  std::vector<Word> words;
  std::map<Pair, int64_t> counts;
  std::map<Pair, std::set<size_t>> places; // words that may have the pair
  for (const auto &[word, count] : counted) {
    Word made{{}, count};
    for (char c : word)
      made.parts.push_back(names.idOf[static_cast<uint8_t>(c)]);
    for (size_t i = 0; i + 1 < made.parts.size(); ++i) {
      const Pair pair{made.parts[i], made.parts[i + 1]};
      counts[pair] += count;
      places[pair].insert(words.size());
    }
    words.push_back(std::move(made));
  }
  // The most frequent pair comes first, ties by the earlier tokens. An entry whose count is stale is pushed again with
  // the current count.
  struct Entry {
    int64_t count;
    Pair pair;
    bool operator<(const Entry &other) const { return count != other.count ? count < other.count : pair > other.pair; }
  };
  std::priority_queue<Entry> queue;
  for (const auto &[pair, count] : counts)
    queue.push({count, pair});
  while (static_cast<int64_t>(impl->tokens.size()) < size && !queue.empty()) {
    const Entry top = queue.top();
    queue.pop();
    if (const int64_t now = counts[top.pair]; now != top.count) {
      if (now > 0)
        queue.push({now, top.pair});
      continue;
    }
    if (top.count < 2)
      break;
    const auto made = static_cast<int64_t>(impl->tokens.size());
    impl->tokens.push_back(impl->tokens[static_cast<size_t>(top.pair.first)] + impl->tokens[static_cast<size_t>(top.pair.second)]);
    impl->merges[top.pair] = {static_cast<int64_t>(impl->order.size()), made};
    impl->order.push_back(top.pair);
    std::set<Pair> changed;
    for (size_t w : places[top.pair]) {
      Word &word = words[w];
      auto add = [&](const Pair &pair, int64_t by) {
        counts[pair] += by;
        if (by > 0)
          places[pair].insert(w), changed.insert(pair);
      };
      std::vector<int64_t> next;
      for (size_t i = 0; i < word.parts.size();)
        if (i + 1 < word.parts.size() && Pair(word.parts[i], word.parts[i + 1]) == top.pair)
          next.push_back(made), i += 2;
        else
          next.push_back(word.parts[i++]);
      for (size_t i = 0; i + 1 < word.parts.size(); ++i)
        add({word.parts[i], word.parts[i + 1]}, -word.count);
      for (size_t i = 0; i + 1 < next.size(); ++i)
        add({next[i], next[i + 1]}, word.count);
      word.parts = std::move(next);
    }
    places.erase(top.pair);
    for (const Pair &pair : changed)
      queue.push({counts[pair], pair});
  }
  return ByteBPE(std::move(impl));
}

ByteBPE ByteBPE::load(const std::string &vocabulary, const std::string &merges, std::source_location where) {
  return io::atLine(where, "text::ByteBPE", [&] {
    auto read = [](const std::string &path) {
      const runtime::InputFile file(path);
      std::string text(file.size(), '\0');
      file.read(0, std::as_writable_bytes(std::span(text)));
      return text;
    };
    auto impl = std::make_shared<Impl>();
    const nlohmann::json object = nlohmann::json::parse(read(vocabulary), nullptr, false);
    if (!object.is_object())
      throw InputError(vocabulary + ": no JSON object of tokens and their numbers");
    const auto size = object.size();
    impl->tokens.resize(size);
    std::vector<bool> seen(size, false);
    std::map<std::string, int64_t, std::less<>> ids; // by name
    for (const auto &[name, number] : object.items()) {
      const uint64_t id = number.is_number_unsigned() ? number.get<uint64_t>() : size;
      if (id >= size || seen[id])
        throw InputError(vocabulary + ": the token '" + name + "' has no number of its own below " + std::to_string(size));
      seen[id] = true;
      // Others, such as "<|endoftext|>", are special tokens, which encoding never gives.
      impl->tokens[id] = byteNames().bytesOf(name).value_or(name);
      ids.emplace(name, static_cast<int64_t>(id));
    }
    for (size_t b = 0; b < kBytes; ++b) {
      const auto at = ids.find(byteNames().nameOf[b]);
      if (at == ids.end())
        throw InputError(vocabulary + ": no token for the byte " + std::to_string(b));
      impl->idOfByte[b] = at->second;
    }
    const std::string text = read(merges);
    int64_t line = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view merge(text.data() + begin, end - begin);
      begin = end + 1;
      ++line;
      if (merge.ends_with('\r'))
        merge.remove_suffix(1);
      if (merge.empty() || (line == 1 && merge.starts_with("#version")))
        continue;
      auto refuse = [&](const std::string &what) { throw InputError(merges + ":" + std::to_string(line) + ": " + what); };
      const size_t blank = merge.find(' ');
      if (blank == merge.npos || merge.find(' ', blank + 1) != merge.npos)
        refuse("a merge is two tokens with a blank between them");
      auto idOf = [&](std::string_view name) {
        const auto at = ids.find(name);
        if (at == ids.end())
          refuse("the vocabulary has no token '" + std::string(name) + "'");
        return at->second;
      };
      const Pair pair{idOf(merge.substr(0, blank)), idOf(merge.substr(blank + 1))};
      const int64_t made = idOf(std::string(merge.substr(0, blank)) + std::string(merge.substr(blank + 1)));
      if (!impl->merges.emplace(pair, std::pair(static_cast<int64_t>(impl->order.size()), made)).second)
        refuse("the merge is there twice");
      impl->order.push_back(pair);
    }
    return ByteBPE(std::move(impl));
  });
}

void ByteBPE::save(const std::string &vocabulary, const std::string &merges, std::source_location where) const {
  io::atLine(where, "text::ByteBPE", [&] {
    const ByteNames &names = byteNames();
    nlohmann::json object = nlohmann::json::object();
    for (size_t i = 0; i < impl_->tokens.size(); ++i)
      object[names.named(impl_->tokens[i])] = i;
    std::string lines = "#version: 0.2\n";
    for (const auto &[first, second] : impl_->order)
      lines += names.named(impl_->tokens[static_cast<size_t>(first)]) + " " + names.named(impl_->tokens[static_cast<size_t>(second)]) + "\n";
    const std::string text = object.dump();
    runtime::writeFile(vocabulary, std::as_bytes(std::span(text)));
    runtime::writeFile(merges, std::as_bytes(std::span(lines)));
  });
}

std::vector<int64_t> ByteBPE::encode(std::string_view text) const {
  std::vector<int64_t> out;
  while (!text.empty()) {
    const size_t length = lengthOfWord(text);
    impl_->encodeWord(text.substr(0, length), out);
    text.remove_prefix(length);
  }
  return out;
}

std::string ByteBPE::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (int64_t id : tokens) {
    if (id < 0 || id >= size())
      throw Error(Error::Details{.message = "there is no token " + std::to_string(id) + " among " + std::to_string(size()), .op = "ByteBPE"});
    text += impl_->tokens[static_cast<size_t>(id)];
  }
  return text;
}

int64_t ByteBPE::size() const { return static_cast<int64_t>(impl_->tokens.size()); }

} // namespace tressel::text
