// Comma-separated values.
#include "Files.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace tressel;
using test::Folder;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

namespace {

TEST(Csv, NumbersAndWords) {
  const Folder folder;
  test::put(folder / "a.csv", "\xEF\xBB\xBFwidth, height ,kind\r\n1,2.5,cat\r\n\r\n -3e2 ,+4,\"dog, \"\"big\"\"\nbrown\"\r\n.5,1,cat");
  const data::Table t = data::read_csv(folder / "a.csv", {.words = {"kind"}});
  EXPECT_EQ(t.columns, (Words{"width", "height"}));
  EXPECT_EQ(t.numbers.type().str(), "f32[3, 2]");
  EXPECT_EQ(t.numbers.to_vector<float>(), (Floats{1, 2.5f, -300, 4, 0.5f, 1}));
  ASSERT_EQ(t.kinds.size(), 1u);
  EXPECT_EQ(t.kinds[0].column, "kind");
  EXPECT_EQ(t.kinds[0].words, (Words{"cat", "dog, \"big\"\nbrown"}));
  EXPECT_EQ(t.kinds[0].labels.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0}));

  const auto set = data::rows(data::Sample{t.numbers, t.kinds[0].labels});
  EXPECT_EQ(set[1].label.item<int64_t>(), 1);
}

TEST(Csv, OtherForms) {
  const Folder folder;
  test::put(folder / "a.tsv", "1\t2\n\t4\n");
  const data::Table t = data::read_csv(folder / "a.tsv", {.separator = '\t', .header = false, .missing = NAN});
  EXPECT_EQ(t.columns, (Words{"0", "1"}));
  const Floats numbers = t.numbers.to_vector<float>();
  EXPECT_TRUE(std::isnan(numbers[2]));
  EXPECT_EQ(numbers[3], 4);
  const data::Table words = data::read_csv(folder / "a.tsv", {.separator = '\t', .header = false, .words = {"0", "1"}});
  EXPECT_EQ(words.numbers.type().str(), "f32[2, 0]");
  EXPECT_EQ(words.kinds[0].words, (Words{"", "1"}));
}

TEST(Csv, MistakesAreSaidWithTheirLine) {
  const Folder folder;
  auto refuses = [&](const std::string &text, std::initializer_list<std::string> says, data::CsvOptions options = {}) {
    SCOPED_TRACE(text);
    test::put(folder / "a.csv", text);
    test::expectInputError([&] { data::read_csv(folder / "a.csv", options); }, says);
  };
  refuses("a,b\n1,2\n3\n", {"a.csv:3: 1 fields in a line, but 2 columns", "CsvTest.cpp"});
  refuses("a,b\n1,x\n", {"a.csv:2: 'x' in column 'b' is no number", "CsvOptions::words"});
  refuses("a,b\n1,2 3\n", {"a.csv:2: '2 3' in column 'b' is no number"});
  refuses("a,b\n1,1e99\n", {"'1e99' in column 'b' is no f32"});
  refuses("a,b\n1,\n", {"a.csv:2: nothing in column 'b'", "missing"});
  refuses("a,a\n1,2\n", {"two columns 'a'"});
  refuses("a,b\n", {"a.csv: no rows"});
  refuses("", {"a.csv: no rows"});
  refuses("a\n1\n", {"no column 'c'"}, {.words = {"c"}});
  refuses("a,b\n1,\"2\n3,4\n", {"a.csv:2: a quote that is not closed"});
  refuses("a,b\n\"1\"2,3\n", {"a.csv:2: there is something behind the quotes"});
  test::expectInputError([&] { data::read_csv(folder / "none.csv"); }, {"none.csv"});
}

} // namespace
