"""Sorting and writing at computed places."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, bools, floats, ints

SPECIAL = np.array([[0.0, -0.0, np.nan, 1, -np.inf, np.inf, -1, np.nan, 0.0, -0.0, 2, 1]], np.float32).reshape(2, 6)


def sorting():
    x, n = floats(3, 7), ints(4, 6, high=3)
    for axis in (0, 1):
        yield Case(f"sort_{axis}", lambda x, a=axis: jnp.sort(x, axis=a), [x])
        yield Case(f"sort_descending_{axis}", lambda x, a=axis: jnp.sort(x, axis=a, descending=True), [n])
        yield Case(f"argsort_{axis}", lambda x, a=axis: jnp.argsort(x, axis=a), [n])
        yield Case(f"argsort_descending_{axis}", lambda x, a=axis: jnp.argsort(x, axis=a, descending=True), [n])
    for dtype in (np.float16, np.int8, np.uint8, np.int16):
        yield Case(f"sort_{np.dtype(dtype)}", jnp.sort, [np.asarray(ints(9, low=0, high=90), dtype)])
    yield Case("sort_bfloat16", lambda x: jnp.argsort(x.astype(jnp.bfloat16)), [floats(9)])
    yield Case("sort_bool", jnp.sort, [bools(9)])
    yield Case("sort_special", lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x, descending=True), jnp.argsort(x, descending=True)),
               [SPECIAL])
    yield Case("sort_many", lambda a, b: lax.sort((a, b, a * 2), num_keys=1), [n, floats(4, 6)])
    yield Case("sort_two_keys", lambda a, b, c: lax.sort((a, b, c), num_keys=2), [n, ints(4, 6, seed=2, high=2), floats(4, 6)])
    yield Case("sort_three_keys", lambda a, b, c: lax.sort((a, b, c), dimension=0, num_keys=3),
               [ints(9, low=0, high=1), ints(9, low=0, high=1, seed=2), floats(9)])
    yield Case("sort_special_first", lambda a, b: lax.sort((a, b), num_keys=2), [SPECIAL, ints(2, 6)])
    yield Case("lexsort", lambda a, b: jnp.lexsort((a, b)), [floats(9), ints(9, low=0, high=2)])
    yield Case("median", jnp.median, [floats(9)])
    yield Case("quantile", lambda x: jnp.quantile(x, 0.3, axis=1), [x])
    for name, value in (("float", x), ("int", n), ("special", SPECIAL)):
        yield Case(f"top_k_{name}", lambda x: lax.top_k(x, 3), [value])
    yield Case("top_k_vmapped", lambda x: jax.vmap(lambda r: lax.top_k(r, 2))(x), [floats(2, 3, 5)])


def scatters():
    x, rows = floats(5, 4), np.array([3, 0, -1, 3, 9, -7], np.int32)  # twice the same, from the end, outside
    for name in ("set", "add", "multiply", "min", "max", "subtract"):
        for mode in ("drop", "clip"):
            yield Case(f"{name}_{mode}", lambda x, i, u, f=name, m=mode: getattr(x.at[i], f)(u, mode=m), [x, rows, floats(6, 4, seed=1)])
        yield Case(f"{name}_int", lambda x, i, u, f=name: getattr(x.at[i], f)(u), [ints(9), rows, ints(6)])
    yield Case("set_elements", lambda x, i, j: x.at[i, j].set(7.0), [x, rows, np.array([0, 3, 1, -4, 1, 0], np.int32)])
    yield Case("add_columns", lambda x, j, u: x.at[:, j].add(u), [x, np.array([1, 1, 3], np.int32), floats(5, 3)])
    yield Case("add_middle", lambda x, j, u: x.at[:, j].add(u), [floats(2, 5, 3), np.array([[1, 1], [4, 0]], np.int32), floats(2, 2, 2, 3)])
    yield Case("set_apart", lambda x, i, j, u: x.at[i, :, j].set(u), [floats(3, 2, 4), ints(5, low=0, high=2), ints(5, low=0, high=3), floats(5, 2)])
    yield Case("set_slice", lambda x, u: x.at[1:4, ::2].set(u), [x, floats(3, 2)])
    yield Case("set_row", lambda x: x.at[1].set(0.0), [x])
    yield Case("set_row_outside", lambda x: x.at[7].set(0.0), [x])
    yield Case("set_at_argument", lambda x, i: x.at[i, 2].set(5.0), [x, np.int32(-2)])
    yield Case("set_bools", lambda x, i: (x.at[i].set(True), x.at[i].max(False), x.at[i].min(False)), [bools(9), rows])
    yield Case("set_nothing", lambda x, i, u: x.at[i].set(u), [x, np.zeros(0, np.int32), floats(0, 4)])
    yield Case("windows", lambda x, at, u: lax.scatter_add(x, at, u, lax.ScatterDimensionNumbers((1, 2), (), (0, 1))),
               [floats(6, 5), np.array([[0, 1], [3, 2], [-1, 0], [5, 3], [4, 3]], np.int32), floats(5, 2, 2)])
    yield Case("batched", lambda x, i, u: jax.vmap(lambda r, j, v: r.at[j].add(v))(x, i, u), [floats(3, 6), ints(3, 4, low=0, high=7), floats(3, 4)])
    yield Case("batched_rows", lambda x, i, u: jax.vmap(lambda r, j, v: r.at[j].set(v))(x, i, u),
               [floats(3, 6, 2), np.array([[0, 5], [1, 9], [-6, 2]], np.int32), floats(3, 2, 2)])
    yield Case("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 4), [floats(7, 2), ints(7, low=0, high=5)])
    yield Case("bincount", lambda i: jnp.bincount(i, length=5), [ints(30, low=0, high=4)])
    yield Case("put_along_axis", lambda x, i: jnp.put_along_axis(x, i, 9.0, 1, inplace=False), [x, ints(5, 2, low=0, high=3)])
    yield Case("diagonal", lambda x: x.at[jnp.diag_indices(4)].set(1.0), [floats(4, 4)])
    yield Case("gradient_of_take", lambda x, i: jax.grad(lambda x: jnp.sum(jnp.take(x, i, 0) ** 2))(x), [x, rows[:4]])


def cases():
    return [c for family in (sorting, scatters) for c in family()]
