"""The programs of programs.py in PyTorch on a card: eager and, for those that it fuses, compiled. One JSON object a line; times are medians by the
card's clock, in microseconds. Of steps of training the losses of ten, and what a caller waits for one.

peers.py [--compile]
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from programs import PROGRAMS, STEPS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def chain(a, b):
    for _ in range(20):
        a = a @ b
    return a


def measure(run, inputs):
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


def measure_steps():
    from training import steps_of_torch
    torch.set_default_device("cuda")
    for row in STEPS:
        try:
            step = steps_of_torch(row)()
            line, times = {"program": row, "losses": [float(step()) for _ in range(10)]}, []
            start = time.time()
            while len(times) < 5 or (len(times) < 200 and time.time() - start < 1):
                begin = time.perf_counter()
                step()
                torch.cuda.synchronize()
                times.append(1e6 * (time.perf_counter() - begin))
            print(json.dumps(line | {"eager_us": statistics.median(times)}))
        except RuntimeError as problem:
            print(json.dumps({"program": row, "failed": str(problem).splitlines()[0][:200]}))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=150, help="no program is compiled after these")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    start = time.time()
    print(json.dumps({"torch": torch.__version__, "card": torch.cuda.get_device_name()}))
    for name, program in PROGRAMS.items():
        inputs = [torch.rand(shape, device="cuda", dtype=torch.float32).mul_(2).sub_(1).to(TYPES[program["dtype"]]) for shape in program["shapes"]]
        names = "abc"[:len(inputs)]
        run = eval(f"lambda {', '.join(names)}: {program['torch']}", {"torch": torch, "F": F, "chain": chain})
        line = {"program": name, "eager_us": measure(run, inputs)}
        if args.compile and name.split(".")[0] in ("elementwise", "softmax", "layer_norm") and time.time() - start < args.seconds:
            try:
                line["compiled_us"] = measure(torch.compile(run, dynamic=False), inputs)
            except Exception as problem:  # its compiler may be missing a part there
                line["compile_failed"] = str(problem).splitlines()[0][:200]
        print(json.dumps(line))
        sys.stdout.flush()
        del inputs
    measure_steps()


if __name__ == "__main__":
    main()
