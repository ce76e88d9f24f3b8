#include "frontend/data/Unicode.h"
#include "frontend/io/AtLine.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/File.h"

#include <tressel/text.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace tressel::text {
namespace {

constexpr size_t kLongestWord = 100; // characters

/// Without control characters; all kinds of blanks become ' ', with one on each side of a Chinese character; lower case
/// without accents if wanted.
std::string normalized(std::string_view text, bool lowers) {
  std::string clean;
  while (!text.empty()) {
    auto [code, bytes] = firstOf(text);
    text.remove_prefix(bytes);
    code = code < 0 ? 0xFFFD : code;
    if (code == 0 || code == 0xFFFD || isControl(code))
      continue;
    if (isSpace(code)) {
      clean += ' ';
    } else if (isChinese(code)) {
      clean += ' ';
      append(clean, code);
      clean += ' ';
    } else {
      append(clean, code);
    }
  }
  if (!lowers)
    return clean;
  const std::string parted = decomposed(clean);
  std::string small;
  for (std::string_view left = parted; !left.empty();) {
    const auto [code, bytes] = firstOf(left);
    left.remove_prefix(bytes);
    if (!isMark(code))
      append(small, lower(code));
  }
  return small;
}

} // namespace

struct WordPiece::Impl {
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, int64_t> ids; ///< of the strings above, which stay where they are
  int64_t unknown = 0;
  bool lowers;

  int64_t find(std::string_view token) const {
    const auto at = ids.find(token);
    return at == ids.end() ? -1 : at->second;
  }
  int64_t need(std::string_view token) const {
    const int64_t id = find(token);
    if (id < 0)
      throw Error(Error::Details{.message = "the vocabulary has no token '" + std::string(token) + "'", .op = "WordPiece"});
    return id;
  }

  /// Cuts a word into the longest pieces, from the front.
  void cut(std::string_view word, std::vector<int64_t> &out) const {
    std::vector<size_t> ends; // of its characters
    for (size_t at = 0; at < word.size(); ends.push_back(at))
      at += firstOf(word.substr(at)).bytes;
    if (ends.size() > kLongestWord) {
      out.push_back(unknown);
      return;
    }
    const size_t before = out.size();
    std::string piece;
    for (size_t begin = 0, first = 0; begin < word.size();) {
      int64_t found = -1;
      size_t last = ends.size();
      for (; last > first && found < 0; --last) {
        piece = begin > 0 ? "##" : "";
        piece += word.substr(begin, ends[last - 1] - begin);
        found = find(piece);
      }
      if (found < 0) {
        out.resize(before);
        out.push_back(unknown);
        return;
      }
      out.push_back(found);
      first = last + 1;
      begin = ends[last];
    }
  }
};

WordPiece::WordPiece(const std::string &vocabulary, WordPieceOptions options, std::source_location where) {
  io::atLine(where, "text::WordPiece", [&] {
    const runtime::InputFile file(vocabulary);
    std::string all(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(all)));
    auto impl = std::make_shared<Impl>();
    impl->lowers = options.lower;
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      impl->tokens.push_back(all.substr(begin, end - begin));
      if (impl->tokens.back().ends_with('\r'))
        impl->tokens.back().pop_back();
      begin = end + 1;
    }
    for (size_t i = 0; i < impl->tokens.size(); ++i)
      if (!impl->ids.emplace(impl->tokens[i], static_cast<int64_t>(i)).second)
        throw InputError(vocabulary + ":" + std::to_string(i + 1) + ": the token '" + impl->tokens[i] + "' is there twice");
    impl->unknown = impl->find("[UNK]");
    if (impl->unknown < 0)
      throw InputError(vocabulary + ": no vocabulary of word pieces: it has no line '[UNK]'");
    impl_ = std::move(impl);
  });
}

std::vector<int64_t> WordPiece::encode(std::string_view text, const Around &around) const {
  std::vector<int64_t> out;
  if (!around.first.empty())
    out.push_back(impl_->need(around.first));
  const std::string all = normalized(text, impl_->lowers);
  std::string word;
  auto flush = [&] {
    if (!word.empty())
      impl_->cut(word, out);
    word.clear();
  };
  for (std::string_view left = all; !left.empty();) {
    const auto [code, bytes] = firstOf(left);
    if (isSpace(code)) {
      flush();
    } else if (isPunctuation(code)) {
      flush();
      impl_->cut(left.substr(0, bytes), out);
    } else {
      word += left.substr(0, bytes);
    }
    left.remove_prefix(bytes);
  }
  flush();
  if (!around.last.empty())
    out.push_back(impl_->need(around.last));
  return out;
}

std::string WordPiece::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (int64_t id : tokens) {
    if (id < 0 || id >= size())
      throw Error(Error::Details{.message = "there is no token " + std::to_string(id) + " among " + std::to_string(size()), .op = "WordPiece"});
    const std::string &token = impl_->tokens[static_cast<size_t>(id)];
    if (token.starts_with("##") && !text.empty())
      text += token.substr(2);
    else
      text += (text.empty() ? "" : " ") + token;
  }
  return text;
}

int64_t WordPiece::size() const { return static_cast<int64_t>(impl_->tokens.size()); }
int64_t WordPiece::id(std::string_view token) const { return impl_->need(token); }

TokenBatch batch(std::span<const std::vector<int64_t>> texts, TokenBatchOptions options, std::source_location where) {
  auto refuse = [&](const std::string &what) { detail::fail<Error>(what, detail::toLoc(where), "text::batch"); };
  if (texts.empty())
    refuse("a batch has at least one text");
  if (options.most < 0 || options.length < 0)
    refuse("lengths are not negative");
  auto lengthOf = [&](const std::vector<int64_t> &text) {
    const auto all = static_cast<int64_t>(text.size());
    return options.most > 0 ? std::min(all, options.most) : all;
  };
  int64_t longest = 1;
  for (const std::vector<int64_t> &text : texts)
    longest = std::max(longest, lengthOf(text));
  if (options.length > 0 && longest > options.length)
    refuse("a text of " + std::to_string(longest) + " tokens does not fit into " + std::to_string(options.length));
  const int64_t length = options.length > 0 ? options.length : longest;
  const Shape shape{static_cast<int64_t>(texts.size()), length};
  TokenBatch made{detail::allocateTensor({i64, shape}, detail::toLoc(where), "text::batch"), detail::allocateTensor({bool_, shape}, detail::toLoc(where), "text::batch")};
  auto *tokens = static_cast<int64_t *>(made.tokens.impl()->storage->data());
  auto *valid = static_cast<uint8_t *>(made.valid.impl()->storage->data());
  for (const std::vector<int64_t> &text : texts) {
    const int64_t mine = lengthOf(text);
    for (int64_t i = 0; i < length; ++i) {
      // A text that is cut off keeps its last token.
      *tokens++ = i >= mine ? options.pad : i + 1 == mine ? text.back() : text[static_cast<size_t>(i)];
      *valid++ = i < mine;
    }
  }
  return made;
}

} // namespace tressel::text
