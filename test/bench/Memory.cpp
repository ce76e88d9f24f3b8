#include "Memory.h"

#include <tressel/runtime/Package.h>
#include <tressel/runtime/ThreadPool.h>
#include <tressel/tressel.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <unistd.h>

namespace tressel::bench {

namespace {

using Bytes = std::unique_ptr<char, void (*)(void *)>;

Bytes bytesOf(const TensorType &type) {
  const auto size = static_cast<size_t>(type.bytes() + 63) / 64 * 64;
  Bytes bytes(static_cast<char *>(std::aligned_alloc(64, size)), std::free);
  std::memset(bytes.get(), 1, size);
  if (type.dtype == f32) // numbers of usual size: products of very small ones take other ways through the processor
    for (int64_t i = 0; i < type.shape.numElements(); ++i)
      reinterpret_cast<float *>(bytes.get())[i] = static_cast<float>(i % 11) / 8 - 0.5f;
  return bytes;
}

/// A function as a package's context runs it: the caller's memory in and out.
class PackagedFunction {
public:
  template <typename F> PackagedFunction(F function, std::vector<TensorType> inputs, TensorType output) : moved_(output.bytes()) {
    ExportOptions options;
    for (size_t i = 0; i < inputs.size(); ++i)
      options.inputs.push_back({inputs[i].dtype, inputs[i].shape, std::string(1, static_cast<char>('a' + i))});
    const std::string path = std::filesystem::temp_directory_path() / ("row-" + std::to_string(getpid()) + ".tsl");
    jit(std::move(function)).export_package(path, options);
    context_.emplace(runtime::Package::open(path).context());
    std::filesystem::remove(path); // it stays mapped
    for (const TensorType &type : inputs) {
      memory_.push_back(bytesOf(type));
      inputs_.push_back(memory_.back().get());
      moved_ += type.bytes();
    }
    memory_.push_back(bytesOf(output));
    output_ = memory_.back().get();
  }
  void run() { context_->run(inputs_, {&output_, 1}); }
  int64_t bytesMoved() const { return moved_; } ///< read and written

private:
  int64_t moved_;
  std::vector<Bytes> memory_;
  std::vector<const void *> inputs_;
  void *output_ = nullptr;
  std::optional<runtime::Context> context_;
};

/// memcpy that moves as many bytes, half of them read, half written, in equal parts by all threads of the pool.
class Copy {
public:
  explicit Copy(int64_t moved) : bytes_(moved / 2), from_(bytesOf({u8, {bytes_}})), to_(bytesOf({u8, {bytes_}})) {}
  void run() {
    auto &pool = runtime::ThreadPool::global();
    const int64_t threads = bytes_ < (1 << 20) ? 1 : pool.numThreads(), each = bytes_ / threads;
    pool.parallelFor(threads, 1, [&](int64_t begin, int64_t end, int64_t) {
      std::memcpy(to_.get() + begin * each, from_.get() + begin * each, static_cast<size_t>((end - begin) * each));
    });
  }

private:
  int64_t bytes_;
  Bytes from_, to_;
};

/// x[n, 1024], from a quarter of a megabyte, which the second cache holds, to 128 MiB.
constexpr int64_t kColumns = 1024;
constexpr int64_t kRows[] = {64, 512, 4096, 32768};

template <typename F> Arms shares(F make) {
  struct Case {
    PackagedFunction ours;
    Copy copy;
  };
  auto cases = std::make_shared<std::map<size_t, Case>>();
  return {{"tressel", [=](size_t index) {
             auto found = cases->find(index);
             if (found == cases->end()) {
               PackagedFunction ours = make(kRows[index]);
               const int64_t moved = ours.bytesMoved();
               found = cases->try_emplace(index, Case{std::move(ours), Copy(moved)}).first;
             }
             Case &c = found->second;
             const double copied = secondsPerCall([&] { c.copy.run(); }, kRowSeconds);
             return copied / secondsPerCall([&] { c.ours.run(); }, kRowSeconds);
           }}};
}

/// Rows of a classifier, of a transformer, many short ones, few long ones.
constexpr std::pair<int64_t, int64_t> kRowShapes[] = {{1024, 1024}, {256, 768}, {16384, 128}, {32, 50257}};

Arms rows(bool scaled) {
  auto cases = std::make_shared<std::map<size_t, PackagedFunction>>();
  return {{"tressel", [=](size_t index) {
             if (!cases->contains(index)) {
               const auto [n, columns] = kRowShapes[index];
               const TensorType x{f32, {n, columns}}, v{f32, {columns}};
               if (scaled)
                 cases->try_emplace(index, [](Tensor x, Tensor scale, Tensor bias) { return layer_norm(x, scale, bias); },
                                    std::vector{x, v, v}, x);
               else
                 cases->try_emplace(index, [](Tensor x) { return softmax(x); }, std::vector{x}, x);
             }
             return secondsPerCall([&] { cases->at(index).run(); }, kRowSeconds);
           }},
          {"onednn", [=](size_t index) {
             const auto [n, columns] = kRowShapes[index];
             return libraryRows(scaled, n, columns);
           }}};
}

} // namespace

Arms memoryArms(const std::string &row) {
  auto matrix = [](DType dtype, int64_t n) { return TensorType{dtype, {n, kColumns}}; };
  const TensorType vector{f32, {kColumns}};
  if (row == "fusion.axpy.memcpy-share")
    return shares([=](int64_t n) {
      return PackagedFunction([](Tensor x, Tensor y) { return x * 2.5f + y; }, {matrix(f32, n), matrix(f32, n)}, matrix(f32, n));
    });
  if (row == "fusion.silu-gate.memcpy-share")
    return shares([=](int64_t n) {
      return PackagedFunction([](Tensor x, Tensor y) { return silu(x) * y; }, {matrix(f32, n), matrix(f32, n)}, matrix(f32, n));
    });
  if (row == "fusion.dequantize.memcpy-share")
    return shares([=](int64_t n) {
      return PackagedFunction([](Tensor x, Tensor scale, Tensor zero) { return (cast(x, f32) - zero) * scale; },
                              {matrix(i8, n), vector, vector}, matrix(f32, n));
    });
  if (row == "row.softmax" || row == "row.layernorm")
    return rows(row == "row.layernorm");
  return {};
}

} // namespace tressel::bench
