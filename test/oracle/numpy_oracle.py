"""Judges the reference interpreter: evaluates every op's `numpy` expression on seeded random cases and compares.

    numpy_oracle.py --cases build/bin/oracle-cases [--seed N] [--count N] [--inject]

The expression sees operands and attributes by name, floats widened to f64, so that the reference rounds once, at the end.
Prints how many cases each op has with each element type. Exit status 1 if a result differs, or an op has no case or no
expression. With --inject one element of each result was made wrong on purpose, and it is an error if an op and type goes
unnoticed.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np

import array_ops
import network_ops

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
          "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
FLOATS = ("f32", "f64", "f16", "bf16")
# Relative and absolute: a few roundings of the type that the op computes in, and one of the result's.
TOLERANCE = {"f64": (1e-12, 1e-12), "f32": (4e-6, 2e-6), "f16": (1.5e-3, 1e-5), "bf16": (1.2e-2, 1e-5)}


# --- Ops that NumPy does not have, from their definitions ------------------------------------------------------------------
def windows(x, size, strides, low, high, dilations, fill):
    """x [batch, channels, spatial...] as [batch, channels, out..., window...]."""
    n = len(size)
    low, high, dilations = low or [0] * n, high or [0] * n, dilations or [1] * n
    padded = np.pad(x, [(0, 0), (0, 0)] + list(zip(low, high)), constant_values=fill)
    reach = [(s - 1) * d + 1 for s, d in zip(size, dilations)]
    axes = tuple(range(2, 2 + n))
    view = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axes)
    steps = [slice(None)] * 2 + [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    return view[tuple(steps)]


def on_images(f):
    """f of images [batch, channels, spatial...], also of those with their channels last."""
    def either(x, *args):
        *args, channels_last = args
        return np.moveaxis(f(np.moveaxis(x, -1, 1), *args), 1, -1) if channels_last else f(x, *args)
    return either


def conv(x, w, strides, pad_low, pad_high, dilations, groups):
    n = x.ndim - 2
    view = windows(x, w.shape[2:], strides or [1] * n, pad_low, pad_high, dilations, 0)
    letters = "uvw"[:n]
    out = "xyz"[:n]
    parts = [np.einsum(f"bc{out}{letters},fc{letters}->bf{out}", v, f)
             for v, f in zip(np.split(view, groups, axis=1), np.split(w, groups, axis=0))]
    return np.concatenate(parts, axis=1)


def extended(x, window, strides, low, high, dilations, ceil_mode):
    """The padding behind, with what the last window of ceil_mode lacks."""
    n = len(window)
    low, high, dilations = low or [0] * n, list(high or [0] * n), dilations or [1] * n
    for i in range(n if ceil_mode else 0):
        size, reach = x.shape[2 + i], (window[i] - 1) * dilations[i] + 1
        starts = range(0, size + low[i], strides[i])
        last = next(s for s in reversed(starts) if s - strides[i] + reach <= size + low[i] + high[i] - 1 or s == 0)
        high[i] = max(high[i], last + reach - size - low[i])
    return high


def max_pool(x, window, strides, pad_low, pad_high, dilations, ceil_mode=False):
    pad_high = extended(x, window, strides or window, pad_low, pad_high, dilations, ceil_mode)
    lowest = (-np.inf if x.dtype.kind == "f" else False if x.dtype.kind == "b" else np.iinfo(x.dtype).min)
    view = windows(x, window, strides or window, pad_low, pad_high, dilations, lowest)
    return view.max(axis=tuple(range(-len(window), 0)))


def sum_pool(x, window, strides, pad_low, pad_high, dilations, ceil_mode=False):
    pad_high = extended(x, window, strides or window, pad_low, pad_high, dilations, ceil_mode)
    view = windows(x, window, strides or window, pad_low, pad_high, dilations, 0)
    return view.sum(axis=tuple(range(-len(window), 0)))


def avg_pool(x, window, strides, pad_low, pad_high, dilations, count_include_pad, ceil_mode):
    n = len(window)
    total = sum_pool(x, window, strides, pad_low, pad_high, dilations, ceil_mode)
    ones = np.ones_like(x)
    high = extended(x, window, strides or window, pad_low, pad_high, dilations, ceil_mode)
    if count_include_pad:
        ones = np.pad(ones, [(0, 0)] * 2 + list(zip(pad_low or [0] * n, pad_high or [0] * n)), constant_values=1)
        high = [h - p for h, p in zip(high, pad_high or [0] * n)]
        pad_low = None
    return total / sum_pool(ones, window, strides, pad_low, high, dilations)


SCOPE = {"np": np, "math": math, **array_ops.DEFINITIONS, **network_ops.DEFINITIONS}
SCOPE.update({f.__name__: on_images(f) for f in (conv, max_pool, sum_pool, avg_pool, network_ops.adaptive_pool)})


# --- Cases -----------------------------------------------------------------------------------------------------------------
def read(data, entry):
    raw = data[entry["offset"]:entry["offset"] + entry["bytes"]]
    return np.frombuffer(raw, DTYPES[entry["dtype"]]).reshape(entry["shape"])


def widen(op, tensor, dtype):
    if dtype in FLOATS or op["compute"] == "Float" or op["composite"]:
        return tensor.astype(np.float64)
    return tensor


def attributes(case):
    values = {}
    for name, value in (case.get("attrs") or {}).items():
        if isinstance(value, dict):
            value = DTYPES[value["dtype"]] if "dtype" in value else float(value["float"])
        elif isinstance(value, list) and name in ("axis", "permutation", "shape"):
            value = tuple(value)
        values[name] = value
    return values


def evaluate(op, case, values, scope):
    """The record's expression of these operands, in order; absent ones are left out."""
    scope, values = dict(scope), list(values)
    scope["types"] = {s["name"]: e["dtype"] for s, e in zip(op.get("operands") or [], case["inputs"])}
    scope["result_type"] = DTYPES[case["outputs"][0]["dtype"]]
    scope["dtypes"] = {name: DTYPES[dtype] for name, dtype in scope["types"].items()}
    for spec in op.get("operands") or []:
        absent = spec["optional"] and not values
        scope[spec["name"]] = values if spec["variadic"] else None if absent else values.pop(0)
    scope.update(attributes(case))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(op["numpy"], scope)  # the expressions are the project's own


def expected(op, case, data):
    want = evaluate(op, case, [widen(op, read(data, e), e["dtype"]) for e in case["inputs"]], SCOPE)
    return [np.asarray(w) for w in (want if isinstance(want, (tuple, list)) else [want])]


def difference(op, case, data):
    """What is wrong with the interpreter's result, or None."""
    if "error" in case:
        return f"not evaluated, though infer accepts it: {case['error']}"
    want = expected(op, case, data)
    if len(want) != len(case["outputs"]):
        return f"{len(case['outputs'])} results, NumPy has {len(want)}"
    problems = [difference_of(read(data, entry), entry["dtype"], w) for entry, w in zip(case["outputs"], want)]
    return next((f"result {i} {p}" if len(want) > 1 else p for i, p in enumerate(problems) if p), None)


def difference_of(got, dtype, want, judge="NumPy", tolerance=TOLERANCE):
    if want.shape != got.shape:
        return f"shape {got.shape}, {judge} has {want.shape}"
    kinds = {"f": "float", "V": "float", "i": "integer", "u": "integer", "b": "bool"}
    kind = "float" if dtype in FLOATS else "bool" if dtype == "bool" else "integer"
    if kinds[want.dtype.kind] != kind:
        return f"type {dtype}, {judge} has {want.dtype}"
    with np.errstate(all="ignore"):
        want = want.astype(DTYPES[dtype])
        if kind == "float":
            rtol, atol = tolerance[dtype]
            g, w = got.astype(np.float64), want.astype(np.float64)
            close = np.isclose(g, w, rtol=rtol, atol=atol, equal_nan=True)
        else:
            g, w = got, want
            close = g == w
    if close.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"at {index}: {g[index]}, {judge} has {w[index]}; {int((~close).sum())} of {close.size} differ"


def cases(args, *words):
    """What the program writes: operands, attributes and results of each op's cases, and the tensors' bytes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [args.cases, folder, str(args.seed), str(args.count), *words] + (["inject"] if args.inject else [])
        if subprocess.run(command).returncode:
            sys.exit("oracle-cases failed")
        return json.loads(pathlib.Path(folder, "manifest.json").read_text()), pathlib.Path(folder, "data.bin").read_bytes()


def describe(case):
    inputs = ", ".join(f"{e['dtype']}{e['shape']}" for e in case["inputs"])
    return f"({inputs}) {case.get('attrs') or ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True, help="the program oracle-cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12, help="cases per op and type")
    parser.add_argument("--inject", action="store_true")
    args = parser.parse_args()
    manifest, data = cases(args)
    failures, unnoticed = [], []
    print(f"cases by op and type, seed {args.seed}; '.' where the op takes no such type")
    print(f"{'':16}" + "".join(f"{t:>6}" for t in DTYPES))
    for op in manifest["ops"]:
        counts, noticed = dict.fromkeys(DTYPES, 0), dict.fromkeys(DTYPES, 0)
        if not op["numpy"]:
            failures.append(f"{op['op']}: has no NumPy expression")
            continue
        for case in op["cases"]:
            try:
                problem = difference(op, case, data)
            except Exception as error:  # an expression that does not fit is the record's fault
                problem = f"NumPy refuses: {type(error).__name__}: {error}"
            counts[case["type"]] += 1
            if problem:
                noticed[case["type"]] += 1
                failures.append(f"{op['op']}{describe(case)}: {problem}")
        print(f"{op['op']:16}" + "".join(f"{counts[t] or '.':>6}" for t in DTYPES))
        if not op["cases"]:
            failures.append(f"{op['op']}: no case; its attributes need a proposal in test/support/RandomOps.cpp")
        unnoticed += [f"{op['op']} {t}" for t in DTYPES if counts[t] and not noticed[t]]

    total = sum(len(op["cases"]) for op in manifest["ops"])
    if args.inject:
        wrong = sum(any(o["bytes"] for o in case["outputs"]) for op in manifest["ops"] for case in op["cases"])
        print(f"{len(failures)} of {wrong} cases with a wrong element were noticed")
        if unnoticed or len(failures) != wrong:
            sys.exit("not noticed: " + (", ".join(unnoticed) or "some case"))
        return
    for failure in failures[:40]:
        print("FAILED", failure, file=sys.stderr)
    print(f"{total} cases of {len(manifest['ops'])} ops, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
