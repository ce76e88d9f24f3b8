// The programs of docs/interchange.md.
#include <tressel/tressel.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace tressel;

static void require(bool ok, const char *what) {
  if (!ok) {
    std::fprintf(stderr, "interchange: %s\n", what);
    std::exit(1);
  }
}

static void files(const std::string &dir) {
  Tensor x = rng::normal({2, 3}, 1);

  save_npy(dir + "/x.npy", x);
  save_npz(dir + "/all.npz", {{"x", x}, {"twice", x * 2}});
  save_safetensors(dir + "/all.safetensors", {{"x", cast(x, bf16)}}, {{"made by", "an example"}});
  Tensor y = load_npy(dir + "/x.npy");
  std::map<std::string, Tensor> all = load_npz(dir + "/all.npz");
  std::map<std::string, Tensor> tensors = load_safetensors(dir + "/all.safetensors");
  require(y.to_vector<float>() == x.to_vector<float>() && all.size() == 2 && tensors["x"].dtype() == bf16, "files");
}

static void memory() {
  std::vector<float> numbers{1, 2, 3, 4, 5, 6};

  Tensor copied = from_span(numbers, {2, 3});
  Tensor shared = adopt(numbers.data(), {f32, {2, 3}}, nullptr, nullptr); // numbers outlive it
  std::span<const float> elements = span_of<float>(copied);
  std::vector<int64_t> converted = copied.to_vector<int64_t>();
  require(shared.data() == numbers.data() && elements[5] == 6 && converted[5] == 6, "memory");
}

/// What std::mdspan is where the standard library has it.
template <typename T> struct Matrix {
  using element_type = T;
  static constexpr size_t rank() { return 2; }
  T *data;
  int64_t sizes[2], strides[2];
  Matrix(T *p, int64_t rows, int64_t columns) : data(p), sizes{rows, columns}, strides{columns, 1} {}
  T *data_handle() const { return data; }
  int64_t extent(size_t i) const { return sizes[i]; }
  int64_t stride(size_t i) const { return strides[i]; }
};

static void views() {
  double p[6] = {1, 2, 3, 4, 5, 6}, out[6];

  Tensor x = from_mdspan(Matrix<double>(p, 2, 3)); // copies, whatever the strides
  auto seen = mdspan_of<Matrix<const double>>(x);  // looks at the elements where they lie
  copy_to(x * 2, Matrix<double>(out, 2, 3));       // writes a view
  require(seen.data_handle()[4] == 5 && out[4] == 10, "views");
}

static void dlpack() {
  Tensor x = rng::normal({2, 3}, 1);

  DLManagedTensorVersioned *out = to_dlpack(x); // for another library, which calls its deleter
  Tensor back = from_dlpack(out);               // or ours
  require(back.data() == x.data(), "DLPack");
}

int main() {
  const std::string dir = std::filesystem::temp_directory_path() / "tressel-interchange-example";
  std::filesystem::create_directories(dir);
  files(dir);
  memory();
  views();
  dlpack();
  std::cout << rng::normal({200, 300}, 1) << "\n"; // the edges only
  std::filesystem::remove_all(dir);
}
