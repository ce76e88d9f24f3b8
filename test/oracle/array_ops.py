"""Ops that order, read and write at computed places, and random numbers, from their definitions."""
import math

import numpy as np


def argsort(x, axis, descending):
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Backwards twice, so that equal elements keep their order.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def top_k(x, k, axis, largest):
    indices = np.take(argsort(x, axis, largest), np.arange(k), axis=axis)
    return np.take_along_axis(x, indices, axis), indices


def scan(accumulate, x, axis, reverse, exclusive, start):
    x = np.flip(x, axis) if reverse else x
    if exclusive:
        first = list(x.shape)
        first[axis] = 1
        # Bools and integers are accumulated as such, and in i64.
        x = x if x.dtype.kind == "f" else x.astype(np.int64)
        x = np.concatenate([np.full(first, start, x.dtype), x], axis)
        x = np.take(x, np.arange(x.shape[axis] - 1), axis=axis)
    y = accumulate(x, axis=axis)
    return np.flip(y, axis) if reverse else y


def vector_norm(x, axis, keepdims, ord):
    size = np.abs(x)
    if np.isinf(ord):
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.asarray(np.count_nonzero(size, axis=axis, keepdims=keepdims)).astype(np.float64)
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def update(y, place, value, mode, dtype):
    """Each update is rounded to the elements' type, though they are given widened."""
    with np.errstate(all="ignore"):
        value = np.asarray(value).astype(dtype).astype(y.dtype)
        new = {"set": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum,
               "max": np.maximum}[mode](y[place], value)
        y[place] = np.asarray(new).astype(dtype)


def put_along_axis(x, indices, values, axis, mode, dtype):
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    indices, values, y = np.broadcast_to(indices, shape), np.broadcast_to(values, shape), x.copy()
    for at in np.ndindex(*shape):
        place = list(at)
        place[axis] = indices[at]
        update(y, tuple(place), values[at], mode, dtype)
    return y


def gather_nd(x, indices, batch_dims):
    rows = indices.shape[:-1]
    y = np.empty(rows + x.shape[batch_dims + indices.shape[-1]:], x.dtype)
    for at in np.ndindex(*rows):
        y[at] = x[at[:batch_dims] + tuple(indices[at])]
    return y


def scatter_nd(x, indices, updates, mode, dtype):
    y = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        update(y, tuple(indices[at]), updates[at], mode, dtype)
    return y


def scatter(x, indices, updates, axis, mode, dtype):
    y = np.moveaxis(x.copy(), axis, 0)
    slices = np.moveaxis(updates, range(axis % x.ndim, axis % x.ndim + indices.ndim), range(indices.ndim))
    for at in np.ndindex(*indices.shape):
        update(y, int(indices[at]), slices[at], mode, dtype)
    return np.moveaxis(y, 0, axis)


def dynamic_update_slice(x, update, starts):
    y = x.copy()
    first = np.clip(starts, 0, np.subtract(x.shape, update.shape)).astype(int)
    y[tuple(slice(b, b + n) for b, n in zip(first, update.shape))] = update.astype(x.dtype)
    return y


def philox(seed, index):
    """Philox 4x32-10 with Python's integers: counter (index, 0), key seed; four words."""
    mask = 0xFFFFFFFF
    key = int(seed) & 0xFFFFFFFFFFFFFFFF
    c, k = [index & mask, index >> 32, 0, 0], [key & mask, key >> 32]
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def drawn(seed, shape, first, number):
    values = [number(philox(seed, first + i)) for i in range(math.prod(shape))]
    return np.array(values, np.float64).reshape(shape)


def bits53(high, low):
    return (high << 21 ^ low >> 11) * 2.0**-53


def random_uniform(seed, shape, dtype, first=0):
    wide = np.dtype(dtype) == np.float64
    return drawn(seed, shape, first, lambda w: bits53(w[0], w[1]) if wide else (w[0] >> 8) * 2.0**-24).astype(dtype)


def random_normal(seed, shape, dtype, first):
    wide = np.dtype(dtype) == np.float64

    def normal(w):
        u, v = (bits53(w[0], w[1]), bits53(w[2], w[3])) if wide else ((w[0] >> 8) * 2.0**-24, (w[1] >> 8) * 2.0**-24)
        return math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * (v - 0.5))

    return drawn(seed, shape, first, normal).astype(dtype)


def randint(seed, low, high, shape, dtype, first):
    span = high - low

    def integer(w):
        return low + ((w[0] * span) >> 32 if span <= 2**32 else ((w[0] << 32 | w[1]) >> 1) % span)

    values = [integer(philox(seed, first + i)) for i in range(math.prod(shape))]
    return np.array(values, np.int64).reshape(shape).astype(dtype)


def bernoulli(seed, p, dtype):
    return random_uniform(seed, p.shape, np.float64 if dtype == np.float64 else np.float32) < p


def categorical(seed, logits, axis, dtype):
    u = random_uniform(seed, logits.shape, np.float64 if dtype == np.float64 else np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        return np.argmax(logits - np.log(-np.log1p(-u)), axis)


DEFINITIONS = {f.__name__: f for f in (argsort, top_k, scan, vector_norm, put_along_axis, gather_nd, scatter_nd, scatter,
                                       dynamic_update_slice, random_uniform, random_normal, randint, bernoulli,
                                       categorical)}
