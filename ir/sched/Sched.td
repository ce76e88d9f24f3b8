// The sched dialect: a placed program as streams, memory and commands. ir/sched/README.md shows how it reads.
#ifndef TRESSEL_SCHED
#define TRESSEL_SCHED

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/graph/Size.td"

def Sched_Dialect : Dialect {
  let name = "sched";
  let cppNamespace = "::tressel::sched";
  let summary = "programs placed on streams, with their memory and the order between streams";
  let dependentDialects = ["::tressel::graph::TresselDialect"]; // sizes are attributes of it
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===-- Types and enumerations ----------------------------------------------------------------------------------===//

class SchedType<string className, string typeMnemonic, string text> : TypeDef<Sched_Dialect, className>,
    BuildableType<"$_builder.getType<::tressel::sched::" # className # "Type>()"> {
  let mnemonic = typeMnemonic;
  let summary = text;
}
def Sched_Stream : SchedType<"Stream", "stream", "a queue of commands that execute in order">;
def Sched_Arena : SchedType<"Arena", "arena", "memory that buffers are placed in">;
def Sched_Buffer : SchedType<"Buffer", "buffer", "bytes with a tensor type: a slot of an arena, or a binding">;
def Sched_Group : SchedType<"Group", "group", "the members of collectives: a stream of each, or ranks along axes of the mesh">;
def Sched_Event : SchedType<"Event", "event", "the end of a command">;

def Sched_MeshAttr : AttrDef<Sched_Dialect, "Mesh"> {
  let mnemonic = "mesh";
  let summary = "the ranks that a program is for, as a grid with named axes";
  let description = [{
    `#sched.mesh<data = 4, tensor = 2>`: eight ranks, numbered row-major. A size is a number, or a symbol that gets its value before the
    program runs: `#sched.mesh<data = "replicas[1..1024]">`. The coordinate of a rank along an axis is the symbol `rank.data[0..3]` in
    sizes and offsets.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names, ArrayRefParameter<"::tressel::Size">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class SchedEnum<string enumName, string text, list<I32EnumAttrCase> cases> : I32EnumAttr<enumName, text, cases> {
  let cppNamespace = "::tressel::sched";
}

def Sched_StreamKind : SchedEnum<"StreamKind", "what a stream's engine does", [
  I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"CopyIn", 1, "copy_in">,
  I32EnumAttrCase<"CopyOut", 2, "copy_out">, I32EnumAttrCase<"Lane", 3, "lane">,
  I32EnumAttrCase<"Communication", 4, "communication">]>;
def Sched_DeviceKind : SchedEnum<"DeviceKind", "kind of device", [
  I32EnumAttrCase<"Cpu", 0, "cpu">, I32EnumAttrCase<"Gpu", 1, "gpu">]>;
def Sched_MemoryKind : SchedEnum<"MemoryKind", "where an arena lies", [
  I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Pinned", 1, "pinned">, I32EnumAttrCase<"Host", 2, "host">]>;
def Sched_StateKind : SchedEnum<"StateKind", "who writes a state", [
  I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Mutable", 1, "mutable">,
  I32EnumAttrCase<"Derived", 2, "derived">]>;
def Sched_WaitReason : SchedEnum<"WaitReason", "why a command waits", [
  I32EnumAttrCase<"Data", 0, "data">, I32EnumAttrCase<"War", 1, "war">, I32EnumAttrCase<"Pace", 2, "pace">,
  I32EnumAttrCase<"Rank", 3, "rank">]>;

def Sched_CollectiveKind : SchedEnum<"CollectiveKind", "what the members of a group make of their sources", [
  I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"Broadcast", 3, "broadcast">]>;
def Sched_Reduction : SchedEnum<"Reduction", "how elements are combined", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Product", 1, "product">, I32EnumAttrCase<"Min", 2, "min">,
  I32EnumAttrCase<"Max", 3, "max">]>;

//===-- Interfaces ----------------------------------------------------------------------------------------------===//

def Sched_CommandInterface : OpInterface<"CommandOpInterface"> {
  let description = "An op that runs on a stream and yields an event: the interface of commands for all passes over schedules.";
  let cppNamespace = "::tressel::sched";
  let methods = [
    InterfaceMethod<"buffers it reads", "::mlir::OperandRange", "getReads">,
    InterfaceMethod<"buffers it writes", "::mlir::OperandRange", "getWrites">,
    InterfaceMethod<"the stream it runs on", "::mlir::Value", "getStream">,
    InterfaceMethod<"events it waits for", "::mlir::OperandRange", "getAfter">,
    InterfaceMethod<"one reason per event", "::llvm::ArrayRef<int32_t>", "getReasons">,
    InterfaceMethod<"its end", "::mlir::Value", "getEvent">,
    InterfaceMethod<"replaces the events it waits for", "void", "setWaits",
                    (ins "::mlir::ValueRange":$events, "::llvm::ArrayRef<int32_t>":$reasons), [{
      $_op.getAfterMutable().assign(events);
      $_op.setReasons(reasons);
    }]>,
  ];
  let verify = "return ::tressel::sched::detail::verifyCommand($_op);";
}

def Sched_BufferInterface : OpInterface<"BufferOpInterface"> {
  let description = "An op that declares memory; its one result is the buffer.";
  let cppNamespace = "::tressel::sched";
  let methods = [
    InterfaceMethod<"what the bytes hold", "::mlir::RankedTensorType", "getTensorType">,
    InterfaceMethod<"the buffer", "::mlir::Value", "getBuffer">,
  ];
  let verify = "return ::tressel::sched::detail::verifyBuffer($_op);";
}

//===-- The program and what it declares ------------------------------------------------------------------------===//

class SchedOp<string mnemonic, list<Trait> traits = []> : Op<Sched_Dialect, mnemonic, traits>;
def InProgram : HasParent<"ProgramOp">;

def Sched_ProgramOp : SchedOp<"program", [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "a program placed on streams";
  let description = [{
    Declares streams, arenas and buffers, then holds a `prepare` (which runs when parameters are bound or change) and
    a `step` (which runs at each call).

    Rules: (1) only declarations, then at most one prepare, then one step; (2) names of inputs, of outputs, of states
    are unique; (3) a command writes no input, constant or parameter; a derived state only in prepare, anything else
    that outlives the call only in step; (4) parts of collectives of one name are of one kind, group and root; (5) a group over
    axes names axes of the mesh, each once.

    `in_flight 2`: two calls may run at once, with arenas of their own. `ranks #sched.mesh<data = 4>`: the program of one rank, the
    same for all four.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<Tressel_Size>:$peak_bytes,
                   OptionalAttr<Tressel_Size>:$peak_lower_bound_bytes, OptionalAttr<Sched_MeshAttr>:$mesh,
                   DefaultValuedAttr<I64Attr, "1">:$in_flight);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`ranks` $mesh^)? (`in_flight` $in_flight^)? (`peak` custom<Size>($peak_bytes)^ `at_least` custom<Size>($peak_lower_bound_bytes))? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    PrepareOp getPrepare(); ///< null if the program has none
    StepOp getStep();
  }];
}

class NamedByResult<string mnemonic, list<Trait> traits> : SchedOp<mnemonic, traits # [
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]>;

def Sched_StreamOp : NamedByResult<"stream", [InProgram]> {
  let summary = "declares a stream";
  let description = "`%gpu0_in = sched.stream copy_in on gpu 0`. The name of the result is the stream's name.";
  let arguments = (ins Sched_StreamKind:$kind, Sched_DeviceKind:$device, I64Attr:$index,
                   DefaultValuedAttr<StrAttr, "\"\"">:$name);
  let results = (outs Sched_Stream:$stream);
  let assemblyFormat = "$kind `on` $device $index `` custom<ResultName>($name) attr-dict";
}

def Sched_GroupOp : NamedByResult<"group", [InProgram]> {
  let summary = "declares what runs collectives together";
  let description = [{
    `%pair = sched.group %gpu0_comm, %gpu1_comm`: the members, each a stream of another device, in their order.
    `%replicas = sched.group %comm over ["data"]`: the ranks whose coordinates differ from this rank's on these axes of the mesh alone, in
    row-major order; collectives have one part, on this stream of each rank. Rules: (1) over axes, there is one stream.
  }];
  let arguments = (ins Variadic<Sched_Stream>:$streams, OptionalAttr<StrArrayAttr>:$axes, DefaultValuedAttr<StrAttr, "\"\"">:$name);
  let results = (outs Sched_Group:$group);
  let assemblyFormat = "$streams (`over` $axes^)? `` custom<ResultName>($name) attr-dict";
  let hasVerifier = 1;
}

def Sched_ArenaOp : NamedByResult<"arena", [InProgram]> {
  let summary = "declares an arena";
  let description = "`%memory = sched.arena device on cpu 0 size 4096`. The size is absent until memory is planned.";
  let arguments = (ins Sched_MemoryKind:$memory, Sched_DeviceKind:$device, I64Attr:$index,
                   OptionalAttr<Tressel_Size>:$size, DefaultValuedAttr<StrAttr, "\"\"">:$name);
  let results = (outs Sched_Arena:$arena);
  let assemblyFormat = "$memory `on` $device $index (`size` custom<Size>($size)^)? `` custom<ResultName>($name) attr-dict";
}

class DeclaresBuffer<string mnemonic, list<Trait> traits = []> : NamedByResult<mnemonic, traits # [
    InProgram, DeclareOpInterfaceMethods<Sched_BufferInterface, ["getTensorType"]>]> {
  let results = (outs Sched_Buffer:$buffer);
}
class Binding<string mnemonic> : DeclaresBuffer<mnemonic> {
  let arguments = (ins StrAttr:$name, UnitAttr:$pinned,
                   DefaultValuedAttr<Sched_DeviceKind, "::tressel::sched::DeviceKind::Cpu">:$device,
                   DefaultValuedAttr<I64Attr, "0">:$index, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$name (`pinned` $pinned^)? (`on` $device^ $index)? `:` $type attr-dict";
}

def Sched_InputOp : Binding<"input"> {
  let summary = "an input of the program";
  let description = [{
    `%x = sched.input "x" : tensor<64x784xf32>`, in host memory; `"x" pinned` if the caller promises that it is pinned;
    `"x" on gpu 0` where the caller has it in the memory of that accelerator.
  }];
}
def Sched_OutputOp : Binding<"output"> {
  let summary = "an output of the program";
  let description = "`%y = sched.output \"out\" : tensor<64x10xf32>`, in memory as that of an input.";
}
def Sched_StateOp : DeclaresBuffer<"state"> {
  let summary = "memory that outlives the call";
  let description = [{
    `%w = sched.state parameter "0.weight" : tensor<784x256xf32>`. A parameter is only read; a mutable state is read and
    written; a derived state is owned by the executable, written by prepare and read by step. Each may lie in an
    accelerator's memory: `%m = sched.state mutable "m" on gpu 0 : tensor<784x256xf32>`.
  }];
  let arguments = (ins Sched_StateKind:$kind, StrAttr:$name,
                   DefaultValuedAttr<Sched_DeviceKind, "::tressel::sched::DeviceKind::Cpu">:$device,
                   DefaultValuedAttr<I64Attr, "0">:$index, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$kind $name (`on` $device^ $index)? `:` $type attr-dict";
}
def Sched_ConstantOp : DeclaresBuffer<"constant"> {
  let summary = "bytes that the program carries";
  let description = "`%c = sched.constant dense<[1.0, 2.0]> : tensor<2xf32>`";
  let arguments = (ins ElementsAttr:$value);
  let assemblyFormat = "$value attr-dict";
}
def Sched_BufferOp : DeclaresBuffer<"buffer"> {
  let summary = "a slot of an arena";
  let description = [{
    `%h = sched.buffer in %memory at 128 : tensor<64x256xf32>`. The offset, in bytes, is absent until memory is planned; it
    is an expression, `at "3136*n + 64"`, behind slots of symbolic size.
    Rules: (1) the offset is a multiple of 64; (2) the bytes lie inside the arena.
  }];
  let arguments = (ins Sched_Arena:$arena, OptionalAttr<Tressel_Size>:$offset, TypeAttrOf<AnyRankedTensor>:$type,
                   DefaultValuedAttr<StrAttr, "\"\"">:$name);
  let assemblyFormat = "`in` $arena (`at` custom<Size>($offset)^)? `:` $type `` custom<ResultName>($name) attr-dict";
  let hasVerifier = 1;
}
def Sched_ViewOp : DeclaresBuffer<"view"> {
  let summary = "a part of a buffer, or all of it as another type";
  let description = [{
    `%v = sched.view %h plus 256 : tensor<4x64x64xf32>`. `plus` counts bytes, and may be an expression: `plus "256*rank.data[0..3]"`.
    Rules: (1) the bytes lie inside the base.
  }];
  let arguments = (ins Sched_Buffer:$base, DefaultValuedAttr<Tressel_Size, "0">:$offset, TypeAttrOf<AnyRankedTensor>:$type,
                   DefaultValuedAttr<StrAttr, "\"\"">:$name);
  let assemblyFormat = "$base (`plus` custom<Size>($offset)^)? `:` $type `` custom<ResultName>($name) attr-dict";
  let hasVerifier = 1;
}

class Phase<string mnemonic> : SchedOp<mnemonic, [InProgram, NoTerminator, SingleBlock, NoRegionArguments]> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}
def Sched_PrepareOp : Phase<"prepare"> { let summary = "what runs when parameters are bound or change"; }
def Sched_StepOp : Phase<"step"> { let summary = "what runs at each call"; }

//===-- Commands ------------------------------------------------------------------------------------------------===//

// A command runs on a stream, after the earlier commands of that stream and the events that it names. Its result is the
// event of its own end.
class Command<string mnemonic, list<Trait> traits = []> : SchedOp<mnemonic, traits # [
    ParentOneOf<["PrepareOp", "StepOp", "BranchOp", "WhileOp", "LoopOp"]>,
    DeclareOpInterfaceMethods<Sched_CommandInterface, ["getReads", "getWrites", "getEvent"]>]> {
  let results = (outs Sched_Event:$event);
}

def Sched_LaunchOp : Command<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    `%e = sched.launch @dense_0(%x, %w) -> (%y) on %cpu after %e0 data, %e1 war`. A buffer that is read may share its
    bytes with one that is written if the kernel reads it point by point. Rules: (1) the symbol is a tressel.kernel;
    (2) the buffers have the types of its signature.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Sched_Buffer>:$reads, Variadic<Sched_Buffer>:$writes,
                   Sched_Stream:$stream, Variadic<Sched_Event>:$after,
                   DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let assemblyFormat = [{
    $kernel `(` $reads `)` `->` `(` $writes `)` `on` $stream `` custom<After>($after, $reasons) attr-dict
  }];
}
def Sched_CopyOp : Command<"copy"> {
  let summary = "copies bytes";
  let description = "`%e = sched.copy %a -> %b on %cpu`. Rules: (1) both buffers have as many bytes.";
  let arguments = (ins Sched_Buffer:$source, Sched_Buffer:$destination, Sched_Stream:$stream,
                   Variadic<Sched_Event>:$after, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let assemblyFormat = "$source `->` $destination `on` $stream `` custom<After>($after, $reasons) attr-dict";
  let hasVerifier = 1;
}
def Sched_FillOp : Command<"fill"> {
  let summary = "fills a buffer with one value";
  let description = "`%e = sched.fill 0.0 : f32 -> %b on %cpu`. Rules: (1) the value has the buffer's element type.";
  let arguments = (ins TypedAttrInterface:$value, Sched_Buffer:$destination, Sched_Stream:$stream,
                   Variadic<Sched_Event>:$after, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let assemblyFormat = "$value `->` $destination `on` $stream `` custom<After>($after, $reasons) attr-dict";
  let hasVerifier = 1;
}

def Sched_CollectiveOp : Command<"collective", [AttrSizedOperandSegments]> {
  let summary = "a member's part of what a group does together";
  let description = [{
    `%e = sched.collective all_reduce by sum "w.grad" of %pair(%g0) -> %s0 on %gpu0_comm after %d data`. The parts of a
    collective are consecutive commands, one per member, in member order, all with its name. It begins when all of them
    are ready. `all_gather` concatenates the sources, `reduce_scatter` gives each member its part of the sum; in a
    `broadcast from 1` only member 1 has a source. Elements are combined in member order. Over axes of the mesh, a
    collective is one command; in a broadcast each rank names a source, and only the root's is used.
  }];
  let arguments = (ins Sched_CollectiveKind:$kind,
                   DefaultValuedAttr<Sched_Reduction, "::tressel::sched::Reduction::Sum">:$reduction,
                   DefaultValuedAttr<I64Attr, "0">:$root, StrAttr:$name, Sched_Group:$group,
                   Optional<Sched_Buffer>:$source, Sched_Buffer:$destination, Sched_Stream:$stream,
                   Variadic<Sched_Event>:$after, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let assemblyFormat = [{
    $kind (`by` $reduction^)? (`from` $root^)? $name `of` $group `(` ($source^)? `)` `->` $destination `on` $stream ``
    custom<After>($after, $reasons) attr-dict
  }];
}
def Sched_HostCallOp : Command<"host_call", [AttrSizedOperandSegments]> {
  let summary = "calls a function of the host program";
  let description = [{
    `%e = sched.host_call "log" with "every 10" (%loss) -> () on %cpu after %d data`. The application provides the
    function, which gets the text after `with` and the buffers. Rules: (1) it has a name.
  }];
  let arguments = (ins StrAttr:$function, DefaultValuedAttr<StrAttr, "\"\"">:$params, Variadic<Sched_Buffer>:$reads,
                   Variadic<Sched_Buffer>:$writes, Sched_Stream:$stream, Variadic<Sched_Event>:$after,
                   DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let assemblyFormat = [{
    $function (`with` $params^)? `(` $reads `)` `->` `(` $writes `)` `on` $stream `` custom<After>($after, $reasons) attr-dict
  }];
  let hasVerifier = 1;
}

// Commands with bodies. From outside, such a command reads and writes what its bodies do (`readsOf`, `writesOf`). The
// commands of a body begin when the command does, or when the previous iteration has ended; it ends when they have ended.
class BodyCommand<string mnemonic, list<Trait> traits = []> : Command<mnemonic, traits # [
    NoTerminator, SingleBlock, NoRegionArguments]> {
  let hasVerifier = 1;
}

def Sched_BranchOp : BodyCommand<"branch"> {
  let summary = "runs one of two bodies";
  let description = [{
    `%e = sched.branch %flag on %cpu { ... } else { ... }` runs the first if the flag is set. Rules: (1) the flag is one
    bool.
  }];
  let arguments = (ins Sched_Buffer:$flag, Sched_Stream:$stream, Variadic<Sched_Event>:$after,
                   DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = [{
    $flag `on` $stream `` custom<After>($after, $reasons) attr-dict-with-keyword $then `else` $otherwise
  }];
}
def Sched_WhileOp : BodyCommand<"while"> {
  let summary = "runs a body as long as a flag is set";
  let description = [{
    `%e = sched.while %flag on %cpu { ... } do { ... }` runs the first body, reads the flag, and runs the second and starts
    again if it is set. Rules: (1) the flag is one bool.
  }];
  let arguments = (ins Sched_Buffer:$flag, Sched_Stream:$stream, Variadic<Sched_Event>:$after,
                   DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let regions = (region SizedRegion<1>:$condition, SizedRegion<1>:$body);
  let assemblyFormat = [{
    $flag `on` $stream `` custom<After>($after, $reasons) attr-dict-with-keyword $condition `do` $body
  }];
}
def Sched_LoopOp : BodyCommand<"loop", [AttrSizedOperandSegments]> {
  let summary = "runs a body a number of times";
  let description = [{
    `%e = sched.loop 10 times index %i moving %x, %y on %cpu { ... }`. The number of the iteration is written into `index`.
    Each moving view advances by its own size per iteration. Rules: (1) the index is one i64; (2) a moving buffer is a
    view, and stays inside of its base.
  }];
  let arguments = (ins Tressel_Size:$trips, Optional<Sched_Buffer>:$index, Variadic<Sched_Buffer>:$moving, Sched_Stream:$stream, Variadic<Sched_Event>:$after,
                   DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$reasons);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    custom<Size>($trips) `times` (`index` $index^)? (`moving` $moving^)? `on` $stream `` custom<After>($after, $reasons) attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The moving view that `buffer` is, or is a view of; null if it does not move.
    ::mlir::Value movingOf(::mlir::Value buffer);
  }];
}

#endif
