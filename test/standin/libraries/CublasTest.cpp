// Products that cuBLASLt computes, against the stand-in library and driver: results against plain loops, the generated
// kernel where the library does not serve, errors, choices of algorithms, planted mistakes.
#include "CublasControl.h"
#include "LibraryTests.h"

#include <array>
#include <cmath>

namespace tressel::runtime {
namespace {

standin::CublasControl &library() {
  static auto &control = controlOf<standin::CublasControl>("libcublasLt.so.13", "tressel_standin_cublaslt");
  return control;
}

enum class Residual { None, Separate, InPlace };
struct Problem {
  DType type = f32;
  int64_t batch = 1, m = 5, n = 7, k = 9;
  bool leftByColumns = false, rightByColumns = false;
  int64_t gap = 0;          ///< elements between rows of the operands
  bool sharesRight = false; ///< by all matrices of the batch
  int64_t shift = 0;        ///< elements between an operand's memory and what is allocated
  int shifted = -1;         ///< the operand that this is of; -1: all
  bool bias = false, relu = false;
  Residual residual = Residual::None;
  double alpha = 1;

  int64_t leftRow() const { return (leftByColumns ? m : k) + gap; }
  int64_t rightRow() const { return (rightByColumns ? k : n) + gap; }
  std::array<int64_t, 3> left() const {
    const int64_t matrix = leftRow() * (leftByColumns ? k : m);
    return leftByColumns ? std::array{matrix, int64_t(1), leftRow()} : std::array{matrix, leftRow(), int64_t(1)};
  }
  std::array<int64_t, 3> right() const {
    const int64_t matrix = sharesRight ? 0 : rightRow() * (rightByColumns ? n : k);
    return rightByColumns ? std::array{matrix, int64_t(1), rightRow()} : std::array{matrix, rightRow(), int64_t(1)};
  }
  int64_t leftElements() const { return batch * leftRow() * (leftByColumns ? k : m); }
  int64_t rightElements() const { return (sharesRight ? 1 : batch) * rightRow() * (rightByColumns ? n : k); }
};
void PrintTo(const Problem &p, std::ostream *out) {
  *out << nameOf(p.type) << " " << p.batch << " x " << p.m << " x " << p.n << " x " << p.k
       << (p.leftByColumns ? " left^T" : "") << (p.rightByColumns ? " right^T" : "") << " gap " << p.gap
       << (p.sharesRight ? " shared" : "") << " shift " << p.shift << (p.bias ? " bias" : "") << (p.relu ? " relu" : "")
       << " residual " << int(p.residual) << " alpha " << p.alpha;
}

std::string list(const std::array<int64_t, 3> &values) {
  return "[" + std::to_string(values[0]) + "," + std::to_string(values[1]) + "," + std::to_string(values[2]) + "]";
}
/// Operands: left, right, bias, residual, as far as there are such, result.
std::string callOf(const Problem &p, const std::string &m = {}) {
  int next = 2;
  std::ostringstream text;
  text << R"({"name":"cublaslt","type":")" << nameOf(p.type) << R"(","batch":)" << p.batch << R"(,"m":)"
       << (m.empty() ? std::to_string(p.m) : '"' + m + '"') << R"(,"n":)" << p.n << R"(,"k":)" << p.k
       << R"(,"left":{"buffer":0,"strides":)" << list(p.left()) << R"(},"right":{"buffer":1,"strides":)"
       << list(p.right()) << R"(},"alpha":)" << p.alpha << R"(,"relu":)" << (p.relu ? "true" : "false");
  if (p.bias)
    text << R"(,"bias":)" << next++;
  if (p.residual != Residual::None)
    text << R"(,"residual":)" << next++;
  text << R"(,"result":)" << next << "}";
  return text.str();
}
KernelDesc descOf(const Problem &p, const std::string &call, const std::string &more = {}) {
  return libraryKernel("product", call, p.m * p.n, more);
}

/// The operands of a product on a card, and what must come out.
class Product : public Operands {
public:
  Product(Card &card, const Problem &p, uint64_t seed = 1) : Operands(card, p.type, seed, p.shift, p.shifted), p_(p) {
    left_ = add(p.leftElements(), Access::Read);
    right_ = add(p.rightElements(), Access::Read);
    if (p.bias)
      bias_ = add(p.n, Access::Read);
    const int64_t results = p.batch * p.m * p.n;
    if (p.residual != Residual::None)
      residual_ = add(results, Access::Read);
    if (p.residual == Residual::InPlace)
      addInPlace();
    else
      add(results, Access::Write);
  }
  /// Of the result, as it is there.
  std::string check() {
    const std::vector<float> values = result();
    const auto l = p_.left(), r = p_.right();
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t i = 0; i < p_.m; ++i)
        for (int64_t j = 0; j < p_.n; ++j) {
          double sum = 0, size = 0;
          for (int64_t x = 0; x < p_.k; ++x) {
            const double term = p_.alpha * double(left_[size_t(b * l[0] + i * l[1] + x * l[2])]) *
                                double(right_[size_t(b * r[0] + x * r[1] + j * r[2])]);
            sum += term, size += std::fabs(term);
          }
          const auto at = size_t((b * p_.m + i) * p_.n + j);
          if (p_.bias)
            sum += double(bias_[size_t(j)]), size += std::fabs(double(bias_[size_t(j)]));
          if (p_.residual != Residual::None)
            sum += double(residual_[at]), size += std::fabs(double(residual_[at]));
          if (p_.relu)
            sum = std::max(sum, 0.0);
          const double inSum = double(p_.k + 4) * 0x1p-24 * size;
          const double bound = inSum + unitOf(p_.type) * (std::fabs(sum) + inSum) + 0x1p-25;
          if (const std::string wrong = compare({b, i, j}, double(values[at]), sum, bound); !wrong.empty())
            return wrong;
        }
    return "";
  }

private:
  const Problem p_;
  std::vector<float> left_, right_, bias_, residual_;
};

/// What is wrong; empty if nothing is.
std::string tryProduct(Card &card, const Problem &p) {
  const KernelDesc desc = descOf(p, callOf(p));
  const DeviceKernelRef kernel = card.load(desc);
  Product product(card, p);
  const std::string failure = card.await(product.launch(kernel, desc));
  return failure.empty() ? product.check() : failure;
}

class Cublas : public ::testing::Test {
protected:
  void SetUp() override {
    resetDriver();
    library() = {};
  }
  void TearDown() override { EXPECT_EQ(standin::findings(driver()), "") << library().lastRefusal; }
};

TEST_F(Cublas, EveryCombinationIsRight) {
  Card card;
  uint64_t count = 0;
  for (const DType type : {f32, f16, bf16})
    for (int bits = 0; bits < 32; ++bits)
      for (const Residual residual : {Residual::None, Residual::Separate, Residual::InPlace})
        for (const int64_t batch : {1, 3})
          for (const int64_t size : {5, 16}) {
            Problem p{.type = type, .batch = batch, .m = size, .n = size == 5 ? 7 : 24, .k = size == 5 ? 9 : 32};
            p.leftByColumns = bits & 1, p.rightByColumns = bits & 2, p.bias = bits & 4, p.relu = bits & 8,
            p.alpha = bits & 16 ? -0.375 : 1;
            p.residual = residual;
            nextOrder(count++);
            ASSERT_EQ(tryProduct(card, p), "") << ::testing::PrintToString(p) << ": " << library().lastRefusal;
          }
  EXPECT_EQ(library().products, count); // none ran as generated
  EXPECT_EQ(library().refused, 0u) << library().lastRefusal;
}

TEST_F(Cublas, OperandsMayHaveGapsAndBeShared) {
  Card card;
  uint64_t count = 0;
  for (const DType type : {f32, f16, bf16})
    for (int bits = 0; bits < 4; ++bits)
      for (const int64_t gap : {0, 3, 8})
        for (const bool shared : {false, true}) {
          const Problem p{.type = type,
                          .batch = 2,
                          .leftByColumns = bool(bits & 1),
                          .rightByColumns = bool(bits & 2),
                          .gap = gap,
                          .sharesRight = shared,
                          .bias = true};
          ASSERT_EQ(tryProduct(card, p), "") << ::testing::PrintToString(p);
          ++count;
        }
  EXPECT_EQ(library().products, count);
}

TEST_F(Cublas, OneRowOneColumnOneTerm) {
  Card card;
  uint64_t count = 0;
  for (int bits = 0; bits < 32; ++bits) {
    const Problem p{.m = bits & 1 ? 1 : 6,
                    .n = bits & 2 ? 1 : 5,
                    .k = bits & 4 ? 1 : 8,
                    .leftByColumns = bool(bits & 8),
                    .rightByColumns = bool(bits & 16)};
    ASSERT_EQ(tryProduct(card, p), "") << ::testing::PrintToString(p);
    ++count;
  }
  EXPECT_EQ(library().products, count);
}

/// An algorithm that needs better aligned matrices must not be taken for them.
TEST_F(Cublas, AddressesMayBeAnywhere) {
  Card card;
  for (const DType type : {f32, bf16})
    for (const int64_t shift : {0, 1, 2, 4, 8, 64})
      for (const int operand : {-1, 0, 1, 2, 3, 4}) {
        const Problem p{.type = type,
                        .m = 16,
                        .n = 32,
                        .k = 16,
                        .shift = shift,
                        .shifted = operand,
                        .bias = true,
                        .residual = Residual::Separate};
        ASSERT_EQ(tryProduct(card, p), "") << ::testing::PrintToString(p) << " of " << operand;
      }
  EXPECT_EQ(library().refused, 0u) << library().lastRefusal;
}

TEST_F(Cublas, EveryAlgorithmIsRight) {
  Card card;
  for (const int algorithm : {11, 12, 13, 14})
    for (const DType type : {f32, f16, bf16}) {
      library().onlyAlgorithm = uint64_t(algorithm);
      const Problem p{.type = type,
                      .batch = 2,
                      .m = 16,
                      .n = 16,
                      .k = 64,
                      .bias = true,
                      .relu = true,
                      .residual = Residual::InPlace};
      ASSERT_EQ(tryProduct(card, p), "") << ::testing::PrintToString(p) << ", algorithm " << algorithm;
      EXPECT_EQ(library().lastAlgorithm, algorithm);
    }
}

TEST_F(Cublas, StreamsShareNoWorkspace) {
  library().onlyAlgorithm = 13;
  Card card;
  const Problem p{.m = 16, .n = 16, .k = 64};
  const KernelDesc desc = descOf(p, callOf(p));
  Product one(card, p, 1), two(card, p, 2);
  expectNoSharedWorkspace(card, card.load(desc), desc, one, two);
}

TEST_F(Cublas, AKernelTakesOtherAddressesAndSizes) {
  Card card;
  Problem p{.n = 7, .k = 9, .bias = true};
  // The first symbol is of something else.
  const KernelDesc desc = descOf(p, callOf(p, "2*rows[1..64] + 1"), R"("symbols":["other","rows[1..64]"],)");
  const DeviceKernelRef kernel = card.load(desc);
  for (const int64_t rows : {2, 5, 2, 1, 5}) {
    p.m = 2 * rows + 1;
    Product product(card, p, uint64_t(rows));
    const int64_t scalars[] = {99, rows};
    ASSERT_EQ(card.await(product.launch(kernel, desc, scalars)), "");
    ASSERT_EQ(product.check(), "") << rows;
  }
  EXPECT_EQ(library().products, 5u);
  EXPECT_EQ(library().heuristics, 3u);
}

std::string runWithGenerated(const Problem &p, const std::string &call, int scalars = 0) {
  Card card;
  const KernelDesc desc = descOf(p, call);
  const DeviceKernelRef kernel = card.load(desc, productKernel("product", p.n, p.k, scalars));
  Product product(card, p);
  const std::vector<int64_t> values(size_t(scalars), p.m);
  for (int i = 0; i < 2; ++i)
    if (const std::string failure = card.await(product.launch(kernel, desc, values)); !failure.empty())
      return failure;
  return product.check();
}

TEST_F(Cublas, TheGeneratedKernelRunsWithoutAnAlgorithm) {
  library().hasNoAlgorithm = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(runWithGenerated({}, callOf({})), "");
  const std::string notes = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(notes.find("kernel 'product' runs as generated: cuBLASLt has no algorithm"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("kernel 'product'"), notes.rfind("kernel 'product'")) << notes;
  EXPECT_EQ(library().products, 0u);
}

TEST_F(Cublas, TheGeneratedKernelRunsWhereTheProductIsRefused) {
  library().failure = 15;
  EXPECT_EQ(runWithGenerated({}, callOf({})), "");
  EXPECT_EQ(library().products, 0u);
}

TEST_F(Cublas, TheGeneratedKernelRunsForSizesThatTheLaunchDoesNotCarry) {
  const Problem p;
  EXPECT_EQ(runWithGenerated(p, callOf(p, "rows"), 1), "");
  EXPECT_EQ(library().products, 0u);
}

TEST_F(Cublas, TheGeneratedKernelRunsForStridesThatTheLibraryDoesNotTake) {
  Problem p;
  EXPECT_EQ(runWithGenerated(p, with(callOf(p), "[45,9,1]", "[45,1,1]")), ""); // rows that overlap
  EXPECT_EQ(library().products, 0u);
}

TEST_F(Cublas, AnErrorNamesTheKernel) {
  library().failure = 13;
  const std::string failure = runWithGenerated({}, callOf({}));
  EXPECT_NE(failure.find("gpu0: kernel 'product': cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED"),
            std::string::npos)
      << failure;
}

TEST_F(Cublas, OperandsThatAreTooSmallAreRefused) {
  Problem p;
  Card card;
  const KernelDesc desc = descOf(p, callOf(p));
  const DeviceKernelRef kernel = card.load(desc);
  Product product(card, p);
  product.regions[1].bytes -= 4;
  EXPECT_NE(card.await(product.launch(kernel, desc)).find("kernel 'product': operand 1 has"), std::string::npos);
}

TEST_F(Cublas, DescriptionsThatMakeNoSenseAreRefused) {
  Card card;
  for (const auto &[from, to] : {std::pair("\"f32\"", "\"i8\""), std::pair("[45,9,1]", "[9,1]"),
                                 std::pair("\"m\":5", "\"m\":\"5 +\""), std::pair("\"m\":5,", "")}) {
    expectRefused(card, descOf({}, with(callOf({}), from, to)), "kernel 'product'");
  }
}

TEST_F(Cublas, RecordedLaunchesAreNoNodesOfGraphs) {
  Card card;
  const Problem p{.m = 16, .n = 16, .k = 16};
  const KernelDesc desc = descOf(p, callOf(p));
  const DeviceKernelRef kernel = card.load(desc);
  std::vector<std::unique_ptr<Product>> products;
  for (uint64_t i = 0; i < 4; ++i)
    products.push_back(std::make_unique<Product>(card, p, i));
  std::vector<std::vector<void *>> addresses;
  std::vector<GroupCommand> commands;
  for (const auto &product : products) {
    auto &mine = addresses.emplace_back();
    for (const Region &region : product->regions)
      mine.push_back(region.address);
  }
  for (size_t i = 0; i < products.size(); ++i)
    commands.push_back({.stream = 0,
                        .command = {.kind = DeviceCommandKind::Launch,
                                    .regions = products[i]->regions,
                                    .kernel = kernel.get(),
                                    .desc = &desc},
                        .addresses = addresses[i]});
  Stream *streams[] = {card.stream.get()};
  {
    const auto group = card.machine->record(streams, commands);
    ASSERT_TRUE(group);
    for (int i = 0; i < 3; ++i) {
      std::vector<Event> ends(commands.size());
      group->submit({}, 0, ends);
      ASSERT_EQ(card.await(ends.back()), "");
    }
  }
  for (const auto &product : products)
    EXPECT_EQ(product->check(), "");
  EXPECT_EQ(library().products, 12u);
}

TEST_F(Cublas, NothingIsLeftBehind) {
  expectNothingIsLeftBehind([](Card &card) { return tryProduct(card, {}); });
}

TEST_F(Cublas, ACardWithoutMemoryForAWorkspaceDoesWithout) {
  tryWithLittleMemory([](Card &card) { return tryProduct(card, {}); });
  EXPECT_EQ(library().products, 1u);
}

TEST_F(Cublas, EveryCallMayFail) {
  const Problem p{.bias = true, .residual = Residual::InPlace};
  expectEveryCallMayFail([&](Card &card) { return tryProduct(card, p); });
}

//--- Choices of algorithms, each in a process of its own --------------------------------------------------------------
/// Runs a product twice, and says what was asked of the library and which algorithm ran last.
[[noreturn]] void chooseOnce(const char *tune, bool stamps, Residual residual) {
  if (tune)
    setenv("TRESSEL_CUBLAS_TUNE", tune, 1);
  unsetenv("TRESSEL_CACHE_LIMIT");
  std::string wrong;
  {
    Card card({.stamps = stamps});
    const Problem p{.m = 32, .n = 32, .k = 32, .residual = residual};
    wrong = tryProduct(card, p) + tryProduct(card, p);
  }
  std::fprintf(stderr, "%sheuristics %d products %d algorithm %d %s\n", wrong.c_str(), int(library().heuristics),
               int(library().products), library().lastAlgorithm, standin::findings(driver()).c_str());
  _exit(wrong.empty() && standin::findings(driver()).empty() ? 0 : 1);
}

TEST_F(Cublas, AlgorithmsAreMeasuredOnceAndKept) {
  const TestFolder made("TRESSEL_CUBLAS_TEST_FOLDER");
  const std::string folder = made.path;
  setenv("TRESSEL_CACHE_DIR", folder.c_str(), 1);
  // One product of the heuristic's choice each; four algorithms, each four times, and then the choice, twice.
  EXPECT_EXIT(chooseOnce(nullptr, false, Residual::None), ::testing::ExitedWithCode(0),
              "heuristics 2 products 2 algorithm 11 ");
  EXPECT_FALSE(std::filesystem::exists(folder + "/cublaslt.txt"));
  EXPECT_EXIT(chooseOnce("1", false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 1 products 18 ");
  EXPECT_EXIT(chooseOnce("1", false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 0 products 2 ");
  EXPECT_EXIT(chooseOnce(nullptr, false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 0 products 2 ");
  EXPECT_EXIT(chooseOnce("0", true, Residual::None), ::testing::ExitedWithCode(0),
              "heuristics 2 products 2 algorithm 11 ");
  EXPECT_EXIT(chooseOnce(nullptr, true, Residual::InPlace), ::testing::ExitedWithCode(0), "heuristics 1 products 18 ");
  {
    std::ofstream file(folder + "/cublaslt.txt"); // damaged
    file << "nonsense\n\n" << std::string(5000, 'x');
  }
  EXPECT_EXIT(chooseOnce("1", false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 1 products 18 ");
  unsetenv("TRESSEL_CACHE_DIR");
}

//--- Without the library ----------------------------------------------------------------------------------------------
TEST_F(Cublas, TheGeneratedKernelRunsWithoutTheLibrary) {
  expectOnce(notesWithoutFiles({"libcublasLt.so.13", "libcublasLt.so.12"}),
             "products run as generated kernels, without cuBLASLt: ");
}

TEST_F(Cublas, TheGeneratedKernelRunsWithALibraryThatIsTooOld) {
  expectOnce(notesWithoutLibrary("TRESSEL_STANDIN_CUBLASLT_VERSION=111003"),
             "libcublasLt.so.13 is cuBLASLt 11.10.3, and 12.0.0 is the oldest that serves");
}

//--- Planted mistakes -------------------------------------------------------------------------------------------------
TEST_F(Cublas, AWrongLeadingDimensionIsFound) {
  Card card;
  Problem p{.gap = 3};
  const KernelDesc desc = descOf(p, with(callOf(p), "[60,12,1]", "[60,11,1]")); // of the left operand
  const DeviceKernelRef kernel = card.load(desc);
  Product product(card, p);
  ASSERT_EQ(card.await(product.launch(kernel, desc)), "");
  EXPECT_NE(product.check(), "");
}

TEST_F(Cublas, AMissingWaitIsFound) {
  const Problem p;
  const KernelDesc desc = descOf(p, callOf(p));
  for (const bool waits : {true, false}) {
    Card card;
    Product product(card, p);
    const std::string found = twoStreams(card, card.load(desc), desc, product, waits);
    EXPECT_EQ(found.find("cublasLtMatmul") == std::string::npos, waits) << found;
  }
  driver().configure("forget=1");
}

TEST_F(Cublas, AMissingWaitForABiasIsFound) {
  Card card;
  const Problem p{.bias = true};
  const KernelDesc desc = descOf(p, callOf(p));
  Product product(card, p);
  expectMissingWaitIsFound(card, card.load(desc), desc, product, 2);
}

/// What NVIDIA's library refuses.
TEST_F(Cublas, TheStandInRefusesMistakes) {
  void *opened = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  auto find = [&]<typename Fn>(Fn *&fn, const char *name) { fn = reinterpret_cast<Fn *>(dlsym(opened, name)); };
  int (*create)(void **), (*destroy)(void *), (*layoutDestroy)(void *), (*descDestroy)(void *);
  int (*layoutCreate)(void **, int, uint64_t, uint64_t, int64_t), (*descCreate)(void **, int, int);
  int (*descSet)(void *, int, const void *, size_t);
  int (*multiply)(void *, void *, const float *, uint64_t, void *, uint64_t, void *, const float *, uint64_t, void *,
                  uint64_t, void *, const uint64_t *, uint64_t, size_t, void *);
  find(create, "cublasLtCreate"), find(destroy, "cublasLtDestroy");
  find(layoutCreate, "cublasLtMatrixLayoutCreate"), find(layoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(descCreate, "cublasLtMatmulDescCreate"), find(descDestroy, "cublasLtMatmulDescDestroy");
  find(descSet, "cublasLtMatmulDescSetAttribute"), find(multiply, "cublasLtMatmul");
  Card card;
  void *handle = nullptr, *desc = nullptr, *whole = nullptr, *narrow = nullptr;
  ASSERT_EQ(create(&handle), 0);
  ASSERT_EQ(descCreate(&desc, 68, 0), 0);
  ASSERT_EQ(layoutCreate(&whole, 0, 16, 16, 16), 0);
  ASSERT_EQ(layoutCreate(&narrow, 0, 16, 16, 15), 0);
  const int32_t one = 1;
  EXPECT_EQ(descSet(desc, 3, &one, 8), 7);
  EXPECT_STREQ(library().lastRefusal, "the attribute has other bytes");
  EXPECT_EQ(descSet(desc, 1000, &one, 4), 7);
  EXPECT_STREQ(library().lastRefusal, "no such attribute");
  const auto at = reinterpret_cast<uint64_t>(card.allocate(4096));
  auto call = [&](uint64_t a, void *aLayout, void *cLayout, uint64_t kind, uint64_t workspace, size_t workspaceBytes) {
    const uint64_t algorithm[8] = {kind, 0, 0, 0, 0, 0, 0, ~kind};
    const float alpha = 1, beta = 0;
    return multiply(handle, desc, &alpha, a, aLayout, at + 1024, whole, &beta, at + 2048, cLayout, at + 2048, whole,
                    algorithm, workspace, workspaceBytes, nullptr);
  };
  EXPECT_EQ(call(at, narrow, whole, 14, 0, 0), 7);
  EXPECT_STREQ(library().lastRefusal, "a leading dimension is less than the matrix");
  EXPECT_EQ(call(at, whole, nullptr, 14, 0, 0), 7);
  EXPECT_STREQ(library().lastRefusal, "a descriptor is missing");
  EXPECT_EQ(call(at + 2, whole, whole, 14, 0, 0), 15);
  EXPECT_STREQ(library().lastRefusal, "a matrix is not at a multiple of its element");
  EXPECT_EQ(call(at + 4, whole, whole, 12, 0, 0), 15);
  EXPECT_STREQ(library().lastRefusal, "the algorithm needs matrices that are aligned better");
  EXPECT_EQ(call(at, whole, whole, 13, at + 3072, 1024), 7);
  EXPECT_STREQ(library().lastRefusal, "the workspace is too small");
  EXPECT_EQ(call(at, whole, whole, 99, 0, 0), 7);
  EXPECT_STREQ(library().lastRefusal, "no such algorithm");
  EXPECT_EQ(library().products, 0u);
  layoutDestroy(whole), layoutDestroy(narrow), descDestroy(desc), destroy(handle);
}

} // namespace

std::string tryWithoutCublas() { return runWithGenerated({}, callOf({})); }

} // namespace tressel::runtime

int main(int argc, char **argv) {
  return tressel::runtime::runLibraryTests(argc, argv, tressel::runtime::tryWithoutCublas);
}
