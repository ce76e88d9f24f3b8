#include "ir/op/Einsum.h"

#include "ir/op/Exprs.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace tressel::op {

using Labels = Einsum::Labels;

static bool contains(const Labels &labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

/// Parses the term of one operand or of the result: letters and at most one `...`, which stands for `rank` - letters
/// dimensions, or for `dots` if there is no rank.
static std::optional<Labels> parseTerm(std::string_view term, int rank, int dots, std::string &error) {
  Labels before, after;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i, 3) == "..." && !seen) {
      seen = true;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      (seen ? after : before).push_back(term[i]);
    } else {
      error = "'" + std::string(term) + "' is no list of labels";
      return {};
    }
  }
  const int named = static_cast<int>(before.size() + after.size());
  const int run = rank < 0 ? (seen ? dots : 0) : rank - named;
  if (run < 0 || (run > 0 && !seen)) {
    error = "'" + std::string(term) + "' does not name the " + std::to_string(rank) + " dimensions of its operand";
    return {};
  }
  for (int i = run; i > 0; --i)
    before.push_back(-i);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

std::optional<Einsum> Einsum::parse(std::string_view equation, std::span<const TensorType> operands,
                                    std::string &error) {
  std::string text;
  for (char c : equation)
    if (c != ' ')
      text += c;
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  Einsum einsum;
  int dots = 0;
  for (size_t at = 0, i = 0;; ++i) {
    const size_t end = std::min(left.find(',', at), left.size());
    if (i == operands.size()) {
      error = "the equation has more terms than there are operands";
      return {};
    }
    auto labels = parseTerm(left.substr(at, end - at), operands[i].rank(), 0, error);
    if (!labels)
      return {};
    for (int label : *labels)
      dots = std::max(dots, -label);
    einsum.operands.push_back(std::move(*labels));
    if (end == left.size())
      break;
    at = end + 1;
  }
  if (einsum.operands.size() != operands.size()) {
    error = "the equation has fewer terms than there are operands";
    return {};
  }
  if (arrow != std::string::npos) {
    auto labels = parseTerm(std::string_view(text).substr(arrow + 2), -1, dots, error);
    if (!labels)
      return {};
    einsum.result = std::move(*labels);
  } else { // the implicit result: `...`, then labels that occur once, in alphabetical order
    std::map<int, int> count;
    for (const Labels &labels : einsum.operands)
      for (int label : labels)
        ++count[label];
    for (auto [label, times] : count)
      if (label < 0 || times == 1)
        einsum.result.push_back(label);
  }
  for (size_t i = 0; i < einsum.result.size(); ++i) {
    const int label = einsum.result[i];
    const bool known = std::ranges::any_of(einsum.operands, [&](const Labels &l) { return contains(l, label); });
    if (!known || std::ranges::count(einsum.result, label) > 1) {
      error = std::string("the result's label '") + static_cast<char>(label) + "' stands twice, or in no operand";
      return {};
    }
  }
  return einsum;
}

std::optional<Shape> Einsum::shape(std::span<const TensorType> types) const {
  std::map<int, Size> sizes;
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t d = 0; d < operands[i].size(); ++d) {
      const Size size = types[i].shape[static_cast<int>(d)];
      auto [known, isNew] = sizes.emplace(operands[i][d], size);
      if (isNew || known->second == size)
        continue;
      const bool broadcasts = operands[i][d] < 0 && (size == 1 || known->second == 1);
      if (!broadcasts)
        return {};
      if (known->second == 1)
        known->second = size;
    }
  if (result.size() > static_cast<size_t>(kMaxRank))
    return {};
  Shape shape;
  for (int label : result)
    shape.push_back(sizes.at(label));
  return shape;
}

namespace expr {
namespace {

/// A tensor with a label for each dimension.
struct Term {
  Expr value;
  Labels labels;
  Size size(int label) const {
    const auto at = std::ranges::find(labels, label);
    return at == labels.end() ? 1 : value.size(static_cast<int>(at - labels.begin()));
  }
};

Term transposed(const Term &term, const Labels &order) {
  Ints permutation;
  for (int label : order)
    permutation.push_back(std::ranges::find(term.labels, label) - term.labels.begin());
  return {transpose(term.value, permutation), order};
}

/// Takes the diagonal of dimensions with the same label.
Term withoutRepeats(Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const auto second = std::find(term.labels.begin() + static_cast<long>(i) + 1, term.labels.end(), term.labels[i]);
    if (second == term.labels.end())
      continue;
    const auto first = term.labels.begin() + static_cast<long>(i);
    term.value = diagonal(term.value, 0, static_cast<int64_t>(i), second - term.labels.begin());
    const int label = *first;
    term.labels.erase(second);
    term.labels.erase(first);
    term.labels.push_back(label);
    return withoutRepeats(std::move(term));
  }
  return term;
}

/// Sums over labels that are neither in `kept` nor in another term.
Term reduced(Term term, const Labels &kept) {
  Ints axes;
  Labels left;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (contains(kept, term.labels[d]))
      left.push_back(term.labels[d]);
    else
      axes.push_back(static_cast<int64_t>(d));
  }
  if (!axes.empty())
    term.value = cast(sum(term.value, axes), term.value.dtype());
  return {term.value, left};
}

/// Multiplies two terms and sums over labels that are not in `kept`, by a batched matrix product.
Term product(const Term &a, const Term &b, const Labels &kept) {
  Labels batch, rows, columns, inner;
  for (int label : a.labels)
    (!contains(b.labels, label) ? rows : contains(kept, label) ? batch : inner).push_back(label);
  for (int label : b.labels)
    if (!contains(a.labels, label))
      columns.push_back(label);
  auto order = [](std::initializer_list<const Labels *> parts) {
    Labels all;
    for (const Labels *part : parts)
      all.insert(all.end(), part->begin(), part->end());
    return all;
  };
  // If a dimension of `...` is 1 in one term, it is broadcast to the size in the other.
  auto sizeOf = [&](int label) { return a.size(label) == 1 ? b.size(label) : a.size(label); };
  auto grouped = [&](const Term &term, const Labels &second, const Labels &third) {
    Term t = transposed(term, order({&batch, &second, &third}));
    Sizes wide;
    Size count[3] = {1, 1, 1};
    for (int label : t.labels) {
      wide.push_back(sizeOf(label));
      Size &product = count[contains(batch, label) ? 0 : contains(second, label) ? 1 : 2];
      product *= wide.back();
    }
    return reshape(broadcast_to(t.value, wide), {count[0], count[1], count[2]});
  };
  Labels labels = order({&batch, &rows, &columns});
  Sizes shape;
  for (int label : labels)
    shape.push_back(sizeOf(label));
  const Expr left = grouped(a, rows, inner), right = grouped(b, inner, columns);
  return {reshape(inner.empty() ? left * right : matmul(left, right), shape), labels};
}

} // namespace

Expr einsumOf(const Einsum &equation, std::vector<Expr> operands) {
  auto keptAfter = [&](size_t next) {
    Labels kept = equation.result;
    for (size_t i = next; i < operands.size(); ++i)
      kept.insert(kept.end(), equation.operands[i].begin(), equation.operands[i].end());
    return kept;
  };
  Term all = withoutRepeats({operands[0], equation.operands[0]});
  all = reduced(all, keptAfter(1));
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels needed = keptAfter(i + 1);
    needed.insert(needed.end(), all.labels.begin(), all.labels.end());
    Term next = reduced(withoutRepeats({operands[i], equation.operands[i]}), needed);
    all = product(all, next, keptAfter(i + 1));
    all = reduced(all, keptAfter(i + 1));
  }
  return transposed(all, equation.result).value;
}

} // namespace expr
} // namespace tressel::op
