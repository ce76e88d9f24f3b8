#!/usr/bin/env python3
"""Arms of the rows on deployment: makes the row's package with the command line, then becomes bin/package-bench.

usage: deploy.py BUILD_DIR ROW
"""
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(path, nodes, inputs, outputs, weights):
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs]
    graph = helper.make_graph(nodes, "model", floats, results, [numpy_helper.from_array(w, n) for n, w in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def lenet(path):
    """LeNet-5 on one image of 28x28."""
    random = np.random.default_rng(1)
    weights, nodes, x = {}, [], "x"

    def layer(op, *shapes, **attributes):
        nonlocal x
        names = [f"w{len(weights) + i}" for i in range(len(shapes))]
        for name, shape in zip(names, shapes):
            weights[name] = (random.standard_normal(shape) * 0.1).astype(np.float32)
        nodes.append(helper.make_node(op, [x, *names], [f"t{len(nodes)}"], **attributes))
        x = nodes[-1].output[0]

    layer("Conv", (6, 1, 5, 5), (6,), pads=[2, 2, 2, 2])
    layer("Relu")
    layer("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    layer("Conv", (16, 6, 5, 5), (16,))
    layer("Relu")
    layer("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    layer("Flatten")
    for before, after in ((400, 120), (120, 84), (84, 10)):
        layer("Gemm", (before, after), (after,))
        if after != 10:
            layer("Relu")
    nodes[-1].output[0] = "y"
    model(path, nodes, [("x", [1, 1, 28, 28])], [("y", [1, 10])], weights)


def tiny(path):
    """One kernel, of some nanoseconds."""
    model(path, [helper.make_node("Add", ["x", "y"], ["t"]), helper.make_node("Relu", ["t"], ["z"])],
          [("x", [64]), ("y", [64])], [("z", [64])], {})


def with_weights(name, path):
    """One of ONNX's own light models, with numbers in the place of the nodes that make its weights there."""
    light = onnx.load(pathlib.Path(onnx.__file__).parent / f"backend/test/data/light/{name}.onnx")
    light.ir_version = 8  # older ones want every initializer to be an input too
    graph = light.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    random = np.random.default_rng(1)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        values = random.uniform(0.01, 0.1, shapes[node.input[0]]).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    onnx.save(light, path)


def resnet50(path):
    """100 MB of weights."""
    with_weights("light_resnet50", path)


MODELS = {"start.open": resnet50, "start.package": lenet, "call.threads16": tiny, "call.scaling": tiny, "memory.resnet50.bound": resnet50,
          "compile.resnet50.cold": resnet50, "compile.resnet50.warm": resnet50}


def main():
    build, row = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    folder = build / "bench/packages"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / (row + ".onnx")
    package = source.with_suffix(".tsl")
    if row == "memory.train.resnet18.bound":
        subprocess.run([build / "bin/tressel-bench", "--export-step", "train.resnet18.step", package], check=True)
    else:
        # Another arm of the row may be reading the file, which holds the same model: it is replaced as a whole.
        made = folder / f"{row}.{os.getpid()}.onnx"
        MODELS[row](made)
        made.replace(source)
        if row.startswith("compile."):
            bench = str(build / "bin/tressel-bench")
            os.execve(bench, [bench, row], os.environ | {"TRESSEL_BENCH_MODEL": str(source)})
        done = subprocess.run([build / "bin/tressel", "-q", "compile", source, "-o", package], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip() or f"tressel ended with status {done.returncode}")
    bench = str(build / "bin/package-bench")
    os.execv(bench, [bench, row, str(package), str(build / "bin/predict")])


if __name__ == "__main__":
    main()
