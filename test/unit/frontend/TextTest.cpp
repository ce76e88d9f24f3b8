// Tokens: those of Hugging Face's tokenizers, and what is said of files that are none.
#include "Files.h"

#include <tressel/text.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tressel;
using test::Folder;
using Tokens = std::vector<int64_t>;

namespace {

const char *const kVocabulary = TRESSEL_SOURCE_DIR "/build/models/minilm/vocab.txt";

int oracle(const std::string &arguments) {
  return WEXITSTATUS(std::system((std::string(test::kPython) + " " TRESSEL_SOURCE_DIR "/test/oracle/tokens.py " + arguments).c_str()));
}
template <typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}

class WithTokenizers : public testing::Test {
protected:
  void SetUp() override {
    if (!std::filesystem::exists(kVocabulary))
      GTEST_SKIP() << kVocabulary << " is missing: run ./dev setup";
    const int status = oracle("write " + folder.path.string() + " " + kVocabulary + " " TRESSEL_SOURCE_DIR "/README.md " TRESSEL_SOURCE_DIR "/docs/architecture.md");
    if (status == 77 || status == 127)
      GTEST_SKIP() << "the wheel tokenizers is missing: run ./dev setup";
    ASSERT_EQ(status, 0);
    const std::string all = test::get(folder / "lines.txt");
    for (size_t begin = 0; begin <= all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      lines.push_back(all.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  template <typename Encode> void compare(const std::string &file, Encode encode) {
    const auto want = nlohmann::json::parse(test::get(folder / file));
    ASSERT_EQ(want.size(), lines.size());
    int wrong = 0;
    for (size_t i = 0; i < lines.size(); ++i)
      if (const Tokens got = encode(lines[i]); got != want[i].get<Tokens>() && ++wrong <= 3)
        ADD_FAILURE() << file << ", line " << i + 1 << ": '" << lines[i] << "' has tokens " << nlohmann::json(got) << ", not " << want[i];
    EXPECT_EQ(wrong, 0);
  }
  Folder folder;
  std::vector<std::string> lines;
};

TEST_F(WithTokenizers, WordPiecesAreTheirs) {
  for (bool lower : {true, false}) {
    const text::WordPiece words(kVocabulary, {.lower = lower});
    compare(lower ? "small.json" : "cased.json", [&](const std::string &line) { return words.encode(line); });
  }
}

TEST_F(WithTokenizers, BytePairsAreTheirs) {
  const auto theirs = text::ByteBPE::load(folder / "learned-vocab.json", folder / "learned-merges.txt");
  compare("pairs.json", [&](const std::string &line) { return theirs.encode(line); });
  for (const std::string &line : lines)
    ASSERT_EQ(theirs.decode(theirs.encode(line)), line);

  const auto own = text::ByteBPE::train(test::get(TRESSEL_SOURCE_DIR "/docs/architecture.md"), 700);
  EXPECT_EQ(own.size(), 700);
  own.save(folder / "own-vocab.json", folder / "own-merges.txt");
  nlohmann::json tokens = nlohmann::json::array();
  for (const std::string &line : lines)
    tokens.push_back(own.encode(line));
  test::put(folder / "own.json", tokens.dump());
  EXPECT_EQ(oracle("check " + folder.path.string()), 0);
  const auto again = text::ByteBPE::load(folder / "own-vocab.json", folder / "own-merges.txt");
  for (const std::string &line : lines)
    ASSERT_EQ(again.encode(line), own.encode(line));
}

TEST(ByteBPE, KeepsEveryByte) {
  const auto pairs = text::ByteBPE::train("the cat and the hat and the bat", 300);
  EXPECT_LT(pairs.size(), 300); // no pair is left that stands there twice
  EXPECT_EQ(pairs.encode("the").size(), 1u);
  data::Rng random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes;
    for (int64_t k = 0, n = random.below(40); k < n; ++k)
      bytes += static_cast<char>(random.below(3) ? random.below(256) : ' ');
    ASSERT_EQ(pairs.decode(pairs.encode(bytes)), bytes);
  }
  EXPECT_NE(messageOf([&] { text::ByteBPE::train("a", 100); }).find("the bytes alone are 256"), std::string::npos);
  const Tokens none{pairs.size()};
  EXPECT_NE(messageOf([&] { pairs.decode(none); }).find("there is no token"), std::string::npos);
}

TEST(ByteBPE, FilesThatDoNotFitAreSaid) {
  const Folder folder;
  const auto pairs = text::ByteBPE::train("the the then", 260);
  pairs.save(folder / "v.json", folder / "m.txt");
  const std::string vocabulary = test::get(folder / "v.json"), merges = test::get(folder / "m.txt");
  auto refuses = [&](const std::string &v, const std::string &m, std::initializer_list<std::string> says) {
    test::put(folder / "v.json", v);
    test::put(folder / "m.txt", m);
    test::expectInputError([&] { text::ByteBPE::load(folder / "v.json", folder / "m.txt"); }, says);
  };
  refuses("[1]", merges, {"v.json: no JSON object", "TextTest.cpp"});
  refuses("{\"a\": 1}", merges, {"v.json: the token 'a' has no number of its own below 1"});
  refuses("{\"a\": 0}", merges, {"v.json: no token for the byte 0"});
  refuses(vocabulary, "#version: 0.2\nt h e\n", {"m.txt:2: a merge is two tokens"});
  refuses(vocabulary, "#version: 0.2\nt qq\n", {"m.txt:2: the vocabulary has no token 'qq'"});
  refuses(vocabulary, merges + merges.substr(merges.find('\n') + 1), {"the merge is there twice"});
  refuses(vocabulary.substr(0, 40), merges, {"v.json: no JSON object"});
  test::expectInputError([&] { text::ByteBPE::load(folder / "none.json", folder / "m.txt"); }, {"none.json"});
}

TEST(WordPiece, CutsWordsIntoTheLongestPieces) {
  const Folder folder;
  test::put(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\naff\n,\n##\xC3\xA4r\r\n");
  const text::WordPiece words(folder / "vocab.txt");
  EXPECT_EQ(words.size(), 10);
  EXPECT_EQ(words.encode("UNAFFable, aff unb", {.first = "[CLS]", .last = "[SEP]"}), (Tokens{2, 4, 5, 6, 8, 7, 1, 3}));
  EXPECT_EQ(words.decode(Tokens{4, 5, 6, 8, 7}), "unaffable , aff");
  EXPECT_EQ(text::WordPiece(folder / "vocab.txt", {.lower = false}).encode("un\xC3\xA4r \xFF\xFEun"), (Tokens{4, 9, 4}));
  EXPECT_EQ(words.id("[PAD]"), 0);
  EXPECT_NE(messageOf([&] { words.id("none"); }).find("no token 'none'"), std::string::npos);
  EXPECT_NE(messageOf([&] { words.decode(Tokens{-1}); }).find("there is no token -1"), std::string::npos);

  test::put(folder / "twice.txt", "[UNK]\na\na\n");
  test::expectInputError([&] { text::WordPiece words(folder / "twice.txt"); }, {"twice.txt:3: the token 'a' is there twice", "TextTest.cpp"});
  test::put(folder / "none.txt", "a\nb\n");
  test::expectInputError([&] { text::WordPiece words(folder / "none.txt"); }, {"no line '[UNK]'"});
  test::expectInputError([&] { text::WordPiece words(folder / "missing.txt"); }, {"missing.txt"});
}

TEST(TokenBatch, PadsAndCuts) {
  const std::vector<Tokens> texts{{1, 2, 3, 4, 5}, {6}, {}};
  const text::TokenBatch all = text::batch(texts, {.pad = 9});
  EXPECT_EQ(all.tokens.to_vector<int64_t>(), (Tokens{1, 2, 3, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(cast(all.valid, i64).to_vector<int64_t>(), (Tokens{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const text::TokenBatch cut = text::batch(texts, {.pad = 9, .most = 3, .length = 4});
  EXPECT_EQ(cut.tokens.to_vector<int64_t>(), (Tokens{1, 2, 5, 9, 6, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_NE(messageOf([&] { text::batch(texts, {.length = 4}); }).find("a text of 5 tokens does not fit into 4"), std::string::npos);
  EXPECT_NE(messageOf([&] { text::batch({}); }).find("at least one text"), std::string::npos);
}

} // namespace
