"""The benchmark rows: what is measured, in which unit, against whom, with which aim.

Each arm is a process that answers "ARM COUNT CASE\n" on its standard input with one line of JSON: a list of COUNT samples.
Arms of one row alternate, of a row over several cases for each of them, so a drift of the machine's speed meets them all. The
figure of several cases is the geometric mean of their medians.
"""
from dataclasses import dataclass, field, replace


@dataclass
class Row:
    id: str
    unit: str
    better: str
    what: str  # size, model and batch, for the note
    # peer's name -> "tressel" (an arm of our program), "libraries" (one that calls other libraries) or "numpy"
    arms: dict = field(default_factory=dict)
    aim: float | None = None
    aim_on: str = "tressel"  # "tressel": the aim bounds our figure; "ratio": the ratio against the best peer
    rounds: int = 7
    samples: int = 5
    cases: int = 1
    threads: int | None = None  # of all arms; None: as many as there are
    # arm's name -> environment variables of its process
    env: dict = field(default_factory=dict)
    best_of_each: bool = False  # of several cases: the ratio is against the best peer of each, not against the best over all
    program: str = "tressel-bench"  # in build/bin, or a script beside run.py, which gets the build folder too


def by_threads(row):
    """With two threads, and under the id with .t1 with one."""
    return [replace(row, threads=2), replace(row, id=row.id + ".t1", threads=1)]


ROWS = [
    Row("hybridize.lenet.b64", "s", "lower", "LeNet-5, batch 64, 1x28x28 f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.1, "ratio"),
    Row("hybridize.mlp3.b1", "s", "lower", "MLP 784-256-128-10, batch 1, f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.5, "ratio", samples=200),
    Row("hybridize.mlp3.b256", "s", "lower", "MLP 784-256-128-10, batch 256, f32, inference",
        {"imperative": "tressel", "numpy": "numpy"}, 1.0, "ratio", samples=20),
    Row("dispatch.op", "ns", "lower", "y = x + 1 on [1, 2] f32, called imperatively 10,000 times, per call; NumPy from Python (libtorch is not installed)",
        {"numpy": "numpy"}, 100, samples=20),
    Row("dispatch.sync", "ratio", "lower", "the same with a wait after each call, over the same without; both run the op in the caller", {}, 1.1,
        samples=3),
    Row("eager.ops", "s", "lower", "14 ops, called imperatively with a wait after each, on 16x64, 64x1000 and 1000x1024 f32: geometric mean",
        {"numpy": "numpy"}, 0.67, "ratio", samples=1, cases=42, threads=1),
    *by_threads(Row("fusion.gelu.memcpy-share", "share of memcpy's speed", "higher",
                    "gelu(x*w+b), x 8192x4096 f32, against memcpy of x with as many threads", {}, 0.95)),
    *(row
      for name, what in (("axpy", "2.5 * x + y, f32"), ("silu-gate", "silu(x) * y, f32"),
                         ("dequantize", "(x - zero) * scale, i8 to f32"))
      for row in by_threads(Row(f"fusion.{name}.memcpy-share", "share of memcpy's speed", "higher",
                                what + ", 1024 columns, 64 to 32768 rows: geometric mean; memcpy moves as many bytes, with as many threads from 1 MiB on",
                                {}, 0.95, samples=1, cases=4))),
    *by_threads(Row("row.softmax", "s", "lower", "softmax along rows of 4 shapes, f32: geometric mean", {"onednn": "libraries"},
                    1.1, "ratio", samples=1, cases=4)),
    *by_threads(Row("row.layernorm", "s", "lower", "layer norm along rows of 4 shapes, f32: geometric mean", {"onednn": "libraries"},
                    1.1, "ratio", samples=1, cases=4)),
    Row("call.tiny", "ns", "lower", "compiled MLP 32-64-16, batch 1, one call through the C++ API", {}, 250),
    Row("call.threads16", "us", "lower", "one generated kernel of 64 elements, a call through a context over a call of the "
        "kernel, processor time of one of 16 threads with a context each", {"direct": "tressel"}, 3, samples=3, program="deploy.py"),
    Row("start.open", "s", "lower", "Package::open of ResNet-50 (ONNX's light_resnet50, 100 MB), no weight read", {}, 0.005,
        samples=20, program="deploy.py"),
    Row("start.package", "s", "lower", "LeNet-5, batch 1: from the start of docs/examples/deploy/predict.c to its first output",
        {}, 0.02, samples=10, program="deploy.py"),
    Row("memory.resnet50.bound", "ratio", "lower", "ResNet-50, batch 1: the arenas of a context over the least that any plan for "
        "its order of commands needs", {}, 1.02, rounds=1, samples=1, program="deploy.py"),
    Row("size.runtime.core", "bytes", "lower", "libtressel_runtime.so stripped: opens and runs packages", {}, 256 << 10,
        rounds=1, samples=1, program="sizes.py"),
    Row("size.runtime", "bytes", "lower", "libtressel_runtime.so and our own CPU kernels, libtressel_kernels.so, stripped", {},
        3 << 19, rounds=1, samples=1, program="sizes.py"),
    Row("async.large", "ratio", "lower", "1000 times y = x + 1, 524288 elements f32, waiting once, over t1 + n max(t1, t2) + t3: frontend, work and answer "
        "measured each by itself; sync waits after each", {"sync": "tressel"}, 1.1, samples=1),
    Row("loop.compiled.speedup", "s", "lower", "10,000 steps of x = x * a + b, 16 elements f32, as one program that carries x",
        {"imperative": "tressel", "numpy": "numpy"}, 5, "ratio", samples=3),
    Row("loop.imperative", "s", "lower", "the same, an op after the other", {"numpy": "numpy"}, 1 / 1.5, "ratio", samples=3),
    Row("async.matmul10", "s", "lower", "ten products of 1000x1000, f32, until all are there", {"numpy": "numpy"}, 1, "ratio", samples=2),
    Row("async.matmul10.return", "share", "lower", "the same: the time until the calls have returned over the time until all are there", {}, 0.01,
        samples=2),
    Row("branches.two-lanes", "s", "lower", "4 chains side by side of 16 steps, sqrt(4 x) - 1 on 16384 to 262144 elements, products of 64x64, 96x96, "
        "128x128 and 192x192, f32: geometric mean; one-lane splits ops over the pool, one-thread does not; the ratio is against the better of the two of each",
        {"one-lane": "tressel", "one-thread": "tressel"}, 1.3, "ratio", samples=1, cases=9, best_of_each=True,
        env={"tressel": {"TRESSEL_LANES": "2"}, "one-lane": {"TRESSEL_LANES": "1"},
             "one-thread": {"TRESSEL_LANES": "1", "TRESSEL_NUM_THREADS": "1"}}),
    Row("memory.queue.10m", "bytes", "lower", "10 million times y = y + 1, 64 KiB each, queued behind a product: the most by which resident memory grows", {},
        200 << 20, rounds=1, samples=1),
    Row("trace.op", "ns", "lower", "one op recorded into the IR with its location", {}, 1000),
    Row("compile.add1.cold", "s", "lower", "x + 1 on f32[2, 2], traced and compiled with nothing cached", {}, 0.02, samples=3),
    Row("compile.lenet.cold", "s", "lower", "LeNet-5, batch 64, traced and compiled with nothing cached", {}, samples=1),
    Row("compile.resnet50.cold", "s", "lower", "ResNet-50 from ONNX with its 100 MB of weights, the whole process `tressel compile --no-cache`",
        {}, 3, samples=1, program="deploy.py"),
    Row("compile.resnet50.warm", "s", "lower", "ResNet-50 from ONNX with its 100 MB of weights, the whole process `tressel compile` with its "
        "kernels on disk", {}, 0.1, samples=3, program="deploy.py"),
    Row("compile.linear", "ratio", "lower", "1000 residual layers of width 32 over 500, traced and compiled", {}, 2.2, samples=1),
    *by_threads(Row("row.attention", "s", "lower", "attention of 12 heads of 64, f32, 128, 256 and 512 tokens: geometric mean",
                    {"onednn": "libraries"}, 1.15, "ratio", samples=1, cases=3)),
    *by_threads(Row("gemm.geomean", "s", "lower", "40 products of f32, M 1 to 256, weights packed ahead: geometric mean",
                    {"best": "libraries"}, 1.1, "ratio", samples=1, cases=40)),
    *by_threads(Row("conv.geomean", "s", "lower", "23 convolutions of ResNet-50, one image with its channels last, f32: geometric mean; oneDNN in its own layouts",
                    {"onednn": "libraries"}, 1.1, "ratio", samples=1, cases=23)),
    Row("gemm.bf16", "s", "lower", "the 40 products of gemm.geomean, operands and result of bf16; f32 is our own", {"f32": "tressel", "onednn": "libraries"},
        rounds=3, samples=1, cases=40, threads=1),
    Row("gemm.f16", "s", "lower", "the same of f16, for which this release of oneDNN has no kernels here", {"f32": "tressel"}, rounds=3, samples=1, cases=40,
        threads=1),
    Row("conv.bf16", "s", "lower", "the 23 convolutions of conv.geomean, image, weights and result of bf16; f32 is our own",
        {"f32": "tressel", "onednn": "libraries"}, rounds=3, samples=1, cases=23, threads=1),
    *by_threads(Row("conv.winograd", "s", "lower", "those of them with 3x3 windows and no stride, f32, by Winograd's method, which is an option; direct is our own",
                    {"direct": "tressel", "onednn": "libraries"}, samples=1, cases=4)),
    Row("sim.two-devices", "ratio", "lower", "virtual time of 50 products of 4000x4000 on each of two devices over those on one; 2gpu-pcie3",
        {}, 1.005, rounds=1, samples=1, program="schedule-bench"),
    Row("sim.overlap.copy-back", "share", "higher", "50 products of 4000x4000 and copies of all results to pinned host memory: (T_c + T_m - T) / "
        "min(T_c, T_m), the executor's virtual time; 2gpu-pcie3, and a machine of the figures published for this experiment: geometric mean", {}, 0.99,
        rounds=1, samples=1, cases=2, program="schedule-bench"),
    Row("sim.prediction-error", "share", "lower", "the plan's time against that of the executor's log, ten programs over two to eight devices: the worst",
        {}, 0.001, rounds=1, samples=1, program="schedule-bench"),
    Row("sim.optimality", "ratio", "lower", "the same programs, the plan's time over the larger of the longest chain and the busiest resource: geometric mean",
        {}, 1.1, rounds=1, samples=1, cases=10, program="schedule-bench"),
    Row("sim.optimality.small", "ratio", "lower", "1,000 random programs of up to 10 launches, placed, and 300 of up to 7 that are not, over a host and two accelerators: the "
        "plan's time over the least of all orders, and of all placements where they are free, found by search: geometric mean", {},
        rounds=1, samples=1, cases=2, program="schedule-bench"),
    Row("sim.perturbed", "ratio", "lower", "1,000 truths, a hundred for each of the programs of sim.optimality, in which every kernel and every link takes up to 20% more or less than the plan "
        "was made with: the executor's virtual time of our plan over that of the plan compiled with the truth, 95th percentile",
        {}, 1.1, rounds=1, samples=1, program="schedule-bench"),
    Row("sim.cholesky", "ratio", "lower", "L of a matrix of 16 x 16 tiles of 2048 x 2048, from pinned host memory and back, tiles placed block-cyclically by annotation: the "
        "executor's virtual time over the plan's longest chain or busiest resource; over the same bound dmda, which places tasks while they run, and our plan without annotations; 4gpu-pcie3",
        {"dmda": "tressel", "unannotated": "tressel"}, 1.1, rounds=1, samples=1, program="schedule-bench"),
    Row("sim.memory-70", "ratio", "lower", "virtual time with 70% of the memory that the step takes where there is enough, over that with enough; a step of training, "
        "results read again in the opposite order, more parameters than activations, cheap ops between products, 1024 x 1024, one accelerator of 2gpu-pcie3: "
        "geometric mean", {}, 1.1, rounds=1, samples=1, cases=4, program="schedule-bench"),
    Row("plan.100k", "s", "lower", "100,000 products in 64 branches, not annotated: placed on four devices, scheduled, planned, verified", {}, 10,
        rounds=1, samples=1, program="schedule-bench"),
    *by_threads(Row("infer.resnet50.flops-share", "share of peak FLOPs", "higher",
                    "ResNet-50, a package, one image of 224 x 224, f32; the peak of multiply-adds in registers", {}, 0.8, samples=1)),
    Row("verify.100k", "s", "lower", "the proof of a schedule of 100,000 commands on 64 streams, 4096 slots of 8 arenas used again, waits reduced",
        {}, 0.3, program="verify-bench"),
    Row("sim.optimality.unannotated", "ratio", "lower", "ten other programs over 2 or 4 accelerators, placed by figures alone and with memory that is not pinned: "
        "the plan's time over the same bound, geometric mean", {}, 1.1, rounds=1, samples=1, program="predict.py"),
    Row("cpu.prediction-error", "share of the clock", "lower", "|predicted - clock| / clock after `tressel calibrate`, twenty programs that it did not "
        "measure: median", {}, 0.1, rounds=3, samples=1, program="predict.py"),
]
