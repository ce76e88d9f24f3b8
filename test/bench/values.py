"""The numbers of Values.h and Models.cpp in NumPy: inputs and weights that every arm and reference makes alike."""
import numpy as np


def seed_of(name):
    """FNV-1a."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def values(seed, *shape):
    """Evenly spread over [-0.5, 0.5); `seed` may be a name."""
    seed = seed_of(seed) if isinstance(seed, str) else seed
    x = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint32)
    x *= np.uint32(0x9E3779B1)
    x += np.uint32(seed * 0x85EBCA77 & 0xFFFFFFFF)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x2C1B3C6D)
    x ^= x >> np.uint32(12)
    x *= np.uint32(0x297A2D39)
    x ^= x >> np.uint32(15)
    return ((x >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -24) - np.float32(0.5)).reshape(shape)


def coarse(array):
    """What inputs of 16 bits hold: multiples of 1/64."""
    return np.floor(array * 64) / np.float32(64)


def weights(name, shape, inputs):
    return values(name, *shape) * np.sqrt(np.float32(24) / np.float32(inputs))


def parameter(name, *shape):
    """As fillParameters gives it."""
    if len(shape) == 1:
        small = values(name, *shape) * np.float32(0.2)
        return small + np.float32(1) if name.rpartition(".")[2] in ("scale", "running_var") else small
    return weights(name, shape, shape[0] if len(shape) == 2 else int(np.prod(shape[1:])))
