"""The arm of JAX in train.charlm.bits: trains the network of train_text (docs/examples/text_models.h) on as many of the same characters, by the
same optimizer with the same schedule, from first values and in an order of its own, and gives bits per held-out character.

    text_peer.py STEPS   answers requests (protocol: Bench.h)
"""
import pathlib
import sys

import numpy as np

import training
from protocol import serve

TEXTS, BATCH, LENGTH, RATE, WARMUP, DECAY = "/usr/share/games/fortunes", 32, 128, 1e-3, 100, 0.1


class Characters(training.Transformer):
    VOCABULARY, BATCH, LENGTH = 256, BATCH, LENGTH


def files():
    """Those that train_text reads where it is given none."""
    return [np.frombuffer(p.read_bytes(), np.uint8) for p in sorted(pathlib.Path(TEXTS).iterdir())
            if p.is_file() and p.suffix == "" and p.stat().st_size > 4096]


def held_out(texts):
    """Windows of the last tenth of each file, one behind the other: characters and those that follow."""
    windows = []
    for text in texts:
        last = text[int(len(text) * 0.9):]
        windows += [last[i * LENGTH:(i + 1) * LENGTH + 1] for i in range((len(last) - 1) // LENGTH)]
    whole = np.stack(windows[:len(windows) // BATCH * BATCH]).astype(np.int32).reshape(-1, BATCH, LENGTH + 1)
    return whole[:, :, :-1], whole[:, :, 1:]


def first_values(shapes, random):
    values = {}
    for name, shape in shapes.items():
        if name in ("embed.weight", "positions.weight"):
            values[name] = random.normal(0, 0.02, shape)
        elif len(shape) == 2:
            bound = np.sqrt(6 / sum(shape))
            values[name] = random.uniform(-bound, bound, shape)
        else:
            values[name] = np.ones(shape) if name.endswith("scale") else np.zeros(shape)
    return {name: value.astype(np.float32) for name, value in values.items()}


def bits_after(steps, seed):
    import jax
    import jax.numpy as jnp
    what, random, texts = Characters(), np.random.default_rng(seed), files()
    p = {name: jnp.asarray(v) for name, v in first_values({n: v.shape for n, v in what.parameters.items()}, random).items()}

    def rate_at(step):
        along = jnp.clip((step - WARMUP) / (steps - WARMUP), 0, 1)
        return jnp.where(step < WARMUP, RATE * (step + 1) / WARMUP, RATE * 0.5 * (1 + jnp.cos(jnp.pi * along)))

    def step(p, state, x, following):
        loss, grads = jax.value_and_grad(what.loss)(p, x, following)
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in grads.values()))
        grads = {name: g * jnp.minimum(1.0 / norm, 1.0) for name, g in grads.items()}
        first, second, count = state
        rate, count = rate_at(count), count + 1
        first = {name: 0.9 * first[name] + 0.1 * g for name, g in grads.items()}
        second = {name: 0.999 * second[name] + 0.001 * jnp.square(g) for name, g in grads.items()}
        a, b = 1 - 0.9**count, 1 - 0.999**count
        decay = {name: 0.0 if name.endswith(("bias", "scale")) else DECAY for name in p}
        p = {name: p[name] * (1 - rate * decay[name]) - rate * (first[name] / a) / (jnp.sqrt(second[name] / b) + 1e-8) for name in p}
        return p, (first, second, count), loss

    zeros = jax.tree.map(jnp.zeros_like, p)
    state, step, loss = (zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.float32)), jax.jit(step, donate_argnums=(0, 1)), jax.jit(what.loss)
    # A window of the training part of a file, each character of all files as often as any other.
    ends = [int(len(text) * 0.9) for text in texts]
    starts = np.array([end - LENGTH - 1 for end in ends])
    for _ in range(steps):
        which = random.choice(len(texts), BATCH, p=starts / starts.sum())
        begins = (random.random(BATCH) * starts[which]).astype(int)
        windows = np.stack([texts[i][at:at + LENGTH + 1] for i, at in zip(which, begins)]).astype(np.int32)
        p, state, _ = step(p, state, windows[:, :-1], windows[:, 1:])
    return float(np.mean([loss(p, x, following) for x, following in zip(*held_out(texts))]) / np.log(2))


def main():
    seed = 0

    def measure(_arm, _case):
        nonlocal seed
        seed += 1
        return bits_after(int(sys.argv[1]), seed)

    serve(measure)


if __name__ == "__main__":
    main()
