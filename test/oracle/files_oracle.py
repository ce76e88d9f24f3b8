#!/usr/bin/env python3
"""Files by their formats' own Python libraries, to be read by Tressel, and the other way round.

usage: files_oracle.py write DIR   writes DIR/peer.safetensors, DIR/peer.npz and DIR/peer-packed.npz
       files_oracle.py check DIR   checks DIR/ours.safetensors and DIR/ours.npz; exit status 1 if they differ

Every file holds one array per element type and shape; byte i of an array is (7 i + 3) mod 61 (mod 2 for bools).
"""
import pathlib
import sys

import numpy
import safetensors

SHAPES = {"scalar": (), "empty": (2, 0), "row": (5,), "cube": (2, 3, 4)}
# Tressel's name of the type, the library's when it writes, the library's when it reads, NumPy's
TYPES = [("f32", "float32", "F32", "<f4"), ("f64", "float64", "F64", "<f8"), ("f16", "float16", "F16", "<f2"),
         ("bf16", "bfloat16", "BF16", None), ("i8", "int8", "I8", "|i1"), ("i16", "int16", "I16", "<i2"),
         ("i32", "int32", "I32", "<i4"), ("i64", "int64", "I64", "<i8"), ("u8", "uint8", "U8", "|u1"),
         ("bool", "bool", "BOOL", "|b1")]
WIDTH = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "bool": 1}


def elements(dtype, shape):
    count = WIDTH[dtype] * int(numpy.prod(shape, dtype=int))
    return bytes((7 * i + 3) % 61 % (2 if dtype == "bool" else 61) for i in range(count))


def write(folder):
    tensors, arrays, alive = {}, {}, []
    for name, writes, _, descr in TYPES:
        for form, shape in SHAPES.items():
            data = elements(name, shape)
            alive.append(numpy.frombuffer(data, "|u1"))  # the library takes addresses
            tensors[f"{name}.{form}"] = safetensors.TensorSpec(
                dtype=writes, shape=shape, data_ptr=alive[-1].ctypes.data, data_len=len(data))
            if descr:
                arrays[f"{name}.{form}"] = numpy.frombuffer(data, descr).reshape(shape)
    safetensors.serialize_file(tensors, folder / "peer.safetensors", {"format": "np", "schöne": "Grüße \"\\"})
    numpy.savez(folder / "peer.npz", **arrays)
    numpy.savez_compressed(folder / "peer-packed.npz", **arrays)


def check(folder):
    data = (folder / "ours.safetensors").read_bytes()
    found = dict(safetensors.deserialize(data))
    assert len(found) == len(TYPES) * len(SHAPES), sorted(found)
    for name, _, reads, _ in TYPES:
        for form, shape in SHAPES.items():
            t = found[f"{name}.{form}"]
            found_here = t["dtype"], tuple(t["shape"]), bytes(t["data"])
            assert found_here == (reads, shape, elements(name, shape)), (name, form)
    with safetensors.safe_open(folder / "ours.safetensors", "np") as file:
        assert file.metadata() == {"format": "tressel", "schöne": "Grüße \"\\"}, file.metadata()
    assert int.from_bytes(data[:8], "little") % 8 == 0
    with numpy.load(folder / "ours.npz", allow_pickle=False) as archive:
        assert len(archive.files) == (len(TYPES) - 1) * len(SHAPES)
        for name, _, _, descr in TYPES:
            for form, shape in SHAPES.items():
                if descr:
                    a = archive[f"{name}.{form}"]
                    assert (a.dtype.str, a.shape, a.tobytes()) == (descr, shape, elements(name, shape)), (name, form)


if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
    sys.exit(__doc__)
(write if sys.argv[1] == "write" else check)(pathlib.Path(sys.argv[2]))
