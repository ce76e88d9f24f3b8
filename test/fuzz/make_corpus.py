"""make_corpus.py FOLDER TRESSEL ROOT: small well-formed files of each format to start from, into FOLDER/<format>/.

Written by the formats' own libraries, so that what Tressel writes is no measure of what it reads. ONNX's models and tensors come
from the node tests of the onnx wheel, MLIR's from the tests of this tree. What campaigns have found (test/fuzz/corpus) is unpacked into
FOLDER/<format>/kept/."""
import gzip
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import onnx
import safetensors.numpy
from PIL import Image

folder, tressel, root = map(pathlib.Path, sys.argv[1:])
shutil.rmtree(folder, ignore_errors=True)


def place(kind, name):
    (folder / kind / name).parent.mkdir(parents=True, exist_ok=True)
    return folder / kind / name


rng = np.random.default_rng(1)
arrays = {
    "f32": rng.standard_normal((2, 3)).astype(np.float32),
    "f64": rng.standard_normal((1, 2, 1, 2)),
    "f16": rng.standard_normal(5).astype(np.float16),
    "i8": np.arange(4, dtype=np.int8),
    "u8": np.arange(4, dtype=np.uint8).reshape(2, 2),
    "i64": np.array(7, dtype=np.int64),
    "b": np.array([True, False]),
    "big": np.arange(3, dtype=">i4"),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "empty": np.zeros((0, 3), np.float32),
    "complex": np.zeros(2, np.complex64),
}
for name, array in arrays.items():
    np.save(place("npy", name + ".npy"), array)
plain = {k: v for k, v in arrays.items() if k not in ("complex", "big")}
np.savez(place("npz", "plain.npz"), **plain)
np.savez_compressed(place("npz", "packed.npz"), **plain)
np.savez(place("npz", "one.npz"), x=arrays["f32"])
with zipfile.ZipFile(place("npz", "folders.npz"), "w") as z:
    z.writestr("a/b.npy", place("npy", "f32.npy").read_bytes())
    z.writestr("notes.txt", "no array")
tensors = {k: np.ascontiguousarray(v) for k, v in plain.items()}
safetensors.numpy.save_file(tensors, place("safetensors", "all.safetensors"), {"format": "np"})
safetensors.numpy.save_file({"x": tensors["f32"]}, place("safetensors", "one.safetensors"))
safetensors.numpy.save_file({}, place("safetensors", "none.safetensors"))
for name, open_ in (("plain", open), ("packed", gzip.open)):
    with open_(place("idx", name), "wb") as f:
        f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 3, 4) + bytes(range(24)))

smooth = Image.fromarray(np.add.outer(np.arange(13) * 9, np.arange(17) * 7).astype(np.uint8))
for name, mode, options in (("grey.png", "L", {}), ("rgb.png", "RGB", {}), ("palette.png", "P", {}), ("bits.png", "1", {}), ("alpha.png", "LA", {}), ("grey.jpg", "L", {}),
                            ("rgb.jpg", "RGB", {}), ("progressive.jpg", "RGB", {"progressive": True}), ("cmyk.jpg", "CMYK", {})):
    smooth.convert(mode).save(place("image", name), **options)
for name, text in (("plain.csv", "a,b\n1,2.5\n-3,4e5\n"), ("quoted.csv", "\ufeffa,\"b\"\"c\"\r\n\"1\n2\" , x\r\n")):
    place("csv", name).write_bytes(text.encode())

node_tests = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
for model in sorted(node_tests.glob("*/model.onnx")):
    if model.stat().st_size < 4096:
        shutil.copy(model, place("onnx", model.parent.name + ".onnx"))
for i, tensor in enumerate(sorted(node_tests.glob("*/test_data_set_0/*.pb"))):
    if i % 50 == 0 and tensor.stat().st_size < 2048:
        shutil.copy(tensor, place("tensor-proto", f"{i}.pb"))

# A test file may hold several modules, and checks in comments.
for path in sorted(p for p in root.glob("test/**/*.mlir") if "found" not in p.parts):
    for i, part in enumerate(path.read_text().split("// -----")):
        text = "\n".join(line for line in part.splitlines() if not line.strip().startswith("//"))
        if len(text.strip()) < 8192 and text.strip():
            kind = "stablehlo" if '"stablehlo.' in text else "mlir"
            place(kind, f"{path.stem}.{i}.mlir").write_text(text)
for path in sorted(root.glob("test/stablehlo/*.test")):
    for i, part in enumerate(re.split(r"^//--- .*$", path.read_text(), flags=re.M)[1:]):
        if '"stablehlo.' in part:
            place("stablehlo", f"{path.stem}.{i}.mlir").write_text(part)

made = 0
for path in sorted((folder / "mlir").glob("*.mlir")):
    if "func.func @main" in path.read_text() and made < 24:
        done = subprocess.run([tressel, "compile", "-q", path, "-o", place("package", path.stem + ".tsl"), "--cpu", "baseline"],
                              capture_output=True)
        made += done.returncode == 0
(folder / "onnx-import").mkdir(parents=True)  # beside those of onnx, which it reads too
for archive in sorted(root.glob("test/fuzz/corpus/*.tar.xz")):
    with tarfile.open(archive) as packed:
        for entry in packed:
            place(archive.name.removesuffix(".tar.xz"), f"kept/{entry.name}").write_bytes(packed.extractfile(entry).read())
for kind in sorted(folder.iterdir()):
    print(kind.name, sum(path.is_file() for path in kind.rglob("*")), "files")
