#!/usr/bin/env python3
"""NumPy's arrays in Tressel and Tressel's tensors in NumPy, in one process, by DLPack capsules of both forms.

usage: dlpack_oracle.py BRIDGE   the library made of DlpackBridge.cpp
"""
import ctypes
import gc
import sys
import weakref

import numpy

if len(sys.argv) != 2:
    sys.exit(__doc__)
bridge = ctypes.CDLL(sys.argv[1])
for name in ("import", "export", "twice", "data"):
    getattr(bridge, f"bridge_{name}").restype = ctypes.c_void_p
bridge.bridge_error.restype = ctypes.c_char_p
for name in ("data", "twice", "free"):
    getattr(bridge, f"bridge_{name}").argtypes = [ctypes.c_void_p]
bridge.bridge_import.argtypes = [ctypes.c_void_p, ctypes.c_int]
bridge.bridge_export.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}
USED = {True: b"used_dltensor_versioned", False: b"used_dltensor"}


def to_tressel(array, versioned):
    """A tensor's handle, or the error's text. A consumer renames the capsule when it took what is in it."""
    capsule = array.__dlpack__(max_version=(1, 0)) if versioned else array.__dlpack__()
    handle = bridge.bridge_import(python.PyCapsule_GetPointer(capsule, NAMES[versioned]), versioned)
    if handle:
        python.PyCapsule_SetName(capsule, USED[versioned])
    return handle or bridge.bridge_error().decode()


class Exporter:
    """What NumPy asks for a capsule."""

    def __init__(self, handle, versioned, copy=False):
        self.handle, self.versioned, self.copy = handle, versioned, copy

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        managed = bridge.bridge_export(self.handle, self.versioned, self.copy)
        return python.PyCapsule_New(managed, NAMES[self.versioned], None)


def main():
    count = 0
    for versioned in (False, True):
        for dtype in ("f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "?"):
            for array in (numpy.arange(24).reshape(2, 3, 4).astype(dtype), numpy.array(3, dtype),
                          numpy.zeros((0, 2), dtype), numpy.arange(24).reshape(4, 6).astype(dtype).T[::-1, 1::2]):
                handle = to_tressel(array, versioned)
                assert isinstance(handle, int), handle
                shared = array.flags.c_contiguous
                assert not array.size or (bridge.bridge_data(handle) == array.ctypes.data) == shared, (dtype, array.shape)
                back = numpy.from_dlpack(Exporter(handle, versioned))
                assert back.dtype == array.dtype and back.shape == array.shape, (back, array)
                numpy.testing.assert_array_equal(back, array)
                if array.size:
                    assert back.ctypes.data == bridge.bridge_data(handle)
                assert not versioned or not back.flags.writeable
                if dtype != "?":
                    twice = bridge.bridge_twice(handle)
                    assert twice, bridge.bridge_error()
                    result = numpy.from_dlpack(Exporter(twice, versioned, copy=True))
                    numpy.testing.assert_array_equal(result, array + array)
                    assert not versioned or result.flags.writeable
                    bridge.bridge_free(twice)
                bridge.bridge_free(handle)
                numpy.testing.assert_array_equal(back, array)  # kept alive by its capsule's deleter
                count += 1
        # The array lives as long as the tensor does, and no longer.
        class Kept(numpy.ndarray):
            pass
        array = numpy.arange(5.0).view(Kept)
        alive = weakref.ref(array)
        handle = to_tressel(array, versioned)
        del array
        gc.collect()
        assert alive() is not None
        bridge.bridge_free(handle)
        gc.collect()
        assert alive() is None
        refused = to_tressel(numpy.zeros(3, "c8"), versioned)
        assert isinstance(refused, str) and "code 5" in refused, refused
        assert "code 1, 32 bits" in to_tressel(numpy.zeros(3, "u4"), versioned)
    read_only = numpy.arange(3.0)
    read_only.flags.writeable = False
    handle = to_tressel(read_only, True)
    assert bridge.bridge_data(handle) == read_only.ctypes.data
    bridge.bridge_free(handle)
    print(f"dlpack: {count} arrays there and back, {numpy.__version__}")


main()
