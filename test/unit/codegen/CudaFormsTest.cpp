// Every kernel of the device library that a KernelForm names, on calls made up at random, must give what the reference evaluation
// gives, in place too where its op says so.
#include "codegen/cuda/library/LibraryKernels.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/OpBounds.h"
#include "test/support/RandomOps.h"
#include "test/support/SymbolicSizes.h"
#include "test/unit/codegen/CudaDeviceHarness.h"

#include <cstring>

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::cuda;
using op::HostTensor;
using op::OpInfo;
using tressel::codegen::cuda::test::GpuKernel;

namespace {

HostTensor copyOf(const HostTensor &t) {
  HostTensor copy = HostTensor::allocate(t.type);
  std::memcpy(copy.data.get(), t.data.get(), static_cast<size_t>(t.type.bytes()));
  return copy;
}

/// Sizes that are known only at launch.
struct Symbolic {
  std::vector<TensorType> types; ///< of operands and results
  std::vector<Size> symbols;
  std::vector<int64_t> values;
};

/// `unread`: a result that nobody reads.
void expectAgreement(const tressel::test::OpCall &call, const std::vector<HostTensor> &inputs,
                     const op::KernelForm &form, const Arch &arch, int unread = -1,
                     const Symbolic *symbolic = nullptr) {
  const OpInfo &info = *call.op;
  const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
  std::vector<TensorType> types = call.operands;
  types.insert(types.end(), call.results.begin(), call.results.end());
  if (symbolic)
    types = symbolic->types;
  std::vector<int32_t> buffers;
  int numBuffers = 0;
  for (size_t i = 0; i < types.size(); ++i)
    buffers.push_back(static_cast<int>(i) == static_cast<int>(inputs.size()) + unread && unread >= 0 ? -1
                                                                                                     : numBuffers++);
  const auto kernel =
      makeFormKernel("k", form, types, buffers, numBuffers, symbolic ? symbolic->symbols : std::vector<Size>(), arch);
  if (!kernel && form.kernel.starts_with("attention_") && form.params[2].isNumber() && form.params[2] < 8)
    return; // few queries: products do better
  EXPECT_TRUE(kernel) << form.kernel;
  if (!kernel)
    return;
  const GpuKernel gpu(*kernel, arch);
  for (bool inPlace : {false, true}) {
    if (inPlace && info.overwrites < 0)
      continue;
    std::vector<HostTensor> operands, results;
    for (const HostTensor &t : inputs)
      operands.push_back(copyOf(t));
    for (const TensorType &type : call.results)
      results.push_back(HostTensor::allocate(type));
    if (inPlace)
      results[0] = operands[static_cast<size_t>(info.overwrites)];
    std::vector<void *> pointers;
    std::vector<int64_t> bytes;
    auto add = [&](const HostTensor &t, int result) {
      if (result >= 0 && result == unread)
        return;
      pointers.push_back(t.data.get());
      bytes.push_back(t.type.bytes());
    };
    for (const HostTensor &t : operands)
      add(t, -1);
    for (size_t i = 0; i < results.size(); ++i)
      add(results[i], static_cast<int>(i));
    const int32_t status = gpu.run(pointers, bytes, symbolic ? symbolic->values : std::vector<int64_t>());
    EXPECT_EQ(status != 0, !want) << info.name << ": " << want.error << kernel->text;
    if (unread >= 0)
      results[static_cast<size_t>(unread)].data.reset();
    if (want)
      EXPECT_EQ(tressel::test::outsideBounds(call, inputs, results, want), "") << kernel->text << (inPlace ? ", in place" : "");
  }
  if (types[0].dtype == f32 || types[0].dtype == bf16) // the others' kernels are alike
    gpu.assembleFor(arch);
}

/// The call with one of its sizes (`wanted`, or any) as a symbol, if its op and its kernel take that.
std::optional<std::pair<Symbolic, op::KernelForm>> symbolicForm(const tressel::test::OpCall &call,
                                                                tressel::test::Random &random, int64_t wanted = 0) {
  std::vector<int64_t> sizes;
  for (const TensorType &type : call.operands)
    for (Size size : type.shape)
      if (size > 1)
        sizes.push_back(size.number());
  if (sizes.empty())
    return std::nullopt;
  const int64_t value = wanted ? wanted : random.pick(sizes);
  const Size symbol = dim::symbol("n");
  tressel::test::SymbolicSizes names;
  names.add(value, symbol);
  tressel::test::OpCall declared = call;
  if (!names.declare(declared, std::vector<std::optional<TensorType>>(call.operands.size())).value_or(false))
    return std::nullopt;
  for (TensorType &type : declared.operands)
    type = names.declared(type);
  declared.results = call.op->infer(*call.op, declared.operands, declared.attrs).types;
  auto form = call.op->kernelForm(*call.op, declared.operands, declared.results, declared.attrs);
  if (!form)
    return std::nullopt;
  Symbolic symbolic{declared.operands, {symbol}, {value}};
  symbolic.types.insert(symbolic.types.end(), declared.results.begin(), declared.results.end());
  return std::pair(std::move(symbolic), std::move(*form));
}

class CudaForms : public testing::TestWithParam<const OpInfo *> {};

TEST_P(CudaForms, AgreesWithReference) {
  const OpInfo &info = *GetParam();
  int compared = 0, symbolic = 0;
  for (int type = 0; type < kNumDTypes; ++type) {
    tressel::test::Random random(17 + static_cast<uint64_t>(type));
    int ofType = 0;
    for (int tries = 0; tries < 30 && ofType < 3; ++tries) {
      auto call =
          tressel::test::proposeCall(info, static_cast<DType>(type), random, {.zeroSize = tries % 4 == 3 ? 0.5 : 0});
      if (!call)
        continue;
      auto form = info.kernelForm(info, call->operands, call->results, call->attrs);
      if (!form)
        continue; // the decomposition converts
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < call->operands.size(); ++i)
        inputs.push_back(tressel::test::randomOperand(
            *call, i, random, tries % 2 ? tressel::test::Values::Special : tressel::test::Values::Wide));
      ++ofType;
      expectAgreement(*call, inputs, *form,
                      findArch(tressel::test::runnableArch(
                          architectures()[static_cast<size_t>(tries) % architectures().size()].name)));
      if (auto form = ofType == 1 ? symbolicForm(*call, random) : std::nullopt) {
        expectAgreement(*call, inputs, form->second, findArch("sm_90"), -1, &form->first);
        ++symbolic;
      }
      if (HasFailure())
        return;
    }
    compared += ofType;
  }
  EXPECT_GT(compared, 0) << "no call has a kernel form";
  EXPECT_GT(symbolic, 0) << "no call has sizes known at launch";
}

std::vector<const OpInfo *> opsWithKernels() {
  std::vector<const OpInfo *> ops;
  for (const OpInfo *info : op::allOps())
    if (info->kernelForm)
      ops.push_back(info);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, CudaForms, testing::ValuesIn(opsWithKernels()),
                         [](const auto &param) { return std::string(param.param->name); });

tressel::test::OpCall callOf(const char *name, std::vector<TensorType> operands, op::Attrs attrs) {
  tressel::test::OpCall call{op::findOp(name), std::move(operands), std::move(attrs), {}};
  call.results = call.op->infer(*call.op, call.operands, call.attrs).types;
  return call;
}

void expectAgreement(const tressel::test::OpCall &call, tressel::test::Random &random, int unread = -1) {
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i)
    inputs.push_back(tressel::test::randomOperand(call, i, random, tressel::test::Values::Special));
  const auto form = call.op->kernelForm(*call.op, call.operands, call.results, call.attrs);
  ASSERT_TRUE(form);
  expectAgreement(call, inputs, *form, findArch("sm_90"), unread);
}

/// In shared memory, many lines to a block, and too long for it: in the result's memory.
TEST(CudaSort, LinesOfAllLengths) {
  tressel::test::Random random(2);
  for (const char *name : {"sort", "argsort", "top_k"})
    for (DType type : {f32, f64, f16, i8, i64, bool_})
      for (int64_t size : {1, 2, 33, 700, 4500, 9000}) {
        if (size > 1000 && type != f32 && (size > 5000 || (type != f16 && type != i64)))
          continue;
        const bool flag = random.chance(0.5), isTop = std::string_view(name) == "top_k";
        const int64_t k = size > 100 ? size / 30 : size;
        const auto call = callOf(name, {{type, {2, size, size > 1000 ? 1 : 3}}},
                                 isTop ? op::Attrs{Size(k), int64_t(1), flag} : op::Attrs{int64_t(1), flag});
        for (int unread = -1; unread < (isTop ? 2 : 0); ++unread)
          expectAgreement(call, random, unread);
        if (HasFailure())
          return;
      }
}

/// Lines by a warp, by a block in several pieces, and side by side in segments.
TEST(CudaScan, LinesOfAllLengths) {
  tressel::test::Random random(4);
  for (const char *name : {"cumsum", "cummax"})
    for (DType type : {f32, bf16, i64, u8})
      for (const Shape &shape :
           {Shape{3, 40}, Shape{2, 300, 1}, Shape{2, 2500}, Shape{2, 700, 3}, Shape{40, 70}, Shape{9, 2, 64}}) {
        op::Attrs attrs{int64_t(shape.rank() == 2 && shape[0] != 40 ? 1
                                : shape.rank() == 3                 ? (shape[0] == 9 ? 0 : 1)
                                                                    : 0),
                        random.chance(0.5)};
        if (std::string_view(name) == "cumsum")
          attrs.push_back(random.chance(0.5));
        const auto call = callOf(name, {{type, shape}}, attrs);
        if (!call.op->kernelForm(*call.op, call.operands, call.results, call.attrs))
          continue; // converts
        expectAgreement(call, random);
        if (HasFailure())
          return;
      }
}

/// Many updates, several for each place: sums have the interpreter's order, and the last of those that are set stays.
TEST(CudaScatter, ManyUpdates) {
  tressel::test::Random random(6);
  for (DType type : {f32, f16, bool_})
    for (const char *mode : {"set", "add", "max"}) {
      if (type == bool_ && mode[0] != 'a')
        continue;
      for (int64_t slice : {1, 5, 300}) {
        const auto call = callOf(
            "scatter_nd", {{type, {6, 5, slice}}, {i64, {400 / slice + 300, 2}}, {type, {400 / slice + 300, slice}}},
            {std::string(mode)});
        expectAgreement(call, random);
      }
      for (int64_t columns : {1, 7, 70}) {
        const auto call =
            callOf("put_along_axis", {{type, {2, 50, columns}}, {i64, {2, 700, columns}}, {type, {2, 700, columns}}},
                   {int64_t(1), std::string(mode)});
        expectAgreement(call, random);
      }
      if (HasFailure())
        return;
    }
}

/// Several blocks of queries and keys, sizes that leave tails, masks of both kinds, heads that share keys and values.
TEST(CudaAttention, AgreesWithReference) {
  tressel::test::Random random(8);
  struct Case {
    int64_t heads, groups, queries, keys, size, width;
    int mask; // 1: added, one row for all queries; 2: of bools, per head
    bool causal;
  };
  const Case cases[] = {{2, 2, 70, 90, 20, 64, 0, false},
                        {4, 2, 65, 65, 64, 12, 0, true},
                        {2, 1, 33, 130, 72, 130, 1, false},
                        {3, 3, 100, 40, 16, 24, 2, true},
                        {1, 1, 64, 64, 128, 128, 0, false}};
  for (DType type : {f32, f16, bf16})
    for (const Case &c : cases) {
      std::vector<TensorType> operands{{type, {2, c.heads, c.queries, c.size}},
                                       {type, {2, c.groups, c.keys, c.size}},
                                       {type, {2, c.groups, c.keys, c.width}}};
      if (c.mask == 1)
        operands.push_back({type, {1, c.keys}});
      else if (c.mask == 2)
        operands.push_back({bool_, {c.heads, c.queries, c.keys}});
      const auto call = callOf("scaled_dot_product_attention", operands, {c.causal, c.mask ? 0.25 : 0.0});
      const auto form = call.op->kernelForm(*call.op, call.operands, call.results, call.attrs);
      ASSERT_TRUE(form);
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < operands.size(); ++i)
        inputs.push_back(tressel::test::randomTensor(operands[i], random, {-2, 2}));
      expectAgreement(call, inputs, *form, findArch(tressel::test::runnableArch(c.causal ? "sm_120" : "sm_100")));
      if (c.queries == c.keys) {
        const auto sized = symbolicForm(call, random, c.keys);
        ASSERT_TRUE(sized);
        expectAgreement(call, inputs, sized->second, findArch("sm_90"), -1, &sized->first);
      }
      if (HasFailure())
        return;
    }
}

} // namespace
