// NVVM's arithmetic. What a GPU approximates is computed as well as the host can: a kernel must not depend on the
// error that an approximation has.
#include "codegen/cuda/emulate/Intrinsics.h"

#include "llvm/IR/Intrinsics.h"

namespace tressel::codegen::cuda::emulate {

static constexpr std::pair<llvm::StringLiteral, llvm::Intrinsic::ID> kUnary[] = {
    {"sqrt.rn", llvm::Intrinsic::sqrt},     {"sqrt.approx", llvm::Intrinsic::sqrt}, {"sqrt.f", llvm::Intrinsic::sqrt},
    {"ex2.approx", llvm::Intrinsic::exp2},  {"lg2.approx", llvm::Intrinsic::log2},  {"sin.approx", llvm::Intrinsic::sin},
    {"cos.approx", llvm::Intrinsic::cos},   {"tanh.approx", llvm::Intrinsic::tanh}, {"floor.", llvm::Intrinsic::floor},
    {"ceil.", llvm::Intrinsic::ceil},       {"trunc.", llvm::Intrinsic::trunc},     {"round.", llvm::Intrinsic::roundeven},
    {"fabs", llvm::Intrinsic::fabs},
};

llvm::Value *IntrinsicRewriter::mathematics(llvm::CallInst &call, llvm::StringRef name) {
  auto arg = [&](unsigned i) { return call.getArgOperand(i); };
  llvm::Type *type = call.getType();
  auto one = [&] { return llvm::ConstantFP::get(type, 1.0); };
  auto startsWith = [&](std::initializer_list<llvm::StringRef> prefixes) {
    return llvm::any_of(prefixes, [&](llvm::StringRef prefix) { return name.starts_with(prefix); });
  };
  // Other roundings than to nearest, saturation and the like are not emitted.
  const bool plain =
      !startsWith({"fma.rz", "fma.rm", "fma.rp", "add.rz", "add.rm", "add.rp", "mul.rz", "mul.rm", "mul.rp", "div.rz",
                   "div.rm", "div.rp", "rcp.rz", "rcp.rm", "rcp.rp", "sqrt.rz", "sqrt.rm", "sqrt.rp"}) &&
      !name.contains(".sat") && !name.contains(".relu") && !name.contains("xorsign");
  if (!plain)
    return nullptr;
  if (name.starts_with("fma.rn"))
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {arg(0), arg(1), arg(2)});
  if (name.starts_with("add.rn"))
    return b_.CreateFAdd(arg(0), arg(1));
  if (name.starts_with("mul.rn"))
    return b_.CreateFMul(arg(0), arg(1));
  if (startsWith({"div.rn", "div.approx", "div.full"}))
    return b_.CreateFDiv(arg(0), arg(1));
  if (startsWith({"rcp.rn", "rcp.approx"}))
    return b_.CreateFDiv(one(), arg(0));
  if (name.starts_with("rsqrt.approx"))
    return b_.CreateFDiv(one(), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, arg(0)));
  for (const auto &[prefix, id] : kUnary)
    if (name.starts_with(prefix))
      return b_.CreateUnaryIntrinsic(id, arg(0));
  if (startsWith({"fmin.", "fmax."})) {
    const bool nan = name.contains(".nan"), least = name.starts_with("fmin");
    return b_.CreateBinaryIntrinsic(nan     ? least ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum
                                    : least ? llvm::Intrinsic::minnum
                                            : llvm::Intrinsic::maxnum,
                                    arg(0), arg(1));
  }
  if (startsWith({"mulhi."})) {
    const bool isSigned = !name.starts_with("mulhi.u");
    const unsigned bits = type->getIntegerBitWidth();
    llvm::Type *wide = b_.getIntNTy(2 * bits);
    auto widen = [&](llvm::Value *v) { return isSigned ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide); };
    return b_.CreateTrunc(b_.CreateLShr(b_.CreateMul(widen(arg(0)), widen(arg(1))), bits), type);
  }
  return conversion(call, name);
}

/// From one type or arrangement of bits to another.
llvm::Value *IntrinsicRewriter::conversion(llvm::CallInst &call, llvm::StringRef name) {
  auto arg = [&](unsigned i) { return call.getArgOperand(i); };
  llvm::Type *type = call.getType();
  auto startsWith = [&](std::initializer_list<llvm::StringRef> prefixes) {
    return llvm::any_of(prefixes, [&](llvm::StringRef prefix) { return name.starts_with(prefix); });
  };
  if (startsWith({"f2bf16.rn", "f2f16.rn"}))
    return b_.CreateFPTrunc(arg(0), type);
  if (startsWith({"f2h.rn"}))
    return b_.CreateBitCast(b_.CreateFPTrunc(arg(0), b_.getHalfTy()), type);
  if (startsWith({"ff2bf16x2.rn", "ff2f16x2.rn"})) {
    // The first operand goes to the upper half.
    llvm::Type *element = type->getScalarType();
    llvm::Value *pair =
        b_.CreateInsertElement(llvm::PoisonValue::get(type), b_.CreateFPTrunc(arg(1), element), uint64_t(0));
    return b_.CreateInsertElement(pair, b_.CreateFPTrunc(arg(0), element), uint64_t(1));
  }
  if (startsWith({"f2tf32."})) {
    llvm::Value *bits = b_.CreateBitCast(arg(0), b_.getInt32Ty());
    llvm::Value *rounding = name.starts_with("f2tf32.rna") ? b_.getInt32(0x1000)
                            : name.starts_with("f2tf32.rn")
                                ? b_.CreateAdd(b_.getInt32(0xfff), b_.CreateAnd(b_.CreateLShr(bits, 13), 1))
                                : b_.getInt32(0);
    llvm::Value *special = b_.CreateICmpEQ(b_.CreateAnd(bits, 0x7f800000), b_.getInt32(0x7f800000));
    llvm::Value *rounded = b_.CreateAdd(bits, b_.CreateSelect(special, b_.getInt32(0), rounding));
    return b_.CreateAnd(rounded, 0xffffe000);
  }
  if (name == "prmt") {
    // Bytes of b:a, chosen by four bits each; the highest of which means the byte's sign, eight times.
    llvm::Value *pair =
        b_.CreateOr(b_.CreateZExt(arg(0), b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(arg(1), b_.getInt64Ty()), 32));
    llvm::Value *result = b_.getInt32(0);
    for (uint64_t i = 0; i < 4; ++i) {
      llvm::Value *choice = b_.CreateAnd(b_.CreateLShr(arg(2), 4 * i), 15);
      llvm::Value *shift = b_.CreateZExt(b_.CreateShl(b_.CreateAnd(choice, 7), 3), b_.getInt64Ty());
      llvm::Value *byte = b_.CreateTrunc(b_.CreateLShr(pair, shift), b_.getInt8Ty());
      byte = b_.CreateSelect(b_.CreateICmpNE(b_.CreateAnd(choice, 8), b_.getInt32(0)),
                             b_.CreateAShr(byte, b_.getInt8(7)), byte);
      result = b_.CreateOr(result, b_.CreateShl(b_.CreateZExt(byte, b_.getInt32Ty()), 8 * i));
    }
    return result;
  }
  if (name == "lohi.i2d")
    return b_.CreateBitCast(
        b_.CreateOr(b_.CreateZExt(arg(0), b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(arg(1), b_.getInt64Ty()), 32)),
        type);
  if (name == "d2i.lo")
    return b_.CreateTrunc(b_.CreateBitCast(arg(0), b_.getInt64Ty()), type);
  if (name == "d2i.hi")
    return b_.CreateTrunc(b_.CreateLShr(b_.CreateBitCast(arg(0), b_.getInt64Ty()), 32), type);
  return nullptr;
}

} // namespace tressel::codegen::cuda::emulate
