"""Loops and branches that JAX makes."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, bools, floats, ints


def rnn(h, xs, w, u):
    def step(h, x):
        h = jnp.tanh(x @ w + h @ u)
        return h, h
    return lax.scan(step, h, xs)


def lstm(xs, w, u, b):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    zeros = jnp.zeros((xs.shape[1], u.shape[0]), xs.dtype)
    return lax.scan(step, (zeros, zeros), xs)


def newton(a):
    def going(state):
        x, step, count = state
        return (jnp.max(jnp.abs(step)) > 1e-6) & (count < 50)

    def improve(state):
        x, _, count = state
        new = 0.5 * (x + a / x)
        return new, new - x, count + 1
    return lax.while_loop(going, improve, (jnp.ones_like(a), jnp.full_like(a, jnp.inf), 0))


def collatz(n):
    return lax.while_loop(lambda s: s[0] > 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]


def power_iteration(a, steps):
    def step(_, v):
        v = a @ v
        return v / jnp.linalg.norm(v)
    return lax.fori_loop(0, steps, step, jnp.ones(a.shape[0], a.dtype))


def primes(n):
    def outer(i, sieve):
        return lax.cond(sieve[i], lambda s: lax.fori_loop(2, n, lambda k, t: t.at[i * k].set(False), s), lambda s: s, sieve)
    return lax.fori_loop(2, n, outer, jnp.ones(n, bool).at[:2].set(False))


def bisect(low, high):
    """A branch in a loop, both with values from outside."""
    goal = low * 0 + 2
    def step(_, s):
        middle = (s[0] + s[1]) / 2
        return lax.cond(middle * middle > goal, lambda: (s[0], middle), lambda: (middle, s[1]))
    return lax.fori_loop(0, 30, step, (low, high))


def bubble(x):
    """Loops in a loop, which read and write at computed places."""
    n = x.shape[0]
    def swap(j, x):
        a, b = x[j], x[j + 1]
        return x.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))
    return lax.fori_loop(0, n, lambda i, x: lax.fori_loop(0, n - 1 - i, swap, x), x)


def cases():
    x, flags = floats(3, 4), bools(5)
    yield Case("rnn", rnn, [floats(2, 5), floats(7, 2, 3, seed=1), floats(3, 5, seed=2), floats(5, 5, seed=3)])
    yield Case("lstm", lstm, [floats(6, 2, 3), floats(3, 20, seed=1), floats(5, 20, seed=2), floats(20, seed=3)])
    yield Case("scan_reversed", lambda h, xs: lax.scan(lambda h, x: (h * 0.5 + x, h), h, xs, reverse=True), [floats(4), floats(6, 4)])
    yield Case("scan_tree", lambda xs, ys: lax.scan(lambda c, v: ((c[0] + v["a"], c[1] * 2), {"s": v["b"] * c[1], "t": c[0]}),
                                                    (jnp.zeros(4), jnp.int32(1)), {"a": xs, "b": ys}), [floats(5, 4), ints(5)])
    yield Case("scan_unrolled", lambda xs: lax.scan(lambda c, v: (c + v, c), jnp.zeros(4), xs, unroll=2), [floats(6, 4)])
    yield Case("scan_nothing", lambda h, xs: lax.scan(lambda h, x: (h + x, h), h, xs), [floats(4), floats(0, 4)])
    yield Case("associative_scan", lambda x: lax.associative_scan(jnp.add, x), [floats(9)])
    yield Case("map", lambda x: lax.map(lambda r: jnp.sort(r)[1] * 2, x), [x])
    yield Case("newton", newton, [floats(6, low=0.5, high=9)])
    yield Case("collatz", collatz, [np.int32(27)])
    yield Case("while_never", lambda v: lax.while_loop(lambda v: jnp.sum(v) > 1e6, lambda v: v * 2, v), [x])
    yield Case("power_iteration", lambda a: power_iteration(a, 20), [floats(4, 4, low=0.1)])
    yield Case("fori_dynamic", power_iteration, [floats(4, 4, low=0.1), np.int32(7)])
    yield Case("primes", lambda: primes(30), [])
    yield Case("bisect", bisect, [np.float32(0), np.float32(3)])
    yield Case("bubble", bubble, [floats(7)])
    yield Case("fori_gradient", jax.grad(lambda v: jnp.sum(lax.fori_loop(0, 4, lambda i, v: jnp.sin(v) * 1.5, v))), [floats(5)])
    yield Case("scan_gradient", jax.grad(lambda w, h, xs, u: jnp.sum(rnn(h, xs, w, u)[0]), argnums=(0, 3)),
               [floats(3, 5, seed=2), floats(2, 5), floats(7, 2, 3, seed=1), floats(5, 5, seed=3)])
    for value in (False, True):
        yield Case(f"cond_{value}", lambda p, x: lax.cond(p, lambda v: (v + 1, jnp.sum(v)), lambda v: (v * x.sum(), v[0, 0]), x),
                   [np.bool_(value), x])
    for value in (-3, 0, 1, 2, 3, 4, 9):
        yield Case(f"switch_{value}", lambda i, x: lax.switch(
            i, [lambda v: v + 1, lambda v: v * 2, lambda v: v * x, lambda v: -v, lambda v: v - x.sum()], x), [np.int32(value), x])
    yield Case("cond_many", lambda p, x: [lax.cond(q, jnp.sin, jnp.cos, x) for q in p], [flags, x])
    yield Case("cond_vmapped", lambda p, x: jax.vmap(lambda q, v: lax.cond(q, jnp.sin, jnp.cos, v))(p, x), [flags, floats(5, 3)])
    yield Case("cond_same", lambda p, x: lax.cond(p, lambda: x, lambda: x), [np.bool_(True), x])
    yield Case("cond_nested", lambda p, q, x: lax.cond(p, lambda v: lax.cond(q, jnp.sin, jnp.cos, v), jnp.tan, x),
               [np.bool_(True), np.bool_(False), x])
