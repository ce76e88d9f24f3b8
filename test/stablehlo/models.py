"""Networks as somebody would write them in JAX: an MLP, a convolution network, attention, recurrence, ..."""
import jax
import jax.numpy as jnp

from case import Case, floats, ints


def mlp(x, w0, b0, w1, b1):
    return jax.nn.relu(x @ w0 + b0) @ w1 + b1


def conv(x, w, stride=1, padding="SAME"):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x, size):
    window = (1, size, size, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def avg_pool(x, size):
    window = (1, size, size, 1)
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, window, window, "SAME") / (size * size)


def batch_norm(x, scale, bias, mean, variance):
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + bias


def cnn(x, w0, norm, w1, w2, b2):
    y = jax.nn.relu(batch_norm(conv(x, w0), *norm))
    y = max_pool(y, 2)
    y = avg_pool(jax.nn.relu(conv(y, w1, stride=2)), 2)
    logits = y.reshape(y.shape[0], -1) @ w2 + b2
    return jax.nn.softmax(logits), jnp.argmax(logits, -1)


def depthwise(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                        feature_group_count=x.shape[-1])


def layer_norm(x, scale, bias):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale + bias


def attention(x, wq, wk, wv, wo, heads=2):
    batch, length, width = x.shape
    q, k, v = ((x @ w).reshape(batch, length, heads, -1) for w in (wq, wk, wv))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(width // heads)
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ wo


def transformer_block(x, norms, attend, w0, w1):
    x = x + attention(layer_norm(x, *norms[0]), *attend)
    return x + jax.nn.gelu(layer_norm(x, *norms[1]) @ w0) @ w1


def embedding(ids, table, w):
    return jnp.mean(table[ids], 1) @ w, jnp.take(table, ids, axis=0), jax.nn.one_hot(ids, 7)


def loss(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[-1]), -1))


def cell(x, steps, w, u, b):
    hidden = jnp.zeros((x.shape[0], u.shape[0]), x.dtype)
    for t in range(steps):
        hidden = jnp.tanh(x[:, t] @ w + hidden @ u + b)
    return hidden


def gradient(w, x, y):
    return jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)


def cases():
    norms = [(floats(8, seed=i, low=0.5), floats(8, seed=i + 1)) for i in range(2)]
    attend = [floats(8, 8, seed=i, low=-0.6, high=0.6) for i in range(4)]
    norm = [floats(4, seed=1, low=0.5), floats(4, seed=2), floats(4, seed=3), floats(4, seed=4, low=0.1)]
    attention_arguments = [floats(2, 5, 8), *attend]
    return [
        Case("mlp", mlp, [floats(16, 20), floats(20, 32), floats(32), floats(32, 10), floats(10)]),
        Case("cnn", lambda x, w0, n0, n1, n2, n3, *rest: cnn(x, w0, (n0, n1, n2, n3), *rest),
             [floats(2, 12, 12, 3), floats(3, 3, 3, 4), *norm, floats(3, 3, 4, 6), floats(24, 5), floats(5)]),
        Case("depthwise", depthwise, [floats(1, 9, 9, 4), floats(3, 3, 1, 8)]),
        Case("softmax", jax.nn.softmax, [floats(3, 17)]),
        Case("layer_norm", layer_norm, [floats(4, 8), *norms[0]]),
        Case("attention", attention, attention_arguments),
        Case("transformer_block",
             lambda x, a, b, c, d, *rest: transformer_block(x, ((a, b), (c, d)), rest[:4], *rest[4:]),
             [floats(2, 5, 8), *norms[0], *norms[1], *attend, floats(8, 16), floats(16, 8)]),
        Case("embedding", embedding, [ints(3, 6, low=0, high=10), floats(11, 4), floats(4, 2)]),
        Case("loss", loss, [floats(6, 5), ints(6, low=0, high=4)]),
        Case("cell", lambda x, *rest: cell(x, 4, *rest), [floats(2, 4, 3), floats(3, 5), floats(5, 5), floats(5)]),
        Case("gradient", gradient, [floats(6, 3), floats(4, 6), floats(4, 3)]),
    ]
