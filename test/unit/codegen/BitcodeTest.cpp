// Every bitcode kernel, on calls made up at random, must give what the reference evaluation gives: at every level of
// instructions, cut into chunks, and in place where its op says so.
#include "codegen/bitcode/Emit.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"
#include "test/unit/codegen/Harness.h"

using namespace tressel;
using namespace tressel::codegen;
using op::HostTensor;
using op::OpInfo;

namespace {

class BitcodeKernel {
public:
  BitcodeKernel(const op::KernelForm &form, size_t numBuffers, const std::string &cpu) : form(form) {
    KernelSource source;
    source.signature.symbol = "k";
    source.bitcode = BitcodeCall{form.kernel, form.params, form.range, {}};
    for (size_t i = 0; i < numBuffers; ++i)
      source.bitcode->buffers.push_back(static_cast<int32_t>(i));
    const Target target(cpu);
    // Linking refuses a kernel that calls anything.
    image = runtime::Image::load(linkImage(compileKernels({source}, target)));
    fn = reinterpret_cast<runtime::KernelFn>(image->find("k"));
  }
  /// The whole range, and beyond, in pieces; each with scratch memory of its own that holds rubbish.
  int32_t run(std::vector<void *> buffers, int64_t chunk) const {
    int32_t status = 0;
    for (int64_t begin = 0; begin < form.range + 1; begin += chunk) {
      std::vector<std::byte> scratch(static_cast<size_t>(form.scratchBytes) + 64, std::byte(0x5a));
      runtime::KernelArgs args = {};
      args.buffers = buffers.data();
      args.scratch = scratch.data();
      status = std::max(status, fn(&args, begin, begin + chunk));
      for (size_t i = static_cast<size_t>(form.scratchBytes); i < scratch.size(); ++i)
        EXPECT_EQ(scratch[i], std::byte(0x5a)) << "written behind the scratch memory";
    }
    return status;
  }

private:
  op::KernelForm form;
  std::shared_ptr<const runtime::Image> image;
  runtime::KernelFn fn = nullptr;
};

std::vector<HostTensor> copies(const std::vector<HostTensor> &tensors) {
  std::vector<HostTensor> result;
  for (const HostTensor &t : tensors) {
    result.push_back(HostTensor::allocate(t.type));
    std::memcpy(result.back().data.get(), t.data.get(), static_cast<size_t>(t.type.bytes()));
  }
  return result;
}

void expectAgreement(const OpInfo &info, const tressel::test::OpCall &call, const std::vector<HostTensor> &inputs,
                     const op::KernelForm &form, const std::string &cpu, int64_t chunk) {
  const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
  const BitcodeKernel kernel(form, inputs.size() + call.results.size(), cpu);
  for (bool inPlace : {false, true}) {
    if (inPlace && info.overwrites < 0)
      continue;
    std::vector<HostTensor> operands = copies(inputs), results;
    std::vector<void *> buffers;
    for (const HostTensor &t : operands)
      buffers.push_back(t.data.get());
    for (const TensorType &type : call.results)
      results.push_back(HostTensor::allocate(type));
    if (inPlace)
      results[0] = operands[static_cast<size_t>(info.overwrites)];
    for (const HostTensor &t : results)
      buffers.push_back(t.data.get());
    const int32_t status = kernel.run(buffers, chunk);
    ASSERT_EQ(status != 0, !want) << info.name << ": " << want.error;
    for (size_t i = 0; want && i < results.size(); ++i)
      ASSERT_EQ(op::interp::compare(results[i], want.outputs[i], op::interp::looseTolerance(results[i].type.dtype)), "")
          << info.name << " at " << cpu << ", chunks of " << chunk << (inPlace ? ", in place" : "");
  }
}

class Bitcode : public testing::TestWithParam<const OpInfo *> {};

TEST_P(Bitcode, AgreesWithReference) {
  const OpInfo &info = *GetParam();
  const std::vector<std::string> levels = tressel::codegen::test::levels();
  int compared = 0, ofLibraries = 0;
  for (int type = 0; type < kNumDTypes; ++type) {
    tressel::test::Random random(91 + static_cast<uint64_t>(type));
    int ofType = 0;
    for (int tries = 0; tries < 30 && ofType < 3; ++tries) {
      auto call = tressel::test::proposeCall(info, static_cast<DType>(type), random, {.zeroSize = tries % 4 == 3 ? 0.5 : 0});
      if (!call)
        continue;
      auto form = info.kernelForm(info, call->operands, call->results, call->attrs);
      if (!form)
        continue; // the decomposition converts
      if (!hasBitcodeKernel(form->kernel)) {
        ++ofLibraries;
        continue;
      }
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < call->operands.size(); ++i)
        inputs.push_back(tressel::test::randomOperand(*call, i, random, tries % 2 ? tressel::test::Values::Special
                                                                                 : tressel::test::Values::Wide));
      ++ofType;
      // Each level in its turn; the types are many enough.
      expectAgreement(info, *call, inputs, *form, levels[static_cast<size_t>(type + ofType) % levels.size()],
                      1 + random.below(3));
    }
    compared += ofType;
  }
  if (!compared && ofLibraries)
    GTEST_SKIP() << "a library's kernel: test/unit/kernels judges it";
  EXPECT_GT(compared, 0) << "no call has a kernel form";
}

std::vector<const OpInfo *> opsWithKernels() {
  std::vector<const OpInfo *> ops;
  for (const OpInfo *info : op::allOps())
    if (info->kernelForm)
      ops.push_back(info);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, Bitcode, testing::ValuesIn(opsWithKernels()),
                         [](const auto &param) { return std::string(param.param->name); });

/// Lines long enough for every way of ordering: by insertion, by digits, by a heap.
TEST(BitcodeSort, LongLines) {
  for (const char *name : {"sort", "argsort", "top_k"})
    for (DType type : {f32, f64, f16, i8, i64, u8, bool_})
      for (int64_t size : {47, 49, 1000}) {
        const OpInfo &info = *op::findOp(name);
        tressel::test::Random random(static_cast<uint64_t>(size));
        tressel::test::OpCall call{&info, {{type, {2, size, 3}}}, {}, {}};
        const bool flag = random.chance(0.5);
        call.attrs = info.numResults == 2 ? op::Attrs{Size(size / 20), int64_t(1), flag} : op::Attrs{int64_t(1), flag};
        call.results = info.infer(info, call.operands, call.attrs).types;
        const std::vector<HostTensor> inputs{tressel::test::randomOperand(call, 0, random, tressel::test::Values::Special)};
        expectAgreement(info, call, inputs, *info.kernelForm(info, call.operands, call.results, call.attrs), "native", 4);
      }
}

} // namespace
