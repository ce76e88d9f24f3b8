// Epilogues, inlined into a kernel that hands them one element per thread, as a root of the device library does.
#include "CudaLoopHarness.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tressel::codegen::test {
namespace {

/// The root: threads x blocks elements, element i being buffer 0's at i.
struct Root {
  llvm::LLVMContext context;
  llvm::Module module{"kernels", context};
  cuda::Kernel kernel;
  std::shared_ptr<cuda::EmulatedModule> emulated;

  Root(const cuda::Epilogue &epilogue, int64_t elements) {
    kernel.symbol = "k", kernel.numBuffers = epilogue.numBuffers, kernel.threads = 32;
    kernel.symbols = epilogue.signature.symbols, kernel.blocks = (elements + 31) / 32;
    llvm::Function *f = cuda::declareKernel(module, kernel);
    llvm::Function *epilogueCode = cuda::emitEpilogue(module, epilogue);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", f));
    auto slots = static_cast<unsigned>(kernel.numBuffers + kernel.symbols.size() + 1);
    llvm::Value *table = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), slots));
    for (unsigned i = 0; i < slots; ++i) {
      llvm::Value *v = f->getArg(i);
      if (v->getType()->isPointerTy())
        v = b.CreateAddrSpaceCast(v, b.getPtrTy());
      b.CreateStore(v, b.CreateConstGEP1_32(b.getInt64Ty(), table, i));
    }
    llvm::Value *i =
        b.CreateAdd(b.CreateMul(b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}), b.getInt32(32)),
                    b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}));
    auto *inside = llvm::BasicBlock::Create(context, "inside", f), *done = llvm::BasicBlock::Create(context, "done", f);
    b.CreateCondBr(b.CreateICmpSLT(i, b.getInt32(static_cast<uint32_t>(elements))), inside, done);
    b.SetInsertPoint(inside);
    llvm::Value *wide = b.CreateZExt(i, b.getInt64Ty());
    llvm::Value *value = b.CreateLoad(b.getFloatTy(), b.CreateGEP(b.getFloatTy(), f->getArg(0), wide));
    b.CreateCall(epilogueCode, {table, value, wide});
    b.CreateBr(done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
    const cuda::Target target(cuda::findArch("sm_90"));
    target.optimize(module);
    emulated = tressel::test::runnable(module, target);
  }
  int32_t run(std::vector<void *> buffers, std::vector<int64_t> bytes, std::vector<int64_t> scalars = {}) {
    return emulated->run({"k", 32, buffers, scalars, bytes, true}, 0, kernel.blocks.number(), kernel.blocks.number());
  }
};

template <class T> struct alignas(64) Buffer {
  T data[1024] = {};
};

TEST(CudaEpilogue, StoresTheRootsValue) {
  Buffer<float> value;
  Buffer<uint16_t> out;
  for (int i = 0; i < 100; ++i)
    value.data[i] = float(i) + 1.0f / 4096;
  cuda::Epilogue epilogue;
  epilogue.rootBuffer = 1, epilogue.type = DType::f16, epilogue.numBuffers = 2;
  Root root(epilogue, 100);
  EXPECT_EQ(root.run({value.data, out.data}, {400, 200}), 0);
  EXPECT_EQ(out.data[0], 0x0c00); // 2^-12
  EXPECT_EQ(out.data[1], 0x3c00); // rounded
  EXPECT_EQ(out.data[64], 0x5400);
}

/// y = max(x + bias, 0) with x the root, and the same transposed; sizes known or not.
TEST(CudaEpilogue, PlansOverTheRoot) {
  const int64_t rows = 7, columns = 20;
  const Size n = dim::symbol("n"), m = dim::symbol("m");
  for (bool symbolic : {false, true})
    for (bool transposed : {false, true}) {
      const Size r = symbolic ? n : rows, c = symbolic ? m : columns;
      Graph g;
      const int x = g.input({f32, {r, c}}), bias = g.input({f32, {c}});
      int y = g.binary(ScalarOp::Max, g.binary(ScalarOp::Add, x, bias, {r, c}), g.splat(f32, 0), {r, c});
      if (transposed) {
        LoopForm f;
        f.domain = {c, r}, f.numParallel = 2, f.operands = {{{dim(1), dim(0)}}};
        Body b;
        f.body = b.result(b.operand(0, f32));
        y = g.op(f, {y}, {f32, {c, r}});
      }
      g.results = {y};
      std::string why;
      const auto plan = buildLoopPlan(g, &why);
      ASSERT_TRUE(plan) << why;
      cuda::Epilogue epilogue;
      epilogue.plan = &*plan, epilogue.rootInput = 0, epilogue.numBuffers = 4;
      epilogue.signature.operands = {3, 1, 2}; // the root's value is in none of them; buffer 3 would be wrong
      if (symbolic)
        epilogue.signature.symbols = {m, n};
      Root root(epilogue, rows * columns);
      Buffer<float> value, biases, out, unused;
      for (int i = 0; i < rows * columns; ++i)
        value.data[i] = float(i % 11) - 5;
      for (int i = 0; i < columns; ++i)
        biases.data[i] = float(i) / 8;
      EXPECT_EQ(root.run({value.data, biases.data, out.data, unused.data}, {560, 80, 560, 4},
                         symbolic ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>()),
                0);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          ASSERT_EQ(out.data[transposed ? j * rows + i : i * columns + j],
                    std::max(value.data[i * columns + j] + biases.data[j], 0.f));
    }
}

} // namespace
} // namespace tressel::codegen::test
