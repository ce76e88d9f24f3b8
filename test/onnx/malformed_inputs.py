"""malformed_inputs.py ONNX_VERDICTS NODE_TESTS: each input of each of ONNX's node tests in other ranks and element types.

ONNX's own checks and shape inference judge: what they refuse, the importer must refuse (or not support); and it never ends
otherwise than by a result or an error."""
import collections
import pathlib
import struct
import subprocess
import sys

import onnx
from onnx import TensorProto, shape_inference

verdicts, folder = sys.argv[1:]
TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.INT8, TensorProto.FLOAT16]


def variants(model):
    """Models with one input's declaration changed: fewer and more dimensions, other types. Outputs are not declared, which the change contradicts."""
    for i, value in enumerate(model.graph.input):
        if not value.type.HasField("tensor_type"):
            continue
        sizes = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        shapes = [sizes[:n] for n in range(len(sizes))] + [sizes + [1], [1] + sizes, [2] + sizes + [1]]
        changes = [(value.type.tensor_type.elem_type, shape) for shape in shapes if len(shape) <= 7]
        changes += [(t, sizes) for t in TYPES if t != value.type.tensor_type.elem_type]
        for elem_type, shape in changes:
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            changed.graph.input[i].CopyFrom(onnx.helper.make_tensor_value_info(value.name, elem_type, shape))
            for output in changed.graph.output:
                output.ClearField("type")
            yield f"{value.name} as {TensorProto.DataType.Name(elem_type)}{shape}", changed


def refusal(model):
    """Why ONNX refuses a model, or nothing."""
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError as e:
        # What an op's definition in other ops does not allow for, though the op's record does; and what a body declares of its
        # own values, which follow from what it is given.
        other = "has inconsistent type" in str(e) or str(e).count("(op_type:") > 1 or "Inferred shape and existing shape" in str(e)
        return None if other else str(e)
    return None


seen, cases = set(), []
for path in sorted(pathlib.Path(folder).glob("*/model.onnx")):
    model = onnx.load(path)
    nodes = model.graph.node
    if len(nodes) != 1 or "_expanded" in path.parent.name or model.ByteSize() > 65536:
        continue
    for what, changed in variants(model):
        key = changed.SerializeToString()
        if key not in seen:
            seen.add(key)
            cases.append((f"{path.parent.name}: {what}", nodes[0].op_type, key, refusal(changed)))
done = subprocess.run([verdicts], input=b"".join(struct.pack("<I", len(key)) + key for _, _, key, _ in cases), capture_output=True)
lines = done.stdout.decode().splitlines()
if done.returncode or len(lines) != len(cases):
    sys.exit(f"ended with {done.returncode} at {cases[len(lines)][0] if len(lines) < len(cases) else 'the end'}: {done.stderr.decode()[-2000:]}")
missed, counts = [], collections.Counter()
for (name, op, _, why), line in zip(cases, lines):
    verdict = line.split(" ", 1)[0]
    counts["refused by ONNX" if why else "taken by ONNX", verdict] += 1
    if why and verdict == "imported":
        missed.append(f"{name} ({op}): {why}".replace("\n", " ")[:300])
for (theirs, ours), count in sorted(counts.items()):
    print(f"{theirs}, {ours} here: {count}")
for line in missed[:60]:
    print("imported, but", line)
if missed or counts["refused by ONNX", "malformed"] < 1000:
    sys.exit(f"{len(missed)} models are imported that ONNX refuses")
