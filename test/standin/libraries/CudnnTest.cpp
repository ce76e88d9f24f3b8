// Convolutions that cuDNN computes, against the stand-in library and driver: results against plain loops, the generated
// kernel where the library does not serve, errors, choices of engines, planted mistakes.
#include "CudnnTests.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tressel::runtime {
namespace {

using Pair = std::array<int64_t, 2>;
enum class Residual { None, Separate, InPlace };
struct Problem {
  DType type = f32;
  bool last = false; ///< channels
  int64_t batch = 2, groups = 1, inChannels = 3, outChannels = 4;
  Pair in{6, 5}, window{3, 2}, strides{1, 1}, dilations{1, 1}, pad{0, 0};
  bool bias = false, relu = false;
  Residual residual = Residual::None;
  double alpha = 1;
  int64_t shift = 0; ///< elements between an operand's memory and what is allocated
  int shifted = -1;  ///< the operand that this is of; -1: all

  int64_t out(size_t d) const { return (in[d] + 2 * pad[d] - dilations[d] * (window[d] - 1) - 1) / strides[d] + 1; }
  int64_t depth() const { return inChannels / groups * window[0] * window[1]; }
  int64_t results() const { return batch * outChannels * out(0) * out(1); }
};
void PrintTo(const Problem &p, std::ostream *out) {
  auto pair = [&](const char *name, const Pair &values) { *out << name << values[0] << "x" << values[1]; };
  *out << nameOf(p.type) << (p.last ? " nhwc " : " nchw ") << p.batch << " x " << p.inChannels << " to "
       << p.outChannels << " groups " << p.groups;
  pair(" in ", p.in), pair(" window ", p.window), pair(" strides ", p.strides), pair(" dilations ", p.dilations);
  pair(" pad ", p.pad);
  *out << (p.bias ? " bias" : "") << (p.relu ? " relu" : "") << " residual " << int(p.residual) << " alpha " << p.alpha
       << " shift " << p.shift << " of " << p.shifted;
}

std::string list(const Pair &values) { return "[" + std::to_string(values[0]) + "," + std::to_string(values[1]) + "]"; }
/// Operands: image, weights, bias, residual, as far as there are such, result.
std::string callOf(const Problem &p, const std::string &batch = {}) {
  int next = 2;
  std::ostringstream text;
  text << R"({"name":"cudnn","type":")" << nameOf(p.type) << R"(","layout":")" << (p.last ? "nhwc" : "nchw")
       << R"(","batch":)" << (batch.empty() ? std::to_string(p.batch) : '"' + batch + '"') << R"(,"groups":)"
       << p.groups << R"(,"in_channels":)" << p.inChannels << R"(,"out_channels":)" << p.outChannels << R"(,"in":)"
       << list(p.in) << R"(,"window":)" << list(p.window) << R"(,"out":)" << list({p.out(0), p.out(1)})
       << R"(,"strides":)" << list(p.strides) << R"(,"dilations":)" << list(p.dilations) << R"(,"pad":)" << list(p.pad)
       << R"(,"image":0,"weights":1,"alpha":)" << p.alpha << R"(,"relu":)" << (p.relu ? "true" : "false");
  if (p.bias)
    text << R"(,"bias":)" << next++;
  if (p.residual != Residual::None)
    text << R"(,"residual":)" << next++;
  text << R"(,"result":)" << next << "}";
  return text.str();
}
KernelDesc descOf(const Problem &p, const std::string &call, const std::string &more = {}) {
  return libraryKernel("convolution", call, p.results(), more);
}

/// The operands of a convolution on a card, and what must come out.
class Convolution : public Operands {
public:
  Convolution(Card &card, const Problem &p, uint64_t seed = 1)
      : Operands(card, p.type, seed, p.shift, p.shifted), p_(p) {
    image_ = add(p.batch * p.inChannels * p.in[0] * p.in[1], Access::Read);
    weights_ = add(p.outChannels * p.depth(), Access::Read);
    if (p.bias)
      bias_ = add(p.outChannels, Access::Read);
    if (p.residual != Residual::None)
      residual_ = add(p.results(), Access::Read);
    if (p.residual == Residual::InPlace)
      addInPlace();
    else
      add(p.results(), Access::Write);
  }
  /// Of the result, as it is there.
  std::string check() {
    const std::vector<float> values = result();
    const Pair out{p_.out(0), p_.out(1)};
    auto place = [&](int64_t n, int64_t c, int64_t channels, const Pair &size, int64_t y, int64_t x) {
      return size_t(p_.last ? ((n * size[0] + y) * size[1] + x) * channels + c
                            : ((n * channels + c) * size[0] + y) * size[1] + x);
    };
    const int64_t inGroup = p_.inChannels / p_.groups, outGroup = p_.outChannels / p_.groups;
    for (int64_t n = 0; n < p_.batch; ++n)
      for (int64_t o = 0; o < p_.outChannels; ++o)
        for (int64_t y = 0; y < out[0]; ++y)
          for (int64_t x = 0; x < out[1]; ++x) {
            double sum = 0, size = 0;
            for (int64_t c = 0; c < inGroup; ++c)
              for (int64_t dy = 0; dy < p_.window[0]; ++dy)
                for (int64_t dx = 0; dx < p_.window[1]; ++dx) {
                  const int64_t row = y * p_.strides[0] - p_.pad[0] + dy * p_.dilations[0],
                                column = x * p_.strides[1] - p_.pad[1] + dx * p_.dilations[1];
                  if (row < 0 || row >= p_.in[0] || column < 0 || column >= p_.in[1])
                    continue;
                  const float weight = weights_[size_t(((o * inGroup + c) * p_.window[0] + dy) * p_.window[1] + dx)];
                  const double term =
                      p_.alpha * double(weight) *
                      double(image_[place(n, o / outGroup * inGroup + c, p_.inChannels, p_.in, row, column)]);
                  sum += term, size += std::fabs(term);
                }
            const size_t at = place(n, o, p_.outChannels, out, y, x);
            if (p_.bias)
              sum += double(bias_[size_t(o)]), size += std::fabs(double(bias_[size_t(o)]));
            if (p_.residual != Residual::None)
              sum += double(residual_[at]), size += std::fabs(double(residual_[at]));
            if (p_.relu)
              sum = std::max(sum, 0.0);
            const double inSum = double(p_.depth() + 4) * 0x1p-24 * size;
            const double bound = inSum + unitOf(p_.type) * (std::fabs(sum) + inSum) + 0x1p-25;
            if (const std::string wrong = compare({n, o, y, x}, double(values[at]), sum, bound); !wrong.empty())
              return wrong;
          }
    return "";
  }

private:
  const Problem p_;
  std::vector<float> image_, weights_, bias_, residual_;
};

/// What is wrong; empty if nothing is.
std::string tryConvolution(Card &card, const Problem &p, const std::string &call) {
  const KernelDesc desc = descOf(p, call);
  const DeviceKernelRef kernel = card.load(desc);
  Convolution convolution(card, p);
  const std::string failure = card.await(convolution.launch(kernel, desc));
  return failure.empty() ? convolution.check() : failure;
}
std::string tryConvolution(Card &card, const Problem &p) { return tryConvolution(card, p, callOf(p)); }

using CudnnLaunches = CudnnTest;

TEST_F(CudnnLaunches, EveryCombinationIsRight) {
  Card card;
  uint64_t count = 0;
  for (const DType type : {f32, f16, bf16})
    for (int bits = 0; bits < 256; ++bits)
      for (const Residual residual : {Residual::None, Residual::Separate, Residual::InPlace}) {
        Problem p{.type = type};
        p.last = bits & 1, p.bias = bits & 2, p.relu = bits & 4, p.alpha = bits & 8 ? -0.375 : 1;
        if (bits & 16)
          p.groups = 2, p.inChannels = 4, p.outChannels = 6;
        if (bits & 32)
          p.strides = {2, 3};
        if (bits & 64)
          p.dilations = {2, 3};
        if (bits & 128)
          p.pad = {2, 1};
        p.residual = residual;
        nextOrder(count++);
        ASSERT_EQ(tryConvolution(card, p), "") << ::testing::PrintToString(p) << ": " << library().lastRefusal;
      }
  EXPECT_EQ(library().executed, count); // none ran as generated
  EXPECT_EQ(library().refused, 0u) << library().lastRefusal;
}

TEST_F(CudnnLaunches, WindowsMayBeAnything) {
  Card card;
  uint64_t count = 0;
  for (const bool last : {false, true})
    for (const Pair window : {Pair{1, 1}, Pair{1, 3}, Pair{3, 1}, Pair{6, 5}})
      for (const int64_t groups : {1, 4}) // 4: depthwise
        for (const int64_t batch : {1, 3}) {
          const Problem p{.last = last,
                          .batch = batch,
                          .groups = groups,
                          .inChannels = 4,
                          .outChannels = 8,
                          .window = window,
                          .bias = true};
          ASSERT_EQ(tryConvolution(card, p), "") << ::testing::PrintToString(p) << ": " << library().lastRefusal;
          ++count;
        }
  EXPECT_EQ(library().executed, count);
}

/// An engine that needs better aligned tensors must not be taken for them.
TEST_F(CudnnLaunches, AddressesMayBeAnywhere) {
  Card card;
  for (const DType type : {f32, bf16})
    for (const int64_t shift : {0, 1, 2, 4, 8})
      for (const int operand : {-1, 0, 1, 2, 3, 4}) {
        const Problem p{.type = type,
                        .inChannels = 4,
                        .bias = true,
                        .residual = Residual::Separate,
                        .shift = shift,
                        .shifted = operand};
        ASSERT_EQ(tryConvolution(card, p), "") << ::testing::PrintToString(p);
      }
  EXPECT_EQ(library().refused, 0u) << library().lastRefusal;
}

TEST_F(CudnnLaunches, EveryEngineThatIsExactIsTaken) {
  Card card;
  for (const int engine : {20, 21, 22, 30})
    for (const DType type : {f32, f16, bf16})
      for (const bool last : {false, true}) {
        library().onlyEngine = engine;
        const Problem p{
            .type = type, .last = last, .inChannels = 8, .bias = true, .relu = true, .residual = Residual::InPlace};
        ASSERT_EQ(tryConvolution(card, p), "") << ::testing::PrintToString(p) << ", engine " << engine;
        EXPECT_EQ(library().lastEngine, engine);
      }
}

TEST_F(CudnnLaunches, StreamsShareNoWorkspace) {
  library().onlyEngine = 21;
  Card card;
  const Problem p{.inChannels = 8};
  const KernelDesc desc = descOf(p, callOf(p));
  Convolution one(card, p, 1), two(card, p, 2);
  expectNoSharedWorkspace(card, card.load(desc), desc, one, two);
}

TEST_F(CudnnLaunches, AKernelTakesOtherAddressesAndSizes) {
  Card card;
  Problem p{.bias = true};
  // The first symbol is of something else.
  const KernelDesc desc = descOf(p, callOf(p, "2*images[1..64] + 1"), R"("symbols":["other","images[1..64]"],)");
  const DeviceKernelRef kernel = card.load(desc);
  for (const int64_t images : {2, 5, 2, 1, 5}) {
    p.batch = 2 * images + 1;
    Convolution convolution(card, p, uint64_t(images));
    const int64_t scalars[] = {99, images};
    ASSERT_EQ(card.await(convolution.launch(kernel, desc, scalars)), "");
    ASSERT_EQ(convolution.check(), "") << images;
  }
  EXPECT_EQ(library().executed, 5u);
  EXPECT_EQ(library().heuristics, 3u);
}

//--- The generated kernel ---------------------------------------------------------------------------------------------
/// A convolution that is a product: of weights and one image, whose window has one element.
Problem plain() { return {.batch = 1, .inChannels = 8, .outChannels = 5, .window = {1, 1}}; }
std::string plainCall(const std::string &batch = {}) { return callOf(plain(), batch); }

std::string runWithGenerated(const std::string &call, int scalars = 0, const Problem &p = plain()) {
  Card card;
  std::string swapped = call; // the generated product has the weights first
  if (const size_t at = swapped.find(R"("image":0,"weights":1)"); at != std::string::npos)
    swapped.replace(at, 21, R"("image":1,"weights":0)");
  const KernelDesc desc = descOf(p, swapped);
  const DeviceKernelRef kernel =
      card.load(desc, productKernel("convolution", p.in[0] * p.in[1], p.inChannels, scalars));
  Convolution convolution(card, p);
  std::swap(convolution.regions[0], convolution.regions[1]);
  const std::vector<int64_t> values(size_t(scalars), 1);
  for (int i = 0; i < 2; ++i)
    if (const std::string failure = card.await(convolution.launch(kernel, desc, values)); !failure.empty())
      return failure;
  return convolution.check();
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsWithoutAnEngine) {
  library().hasNoEngine = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(runWithGenerated(plainCall()), "");
  const std::string notes = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(notes.find("kernel 'convolution' runs as generated: cuDNN has no engine"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("kernel 'convolution'"), notes.rfind("kernel 'convolution'")) << notes;
  EXPECT_EQ(library().executed, 0u);
}

/// Those that round more, or differently each time.
TEST_F(CudnnLaunches, TheGeneratedKernelRunsWhereNoEngineIsExact) {
  for (const int engine : {3, 5, 7, 8}) {
    library().onlyEngine = engine;
    EXPECT_EQ(runWithGenerated(plainCall()), "");
    EXPECT_EQ(library().executed, 0u) << engine;
  }
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsWhereTheGraphIsRefused) {
  library().graphFailure = 3001;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(runWithGenerated(plainCall()), "");
  const std::string notes = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(notes.find("describing the graph failed: CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN"), std::string::npos)
      << notes;
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsWhereTheLaunchIsRefused) {
  library().failure = 3000;
  EXPECT_EQ(runWithGenerated(plainCall()), "");
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnLaunches, AnotherEngineIsTakenWhereOneMakesNoPlan) {
  library().planFailure = 4001;
  Card card;
  const Problem p{.inChannels = 4};
  EXPECT_EQ(tryConvolution(card, p), "");
  EXPECT_EQ(library().lastEngine, 21);
}

TEST_F(CudnnLaunches, TheFallbackModeIsAskedWhereTheOtherOneRefuses) {
  library().modeFailure = 3000;
  {
    Card card;
    EXPECT_EQ(tryConvolution(card, {}), "");
  }
  EXPECT_EQ(library().lastEngine, 30);
  library().modeFailure = 4000;
  const std::string failure = runWithGenerated(plainCall());
  EXPECT_NE(failure.find("kernel 'convolution': cuDNN: asking for engines failed"), std::string::npos) << failure;
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsForSizesThatTheLaunchDoesNotCarry) {
  EXPECT_EQ(runWithGenerated(plainCall("images"), 1), "");
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsForSizesThatMakeNoConvolution) {
  EXPECT_EQ(runWithGenerated(with(plainCall(), R"("pad":[0,0])", R"("pad":[0,1])")), "");
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnLaunches, AnErrorNamesTheKernel) {
  library().failure = 5000;
  const std::string failure = runWithGenerated(plainCall());
  EXPECT_NE(failure.find("gpu0: kernel 'convolution': cudnnBackendExecute failed: CUDNN_STATUS_EXECUTION_FAILED"),
            std::string::npos)
      << failure;
}

TEST_F(CudnnLaunches, OperandsThatAreTooSmallAreRefused) {
  for (size_t operand = 0; operand < 5; ++operand) {
    const Problem p{.bias = true, .residual = Residual::Separate};
    Card card;
    const KernelDesc desc = descOf(p, callOf(p));
    const DeviceKernelRef kernel = card.load(desc);
    Convolution convolution(card, p);
    convolution.regions[operand].bytes -= 4;
    const std::string failure = card.await(convolution.launch(kernel, desc));
    EXPECT_NE(failure.find("kernel 'convolution': operand " + std::to_string(operand) + " has"), std::string::npos)
        << failure;
  }
}

TEST_F(CudnnLaunches, DescriptionsThatMakeNoSenseAreRefused) {
  Card card;
  const std::string call = callOf({});
  for (const auto &[from, to] :
       {std::pair("\"f32\"", "\"i8\""), std::pair("\"nchw\"", "\"chwn\""), std::pair("[6,5]", "[6]"),
        std::pair("\"strides\":[1,1]", "\"strides\":[1,1,1]"), std::pair("\"groups\":1", "\"groups\":2"),
        std::pair("\"groups\":1", "\"groups\":0"), std::pair("\"batch\":2", "\"batch\":\"5 +\""),
        std::pair("\"batch\":2,", ""), std::pair("\"image\":0", "\"image\":-1")}) {
    const KernelDesc desc = descOf({}, with(call, from, to));
    expectRefused(card, desc, "kernel 'convolution': its call of cuDNN is not understood");
  }
}

TEST_F(CudnnLaunches, NothingIsLeftBehind) {
  expectNothingIsLeftBehind([](Card &card) { return tryConvolution(card, {}); });
}

TEST_F(CudnnLaunches, ACardWithoutMemoryForAWorkspaceDoesWithout) {
  tryWithLittleMemory([](Card &card) { return tryConvolution(card, {}); });
  EXPECT_EQ(library().executed, 1u);
  EXPECT_EQ(library().lastEngine, 22); // 21 comes before it, and needs one
}

TEST_F(CudnnLaunches, EveryCallMayFail) {
  const Problem p{.bias = true, .residual = Residual::InPlace};
  expectEveryCallMayFail([&](Card &card) { return tryConvolution(card, p); });
}

//--- Choices of engines, each in a process of its own -----------------------------------------------------------------
/// Runs a convolution twice, and says what was asked of the library and which engine ran last.
[[noreturn]] void chooseOnce(const char *tune, bool stamps, Residual residual) {
  if (tune)
    setenv("TRESSEL_CUDNN_TUNE", tune, 1);
  unsetenv("TRESSEL_CACHE_LIMIT");
  std::string wrong;
  {
    Card card({.stamps = stamps});
    const Problem p{.inChannels = 4, .residual = residual};
    wrong = tryConvolution(card, p) + tryConvolution(card, p);
  }
  reportChoice(wrong);
}

TEST_F(CudnnLaunches, EnginesAreMeasuredOnceAndKept) {
  const TestFolder made("TRESSEL_CUDNN_TEST_FOLDER");
  const std::string folder = made.path, file = folder + "/cudnn.txt";
  setenv("TRESSEL_CACHE_DIR", folder.c_str(), 1);
  // One graph of the heuristics' choice each; four candidates, each four times, and then the choice, twice.
  EXPECT_EXIT(chooseOnce(nullptr, false, Residual::None), ::testing::ExitedWithCode(0),
              "heuristics 2 executed 2 engine 20 ");
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EXIT(chooseOnce("1", false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 1 executed 18 ");
  EXPECT_EXIT(chooseOnce("1", false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 0 executed 2 ");
  EXPECT_EXIT(chooseOnce(nullptr, false, Residual::None), ::testing::ExitedWithCode(0), "heuristics 0 executed 2 ");
  EXPECT_EXIT(chooseOnce("0", true, Residual::None), ::testing::ExitedWithCode(0),
              "heuristics 2 executed 2 engine 20 ");
  EXPECT_EXIT(chooseOnce(nullptr, true, Residual::InPlace), ::testing::ExitedWithCode(0), "heuristics 1 executed 18 ");
  // What was kept is made from its engine and knobs again: others that are no engine, or not exact, are not.
  for (const auto &[engine, seen] :
       {std::pair("22,12=1", "heuristics 0 executed 2 engine 22 "),
        std::pair("22,12=7", "heuristics 2 executed 2 engine 20 "),
        std::pair("3", "heuristics 2 executed 2 engine 20 "), std::pair("99", "heuristics 2 executed 2 engine 20 "),
        std::pair("22,", "heuristics 2 executed 2 engine 20 ")}) {
    if (std::ifstream in(file); in) {
      std::ostringstream changed;
      for (std::string problem, choice; in >> problem >> choice;)
        changed << problem << " " << engine << "\n";
      std::ofstream(file) << changed.str();
    }
    EXPECT_EXIT(chooseOnce(nullptr, false, Residual::None), ::testing::ExitedWithCode(0), seen) << engine;
  }
  unsetenv("TRESSEL_CACHE_DIR");
}

//--- Without the library ----------------------------------------------------------------------------------------------
TEST_F(CudnnLaunches, TheGeneratedKernelRunsWithoutTheLibrary) {
  expectOnce(notesWithoutFiles({"libcudnn.so.9"}),
             "convolutions run as generated kernels, without cuDNN: ");
}

TEST_F(CudnnLaunches, TheGeneratedKernelRunsWithALibraryThatIsTooOld) {
  expectOnce(
      notesWithoutLibrary("TRESSEL_STANDIN_CUDNN_VERSION=80907"),
      "convolutions run as generated kernels, without cuDNN: libcudnn.so.9 is cuDNN 8.9.7, and 9.0.0 is the oldest");
}

//--- Planted mistakes -------------------------------------------------------------------------------------------------
/// The description says something else than the operands are: each with the same number of results.
TEST_F(CudnnLaunches, WrongDescriptionsAreFound) {
  const Problem wide{.in = {9, 9}, .window = {3, 3}, .strides = {4, 4}, .pad = {1, 2}};
  const Problem narrow{.in = {6, 6}, .window = {3, 3}, .strides = {2, 2}};
  const Problem square{.inChannels = 4, .in = {5, 5}, .window = {2, 3}, .dilations = {2, 1}};
  const Problem groups{.groups = 2, .inChannels = 4, .outChannels = 4};
  const Problem added{.batch = 1, .outChannels = 4, .bias = true, .residual = Residual::Separate, .alpha = 0.5};
  uint64_t count = 0;
  for (const auto &[p, from, to] :
       {std::tuple(wide, R"("pad":[1,2])", R"("pad":[2,1])"),                       // pads that are swapped
        std::tuple(narrow, R"("strides":[2,2])", R"("strides":[3,2])"),             // a wrong stride
        std::tuple(narrow, R"("strides":[2,2])", R"("strides":[2,3])"),             //
        std::tuple(square, R"("window":[2,3])", R"("window":[2,3])"),               // right: the check itself
        std::tuple(square, R"("layout":"nchw")", R"("layout":"nhwc")"),             // the other layout
        std::tuple(groups, R"("image":0,"weights":1)", R"("image":0,"weights":0)"), // another operand
        std::tuple(added, R"("alpha":0.5)", R"("alpha":0.25)"),                     // a wrong factor
        std::tuple(added, R"("residual":3)", R"("residual":4)")}) {                 // a residual that is not there yet
    Card card;
    const std::string wrong = tryConvolution(card, p, with(callOf(p), from, to));
    EXPECT_EQ(wrong.find("element") != std::string::npos, std::string_view(from) != to)
        << ::testing::PrintToString(p) << ": " << to << ": " << wrong;
    EXPECT_EQ(library().executed, ++count) << to << ": " << library().lastRefusal;
  }
}

TEST_F(CudnnLaunches, AMissingWaitIsFound) {
  const Problem p;
  const KernelDesc desc = descOf(p, callOf(p));
  for (const bool waits : {true, false}) {
    Card card;
    Convolution convolution(card, p);
    const std::string found = twoStreams(card, card.load(desc), desc, convolution, waits);
    EXPECT_EQ(found.find("cudnnBackendExecute") == std::string::npos, waits) << found;
  }
  driver().configure("forget=1");
}

TEST_F(CudnnLaunches, AMissingWaitForAnOperandIsFound) {
  for (size_t operand = 0; operand < 4; ++operand) {
    Card card;
    const Problem p{.bias = true, .residual = Residual::Separate};
    const KernelDesc desc = descOf(p, callOf(p));
    Convolution convolution(card, p);
    expectMissingWaitIsFound(card, card.load(desc), desc, convolution, operand);
  }
}

/// What NVIDIA's library refuses.
TEST_F(CudnnLaunches, TheStandInRefusesMistakes) {
  const CudnnFunctions f;
  void *tensor = nullptr, *operation = nullptr, *none = nullptr;
  f.expect(f.create(999, &none), 3000, "no such descriptor");
  ASSERT_EQ(f.create(17, &tensor), 0);
  ASSERT_EQ(f.create(10, &operation), 0);
  const int type = 0;
  const int64_t four[] = {1, 8, 4, 4}, zero[] = {1, 8, 0, 4}, one = 1, three = 3;
  int64_t count = 0, value = 0;
  ASSERT_EQ(f.set(tensor, 901, 1, 1, &type), 0);
  f.expect(f.set(tensor, 901, 3, 1, &type), 2010, "the attribute has another type");
  f.expect(f.set(tensor, 901, 1, 2, &type), 2000, "the attribute has another number of values");
  f.expect(f.set(tensor, 100, 1, 1, &type), 2000, "no such attribute");
  f.expect(f.set(tensor, 902, 3, 4, nullptr), 2002, "no values");
  f.expect(f.finalize(tensor), 2000, "an attribute was not set");
  f.expect(f.get(tensor, 902, 3, 4, &count, &value), 2004, "a descriptor that is not finalized");
  f.expect(f.set(operation, 704, 15, 1, &tensor), 2004, "a descriptor that is not finalized");
  ASSERT_EQ(f.set(tensor, 902, 3, 4, zero), 0);
  ASSERT_EQ(f.set(tensor, 903, 3, 4, four), 0);
  ASSERT_EQ(f.set(tensor, 906, 3, 1, &one), 0);
  ASSERT_EQ(f.set(tensor, 900, 3, 1, &three), 0);
  f.expect(f.finalize(tensor), 2000, "a dimension or stride is less than 1");
  ASSERT_EQ(f.set(tensor, 902, 3, 4, four), 0);
  f.expect(f.finalize(tensor), 2000, "the alignment of a tensor");
  const int64_t sixteen = 16;
  ASSERT_EQ(f.set(tensor, 900, 3, 1, &sixteen), 0);
  ASSERT_EQ(f.finalize(tensor), 0);
  f.expect(f.set(tensor, 906, 3, 1, &one), 2000, "it is finalized already");
  f.expect(f.set(operation, 702, 15, 1, &tensor), 2012, "a descriptor of another kind");
  ASSERT_EQ(f.set(operation, 704, 15, 1, &tensor), 0);
  ASSERT_EQ(f.get(tensor, 906, 3, 1, &count, &value), 0);
  EXPECT_EQ(value, 1);
  f.expect(f.get(tensor, 906, 1, 1, &count, &value), 2010, "the attribute has another type");
  ASSERT_EQ(f.destroy(tensor), 0);
  f.expect(f.destroy(tensor), 2000, "no descriptor");
  ASSERT_EQ(f.destroy(operation), 0);
}

} // namespace

std::string tryWithoutCudnn() { return runWithGenerated(plainCall()); }

} // namespace tressel::runtime

int main(int argc, char **argv) {
  return tressel::runtime::runLibraryTests(argc, argv, tressel::runtime::tryWithoutCudnn);
}
