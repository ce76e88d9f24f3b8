#!/usr/bin/env python3
"""Arms of the rows that judge predictions and plans, with the command line alone: see rows.py and run.py.

cpu.prediction-error: `tressel calibrate` measures this machine; then, for twenty programs that it did not measure, what
`tressel explain` predicts on that machine against the clock. A sample is the median of |predicted - clock| / clock.

cpu.prediction-error.real: the same of real models, drawn by the commit; a sample is that of one model, before or after `tressel calibrate`.

sim.optimality.unannotated: ten programs over two or four simulated accelerators; a sample is the geometric mean of the planned step over
a bound that no plan makes (Bounds.h).
"""
import functools
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from protocol import serve


def tensor(*sizes, type="f32"):
    return f"tensor<{'x'.join(map(str, sizes))}x{type}>"


class Graph:
    """A program of the graph dialect, op by op."""

    def __init__(self):
        self.inputs, self.lines = [], []

    def input(self, *sizes, kind="name"):
        self.inputs.append((tensor(*sizes), kind))
        return f"%x{len(self.inputs) - 1}", tensor(*sizes)

    def weight(self, *sizes):
        return self.input(*sizes, kind="state")

    def op(self, name, operands, result, attributes=""):
        value = f"%v{len(self.lines)}"
        names, types = ", ".join(v for v, _ in operands), ", ".join(t for _, t in operands)
        self.lines.append(f"  {value} = tressel.{name} {names}{attributes} : ({types}) -> {result}")
        return value, result

    def same(self, name, *operands):
        return self.op(name, operands, operands[0][1])

    def text(self, *outputs):
        arguments = ", ".join(f'%x{i}: {t} {{tressel.{kind} = "x{i}"}}' for i, (t, kind) in enumerate(self.inputs))
        results = ", ".join(f'{t} {{tressel.name = "y{i}"}}' for i, (_, t) in enumerate(outputs))
        values, types = ", ".join(v for v, _ in outputs), ", ".join(t for _, t in outputs)
        return "\n".join([f"func.func @main({arguments}) -> ({results}) {{", *self.lines, f"  return {values} : {types}", "}", ""])


def dense(g, x, rows, inner, columns, activation=None):
    y = g.op("matmul", [x, g.weight(inner, columns)], tensor(rows, columns))
    y = g.op("add", [y, g.weight(columns)], tensor(rows, columns))
    return g.same(activation, y) if activation else y


def mlp(rows, *widths, activation="relu"):
    g = Graph()
    x = g.input(rows, widths[0])
    for a, b in zip(widths, widths[1:]):
        x = dense(g, x, rows, a, b, activation)
    return g.text(x)


def elementwise(count, *names):
    g = Graph()
    x = y = g.input(count)
    for name in names:
        y = g.same(name, y, x) if name in ("add", "mul", "sub") else g.same(name, y)
    return g.text(y)


def rows_of(count, width, name):
    g = Graph()
    return g.text(g.op(name, [g.input(count, width)], tensor(count, width), " {axis = -1 : i64}"))


def convolutions(size, *channels, window=3):
    g, pad = Graph(), window // 2
    x = g.input(1, channels[0], size, size)
    for a, b in zip(channels, channels[1:]):
        x = g.op("conv", [x, g.weight(b, a, window, window)], tensor(1, b, size, size),
                 f" {{pad_high = array<i64: {pad}, {pad}>, pad_low = array<i64: {pad}, {pad}>}}")
        x = g.same("relu", x)
    return g.text(x)


HELD_OUT = {
    "mlp 8": mlp(8, 784, 256, 128, 10), "mlp 64": mlp(64, 784, 256, 128, 10), "mlp 256": mlp(256, 512, 512, 512),
    "gelu mlp": mlp(32, 384, 1536, 384, activation="gelu"), "product 1": mlp(1, 2048, 1024), "product 48": mlp(48, 640, 320),
    "product 512": mlp(512, 384, 384), "chain 4k": elementwise(1 << 12, "add", "exp"),
    "chain 100k": elementwise(100_000, "mul", "tanh", "add"), "chain 1M": elementwise(1 << 20, "mul", "add"),
    "sigmoid 300k": elementwise(300_000, "sigmoid"), "exp 3M": elementwise(3_000_000, "exp"), "relu 8M": elementwise(8_000_000, "relu"),
    "softmax 128": rows_of(1024, 128, "softmax"), "softmax 1000": rows_of(100, 1000, "softmax"),
    "log_softmax": rows_of(512, 300, "log_softmax"), "conv 28": convolutions(28, 128, 128), "conv 14": convolutions(14, 256, 256),
    "conv 1x1": convolutions(28, 256, 64, window=1), "conv stack": convolutions(32, 3, 32, 32, 64),
}


def towers(count, rows, width, depth):
    """Independent towers whose results all go back to the host."""
    g = Graph()
    x, ends = g.input(rows, width), []
    for _ in range(count):
        y = x
        for _ in range(depth):
            y = g.op("matmul", [y, g.input(width, width)], tensor(rows, width))
        ends.append(y)
    return g.text(*ends)


def tree(leaves, width):
    """A sum of products, pair by pair."""
    g = Graph()
    level = [g.op("matmul", [g.input(width, width), g.input(width, width)], tensor(width, width)) for _ in range(leaves)]
    while len(level) > 1:
        level = [g.same("add", a, b) for a, b in zip(level[::2], level[1::2])]
    return g.text(level[0])


def wide(width, branches):
    """One product, then branches of it of different depth, then their sum."""
    g = Graph()
    x = g.op("matmul", [g.input(width, width), g.input(width, width)], tensor(width, width))
    total = x
    for depth in range(1, branches + 1):
        y = x
        for _ in range(depth):
            y = g.op("matmul", [y, g.input(width, width)], tensor(width, width))
        total = g.same("add", total, y)
    return g.text(total)


WORKLOADS = {
    "two towers": ("2gpu-pcie3", towers(2, 2048, 2048, 8)), "six towers": ("2gpu-pcie3", towers(6, 2048, 2048, 4)),
    "seven towers": ("4gpu-pcie3", towers(7, 1024, 2048, 6)), "ten results": ("2gpu-pcie3", towers(10, 4000, 4000, 1)),
    "fifty results": ("2gpu-pcie3", towers(50, 2000, 2000, 1)), "tree of 8": ("2gpu-pcie3", tree(8, 2048)),
    "tree of 16": ("4gpu-pcie3", tree(16, 2048)), "branches": ("2gpu-pcie3", wide(3000, 5)), "many branches": ("4gpu-pcie3", wide(2048, 8)),
    "chain": ("2gpu-pcie3", towers(1, 4096, 4096, 12)),
}


# Models of which some are drawn for cpu.prediction-error.real: ONNX's own with weights made up, those that set-up installs, and networks.py's.
REAL = [*(f"light_{name}" for name in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")),
        "basic-pitch/nmp", "magika/model", "openwakeword/alexa_v0.1", "openwakeword/embedding_model", "openwakeword/hey_mycroft_v0.1", "openwakeword/melspectrogram",
        "openwakeword/timer_v0.1", "ppocr/ch_PP-OCRv4_det_infer", "ppocr/ch_PP-OCRv4_rec_infer", "ppocr/ch_ppocr_mobile_v2.0_cls_infer", "silero/silero_vad_v6",
        "network lenet 64", "network mobilenet2 1", "network resnet18 1", "network transformer 1", "network lstm 64", "network unet 1"]
DRAWN = 10


def drawn():
    """The models of this commit: the same for each run of it, others for the next."""
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    return sorted(random.Random(commit).sample(REAL, DRAWN))


def real_model(build, name, path):
    """Writes one of REAL with fixed sizes, and gives its inputs by name."""
    import numpy as np
    import onnx
    import deploy
    import networks
    import peers
    if name.startswith("network "):
        _, network, batch = name.split()
        model, x = networks.build(network, int(batch))
        onnx.save(model, path)
        return {"x": x}
    if name.startswith("light_"):
        deploy.with_weights(name, path)
        model, sizes = onnx.load(path), None
    else:
        model, sizes = onnx.load(build / "models" / (name + ".onnx")), peers.SIZES.get(name)
    held = {i.name for i in model.graph.initializer}
    sizes = sizes or [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input if i.name not in held]
    model, inputs = peers.fixed(model, sizes)
    onnx.save(model, path)
    return {key: np.asarray(value) for key, value in inputs.items()}


class Tool:
    def __init__(self, build, folder):
        self.build, self.tool, self.folder = build, str(build / "bin" / "tressel"), pathlib.Path(folder)
        self.bounds = build / "bin" / "schedule-bench"

    def run(self, *arguments, cache=None):
        """`cache`: a folder that is empty, where what a process leaves for the next is kept then."""
        env = {**os.environ, "TRESSEL_CACHE_DIR": str(cache)} if cache else None
        done = subprocess.run([self.tool, "-q", *map(str, arguments)], capture_output=True, text=True, env=env)
        if done.returncode:
            sys.exit(f"tressel {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def file(self, name, text):
        path = self.folder / (name.replace(" ", "-") + ".mlir")
        path.write_text(text)
        return path

    @functools.cache
    def calibrated(self):
        """The file of this machine's measured figures."""
        machine = self.folder / "here.json"
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:
            self.run("calibrate", "-o", machine, cache=cache)
        return machine

    def prediction_error(self, verbose=False):
        self.calibrated.cache_clear()
        machine, errors = self.calibrated(), []
        for name, text in HELD_OUT.items():
            model = self.file(name, text)
            predicted = json.loads(self.run("explain", model, "--device", f"sim:{machine}", "--json"))["step_seconds"]
            took = json.loads(self.run("run", model, "--no-library", "--random-inputs", 1, "--warmup", 20, "--repeat", 60, "--json"))["latency"]["median"]
            errors.append(abs(predicted - took) / took)
            if verbose:
                print(f"{name:14} predicted {predicted * 1e6:9.1f} us, took {took * 1e6:9.1f} us, off by {errors[-1]:.2f}")
        return statistics.median(errors)

    def real_error(self, arm, case, verbose=False):
        """Of one of the drawn models; the arm "uncalibrated" predicts by the figures that come with Tressel. Nothing is left by one process for the next."""
        import numpy as np
        name = drawn()[case]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = pathlib.Path(folder)
            model = folder / "model.onnx"
            inputs = []
            for i, (port, array) in enumerate(real_model(self.build, name, model).items()):
                np.save(folder / f"{i}.npy", array)
                inputs += ["--input", f"{port}={folder / f'{i}.npy'}"]
            device = "cpu" if arm == "uncalibrated" else f"sim:{self.calibrated()}"
            predicted = json.loads(self.run("explain", model, "--device", device, "--json", cache=folder / "predicting"))["step_seconds"]
            took = json.loads(self.run("run", model, "--no-library", *inputs, "--warmup", 5, "--repeat", 30, "--json", cache=folder / "running"))["latency"]["median"]
        if verbose:
            print(f"{name:40} {arm:12} predicted {predicted * 1e6:10.1f} us, took {took * 1e6:10.1f} us, off by {abs(predicted - took) / took:.2f}", flush=True)
        return abs(predicted - took) / took

    def optimality(self, verbose=False):
        ratios = []
        for name, (machine, text) in WORKLOADS.items():
            program = self.file(name, text)
            step = json.loads(self.run("explain", program, "--device", f"sim:{machine}", "--json"))["step_seconds"]
            bound = float(subprocess.run([self.bounds, "--bound", program, machine], capture_output=True, text=True, check=True).stdout)
            ratios.append(step / bound)
            if verbose:
                print(f"{name:14} step {step * 1e3:8.3f} ms, bound {bound * 1e3:8.3f} ms, {ratios[-1]:.3f}")
        return math.exp(statistics.mean(map(math.log, ratios)))


def main():
    build, row = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(build, folder)
        if row == "cpu.prediction-error.real":
            if "--verbose" in sys.argv:
                for arm in ("uncalibrated", "tressel"):
                    print(f"{statistics.median(tool.real_error(arm, case, verbose=True) for case in range(DRAWN)):.3f}")
                return
            serve(tool.real_error)
            return
        measure = {"cpu.prediction-error": tool.prediction_error, "sim.optimality.unannotated": tool.optimality}[row]
        if "--verbose" in sys.argv:
            print(f"{measure(verbose=True):.3f}")
            return
        serve(lambda arm, case: measure())


if __name__ == "__main__":
    main()
