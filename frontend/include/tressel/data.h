// Datasets.
#pragma once

#include <tressel/loader.h>
#include <tressel/tensor.h>

#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace tressel::data {

struct LabelledImages {
  Tensor images; ///< f32[n, 1, height, width], 0 (black) to 1
  Tensor labels; ///< i64[n]
};

/// One of them.
struct Sample {
  Tensor image, label;
};
/// Sample i is image i with its label.
Dataset<Sample> samples(LabelledImages images, std::source_location where = std::source_location::current());
template <typename Fn> auto map(LabelledImages images, Fn fn, std::source_location where = std::source_location::current()) {
  return map(samples(std::move(images), where), std::move(fn));
}

/// Fashion-MNIST: 60,000 images of clothes of 10 kinds to train with, or the 10,000 to test with, 28 x 28 pixels. `dir`
/// holds the four files as they are published, packed (.gz) or not; Debian's package dataset-fashion-mnist puts them into
/// /usr/share/datasets/fashion-mnist. Throws InputError for files that are missing, damaged or of another kind.
LabelledImages fashion_mnist(const std::string &dir, bool train,
                             std::source_location where = std::source_location::current());

/// What a file of comma-separated values holds.
struct Table {
  std::vector<std::string> columns; ///< names of the columns of numbers, in the order of the file
  Tensor numbers;                   ///< f32[rows, columns.size()]
  struct Kinds {
    std::string column;
    std::vector<std::string> words; ///< the distinct words, sorted
    Tensor labels;                  ///< i64[rows]: index into `words`
  };
  std::vector<Kinds> kinds; ///< the columns of words
};
struct CsvOptions {
  char separator = ',';
  bool header = true;                  ///< the first line names the columns; else they are "0", "1" and so on
  std::vector<std::string> words = {}; ///< columns of words; all others are numbers
  std::optional<float> missing = {};   ///< what an empty field of numbers stands for; none: it is an error
};
/// Reads a file of comma-separated values (RFC 4180). `data::rows` makes a dataset of its tensors. Throws InputError,
/// with the line, for a field that is no number, a line with more or fewer fields than there are columns, and a file
/// without rows.
Table read_csv(const std::string &path, CsvOptions options = {},
               std::source_location where = std::source_location::current());

/// Neighbouring tokens and, for each, the one that follows: i32[length] both.
struct TokenWindow {
  Tensor x, next;
};
struct TokenOptions {
  int64_t bytes = 1;         ///< of a token in the file: 1 (characters), 2 or 4, unsigned, the lowest first
  double begin = 0, end = 1; ///< the share of the file's tokens that is used
  bool shifted = false;      ///< windows begin up to `length` tokens later, at random: other ones in each epoch
};
/// A file of tokens, cut into windows of `length`. It is mapped into memory, so that only what is read costs; it must
/// not be truncated meanwhile. Throws InputError for a file that is missing, or has too few tokens for a window and the
/// token that follows it.
Dataset<TokenWindow> token_windows(const std::string &path, int64_t length, TokenOptions options = {},
                                   std::source_location where = std::source_location::current());

} // namespace tressel::data
