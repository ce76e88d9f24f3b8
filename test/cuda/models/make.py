"""Writes the ONNX models that the table of kernels for GPUs is made of: make.py resnet18|encoder FILE [--dtype f32|f16].

ResNet-18 as in He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2016), batch 1 of 224 x 224, and an encoder of six layers,
hidden size 384, twelve heads and 128 tokens, as MiniLM's (Wang et al., 2020). Weights are random: nothing here depends on them.
"""
import sys

import numpy as np
import onnx
from onnx import helper as h, numpy_helper


class Net:
    def __init__(self, dtype):
        self.nodes, self.weights, self.count = [], [], 0
        self.random, self.dtype = np.random.default_rng(7), dtype

    def weight(self, *shape, scale=None):
        self.count += 1
        name = f"w{self.count}"
        scale = scale if scale is not None else 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
        self.weights.append(numpy_helper.from_array((self.random.standard_normal(shape) * scale).astype(self.dtype), name))
        return name

    def number(self, value, dtype=None):
        self.count += 1
        name = f"c{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype or self.dtype), name))
        return name

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(h.make_node(kind, list(inputs), [name], name=f"{kind}_{self.count}", **attributes))
        return name


def resnet18(net):
    def conv(x, inputs, outputs, size, stride, relu=True):
        y = net.op("Conv", x, net.weight(outputs, inputs, size, size), strides=[stride] * 2, pads=[size // 2] * 4)
        one = lambda: net.weight(outputs, scale=0.1)
        positive = net.number(np.abs(net.random.standard_normal(outputs)) + 1)
        y = net.op("BatchNormalization", y, one(), one(), one(), positive)
        return net.op("Relu", y) if relu else y

    x = conv("x", 3, 64, 7, 2)
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            shortcut = x if stride == 1 and channels == width else conv(x, channels, width, 1, stride, relu=False)
            y = conv(conv(x, channels, width, 3, stride), width, width, 3, 1, relu=False)
            x, channels = net.op("Relu", net.op("Add", y, shortcut)), width
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.op("Gemm", x, net.weight(512, 1000), net.weight(1000)), [1, 3, 224, 224], [1, 1000]


def encoder(net, layers=6, tokens=128, hidden=384, heads=12):
    def dense(x, inputs, outputs):
        return net.op("Add", net.op("MatMul", x, net.weight(inputs, outputs)), net.weight(outputs, scale=0.02))

    def norm(x):
        return net.op("LayerNormalization", x, net.weight(hidden, scale=1), net.weight(hidden, scale=0.1), axis=-1)

    def split(x):
        x = net.op("Reshape", x, net.number([1, tokens, heads, hidden // heads], np.int64))
        return net.op("Transpose", x, perm=[0, 2, 1, 3])

    x = norm("x")
    for _ in range(layers):
        q, k, v = (split(dense(x, hidden, hidden)) for _ in range(3))
        scores = net.op("Div", net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2])),
                        net.number(np.sqrt(hidden / heads)))
        y = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = net.op("Reshape", y, net.number([1, tokens, hidden], np.int64))
        x = norm(net.op("Add", x, dense(y, hidden, hidden)))
        y = dense(x, hidden, 4 * hidden)
        erf = net.op("Erf", net.op("Div", y, net.number(np.sqrt(2.0))))
        y = net.op("Mul", net.op("Mul", y, net.op("Add", erf, net.number(1.0))), net.number(0.5))
        x = norm(net.op("Add", x, dense(y, 4 * hidden, hidden)))
    return x, [1, tokens, hidden], [1, tokens, hidden]


def main():
    kind, path = sys.argv[1:3]
    dtype = np.float16 if sys.argv[3:] == ["--dtype", "f16"] else np.float32
    net = Net(dtype)
    out, inputs, outputs = {"resnet18": resnet18, "encoder": encoder}[kind](net)
    element = onnx.TensorProto.FLOAT16 if dtype == np.float16 else onnx.TensorProto.FLOAT
    graph = h.make_graph(net.nodes, kind, [h.make_tensor_value_info("x", element, inputs)],
                         [h.make_tensor_value_info(out, element, outputs)], net.weights)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, path)


main()
