#!/usr/bin/env python3
"""Every layer against NumPy, in f64: formulas written here from the layers' documentation.

usage: module_oracle.py CASES   the program made of ModuleCases.cpp, which also compares eager, compiled and packaged
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.numpy

sigmoid = lambda x: 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def beside(x, vector):
    return vector.reshape((1, -1) + (1,) * (x.ndim - 2))


def windows(x, window, stride, dilation=None):
    """[batch, channels, out..., window...]."""
    rank = len(window)
    dilation = dilation or [1] * rank
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, window)]
    w = np.lib.stride_tricks.sliding_window_view(x, spans, axis=tuple(range(2, 2 + rank)))
    return w[(slice(None),) * 2 + tuple(slice(None, None, s) for s in stride) +
             tuple(slice(None, None, d) for d in dilation)]


def conv(c, w, x):
    rank = x.ndim - 2
    kernel = w["weight"]
    padded = np.pad(x, [(0, 0), (0, 0)] + [tuple(p) for p in c["pad"]])
    patches = windows(padded, kernel.shape[2:], c["stride"], c["dilation"])
    each, out = x.shape[1] // c["groups"], kernel.shape[0] // c["groups"]
    parts = []
    for g in range(c["groups"]):
        p, k = patches[:, g * each:(g + 1) * each], kernel[g * out:(g + 1) * out]
        axes = [1] + list(range(2 + rank, 2 + 2 * rank))
        parts.append(np.moveaxis(np.tensordot(p, k, (axes, list(range(1, 2 + rank)))), -1, 1))
    y = np.concatenate(parts, 1)
    return y + beside(y, w["bias"]) if "bias" in w else y


def conv_transpose(c, w, x):
    """Each element of x adds its multiple of the window to the result."""
    kernel, groups = w["weight"], c["groups"]
    window, out = kernel.shape[2:], kernel.shape[1]
    sizes = [(n - 1) * s + (k - 1) * d + 1 + m
             for n, s, k, d, m in zip(x.shape[2:], c["stride"], window, c["dilation"], c["more"])]
    y = np.zeros((x.shape[0], groups * out, *sizes))
    each = x.shape[1] // groups
    for g in range(groups):
        inputs, features = slice(g * each, (g + 1) * each), slice(g * out, (g + 1) * out)
        for at in np.ndindex(*x.shape[2:]):
            for k in np.ndindex(*window):
                place = tuple(a * s + i * d for a, s, i, d in zip(at, c["stride"], k, c["dilation"]))
                y[(slice(None), features) + place] += x[(slice(None), inputs) + at] @ kernel[(inputs, slice(None)) + k]
    y = y[(slice(None),) * 2 + tuple(slice(p, n - p) for p, n in zip(c["pad"], sizes))]
    return y + beside(y, w["bias"]) if "bias" in w else y


def pool(c, w, x):
    pads = [(0, 0), (0, 0)] + [(p, p) for p in c["pad"]]
    rank = x.ndim - 2
    axes = tuple(range(-rank, 0))
    if c.get("max"):
        return windows(np.pad(x, pads, constant_values=-np.inf), c["window"], c["stride"]).max(axes)
    total = windows(np.pad(x, pads), c["window"], c["stride"]).sum(axes)
    if c.get("inside"):
        return total / windows(np.pad(np.ones_like(x), pads), c["window"], c["stride"]).sum(axes)
    return total / np.prod(c["window"])


def adaptive(c, w, x):
    for axis, out in enumerate(c["out"], 2):
        n = x.shape[axis]
        parts = [x.take(range(i * n // out, -(-(i + 1) * n // out)), axis).mean(axis, keepdims=True) for i in range(out)]
        x = np.concatenate(parts, axis)
    return x


def global_pool(c, w, x):
    axes = tuple(range(2, x.ndim))
    return x.max(axes) if c["max"] else x.mean(axes)


def affine(w, y):
    return y * beside(y, w["scale"]) + beside(y, w["bias"]) if "scale" in w else y


def batch_norm(c, w, x):
    mean, var = w["running_mean"], w["running_var"]
    after = {"running_mean": mean, "running_var": var}
    if c["train"]:
        axes = (0,) + tuple(range(2, x.ndim))
        m = c["momentum"]
        after = {"running_mean": (1 - m) * mean + m * x.mean(axes), "running_var": (1 - m) * var + m * x.var(axes, ddof=1)}
        mean, var = x.mean(axes), x.var(axes)
    return affine(w, (x - beside(x, mean)) / np.sqrt(beside(x, var) + c["epsilon"])), after


def layer_norm(c, w, x):
    axes = tuple(range(-c.get("axes", 1), 0))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return y * w["scale"] + w["bias"] if "scale" in w else y


def group_norm(c, w, x):
    y = x.reshape(x.shape[0], c["groups"], -1)
    y = (y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + 1e-5)
    return affine(w, y.reshape(x.shape))


def dense(w, name, x):
    y = x @ w[name + ".weight"]
    return y + w[name + ".bias"] if name + ".bias" in w else y


def attention(c, w, x, keys=None, mask=None, valid=None, at=""):
    heads = c["heads"]
    k = x if keys is None else keys
    split = lambda t: t.reshape(t.shape[0], t.shape[1], heads, -1).transpose(0, 2, 1, 3)
    q, k, v = split(dense(w, at + "query", x)), split(dense(w, at + "key", k)), split(dense(w, at + "value", k))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    if c.get("causal"):
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if valid is not None:
        scores = np.where(valid[:, None, None, :], scores, -np.inf)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3)
    return dense(w, at + "out", y.reshape(y.shape[0], y.shape[1], -1))


def encoder(c, w, x):
    norm = lambda i, t: layer_norm({}, {"scale": w[f"norm{i}.scale"], "bias": w[f"norm{i}.bias"]}, t)
    attend = lambda t: attention(c, w, t, at="attention.")
    feed = lambda t: dense(w, "linear2", np.maximum(dense(w, "linear1", t), 0))
    if c["pre"]:
        x = x + attend(norm(1, x))
        return x + feed(norm(2, x))
    x = norm(1, x + attend(x))
    return norm(2, x + feed(x))


def linear(w, name, suffix, x):
    y = x @ w[f"weight_{name}{suffix}"]
    return y + w[f"bias_{name}{suffix}"] if f"bias_{name}{suffix}" in w else y


def lstm_step(w, suffix, x, state):
    h, c = state
    i, f, g, o = np.split(linear(w, "ih", suffix, x) + linear(w, "hh", suffix, h), 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(w, suffix, x, state):
    (h,) = state
    xr, xz, xn = np.split(linear(w, "ih", suffix, x), 3, -1)
    hr, hz, hn = np.split(linear(w, "hh", suffix, h), 3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return ((1 - z) * np.tanh(xn + r * hn) + z * h,)


def recurrent(step, count):
    def run(c, w, x, *first):
        x = x.swapaxes(0, 1) if c.get("batch_first") else x
        suffixes = ["", "_reverse"][:2 if c.get("bidirectional") else 1]
        hidden = w["weight_hh_l0"].shape[0]
        last = []
        for layer in range(c["layers"]):
            sides = []
            for suffix in suffixes:
                state = tuple(f[len(last)] for f in first) or (np.zeros((x.shape[1], hidden)),) * count
                steps = range(len(x)) if not suffix else range(len(x) - 1, -1, -1)
                side = np.zeros((len(x), x.shape[1], hidden))
                for t in steps:
                    state = step(w, f"_l{layer}{suffix}", x[t], state)
                    side[t] = state[0]
                sides.append(side)
                last.append(state)
            x = np.concatenate(sides, -1)
        return (x.swapaxes(0, 1) if c.get("batch_first") else x, *(np.stack(s) for s in zip(*last)))
    return run


def cell(step, count):
    return lambda c, w, x: step(w, "", x, (np.zeros((len(x), w["weight_hh"].shape[0])),) * count)


KINDS = {
    "dense": lambda c, w, x: np.tanh(x @ w["weight"] + w["bias"]),
    "embedding": lambda c, w, x: w["weight"][x],
    "positions": lambda c, w, x: x + w["weight"][:x.shape[-2]],
    "flatten": lambda c, w, x: x.reshape(len(x), -1),
    "prelu": lambda c, w, x: np.where(x > 0, x, x * beside(x, w["slope"])),
    "leaky": lambda c, w, x: np.where(x > 0, x, x * c["slope"]),
    "elu": lambda c, w, x: np.where(x > 0, x, c["alpha"] * np.expm1(x)),
    "softmax": lambda c, w, x: softmax(x, c["axis"]),
    "conv": conv, "conv-transpose": conv_transpose, "pool": pool, "adaptive": adaptive, "global": global_pool,
    "batch-norm": batch_norm, "layer-norm": layer_norm, "group-norm": group_norm,
    "rms-norm": lambda c, w, x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w["scale"],
    "attention": attention, "encoder": encoder,
    "lstm-cell": cell(lstm_step, 2), "gru-cell": cell(gru_step, 1),
    "lstm": recurrent(lstm_step, 2), "gru": recurrent(gru_step, 1),
}


def check(path):
    tensors = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "np") as file:
        config = json.loads(file.metadata()["config"])
    wide = {k: v.astype("f8") if v.dtype.kind == "f" else v for k, v in tensors.items()}
    prefix = "weight." + config.get("prefix", "")
    weights = {k.removeprefix(prefix): v for k, v in wide.items() if k.startswith("weight.")}
    inputs = [wide[f"in.{i}"] for i in range(sum(k.startswith("in.") for k in wide))]
    results = KINDS[config["kind"]](config, weights, *inputs)
    after = {}
    if config["kind"] == "batch-norm":
        results, after = results
    results = results if isinstance(results, tuple) else (results,)
    expected = {f"out.{i}": r for i, r in enumerate(results)} | {f"after.{k}": v for k, v in after.items()}
    found = {k: v for k, v in wide.items() if k.startswith(("out.", "after."))}
    assert expected.keys() == found.keys(), (sorted(expected), sorted(found))
    for name, value in expected.items():
        assert value.shape == found[name].shape, (name, value.shape, found[name].shape)
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-5, err_msg=name)
    return config["kind"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        agreed = subprocess.run([sys.argv[1], folder]).returncode == 0
        seen, wrong = set(), 0
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            try:
                seen.add(check(path))
            except (AssertionError, KeyError, ValueError) as problem:
                wrong += 1
                print(f"{path.stem}: {problem}")
        cases = len(list(pathlib.Path(folder).glob("*.safetensors")))
    missing = KINDS.keys() - seen
    print(f"{cases} cases of {len(seen)} kinds of layers, {wrong} differ from NumPy" + (f"; no case of {missing}" if missing else ""))
    sys.exit(1 if wrong or missing or not agreed else 0)


main()
