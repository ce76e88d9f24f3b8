"""make_sets.py FOLDER: two sets for counter.mlir, one that expects something wrong in FOLDER/wrong, and one for two-outputs.mlir in FOLDER/some."""
import pathlib
import sys

import numpy as np
from onnx import numpy_helper


def write(folder, name, values, tensor):
    folder.mkdir(parents=True, exist_ok=True)
    proto = numpy_helper.from_array(np.array(values, np.float32), tensor)
    (folder / name).write_bytes(proto.SerializeToString())


root = pathlib.Path(sys.argv[1])
for folder, y in ((root / "test_data_set_0", [1, 3]), (root / "test_data_set_1", [1, 3]), (root / "wrong/test_data_set_0", [1, 4])):
    write(folder, "input_0.pb", [1, 2], "x")
    write(folder, "input_1.pb", [0, 1], "sum")
    write(folder, "output_0.pb", y, "y")
write(root / "some/test_data_set_0", "input_0.pb", [1, 2], "x")
write(root / "some/test_data_set_0", "output_0.pb", [-1, -2], "y")
