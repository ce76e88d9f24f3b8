"""The NumPy arm of the benchmarks: the same networks with the same numbers, written as one would in NumPy. Protocol: Bench.h."""
import sys
import time

import numpy as np

from protocol import serve
from values import parameter, values


def mlp(batch, sizes):
    layers = [(parameter(f"{i}.weight", a, b), parameter(f"{i}.bias", b)) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]
    x = values("x", batch, sizes[0]) * 2

    def call():
        y = x
        for i, (w, b) in enumerate(layers):
            y = y @ w + b
            if i + 1 < len(layers):
                np.maximum(y, 0, out=y)
        return y

    return call


def conv(x, w, b, pad):
    """NCHW convolution as one matrix product over gathered windows."""
    if pad:
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    out, _, kh, kw = w.shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(2, 3))  # n c h w kh kw
    n, c, h, wd = windows.shape[:4]
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * wd, c * kh * kw)
    y = columns @ w.reshape(out, -1).T + b
    return y.reshape(n, h, wd, out).transpose(0, 3, 1, 2)


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def lenet(batch):
    x = values("x", batch, 1, 28, 28) * 2
    w1, b1 = parameter("0.weight", 6, 1, 5, 5), parameter("0.bias", 6)
    w2, b2 = parameter("2.weight", 16, 6, 5, 5), parameter("2.bias", 16)
    dense = [(parameter(f"{i}.weight", a, b), parameter(f"{i}.bias", b)) for i, a, b in ((5, 400, 120), (6, 120, 84), (7, 84, 10))]

    def call():
        y = pool(np.maximum(conv(x, w1, b1, 2), 0))
        y = pool(np.maximum(conv(y, w2, b2, 0), 0))
        y = y.reshape(batch, -1)
        for i, (w, b) in enumerate(dense):
            y = y @ w + b
            if i < 2:
                np.maximum(y, 0, out=y)
        return y

    return call


def recurrence():
    a = (np.arange(16, dtype=np.float32) / 32 - np.float32(0.25)).astype(np.float32)
    b = (np.arange(16) % 5 / 4 - 0.5).astype(np.float32)

    def call():
        x = np.zeros(16, np.float32)
        for _ in range(10000):
            x = x * a + b
        return x

    return call


def products():
    a, b = values("a", 1000, 1000), values("b", 1000, 1000)
    return lambda: [a @ b for _ in range(10)]


def seconds_per_call(call, at_least):
    """Of as many calls as take that long together, after some that are not counted."""
    def repeat(seconds):
        calls, start = 0, time.perf_counter()
        while True:
            call()
            calls += 1
            passed = time.perf_counter() - start
            if passed >= seconds:
                return passed / calls
    repeat(20e-3)
    return repeat(at_least)


def imperative_ops():
    """The cases of eager.ops, in the order of Dispatch.cpp."""
    cases = []
    for rows, columns in ((16, 64), (64, 1000), (1000, 1024)):
        x, y, row = values("x", rows, columns), values("y", rows, columns), values("row", columns)
        column, w = values("column", rows, 1), values("w", columns, 64)
        one = np.float32(1)
        for op in (lambda x, *_: x + one, lambda x, y, *_: x + y, lambda x, y, row, *_: x * row,
                   lambda x, y, row, column, _: x - column, lambda x, *_: np.exp(x), lambda x, y, *_: x > y, lambda x, *_: x.sum(),
                   lambda x, *_: x.sum(0), lambda x, *_: x.mean(1), lambda x, *_: x.max(1), lambda x, *_: x.argmax(1),
                   lambda x, *_: x.astype(np.float64), lambda x, *_: np.ascontiguousarray(x.T), lambda x, y, row, column, w: x @ w):
            cases.append(lambda op=op, args=(x, y, row, column, w): op(*args))
    return cases


def one_op():
    x = np.array([1, 2], np.float32)
    return lambda: x + 1


def seconds_of_ops(call, calls=10_000):
    """Nanoseconds per call."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return 1e9 / calls * (time.perf_counter() - start)


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


ROWS = {
    "loop.compiled.speedup": recurrence,
    "loop.imperative": recurrence,
    "async.matmul10": products,
    "dispatch.op": one_op,
    "hybridize.lenet.b64": lambda: lenet(64),
    "hybridize.mlp3.b1": lambda: mlp(1, [784, 256, 128, 10]),
    "hybridize.mlp3.b256": lambda: mlp(256, [784, 256, 128, 10]),
}


def main():
    row = sys.argv[1]
    calls = imperative_ops() if row == "eager.ops" else [ROWS[row]()]
    measure = {"eager.ops": lambda call: seconds_per_call(call, 5e-3), "dispatch.op": seconds_of_ops}.get(row, timed)

    def outputs(_, case):
        result = calls[case]()
        return np.concatenate([r.ravel() for r in result]) if isinstance(result, list) else result

    serve(lambda _, case: measure(calls[case]), outputs)


main()
