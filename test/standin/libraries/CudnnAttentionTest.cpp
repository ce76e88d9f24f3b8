// Attention that cuDNN computes, against the stand-in library and driver: results against plain loops, the generated
// kernel where the library does not serve, errors, choices of engines, planted mistakes.
#include "CudnnTests.h"

#include <cmath>
#include <limits>

namespace tressel::runtime {
namespace {

enum Mask : int { kNone = 0, kByBatch = 1, kByHead = 2, kByQuery = 4, kMask = 8 }; ///< kMask: there is one
struct Problem {
  DType type = f16;
  int64_t batch = 2, heads = 4, groups = 4, queries = 5, keys = 7, size = 8, width = 16;
  bool causal = false;
  int mask = kNone;
  bool hides = false; ///< some elements of the mask are -infinity, and all of a row
  double scale = 0.375;
  int64_t shift = 0; ///< elements between an operand's memory and what is allocated
  int shifted = -1;  ///< the operand that this is of; -1: all

  int64_t maskSize(int bit, int64_t size) const { return mask & bit ? size : 1; }
  int64_t maskElements() const {
    return maskSize(kByBatch, batch) * maskSize(kByHead, heads) * maskSize(kByQuery, queries) * keys;
  }
};
void PrintTo(const Problem &p, std::ostream *out) {
  *out << nameOf(p.type) << " " << p.batch << " x " << p.heads << " over " << p.groups << ", " << p.queries << " x "
       << p.keys << ", " << p.size << " to " << p.width << (p.causal ? " causal" : "") << " mask " << p.mask
       << (p.hides ? " hides" : "") << " scale " << p.scale << " shift " << p.shift << " of " << p.shifted;
}

/// Operands: q, k, v, the mask if there is one, result. `batch` and `keys` may be given as sizes.
std::string callOf(const Problem &p, const std::string &batch = {}, const std::string &keys = {}) {
  auto size = [](int64_t number, const std::string &text) {
    return text.empty() ? std::to_string(number) : '"' + text + '"';
  };
  auto flag = [&](int bit) { return p.mask & bit ? "true" : "false"; };
  std::ostringstream text;
  text << R"({"name":"cudnn.attention","type":")" << nameOf(p.type) << R"(","batch":)" << size(p.batch, batch)
       << R"(,"heads":)" << p.heads << R"(,"groups":)" << p.groups << R"(,"queries":)" << p.queries << R"(,"keys":)"
       << size(p.keys, keys) << R"(,"size":)" << p.size << R"(,"width":)" << p.width << R"(,"causal":)"
       << (p.causal ? "true" : "false") << R"(,"scale":)" << p.scale << R"(,"q":0,"k":1,"v":2)";
  if (p.mask)
    text << R"(,"mask":{"buffer":3,"by_batch":)" << flag(kByBatch) << R"(,"by_head":)" << flag(kByHead)
         << R"(,"by_query":)" << flag(kByQuery) << "}";
  text << R"(,"result":)" << (p.mask ? 4 : 3) << "}";
  return text.str();
}
KernelDesc descOf(const Problem &p, const std::string &call, const std::string &more = {}) {
  return libraryKernel("attention", call, p.batch * p.heads * p.queries * p.width, more);
}

/// The operands of attention on a card, and what must come out.
class Attention : public Operands {
public:
  Attention(Card &card, const Problem &p, uint64_t seed = 1) : Operands(card, p.type, seed, p.shift, p.shifted), p_(p) {
    q_ = add(p.batch * p.heads * p.queries * p.size, Access::Read);
    k_ = add(p.batch * p.groups * p.keys * p.size, Access::Read);
    v_ = add(p.batch * p.groups * p.keys * p.width, Access::Read);
    if (p.mask)
      mask_ = add(p.maskElements(), Access::Read, [&](std::vector<float> &values) {
        for (size_t i = 0; p.hides && i < values.size(); ++i)
          if (i % 3 == 1 || int64_t(i) < p.keys)
            values[i] = -std::numeric_limits<float>::infinity();
      });
    add(p.batch * p.heads * p.queries * p.width, Access::Write);
  }
  /// Of the result, as it is there.
  std::string check() {
    const std::vector<float> values = result();
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.heads; ++h)
        for (int64_t i = 0; i < p_.queries; ++i)
          if (const std::string wrong = checkRow(values, b, h, i); !wrong.empty())
            return wrong;
    return "";
  }

private:
  std::string checkRow(const std::vector<float> &values, int64_t b, int64_t h, int64_t i) const {
    const int64_t group = b * p_.groups + h / (p_.heads / p_.groups), row = (b * p_.heads + h) * p_.queries + i;
    std::vector<double> weights;
    double most = -INFINITY, sum = 0, largest = 0; // of what scores are added up from
    for (int64_t j = 0; j < p_.keys; ++j) {
      double score = 0, size = 0;
      for (int64_t d = 0; d < p_.size; ++d) {
        const double term =
            p_.scale * double(q_[size_t(row * p_.size + d)]) * double(k_[size_t((group * p_.keys + j) * p_.size + d)]);
        score += term, size += std::fabs(term);
      }
      if (p_.mask) {
        auto index = [&](int bit, int64_t number, int64_t all) {
          return p_.mask & bit ? std::pair(number, all) : std::pair(int64_t(0), int64_t(1));
        };
        int64_t at = 0;
        for (const auto &[number, all] : {index(kByBatch, b, p_.batch), index(kByHead, h, p_.heads),
                                          index(kByQuery, i, p_.queries), std::pair(j, p_.keys)})
          at = at * all + number;
        score += double(mask_[size_t(at)]), size += 1;
      }
      if (p_.causal && j > i)
        score = -INFINITY;
      weights.push_back(score);
      most = std::max(most, score), largest = std::max(largest, size);
    }
    for (double &weight : weights)
      sum += weight = std::exp(weight - most);
    const double unit = unitOf(p_.type),
                 relative = (4 * double(p_.size + 4) * largest + double(p_.keys) + 8) * 0x1p-24 + unit;
    for (int64_t e = 0; e < p_.width; ++e) {
      double wanted = 0, terms = 0;
      for (int64_t j = 0; j < p_.keys; ++j) {
        const double term = weights[size_t(j)] / sum * double(v_[size_t((group * p_.keys + j) * p_.width + e)]);
        wanted += term, terms += std::fabs(term);
      }
      const double bound = terms * relative + unit * (std::fabs(wanted) + terms * relative) + 0x1p-22;
      if (const std::string wrong = compare({b, h, i, e}, double(values[size_t(row * p_.width + e)]), wanted, bound);
          !wrong.empty())
        return wrong;
    }
    return "";
  }
  const Problem p_;
  std::vector<float> q_, k_, v_, mask_;
};

/// What is wrong; empty if nothing is.
std::string tryAttention(Card &card, const Problem &p, const std::string &call) {
  const KernelDesc desc = descOf(p, call);
  const DeviceKernelRef kernel = card.load(desc);
  Attention attention(card, p);
  const std::string failure = card.await(attention.launch(kernel, desc));
  return failure.empty() ? attention.check() : failure;
}
std::string tryAttention(Card &card, const Problem &p) { return tryAttention(card, p, callOf(p)); }

using CudnnAttention = CudnnTest;

TEST_F(CudnnAttention, EveryCombinationIsRight) {
  Card card;
  uint64_t count = 0;
  for (const DType type : {f16, bf16})
    for (const bool causal : {false, true})
      for (const int64_t groups : {4, 2, 1})
        for (int mask = 0; mask <= 8; ++mask)
          for (const bool hides : {false, true}) {
            Problem p{.type = type, .groups = groups, .causal = causal};
            p.mask = mask == 8 ? int(kNone) : kMask | mask, p.hides = hides;
            if (hides && !p.mask)
              continue;
            nextOrder(count++);
            ASSERT_EQ(tryAttention(card, p), "") << ::testing::PrintToString(p) << ": " << library().lastRefusal;
          }
  EXPECT_EQ(library().executed, count); // none ran as generated
  EXPECT_EQ(library().refused, 0u) << library().lastRefusal;
}

TEST_F(CudnnAttention, SizesMayBeAnything) {
  Card card;
  uint64_t count = 0;
  for (const bool causal : {false, true})
    for (const int64_t queries : {1, 2, 9})
      for (const int64_t keys : {1, 3, 12})
        for (const int64_t size : {8, 24})
          for (const int64_t width : {8, 40}) {
            const Problem p{.batch = 1,
                            .heads = 2,
                            .groups = 1,
                            .queries = queries,
                            .keys = keys,
                            .size = size,
                            .width = width,
                            .causal = causal,
                            .mask = kMask | kByQuery,
                            .scale = 2};
            ASSERT_EQ(tryAttention(card, p), "") << ::testing::PrintToString(p) << ": " << library().lastRefusal;
            ++count;
          }
  EXPECT_EQ(library().executed, count);
}

TEST_F(CudnnAttention, EveryEngineThatIsExactIsTaken) {
  Card card;
  for (const int engine : {42, 43, 50})
    for (const DType type : {f16, bf16}) {
      library().onlyEngine = engine;
      const Problem p{.type = type, .causal = true, .mask = kMask | kByQuery};
      ASSERT_EQ(tryAttention(card, p), "") << ::testing::PrintToString(p) << ", engine " << engine;
      EXPECT_EQ(library().lastEngine, engine);
    }
}

TEST_F(CudnnAttention, StreamsShareNoWorkspace) {
  library().onlyEngine = 43;
  Card card;
  const Problem p;
  const KernelDesc desc = descOf(p, callOf(p));
  Attention one(card, p, 1), two(card, p, 2);
  expectNoSharedWorkspace(card, card.load(desc), desc, one, two);
}

TEST_F(CudnnAttention, AKernelTakesOtherAddressesAndSizes) {
  Card card;
  Problem p{.causal = true, .mask = kMask | kByBatch};
  const KernelDesc desc =
      descOf(p, callOf(p, "texts[1..8]", "2*words[1..64] + 1"), R"("symbols":["other","texts[1..8]","words[1..64]"],)");
  const DeviceKernelRef kernel = card.load(desc);
  for (const auto &[texts, words] : {std::pair(1, 2), std::pair(3, 5), std::pair(1, 2), std::pair(3, 2)}) {
    p.batch = texts, p.keys = 2 * words + 1;
    Attention attention(card, p, uint64_t(words));
    const int64_t scalars[] = {99, texts, words};
    ASSERT_EQ(card.await(attention.launch(kernel, desc, scalars)), "");
    ASSERT_EQ(attention.check(), "") << texts << " " << words;
  }
  EXPECT_EQ(library().executed, 4u);
  EXPECT_EQ(library().heuristics, 3u);
}

//--- The generated kernel ---------------------------------------------------------------------------------------------
/// Attention to one key: each row of the result is that of v.
Problem plain() { return {.batch = 1, .heads = 1, .groups = 1, .queries = 3, .keys = 1, .size = 8, .width = 8}; }
/// Of the operands q, k, v and result: one block an element.
std::string rowKernel(int64_t width, int scalars) {
  std::string text = "\n.version 7.0\n.target sm_80\n.address_size 64\n.visible .entry attention(.param .u64 p0, "
                     ".param .u64 p1, .param .u64 p2, .param .u64 p3";
  for (int i = 0; i <= scalars; ++i)
    text += ", .param .u64 p" + std::to_string(4 + i);
  return text + R"() {
  .reg .u64 %rd<8>; .reg .u32 %r<8>; .reg .u16 %h<4>; .reg .pred %p<4>;
  mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ret; mov.u32 %r1, %ctaid.x; rem.u32 %r3, %r1, )" +
         std::to_string(width) + R"(;
  ld.param.u64 %rd1, [p2]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd2, [p3]; cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd3, %r3, 2; add.u64 %rd1, %rd1, %rd3; mul.wide.u32 %rd4, %r1, 2; add.u64 %rd2, %rd2, %rd4;
  ld.global.u16 %h1, [%rd1]; st.global.u16 [%rd2], %h1; ret;
}
)";
}
std::string runWithGenerated(const Problem &p, const std::string &call, int scalars = 0) {
  Card card;
  const KernelDesc desc = descOf(p, call);
  const DeviceKernelRef kernel = card.load(desc, rowKernel(p.width, scalars));
  Attention attention(card, p);
  const std::vector<int64_t> values(size_t(scalars), 1);
  for (int i = 0; i < 2; ++i)
    if (const std::string failure = card.await(attention.launch(kernel, desc, values)); !failure.empty())
      return failure;
  return attention.check();
}
std::string runWithGenerated(const Problem &p = plain()) { return runWithGenerated(p, callOf(p)); }

TEST_F(CudnnAttention, TheGeneratedKernelRunsWithoutAnEngine) {
  library().hasNoEngine = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(runWithGenerated(), "");
  expectOnce(::testing::internal::GetCapturedStderr(),
             "kernel 'attention' runs as generated: cuDNN has no engine for its attention (f16, 1 heads of 8)");
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnAttention, TheGeneratedKernelRunsWhereNoEngineIsExact) {
  for (const int engine : {40, 41}) {
    library().onlyEngine = engine;
    EXPECT_EQ(runWithGenerated(), "");
    EXPECT_EQ(library().executed, 0u) << engine;
  }
}

TEST_F(CudnnAttention, TheGeneratedKernelRunsWhereTheLibraryRefuses) {
  library().graphFailure = 3001;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(runWithGenerated(), "");
  expectOnce(
      ::testing::internal::GetCapturedStderr(),
      "cuDNN does not take its attention: describing the graph failed: CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN");
  library().graphFailure = 0, library().failure = 3000; // the launch
  EXPECT_EQ(runWithGenerated(), "");
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnAttention, AnotherEngineIsTakenWhereOneMakesNoPlan) {
  library().planFailure = 4001;
  Card card;
  EXPECT_EQ(tryAttention(card, {}), "");
  EXPECT_EQ(library().lastEngine, 42);
}

TEST_F(CudnnAttention, TheGeneratedKernelRunsForWhatTheLibraryDoesNotTake) {
  EXPECT_EQ(runWithGenerated(plain(), callOf(plain(), "texts"), 1), ""); // a size that the launch does not carry
  Problem odd = plain();
  odd.size = 12;
  EXPECT_EQ(runWithGenerated(odd), "");
  odd = plain(), odd.width = 12;
  EXPECT_EQ(runWithGenerated(odd), "");
  EXPECT_EQ(library().executed, 0u);
}

/// The library's code reads 16 bytes at once.
TEST_F(CudnnAttention, TheGeneratedKernelRunsForAddressesThatAreNotAligned) {
  for (const int operand : {-1, 0, 1, 2, 3})
    for (const int64_t shift : {1, 4}) {
      Problem p = plain();
      p.shift = shift, p.shifted = operand;
      EXPECT_EQ(runWithGenerated(p), "") << operand;
      EXPECT_EQ(library().executed, 0u);
    }
  Problem p = plain();
  p.shift = 8;
  EXPECT_EQ(runWithGenerated(p), "");
  EXPECT_EQ(library().executed, 2u);
}

TEST_F(CudnnAttention, AnErrorNamesTheKernel) {
  library().failure = 5000;
  const std::string failure = runWithGenerated();
  EXPECT_NE(failure.find("gpu0: kernel 'attention': cudnnBackendExecute failed: CUDNN_STATUS_EXECUTION_FAILED"),
            std::string::npos)
      << failure;
}

TEST_F(CudnnAttention, OperandsThatAreTooSmallAreRefused) {
  for (size_t operand = 0; operand < 5; ++operand) {
    const Problem p{.mask = kMask | kByHead | kByQuery};
    Card card;
    const KernelDesc desc = descOf(p, callOf(p));
    const DeviceKernelRef kernel = card.load(desc);
    Attention attention(card, p);
    attention.regions[operand].bytes -= 2;
    const std::string failure = card.await(attention.launch(kernel, desc));
    EXPECT_NE(failure.find("kernel 'attention': operand " + std::to_string(operand) + " has"), std::string::npos)
        << failure;
  }
}

TEST_F(CudnnAttention, DescriptionsThatMakeNoSenseAreRefused) {
  Card card;
  const Problem p{.mask = kMask};
  for (const auto &[from, to] :
       {std::pair("\"f16\"", "\"f32\""), std::pair("\"batch\":2", "\"batch\":\"5 +\""), std::pair("\"batch\":2,", ""),
        std::pair("\"scale\":0.375", "\"scale\":0"), std::pair("\"q\":0", "\"q\":-1"),
        std::pair("\"by_head\":false,", ""), std::pair("\"causal\":false", "\"causal\":1")})
    expectRefused(card, descOf(p, with(callOf(p), from, to)),
                  "kernel 'attention': its call of cuDNN is not understood");
}

TEST_F(CudnnAttention, NothingIsLeftBehind) {
  expectNothingIsLeftBehind([](Card &card) { return tryAttention(card, {.causal = true}); });
}

TEST_F(CudnnAttention, ACardWithoutMemoryForAWorkspaceDoesWithout) {
  library().onlyEngine = 43; // needs one
  ::testing::internal::CaptureStderr();
  tryWithLittleMemory([](Card &card) {
    const Problem p = plain();
    const KernelDesc desc = descOf(p, callOf(p));
    Attention attention(card, p);
    const std::string failure = card.await(attention.launch(card.load(desc, rowKernel(p.width, 0)), desc));
    return failure.empty() ? attention.check() : failure;
  });
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(library().executed, 0u);
}

TEST_F(CudnnAttention, EveryCallMayFail) {
  expectEveryCallMayFail([](Card &card) { return tryAttention(card, {.causal = true, .mask = kMask}); });
}

//--- Each in a process of its own -------------------------------------------------------------------------------------
[[noreturn]] void chooseOnce(const char *tune) {
  if (tune)
    setenv("TRESSEL_CUDNN_TUNE", tune, 1);
  unsetenv("TRESSEL_CACHE_LIMIT");
  std::string wrong;
  {
    Card card;
    const Problem p{.causal = true};
    wrong = tryAttention(card, p) + tryAttention(card, p);
  }
  reportChoice(wrong);
}

TEST_F(CudnnAttention, EnginesAreMeasuredOnceAndKept) {
  const TestFolder folder("TRESSEL_CUDNN_ATTENTION_TEST_FOLDER");
  setenv("TRESSEL_CACHE_DIR", folder.path.c_str(), 1);
  EXPECT_EXIT(chooseOnce(nullptr), ::testing::ExitedWithCode(0), "heuristics 2 executed 2 engine 42 ");
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/cudnn.txt"));
  // Three candidates, each four times, and then the choice, twice.
  EXPECT_EXIT(chooseOnce("1"), ::testing::ExitedWithCode(0), "heuristics 1 executed 14 ");
  EXPECT_EXIT(chooseOnce(nullptr), ::testing::ExitedWithCode(0), "heuristics 0 executed 2 ");
  EXPECT_EXIT(chooseOnce("0"), ::testing::ExitedWithCode(0), "heuristics 2 executed 2 engine 42 ");
  unsetenv("TRESSEL_CACHE_DIR");
}

/// Runs with a version of the library.
[[noreturn]] void runVersion(const char *version, bool causal, int mask) {
  setenv("TRESSEL_STANDIN_CUDNN_VERSION", version, 1);
  Problem p = plain();
  p.causal = causal, p.mask = mask;
  std::string wrong;
  if (mask) { // a mask of one key changes nothing: the generated kernel has the result behind it
    Card card;
    const KernelDesc desc = descOf(p, callOf(p));
    const DeviceKernelRef kernel = card.load(desc, with(rowKernel(p.width, 1), "[p3]", "[p4]"));
    Attention attention(card, p);
    wrong = card.await(attention.launch(kernel, desc)) + attention.check();
  } else
    wrong = runWithGenerated(p);
  reportChoice(wrong);
}

TEST_F(CudnnAttention, VersionsAreHeldToWhatTheyCompute) {
  const auto done = ::testing::ExitedWithCode(0);
  for (const char *version : {"90000", "90900", "91002", "91900", "92100"})
    EXPECT_EXIT(runVersion(version, true, kNone), done, "executed 2 engine 42 ") << version;
  for (const char *version : {"91000", "91001"}) // faulty
    EXPECT_EXIT(runVersion(version, true, kNone), done, "executed 0 ") << version;
  for (const char *version : {"90900", "91001"}) // masks may be -infinity from 9.10.2 on
    EXPECT_EXIT(runVersion(version, false, kMask), done, "executed 0 ") << version;
  EXPECT_EXIT(runVersion("91002", false, kMask), done, "executed 1 engine 42 ");
}

TEST_F(CudnnAttention, TheGeneratedKernelRunsWithoutTheLibrary) {
  expectOnce(notesWithoutFiles({"libcudnn.so.9"}),
             "attention runs as generated kernels, without cuDNN: ");
}

//--- Planted mistakes -------------------------------------------------------------------------------------------------
/// The description says something else than the operands are: each with the same number of results.
TEST_F(CudnnAttention, WrongDescriptionsAreFound) {
  const Problem p{.groups = 2, .queries = 8, .keys = 8, .size = 16, .width = 16, .causal = true},
      wide{.queries = 16, .keys = 16, .size = 16, .width = 8}, masked{.keys = 5, .mask = kMask | kByQuery};
  uint64_t count = 0;
  for (const auto &[problem, from, to] :
       {std::tuple(p, R"("causal":true)", R"("causal":true)"),                   // right: the check itself
        std::tuple(p, R"("causal":true)", R"("causal":false)"),                  //
        std::tuple(p, R"("scale":0.375)", R"("scale":0.25)"),                    //
        std::tuple(p, R"("k":1)", R"("k":0)"),                                   // another operand
        std::tuple(p, R"("k":1,"v":2)", R"("k":2,"v":1)"),                       //
        std::tuple(p, R"("groups":2)", R"("groups":1)"),                         // heads share others
        std::tuple(p, R"("heads":4,"groups":2,"queries":8,"keys":8)",            // matrices lie elsewhere
                   R"("heads":2,"groups":1,"queries":16,"keys":16)"),            //
        std::tuple(wide, R"("queries":16,"keys":16,"size":16,"width":8)",        // a wrong leading dimension
                   R"("queries":16,"keys":16,"size":8,"width":8)"),              //
        std::tuple(masked, R"("by_query":true)", R"("by_query":false)"),         // a mask of other rows
        std::tuple(masked, R"("mask":{"buffer":3)", R"("mask":{"buffer":1)")}) { //
    Card card;
    const std::string wrong = tryAttention(card, problem, with(callOf(problem), from, to));
    EXPECT_EQ(wrong.find("element") != std::string::npos, std::string_view(from) != to)
        << ::testing::PrintToString(problem) << ": " << to << ": " << wrong;
    EXPECT_EQ(library().executed, ++count) << to << ": " << library().lastRefusal;
  }
}

TEST_F(CudnnAttention, AMissingWaitIsFound) {
  const Problem p{.mask = kMask};
  const KernelDesc desc = descOf(p, callOf(p));
  for (const bool waits : {true, false}) {
    Card card;
    Attention attention(card, p);
    const std::string found = twoStreams(card, card.load(desc), desc, attention, waits);
    EXPECT_EQ(found.find("cudnnBackendExecute") == std::string::npos, waits) << found;
  }
  driver().configure("forget=1");
  for (size_t operand = 0; operand < 4; ++operand) {
    Card card;
    Attention attention(card, p);
    expectMissingWaitIsFound(card, card.load(desc), desc, attention, operand);
  }
}

/// What NVIDIA's library refuses.
TEST_F(CudnnAttention, TheStandInRefusesMistakes) {
  const CudnnFunctions f;
  std::vector<void *> all;
  auto make = [&](int kind) {
    void *made = nullptr;
    EXPECT_EQ(f.create(kind, &made), 0);
    return all.emplace_back(made);
  };
  int64_t next = 0;
  auto tensor = [&](int type, std::vector<int64_t> dims, int flag = 0) { // flag: 907 virtual, 908 by value
    void *made = make(17);
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t d = dims.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * dims[d + 1];
    const int64_t id = ++next, alignment = 16;
    const bool yes = true;
    f.set(made, 901, 1, 1, &type), f.set(made, 906, 3, 1, &id), f.set(made, 900, 3, 1, &alignment);
    f.set(made, 902, 3, int64_t(dims.size()), dims.data()), f.set(made, 903, 3, int64_t(dims.size()), strides.data());
    if (flag)
      EXPECT_EQ(f.set(made, flag, 2, 1, &yes), 0);
    return made;
  };
  auto final = [&](void *descriptor) {
    EXPECT_EQ(f.finalize(descriptor), 0) << library().lastRefusal;
    return descriptor;
  };
  f.expect(f.finalize(tensor(0, {2, 1}, 908)), 2000, "what is passed by value is one number, and not virtual");
  f.expect(f.finalize(tensor(11, {2, 1})), 3003, "the type of a tensor"); // bools have no memory
  void *q = final(tensor(2, {1, 2, 4, 8})), *k = final(tensor(2, {1, 2, 8, 6})), *v = final(tensor(9, {1, 2, 6, 8})),
       *scores = final(tensor(0, {1, 2, 4, 6}, 907)), *few = final(tensor(0, {1, 2, 4, 5}, 907)),
       *odd = final(tensor(2, {1, 3, 8, 6}));
  void *product = make(18);
  const int f16Number = 2, f32Number = 0;
  ASSERT_EQ(f.set(product, 1500, 1, 1, &f16Number), 0);
  f.expect(f.finalize(product), 3000, "the type of computing of a product");
  ASSERT_EQ(f.set(product, 1500, 1, 1, &f32Number), 0);
  final(product);
  auto multiply = [&](void *a, void *b, void *c) {
    void *made = make(19);
    EXPECT_EQ(f.set(made, 1523, 15, 1, &product), 0);
    EXPECT_EQ(f.set(made, 1520, 15, 1, &a), 0);
    EXPECT_EQ(f.set(made, 1521, 15, 1, &b), 0);
    if (c)
      EXPECT_EQ(f.set(made, 1522, 15, 1, &c), 0);
    return made;
  };
  f.expect(f.finalize(multiply(q, k, nullptr)), 2000, "an attribute was not set");
  f.expect(f.finalize(multiply(q, k, few)), 2008, "the sizes of a product");
  f.expect(f.finalize(multiply(q, odd, scores)), 2008, "the batch of a product");
  f.expect(f.finalize(multiply(k, v, final(tensor(0, {1, 2, 8, 8}, 907)))), 3003, "the types of the matrices together");
  final(multiply(q, k, scores));
  auto pointwise = [&](int mode, int computed, int64_t axis = -1) {
    void *made = make(0);
    EXPECT_EQ(f.set(made, 0, 14, 1, &mode), 0);
    EXPECT_EQ(f.set(made, 1, 1, 1, &computed), 0);
    if (axis >= 0)
      EXPECT_EQ(f.set(made, 9, 3, 1, &axis), 0);
    return made;
  };
  f.expect(f.finalize(pointwise(303, 0)), 3000, "the type of computing of a pointwise operation");
  f.expect(f.finalize(pointwise(501, 0)), 2000, "an axis is for the index along it");
  f.expect(f.finalize(pointwise(4, 0)), 3000, "the pointwise operation");
  auto operation = [&](void *kind, void *x, void *other, void *y) {
    void *made = make(13);
    EXPECT_EQ(f.set(made, 750, 15, 1, &kind), 0);
    EXPECT_EQ(f.set(made, 751, 15, 1, &x), 0);
    if (other)
      EXPECT_EQ(f.set(made, 752, 15, 1, &other), 0);
    EXPECT_EQ(f.set(made, 753, 15, 1, &y), 0);
    return made;
  };
  void *like = final(tensor(0, {1, 2, 4, 6}, 907)), *index = final(pointwise(501, 0, 3));
  f.expect(f.finalize(operation(final(pointwise(9, 0)), scores, few, like)), 2008, "an operand has another size");
  f.expect(f.finalize(operation(final(pointwise(9, 0)), scores, nullptr, like)), 2000,
           "a pointwise operation has another number of operands");
  f.expect(f.finalize(operation(index, scores, nullptr, like)), 3003, "indices are of i32, comparisons of bools");
  for (void *each : all)
    ASSERT_EQ(f.destroy(each), 0);
}

} // namespace

std::string tryWithoutCudnn() { return runWithGenerated(); }

} // namespace tressel::runtime

int main(int argc, char **argv) {
  return tressel::runtime::runLibraryTests(argc, argv, tressel::runtime::tryWithoutCudnn);
}
