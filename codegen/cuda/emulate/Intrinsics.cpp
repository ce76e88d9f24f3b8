#include "codegen/cuda/emulate/Intrinsics.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Module.h"

#include <cstddef>

namespace tressel::codegen::cuda::emulate {

llvm::Value *callRuntime(llvm::IRBuilder<> &b, llvm::StringRef name, llvm::Type *result,
                         llvm::ArrayRef<llvm::Value *> arguments) {
  std::vector<llvm::Type *> types;
  for (llvm::Value *argument : arguments)
    types.push_back(argument->getType());
  llvm::Module &module = *b.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::FunctionType::get(result ? result : b.getVoidTy(), types, false));
  return b.CreateCall(callee, arguments);
}

llvm::Value *sitePointer(llvm::IRBuilder<> &b, const Site &site) {
  return llvm::ConstantExpr::getIntToPtr(b.getInt64(reinterpret_cast<uintptr_t>(&site)), b.getPtrTy());
}

llvm::Value *IntrinsicRewriter::field(size_t offset) { return b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offset); }

Site &IntrinsicRewriter::addSite(Op op, const std::string &text) {
  code_.sites.emplace_back();
  code_.sites.back().op = op;
  code_.sites.back().text = text;
  return code_.sites.back();
}

llvm::Value *IntrinsicRewriter::asWord(llvm::Value *v) {
  llvm::Type *type = v->getType();
  if (type->isIntegerTy())
    return b_.CreateZExtOrTrunc(v, b_.getInt32Ty());
  return b_.CreateBitCast(v, b_.getInt32Ty());
}

llvm::Value *IntrinsicRewriter::fromWord(llvm::Value *word, llvm::Type *type) {
  if (type->isIntegerTy(1))
    return b_.CreateICmpNE(word, b_.getInt32(0));
  return b_.CreateBitCast(word, type);
}

void IntrinsicRewriter::meet(llvm::CallInst &call, Site site, llvm::ArrayRef<llvm::Value *> arguments) {
  code_.sites.push_back(std::move(site));
  for (size_t i = 0; i < arguments.size(); ++i)
    b_.CreateStore(asWord(arguments[i]), field(offsetof(Registers, in) + 4 * i));
  callRuntime(b_, "tressel_gpu_collective", nullptr, {thread_, sitePointer(b_, code_.sites.back())});
  auto result = [&](llvm::Type *type, unsigned i) {
    return fromWord(b_.CreateLoad(b_.getInt32Ty(), field(offsetof(Registers, out) + 4 * i)), type);
  };
  if (call.getType()->isVoidTy())
    return;
  auto *structure = llvm::dyn_cast<llvm::StructType>(call.getType());
  llvm::Value *value = structure ? llvm::PoisonValue::get(structure) : result(call.getType(), 0);
  for (unsigned i = 0; structure && i < structure->getNumElements(); ++i)
    value = b_.CreateInsertValue(value, result(structure->getElementType(i), i), i);
  call.replaceAllUsesWith(value);
}

bool IntrinsicRewriter::collective(llvm::CallInst &call, llvm::StringRef name, const std::string &text) {
  Site site;
  site.text = text;
  if (name.consume_front("barrier.cta.")) {
    if (name.contains("arrive") || name.ends_with("count"))
      return false;
    site.aligned = name.contains("aligned");
    site.op = llvm::StringSwitch<Op>(name.split('.').first == "red" ? name.split('.').second.split('.').first : "")
                  .Case("popc", Op::BarrierCount)
                  .Case("and", Op::BarrierAnd)
                  .Case("or", Op::BarrierOr)
                  .Default(Op::Barrier);
    const bool predicate = call.arg_size() > 1;
    meet(call, site, {call.getArgOperand(0), predicate ? call.getArgOperand(1) : b_.getInt32(0)});
    return true;
  }
  if (name == "barrier.cluster.wait" || name == "barrier.cluster.wait.aligned") {
    site.op = Op::ClusterBarrier;
    meet(call, site, {});
    return true;
  }
  if (name == "barrier.cluster.arrive" || name == "barrier.cluster.arrive.aligned") {
    // Nothing is between the arrival and the wait, which then does both.
    const auto *next = llvm::dyn_cast_or_null<llvm::CallInst>(call.getNextNode());
    return next && next->getCalledFunction() &&
           next->getCalledFunction()->getName().starts_with("llvm.nvvm.barrier.cluster.wait");
  }
  if (name == "mapa.shared.cluster") {
    llvm::Value *there = callRuntime(b_, "tressel_gpu_place_in_peer", b_.getPtrTy(),
                                     {thread_, b_.CreateAddrSpaceCast(call.getArgOperand(0), b_.getPtrTy()),
                                      call.getArgOperand(1), sitePointer(b_, addSite(Op::Load, text))});
    call.replaceAllUsesWith(b_.CreateAddrSpaceCast(there, call.getType()));
    return true;
  }
  if (name == "bar.warp.sync") {
    site.op = Op::WarpSync;
    meet(call, site, {call.getArgOperand(0)});
    return true;
  }
  if (name == "elect.sync") {
    site.op = Op::Elect;
    meet(call, site, {call.getArgOperand(0)});
    return true;
  }
  if (name.consume_front("shfl.sync.")) {
    site.op = llvm::StringSwitch<Op>(name.split('.').first)
                  .Case("idx", Op::ShuffleIndex)
                  .Case("up", Op::ShuffleUp)
                  .Case("down", Op::ShuffleDown)
                  .Default(Op::ShuffleXor);
    meet(call, site, {call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2), call.getArgOperand(3)});
    return true;
  }
  if (name.consume_front("vote.") && name.consume_back(".sync")) {
    site.op = llvm::StringSwitch<Op>(name)
                  .Case("all", Op::VoteAll)
                  .Case("any", Op::VoteAny)
                  .Case("uni", Op::VoteUniform)
                  .Default(Op::VoteBallot);
    meet(call, site, {call.getArgOperand(0), call.getArgOperand(1)});
    return true;
  }
  if (name.consume_front("match.")) {
    site.op = name.starts_with("any") ? Op::MatchAny : Op::MatchAll;
    llvm::Value *value = call.getArgOperand(1);
    llvm::Value *high = value->getType()->isIntegerTy(64) ? b_.CreateLShr(value, 32) : b_.getInt32(0);
    meet(call, site, {call.getArgOperand(0), value, high});
    return true;
  }
  if (name.consume_front("redux.sync.")) {
    const auto op = llvm::StringSwitch<Op>(name)
                        .Case("add", Op::ReduceAdd)
                        .Case("min", Op::ReduceMin)
                        .Case("max", Op::ReduceMax)
                        .Case("umin", Op::ReduceUnsignedMin)
                        .Case("umax", Op::ReduceUnsignedMax)
                        .Case("and", Op::ReduceAnd)
                        .Case("or", Op::ReduceOr)
                        .Case("xor", Op::ReduceXor)
                        .Default(Op::Load);
    if (op == Op::Load)
      return false;
    site.op = op;
    meet(call, site, {call.getArgOperand(1), call.getArgOperand(0)});
    return true;
  }
  return false;
}

bool IntrinsicRewriter::matrices(llvm::CallInst &call, llvm::StringRef name, const std::string &text) {
  Site site;
  site.text = text;
  std::vector<llvm::Value *> arguments{b_.getInt32(~0u)};
  if (name.consume_front("ldmatrix.sync.aligned.m8n8.")) {
    if (!(name.consume_back(".p3") || name.consume_back(".p0")) || !name.consume_back(".b16"))
      return false;
    site.op = Op::LoadMatrix;
    site.alignment = 16;
    site.transposed = name.consume_back(".trans");
    site.k = static_cast<uint8_t>(name[1] - '0');
    llvm::Value *pointer = call.getArgOperand(0);
    site.space = pointer->getType()->getPointerAddressSpace() == 3 ? Space::Shared : Space::Generic;
    llvm::Value *address = b_.CreatePtrToInt(pointer, b_.getInt64Ty());
    arguments.insert(arguments.end(), {address, b_.CreateLShr(address, 32)});
    meet(call, site, arguments);
    return true;
  }
  struct Kind {
    llvm::StringRef name;
    Op op;
    uint8_t k;
  };
  static constexpr Kind kinds[] = {
      {"mma.m16n8k16.row.col.f32.f32", Op::MmaF16, 16}, {"mma.m16n8k8.row.col.f32.f32", Op::MmaF16, 8},
      {"mma.m16n8k16.row.col.bf16", Op::MmaBF16, 16},   {"mma.m16n8k8.row.col.bf16", Op::MmaBF16, 8},
      {"mma.m16n8k8.row.col.tf32", Op::MmaTF32, 8},     {"mma.m16n8k4.row.col.tf32", Op::MmaTF32, 4},
      {"mma.m16n8k32.row.col.s8", Op::MmaS8, 32},       {"mma.m16n8k16.row.col.s8", Op::MmaS8, 16},
  };
  const auto *kind = llvm::find_if(kinds, [&](const Kind &k) { return k.name == name; });
  if (kind == std::end(kinds))
    return false;
  site.op = kind->op, site.k = kind->k;
  for (llvm::Value *argument : call.args())
    arguments.push_back(argument);
  meet(call, site, arguments);
  return true;
}

bool IntrinsicRewriter::copies(llvm::CallInst &call, llvm::StringRef name, const std::string &text) {
  if (name == "cp.async.commit.group") {
    callRuntime(b_, "tressel_gpu_commit_copies", nullptr, {thread_});
    return true;
  }
  if (name == "cp.async.wait.group" || name == "cp.async.wait.all") {
    callRuntime(b_, "tressel_gpu_wait_for_copies", nullptr,
                {thread_, call.arg_size() ? call.getArgOperand(0) : b_.getInt32(~0u)});
    return true;
  }
  if (!name.consume_front("cp.async.") || !(name.consume_front("ca.") || name.consume_front("cg.")) ||
      !name.consume_front("shared.global."))
    return false;
  name.consume_back(".s");
  Site &site = addSite(Op::Store, text);
  site.space = Space::Shared;
  name.getAsInteger(10, site.bytes);
  site.alignment = site.bytes;
  const auto granule = std::min<uint32_t>(site.bytes, 16);
  code_.sharedGranule = std::min(code_.sharedGranule, granule);
  // How much is read may be less.
  llvm::Value *given = b_.getInt32(site.bytes);
  if (call.arg_size() > 2) {
    given = call.getArgOperand(2);
    code_.globalGranule = 1;
  } else {
    code_.globalGranule = std::min(code_.globalGranule, granule);
  }
  callRuntime(b_, "tressel_gpu_copy_async", nullptr,
              {thread_, b_.CreateAddrSpaceCast(call.getArgOperand(0), b_.getPtrTy()),
               b_.CreateAddrSpaceCast(call.getArgOperand(1), b_.getPtrTy()), given, sitePointer(b_, site)});
  return true;
}

llvm::Value *IntrinsicRewriter::registers(llvm::StringRef name) {
  if (!name.consume_front("read.ptx.sreg."))
    return nullptr;
  auto load = [&](size_t offset) { return b_.CreateLoad(b_.getInt32Ty(), field(offset)); };
  llvm::Value *tid = load(offsetof(Registers, tid));
  if (name == "tid.x")
    return tid;
  if (name == "ntid.x")
    return load(offsetof(Registers, threads));
  if (name == "ctaid.x")
    return load(offsetof(Registers, block));
  if (name == "nctaid.x")
    return load(offsetof(Registers, blocks));
  if (name == "tid.y" || name == "tid.z" || name == "ctaid.y" || name == "ctaid.z")
    return b_.getInt32(0);
  if (name == "ntid.y" || name == "ntid.z" || name == "nctaid.y" || name == "nctaid.z")
    return b_.getInt32(1);
  if (name == "warpsize")
    return b_.getInt32(32);
  llvm::Value *lane = b_.CreateAnd(tid, 31);
  if (name == "laneid")
    return lane;
  if (name == "warpid")
    return b_.CreateLShr(tid, 5);
  if (!name.consume_front("lanemask."))
    return nullptr;
  llvm::Value *bit = b_.CreateShl(b_.getInt32(1), lane), *below = b_.CreateSub(bit, b_.getInt32(1));
  return llvm::StringSwitch<llvm::Value *>(name)
      .Case("eq", bit)
      .Case("lt", below)
      .Case("le", b_.CreateOr(bit, below))
      .Case("gt", b_.CreateNot(b_.CreateOr(bit, below)))
      .Case("ge", b_.CreateNot(below))
      .Default(nullptr);
}

bool IntrinsicRewriter::rewrite(llvm::CallInst &call, const std::string &text) {
  llvm::StringRef name = call.getCalledFunction()->getName();
  name.consume_front("llvm.nvvm.");
  if (llvm::Value *value = registers(name)) {
    call.replaceAllUsesWith(value);
  } else if (name.starts_with("membar.")) {
    b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    code_.ordersBlocks |= name != "membar.cta";
  } else if (name.starts_with("prefetch") || name == "nanosleep") {
    // Changes nothing that can be seen.
  } else if (llvm::Value *result = mathematics(call, name)) {
    call.replaceAllUsesWith(result);
  } else if (!collective(call, name, text) && !matrices(call, name, text) && !copies(call, name, text)) {
    return false;
  }
  call.eraseFromParent();
  return true;
}

} // namespace tressel::codegen::cuda::emulate
