"""The programs of programs.py in other frameworks on a card. One JSON object a line; times are medians in microseconds, by the card's clock for programs, and what
a caller waits for of steps of training, whose losses of ten are there too, and of the chain of 20 products.

peers.py torch [--seconds S]     eager, and compiled what it fuses and the steps; after S seconds nothing more is compiled
peers.py jax                     steps of training
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

from programs import PROGRAMS, STEPS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))


def emit(line):
    print(json.dumps(line), flush=True)


def first_line(problem):
    return f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:200]}"


def waited_us(once, seconds=1):
    """What a caller waits for."""
    times, start = [], time.time()
    while len(times) < 5 or (len(times) < 200 and time.time() - start < seconds):
        begin = time.perf_counter()
        once()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def steps(framework, key, make, end, is_over=lambda: False):
    """A line for each step of training. `make(row)` begins a training, `end` waits for the card."""
    for row in STEPS:
        if is_over():
            return
        try:
            step = make(row)()
            losses = [float(step()) for _ in range(10)]
            emit({"program": row, "framework": framework, "losses": losses, key: waited_us(lambda: (step(), end()))})
        except Exception as problem:  # one that a framework cannot do leaves the others
            emit({"program": row, "framework": framework, "failed": first_line(problem)})


class Torch:
    def __init__(self):
        import torch
        import torch.nn.functional as F
        self.torch, self.F, self.start = torch, F, time.time()
        self.types = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        emit({"framework": "torch", "version": torch.__version__, "card": torch.cuda.get_device_name()})

    def chain(self, a, b):
        for _ in range(20):
            a = a @ b
        return a

    def measure(self, run, inputs):
        torch = self.torch
        for _ in range(3):
            run(*inputs)
        torch.cuda.synchronize()
        times = []
        for _ in range(20):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run(*inputs)
            end.record()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times)

    def programs(self):
        """Eager; returns those that are to be compiled."""
        torch, found = self.torch, []
        for name, program in PROGRAMS.items():
            names = "abc"[:len(program["shapes"])]
            run = eval(f"lambda {', '.join(names)}: {program['torch']}", {"torch": torch, "F": self.F, "chain": self.chain})
            emit({"program": name, "framework": "torch", "eager_us": self.measure(run, self.inputs(program))})
            if name.split(".")[0] in ("elementwise", "softmax", "layer_norm", "attention"):
                found.append((name, program, run))
        return found

    def inputs(self, program):
        return [self.torch.rand(shape, device="cuda").mul_(2).sub_(1).to(self.types[program["dtype"]]) for shape in program["shapes"]]

    def graph(self):
        """The chain as a CUDA graph, from and to memory of the host, as a call of ours is."""
        torch = self.torch
        host = [torch.rand(64, 64, device="cpu") for _ in range(2)]
        inputs = [each.cuda() for each in host]
        self.chain(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.chain(*inputs)

        def call(run):
            for to, each in zip(inputs, host):
                to.copy_(each)
            return run().cpu()

        emit({"program": "chain.20", "framework": "torch", "graph_us": waited_us(lambda: call(lambda: (graph.replay(), result)[1])),
              "waited_us": waited_us(lambda: call(lambda: self.chain(*inputs)))})

    def compile(self, found, is_over):
        torch = self.torch
        for name, program, run in found:
            if is_over():
                return
            try:
                emit({"program": name, "framework": "torch", "compiled_us": self.measure(torch.compile(run, dynamic=False), self.inputs(program))})
            except Exception as problem:  # its compiler may be missing a part there
                emit({"program": name, "framework": "torch", "compile_failed": first_line(problem)})


def torch_peer(seconds):
    from training import steps_of_torch
    peer = Torch()
    found = peer.programs()
    try:
        peer.graph()
    except Exception as problem:
        emit({"program": "chain.20", "framework": "torch", "graph_failed": first_line(problem)})
    synchronize = peer.torch.cuda.synchronize

    def is_over():
        return time.time() - peer.start > seconds

    peer.compile([each for each in found if ".bf16" not in each[0]], is_over)
    peer.torch.set_default_device("cuda")
    steps("torch", "eager_us", steps_of_torch, synchronize)
    steps("torch", "compiled_us", lambda row: steps_of_torch(row, compiled=True), synchronize, is_over)
    peer.compile([each for each in found if ".bf16" in each[0]], is_over)


def jax_peer():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    from training import steps_of_jax
    jax.config.update("jax_default_matmul_precision", "highest")  # nothing is rounded to tf32
    device = jax.devices()[0]
    if device.platform != "gpu":
        sys.exit(f"jax {jax.__version__} sees no GPU")
    emit({"framework": "jax", "version": jax.__version__, "card": device.device_kind})
    steps("jax", "jax_us", steps_of_jax, lambda: None)  # a step waits by itself


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=("torch", "jax"))
    parser.add_argument("--seconds", type=float, default=110)
    args = parser.parse_args()
    if args.framework == "jax":
        jax_peer()
    else:
        torch_peer(args.seconds)


if __name__ == "__main__":
    main()
