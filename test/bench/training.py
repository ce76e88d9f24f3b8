"""The same steps of training in NumPy, by hand and in f64: what all arms are compared with. And in JAX, a peer: training.py ROW is its arm.

Protocol: Bench.h. Threads as OMP_NUM_THREADS says."""
import os
import sys
import time

import numpy as np

from protocol import serve
from values import parameter, values

STEPS, RATE, MOMENTUM = 10, 0.01, 0.9
# By row: batch, input, and the layers with parameters: their number in the network and the shape of their weights.
CASES = {
    "train.mlp.step": (256, (784,), [(0, (784, 256)), (1, (256, 128)), (2, (128, 10))]),
    "train.lenet.step": (64, (1, 28, 28), [(0, (6, 1, 5, 5)), (2, (16, 6, 5, 5)), (5, (400, 120)), (6, (120, 84)), (7, (84, 10))]),
}


def start(row):
    """Parameters, weights and biases in turn; images; labels."""
    batch, shape, layers = CASES[row]
    parameters = []
    for number, weight in layers:
        parameters += [parameter(f"{number}.weight", *weight), parameter(f"{number}.bias", weight[0] if len(weight) == 4 else weight[1])]
    return parameters, values("x", batch, *shape) * 2, np.arange(batch) % 10


class Dense:
    def __init__(self, w, b, relu):
        self.w, self.b, self.relu = w, b, relu

    def forward(self, x):
        self.x = x.reshape(len(x), -1)
        self.shape = x.shape
        self.y = self.x @ self.w + self.b
        return np.maximum(self.y, 0) if self.relu else self.y

    def backward(self, d):
        d = d * (self.y > 0) if self.relu else d
        self.grads = [self.x.T @ d, d.sum(0)]
        return (d @ self.w.T).reshape(self.shape)


class Conv:
    def __init__(self, w, b, pad):
        self.w, self.b, self.pad = w, b, pad

    def forward(self, x):
        self.x = np.pad(x, ((0, 0), (0, 0), (self.pad,) * 2, (self.pad,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(self.x, self.w.shape[2:], (2, 3))
        self.y = np.einsum("nchwij,fcij->nfhw", windows, self.w, optimize=True) + self.b[:, None, None]
        self.windows = windows
        return np.maximum(self.y, 0)

    def backward(self, d):
        d = d * (self.y > 0)
        self.grads = [np.einsum("nchwij,nfhw->fcij", self.windows, d, optimize=True), d.sum((0, 2, 3))]
        back = np.zeros_like(self.x)
        for i in range(self.w.shape[2]):
            for j in range(self.w.shape[3]):
                back[:, :, i:i + d.shape[2], j:j + d.shape[3]] += np.einsum("nfhw,fc->nchw", d, self.w[:, :, i, j])
        return back[:, :, self.pad:back.shape[2] - self.pad, self.pad:back.shape[3] - self.pad]


class Pool:
    def forward(self, x):
        n, c, h, w = x.shape
        self.tiles = x.reshape(n, c, h // 2, 2, w // 2, 2)
        self.y = self.tiles.max((3, 5), keepdims=True)
        return self.y[:, :, :, 0, :, 0]

    def backward(self, d):
        isIt = self.tiles == self.y
        n, c, h, _, w, _ = self.tiles.shape
        spread = isIt * d[:, :, :, None, :, None] / isIt.sum((3, 5), keepdims=True)
        return spread.reshape(n, c, 2 * h, 2 * w)


def losses(row):
    """Of ten steps, in f64."""
    parameters, x, labels = start(row)
    parameters = [p.astype(np.float64) for p in parameters]
    momenta = [np.zeros_like(p) for p in parameters]
    found = []
    for _ in range(STEPS):
        layers, at = [], 0
        for i, (_, weight) in enumerate(CASES[row][2]):
            w, b = parameters[at:at + 2]
            at += 2
            layers += [Conv(w, b, 2 if i == 0 else 0), Pool()] if len(weight) == 4 else [Dense(w, b, at < len(parameters))]
        y = x.astype(np.float64)
        for layer in layers:
            y = layer.forward(y)
        shares = np.exp(y - y.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        rows = np.arange(len(labels))
        found.append(-np.log(shares[rows, labels]).mean())
        shares[rows, labels] -= 1
        d = shares / len(labels)
        for layer in reversed(layers):
            d = layer.backward(d)
        grads = [g for layer in layers if hasattr(layer, "grads") for g in layer.grads]
        for i, grad in enumerate(grads):
            momenta[i] = MOMENTUM * momenta[i] + grad
            parameters[i] = parameters[i] - RATE * momenta[i]
    return np.array(found)


def with_jax(row):
    """(a compiled step, which hands on its state; the state; the batch)."""
    count = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))  # XLA takes as many threads as there are processors
    import jax
    import jax.numpy as jnp
    parameters, x, labels = start(row)

    def loss_of(parameters, x, labels):
        at, y = 0, x
        for i, (_, weight) in enumerate(CASES[row][2]):
            w, b = parameters[at:at + 2]
            at += 2
            if len(weight) == 4:
                y = jax.lax.conv_general_dilated(y, w, (1, 1), [(2, 2)] * 2 if i == 0 else [(0, 0)] * 2) + b[:, None, None]
                y = jax.lax.reduce_window(jax.nn.relu(y), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            else:
                y = y.reshape(len(y), -1) @ w + b
                y = jax.nn.relu(y) if at < len(parameters) else y
        return -jnp.take_along_axis(jax.nn.log_softmax(y), labels[:, None], 1).mean()

    def step(state, x, labels):
        parameters, momenta = state
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, labels)
        momenta = [MOMENTUM * m + g for m, g in zip(momenta, grads)]
        return ([p - RATE * m for p, m in zip(parameters, momenta)], momenta), loss

    state = [jnp.asarray(p) for p in parameters], [jnp.zeros_like(p) for p in parameters]
    return jax.jit(step, donate_argnums=0), state, (jnp.asarray(x), jnp.asarray(labels))


def main():
    import jax
    step, state, batch = with_jax(sys.argv[1])

    def outputs(_arm, _case):
        now, found = jax.tree.map(lambda a: a + 0, state), []
        for _ in range(STEPS):
            now, loss = step(now, *batch)
            found.append(float(loss))
        return found

    kept = jax.tree.map(lambda a: a + 0, state)

    def repeat(seconds):
        nonlocal kept
        calls, begin = 0, time.perf_counter()
        while True:
            kept, loss = step(kept, *batch)
            jax.block_until_ready((kept, loss))
            calls += 1
            passed = time.perf_counter() - begin
            if passed >= seconds:
                return passed / calls

    def measure(_arm, _case):
        repeat(20e-3)
        return repeat(0.1)

    serve(measure, outputs)


if __name__ == "__main__":
    main()
