#include "Memory.h"
#include "Packaged.h"
#include "Values.h"

#include <tressel/runtime/ThreadPool.h>

#include <algorithm>
#include <cstring>
#include <immintrin.h>

namespace tressel::bench {

namespace {

/// Copies whole lines past the caches: memory then reads nothing of what is overwritten. 64 divides `bytes` and both
/// addresses.
void copyStreaming(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    const __m128i *source = reinterpret_cast<const __m128i *>(from + i);
    __m128i *target = reinterpret_cast<__m128i *>(to + i);
    for (int part = 0; part < 4; ++part)
      _mm_stream_si128(target + part, _mm_load_si128(source + part));
  }
  _mm_sfence();
}

/// Seconds in which `bytes` are copied, in equal parts by all threads of the pool: by memcpy or past the caches,
/// whichever takes less now.
double secondsOfCopy(char *to, const char *from, int64_t bytes) {
  auto &pool = runtime::ThreadPool::global();
  const int64_t threads = bytes < (1 << 20) ? 1 : pool.numThreads(), each = bytes / threads / 64 * 64;
  auto inParts = [&](auto copy) {
    return [=, &pool] {
      pool.parallelFor(threads, 1, [&](int64_t begin, int64_t end, int64_t) {
        for (int64_t t = begin; t < end; ++t)
          copy(to + t * each, from + t * each, each);
      });
    };
  };
  const double usual = secondsPerCall(
      inParts([](char *a, const char *b, int64_t n) { std::memcpy(a, b, static_cast<size_t>(n)); }), kRowSeconds);
  return std::min(usual, secondsPerCall(inParts(copyStreaming), kRowSeconds));
}
/// As many bytes as a package's call moves, half of them read, half written, between the pages that the call uses.
double secondsOfCopy(const Packaged &package) {
  return secondsOfCopy(package.outputBlock(), package.inputBlock(), package.bytesMoved() / 2);
}

/// x[n, 1024], from a quarter of a megabyte, which the second cache holds, to 128 MiB.
constexpr int64_t kColumns = 1024;
constexpr int64_t kRows[] = {64, 512, 4096, 32768};

/// The speed of a package of each case over that of the copy.
template <typename F> Arms shares(F make) {
  auto cases = std::make_shared<std::map<size_t, Packaged>>();
  auto at = [=](size_t index) -> Packaged & {
    auto found = cases->find(index);
    return found != cases->end() ? found->second : cases->emplace(index, make(index)).first->second;
  };
  return {{"tressel", Arm(
                          [=](size_t index) {
                            Packaged &ours = at(index);
                            const double copy = secondsOfCopy(ours);
                            return copy / secondsPerCall([&] { ours.run(); }, kRowSeconds);
                          },
                          [=](size_t index) { return at(index).outputs(); })}};
}

Arms rows(bool scaled) {
  auto make = [=](size_t index) {
    const auto [n, columns] = rowShapes().at(index);
    const TensorType x{f32, {n, columns}}, v{f32, {columns}};
    if (scaled)
      return Packaged::function([](Tensor x, Tensor scale, Tensor bias) { return layer_norm(x, scale, bias); },
                                {x, v, v}, x);
    return Packaged::function([](Tensor x) { return softmax(x); }, {x}, x);
  };
  return {{"tressel", packages(make, kRowSeconds)}, {"onednn", libraryArm([=](size_t index) -> const LibraryCall & {
                                                       return libraryRows(scaled, rowShapes().at(index).first,
                                                                          rowShapes().at(index).second);
                                                     })}};
}

/// 200 Variables of 64 KiB, each v = v * a + b. The copy moves as many bytes within as many pages: each half onto the
/// other.
Arms updates() {
  constexpr int count = 200;
  constexpr int64_t elements = 16 << 10, bytes = count * elements * 4;
  auto variables = std::make_shared<std::vector<Variable>>();
  for (int i = 0; i < count; ++i)
    variables->emplace_back(zeros({elements}), "v" + std::to_string(i));
  auto step = jit([=](Tensor a, Tensor b) {
    for (const Variable &v : *variables)
      v.assign(v.value() * a + b);
  });
  const Tensor a = full({}, 0.5f), b = full({}, 0.25f);
  auto copied = std::make_shared<Bytes>(touchedBytes(bytes));
  return {{"tressel", Arm(
                          [=] {
                            char *half = copied->get() + bytes / 2;
                            const double copy = 2 * secondsOfCopy(copied->get(), half, bytes / 2);
                            return copy / secondsPerCall([&] { step(a, b), wait_all(); }, kRowSeconds);
                          },
                          [=] {
                            for (const Variable &v : *variables)
                              v.assign(numbers({elements}, seedOf(v.name())));
                            step(a, b);
                            Outputs all;
                            for (const Variable &v : *variables)
                              for (const float value : v.value().to_vector<float>())
                                all.push_back(value);
                            return all;
                          })}};
}

} // namespace

Arms memoryArms(const std::string &row) {
  auto matrix = [](DType dtype, size_t index) { return TensorType{dtype, {kRows[index], kColumns}}; };
  const TensorType vector{f32, {kColumns}};
  if (row == "fusion.gelu.memcpy-share")
    return shares([](size_t) {
      const TensorType x{f32, {8192, 4096}}, v{f32, {4096}};
      return Packaged::function([](Tensor x, Tensor w, Tensor b) { return gelu(x * w + b); }, {x, v, v}, x);
    });
  if (row == "fusion.axpy.memcpy-share")
    return shares([=](size_t i) {
      return Packaged::function([](Tensor x, Tensor y) { return x * 2.5f + y; }, {matrix(f32, i), matrix(f32, i)},
                                matrix(f32, i));
    });
  if (row == "fusion.silu-gate.memcpy-share")
    return shares([=](size_t i) {
      return Packaged::function([](Tensor x, Tensor y) { return silu(x) * y; }, {matrix(f32, i), matrix(f32, i)},
                                matrix(f32, i));
    });
  if (row == "fusion.dequantize.memcpy-share")
    return shares([=](size_t i) {
      return Packaged::function([](Tensor x, Tensor scale, Tensor zero) { return (cast(x, f32) - zero) * scale; },
                                {matrix(i8, i), vector, vector}, matrix(f32, i));
    });
  if (row == "state.update")
    return updates();
  if (row == "row.softmax" || row == "row.layernorm")
    return rows(row == "row.layernorm");
  return {};
}

} // namespace tressel::bench
