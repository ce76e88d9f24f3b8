"""The benchmark rows: what is measured, in which unit, against whom, with which aim.

Each arm is a process (Bench.h has the protocol). What all arms of a row compute, in every case, is compared with what reference.py computes before
the first sample is taken; rows that compute no numbers say so. Then the arms are measured in turns, of a row over several cases for each of them, so a drift of
the machine's speed meets them all. The figure of several cases is the geometric mean of their medians.
"""
from dataclasses import dataclass, field, replace

from peers import PillowPeer, TextPeer
from predict import DRAWN, drawn


@dataclass
class Row:
    id: str
    unit: str
    better: str
    what: str  # size, model and batch, for the note
    # peer's name -> "tressel" (an arm of our program), "libraries" (one that calls other libraries), "numpy", or what makes a command (peers.py)
    arms: dict = field(default_factory=dict)
    aim: float | None = None
    aim_on: str = "tressel"  # "tressel": the aim bounds our figure; "ratio": the ratio against the best peer
    rounds: int = 7
    samples: int = 5
    cases: int = 1
    threads: int | None = None  # of all arms; None: as many as there are cores
    # arm's name -> environment variables of its process
    env: dict = field(default_factory=dict)
    best_of_each: bool = False  # of several cases: the ratio is against the best peer of each, not against the best over all
    program: str = "tressel-bench"  # in build/bin, or a script beside run.py, which gets the build folder too
    computes: str | None = None  # why there are no outputs to compare; None: there are
    by_arm: bool = False  # arms do not all compute the same: the reference is asked for each by its name
    reference: object = None  # given the build folder, the command of the arm that computes what is expected; None: reference.py
    tolerance: float = 1e-4  # of the largest element of the reference
    combine: str = "geometric"  # the mean of several cases; or their "median"
    pick: str = "median"  # what counts of a case's samples: "median" or "best"
    crowded: bool = False  # more threads than cores are what is measured
    suffix: str = ""  # of the id: ".t1" with one thread, ".notiles" without tile registers
    tiles: str | None = None  # "native": the aim depends on whether there are tile registers; "off": the same row where they are and may not be used
    aim_with_tiles: float | None = None
    # Where one measurement gives several rows: the figure, which is part of the id, and its aim. "worst": the least of the cases' ratios; "geomean": their mean.
    figures: dict = field(default_factory=dict)
    variants: list = field(default_factory=lambda: [{}])  # environments of all arms: the cases are measured in each
    case_names: list = field(default_factory=list)  # of one variant, for the note
    list_cases: int = 100  # so many cases at most are in the note, the worst first
    most_seconds: float = 300  # after that no round begins but the first three
    one_by_one: bool = False  # cases take much memory: the rounds of one follow those of the other
    long: bool = False  # with --long only
    warms_up: bool = True  # the first samples are not counted
    prepare: object = None  # called with the build folder and the row before its arms start
    skip: object = None  # given the machine, why the row is not measured there; or None

    def full_id(self, figure=""):
        return self.id + ("." + figure if figure else "") + self.suffix

    def figures_of(self, tiles):
        """(id, figure, aim) of each row of the report."""
        aim = self.aim_with_tiles if tiles and self.tiles == "native" else self.aim
        return [(self.full_id(name), name, of) for name, of in self.figures.items()] or [(self.full_id(), "", aim)]

    def names_of_cases(self):
        def of(variant):
            return "".join(f" {key.removeprefix('TRESSEL_').removeprefix('KERNEL_').lower()}={value}" for key, value in variant.items() if key.startswith("TRESSEL_"))
        return [name + of(variant) for variant in self.variants for name in self.case_names]


def by_threads(row):
    """With two threads, and under the id with .t1 with one."""
    return [replace(row, threads=2), replace(row, suffix=row.suffix + ".t1", threads=1)]


def by_tiles(rows):
    """Each row as the machine is; and, for machines with tile registers, under the id with .notiles without them."""
    for row in rows:
        ours = ["tressel", *(name for name, kind in row.arms.items() if kind == "tressel")]
        yield replace(row, tiles="native")
        yield replace(row, tiles="off", suffix=row.suffix + ".notiles", env={**row.env, **{name: {**row.env.get(name, {}), "TRESSEL_KERNEL_TILES": "0"} for name in ours}})


def threads(count):
    return {name: str(count) for name in ("TRESSEL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


NO_NUMBERS = {
    "compile": "what is timed makes a program and does not run it", "sizes": "the figure is a file's size",
    "sim": "virtual time: nothing is computed", "plan": "a plan is made and not run", "open": "a file is opened and not run",
    "memory": "the figure is a size", "trace": "ops are recorded and not run", "null": "the driver does nothing",
}
SCALED = (("", "ResNet-18, 32 images of 224 x 224, statistics of the whole batch,"), (".transformer", "12 layers of 768, 8 texts of 512 tokens"))
NETWORKS = ["lenet", "mlp3", "mlp-wide", "resnet18", "mobilenet2", "lstm", "transformer", "unet"]
HYBRIDIZED = Row("hybridize", "s", "lower", "compiled against imperative calls of LeNet, two MLPs, ResNet-18, MobileNet v2 (224 x 224), an LSTM (32 steps, 128 to 256), a "
                 "transformer layer (128 x 512) and a U-Net (128 x 128), f32, batch 1 and 64, one and two threads", {"imperative": "tressel"}, aim_on="ratio",
                 rounds=5, samples=1, cases=2 * len(NETWORKS), tolerance=1e-3, one_by_one=True, most_seconds=60, figures={"worst": 0.98}, variants=[threads(1), threads(2)],
                 case_names=[f"{name}.b{batch}" for name in NETWORKS for batch in (1, 64)])
STEPS = ["mlp", "lenet", "resnet18", "charlm", "lstm"]  # train.NAME.step
WIDE = [str(i) for i in range(60)]
LEVELS = [{"TRESSEL_KERNEL_LEVEL": level} for level in ("baseline", "v3")] + [{"TRESSEL_KERNEL_TILES": "0"}, {"TRESSEL_KERNEL_TILES": "1"}]


ROWS = [
    *by_tiles([HYBRIDIZED]),
    replace(HYBRIDIZED, id="hybridize.levels", rounds=3, long=True, what=HYBRIDIZED.what + ", both arms with built-in kernels of each level",
            variants=[{**count, **level} for level in LEVELS for count in (threads(1), threads(2))]),
    Row("hybridize.lenet.b64", "s", "lower", "LeNet-5, batch 64, 1x28x28 f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.1, "ratio"),
    Row("hybridize.mlp3.b1", "s", "lower", "MLP 784-256-128-10, batch 1, f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.2, "ratio", samples=20),
    Row("hybridize.mlp3.b256", "s", "lower", "MLP 784-256-128-10, batch 256, f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.0, "ratio", samples=20),
    *by_threads(Row("train.mlp.step", "s", "lower", "a step of training of an MLP 784-256-128-10, batch 256, f32: forward, cross entropy, gradient, SGD with momentum; "
                    "the losses of ten steps are compared first", {"imperative": "tressel"}, 1.2, "ratio", samples=3)),
    *by_threads(Row("train.lenet.step", "s", "lower", "the same of LeNet-5, batch 64, 1x28x28", {"imperative": "tressel"}, 1.2, "ratio", samples=3)),
    *by_threads(Row("train.resnet18.step", "s", "lower", "the same of ResNet-18 with batch normalization, batch 16, 3x64x64, 1,000 classes", {"imperative": "tressel"}, 1.2, "ratio", samples=1,
                    tolerance=1e-3)),
    *by_threads(Row("train.charlm.step", "s", "lower", "the same of a transformer over characters: 4 layers, width 128, 4 heads, batch 16, 128 tokens, vocabulary 128; Adam",
                    {"imperative": "tressel"}, 1.2, "ratio", samples=1)),
    *by_threads(Row("train.lstm.step", "s", "lower", "the same of an LSTM over characters: 256 units, batch 32, 64 tokens, vocabulary 128; Adam", {"imperative": "tressel"}, 1.2, "ratio",
                    samples=1)),
    Row("compile.train.resnet18.cold", "s", "lower", "from the first call of a step of training of ResNet-18, batch 16, 3x64x64, to its loss, less what a step takes: recorded, differentiated and "
        "compiled, with nothing kept on disk", {}, 1.5, rounds=3, samples=1, computes=NO_NUMBERS["compile"]),
    Row("deterministic.cost", "ratio", "lower", "the steps of training above with `deterministic`, over the same without: geometric mean", {}, None, rounds=3, samples=1, cases=5, one_by_one=True,
        case_names=STEPS, computes="a ratio of two of our own times"),
    Row("train.autocast", "ratio", "lower", "the same with products in bf16 (`autocast`), over f32: below 1 where the processor multiplies bf16 itself", {}, None, rounds=3, samples=1, cases=5,
        one_by_one=True, case_names=STEPS, computes="a ratio of two of our own times"),
    *(Row(f"train.{name}.accuracy", "share", "higher", f"test images of Fashion-MNIST that {what} tells the kind of after its last of {epochs} epochs, SGD with momentum, a cosine{chosen}: median of three seeds "
          "(train_images)", {}, aim, rounds=3, samples=1, long=True, warms_up=False, crowded=True, most_seconds=7200,
          program="accuracy.py", combine="median", computes="the accuracy is what is computed")
      for name, what, epochs, aim, chosen in (("mlp", "a perceptron 784-256-128-10", 10, None, ""), ("resnet", "a ResNet of 175,000 parameters", 5, 0.925, ""),
                                              ("lenet", "LeNet-5", 10, 0.90, " whose peak was chosen on 10,000 images kept from the training set"))),
    Row("train.finetune.gain", "share", "higher", "accuracy on the two kinds of Fashion-MNIST that are hardest to tell apart, learned from 500 images by LeNet-5 that knows the other eight, less that of the same "
        "network from scratch: median of five seeds (finetune)", {}, 0.0, rounds=5, samples=1, long=True, warms_up=False, crowded=True, most_seconds=7200, program="accuracy.py",
        combine="median", computes="the accuracy is what is computed"),
    Row("train.charlm.bits", "bits", "lower", "bits per held-out character of Debian's fortunes after 1,000 steps of 32 windows of 128 characters: a transformer of 4 layers, width 128, AdamW, a cosine "
        "(train_text); the same network in JAX from other first values, with as many windows in another order", {"jax": TextPeer(1000)}, 0.99, "ratio", rounds=1, samples=1, long=True,
        warms_up=False, crowded=True, most_seconds=7200, program="accuracy.py", computes="the bits are what is computed"),
    Row("loader.rate", "s", "lower", "JPEG files read, cropped, resized, flipped, changed in colour, normalized and batched by two workers, per image: 2,000 of Fashion-MNIST to "
        "28x28, 64 parts of photos of 500x375 to 3x224x224; Pillow and NumPy in two threads or processes", {"pillow.threads": PillowPeer("threads"),
        "pillow.processes": PillowPeer("processes")}, 1.0, "ratio", rounds=5, samples=1, cases=2, case_names=["clothes", "photos"], prepare=PillowPeer.prepare,
        computes="what is drawn at random differs; a unit test compares with Pillow"),
    Row("memory.train.resnet18.budget", "ratio", "lower", "a step of training of ResNet-18, batch 8, 3x224x224, SGD with momentum, with 60% of the memory that its intermediate values "
        "take without a budget, over the same step without one; tests compare the bits", {}, 1.25, rounds=3, samples=3,
        computes="a ratio of two of our own times"),
    Row("dispatch.op", "ns", "lower", "y = x + 1 on [1, 2] f32, called imperatively 10,000 times, per call; NumPy from Python (libtorch is not installed)",
        {"numpy": "numpy"}, 100, samples=20),
    Row("dispatch.sync", "ratio", "lower", "the same with a wait after each call, over the same without; both run the op in the caller", {}, 1.1,
        samples=3),
    Row("dispatch.sync.large", "ratio", "lower", "y = x + 1 on 262144 elements f32, called imperatively with a wait after each call, over the same op of a package, which runs in "
        "the caller: what handing over to a lane and waiting for it costs", {}, 1.2, samples=2),
    Row("eager.ops", "s", "lower", "14 ops, called imperatively with a wait after each, on 16x64, 64x1000 and 1000x1024 f32: geometric mean",
        {"numpy": "numpy"}, 0.67, "ratio", samples=1, cases=42, threads=1, tolerance=1e-5),
    *by_threads(Row("fusion.gelu.memcpy-share", "share of memcpy's speed", "higher",
                    "gelu(x*w+b), x 8192x4096 f32; the copy moves as many bytes between the same pages, with as many threads, by memcpy or past the caches, whichever is faster",
                    {}, 0.95, samples=2)),
    *(row
      for name, what in (("axpy", "2.5 * x + y, f32"), ("silu-gate", "silu(x) * y, f32"),
                         ("dequantize", "(x - zero) * scale, i8 to f32"))
      for row in by_threads(Row(f"fusion.{name}.memcpy-share", "share of memcpy's speed", "higher",
                                what + ", 1024 columns, 64 to 32768 rows: geometric mean; the copy moves as many bytes between the same pages, with as many threads from 1 MiB on, by memcpy or past the caches",
                                {}, 0.95, samples=1, cases=4))),
    *by_threads(Row("row.softmax", "s", "lower", "softmax along rows of 4 shapes, f32: geometric mean", {"onednn": "libraries"},
                    1.1, "ratio", samples=1, cases=4)),
    *by_threads(Row("row.layernorm", "s", "lower", "layer norm along rows of 4 shapes, f32: geometric mean", {"onednn": "libraries"},
                    1.1, "ratio", samples=1, cases=4)),
    Row("call.tiny", "ns", "lower", "compiled MLP 32-64-16, batch 1, one call through the C++ API", {}, 250),
    Row("state.call", "ns", "lower", "one call of a compiled function that updates one scalar Variable, x = 0.5 x + 1", {}, 300),
    Row("state.update", "share of memcpy's speed", "higher", "200 Variables of 64 KiB, v = v * a + b with a and b as inputs, updated by one compiled call that is waited for; "
        "the copy moves as many bytes within as many pages, with as many threads, by memcpy or past the caches", {}, 0.9, samples=2),
    Row("call.threads16", "us", "lower", "one generated kernel of 64 elements, a call through a context over a call of the "
        "kernel, processor time of one of 16 threads with a context each", {"direct": "tressel"}, 3, samples=3, program="deploy.py",
        crowded=True),
    Row("call.scaling", "ratio", "higher", "the same kernel: processor time of a call through a context with one thread, over that with a thread on each core", {}, 0.9, samples=3,
        program="deploy.py"),
    Row("start.open", "s", "lower", "Package::open of ResNet-50 (ONNX's light_resnet50, 100 MB), no weight read", {}, 0.005,
        samples=20, program="deploy.py", computes=NO_NUMBERS["open"]),
    Row("start.package", "s", "lower", "LeNet-5, batch 1: from the start of docs/examples/deploy/predict.c to its first output",
        {}, 0.02, samples=10, program="deploy.py"),
    Row("memory.resnet50.bound", "ratio", "lower", "ResNet-50, batch 1: the arenas of a context over the most bytes that are live at once, found from "
        "the accesses of its commands", {}, 1.02, rounds=1, samples=1, program="deploy.py", computes=NO_NUMBERS["memory"]),
    Row("memory.train.resnet18.bound", "ratio", "lower", "the same of a step of training of ResNet-18, batch 16, 3x64x64, SGD with momentum", {}, 1.02, rounds=1, samples=1,
        program="deploy.py", computes=NO_NUMBERS["memory"]),
    Row("size.runtime.core", "bytes", "lower", "libtressel_runtime.so stripped: opens and runs packages", {}, 320 << 10,
        rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("size.runtime", "bytes", "lower", "libtressel_runtime.so and our own CPU kernels, libtressel_kernels.so, stripped", {},
        3 << 19, rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("size.devices", "bytes", "lower", "libtressel_devices.so stripped: runs packages over several devices; opened when one asks for it", {}, 272 << 10,
        rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("size.cuda", "bytes", "lower", "libtressel_cuda.so stripped: NVIDIA's GPUs, graphs, calls of cuBLASLt, cuDNN and NCCL; opened when a program asks for them", {}, 360 << 10,
        rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("size.communicators", "bytes", "lower", "libtressel_communicators.so stripped: collectives between ranks; opened when a communicator is made", {}, 96 << 10,
        rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("size.states", "bytes", "lower", "libtressel_states.so stripped: files of a package's states; opened when one is saved or loaded", {}, 256 << 10,
        rounds=1, samples=1, program="sizes.py", computes=NO_NUMBERS["sizes"]),
    Row("lines.ir-passes-runtime", "lines", "lower", "what ./dev lines counts in runtime, ir and passes", {}, 42_900, rounds=1, samples=1, program="sizes.py",
        computes=NO_NUMBERS["sizes"]),
    Row("async.large", "ratio", "lower", "1000 times y = x + 1, 524288 elements f32, waiting once, over t1 + n max(t1, t2) + t3: frontend, work and answer "
        "measured each by itself; sync waits after each", {"sync": "tressel"}, 1.1, samples=1),
    Row("loop.compiled.speedup", "s", "lower", "10,000 steps of x = x * a + b, 16 elements f32, as one program that carries x",
        {"imperative": "tressel", "numpy": "numpy"}, 5, "ratio", samples=3),
    Row("loop.imperative", "s", "lower", "the same, an op after the other", {"numpy": "numpy"}, 1 / 1.5, "ratio", samples=3),
    Row("async.matmul10", "s", "lower", "ten products of 1000x1000, f32, until all are there", {"numpy": "numpy"}, 1, "ratio", samples=2),
    Row("async.matmul10.return", "share", "lower", "the same: the time until the calls have returned over the time until all are there", {}, 0.01,
        samples=2),
    Row("branches.two-lanes", "s", "lower", "2 and 4 chains side by side of 16 steps, sqrt(4 x) - 1 on 4096 to 1048576 elements, products of 32x32 to 256x256, f32, a "
        "grid of 20: geometric mean; one-lane splits ops over the pool, one-thread does not; the ratio is against the better of the two of each",
        {"one-lane": "tressel", "one-thread": "tressel"}, 1.3, "ratio", samples=1, cases=20, best_of_each=True,
        env={"tressel": {"TRESSEL_LANES": "2"}, "one-lane": {"TRESSEL_LANES": "1"},
             "one-thread": {"TRESSEL_LANES": "1", "TRESSEL_NUM_THREADS": "1"}}),
    Row("memory.queue.10m", "bytes", "lower", "10 million times y = y + 1, 64 KiB each, queued behind a product: the most by which resident memory grows", {},
        200 << 20, rounds=1, samples=1),
    Row("trace.op", "ns", "lower", "one op recorded into the IR with its location", {}, 1000, computes=NO_NUMBERS["trace"]),
    Row("compile.add1.cold", "s", "lower", "x + 1 on f32[2, 2], traced and compiled with nothing cached", {}, 0.02, samples=3, computes=NO_NUMBERS["compile"]),
    Row("compile.lenet.cold", "s", "lower", "LeNet-5, batch 64, traced and compiled with nothing cached", {}, samples=1, computes=NO_NUMBERS["compile"]),
    Row("compile.resnet50.cold", "s", "lower", "ResNet-50 from ONNX with its 100 MB of weights, the whole process `tressel compile --no-cache`",
        {}, 3, samples=1, program="deploy.py", computes=NO_NUMBERS["compile"]),
    Row("compile.resnet50.warm", "s", "lower", "ResNet-50 from ONNX with its 100 MB of weights, the whole process `tressel compile` with its "
        "kernels on disk", {}, 0.1, samples=3, program="deploy.py", computes=NO_NUMBERS["compile"]),
    Row("compile.linear", "ratio", "lower", "1000 residual layers of width 32 over 500, traced and compiled", {}, 2.2, samples=1, computes=NO_NUMBERS["compile"]),
    *by_tiles(by_threads(Row("row.attention", "s", "lower", "attention of 12 heads of 64, f32, 128, 256 and 512 tokens: geometric mean",
                    {"onednn": "libraries"}, 1.15, "ratio", samples=1, cases=3, aim_with_tiles=1.15))),
    *by_tiles(by_threads(Row("gemm.geomean", "s", "lower", "40 products of f32, M 1 to 256, weights packed ahead: geometric mean",
                             {"best": "libraries"}, 1.1, "ratio", samples=1, cases=40, aim_with_tiles=1.1))),
    *by_tiles(by_threads(Row("conv.geomean", "s", "lower", "23 convolutions of ResNet-50, one image with its channels last, f32: geometric mean; oneDNN in its own layouts",
                             {"onednn": "libraries"}, 1.0, "ratio", samples=1, cases=23, aim_with_tiles=1.1))),
    *by_tiles(by_threads(Row("conv.wide", "s", "lower", "60 convolutions of other models (Convolutions.cpp lists them): depthwise, grouped, narrow, strided, of few and of wide "
                             "pixels, one image with its channels last, f32; oneDNN in its own layouts", {"onednn": "libraries"}, None, "ratio", samples=1,
                             cases=60, figures={"geomean": 1.05, "worst": 0.85}, case_names=WIDE, list_cases=12))),
    Row("subnormal.weights", "ratio", "lower", "a 1x1 convolution of 10x10 pixels and 96 channels, a third of its weights subnormal, over the same with normal ones there", {}, 1.05,
        samples=2),
    Row("gemm.bf16", "s", "lower", "the 40 products of gemm.geomean, operands and result of bf16; f32 is our own", {"f32": "tressel", "onednn": "libraries"},
        by_arm=True, tolerance=2e-2, rounds=3, samples=1, cases=40, threads=1),
    Row("gemm.f16", "s", "lower", "the same of f16, for which this release of oneDNN has no kernels here", {"f32": "tressel"}, by_arm=True, tolerance=5e-3, rounds=3, samples=1, cases=40,
        threads=1),
    Row("conv.bf16", "s", "lower", "the 23 convolutions of conv.geomean, image, weights and result of bf16; f32 is our own",
        {"f32": "tressel", "onednn": "libraries"}, by_arm=True, tolerance=2e-2, rounds=3, samples=1, cases=23, threads=1),
    *by_threads(Row("conv.winograd", "s", "lower", "those of them with 3x3 windows and no stride, f32, by Winograd's method, which is an option; direct is our own",
                    {"direct": "tressel", "onednn": "libraries"}, tolerance=1e-3, samples=1, cases=4)),
    *(Row(name, "ns", "lower", "stand-in driver, in its null mode: " + what, {}, aim, rounds=3, samples=15, program="standin-bench", computes=NO_NUMBERS["null"])
      for name, what, aim in (("gpu.issue", "host time of a launch of a kernel with three operands, of 1,000 in one stream", 400),
                              ("gpu.graph.issue", "host time of a launch of a recorded group of 100 kernels, a CUDA graph", 3000),
                              ("gpu.call.host", "until a call of a program of three kernels returns, operands in the card's memory", 5000))),
    Row("sim.two-devices", "ratio", "lower", "virtual time of 50 products of 4000x4000 on each of two devices over those on one; 2gpu-pcie3",
        {}, 1.005, rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.two-devices.copy-back", "ratio", "lower", "the same with all results going back to pinned host memory, over a bound that no plan makes (Bounds.h)", {}, 1.02,
        rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.overlap.copy-back", "share", "higher", "50 products of 4000x4000 and copies of all results to pinned host memory: (T_c + T_m - T) / "
        "min(T_c, T_m), the executor's virtual time; 2gpu-pcie3, and a machine of the figures published for this experiment: geometric mean", {}, 0.99,
        rounds=1, samples=1, cases=2, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.prediction-error", "share", "lower", "the plan's own cost, as the scheduler prices it, against the executor's log, ten programs over two to eight devices: the worst",
        {}, 0.001, rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.optimality", "ratio", "lower", "the same programs, the executor's virtual time over a bound that no plan makes (Bounds.h): geometric mean",
        {}, 1.1, rounds=1, samples=1, cases=10, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.optimality.small", "ratio", "lower", "1,000 random programs of up to 10 launches, placed, and 300 of up to 7 that are not, over a host and two accelerators: the "
        "plan's time over the least of all orders, and of all placements where they are free, found by search: geometric mean", {},
        rounds=1, samples=1, cases=2, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.perturbed", "ratio", "lower", "1,000 truths, a hundred for each of the programs of sim.optimality, in which every kernel and every link takes up to 20% more or less than the plan "
        "was made with: the executor's virtual time of our plan over that of the plan compiled with the truth, 95th percentile",
        {}, 1.1, rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.cholesky", "ratio", "lower", "L of a matrix of 16 x 16 tiles of 2048 x 2048, from pinned host memory and back, tiles placed block-cyclically by annotation: the "
        "executor's virtual time over a bound that no plan makes (Bounds.h); over the same bound dmda, which places tasks while they run, and our plan without annotations; 4gpu-pcie3",
        {"dmda": "tressel", "unannotated": "tressel"}, 1.1, rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    *(Row(f"sim.dp.efficiency.{n}{model}", "ratio", "higher", f"virtual time of a step of training on one accelerator over that on {n} with {n} times the batch, weights and momentum on each, "
          f"{what} an accelerator; dgx-h100", {}, 0.95, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"])
      for n in (2, 4, 8) for model, what in SCALED),
    *(Row(f"sim.dp.efficiency.{n}{model}", "ratio", "higher", f"predicted time of a step of training on one rank over that of one of {n} in processes of their own, with {n} times the batch, weights and momentum on "
          f"each, {what} an accelerator; dgx-h100", {}, 0.95, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"])
      for n in (64, 1024) for model, what in SCALED),
    *(Row(f"sim.dp.efficiency.{n}{model}.10gbe", "ratio", "lower", f"predicted time of a step of training of one of {n} ranks over max(T1, T2): T1 the step of one alone, T2 what gradients and statistics take back to back, "
          f"by figures that the plan has no part in, {what} an accelerator; cluster-10gbe", {}, 1.05, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"])
      for n in (2, 4, 8, 64, 1024) for model, what in SCALED),
    Row("sim.dp.exposed", "ratio", "lower", "what a step of training takes beyond its computation, gradients exchanged in buckets beside the backward pass, over the same with one exchange behind it; 12 layers of 768, 8 texts of "
        "512 tokens an accelerator, 8 ranks; dgx-h100", {}, None, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"]),
    Row("cpu.dp.overlap", "share", "higher", "of the time in which a member exchanges, or computes, whichever is shorter, the share in which it does both: achieved by the clock in a data-parallel step of the perceptron of 784-1024-10, "
        "4,096 images, weights and momentum on each of two members that have a core of this machine each (cpu:2); copies take the cores that compute", {}, None, rounds=3, samples=1, program="parallel-bench", computes="how much is side by side is what is measured; test_parallel compares what such steps compute"),
    *(Row(name, "schedules", better, what + ", of small schedules with mistakes that seeds choose, judged by all interleavings of their commands over bytes (InterleavingJudge.h), in code that shares nothing with the verifier", {}, aim,
          rounds=1, samples=1, program="adversarial-schedules", computes=NO_NUMBERS["plan"])
      for name, better, what, aim in (("mutation.adversarial", "higher", "judged", 10000), ("verify.unsafe-accepted", "lower", "unsafe and accepted by the verifier", 0),
                                      ("verify.safe-refused", "lower", "safe and refused by the verifier", 0))),
    Row("sim.tp.overlap", "share", "higher", "(T_c + T_m - T) / min(T_c, T_m) of a step of training of one of 4 ranks that share each layer, products cut by columns, then by rows; 12 layers of 768, 8 texts of 512 tokens in all; dgx-h100", {},
        0.9, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"]),
    Row("sim.optimality.mlp-2gpu", "ratio", "lower", "virtual time of a step of training of the perceptron of 784-1024-10 on two accelerators, weights on both, 65,536 images in four micro-batches on each, over what no plan beats: its products "
        "at the rate that the best kernels reach, or its images over both links; 2gpu-pcie3", {}, 1.05, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"]),
    *(Row(f"sim.pipeline.{order}", "ratio", "lower", "virtual time of a step of training on four accelerators in a row over what the textbook says of the order, by what one accelerator takes for a micro-batch; "
          f"16 layers of 768, {stages}, 16 micro-batches of 8 texts of 512 tokens; dgx-h100", {}, 1.02, rounds=1, samples=1, program="parallel-bench", computes=NO_NUMBERS["sim"])
      for order, stages in (("gpipe", "4 stages"), ("1f1b", "4 stages"), ("interleaved", "8 stages"), ("zero-bubble", "4 stages"))),
    Row("compile.dp.1024-over-8", "ratio", "lower", "time to record, compile, prove and predict the program of one of 1,024 ranks over that of one of 8, the same transformer", {}, 1.1, rounds=5, samples=1,
        program="parallel-bench", computes=NO_NUMBERS["compile"]),
    Row("sim.memory-70", "ratio", "lower", "virtual time with 70% of the memory that the step takes where there is enough, over that with enough; a step of training, "
        "results read again in the opposite order, more parameters than activations, cheap ops between products, 1024 x 1024, one accelerator of 2gpu-pcie3: "
        "geometric mean", {}, 1.1, rounds=1, samples=1, cases=4, program="schedule-bench", computes=NO_NUMBERS["sim"]),
    Row("plan.100k", "s", "lower", "100,000 products in 64 branches, not annotated: placed on four devices, scheduled, planned, verified", {}, 10,
        rounds=1, samples=1, program="schedule-bench", computes=NO_NUMBERS["plan"]),
    *by_tiles(by_threads(Row("infer.resnet50.flops-share", "share of peak FLOPs", "higher", "ResNet-50, a package, one image of 224 x 224, f32; the best of the samples; the peak of "
                             "the unit that multiplies: of multiply-adds in vector registers, or of tile registers, six products of bf16 for one of f32", {}, 0.8,
                             samples=1, pick="best", aim_with_tiles=0.4))),
    Row("verify.100k", "s", "lower", "the proof of a schedule of 100,000 commands on 64 streams, 4096 slots of 8 arenas used again, waits reduced",
        {}, 0.3, program="verify-bench", computes=NO_NUMBERS["plan"]),
    Row("sim.optimality.unannotated", "ratio", "lower", "ten other programs over 2 or 4 accelerators, placed by figures alone and with memory that is not pinned: "
        "the plan's time over a bound that no plan makes (Bounds.h), geometric mean", {}, 1.1, rounds=1, samples=1, program="predict.py", computes=NO_NUMBERS["sim"]),
    Row("cpu.prediction-error", "share of the clock", "lower", "|predicted - clock| / clock after `tressel calibrate`, twenty programs that it did not "
        "measure: median", {}, 0.1, rounds=3, samples=1, program="predict.py", computes="the figure is a time"),
    Row("cpu.prediction-error.real", "share of the clock", "lower", "|predicted - clock| / clock after `tressel calibrate`, with no history, corrections or cached kernels, of "
        "real models that no fit used, drawn by the commit: median; uncalibrated is before `calibrate`", {"uncalibrated": "tressel"}, 0.15, rounds=1,
        samples=1, cases=DRAWN, case_names=drawn(), combine="median", program="predict.py", computes="the figure is a time"),
]
