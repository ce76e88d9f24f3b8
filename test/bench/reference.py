"""What the rows compute, by NumPy and ONNX Runtime: an arm that is compared with and never timed. Protocol: Bench.h.

usage: reference.py BUILD_DIR ROW
"""
import functools
import pathlib
import sys

import numpy as np

import networks
import shapes
import training
from protocol import serve
from values import coarse, parameter, values, weights


@functools.cache
def lists():
    return shapes.read(pathlib.Path(sys.argv[1]))


def run_onnx(model, feeds):
    import onnxruntime
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def one_node(kind, inputs, opset=20, **attributes):
    """A node's results for these arrays."""
    from onnx import TensorProto, helper
    names = [f"i{i}" for i in range(len(inputs))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, inputs)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return run_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), dict(zip(names, inputs)))[0]


def network(name, batch):
    model, x = networks.build(name, batch)
    return run_onnx(model, {"x": x})


def hybridized(case):
    names = list(networks.NETWORKS)
    return network(names[case // 2 % len(names)], (1, 64)[case % 2])


def product(case, halves=False):
    m, k, n = lists()["products"][case]
    x = values("a", m, k)
    return (coarse(x) if halves else x).astype(np.float64) @ weights("weight", (k, n), k).astype(np.float64)


def convolution(shape, halves=False):
    s, pad = shape, shape.window // 2
    x = values("a", 1, s.high, s.wide, s.inputs)
    w = weights("weight", (s.outputs, s.inputs // s.groups, s.window, s.window), s.inputs // s.groups * s.window ** 2)
    y = one_node("Conv", [np.ascontiguousarray((coarse(x) if halves else x).transpose(0, 3, 1, 2)), w], pads=[pad] * 4, strides=[s.stride] * 2,
                 group=s.groups)
    return y.transpose(0, 2, 3, 1)


def subnormal(_):
    x, w = values("a", 1, 10, 10, 96), values("weight", 96 * 96)
    w[::3] = 0  # what is there does not show in f32
    return x.reshape(100, 96) @ w.reshape(96, 96).T


def softmax(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rows(case, scaled):
    n, columns = lists()["rows"][case]
    x = values("a", n, columns)
    if not scaled:
        return softmax(x)
    x = x.astype(np.float64)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * values("b", columns) + values("c", columns)


def attention(case):
    q, k, v = (values(name, 12, lists()["attention"][case], 64).astype(np.float64) for name in "abc")
    return softmax(q @ k.transpose(0, 2, 1) / 8) @ v


def gelu(_):
    return one_node("Gelu", [values("a", 8192, 4096) * values("b", 4096) + values("c", 4096)])


def fused(kind):
    def run(case):
        shape = ((64, 512, 4096, 32768)[case], 1024)
        if kind == "dequantize":
            return (np.floor(values("a", *shape) * 256) - values("c", 1024)) * values("b", 1024)
        x, y = values("a", *shape), values("b", *shape)
        return x * np.float32(2.5) + y if kind == "axpy" else x / (1 + np.exp(-x)) * y
    return run


def recurrence(_):
    a, b, x = (np.arange(16) / 32 - 0.25), np.arange(16) % 5 / 4 - 0.5, np.zeros(16)
    for _ in range(10000):
        x = x * a + b
    return x


def tiny_network(_):
    x = values("a", 1, 32)
    x = np.maximum(x @ parameter("0.weight", 32, 64) + parameter("0.bias", 64), 0)
    return x @ parameter("1.weight", 64, 16) + parameter("1.bias", 16)


def added(_):
    return np.tile(np.maximum(values("x", 64) + values("y", 64), 0), 16)


def matmuls(_):
    return np.tile((values("a", 1000, 1000).astype(np.float64) @ values("b", 1000, 1000)).ravel(), 10)


def branches(case):
    chains, size = (2 if case < 10 else 4), case % 5
    elements = (32, 64, 128, 192, 256)[size] ** 2 if case % 10 >= 5 else 1 << (12 + 2 * size)
    return np.ones(chains * elements)


def imperative(case):
    shape, op = ((16, 64), (64, 1000), (1000, 1024))[case // 14], case % 14
    x, y = values("x", *shape), values("y", *shape)
    row, column, w = values("row", shape[1]), values("column", shape[0], 1), values("w", shape[1], 64)
    wide = x.astype(np.float64)
    return (lambda: x + 1, lambda: x + y, lambda: x * row, lambda: x - column, lambda: np.exp(wide), lambda: x > y, lambda: wide.sum(),
            lambda: wide.sum(0), lambda: wide.mean(1), lambda: x.max(1), lambda: x.argmax(1), lambda: wide, lambda: x.T, lambda: wide @ w)[op]()


def first_of_lenet(_):
    """What predict.c prints: the first result for an image of zeros."""
    import tempfile

    import deploy
    import onnx
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lenet.onnx"
        deploy.lenet(path)
        return run_onnx(onnx.load(path), {"x": np.zeros((1, 1, 28, 28), np.float32)})[0].ravel()[:1]


def trained(row):
    return lambda _: training.losses_in_f64(row)


OUTPUTS = {
    "hybridize": hybridized, "hybridize.levels": hybridized,
    "hybridize.lenet.b64": lambda _: network("lenet", 64),
    "hybridize.mlp3.b1": lambda _: network("mlp3", 1),
    "hybridize.mlp3.b256": lambda _: network("mlp3", 256),
    "dispatch.op": lambda _: [2, 3], "dispatch.sync": lambda _: [2, 3], "dispatch.sync.large": lambda _: values("a", 1 << 18) + 1,
    "eager.ops": imperative,
    "fusion.gelu.memcpy-share": gelu, "fusion.axpy.memcpy-share": fused("axpy"), "fusion.silu-gate.memcpy-share": fused("silu-gate"),
    "fusion.dequantize.memcpy-share": fused("dequantize"),
    "row.softmax": lambda case: rows(case, False), "row.layernorm": lambda case: rows(case, True), "row.attention": attention,
    "state.call": lambda _: values("x", 1) / 8 + 1.75, "state.update": lambda _: [values(f"v{i}", 16384) * 0.5 + 0.25 for i in range(200)],
    "call.tiny": tiny_network, "call.threads16": added, "call.scaling": added, "start.package": first_of_lenet,
    "async.large": lambda _: np.full(524288, 1000), "loop.compiled.speedup": recurrence, "loop.imperative": recurrence,
    "async.matmul10": matmuls, "async.matmul10.return": matmuls, "branches.two-lanes": branches,
    "memory.queue.10m": lambda _: np.full(16384, 10_000_000),
    "gemm.geomean": lambda case: product(case), "gemm.bf16": lambda case, arm: product(case, arm != "f32"), "gemm.f16": lambda case, arm: product(case, arm != "f32"),
    "conv.geomean": lambda case: convolution(lists()["convolutions"][case]), "conv.bf16": lambda case, arm: convolution(lists()["convolutions"][case], arm != "f32"),
    "conv.wide": lambda case: convolution(lists()["wide"][case]), "conv.winograd": lambda case: convolution(lists()["winograd"][case]),
    "train.mlp.step": lambda _: training.losses("train.mlp.step"), "train.lenet.step": lambda _: training.losses("train.lenet.step"),
    **{row: trained(row) for row in ("train.resnet18.step", "train.charlm.step", "train.lstm.step")},
    "infer.resnet50.flops-share": lambda _: network("resnet50", 1), "subnormal.weights": subnormal,
}


def outputs(row, arm, case):
    compute = OUTPUTS[row]
    results = compute(case, arm) if compute.__code__.co_argcount == 2 else compute(case)
    results = results if isinstance(results, list) and results and hasattr(results[0], "shape") else [np.asarray(results)]
    return np.concatenate([np.asarray(r, np.float64).ravel() for r in results])


if __name__ == "__main__":
    serve(None, lambda arm, case: outputs(sys.argv[2], arm, case))
