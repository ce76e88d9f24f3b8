"""The same steps of training in NumPy, by hand and in f64, or, for the larger networks, in JAX in f64: what all arms are compared with. And in JAX and
PyTorch, peers: training.py FRAMEWORK ROW is the arm of one.

Protocol: Bench.h. Threads as OMP_NUM_THREADS says."""
import os
import sys
import time

import numpy as np

from protocol import serve
from values import parameter, values

STEPS, RATE, MOMENTUM = 10, 0.01, 0.9
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))
# By row: batch, input, and the layers with parameters: their number in the network and the shape of their weights.
CASES = {
    "train.mlp.step": (256, (784,), [(0, (784, 256)), (1, (256, 128)), (2, (128, 10))]),
    "train.lenet.step": (64, (1, 28, 28), [(0, (6, 1, 5, 5)), (2, (16, 6, 5, 5)), (5, (400, 120)), (6, (120, 84)), (7, (84, 10))]),
}


def start_by_hand(row):
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
    parameters, x, labels = start_by_hand(row)
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


class Images:
    """A network of `CASES`, or ResNet-18, on images whose labels are 0 to 9 in turn; SGD with momentum."""

    def __init__(self, row):
        self.row = row
        if row in CASES:
            batch, shape, layers = CASES[row]
            self.parameters = {}
            for number, weight in layers:
                self.parameters[f"{number}.weight"] = parameter(f"{number}.weight", *weight)
                self.parameters[f"{number}.bias"] = parameter(f"{number}.bias", weight[0] if len(weight) == 4 else weight[1])
        else:
            batch, shape = RESNET18
            self.parameters = resnet18_parameters()
        self.batch = values("x", batch, *shape) * 2, np.arange(batch) % 10

    def loss(self, p, x, labels):
        import jax
        import jax.numpy as jnp
        y = self.scores(p, x) if self.row in CASES else resnet18(p, x)
        return -jnp.take_along_axis(jax.nn.log_softmax(y), labels[:, None], 1).mean()

    def scores(self, p, x):
        import jax
        layers, y = CASES[self.row][2], x
        for i, (number, weight) in enumerate(layers):
            w, b = p[f"{number}.weight"], p[f"{number}.bias"]
            if len(weight) == 4:
                y = jax.lax.conv_general_dilated(y, w, (1, 1), [(2, 2)] * 2 if i == 0 else [(0, 0)] * 2) + b[:, None, None]
                y = jax.lax.reduce_window(jax.nn.relu(y), -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            else:
                y = y.reshape(len(y), -1) @ w + b
                y = jax.nn.relu(y) if i + 1 < len(layers) else y
        return y

    def with_torch(self, torch):
        """(parameters, batch, scores, optimizer)."""
        f = torch.nn.functional
        p, (x, labels) = {name: torch.tensor(value) for name, value in self.parameters.items()}, (torch.tensor(each) for each in self.batch)
        if self.row not in CASES:  # the layout that PyTorch recommends for them
            p = {name: value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value for name, value in p.items()}
            x = x.contiguous(memory_format=torch.channels_last)

        def simple(x):
            layers, y = CASES[self.row][2], x
            for i, (number, weight) in enumerate(layers):
                w, b = p[f"{number}.weight"], p[f"{number}.bias"]
                if len(weight) == 4:
                    y = f.max_pool2d(f.relu(f.conv2d(y, w, b, padding=2 if i == 0 else 0)), 2)
                else:
                    y = y.flatten(1) @ w + b
                    y = f.relu(y) if i + 1 < len(layers) else y
            return y

        def residual(x):
            def conv_norm(x, path, stride):
                w = p[path + ".conv.weight"]
                y = f.conv2d(x, w, stride=stride, padding=w.shape[2] // 2)
                return f.batch_norm(y, None, None, p[path + ".norm.scale"], p[path + ".norm.bias"], training=True, eps=1e-5)

            y = f.max_pool2d(f.relu(conv_norm(x, "0", 2)), 3, 2, 1)
            for path, _, _, stride in resnet18_blocks():
                z = conv_norm(f.relu(conv_norm(y, path + ".first", stride)), path + ".second", 1)
                y = f.relu(z + (conv_norm(y, path + ".shortcut", stride) if stride > 1 else y))
            return y.mean((2, 3)) @ p["11.weight"] + p["11.bias"]

        return p, (x, labels), simple if self.row in CASES else residual, lambda values: torch.optim.SGD(values, RATE, MOMENTUM)

    def start(self, p):
        import jax
        import jax.numpy as jnp
        return jax.tree.map(jnp.zeros_like, p)

    def update(self, p, momenta, grads):
        momenta = {name: MOMENTUM * momenta[name] + grads[name] for name in p}
        return {name: p[name] - RATE * momenta[name] for name in p}, momenta


RESNET18 = 16, (3, 64, 64)


def resnet18_blocks():
    """(path, channels in, channels, stride) of each block."""
    inputs, position = 64, 2
    for channels in (64, 128, 256, 512):
        for block in range(2):
            yield str(position), inputs, channels, 2 if block == 0 and channels > 64 else 1
            inputs, position = channels, position + 1


def resnet18_parameters():
    shapes = {}

    def conv_norm(path, channels, inputs, window):
        shapes.update({path + ".conv.weight": (channels, inputs, window, window), path + ".norm.scale": (channels,), path + ".norm.bias": (channels,)})

    conv_norm("0", 64, 3, 7)
    for path, inputs, channels, stride in resnet18_blocks():
        conv_norm(path + ".first", channels, inputs, 3)
        conv_norm(path + ".second", channels, channels, 3)
        if stride > 1:
            conv_norm(path + ".shortcut", channels, inputs, 1)
    shapes.update({"11.weight": (512, 1000), "11.bias": (1000,)})
    return {name: parameter(name, *shape) for name, shape in shapes.items()}


def resnet18(p, x):
    """In training: batches are normalized by their own statistics."""
    import jax
    import jax.numpy as jnp

    def conv_norm(x, path, stride):
        w = p[path + ".conv.weight"]
        pad = w.shape[2] // 2
        y = jax.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)
        mean = y.mean((0, 2, 3), keepdims=True)
        variance = jnp.square(y - mean).mean((0, 2, 3), keepdims=True)
        scale, bias = p[path + ".norm.scale"], p[path + ".norm.bias"]
        return (y - mean) * jax.lax.rsqrt(variance + 1e-5) * scale[:, None, None] + bias[:, None, None]

    y = jax.nn.relu(conv_norm(x, "0", 2))
    y = jax.lax.reduce_window(y, -np.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
    for path, _, _, stride in resnet18_blocks():
        z = conv_norm(jax.nn.relu(conv_norm(y, path + ".first", stride)), path + ".second", 1)
        y = jax.nn.relu(z + (conv_norm(y, path + ".shortcut", stride) if stride > 1 else y))
    return y.mean((2, 3)) @ p["11.weight"] + p["11.bias"]


class Text:
    """Adam; tokens of a vocabulary of 128, and the next ones."""
    VOCABULARY = 128

    def tokens(self, batch, length):
        all = ((values("x", batch, length + 1) + np.float32(0.5)) * self.VOCABULARY).astype(np.int64)
        return all[:, :-1], all[:, 1:]

    def loss(self, p, x, following):
        import jax
        import jax.numpy as jnp
        return -jnp.take_along_axis(jax.nn.log_softmax(self.scores(p, x)), following[..., None], -1).mean()

    def with_torch(self, torch):
        """(parameters, batch, scores, optimizer)."""
        p = {name: torch.tensor(value) for name, value in self.parameters.items()}
        x, following = (torch.tensor(each) for each in self.batch)

        def scores(x):
            return self.torch_scores(torch, p, x).flatten(0, 1)

        return p, (x, following.flatten()), scores, lambda values: torch.optim.Adam(values, 1e-3)

    def start(self, p):
        import jax
        import jax.numpy as jnp
        return jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.zeros((), jnp.int32)

    def update(self, p, state, grads):
        import jax.numpy as jnp
        first, second, steps = state
        steps = steps + 1
        first = {name: 0.9 * first[name] + 0.1 * grads[name] for name in p}
        second = {name: 0.999 * second[name] + 0.001 * jnp.square(grads[name]) for name in p}
        dtype = p["head.bias"].dtype
        a, b = 1 - jnp.asarray(0.9, dtype) ** steps, 1 - jnp.asarray(0.999, dtype) ** steps
        return {name: p[name] - 1e-3 * (first[name] / a) / (jnp.sqrt(second[name] / b) + 1e-8) for name in p}, (first, second, steps)


class Transformer(Text):
    """docs/examples/text_models.h: four layers that normalize before attention of four heads and the feed-forward branch."""
    LAYERS, HEADS, WIDTH, BATCH, LENGTH = 4, 4, 128, 16, 128

    def __init__(self):
        d, shapes = self.WIDTH, {}
        shapes.update({"embed.weight": (self.VOCABULARY, d), "positions.weight": (self.LENGTH, d)})
        for i in range(self.LAYERS):
            path = f"block{i}."
            for part in ("query", "key", "value", "out"):
                shapes.update({f"{path}attention.{part}.weight": (d, d), f"{path}attention.{part}.bias": (d,)})
            shapes.update({path + "norm1.scale": (d,), path + "norm1.bias": (d,), path + "norm2.scale": (d,), path + "norm2.bias": (d,),
                           path + "linear1.weight": (d, 4 * d), path + "linear1.bias": (4 * d,), path + "linear2.weight": (4 * d, d),
                           path + "linear2.bias": (d,)})
        shapes.update({"norm.scale": (d,), "norm.bias": (d,), "head.weight": (d, self.VOCABULARY), "head.bias": (self.VOCABULARY,)})
        self.parameters = {name: parameter(name, *shape) for name, shape in shapes.items()}
        self.batch = self.tokens(self.BATCH, self.LENGTH)

    def scores(self, p, x):
        import jax
        import jax.numpy as jnp

        def norm(y, path):
            mean = y.mean(-1, keepdims=True)
            variance = jnp.square(y - mean).mean(-1, keepdims=True)
            return (y - mean) * jax.lax.rsqrt(variance + 1e-5) * p[path + ".scale"] + p[path + ".bias"]

        def dense(y, path):
            return y @ p[path + ".weight"] + p[path + ".bias"]

        batch, length = x.shape
        y = p["embed.weight"][x] + p["positions.weight"][:length]
        seen = jnp.tril(jnp.ones((length, length), bool))
        for i in range(self.LAYERS):
            path = f"block{i}."
            z = norm(y, path + "norm1")
            q, k, v = (dense(z, path + "attention." + part).reshape(batch, length, self.HEADS, -1).transpose(0, 2, 1, 3) for part in ("query", "key", "value"))
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]).astype(q.dtype)
            z = jax.nn.softmax(jnp.where(seen, scores, -np.inf)) @ v
            y = y + dense(z.transpose(0, 2, 1, 3).reshape(batch, length, -1), path + "attention.out")
            z = jax.nn.gelu(dense(norm(y, path + "norm2"), path + "linear1"), approximate=False)
            y = y + dense(z, path + "linear2")
        return dense(norm(y, "norm"), "head")


    def torch_scores(self, torch, p, x):
        f, d = torch.nn.functional, self.WIDTH

        def norm(y, path):
            return f.layer_norm(y, (d,), p[path + ".scale"], p[path + ".bias"], 1e-5)

        def dense(y, path):
            return y @ p[path + ".weight"] + p[path + ".bias"]

        batch, length = x.shape
        y = f.embedding(x, p["embed.weight"]) + p["positions.weight"][:length]
        hidden = torch.full((length, length), -np.inf).triu(1)
        for i in range(self.LAYERS):
            path = f"block{i}."
            z = norm(y, path + "norm1")
            q, k, v = (dense(z, path + "attention." + part).reshape(batch, length, self.HEADS, -1).transpose(1, 2) for part in ("query", "key", "value"))
            z = f.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + hidden, -1) @ v
            y = y + dense(z.transpose(1, 2).reshape(batch, length, -1), path + "attention.out")
            y = y + dense(f.gelu(dense(norm(y, path + "norm2"), path + "linear1")), path + "linear2")
        return dense(norm(y, "norm"), "head")


class Recurrent(Text):
    """docs/examples/text_models.h: one layer of an LSTM."""
    HIDDEN, BATCH, LENGTH = 256, 32, 64

    def __init__(self):
        h = self.HIDDEN
        shapes = {"embed.weight": (self.VOCABULARY, h // 4), "lstm.weight_ih_l0": (h // 4, 4 * h), "lstm.weight_hh_l0": (h, 4 * h), "lstm.bias_ih_l0": (4 * h,),
                  "lstm.bias_hh_l0": (4 * h,), "head.weight": (h, self.VOCABULARY), "head.bias": (self.VOCABULARY,)}
        self.parameters = {name: parameter(name, *shape) for name, shape in shapes.items()}
        self.batch = self.tokens(self.BATCH, self.LENGTH)

    def scores(self, p, x):
        import jax
        import jax.numpy as jnp
        inputs = (p["embed.weight"][x] @ p["lstm.weight_ih_l0"] + (p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"])).swapaxes(0, 1)

        def cell(state, at):
            hidden, memory = state
            i, f, g, o = jnp.split(at + hidden @ p["lstm.weight_hh_l0"], 4, -1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = jnp.zeros((len(x), self.HIDDEN), inputs.dtype)
        _, states = jax.lax.scan(cell, (start, start), inputs)
        return states.swapaxes(0, 1) @ p["head.weight"] + p["head.bias"]


    def torch_scores(self, torch, p, x):
        start = torch.zeros(1, len(x), self.HIDDEN)
        weights = [p["lstm.weight_ih_l0"].T, p["lstm.weight_hh_l0"].T, p["lstm.bias_ih_l0"], p["lstm.bias_hh_l0"]]
        if x.is_cuda:  # cuDNN's gradient needs them whole
            weights = [w.contiguous() for w in weights]
        states = torch._VF.lstm(torch.nn.functional.embedding(x, p["embed.weight"]), (start, start), weights, True, 1, 0.0, True, False, True)[0]
        return states @ p["head.weight"] + p["head.bias"]


def task(row):
    return {"train.charlm.step": Transformer, "train.lstm.step": Recurrent}.get(row, lambda: Images(row))()


def compiled_step(what):
    import jax

    def step(p, state, *batch):
        loss, grads = jax.value_and_grad(what.loss)(p, *batch)
        return (*what.update(p, state, grads), loss)

    return jax.jit(step, donate_argnums=(0, 1))


def losses_in_f64(row):
    """Of ten steps, by JAX."""
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    what = task(row)
    p = {name: jnp.asarray(value, jnp.float64) for name, value in what.parameters.items()}
    batch = [jnp.asarray(each, jnp.float64 if each.dtype.kind == "f" else None) for each in what.batch]
    step, state, found = compiled_step(what), what.start(p), []
    for _ in range(STEPS):
        p, state, loss = step(p, state, *batch)
        found.append(float(loss))
    return np.array(found)


def steps_of_jax(row):
    """Makes a step that hands back its loss, of a training that begins."""
    import jax
    import jax.numpy as jnp
    what = task(row)
    step, batch = compiled_step(what), [jnp.asarray(each) for each in what.batch]

    def begin():
        p = {name: jnp.asarray(value) + 0 for name, value in what.parameters.items()}
        state = what.start(p)

        def once():
            nonlocal p, state
            p, state, loss = step(p, state, *batch)
            jax.block_until_ready((p, loss))
            return loss

        return once

    return begin


def steps_of_torch(row, compiled=False):
    import torch
    torch.set_num_threads(THREADS)

    def begin():
        p, (x, labels), scores, optimizer = task(row).with_torch(torch)
        loss_of = lambda x, labels: torch.nn.functional.cross_entropy(scores(x), labels)  # noqa: E731
        if compiled:
            loss_of = torch.compile(loss_of, dynamic=False)
        for value in p.values():
            value.requires_grad_()
        opt = optimizer(list(p.values()))

        def once():
            opt.zero_grad(set_to_none=True)
            loss = loss_of(x, labels)
            loss.backward()
            opt.step()
            return loss.detach()

        return once

    return begin


def main():
    framework, row = sys.argv[1:]
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:THREADS]))  # XLA takes as many threads as there are processors
    begin = steps_of_torch(row) if framework == "torch" else steps_of_jax(row)
    timed = None

    def outputs(_arm, _case):
        step = begin()
        return [float(step()) for _ in range(STEPS)]

    def repeat(seconds):
        calls, start = 0, time.perf_counter()
        while True:
            timed()
            calls += 1
            passed = time.perf_counter() - start
            if passed >= seconds:
                return passed / calls

    def measure(_arm, _case):
        nonlocal timed
        timed = timed or begin()
        repeat(20e-3)
        return repeat(0.1)

    serve(measure, outputs)


if __name__ == "__main__":
    main()
