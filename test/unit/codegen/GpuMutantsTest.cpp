// Mistakes in generated GPU kernels: a barrier that is missing is found by the emulator, whichever it is.
#include "codegen/cuda/target/Target.h"
#include "ir/op/Infer.h"
#include "test/unit/codegen/GpuCases.h"
#include "tressel/runtime/Error.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <gtest/gtest.h>

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::test;
using op::HostTensor;

namespace {

/// The calls of the module that order accesses to memory.
std::vector<llvm::CallInst *> barriersOf(llvm::Module &module) {
  std::vector<llvm::CallInst *> barriers;
  for (llvm::Function &f : module)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i); call && call->getCalledFunction())
        if (const llvm::StringRef name = call->getCalledFunction()->getName();
            name.starts_with("llvm.nvvm.barrier.cta.sync") || name == "llvm.nvvm.bar.warp.sync" ||
            name.starts_with("llvm.nvvm.barrier.cluster.arrive"))
          barriers.push_back(call);
  return barriers;
}

void erase(llvm::CallInst *barrier) {
  if (barrier->getCalledFunction()->getName().starts_with("llvm.nvvm.barrier.cluster.arrive"))
    barrier->getNextNode()->eraseFromParent(); // the wait
  barrier->eraseFromParent();
}

/// Whether the launch comes by the barrier: it says so in the status instead.
bool isReached(const GpuCase &each, const llvm::Module &module, size_t number) {
  const std::unique_ptr<llvm::Module> told = llvm::CloneModule(module);
  llvm::CallInst *barrier = barriersOf(*told)[number];
  llvm::IRBuilder<> b(barrier);
  llvm::Function &kernel = *barrier->getFunction();
  b.CreateStore(b.getInt32(99), kernel.getArg(static_cast<unsigned>(kernel.arg_size() - 1)));
  return problemOf(each, *cuda::EmulatedModule::create(*told)).starts_with("the status is 99");
}

struct Example {
  const char *name;
  const char *op;
  std::vector<TensorType> operands;
  std::vector<std::pair<const char *, op::Attr>> attrs;
  int spare = 0; ///< barriers that these sizes do not need
};
void PrintTo(const Example &example, std::ostream *out) { *out << example.name; }

class GpuMutants : public testing::TestWithParam<Example> {};

TEST_P(GpuMutants, MissingBarriersAreFound) {
  const Example &example = GetParam();
  const op::OpInfo &info = *op::findOp(example.op);
  tressel::test::OpCall call{&info, example.operands, op::Attrs(info.attrs.size()), {}};
  for (const auto &[name, value] : example.attrs)
    call.attrs.at(static_cast<size_t>(info.attrIndex(name))) = value;
  ASSERT_EQ(op::completeAttrs(info, call.attrs), "");
  call.results = op::inferTypes(info, call.operands, call.attrs).types;
  ASSERT_FALSE(call.results.empty());
  tressel::test::Random random(3);
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i)
    inputs.push_back(tressel::test::randomOperand(call, i, random));
  const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
  const cuda::Arch &arch = cuda::findArch("sm_90");
  const cuda::Target target(arch);
  int kernels = 0, missed = 0;
  size_t removed = 0;
  for (GpuCase &each : gpuCasesOf(call, "k", 0, arch)) {
    each.inputs = inputs, each.want = want;
    llvm::LLVMContext context;
    llvm::Module module("mutant", context);
    each.kernel.emit(module);
    target.optimize(module);
    EXPECT_EQ(problemOf(each, *cuda::EmulatedModule::create(module)), "") << each.str();
    const size_t count = barriersOf(module).size();
    kernels += count > 0;
    for (size_t i = 0; i < count; ++i) {
      if (!isReached(each, module, i))
        continue; // for other sizes
      ++removed;
      const std::unique_ptr<llvm::Module> wrong = llvm::CloneModule(module);
      erase(barriersOf(*wrong)[i]);
      std::string problem;
      try {
        problem = problemOf(each, *cuda::EmulatedModule::create(*wrong));
      } catch (const Error &error) {
        problem = error.what();
      }
      missed += problem.empty();
      if (problem.empty())
        std::cout << each.str() << ": barrier " << i << " of " << count << " is not missed\n";
    }
  }
  std::cout << removed << " barriers of " << kernels << " kernels, " << missed << " of them not missed\n";
  EXPECT_EQ(missed, example.spare);
  EXPECT_GT(removed, static_cast<size_t>(missed)) << "no kernel has a barrier that it needs";
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, GpuMutants,
    testing::Values(Example{"sum_of_rows", "sum", {{f32, {3, 20000}}}, {{"axis", op::Ints{1}}}},
                    Example{"softmax", "softmax", {{f32, {3, 5000}}}, {}},
                    Example{"argmax", "argmax", {{f32, {2, 30000}}}, {{"axis", int64_t(1)}}},
                    Example{"sum_of_columns", "sum", {{f32, {3000, 40}}}, {{"axis", op::Ints{0}}}},
                    Example{"transpose", "transpose", {{f32, {700, 610}}}, {}},
                    Example{"transpose_bytes", "transpose", {{i8, {1200, 610}}}, {}},
                    Example{"product", "matmul", {{f32, {130, 70}}, {f32, {70, 90}}}, {}},
                    Example{"product_f16", "matmul", {{f16, {128, 96}}, {f16, {96, 136}}}, {}, 1},
                    Example{"product_bf16", "matmul", {{bf16, {64, 64}}, {bf16, {64, 64}}}, {}},
                    Example{"product_of_clusters", "matmul", {{f32, {32, 1024}}, {f32, {1024, 40}}}, {}, 1},
                    Example{"product_of_clusters_bf16", "matmul", {{bf16, {64, 2048}}, {bf16, {2048, 32}}}, {}, 1},
                    Example{"thin_product", "matmul", {{f32, {2, 300}}, {f32, {300, 256}}}, {}},
                    Example{"convolution", "conv", {{f32, {1, 8, 12, 12}}, {f32, {16, 8, 3, 3}}}, {}}),
    [](const testing::TestParamInfo<Example> &info) { return std::string(info.param.name); });

} // namespace
