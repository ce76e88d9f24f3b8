"""Programs that JAX cuts over eight host devices, against its own partitioned results: networks and steps of training, with
arguments and results cut at random along dimensions that the mesh divides."""
import random

import jax
import jax.numpy as jnp
import numpy as np

from case import Case, floats, ints
import models

MESHES = [{"data": 8}, {"data": 4, "model": 2}, {"a": 2, "b": 2, "c": 2}]


def random_spec(rng, shape, mesh):
    """An axis, several or none for each dimension: each axis once, and products that divide the dimension."""
    axes = list(mesh)
    rng.shuffle(axes)
    spec = []
    for size in shape:
        mine, parts = [], 1
        while axes and size % (parts * mesh[axes[-1]]) == 0 and rng.random() < 0.6:
            parts *= mesh[axes[-1]]
            mine.append(axes.pop())
        spec.append(tuple(mine) or None)
    return jax.sharding.PartitionSpec(*spec)


def constrained(rng, mesh):
    """A constraint within the program, on a value of two dimensions."""
    def apply(value):
        return jax.lax.with_sharding_constraint(
            value, jax.sharding.NamedSharding(mesh, random_spec(rng, value.shape, dict(mesh.shape))))
    return apply


def trained(loss):
    """A step of training: the loss, and each weight less a tenth of its gradient."""
    def step(weights, *batch):
        value, grads = jax.value_and_grad(loss)(weights, *batch)
        return value, [w - 0.1 * g for w, g in zip(weights, grads)]
    return step


def mlp_loss(weights, x, labels):
    return models.loss(models.mlp(x, *weights), labels)


def cnn_loss(weights, x, labels):
    return models.loss(models.cnn(x, weights[0], weights[1:5], *weights[5:])[0], labels)


def block_loss(weights, x):
    y = models.transformer_block(x, (weights[:2], weights[2:4]), weights[4:8], *weights[8:])
    return jnp.mean(jnp.square(y - x[:, ::-1]))


def batch_norm_loss(weights, x):
    y = models.conv(x, weights[0])
    mean = jnp.mean(y, (0, 1, 2))
    variance = jnp.mean(jnp.square(y - mean), (0, 1, 2))
    return jnp.mean(jnp.square((y - mean) * jax.lax.rsqrt(variance + 1e-5) * weights[1] + weights[2]))


def programs():
    small = {"low": -0.5, "high": 0.5}
    mlp = [floats(32, 64, **small), floats(64, **small), floats(64, 16, **small), floats(16, **small)]
    block = [floats(16, low=0.5), floats(16), floats(16, low=0.5), floats(16),
             *(floats(16, 16, seed=i, **small) for i in range(4)), floats(16, 32, **small), floats(32, 16, **small)]
    norm = [floats(8, low=0.5), floats(8), floats(8), floats(8, low=0.5)]
    yield "mlp", models.mlp, [floats(24, 32), *mlp]
    yield "mlp_step", trained(mlp_loss), [mlp, floats(24, 32), ints(24, low=0, high=15)]
    yield "softmax", jax.nn.softmax, [floats(16, 24)]
    yield "layer_norm", models.layer_norm, [floats(8, 4, 16), floats(16), floats(16)]
    yield "attention", models.attention, [floats(8, 16, 16), *(floats(16, 16, seed=i, **small) for i in range(4))]
    yield "block_step", trained(block_loss), [block, floats(8, 16, 16)]
    yield "cnn", lambda x, w0, n0, n1, n2, n3, *rest: models.cnn(x, w0, (n0, n1, n2, n3), *rest), [
        floats(8, 16, 16, 4), floats(3, 3, 4, 8), *norm, floats(3, 3, 8, 8), floats(32, 16, **small), floats(16)]
    yield "batch_norm_step", trained(batch_norm_loss), [
        [floats(3, 3, 4, 8), floats(8, low=0.5), floats(8)], floats(8, 8, 8, 4)]
    yield "embedding", models.embedding, [ints(16, 8, low=0, high=23), floats(24, 16), floats(16, 8)]
    yield "reductions", lambda x, y: (jnp.max(x, 0), jnp.sum(x * y, 1), jnp.argmax(y, 1), jnp.cumsum(x, 1)), [
        floats(16, 24), floats(16, 24, seed=1)]
    yield "shapes", lambda x, y: (jnp.concatenate([x, y]).T, x.reshape(32, 12)[::2], jnp.pad(y, ((1, 7), (0, 8)))), [
        floats(16, 24), floats(16, 24, seed=1)]


def cases():
    devices = np.array(jax.devices())
    for seed in range(len(MESHES) * 2):
        rng = random.Random(seed)
        axes = MESHES[seed % len(MESHES)]
        mesh = jax.sharding.Mesh(devices.reshape(tuple(axes.values())), tuple(axes))

        def lies(value):
            return jax.sharding.NamedSharding(mesh, random_spec(rng, np.shape(value), axes))

        for name, function, arguments in programs():
            results = jax.eval_shape(function, *arguments)
            options = {"in_shardings": jax.tree.map(lies, tuple(arguments)), "out_shardings": jax.tree.map(lies, results)}
            yield Case(f"{name}{seed}", function, arguments, jit=options, device="sim:dgx-h100")
        inner = constrained(rng, mesh)
        yield Case(f"constraints{seed}", lambda x, w, v, inner=inner: inner(inner(jnp.tanh(x @ w)) @ v) * 2,
                   [floats(16, 8), floats(8, 24), floats(24, 16)], jit={}, device="sim:dgx-h100")
