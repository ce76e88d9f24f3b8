"""One small program per op of StableHLO that JAX emits, and per use of it."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, bools, floats, ints

POSITIVE = {"sqrt", "rsqrt", "log", "log1p"}
UNARY = ["abs", "ceil", "floor", "round", "sign", "neg", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos",
         "tan", "tanh", "logistic", "erf", "is_finite"]
BINARY = ["add", "sub", "mul", "div", "rem", "max", "min", "pow"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


def elementwise():
    for name in UNARY:
        low, high = (0.1, 4) if name in POSITIVE else (-0.9, 0.9) if name.startswith("a") else (-3, 3)
        yield Case(name, getattr(lax, name), [floats(3, 7, low=low, high=high)])
    yield Case("abs_int", lax.abs, [ints(12)])
    yield Case("sign_int", lax.sign, [ints(12)])
    yield Case("round_away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
               [np.array([-2.5, -1.5, -0.5, -0.4, 0.4, 0.49999997, 0.5, 1.5, 2.5, 8388609], np.float32)])
    yield Case("is_finite_special", lax.is_finite, [np.array([0, np.inf, -np.inf, np.nan], np.float32)])
    for name in BINARY:
        low = 0.2 if name == "pow" else -3
        yield Case(name, getattr(lax, name), [floats(3, 5, low=low, high=3), floats(3, 5, seed=1, low=low, high=3)])
    for name in ("add", "sub", "mul", "div", "rem", "max", "min"):
        yield Case(name + "_int", getattr(lax, name), [ints(40), ints(40, seed=1, low=1, high=5)])
        yield Case(name + "_negative_int", getattr(lax, name), [ints(40), ints(40, seed=1, low=-5, high=-1)])
    yield Case("add_u8", lax.add, [ints(9, low=0, high=255, dtype=np.uint8), ints(9, low=0, high=255, seed=1, dtype=np.uint8)])
    yield Case("div_u8", lax.div, [ints(9, low=0, high=255, dtype=np.uint8), ints(9, low=1, high=9, seed=1, dtype=np.uint8)])
    for dtype in (np.int8, np.int32, np.uint8):
        low = 0 if dtype == np.uint8 else -128
        for name in ("shift_left", "shift_right_logical") + (("shift_right_arithmetic",) if low else ()):
            yield Case(f"{name}_{np.dtype(dtype)}", getattr(lax, name),
                       [ints(30, low=low, high=127, dtype=dtype), np.arange(30).astype(dtype) % (8 * np.dtype(dtype).itemsize)])
        yield Case(f"not_{np.dtype(dtype)}", lax.bitwise_not, [ints(9, low=low, high=127, dtype=dtype)])
    yield Case("shift_too_far", lambda x: [f(x, jnp.int32(n)) for f in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)
                                           for n in (31, 32, 99)], [ints(9, low=-99, high=99)])
    yield Case("erf_inv", lax.erf_inv, [np.array([-1, -0.9999999, -0.99, -0.5, -1e-6, 0, 1e-3, 0.3, 0.9, 0.999, 0.999999, 1, 1.5],
                                                 np.float32)])
    yield Case("nextafter", lax.nextafter, [np.array([0, 1, -1, np.inf, 3e38, 1e-45], np.float32), np.array([1, 2, 2, 0, np.inf, 0], np.float32)],
               rtol=0, atol=0)
    yield Case("is_inf", jnp.isinf, [np.array([0, np.inf, -np.inf, np.nan], np.float32)])
    for name in COMPARE:
        yield Case(name, getattr(lax, name), [floats(4, 3), floats(4, 3, seed=1)])
        yield Case(name + "_int", getattr(lax, name), [ints(20, high=2), ints(20, seed=1, high=2)])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield Case(name + "_bool", getattr(lax, name), [bools(8), bools(8, seed=1)])
    yield Case("not_bool", lax.bitwise_not, [bools(8)])
    yield Case("select", lax.select, [bools(4, 3), floats(4, 3), floats(4, 3, seed=1)])
    yield Case("clamp", lax.clamp, [np.float32(-1), floats(4, 3), np.float32(0.5)])
    yield Case("clamp_full", lax.clamp, [floats(4, low=-2, high=0), floats(4, seed=1), floats(4, low=0, seed=2)])
    for name, to in (("i32", np.int32), ("i8", np.int8), ("bool", bool), ("f16", np.float16)):
        yield Case("convert_" + name, lambda x, to=to: x.astype(to), [floats(12, high=100)])
    yield Case("convert_from_bool", lambda x: x.astype(np.float32), [bools(9)])
    yield Case("reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), [floats(20)])
    yield Case("bfloat16", lambda a, b: (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(jnp.float32),
               [floats(4, 8), floats(8, 3)], rtol=2e-2, atol=2e-2)
    yield Case("gelu", jax.nn.gelu, [floats(3, 5)])
    yield Case("gelu_exact", lambda x: jax.nn.gelu(x, approximate=False), [floats(3, 5)])
    for name in ("silu", "softplus", "elu", "selu", "hard_swish", "relu6", "leaky_relu", "log_sigmoid"):
        yield Case(name, getattr(jax.nn, name), [floats(3, 5)])


def shapes():
    yield Case("iota", lambda: lax.broadcasted_iota(np.int32, (3, 4), 1), [])
    yield Case("arange", lambda: jnp.linspace(0.0, 1.0, 7), [])
    yield Case("reshape", lambda x: x.reshape(4, -1), [floats(2, 3, 4)])
    yield Case("transpose", lambda x: jnp.transpose(x, (2, 0, 1)), [floats(2, 3, 4)])
    yield Case("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), [floats(3)])
    yield Case("broadcast_one", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (0, 2)), [floats(2, 1)])
    yield Case("slice", lambda x: lax.slice(x, (1, 0), (5, 6), (2, 3)), [floats(6, 7)])
    yield Case("slice_nothing", lambda x: lax.slice(x, (1, 3), (5, 3)), [floats(6, 7)])
    yield Case("reverse", lambda x: lax.rev(x, (0, 2)), [floats(2, 3, 4)])
    yield Case("concatenate", lambda a, b, c: lax.concatenate([a, b, c], 1), [floats(2, 1), floats(2, 3), floats(2, 2)])
    for name, config in (("edges", [(1, 2, 0), (0, 3, 0)]), ("interior", [(0, 0, 2), (1, 1, 1)]),
                         ("negative", [(-1, 2, 0), (1, -2, 0)]), ("mixed", [(-1, -2, 2), (3, -1, 1)])):
        yield Case("pad_" + name, lambda x, v, c=config: lax.pad(x, v, c), [floats(4, 5), np.float32(7)])
        yield Case("pad_constant_" + name, lambda x, c=config: lax.pad(x, np.float32(7), c), [floats(4, 5)])
    yield Case("pad_int", lambda x: lax.pad(x, np.int32(3), [(1, 1, 1)]), [ints(4)])
    yield Case("roll", lambda x: jnp.roll(x, 2, 1), [floats(3, 5)])
    yield Case("tile", lambda x: jnp.tile(x, (2, 3)), [floats(2, 2)])
    yield Case("triu", jnp.triu, [floats(4, 4)])
    yield Case("meshgrid", lambda a, b: jnp.meshgrid(a, b), [floats(3), floats(4)])
    yield Case("pad_reflect", lambda x: jnp.pad(x, 2, mode="reflect"), [floats(5, 5)])
    yield Case("repeat", lambda x: jnp.repeat(x, 3, 1), [floats(2, 3)])


def reductions():
    for name in ("sum", "prod", "max", "min", "mean", "std", "argmax", "argmin"):
        for axis in (None, 0, 1, -1):
            yield Case(f"{name}_{axis}", lambda x, f=getattr(jnp, name), a=axis: f(x, axis=a), [floats(4, 3, 5)])
    for name in ("sum", "prod", "max", "min", "argmax", "argmin"):
        yield Case(name + "_int", lambda x, f=getattr(jnp, name): f(x, axis=1), [ints(4, 6, low=-3, high=3)])
    yield Case("argmax_ties", lambda x: jnp.argmax(x, 1), [ints(6, 9, low=0, high=2).astype(np.float32)])
    yield Case("argmax_nan", lambda x: jnp.argmax(x, 0), [np.array([[1, np.nan], [np.nan, 2], [3, np.nan]], np.float32)])
    yield Case("sum_none", lambda x: jnp.sum(x, 1), [floats(3, 0)])
    yield Case("max_initial", lambda x: jnp.max(x, 1, initial=0.5), [floats(5, 4)])
    yield Case("max_none", lambda x: jnp.max(x, 1, initial=0.5), [floats(5, 0)])
    yield Case("sum_initial", lambda x: lax.reduce(x, np.float32(3), lax.add, (0,)), [floats(5, 4)])
    yield Case("sum_two", lambda x, y: lax.reduce((x, y), (np.float32(0), np.int32(1)),
                                                  lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), [floats(5, 4), ints(5, 4)])
    yield Case("any", lambda x: jnp.any(x, 1), [bools(5, 3)])
    yield Case("all", lambda x: jnp.all(x, 0), [bools(2, 6)])
    yield Case("logsumexp", lambda x: jax.nn.logsumexp(x, 1), [floats(4, 9)])
    yield Case("cumsum", lambda x: jnp.cumsum(x, 1), [floats(3, 9)])
    yield Case("cumsum_int", lambda x: jnp.cumsum(x, 0), [ints(3, 9)])
    yield Case("cumprod", lambda x: jnp.cumprod(x, 1), [floats(3, 9)])
    yield Case("cummax", lambda x: lax.cummax(x, 1), [floats(3, 9)])
    yield Case("cumsum_reverse", lambda x: lax.cumsum(x, 1, reverse=True), [floats(3, 9)])


def windows():
    uses = {"valid": ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", None, None), "same": ((1, 3, 3, 1), (1, 2, 2, 1), "SAME", None, None),
            "explicit": ((1, 3, 2, 1), (1, 1, 2, 1), [(0, 0), (2, 1), (0, 1), (0, 0)], None, None),
            "wide": ((1, 2, 2, 1), (1, 1, 1, 1), [(0, 0), (4, 3), (0, 0), (0, 0)], None, None),
            "negative": ((1, 2, 2, 1), (1, 1, 1, 1), [(0, 0), (-1, 3), (0, -2), (0, 0)], None, None),
            "dilated": ((1, 2, 3, 1), (1, 1, 2, 1), "VALID", None, (1, 3, 2, 1)),
            "base": ((1, 2, 2, 1), (1, 1, 1, 1), "VALID", (1, 2, 3, 1), None),
            "all": ((2, 2, 2, 2), (1, 2, 1, 1), "VALID", None, None)}
    for use, (size, stride, padding, base, dilation) in uses.items():
        for name, init, f, x in (("max", -np.inf, lax.max, floats(2, 8, 7, 3)), ("sum", 0.0, lax.add, floats(2, 8, 7, 3)),
                                 ("min", np.inf, lax.min, floats(2, 8, 7, 3)), ("prod", 1.0, lax.mul, floats(2, 8, 7, 3)),
                                 ("sum_int", 0, lax.add, ints(2, 8, 7, 3)), ("sum_from_2", 2.0, lax.add, floats(2, 8, 7, 3))):
            def function(x, init=init, f=f, size=size, stride=stride, padding=padding, base=base, dilation=dilation):
                return lax.reduce_window(x, np.array(init, x.dtype), f, size, stride, padding, base, dilation)
            if init == 2.0 and use not in ("valid", "dilated", "all"):
                continue  # does the padding count? By the specification yes, for JAX's CPU backend no.
            yield Case(f"window_{name}_{use}", function, [x])


def contractions():
    for name, a, b in (("vectors", (5,), (5,)), ("matrix_vector", (3, 5), (5,)), ("matrices", (3, 5), (5, 4)),
                       ("batched", (2, 3, 5), (2, 5, 4)), ("broadcast", (2, 1, 3, 5), (4, 5, 6))):
        yield Case("matmul_" + name, jnp.matmul, [floats(*a), floats(*b, seed=1)])
    for spec, a, b in (("ij,kj->ik", (3, 4), (5, 4)), ("bhqd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 3, 5)), ("ij,kl->ijkl", (2, 3), (4, 2)),
                       ("abc,cab->b", (2, 3, 4), (4, 2, 3)), ("ij,ij->ij", (3, 4), (3, 4)), ("ijk,jkl->il", (2, 3, 4), (3, 4, 5))):
        yield Case("einsum_" + spec.replace(",", "_").replace("->", "_"), lambda x, y, s=spec: jnp.einsum(s, x, y),
                   [floats(*a), floats(*b, seed=1)])
    yield Case("matmul_int", jnp.matmul, [ints(3, 5), ints(5, 4, seed=1)])
    yield Case("matmul_preferred", lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
               [ints(3, 50, low=-100, high=100, dtype=np.int8), ints(50, 4, low=-100, high=100, seed=1, dtype=np.int8)])
    yield Case("matmul_empty", jnp.matmul, [floats(3, 0), floats(0, 4)])

    def conv(name, x, w, dims=("NHWC", "HWIO", "NHWC"), strides=None, padding="SAME", lhs=None, rhs=None, groups=1):
        strides = strides or (1,) * (x.ndim - 2)
        return Case("conv_" + name, lambda x, w: lax.conv_general_dilated(
            x, w, strides, padding, lhs_dilation=lhs, rhs_dilation=rhs, dimension_numbers=dims, feature_group_count=groups), [x, w])
    image, kernel = floats(2, 9, 8, 4), floats(3, 3, 4, 6)
    yield conv("same", image, kernel)
    yield conv("strides", image, kernel, strides=(2, 3))
    yield conv("valid", image, kernel, padding="VALID")
    yield conv("explicit", image, kernel, padding=[(2, 1), (0, 3)])
    cut = conv("negative_padding", image, kernel, padding=[(-1, 1), (0, -2)])
    cut.reference = conv("cut", image, kernel, padding=[(0, 1), (0, 0)]).function
    cut.reference = lambda x, w, f=cut.reference: f(x[:, 1:, :-2], w)  # JAX's CPU backend reads what is not there
    yield cut
    yield conv("dilated", image, kernel, rhs=(2, 3))
    yield conv("spread", image, kernel, lhs=(2, 3), padding=[(1, 2), (2, 2)])
    yield conv("groups", image, floats(3, 3, 2, 6), groups=2)
    yield conv("depthwise", image, floats(3, 3, 1, 4), groups=4)
    yield conv("channels_first", floats(2, 4, 9, 8), floats(6, 4, 3, 3), dims=("NCHW", "OIHW", "NCHW"))
    yield conv("mixed", floats(9, 2, 4, 8), floats(4, 6, 3, 3), dims=("HNCW", "IOHW", "CNHW"))
    yield conv("1d", floats(2, 9, 4), floats(3, 4, 5), dims=("NWC", "WIO", "NWC"))
    yield conv("3d", floats(1, 5, 6, 4, 2), floats(2, 3, 2, 2, 3), dims=("NDHWC", "DHWIO", "NDHWC"))
    yield conv("0d", floats(3, 4), floats(4, 5), dims=lax.ConvDimensionNumbers((0, 1), (1, 0), (0, 1)), padding=[])
    yield Case("conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
               [image, kernel])
    yield Case("conv_transpose_kernel", lambda x, w: lax.conv_transpose(
        x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), transpose_kernel=True), [image, floats(3, 3, 6, 4)])


def indexing():
    table, places = floats(6, 5, 4), ints(3, 2, low=0, high=5)
    yield Case("take_0", lambda x, i: jnp.take(x, i, 0), [table, places])
    yield Case("take_1", lambda x, i: jnp.take(x, i, 1), [table, np.minimum(places, 4)])
    yield Case("take_2", lambda x, i: x[:, :, i], [table, np.minimum(places, 3)])
    yield Case("take_outside", lambda x, i: jnp.take(x, i, 0), [table, ints(9, low=-9, high=9)])
    yield Case("take_clip", lambda x, i: jnp.take(x, i, 0, mode="clip"), [table, ints(9, low=-9, high=9)])
    yield Case("index_pairs", lambda x, i, j: x[i, j], [table, ints(7, low=0, high=5), ints(7, low=0, high=4, seed=1)])
    yield Case("index_apart", lambda x, i, j: x[i, :, j], [table, ints(7, low=0, high=5), ints(7, low=0, high=3, seed=1)])
    yield Case("index_static", lambda x: x[2, :, [0, 3]], [table])
    yield Case("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), [floats(4, 5), ints(4, 3, low=0, high=4)])
    yield Case("gather_windows", lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(x, (k, 1), (2, 3)))(i),
               [floats(6, 5), ints(4, low=-2, high=8)])
    yield Case("gather_batch", lambda x, i: jax.vmap(lambda r, k: r[k])(x, i), [floats(4, 5), ints(4, low=0, high=4)])
    for name, at in (("inside", (1, 2)), ("outside", (9, -4))):
        where = [np.int32(a) for a in at]
        yield Case("dynamic_slice_" + name, lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), [floats(5, 6), *where])
        yield Case("dynamic_update_slice_" + name, lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
                   [floats(5, 6), floats(2, 3, seed=1), *where])
    yield Case("dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), [floats(5, 6), np.int32(4)])
    yield Case("update_row", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), [floats(5, 6), floats(1, 6), np.int32(3)])
    yield Case("one_hot", lambda i: jax.nn.one_hot(i, 5), [ints(6, low=-1, high=6)])
    yield Case("diagonal", jnp.diagonal, [floats(4, 4)])


def unsigned():
    """Integers without sign, inside of programs: each function on numbers that have come from, and go to, i32."""
    a, b = ints(40, low=-2**31, high=2**31 - 1), ints(40, low=-2**31, high=2**31 - 1, seed=1)
    functions = {"add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "max": lax.max, "min": lax.min,
                 "and": lax.bitwise_and, "xor": lax.bitwise_xor, "less": lambda x, y: (x < y).astype(x.dtype),
                 "left": lambda x, y: x << (y & 31), "right": lambda x, y: x >> (y & 31), "not": lambda x, y: ~x | -y,
                 "sum": lambda x, y: jnp.sum(x) * jnp.max(y) + jnp.min(y), "sort": lambda x, y: jnp.sort(x),
                 "where": lambda x, y: jnp.where(x > 7, x, y).reshape(4, 10).T, "float": lambda x, y: x.astype(np.float32).astype(x.dtype) // 2,
                 "product": lambda x, y: x.reshape(5, 8) @ y.reshape(8, 5), "loop": lambda x, y: lax.fori_loop(0, 5, lambda i, v: v * 5 + y, x),
                 "places": lambda x, y: x.at[y % 40].add(y)}
    for name, f in functions.items():
        for dtype in (np.uint16, np.uint32) if name in ("add", "right", "places") else (np.uint32,):
            yield Case(f"unsigned_{name}_{np.dtype(dtype)}", lambda x, y, f=f, t=dtype: f(x.astype(t), y.astype(t)).astype(np.int32), [a, b])
    x = np.sort(floats(9))
    yield Case("searchsorted", lambda x, v: (jnp.searchsorted(x, v), jnp.searchsorted(x, v, side="right")), [x, floats(3, 5, seed=1)])
    special = np.array([-np.inf, -1, -0.0, 0.0, 2, np.inf, np.nan, np.nan], np.float32)
    for side in ("left", "right"):
        yield Case(f"searchsorted_special_{side}", lambda x, v, s=side: jnp.searchsorted(x, v, side=s), [special, special[::-1].copy()])
    yield Case("interp", lambda v, x, y: jnp.interp(v, x, y), [floats(20, seed=2, low=-3, high=3), x, floats(9, seed=3)])
    yield Case("digitize", jnp.digitize, [floats(20), x])
    yield Case("histogram", lambda x: jnp.histogram(x, bins=6, range=(-2.0, 2.0))[0], [floats(40)])


def cases():
    return [c for family in (unsigned, elementwise, shapes, reductions, windows, contractions, indexing) for c in family()]
