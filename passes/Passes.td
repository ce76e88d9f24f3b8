// Summary, contract, before and after, options and statistics of every pass. The order and its reasons: Pipeline.cpp.
#ifndef TRESSEL_PASSES
#define TRESSEL_PASSES

include "mlir/Pass/PassBase.td"

def ResolveDevices : Pass<"tressel-resolve-devices", "mlir::ModuleOp"> {
  let summary = "turn values that are moved into ops that are placed";
  let description = [{
    Contract: exact. Stands first. An op is computed on the device that its attribute `tressel.device` names. An op
    without the attribute follows its operands: if they were moved by `to`, or are results of ops that follow moved
    values, and all agree on a device, it gets that device. Bodies are computed as a whole, on the device of their op. A
    device that the machine lacks is an error at the op, and so is an op on an accelerator that only the host can run.
    On a machine with one device all annotations are removed.

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
    Contract: exact. Stands first, and again after composites are decomposed. Removes ops whose result is known:
    - ops fold as their records allow: constants into constants of at most a page, `x * 1` and a slice of everything
      into `x`, a transpose of a transpose and a view of a view into one, `relu(relu(x))` into `relu(x)`;
    - equal ops are merged into one, which keeps the locations of both.

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
    Contract: the program's results are unchanged, exactly; the gradients are returned after them. Would stand before
    all other passes, but is in no pipeline: programs traced from C++ are differentiated while they are traced, by the
    same rules (value_and_grad). The first result is one float; its gradients are with respect to the arguments named by
    `wrt`, or to all arguments of floats. Loops that lead to it yield their residuals, stacked, and a scan runs backward
    over them; for a `cond`, the branch that was taken is executed again. A `while` needs a bound.

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
    Contract: reassociates. Stands before form-clusters, so that a row kernel found among primitives (a softmax written
    by hand in a model) is the same as one found from a composite.

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
    Contract: precision, and only in programs compiled with the option (PipelineOptions::autocast); else exact, as
    nothing changes. Stands after decompose-composites, on primitives, so that it sees products in composites and
    gradients as well; and before layouts and kernels, which are chosen by type. Ops of f32 whose family is a product
    (op::isProduct: contractions, convolutions and their gradients by weights) take their operands in f16 or bf16, sum
    in f32, and give a result of that type, which is widened again. All other ops stay in f32: normalization, softmax,
    losses, sums, optimizers, and composites that a kernel takes as a whole. If an operand was widened from that type,
    the value before widening is used.

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
    Contract: reassociates. `tressel.mesh = "data=2"` on @main names the axes of a grid of accelerators, the ranks.
    `tressel.sharding = "data, -"` on an argument, or the op `shard`, says which axis cuts which dimension of a value.
    The pass propagates shardings through the program, forward and backward, by the sharding rules of ops
    ([ShardingRule.h](../ir/op/ShardingRule.h)). Then it replaces each op that is cut by one on the ranks
    (`tressel.device = "ranks"`) with the types of the parts. Values that ranks need from each other are exchanged. Sums
    of which each rank has a term are combined by `all_reduce`, or in the program if only the program reads them. States
    without a sharding are whole on each rank. An op on whole values alone is computed once, unless it makes a large
    result of small operands.
    An op whose record has `fromParts` (`moments`) is computed on each rank's part, and the ranks gather these results
    in one exchange, if parts have equal sizes; otherwise the pass decomposes the op.
    The rule of a `scan` follows from the ops of its body (shard/Bodies.h): it is cut into equal parts. A sum over parts
    that iterations only add up is combined once, after the last iteration.

    Parts of a dimension differ by at most one in size; if they differ, sizes depend on the rank (`rank.data`). A
    dimension is cut along as many of its axes, from the first on, as it has elements for. An axis that an annotation
    repeats or that the mesh lacks, and a mesh larger than the machine, are errors at the line of the annotation.
    Without a mesh, annotations are removed.

    With `tressel.rank_program` on @main each rank runs a program of its own: no op is computed once for all, arguments
    and results are the rank's parts, and nothing is dealt or collected. Dimensions that the ranks do not divide stay
    whole; to annotate an argument so is an error.

    With `tressel.pipeline = {axis = "micro", size = 4 : i64}` the ranks along one axis are micro-batches that one
    accelerator computes one after the other; their terms are combined on the accelerator first. Ops with a stage
    (`tressel.stage`) are computed by ranks even if they are not cut. An op without a stage gets that of its readers, if
    they agree, or else the last stage among its operands (shard/Stages.h).

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
    Contract: exact. Within a process an `all_reduce` becomes copies and ops. All ranks combine the values in the same
    order, so all get the same bits. Of three ways the fastest by the machine model is taken: each rank reads all other
    values and combines them; each rank combines one part and reads the results for the other parts; the host combines
    all. Before that, independent collectives are joined into buckets, so that many small ones have one latency. In a
    rank's own program (`tressel.rank_program`) collectives are left to the schedule; an `all_gather` along another
    dimension than the first becomes one along the first. A sum over micro-batches is accumulated from one to the next
    (`carry`), so that only one gradient is kept at a time.

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
    Contract: exact. Rank r becomes the r-th accelerator that the program may use. Dealt and collected values become
    values of the program; `insert-transfers` adds the copies between accelerators later. Runs before layouts and
    clusters if sizes or random numbers depend on the rank; else after kernels are outlined, so that kernels are
    compiled once for all ranks. A rank's own program (`tressel.rank_program`) is placed on the first accelerator. In a
    pipeline, stage k goes to accelerator k modulo the length of the row. Ops that several micro-batches would compute
    alike are merged; all others get the number of their micro-batch as `tressel.micro_batch`. An op without a stage is
    computed wherever it is read.

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
    Contract: reassociates. Stands between decompose-composites and split-reductions, on the graph of primitives.
    Follows the dimension of channels from convolutions through all ops whose records have a form with permuted
    dimensions (`reorder`), and through transposes. Each of these ops can run unchanged, or with channels last. The bids
    for both forms, and for transposes wherever neighbours differ, are the edges of a minimum cut, so the whole network
    is decided at once; at equal cost nothing changes. A transpose counts more than twice its bid, as it also separates
    kernels. Transposes of parameters and constants cost nothing, as `prepare` does them once; a transpose that only
    moves dimensions of size 1 is a reshape. Existing transposes count too, so a network that alternates between layouts
    by transposes loses them. Simplify runs afterwards, where transposes now cancel.

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
    Contract: reassociates. Stands before form-clusters, on the graph of primitives. A unit of a kernel's work is an
    element of its result, so a reduction to fewer than `min-units` elements leaves threads idle. It is split into a
    reduction over its inner dimensions, whose results are the units, and one over those results. The order of the sums
    depends on the shape alone, not on the number of threads. Types whose sums would be rounded (f16, bf16) are not
    split, nor are reductions along a single dimension, unless `split-dimensions` allows splitting a dimension of known
    size by a suitable divisor. For accelerators with kernels of their own, which compute each result in a block, the
    pipeline sets that option and asks for many more units.

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
    Contract: reassociates, as another kernel may round sums of products differently. Stands after all passes that
    change single ops and before form-clusters, so that recomputed ops join the kernels that read them.

    A training step keeps values of the forward ops until their gradients read them. If a value is an elementwise
    function of others that are kept as well (the normalized input of a batch norm, a relu and its mask, all from one
    convolution), keeping it costs memory, a write and a read. A minimum cut decides between keeping and recomputing for
    all values at once. Keeping a value costs a read of its bytes, and a write unless a kernel writes it anyway.
    Recomputing costs the op's flops and requires its operands; if a library kernel reads the result, also a write and a
    read of its bytes. A value that is compared for equality behind the turning point is always kept, as another kernel
    may round it differently. The turning point is where most long-lived values are alive, so training steps exported by
    other frameworks are handled too. A program that keeps little, or would save little, is not changed; nor is one for
    a machine with accelerators, where fit-memory manages memory.

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
    Contract: reassociates. Walks the edges of the graph in program order and joins producer and consumer if a provider
    runs both as one kernel in no more time than apart. Edges between groups that have grown are tried again, in three
    walks at most. A library's root (a contraction, for example) takes the elementwise ops after it as a generated
    epilogue. Clusters stay convex: no path leaves one and comes back. An op with several users is not computed twice,
    except cheap ones whose result is much larger than their operands (a broadcast, an iota). Views and constants stay
    outside of clusters, but constants of one value become immediates of the kernel. Also outside are rows of an
    argument, which are a view of its bytes; other rows that fused with no reader; and joins of rows that can be
    computed in place. The time is linear in the graph: path searches and clusters have bounded size. Operands and
    results of a cluster may take half of the memory of the accelerator that it may be placed on, or as much as its
    larger part alone. Finally, small next values of states (256 KiB each) without other readers are joined into
    clusters of up to 96 operands, though they exchange no values, if the provider permits it. An op for which no
    provider bids is an error at its line.

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
    Contract: exact. Stands between form-clusters and build-schedule. Kernels with equal bodies and attributes are
    merged, whatever their locations; each launch keeps its location. Names list the ops: `@matmul_add_relu_0`.

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
    Contract: exact. Stands after outline-kernels, which leaves one launch per cluster and merges equal kernels, and
    before insert-transfers. Annotated launches and ops with bodies stay on their devices. Ops with effects stay on the
    host. If accelerators have kernels of their own, a launch without such a kernel stays on the host too, and so does
    an op with a body that contains one. All others are placed by earliest finish, in descending order of the work that
    depends on them: the finish counts when the device is free, the copies of operands that are not there yet, and the
    copy of results that the program returns on the host. Values of parameters alone are copied ahead of the step. A
    full device takes no more launches. As this is greedy, further candidates are all launches on one device, on some of
    the devices, random variations, and, for up to 32 launches, moves of single launches. For up to 2000 launches, the
    best candidate is selected by running the later passes on a copy (PredictStep.h): with its transfers and evictions,
    and, for the best two and up to 500 launches, row blocks. The decision for a launch lists its predicted finish on
    each device.

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
    Contract: exact. Stands between place-clusters and build-schedule. A value that is read on another device than the
    one that made it is copied there once, for all readers there; by way of the host if the machine has no direct route.
    Constants lie on the host. Arguments lie, and results go, where `tressel.home` says, by default the host; a result
    with the home "computed" stays where it is computed. Views of the value become views of the copy. Constants in
    bodies on an accelerator become invariants.

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
    Contract: exact. Stands after insert-transfers. A copy engine moves pinned memory at the full rate of the links, but
    other memory, which the driver sends in small pieces, much more slowly. If a copy on the host to or from pinned
    memory and the transfer together are faster by the machine model, the transfer is a candidate for staging. Staged
    are all candidates, those to accelerators, those from accelerators, or none, whichever gives the shortest step. All
    readers share one copy on the host, and it is later cut into row blocks together with the transfer.

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
    Contract: reassociates (the kernel of a row block may sum in another order). Stands between insert-transfers and
    fit-memory. If a transfer waits for a whole launch, or a launch for a whole transfer, the first and the last copy of
    a step overlap with nothing. Such a launch on the critical path is cut along the leading dimension of its results,
    if by the ops' loop forms each row depends on the same row of some operands and on others as a whole. It is cut into
    2 to 16 row blocks, whichever gives the shortest step by the machine model, and only if one of these does. All such
    launches at once are tried first, then with the launches that are connected to them by rows, then all connected
    launches, so that the blocks of a pipeline move from device to device independently. Each block is a launch of its
    own kernel, for which the provider of the whole kernel bids, and is copied on its own. Blocks share the bytes of the
    whole: `slice` along the first dimension is a view, and `concat` has its operands computed in place.

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
    Contract: reassociates. Stands after fit-memory, when every launch has its device, and before build-schedule. For
    accelerators with an architecture of their own, clusters are formed by the costs of that architecture's kernels. A
    launch that was placed on the host all the same, or belongs to prepare, gets a kernel from the host's providers: the
    root's with an epilogue, if its provider takes one, or generated code for all ops. Kernels of accelerators are
    marked `tressel.aligned`: build-schedule copies slices that do not begin at a multiple of 64 bytes for them. Without
    such accelerators the pass does nothing.

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
    Contract: exact. Stands after insert-transfers and split-producers, so that it sees every copy, and before
    build-schedule, which keeps the order settled here. The memory that a program needs is determined by running
    plan-memory on a copy.

    If a step, or prepare, needs more memory than a device has, values are evicted, each at most once between two of its
    uses (Residency.h); all future uses are known. A value with a copy on the host is dropped; another is spilled, early
    enough to overlap with other work. Before its next use it is prefetched, as early as helps and there is room, or
    rematerialized if its op has no effects. Parameters are resident as long as that is best, else streamed in each
    call; those that the device computes from other parameters are then kept on the host. Several orders of ops, shares
    of resident parameters and eviction orders are compared by predicted time. The best is taken, with a decision for
    each value, and settles the order.

    An op whose operands, results and bodies do not fit even alone is moved to the host if the program has no
    annotations; else it is an error that names its bytes and the largest values beside it.

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
    Contract: exact. For programs on the host alone, with a memory budget for their intermediate values. Stands after
    fit-memory, the same for accelerators, and before build-schedule, which keeps the order settled here.

    A training step keeps values of the forward pass for the backward pass. If these exceed the budget, values are
    dropped and rematerialized where they are needed; all future uses are known (Residency.h). Eviction order: most
    bytes and latest next use per second of rematerialization, that of dropped operands included. Random numbers are
    functions of their seeds, so a second run gives the same.

    The set of plans does not depend on the budget: two orders of the ops, three eviction rules, and limits in steps of
    a twentieth of the program's peak. plan-memory, on copies, tells what each plan takes in the end; of those within
    the budget the fastest by the model is taken. So a smaller budget never gives a plan that takes more memory. If no
    plan is within the budget, an error names the least that any takes. Symbolic sizes count as typical ones.

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
    operand's bytes, launches become commands. Of the ready launches, the one that leaves the fewest live bytes goes
    first; ties are broken by program order. Ops on parameters and constants alone move to `prepare`, unless their
    results are much larger than their operands. A result is computed in the output's bytes; it is copied if it is an
    input, a constant or a state, or is returned twice.

    A program on several devices gets a stream for each engine of a device, an arena for each memory, and an arena of
    pinned memory for values that the host exchanges with accelerators. Commands are ordered by predicted begin, by list
    scheduling: each engine takes the ready command of highest priority that fits into memory. Several priorities are
    tried, and the shortest plan is kept (ListSchedule.h). Micro-batches keep the order of a pipeline (PipelineOrder.h).
    The attribute `sched.planned` holds the predicted times, in picoseconds, for plan-memory.

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
    Contract: exact. Stands after the order is fixed, and before insert-waits, since reuse of bytes creates
    write-after-read dependences. Offsets are multiples of 64. A buffer lives from its first writer to its last reader
    in issue order. The result of a kernel that reads an operand point by point takes the operand's bytes if that is the
    operand's last use.
    With predicted times (build-schedule), a buffer lives until its last access is predicted to end, so that no command
    waits for bytes while others are free. If that takes more than the device has, a buffer lives until its last access
    is issued. If that is still too much, a result may also take the bytes of an operand that is still being copied. If
    even that is too much, also on the host, it is an error with the bytes, the lines and the largest buffers. `peak` is
    what the plan needs; `at_least` is the largest sum of bytes live at one command, a lower bound for any plan in this
    order.

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
    (data, war). Waits implied by others are omitted: removing any of the rest makes the schedule invalid. Existing
    waits are replaced.

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
    Contract: exact. Stands after insert-waits, as waits are the edges of graphs, and before verify-schedule. Commands
    of an accelerator with kernels of its own (launches, copies, fills, and loops that are unrolled into these) become
    nodes of as few device graphs as the host's work between them permits (tressel/runtime/DeviceGraphs.h). Each gets
    the number of its graph as an attribute. Nothing else changes: without graphs the same commands are issued one by
    one.

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
    Contract: exact; changes nothing. Stands last, as it needs planned memory and waits. Exports the flat schedule and
    runs the runtime's verifier, which proves that conflicting accesses are ordered, that nothing is read before it is
    written, and that every output is complete. Each violation is an error at its command.

    Before and after: the same.
  }];
}

#endif
