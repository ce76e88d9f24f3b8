// Summary, contract, before and after, options and statistics of every pass. The order and its reasons: Pipeline.cpp.
#ifndef TRESSEL_PASSES
#define TRESSEL_PASSES

include "mlir/Pass/PassBase.td"

def ResolveDevices : Pass<"tressel-resolve-devices", "mlir::ModuleOp"> {
  let summary = "turn values that are moved into ops that are placed";
  let description = [{
    Contract: exact. Stands first. An op is computed where its attribute `tressel.device` says; an op without one that reads a
    value moved by `to` is computed where the value was moved to, and so is what reads its results, unless moved values
    disagree. Bodies are computed where their op is, as a whole. Devices that the machine lacks, and ops that only the host can
    run, are errors at the op. On a machine with one device nothing is left of all this.

    Before and after:
    ```mlir
    %0 = tressel.to %x {device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    // ----
    %1 = tressel.exp %x {tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let constructor = "tressel::passes::createResolveDevices(nullptr)";
}

def Simplify : Pass<"tressel-simplify", "mlir::ModuleOp"> {
  let summary = "fold, remove duplicates and dead code, apply algebra";
  let description = [{
    Contract: exact. Stands first, and again after composites are decomposed. Ops compute nothing that a constant,
    another op or their operand already holds:
    - ops fold as their records say: constants into constants of at most a page, `x * 1` and a slice of everything
    into `x`, a transpose of a transpose and a view of a view into one, `relu(relu(x))` into `relu(x)`;
    - equal ops become one, which keeps the locations of both.

    Before and after:
    ```mlir
    %0 = tressel.mul %x, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = tressel.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
    // ----
    %0 = tressel.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numFolded", "folded", "ops replaced by constants">,
                    Statistic<"numForwarded", "forwarded", "ops replaced by an earlier value">,
                    Statistic<"numRewired", "rewired", "ops that skip the op before them">,
                    Statistic<"numMerged", "merged", "ops merged with an equal one">];
}

def Differentiate : Pass<"tressel-differentiate", "mlir::ModuleOp"> {
  let summary = "return the gradients of the first result, too";
  let description = [{
    Contract: what the program returns stays as it is, exactly; the gradients follow. Stands before all others, and in no
    pipeline: what C++ traces is differentiated there, by the same rules (value_and_grad). The first result is one
    float; its gradients are with respect to the arguments called `wrt`, or to all arguments of floats. Loops that lead
    to it yield their residuals, stacked, and are gone back over by a scan; of a `cond`, the branch that was taken
    runs again. A `while` needs a bound.

    Before and after:
    ```mlir
    %0 = tressel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.sum %0 : (tensor<4xf32>) -> tensor<f32>
    return %1 : tensor<f32>
    // ----
    %0 = tressel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.sum %0 : (tensor<4xf32>) -> tensor<f32>
    return %1, %w, %x : tensor<f32>, tensor<4xf32>, tensor<4xf32>
    ```
    (after simplification).
  }];
  let options = [ListOption<"wrt", "wrt", "std::string", "names of the arguments; none: all that hold floats">];
  let statistics = [Statistic<"numGradients", "gradients", "results added">];
}

def DecomposeComposites : Pass<"tressel-decompose-composites", "mlir::ModuleOp"> {
  let summary = "write composites that no kernel provider claims in primitives";
  let description = [{
    Contract: reassociates. Stands before form-clusters, so that a row kernel found among primitives (a softmax
    written by hand in a model) is the same as one found from a composite.

    Before and after:
    ```mlir
    %0 = tressel.softmax %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
    // ----
    %0 = tressel.max %x {axes = [1], keepdims = true} : (tensor<8x64xf32>) -> tensor<8x1xf32>
    %1 = tressel.sub %x, %0 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
    %2 = tressel.exp %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %3 = tressel.sum %2 {axes = [1], keepdims = true} : (tensor<8x64xf32>) -> tensor<8x1xf32>
    %4 = tressel.div %2, %3 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
    ```
    Of a program with a mesh, ops whose record has `fromParts` are left to `shard`, which knows how their operands are cut.
  }];
  let constructor = "tressel::passes::createDecomposeComposites({})";
  let statistics = [Statistic<"numDecomposed", "decomposed", "composites written in primitives">];
}

def Autocast : Pass<"tressel-autocast", "mlir::ModuleOp"> {
  let summary = "compute products of f32 in a type of half the width";
  let description = [{
    Contract: precision, and only where the program was compiled with it (PipelineOptions::autocast); else exact, as nothing
    changes. Stands on primitives, behind decompose-composites, so that products of composites and of gradients count as well;
    before layouts and kernels, which are chosen for the types. Ops whose family is a product (op::isProduct: contractions,
    convolutions and their gradients by weights) of f32 alone take their operands in f16 or bf16 and give such a result, which
    is widened again; sums within them are f32. Everything else stays f32: normalization, softmax, losses, sums, what an
    optimizer does, and composites that a kernel takes as a whole. A value that was widened from there is taken as it was.

    Before and after, with bf16:
    ```mlir
    %0 = tressel.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    // ----
    %0 = tressel.cast %x {dtype = bf16} : (tensor<8x4xf32>) -> tensor<8x4xbf16>
    %1 = tressel.cast %w {dtype = bf16} : (tensor<4x2xf32>) -> tensor<4x2xbf16>
    %2 = tressel.matmul %0, %1 : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
    %3 = tressel.cast %2 {dtype = f32} : (tensor<8x2xbf16>) -> tensor<8x2xf32>
    ```
  }];
  let options = [Option<"type", "type", "std::string", /*default=*/"\"\"", "f16 or bf16; empty: nothing changes">];
  let statistics = [Statistic<"numConverted", "converted", "products that are computed in the other type">];
}

def Shard : Pass<"tressel-shard", "mlir::ModuleOp"> {
  let summary = "cut a program into parts for the ranks of a mesh";
  let description = [{
    Contract: reassociates. `tressel.mesh = "data=2"` on @main names the axes of a grid of accelerators, the ranks; `tressel.sharding = "data, -"` on an
    argument, or the op `shard`, says which axis cuts which dimension of a value. The pass follows that through the program by the rules of
    ops ([ShardingRule.h](../ir/op/ShardingRule.h)), forward and backward, then makes of each op that is cut one on the ranks
    (`tressel.device = "ranks"`) on the parts' types. What ranks need of others is exchanged, sums of which each rank has a part are
    combined by `all_reduce`, or where the program alone reads them, there. States without a sharding are whole on each rank; what is computed from
    whole values alone is computed once, unless it makes much of little.
    An op whose record has `fromParts` (`moments`) is computed of each rank's part, and the ranks gather that once, where
    parts are equal; otherwise the pass decomposes it.
    The rule of a `scan` follows from its body's ops (shard/Bodies.h): it is cut into equal parts, and sums over them that its steps only add up are
    combined behind the last one.

    Parts of a dimension differ by one at most: then sizes depend on the rank (`rank.data`). A dimension is cut along as many of its axes, from the
    first on, as it has elements for. Equal annotations, axes that the
    mesh lacks and a mesh larger than the machine are errors at the line of what is annotated. Without a mesh, annotations are removed.

    With `tressel.rank_program` on @main each rank runs a program of its own: nothing is computed once, arguments and results become the rank's parts, and
    nothing is dealt or collected. Dimensions that the ranks do not divide stay whole; of an argument that is to be cut so that is an error.

    With `tressel.pipeline = {axis = "micro", size = 4 : i64}` ranks along one axis are one accelerator, which has their micro-batches one after the other:
    what an accelerator has of all of them is combined first. Ops of a stage (`tressel.stage`) are computed by ranks also where they are not cut, and other
    ops by the stage that reads them alone, or by the last one that they read (shard/Stages.h).

    Before and after, with @main's `tressel.mesh = "data=2"` and x's `tressel.sharding = "data, -"`:
    ```mlir
    %0 = tressel.matmul %x, %w : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32>
    // ----
    %first = tressel.slice %x {limits = array<i64: 16, 8>, starts = array<i64: 0, 0>} : (tensor<32x8xf32>) -> tensor<16x8xf32>
    %second = tressel.slice %x {limits = array<i64: 32, 8>, starts = array<i64: 16, 0>} : (tensor<32x8xf32>) -> tensor<16x8xf32>
    %1 = tressel.deal %first, %second over ["data"] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %2 = tressel.deal %w over [] : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = tressel.matmul %1, %2 {tressel.device = "ranks"} : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    %4:2 = tressel.collect %3 over ["data"] : tensor<16x4xf32> -> tensor<16x4xf32>, tensor<16x4xf32>
    %0 = tressel.concat %4#0, %4#1 : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<32x4xf32>
    ```
  }];
  let constructor = "tressel::passes::createShard(nullptr)";
  let statistics = [Statistic<"numOnRanks", "on-ranks", "ops that every rank computes">,
                    Statistic<"numReduced", "all-reduced", "values that all ranks combine">];
}

def LowerCollectives : Pass<"tressel-lower-collectives", "mlir::ModuleOp"> {
  let summary = "join collectives into buckets, and write them as what ranks of one process exchange";
  let description = [{
    Contract: exact. Each rank combines the values in the ranks' order, so all have the same bits. Each reads all the others' values and
    combines them, or combines one part and reads the other parts' results, or the host combines them all: what the machine's latencies and rates make shortest. Before, those that come one
    after the other with no use in between become one, so that many small ones have one latency. Of a rank's own program (`tressel.rank_program`) the rest is left
    to the collectives of the schedule; `all_gather` along another dimension than the first becomes one along the first. A sum over micro-batches goes on
    with what the one before has (`carry`), so that gradients of one alone are kept.

    Before and after:
    ```mlir
    %0 = tressel.all_reduce %g by "sum" over ["data"] {tressel.device = "ranks"} : tensor<8x4xf32>
    // ----
    %1:2 = tressel.collect %g over ["data"] on_ranks : tensor<8x4xf32> -> tensor<8x4xf32>, tensor<8x4xf32>
    %0 = tressel.add %1#0, %1#1 {tressel.device = "ranks"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let constructor = "tressel::passes::createLowerCollectives({})";
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
                        "most bytes that are combined as one, where no other collective waits for the result: less if that makes fewer than four; at least 2^62: all, once the last one is there">];
  let statistics = [Statistic<"numLowered", "lowered", "collectives written out">,
                    Statistic<"numJoined", "joined", "collectives that became part of one">];
}

def ExpandRanks : Pass<"tressel-expand-ranks", "mlir::ModuleOp"> {
  let summary = "make of what every rank computes an op per accelerator";
  let description = [{
    Contract: exact. Rank r is accelerator r of those that the program may use. What is dealt and collected are then values of the program; copies between
    accelerators follow with `insert-transfers`. Runs before layouts and clusters where sizes or random numbers depend on the rank, and after kernels are
    outlined otherwise: kernels are then made once for all ranks. A rank's own program (`tressel.rank_program`) goes to the first accelerator.
    Of a pipeline, stage k goes to accelerator k of those in a row, counted around, and what several micro-batches would compute alike is computed once; the
    number of the others is `tressel.micro_batch` of their ops. What is of no stage is computed wherever it is read.

    Before and after, on two accelerators:
    ```mlir
    %1 = tressel.deal %a, %b over ["data"] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.launch @exp_0(%1) {tressel.device = "ranks"} : (tensor<4xf32>) -> tensor<4xf32>
    // ----
    %2 = tressel.launch @exp_0(%a) {tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = tressel.launch @exp_0(%b) {tressel.device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let constructor = "tressel::passes::createExpandRanks(nullptr)";
  let statistics = [Statistic<"numExpanded", "expanded", "ops made for ranks">];
}

def AssignLayouts : Pass<"tressel-assign-layouts", "mlir::ModuleOp"> {
  let summary = "store images with their channels last where that makes the network cheaper";
  let description = [{
    Contract: reassociates. Stands between decompose-composites and split-reductions, on the graph of primitives. From convolutions
    on, values have a dimension of channels; it is followed through all ops whose records say what they are on dimensions in
    another order (`reorder`), and through transposes. Each such op can run as it is, or with that dimension last. What the
    providers bid for either form, and for the transposes wherever neighbours differ, makes a minimum cut: the whole network is decided
    at once, and an equal cost leaves it as it is. A transpose counts twice its bid, as it also parts kernels. Values of parameters and constants alone are transposed for nothing, as `prepare`
    does it once; so are those that keep their bytes (only dimensions of size 1 move), which are reshaped. Transposes that the
    program has count for both sides, so a network that is written with channels last around ops that are not gets rid of them.
    Simplify comes after it, where they meet.

    Before and after:
    ```mlir
    %0 = tressel.conv %x, %v : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x26x26xf32>
    %1 = tressel.relu %0 : (tensor<8x64x26x26xf32>) -> tensor<8x64x26x26xf32>
    %2 = tressel.conv %1, %w : (tensor<8x64x26x26xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x24x24xf32>
    // ----
    %0 = tressel.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x64x28x28xf32>) -> tensor<8x28x28x64xf32>
    %1 = tressel.conv %0, %v {channels_last = true} : (tensor<8x28x28x64xf32>, tensor<64x64x3x3xf32>) -> tensor<8x26x26x64xf32>
    %2 = tressel.relu %1 : (tensor<8x26x26x64xf32>) -> tensor<8x26x26x64xf32>
    %3 = tressel.conv %2, %w {channels_last = true} : (tensor<8x26x26x64xf32>, tensor<64x64x3x3xf32>) -> tensor<8x24x24x64xf32>
    %4 = tressel.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x24x24x64xf32>) -> tensor<8x64x24x24xf32>
    ```
  }];
  let constructor = "tressel::passes::createAssignLayouts({})";
  let statistics = [Statistic<"numMoved", "moved", "ops whose channels became last">,
                    Statistic<"numTransposes", "transposes", "transposes inserted">];
}

def SplitReductions : Pass<"tressel-split-reductions", "mlir::ModuleOp"> {
  let summary = "reduce most of a large tensor to few values in parallel";
  let description = [{
    Contract: reassociates. Stands before form-clusters, on the graph of primitives. A unit of a kernel's work is a
    point of its result, so a reduction to less than `min-units` points keeps threads idle: it becomes one over its
    inner dimensions, whose points are units, and one over what that gives. The order of the sums is a matter of the
    shape alone, whatever the number of threads is. Types whose sums are rounded (f16, bf16) stay as they are, and so do
    reductions along a single dimension, unless `split-dimensions` lets it become two, of a known size with a suitable divisor. For accelerators with
    kernels of their own, whose results are computed by a block each, the pipeline asks for that and for many more units.

    Before and after:
    ```mlir
    %0 = tressel.sum %x : (tensor<4096x4096xf32>) -> tensor<f32>
    // ----
    %1 = tressel.sum %x {axis = array<i64: 1>, keepdims = true} : (tensor<4096x4096xf32>) -> tensor<4096x1xf32>
    %0 = tressel.sum %1 : (tensor<4096x1xf32>) -> tensor<f32>
    ```
  }];
  let options = [Option<"minUnits", "min-units", "int64_t", "32", "units that keep all threads busy">,
                 Option<"minElements", "min-elements", "int64_t", "262144", "elements per result that are worth a launch">,
                 Option<"splitDimensions", "split-dimensions", "bool", "false", "cut a single dimension into equal parts as well">];
  let statistics = [Statistic<"numSplit", "split", "reductions in two steps">];
}

def RecomputeCheap : Pass<"tressel-recompute-cheap", "mlir::ModuleOp"> {
  let summary = "compute again behind a gradient's turning point what costs less than to keep it";
  let description = [{
    Contract: reassociates, as sums of products may be rounded otherwise in another kernel. Stands behind all passes that change single ops and before form-clusters, so
    that what is computed again joins the kernels that read it.

    A training step keeps what its forward ops make until their gradients read it. Where that is an elementwise function of
    something that is kept as well (the normalized input of a batch norm, a relu and its mask, all of one convolution), it
    costs memory and two ways through it. A minimum cut decides between keeping and computing again for all values at
    once: to keep one costs its bytes read, and written where no kernel has it in memory anyway; to compute one again costs its
    flops, and what it is computed from has to be there; and its bytes written and read, where a library's kernel wants them.
    What is compared for equality behind the turning point is always kept: another kernel may round it otherwise.
    The place between the two ways is where most values that live long are alive, so a training step that another framework has
    written is treated alike. A program that keeps little, or would save little, stays as it is; and so does one for a machine with accelerators, of
    which fit-memory counts the bytes.

    Before and after:
    ```mlir
    %h = tressel.matmul %x, %w : ...
    %r = tressel.relu %h : ...
    ...
    %g = tressel.mul %dy, %r : ...
    // ----
    %h = tressel.matmul %x, %w : ...
    %r = tressel.relu %h : ...
    ...
    %0 = tressel.relu %h : ...
    %g = tressel.mul %dy, %0 : ...
    ```
  }];
  let options = [Option<"minBytes", "min-bytes", "int64_t", "65536", "kept bytes below which nothing is done">];
  let statistics = [Statistic<"numRecomputed", "recomputed", "ops that run again">,
                    Statistic<"numBytes", "bytes", "bytes that are not kept">];
}

def FormClusters : Pass<"tressel-form-clusters", "mlir::ModuleOp"> {
  let summary = "group ops into kernels that the providers bid for";
  let description = [{
    Contract: reassociates. Walks the edges of the graph in program order and joins producer and consumer where a
    provider runs the two as one kernel in no more time than apart; edges whose ends have grown since are tried again,
    in three walks at most. A library's root (a contraction, say) takes
    elementwise ops after it as an epilogue of generated code. Clusters stay convex: no path leaves one and comes
    back. An op with several users is never computed twice, except cheap ones that make much of little (a broadcast,
    an iota). Views and constants stay outside, except constants of one value, which become part of the kernel. So do rows of an argument, which are a part of its bytes,
    other rows that nobody joined with what reads them, and joins of rows that can be computed in their place. Cost
    grows linearly with the graph: the search for a path is bounded, and so is the size of a cluster. What a cluster reads and writes may be half of the
    memory of the accelerator that it can go to, or as much as one of its parts does. At last small next values of states (256 KiB each) that
    nothing else reads share clusters, up to 96 operands, though they exchange no values, where the provider says that they may. An op for which
    nobody bids is the user's error, with its line.

    Before and after:
    ```mlir
    %0 = tressel.matmul %x, %w : (tensor<64x784xf32>, tensor<784x10xf32>) -> tensor<64x10xf32>
    %1 = tressel.relu %0 : (tensor<64x10xf32>) -> tensor<64x10xf32>
    // ----
    %1 = tressel.cluster(%x, %w) {provider = "onednn", params = "{...}", range = 16 : i64, root_ops = 1 : i64}
        : (...) -> tensor<64x10xf32> {
    ^bb0(%0: tensor<64x784xf32>, %1: tensor<784x10xf32>):
      %2 = tressel.matmul %0, %1 : (tensor<64x784xf32>, tensor<784x10xf32>) -> tensor<64x10xf32>
      %3 = tressel.relu %2 : (tensor<64x10xf32>) -> tensor<64x10xf32>
      tressel.yield %3 : tensor<64x10xf32>
    }
    ```
  }];
  let constructor = "tressel::passes::createFormClusters({})";
  let dependentDialects = ["mlir::func::FuncDialect"];
  let options = [Option<"maxOps", "max-ops", "int64_t", "64", "ops of the largest cluster">,
                 Option<"maxSearch", "max-search", "int64_t", "512",
                        "edges looked at before a possible cycle counts as one">];
  let statistics = [Statistic<"numClusters", "clusters", "clusters formed">,
                    Statistic<"numJoined", "joined", "ops that share a cluster">];
}

def OutlineKernels : Pass<"tressel-outline-kernels", "mlir::ModuleOp"> {
  let summary = "make each cluster and pack a kernel symbol, equal ones one";
  let description = [{
    Contract: exact. Stands between form-clusters and build-schedule. Kernels are equal when bodies and attributes
    are, whatever the locations; the launch keeps the location. Names tell the ops: `@matmul_add_relu_0`.

    Before and after:
    ```mlir
    %0 = tressel.cluster(%x) {...} : (tensor<4xf32>) -> tensor<4xf32> { ... }
    // ----
    tressel.kernel @relu_0(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {...} { ... }
    %0 = tressel.launch @relu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numKernels", "kernels", "kernels made">,
                    Statistic<"numShared", "shared", "clusters that found an equal kernel">];
}

def PlaceClusters : Pass<"tressel-place-clusters", "mlir::ModuleOp"> {
  let summary = "say on which device each launch runs";
  let description = [{
    Contract: exact. Stands after outline-kernels, which leaves one launch per cluster and one kernel for equal ones, and before
    insert-transfers. Annotated launches and ops with bodies stay where they are; what has effects stays on the host, and so does, where
    accelerators have kernels of their own, what they have no kernel for, an op with bodies as a whole. The others go, in the order of how much depends on them, each to where its result is there first by the
    machine's figures: when the device is free, what copies of its operands take that are not there yet, and what its results take
    back to the host where they are the program's. Values of parameters alone are copied ahead of the step. A device whose memory is full
    takes no more. As this looks at one launch at a time, all on each one device, some of the devices, variations, and of up to 32 launches single moves are tried too. What is best of these ways is
    decided by what the passes that follow make of it, for programs of up to 2000 launches: with its copies, what is evicted and, of the best
    two and up to 500 launches, blocks of rows (PredictStep.h). What a launch would have taken elsewhere is its decision.

    Before and after:
    ```mlir
    %0 = tressel.launch @matmul_0(%x, %w) : (...) -> tensor<4096x4096xf32>
    // ----
    %0 = tressel.launch @matmul_0(%x, %w) {tressel.device = "gpu0"} : (...) -> tensor<4096x4096xf32>
    ```
  }];
  let constructor = "tressel::passes::createPlaceClusters({}, nullptr)";
  let statistics = [Statistic<"numPlaced", "placed", "launches on accelerators">];
}

def InsertTransfers : Pass<"tressel-insert-transfers", "mlir::ModuleOp"> {
  let summary = "copy values to where they are read";
  let description = [{
    Contract: exact. Stands between place-clusters and build-schedule. A value that is read on a device other than the one
    that made it is copied there once, for all who read it there; by way of the host where the machine has no route. Constants
    lie on the host; arguments lie, and results go, where `tressel.home` says, without it the host. A result with the home "computed" stays where it is made. Views are views of the copy. Constants in bodies on an accelerator come in as
    invariants.

    Before and after:
    ```mlir
    %0 = tressel.launch @exp_0(%x) {tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
    // ----
    %0 = tressel.to %x {device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.launch @exp_0(%0) {tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.to %1 {device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
    ```
  }];
  let constructor = "tressel::passes::createInsertTransfers(nullptr)";
  let dependentDialects = ["mlir::func::FuncDialect"];
  let statistics = [Statistic<"numTransfers", "transfers", "copies between devices">];
}

def StageCopies : Pass<"tressel-stage-copies", "mlir::ModuleOp"> {
  let summary = "send copies of memory that is not pinned by way of memory that is";
  let description = [{
    Contract: exact. Stands after insert-transfers. An accelerator's engine copies pinned memory at the full rate of the links, other memory, which a
    driver sends in small pieces, far slower. Where a copy on the host into pinned memory (or out of it) and the transfer together take less by the
    machine's figures, such transfers are given one: all of them, those to accelerators, or those from them, whichever makes the step shortest, and only if one does. The
    copies on the host are made once for all who read them, and are cut into rows with the transfers.

    Before and after:
    ```mlir
    %0 = tressel.to %x {device = "gpu0"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    // ----
    %0 = tressel.to %x {device = "cpu"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %1 = tressel.to %0 {device = "gpu0"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    ```
  }];
  let constructor = "tressel::passes::createStageCopies(nullptr)";
  let options = [Option<"leastGain", "least-gain", "double", "0.01", "share of the step that it must save">];
  let statistics = [Statistic<"numStaged", "staged", "transfers that go by way of pinned memory">];
}

def SplitProducers : Pass<"tressel-split-producers", "mlir::ModuleOp"> {
  let summary = "cut launches into blocks of rows where their copies then hide";
  let description = [{
    Contract: reassociates (the kernel of a block may sum in another order). Stands between insert-transfers and fit-memory. As long as
    a transfer waits for a whole launch, or a launch for a whole transfer, the first and the last copy of a step hide behind nothing. Such
    a launch on the longest way to the end of the step is cut along the leading dimension of its results, if each of their rows needs the same row of
    operands, or operands whole, by the ops' loop forms: into 2 to 16 blocks, whichever makes the step shorter by the machine's
    figures, and only if one does. All such launches at once are tried first, then the chains of launches that hand on rows to them or from them, then
    all chains, so that a pipeline's blocks go from device to device on their own. Each block is a launch of a kernel of its own, which the provider of the whole bids for, and is copied by
    itself. The blocks' bytes are those of the whole: `slice` along the first dimension is a view of it, and `concat` has its operands computed in its own
    bytes.

    Before and after, with 2 blocks:
    ```mlir
    %0 = tressel.launch @exp_0(%x) {tressel.device = "gpu0"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = tressel.to %0 {device = "cpu"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // ----
    %a = tressel.slice %x {starts = [0, 0], limits = [4, 4]} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %b = tressel.slice %x {starts = [4, 0], limits = [8, 4]} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %c = tressel.launch @exp_0_4_rows(%a) {tressel.device = "gpu0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %d = tressel.launch @exp_0_4_rows(%b) {tressel.device = "gpu0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %e = tressel.to %c {device = "cpu"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %f = tressel.to %d {device = "cpu"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = tressel.concat %e, %f : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let constructor = "tressel::passes::createSplitProducers({}, nullptr)";
  let options = [Option<"maxTrials", "max-trials", "int64_t", "64", "ways to cut that are tried">,
                 Option<"leastGain", "least-gain", "double", "0.0005", "share of the step that a cut must save">];
  let statistics = [Statistic<"numSplit", "split", "launches cut into blocks">];
}

def SettleKernels : Pass<"tressel-settle-kernels", "mlir::ModuleOp"> {
  let summary = "give launches on the host kernels of the host";
  let description = [{
    Contract: reassociates. Stands after fit-memory, once every launch has its place, and before build-schedule. For accelerators that have an architecture
    of their own, clusters are formed by what its kernels cost; a launch that went to the host all the same, or belongs to prepare, gets a kernel that the
    host's providers bid for: the root's, with the epilogue behind it where the provider takes one, or generated code for all. Kernels of accelerators
    are marked `tressel.aligned`: build-schedule copies slices that do not begin at a multiple of 64 bytes for them. Without such accelerators the pass
    does nothing.

    Before and after:
    ```mlir
    tressel.kernel @add_0(...) attributes {params = "{\"threads\":128}", provider = "cuda", range = 8 : i64} {...}
    %a = tressel.launch @add_0(%x, %y) : (...) -> tensor<1024xf32>
    // ----
    tressel.kernel @add_0_host(...) attributes {provider = "generated"} {...}
    %a = tressel.launch @add_0_host(%x, %y) : (...) -> tensor<1024xf32>
    ```
  }];
  let statistics = [Statistic<"numSettled", "settled", "kernels that the host runs instead">];
}

def FitMemory : Pass<"tressel-fit-memory", "mlir::ModuleOp"> {
  let summary = "evict values from an accelerator's memory, and prefetch or rematerialize them, where not all fit";
  let description = [{
    Contract: exact. Stands after insert-transfers and split-producers, so that it sees every copy, and before build-schedule, which keeps the
    order that this settles. What memory a program takes is what plan-memory gives it: a copy of the program is taken through it.

    Where a step, or what prepare does ahead of it, is more than a device has, each value that is in the way is evicted, once between two of its uses at most
    (Residency.h), the whole future being known. One that has a copy on the host is dropped, another is spilled there early enough to hide behind
    other work. It is prefetched before its next use, as early as helps and there is room; or it is rematerialized, if nothing but it depends on that (no
    effects). Parameters are resident as long as that is best, else they are streamed in each call; what the device makes of parameters is then
    kept on the host. Several orders, shares of resident parameters and orders of eviction are compared by predicted time, and the best is taken;
    it is a decision for each value. Then the order is settled.

    An op whose operands, results and bodies do not fit alone goes to the host if nobody has annotated anything; else it is an error with its bytes and
    who holds the rest.

    Before and after, where two tensors fit:
    ```mlir
    %a = tressel.launch @f(%x) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %b = tressel.launch @g(%y) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %c = tressel.launch @g(%b) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %d = tressel.launch @h(%a) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    // ----
    %a = tressel.launch @f(%x) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %0 = tressel.to %a {device = "cpu"} : (tensor<1024xf32>) -> tensor<1024xf32>
    %b = tressel.launch @g(%y) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %c = tressel.launch @g(%b) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    %1 = tressel.to %0 {device = "gpu0"} : (tensor<1024xf32>) -> tensor<1024xf32>
    %d = tressel.launch @h(%1) {tressel.device = "gpu0"} : (...) -> tensor<1024xf32>
    ```
  }];
  let constructor = "tressel::passes::createFitMemory(nullptr)";
  let dependentDialects = ["tressel::sched::SchedDialect"];
  let options = [Option<"rematerialize", "rematerialize", "bool", "true", "compute again what takes less time than its copies">,
                 Option<"maxWork", "max-work", "int64_t", "400'000", "ops looked at in all while plans are compared; one plan at least">];
  let statistics = [Statistic<"numSpilled", "spilled", "copies to the host that make room">,
                    Statistic<"numPrefetched", "prefetched", "copies from the host of what was evicted">,
                    Statistic<"numRematerialized", "rematerialized", "launches that run again">,
                    Statistic<"numStreamed", "streamed", "parameters that are copied in in each call">];
}

def FitBudget : Pass<"tressel-fit-budget", "mlir::ModuleOp"> {
  let summary = "compute values again where keeping them takes more memory than a budget has";
  let description = [{
    Contract: exact. For a program on the host alone whose caller bounds the memory of its intermediate values. Stands after
    fit-memory, its like for accelerators, and before build-schedule, which keeps the order that this settles.

    A training step keeps what its forward pass makes for the backward pass. Where that is more than the budget, values
    are dropped and made again where they are needed, from what is kept, the whole future being known (Residency.h):
    what is dropped first has many bytes and a late use for each second that it takes to be made again, what it needs itself
    included. Random numbers are functions of their seeds, so they are the same.

    Which plans there are does not depend on the budget: two orders of the ops, three rules, and bounds in steps of a
    twentieth of what the program takes without one. plan-memory, on copies, says what each takes in the end; of those within the
    budget the fastest by the model is taken. So the memory of a program never rises as its budget falls. Where no
    plan is within the budget it is an error that names the least that one takes. With symbolic sizes, typical ones count.

    Before and after, where three tensors are within the budget:
    ```mlir
    %a = tressel.launch @f(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
    %b = tressel.launch @g(%a) : (tensor<1024xf32>) -> tensor<1024xf32>
    %c = tressel.launch @h(%b) : (tensor<1024xf32>) -> tensor<1024xf32>
    %d = tressel.launch @k(%c, %a) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    // ----
    %a = tressel.launch @f(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
    %b = tressel.launch @g(%a) : (tensor<1024xf32>) -> tensor<1024xf32>
    %c = tressel.launch @h(%b) : (tensor<1024xf32>) -> tensor<1024xf32>
    %0 = tressel.launch @f(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
    %d = tressel.launch @k(%c, %0) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    ```
  }];
  let constructor = "tressel::passes::createFitBudget({}, nullptr)";
  let dependentDialects = ["tressel::sched::SchedDialect"];
  let options = [Option<"bytes", "bytes", "int64_t", "-1", "the budget, if the caller gives none">,
                 Option<"share", "share", "double", "-1", "or as a share of what the program takes without one">];
  let statistics = [Statistic<"numRematerialized", "rematerialized", "launches that run again">,
                    Statistic<"numPlans", "plans", "plans that plan-memory was asked about">];
}

def BuildSchedule : Pass<"tressel-build-schedule", "mlir::ModuleOp"> {
  let summary = "turn @main into a sched.program";
  let description = [{
    Contract: exact. Arguments and results become inputs, outputs and states, values become buffers, views share their
    operand's bytes, launches become commands. Of the launches that are ready, the one that leaves the least memory
    live goes first; among equals, and by default, program order. What depends on parameters and constants only moves
    to `prepare` unless it makes much of little. A result is computed in the output's bytes; it is copied where it is
    an input, a constant or state, or is returned twice.

    A program that insert-transfers left on several devices gets a stream for each engine of a device, an arena for each
    memory, and one of pinned memory for what the host exchanges with accelerators. Its order is that in which commands begin by the machine's
    figures, when each engine takes, of what is ready and fits into memory, the command that is most urgent. How urgent commands are is tried in
    several ways, and the shortest plan is kept (ListSchedule.h). Micro-batches keep the order of a pipeline (PipelineOrder.h). The predicted times, in picoseconds, are the attribute `sched.planned`, until plan-memory has used them.

    Before and after:
    ```mlir
    func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
      %0 = tressel.launch @relu_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // ----
    sched.program @main {
      %cpu = sched.stream compute on cpu 0
      %memory = sched.arena device on cpu 0
      %x = sched.input "x" : tensor<4xf32>
      %y = sched.output "y" : tensor<4xf32>
      sched.step {
        %0 = sched.launch @relu_0(%x) -> (%y) on %cpu
      }
    }
    ```
  }];
  let constructor = "tressel::passes::createBuildSchedule({}, nullptr)";
  let dependentDialects = ["tressel::sched::SchedDialect"];
  let options = [Option<"streams", "streams", "int64_t", "1", "compute streams to spread independent work over">];
  let statistics = [Statistic<"numPrepared", "prepared", "launches moved to prepare">,
                    Statistic<"numCopies", "copies", "copies added for results">];
}

def PlanMemory : Pass<"tressel-plan-memory", "mlir::ModuleOp"> {
  let summary = "give every buffer its bytes in an arena";
  let description = [{
    Contract: exact. Stands after the order is fixed, before insert-waits, since reuse of bytes is what makes write-
    after-read edges. Offsets are multiples of 64. A buffer lives from its first writer to its last reader in issue
    order. The result of a kernel that reads an operand point by point takes the bytes of that operand where it dies.
    Where commands have predicted times (build-schedule), a buffer lives until the last who touches it is predicted to end, so that
    nobody waits for bytes while others are free; if that is more than an accelerator has, until that command is issued; then a result takes a
    dying operand's bytes though these are still being copied; and if that is too much as well, also for the host, it is an error with the bytes, the
    lines and who holds them.
    `peak` is what the plan needs; `at_least` the largest sum of bytes live at one command, which no plan of this
    order can beat.

    Before and after:
    ```mlir
    %memory = sched.arena device on cpu 0
    %a = sched.buffer in %memory : tensor<64xf32>
    %b = sched.buffer in %memory : tensor<64xf32>
    // ----
    %memory = sched.arena device on cpu 0 size 256
    %a = sched.buffer in %memory at 0 : tensor<64xf32>
    %b = sched.buffer in %memory at 0 : tensor<64xf32>
    ```
  }];
  let constructor = "tressel::passes::createPlanMemory({}, nullptr)";
  let options = [Option<"inPlace", "in-place", "bool", "true", "let results take the bytes of operands that die">,
                 Option<"measure", "measure", "bool", "false", "place buffers as closely as they go, though memories have room or are too small">];
  let statistics = [Statistic<"numInPlace", "in-place", "buffers that took a dying operand's bytes">];
}

def InsertWaits : Pass<"tressel-insert-waits", "mlir::ModuleOp"> {
  let summary = "order conflicting commands of different streams by events";
  let description = [{
    Contract: exact. Every access that conflicts with an earlier one in another stream waits for it, with the reason
    (data, war). Edges that follow from others are left out: removing any one of the rest makes the schedule invalid.
    Waits that were there before are replaced.

    Before and after:
    ```mlir
    %0 = sched.launch @f(%x) -> (%a) on %s0
    %1 = sched.launch @g(%a) -> (%y) on %s1
    // ----
    %0 = sched.launch @f(%x) -> (%a) on %s0
    %1 = sched.launch @g(%a) -> (%y) on %s1 after %0 data
    ```
  }];
  let statistics = [Statistic<"numWaits", "waits", "waits inserted">,
                    Statistic<"numImplied", "implied", "conflicts ordered already">];
}

def FormGraphs : Pass<"tressel-form-graphs", "mlir::ModuleOp"> {
  let summary = "say which commands accelerators take as one graph";
  let description = [{
    Contract: exact. Stands after insert-waits, as waits are the edges of graphs, and before verify-schedule. Commands that an accelerator with kernels of its own executes (launches,
    copies, fills, and loops that are unrolled into these) become nodes of as few graphs as the host's work between them allows (tressel/runtime/DeviceGraphs.h); the number of its graph is an
    attribute of each. Schedules stay as they are: without graphs the same commands are issued one by one.

    Before and after:
    ```mlir
    %e = sched.launch @add_0(%x, %y) -> (%z) on %gpu0
    // ----
    %e = sched.launch @add_0(%x, %y) -> (%z) on %gpu0 {sched.graph = 0 : i64}
    ```
  }];
  let statistics = [Statistic<"numGraphs", "graphs", "graphs">, Statistic<"numNodes", "nodes", "commands in graphs">];
}

def VerifySchedule : Pass<"tressel-verify-schedule", "mlir::ModuleOp"> {
  let summary = "prove the schedule safe";
  let description = [{
    Contract: exact; changes nothing. Stands last: needs planned memory and waits. Lowers to the flat schedule and has
    the runtime's verifier prove that conflicting accesses are ordered, nothing is read before it is written and every
    output is complete. What it finds is an error at the command.

    Before and after: the same.
  }];
}

#endif
