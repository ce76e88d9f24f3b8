"""The NumPy arm of the benchmarks: the same networks, written as one would in NumPy. Protocol: see rows.py."""
import json
import sys
import time

import numpy as np

rng = np.random.default_rng(1)


def weight(*shape):
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1)


def mlp(batch, sizes):
    layers = [(weight(a, b), weight(b)) for a, b in zip(sizes, sizes[1:])]
    x = weight(batch, sizes[0])

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
    x = weight(batch, 1, 28, 28)
    w1, b1, w2, b2 = weight(6, 1, 5, 5), weight(6), weight(16, 6, 5, 5), weight(16)
    dense = [(weight(a, b), weight(b)) for a, b in ((400, 120), (120, 84), (84, 10))]

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
    a, b = np.full((1000, 1000), 0.5, np.float32), np.full((1000, 1000), 2, np.float32)
    return lambda: [a @ b for _ in range(10)]


ROWS = {
    "loop.compiled.speedup": recurrence,
    "loop.imperative": recurrence,
    "async.matmul10": products,
    "hybridize.lenet.b64": lambda: lenet(64),
    "hybridize.mlp3.b1": lambda: mlp(1, [784, 256, 128, 10]),
    "hybridize.mlp3.b256": lambda: mlp(256, [784, 256, 128, 10]),
}

call = ROWS[sys.argv[1]]()
for line in sys.stdin:
    samples = []
    for _ in range(int(line.split()[1])):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    print(json.dumps(samples), flush=True)
