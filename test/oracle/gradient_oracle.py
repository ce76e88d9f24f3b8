"""Judges the reverse rules of the records by JAX: differentiates what the record's `numpy` expression says, with JAX's functions in the place
of NumPy's, or JAX's own form of the op, and compares the operands' gradients in f64.

    gradient_oracle.py --cases build/bin/oracle-cases [--seed N] [--count N] [--only OP] [--inject]

Prints how many cases of each op were judged. Exit status 1 if a gradient differs, or an op is not judged that is not in UNJUDGED. With --inject
one element of each gradient was made wrong, and it is an error if a case goes unnoticed.
"""
import argparse
import sys
import types
import warnings

import numpy as np

import array_ops
import network_ops
import numpy_oracle
import references  # configures JAX
from jax import lax
import jax
import jax.numpy as jnp

TOLERANCE = {"f64": (1e-9, 1e-9)}
# Ops without a gradient that is judged here, and why. What differences say of them is in test/unit/ir/GradientTest.cpp.
UNJUDGED = {"nextafter": "JAX has no derivative of it"}  # of other ops it lacks some calls


class Filled:
    """An array that definitions fill element by element, which JAX's own cannot be."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        return getattr(self.value, name)

    def __getitem__(self, at):
        return self.value[at]

    def __setitem__(self, at, value):
        self.value = self.value.at[at].set(jnp.asarray(value))

    def __len__(self):
        return len(self.value)


for name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "pow", "matmul"):
    setattr(Filled, f"__{name}__", lambda self, *other, name=name: getattr(self.value, f"__{name}__")(*other))


class Functions:
    """NumPy's names: JAX's functions, and NumPy's where it has none or where sizes are computed."""

    @staticmethod
    def zeros(shape, dtype=np.float64):
        return Filled(jnp.zeros(shape, dtype))

    empty = zeros
    subtract, cumsum = np.subtract, staticmethod(lambda x, *rest, **options: (np if isinstance(x, (list, tuple)) else jnp).cumsum(x, *rest, **options))
    max = staticmethod(jnp.max)  # definitions ask whether they were given it

    def __getattr__(self, name):
        found = getattr(jnp, name, None) or getattr(np, name)
        return found if name not in ("mean", "sum") else lambda x, *rest, **options: found(x.value if isinstance(x, Filled) else x, *rest, **options)


FUNCTIONS = Functions()


def with_jax(module):
    """A module's functions with JAX's in the place of NumPy's."""
    names = {**vars(module), "np": FUNCTIONS}
    for name, value in vars(module).items():
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
    return names


SCOPE = {**numpy_oracle.SCOPE, "np": FUNCTIONS}
for scope in (with_jax(array_ops), with_jax(network_ops)):
    SCOPE.update({name: scope[name] for name in scope["DEFINITIONS"]})
SCOPE["adaptive_pool"] = numpy_oracle.on_images(SCOPE["adaptive_pool"])


class Unknown(Exception):
    """A call that JAX does not know."""


# JAX's own forms, where the expression is of what it lacks or of views.
FORMS = {"stop_gradient": lambda c: lax.stop_gradient(c.x), "erf": lambda c: jax.scipy.special.erf(c.x), "gelu": lambda c: jax.nn.gelu(c.x, approximate=False),
         "conv_transpose": references.JAX["conv_transpose"]}


def form(*ops):
    def register(function):
        for op in ops:
            FORMS[op] = function
        return function
    return register


def written(place, values, mode):
    return {"set": place.set, "add": place.add}[mode](values)


@form("put_along_axis")
def put_along_axis(c):
    axis, shape = c.axis % c.x.ndim, list(c.x.shape)
    shape[axis] = c.indices.shape[axis]
    at = list(np.indices(shape))
    at[axis] = np.broadcast_to(c.indices.astype(np.int64), shape)
    return written(c.x.at[tuple(at)], jnp.broadcast_to(c.values, shape), c.mode)


@form("scatter_nd")
def scatter_nd(c):
    return written(c.x.at[tuple(np.moveaxis(c.indices.astype(np.int64), -1, 0))], c.updates, c.mode)


@form("scatter")
def scatter(c):
    axis = c.axis % c.x.ndim
    slices = jnp.moveaxis(c.updates, range(axis, axis + c.indices.ndim), range(c.indices.ndim))
    return jnp.moveaxis(written(jnp.moveaxis(c.x, axis, 0).at[c.indices.astype(np.int64)], slices, c.mode), 0, axis)


@form("dynamic_slice")
def dynamic_slice(c):
    return lax.dynamic_slice(c.x, list(np.maximum(c.starts, 0)), c.sizes)


@form("dynamic_update_slice")
def dynamic_update_slice(c):
    return lax.dynamic_update_slice(c.x, c.update, list(np.maximum(c.starts, 0)))


@form("top_k")
def top_k(c):
    order = jnp.argsort(c.x, axis=c.axis, descending=c.largest, stable=True)
    indices = jnp.take(order, np.arange(c.k), axis=c.axis)
    return jnp.take_along_axis(c.x, indices, c.axis), indices


def images_first(f):
    def either(c):
        return jnp.moveaxis(f(jnp.moveaxis(c.x, -1, 1), c), 1, -1) if c.channels_last else f(c.x, c)
    return either


def convolved(x, w, c):
    n = x.ndim - 2
    return lax.conv_general_dilated(x, w, c.strides or [1] * n, list(zip(c.pad_low or [0] * n, c.pad_high or [0] * n)),
                                    rhs_dilation=c.dilations or [1] * n, feature_group_count=c.groups)


FORMS["conv"] = images_first(lambda x, c: convolved(x, c.w, c))


@form("conv_by_weights")
def conv_by_weights(c):
    """What is differentiated is the convolution whose derivative by its weights this is."""
    shape = (c.given.shape[1], c.x.shape[1] // c.groups, *c.window)
    return jax.vjp(lambda w: convolved(c.x, w, c), jnp.zeros(shape))[1](c.given)[0]


def pooled(x, c, start, combine, high=None):
    n = x.ndim - 2
    strides, low, high = c.strides or c.window, c.pad_low or [0] * n, high or c.pad_high
    high = numpy_oracle.extended(x, c.window, strides, low, high, c.dilations if "dilations" in c.attrs else None, c.ceil_mode)
    return lax.reduce_window(x, start, combine, (1, 1, *c.window), (1, 1, *strides), [(0, 0), (0, 0), *zip(low, high)],
                             window_dilation=(1, 1, *((c.attrs.get("dilations") or None) or [1] * n)))


FORMS["max_pool"] = images_first(lambda x, c: pooled(x, c, -np.inf, lax.max))
FORMS["sum_pool"] = images_first(lambda x, c: pooled(x, c, 0.0, lax.add))


@form("avg_pool")
@images_first
def avg_pool(x, c):
    counts = numpy_oracle.avg_pool(np.ones(x.shape), c.window, c.strides, c.pad_low, c.pad_high, c.dilations, c.count_include_pad, c.ceil_mode)
    sums = numpy_oracle.sum_pool(np.ones(x.shape), c.window, c.strides, c.pad_low, c.pad_high, c.dilations, c.ceil_mode)
    return pooled(x, c, 0.0, lax.add) * (counts / sums)  # avg of ones over their sum: one over what is divided by


def judged_by_jax(op, case, data):
    """Differences between the gradients and JAX's, or None."""
    arrays = [numpy_oracle.read(data, e) for e in case["inputs"]]
    wanted = [i for i, e in enumerate(case["inputs"]) if e["dtype"] == "f64"]
    given = [numpy_oracle.read(data, e) for e in case["cotangents"]]
    floats = [i for i, e in enumerate(case["cotangents"]) if e["dtype"] in numpy_oracle.FLOATS]

    def function(*operands):
        values = list(arrays)
        for i, value in zip(wanted, operands):
            values[i] = value
        if op["op"] in FORMS:
            names, left = {}, list(values)
            for spec in op["operands"]:
                names[spec["name"]] = left.pop(0) if left else None
            results = FORMS[op["op"]](references.Case(names, {}, numpy_oracle.attributes(case)))
            if results is None:
                raise Unknown
            results = results if isinstance(results, (tuple, list)) else [results]
        else:
            results = numpy_oracle.evaluate(op, case, values, SCOPE)
            results = results if isinstance(results, (tuple, list)) else [results]
        return [jnp.asarray(result.value if isinstance(result, Filled) else result, jnp.float64) for result in (results[i] for i in floats)]

    results, pull = jax.vjp(function, *[jnp.asarray(arrays[i]) for i in wanted])
    gradients = pull([jnp.asarray(given[i].astype(np.float64)) for i in floats])
    for i, want in zip(wanted, gradients):
        entry, want = case["gradients"][i], np.asarray(want)
        got = np.zeros(want.shape) if entry is None else numpy_oracle.read(data, entry)
        if got.shape == want.shape:
            # Where there is no derivative (the deviation of equal numbers), JAX says NaN; but where the result is NaN, both do.
            want = np.where(np.isnan(want) & ~np.isnan(got), 0, want)
        problem = numpy_oracle.difference_of(got, "f64", want, "JAX", TOLERANCE)
        if problem:
            return f"gradient of operand {i} {problem}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True, help="the program oracle-cases")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--count", type=int, default=3, help="cases per op")
    parser.add_argument("--only", help="one op")
    parser.add_argument("--inject", action="store_true")
    args = parser.parse_args()
    manifest, data = numpy_oracle.cases(args, "gradients")
    failures, unnoticed, judged, noticed, unknown = [], [], 0, 0, 0
    for op in manifest["ops"]:
        if not op["cases"] or op["op"] in UNJUDGED or args.only not in (None, op["op"]):
            continue
        unknown_before = unknown
        for case in op["cases"]:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    problem = judged_by_jax(op, case, data)
                except (Unknown, NotImplementedError):
                    unknown += 1
                    continue
                except Exception as error:
                    problem = f"JAX refuses: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
            isWrong = any(g and g["bytes"] for g in case["gradients"])
            judged += isWrong
            if isWrong and not problem:
                unnoticed.append(f"{op['op']}{numpy_oracle.describe(case)}")
            if problem:
                noticed += 1
                failures.append(f"{op['op']}{numpy_oracle.describe(case)}: {problem}")
        if unknown - unknown_before == len(op["cases"]) and not args.inject:
            failures.append(f"{op['op']}: JAX judges no case of it")
        print(f"{op['op']:28}{len(op['cases']):6}")
    if args.inject:
        print(f"{noticed} of {judged} cases with a wrong gradient were noticed")
        sys.exit(f"not noticed: {', '.join(unnoticed) or 'some case'}" if unnoticed or noticed != judged else 0)
    for failure in failures[:200]:
        print("FAILED", failure, file=sys.stderr)
    print(f"{judged} cases with a gradient, {len(failures)} failed, {unknown} not known to JAX")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
