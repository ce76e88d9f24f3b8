"""What a case is, and random arguments."""
import dataclasses
import typing

import numpy as np


@dataclasses.dataclass
class Case:
    name: str
    function: typing.Callable
    arguments: list
    rtol: float = 1e-4
    atol: float = 1e-5
    jit: dict = dataclasses.field(default_factory=dict)  # options of jax.jit: how arguments and results lie on its devices
    device: str = "cpu"  # that Tressel's program runs on
    reference: typing.Callable = None  # what gives the expected results, where JAX's CPU backend is wrong on `function`


def floats(*shape, seed=0, low=-2.0, high=2.0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def ints(*shape, seed=0, low=-9, high=9, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape, endpoint=True).astype(dtype)


def bools(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)
