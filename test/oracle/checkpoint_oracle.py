#!/usr/bin/env python3
"""States of training that go from Tressel to another framework and back: each goes on from the other's file, and both end with the same
numbers, to rounding.

usage: checkpoint_oracle.py jax|torch CHECKPOINT_CASES
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

X, Y = np.sin(np.arange(40, dtype=np.float32)).reshape(8, 5), np.cos(np.arange(24, dtype=np.float32)).reshape(8, 3)
RATE, DECAY, MOMENTUM = {"adamw": 0.01, "sgd": 0.05}, 0.1, 0.9


def read(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def part(state, prefix):
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def train_in_jax(kind, state, steps):
    import jax
    import jax.numpy as jnp
    p = {name: jnp.asarray(v) for name, v in part(state, "net.").items()}
    kept = {name: {n: jnp.asarray(v) for n, v in part(state, f"opt.{name}.").items()} for name in (("mean", "square") if kind == "adamw" else ("momentum",))}
    count = int(state["opt.step"])

    def loss(p):
        hidden = jnp.tanh(X @ p["0.weight"] + p["0.bias"])
        return jnp.mean(jnp.square(hidden @ p["1.weight"] + p["1.bias"] - Y))

    for _ in range(steps):
        grads, count = jax.grad(loss)(p), count + 1
        for name, g in grads.items():
            if kind == "sgd":
                kept["momentum"][name] = MOMENTUM * kept["momentum"][name] + g
                p[name] = p[name] - RATE[kind] * kept["momentum"][name]
                continue
            mean = kept["mean"][name] = 0.9 * kept["mean"][name] + 0.1 * g
            square = kept["square"][name] = 0.999 * kept["square"][name] + 0.001 * g * g
            p[name] = p[name] * (1 - RATE[kind] * DECAY) - RATE[kind] * (mean / (1 - 0.9**count)) / (jnp.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return {**{f"net.{n}": np.asarray(v) for n, v in p.items()}, **{f"opt.{k}.{n}": np.asarray(v) for k, all in kept.items() for n, v in all.items()},
            "opt.step": np.asarray(count, state["opt.step"].dtype)}


def train_in_torch(kind, state, steps):
    import torch
    p = {name: torch.nn.Parameter(torch.tensor(v)) for name, v in part(state, "net.").items()}
    opt = torch.optim.AdamW(p.values(), RATE[kind], weight_decay=DECAY) if kind == "adamw" else torch.optim.SGD(p.values(), RATE[kind], MOMENTUM)
    # Of the optimizer's own file: torch's names of what is kept.
    names = {"mean": "exp_avg", "square": "exp_avg_sq"} if kind == "adamw" else {"momentum": "momentum_buffer"}
    count = int(state["opt.step"])
    entries = {i: {theirs: torch.tensor(state[f"opt.{ours}.{name}"]) for ours, theirs in names.items()} | ({"step": torch.tensor(float(count))} if kind == "adamw" else {})
               for i, name in enumerate(p)}
    opt.load_state_dict({"state": entries, "param_groups": opt.state_dict()["param_groups"]})
    x, y = torch.tensor(X), torch.tensor(Y)
    for _ in range(steps):
        opt.zero_grad()
        hidden = torch.tanh(x @ p["0.weight"] + p["0.bias"])
        torch.nn.functional.mse_loss(hidden @ p["1.weight"] + p["1.bias"], y).backward()
        opt.step()
    kept = opt.state_dict()["state"]
    return {**{f"net.{n}": v.detach().numpy() for n, v in p.items()},
            **{f"opt.{ours}.{n}": kept[i][theirs].numpy() for i, n in enumerate(p) for ours, theirs in names.items()},
            "opt.step": np.asarray(count + steps, state["opt.step"].dtype)}


def compare(what, got, want):
    assert sorted(got) == sorted(want), (what, sorted(got), sorted(want))
    for name, value in want.items():
        assert got[name].shape == value.shape and got[name].dtype == value.dtype, (what, name, got[name].dtype, value.dtype)
        assert np.allclose(got[name], value, rtol=1e-4, atol=1e-6, equal_nan=True), (what, name, np.abs(got[name] - value).max())


def main():
    framework, program = sys.argv[1:]
    train = {"jax": train_in_jax, "torch": train_in_torch}[framework]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for kind in ("adamw", "sgd"):
            def ours(before, after, steps):
                subprocess.run([program, kind, before, after, str(steps)], check=True)
                return read(after)
            begun, metadata = ours("-", folder / "begun", 3)
            theirs = {**begun, **train(kind, begun, 4)}  # the rate and its scale are as they were
            save_file(theirs, folder / "theirs", metadata)
            mine, _ = ours(folder / "begun", folder / "mine", 4)
            compare(f"{kind}: from Tressel's file", theirs, mine)
            assert not np.allclose(mine["net.0.weight"], begun["net.0.weight"], rtol=1e-3), "it was trained"
            back, _ = ours(folder / "theirs", folder / "back", 5)
            compare(f"{kind}: from {framework}'s file", back, {**mine, **train(kind, mine, 5)})
            print(f"{kind}: {len(mine)} tensors, read and written by {framework}")


main()
