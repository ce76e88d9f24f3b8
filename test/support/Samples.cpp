#include "test/support/Samples.h"

#include <algorithm>
#include <charconv>

namespace tressel::test {

using namespace op;

namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The parts between separators; no text has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(trim(text.substr(at, end - at)));
    if (end == text.size())
      return parts;
    at = end + 1;
  }
}
std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ' ');
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

std::optional<DType> elementType(std::string_view word) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (word == nameOf(static_cast<DType>(i)))
      return static_cast<DType>(i);
  return {};
}

// Words that say something of the elements.
constexpr std::string_view kSorted = "sorted", kPlaces = "places";
bool isOfElements(std::string_view word) { return word == kSorted || word.starts_with(kPlaces); }

bool isName(std::string_view term) { return term.find_first_of("0123456789*+-") == std::string_view::npos; }

} // namespace

static std::string_view lineOf(const OpInfo &op, std::string_view name) {
  for (const char *sample : op.samples) {
    const std::string_view text = sample;
    const size_t colon = text.find(':');
    if (trim(text.substr(0, colon)) == name)
      return text.substr(colon);
  }
  return {};
}

bool wantsSorted(const OpInfo &op, size_t index) {
  return index < op.operands.size() && lineOf(op, op.operands[index].name).find(kSorted) != std::string_view::npos;
}

std::optional<int> placesOf(const OpInfo &op, size_t index) {
  if (index >= op.operands.size())
    return {};
  for (std::string_view word : words(lineOf(op, op.operands[index].name)))
    if (int dim = 0; word.starts_with(kPlaces) &&
                     std::from_chars(word.data() + kPlaces.size(), word.data() + word.size(), dim).ec == std::errc())
      return dim;
  return {};
}

std::string_view Sample::line(std::string_view name) const { return lineOf(op_, name); }

std::string_view Sample::draw(std::string_view name) { return random_.pick(split(line(name).substr(1), '|')); }

int64_t Sample::size(std::string_view name) {
  const auto found = sizes_.find(name);
  if (found != sizes_.end())
    return found->second;
  const bool zero = random_.chance(limits_.zeroSize / 4);
  return sizes_.emplace(name, zero ? 0 : random_.between(1, limits_.maxSize)).first->second;
}

/// "2*h+1": a sum of products.
int64_t Sample::evaluate(std::string_view term) {
  int64_t sum = 0;
  for (std::string_view part : split(term, '+')) {
    int64_t product = 1;
    for (std::string_view factor : split(part, '*')) {
      int64_t number = 0;
      const char *end = factor.data() + factor.size();
      product *= std::from_chars(factor.data(), end, number).ptr == end ? number : size(factor);
    }
    sum += product;
  }
  return sum;
}

bool Sample::matches(std::string_view pattern, const TensorType &type) {
  std::vector<std::string_view> dims = words(pattern);
  std::erase_if(dims, isOfElements);
  if (!dims.empty())
    if (const auto fixed = elementType(dims[0])) {
      if (*fixed != type.dtype)
        return false;
      dims.erase(dims.begin());
    }
  const auto dots = std::ranges::find(dims, "...");
  const int run = type.rank() - static_cast<int>(dims.size()) + 1;
  if (dots == dims.end() ? type.rank() != static_cast<int>(dims.size()) : run < 0)
    return false;
  int at = 0;
  for (std::string_view dim : dims) {
    if (dim == "...") {
      const Shape leading(std::span<const Size>(type.shape.begin() + at, static_cast<size_t>(run)));
      if (leading_ && !(*leading_ == leading))
        return false;
      leading_ = leading;
      at += run;
      continue;
    }
    const int64_t wanted = isName(dim) && !sizes_.contains(dim) ? sizes_.emplace(dim, type.shape[at]).first->second
                                                                : evaluate(dim);
    if (wanted != type.shape[at++])
      return false;
  }
  return true;
}

bool Sample::bind(std::span<const TensorType> given) {
  if (has("equation")) {
    const std::vector<std::string> patterns = terms();
    for (size_t i = 0; i < given.size(); ++i)
      if (i >= patterns.size() || !matches(patterns[i], given[i]))
        return false;
    return true;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const OperandSpec &operand = op_.operands[std::min(i, op_.operands.size() - 1)];
    if (has(operand.name) && !matches(draw(operand.name), given[i]))
      return false;
  }
  return true;
}

/// The terms of an einsum's equation, with blanks between their labels, which are names like any others.
std::vector<std::string> Sample::terms() {
  if (equation_.empty())
    equation_ = draw("equation");
  std::vector<std::string> patterns;
  for (std::string_view term : split(std::string_view(equation_).substr(0, equation_.find("->")), ',')) {
    std::string pattern;
    for (size_t i = 0; i < term.size(); ++i) {
      pattern += term[i];
      if (term[i] != '.' || term.substr(i, 2) == "." || (i + 1 < term.size() && term[i + 1] != '.'))
        pattern += ' ';
    }
    patterns.push_back(pattern);
  }
  return patterns;
}

void Sample::drawOperands(DType dtype, std::vector<TensorType> &operands) {
  if (has("equation")) {
    const std::vector<std::string> patterns = terms();
    for (size_t i = operands.size(); i < patterns.size(); ++i)
      operands.push_back(drawType(dtype, patterns[i]));
    return;
  }
  for (size_t i = operands.size(); i < op_.operands.size(); ++i) {
    std::string_view pattern = draw(op_.operands[i].name);
    if (pattern.empty() && op_.operands[i].optional)
      return; // and so are those behind it
    operands.push_back(drawType(dtype, pattern));
  }
}

TensorType Sample::drawType(DType dtype, std::string_view pattern) {
  TensorType type{dtype, {}};
  for (std::string_view dim : words(pattern)) {
    if (const auto fixed = elementType(dim)) {
      type.dtype = *fixed;
    } else if (dim == "...") {
      if (!leading_)
        leading_ = randomShape(random_, 0, {.maxRank = 2, .maxSize = 3, .zeroSize = 0});
      for (Size d : *leading_)
        type.shape.push_back(d);
    } else if (dim != "scalar" && !isOfElements(dim)) {
      type.shape.push_back(evaluate(dim));
    }
  }
  return type;
}

Attr Sample::drawAttr(const AttrSpec &spec) {
  if (spec.name == std::string_view("equation"))
    return equation_;
  const std::string_view text = draw(spec.name);
  switch (spec.kind) {
  case AttrKind::String: return std::string(text);
  case AttrKind::Bool: return text == "true" || text == "1";
  case AttrKind::Int: return evaluate(text);
  case AttrKind::Float: return std::strtod(std::string(text).c_str(), nullptr);
  case AttrKind::Type: return elementType(text).value_or(f32);
  case AttrKind::Size:
    return Size(evaluate(text));
  case AttrKind::Ints:
  case AttrKind::Sizes:
    break;
  }
  if (text.empty() && spec.optional)
    return {};
  Ints values;
  for (std::string_view term : words(text))
    values.push_back(evaluate(term));
  if (spec.kind == AttrKind::Sizes)
    return Sizes(values.begin(), values.end());
  return values;
}

} // namespace tressel::test
