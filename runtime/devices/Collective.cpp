#include "Collective.h"

#include "tressel/runtime/Half.h"

#include <algorithm>
#include <cstring>

namespace tressel::runtime {
namespace {

/// In the arithmetic of A, stored as T after each step.
template <typename T, typename A, typename Load, typename Store>
void reduce(Reduction how, const std::vector<std::vector<std::byte>> &sources, std::vector<std::byte> &result,
            Load load, Store store) {
  const size_t n = result.size() / sizeof(T);
  auto at = [&](const std::vector<std::byte> &bytes, size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  };
  for (size_t i = 0; i < n; ++i) {
    T sum = at(sources[0], i);
    for (size_t m = 1; m < sources.size(); ++m) {
      const A a = load(sum), b = load(at(sources[m], i));
      switch (how) {
      case Reduction::Sum:
        sum = store(static_cast<A>(a + b));
        break;
      case Reduction::Product:
        sum = store(static_cast<A>(a * b));
        break;
      case Reduction::Min:
        sum = store(b < a || b != b ? b : a); // NaN stays
        break;
      case Reduction::Max:
        sum = store(b > a || b != b ? b : a);
        break;
      }
    }
    std::memcpy(result.data() + i * sizeof(T), &sum, sizeof(T));
  }
}

/// Integers wrap.
template <typename T>
void reduceIntegers(Reduction how, const std::vector<std::vector<std::byte>> &sources, std::vector<std::byte> &result) {
  if (how == Reduction::Min || how == Reduction::Max)
    return reduce<T, T>(
        how, sources, result, [](T x) { return x; }, [](T x) { return x; });
  reduce<T, uint64_t>(
      how, sources, result, [](T x) { return static_cast<uint64_t>(x); }, [](uint64_t x) { return static_cast<T>(x); });
}

void reduce(DType type, Reduction how, const std::vector<std::vector<std::byte>> &sources,
            std::vector<std::byte> &result) {
  auto same = [](auto x) { return x; };
  switch (type) {
  case DType::f32:
    return reduce<float, float>(how, sources, result, same, same);
  case DType::f64:
    return reduce<double, double>(how, sources, result, same, same);
  case DType::f16:
    return reduce<uint16_t, float>(how, sources, result, halfToFloat, halfFromFloat);
  case DType::bf16:
    return reduce<uint16_t, float>(how, sources, result, bfloatToFloat, bfloatFromFloat);
  case DType::i8:
    return reduceIntegers<int8_t>(how, sources, result);
  case DType::i16:
    return reduceIntegers<int16_t>(how, sources, result);
  case DType::i32:
    return reduceIntegers<int32_t>(how, sources, result);
  case DType::i64:
    return reduceIntegers<int64_t>(how, sources, result);
  case DType::u8:
    return reduceIntegers<uint8_t>(how, sources, result);
  case DType::boolean: // a sum is whether any is, a product whether all are
    return reduce<uint8_t, int>(
        how, sources, result, [](uint8_t x) { return x != 0 ? 1 : 0; },
        [](int x) { return static_cast<uint8_t>(x != 0); });
  }
}

} // namespace

void combine(const CollectiveRun &c, std::span<const CollectiveOperands> members) {
  std::vector<std::vector<std::byte>> sources; // copies: targets may be sources
  for (const CollectiveOperands &m : members) {
    const auto *bytes = static_cast<const std::byte *>(m.source);
    sources.emplace_back(bytes, bytes + (m.source ? m.sourceBytes : 0));
  }
  std::vector<std::byte> whole;
  switch (c.kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::ReduceScatter:
    whole.resize(sources[0].size());
    reduce(c.type, c.reduction, sources, whole);
    break;
  case CollectiveKind::AllGather:
    for (const auto &source : sources)
      whole.insert(whole.end(), source.begin(), source.end());
    break;
  case CollectiveKind::Broadcast:
    whole = sources[c.root];
    break;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const auto bytes = static_cast<size_t>(members[i].targetBytes);
    if (bytes)
      std::memcpy(members[i].target, whole.data() + (c.kind == CollectiveKind::ReduceScatter ? i * bytes : 0), bytes);
  }
}

} // namespace tressel::runtime
