"""The networks of Models.cpp and Networks.h as ONNX models with the same numbers in them: the reference of what they compute, and what peers run.

usage: networks.py NAME BATCH FILE.onnx
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from values import parameter, values


class Net:
    """A model, node by node. Values are names; parameters have the names that Tressel's modules give them."""

    def __init__(self):
        self.nodes, self.initializers = [], {}

    def op(self, kind, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def hold(self, name, array):
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def parameter(self, name, *shape):
        return self.hold(name, parameter(name, *shape))

    def number(self, value):
        return self.hold(f"number {value}", np.float32(value))

    def sizes(self, *sizes):
        return self.hold(f"sizes {sizes}", np.array(sizes, np.int64))

    def conv(self, x, path, channels, inputs, window, stride=1, groups=1, padding=None, bias=True):
        pad = window // 2 if padding is None else padding
        names = [self.parameter(path + ".weight", channels, inputs // groups, window, window)]
        if bias:
            names.append(self.parameter(path + ".bias", channels))
        return self.op("Conv", x, *names, strides=[stride] * 2, pads=[pad] * 4, group=groups, kernel_shape=[window] * 2)

    def conv_norm(self, x, path, channels, inputs, window, stride=1, groups=1):
        x = self.conv(x, path + ".conv", channels, inputs, window, stride, groups, bias=False)
        names = [self.parameter(f"{path}.norm.{part}", channels) for part in ("scale", "bias", "running_mean", "running_var")]
        return self.op("BatchNormalization", x, *names, epsilon=1e-5)

    def dense(self, x, path, inputs, units):
        x = self.op("MatMul", x, self.parameter(path + ".weight", inputs, units))
        return self.op("Add", x, self.parameter(path + ".bias", units))

    def relu(self, x):
        return self.op("Relu", x)

    def relu6(self, x):
        return self.op("Clip", x, self.number(0), self.number(6))

    def gelu(self, x):
        grown = self.op("Add", self.op("Erf", self.op("Mul", x, self.number(np.sqrt(0.5)))), self.number(1))
        return self.op("Mul", self.op("Mul", x, self.number(0.5)), grown)

    def max_pool(self, x, window, stride=None, padding=0):
        return self.op("MaxPool", x, kernel_shape=[window] * 2, strides=[stride or window] * 2, pads=[padding] * 4)

    def pooled(self, x):
        return self.op("Flatten", self.op("GlobalAveragePool", x))

    def layer_norm(self, x, path, width):
        return self.op("LayerNormalization", x, self.parameter(path + ".scale", width), self.parameter(path + ".bias", width), axis=-1, epsilon=1e-5)

    def model(self, input_shape, output, output_shape):
        self.nodes[-1].output[0] = "y"
        assert output == f"t{len(self.nodes) - 1}"
        graph = helper.make_graph(self.nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, input_shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, output_shape)], list(self.initializers.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def lenet(net, batch):
    x = net.max_pool(net.relu(net.conv("x", "0", 6, 1, 5)), 2)
    x = net.op("Flatten", net.max_pool(net.relu(net.conv(x, "2", 16, 6, 5, padding=0)), 2))
    x = net.relu(net.dense(x, "5", 400, 120))
    return net.dense(net.relu(net.dense(x, "6", 120, 84)), "7", 84, 10), [batch, 10]


def perceptron(*widths, activation):
    def build(net, batch):
        x = "x"
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            x = net.dense(x, str(i), a, b)
            if i + 2 < len(widths):
                x = getattr(net, activation)(x)
        return x, [batch, widths[-1]]
    return build


def resnet18(net, batch):
    x = net.max_pool(net.relu(net.conv_norm("x", "0", 64, 3, 7, 2)), 3, 2, 1)
    inputs, position = 64, 2
    for channels in (64, 128, 256, 512):
        for block in range(2):
            changes, path = block == 0 and channels > 64, str(position)
            y = net.relu(net.conv_norm(x, path + ".first", channels, inputs, 3, 2 if changes else 1))
            y = net.conv_norm(y, path + ".second", channels, channels, 3)
            side = net.conv_norm(x, path + ".shortcut", channels, inputs, 1, 2) if changes else x
            x, inputs, position = net.relu(net.op("Add", y, side)), channels, position + 1
    return net.dense(net.pooled(x), str(position + 1), 512, 1000), [batch, 1000]


def mobilenet2(net, batch):
    x, inputs, position = net.relu6(net.conv_norm("x", "0", 32, 3, 3, 2)), 32, 1
    for expansion, channels, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            path, wide, step = str(position), inputs * expansion, stride if block == 0 else 1
            y = net.relu6(net.conv_norm(x, path + ".widen", wide, inputs, 1)) if expansion > 1 else x
            y = net.relu6(net.conv_norm(y, path + ".window", wide, wide, 3, step, wide))
            y = net.conv_norm(y, path + ".narrow", channels, wide, 1)
            x = net.op("Add", x, y) if step == 1 and inputs == channels else y
            inputs, position = channels, position + 1
    x = net.pooled(net.relu6(net.conv_norm(x, str(position), 1280, 320, 1)))
    return net.dense(x, str(position + 2), 1280, 1000), [batch, 1000]


def lstm(net, batch, length=32, inputs=128, hidden=256):
    path = "0.lstm."

    def gates(array):  # i, f, g, o as Torch has them; ONNX wants i, o, f, c
        i, f, g, o = np.split(array, 4, axis=-1)
        return np.concatenate([i, o, f, g], axis=-1)

    w = gates(parameter(path + "weight_ih_l0", inputs, 4 * hidden)).T[None]
    r = gates(parameter(path + "weight_hh_l0", hidden, 4 * hidden)).T[None]
    b = np.concatenate([gates(parameter(path + name, 4 * hidden)) for name in ("bias_ih_l0", "bias_hh_l0")])[None]
    x = net.op("Transpose", "x", perm=[1, 0, 2])
    y = net.op("LSTM", x, net.hold("w", w), net.hold("r", r), net.hold("b", b), hidden_size=hidden)
    return net.op("Transpose", net.op("Squeeze", y, net.sizes(1)), perm=[1, 0, 2]), [batch, length, hidden]


def transformer(net, batch, length=128, width=512, heads=8, hidden=2048):
    path, each = "0.layer.", width // heads

    def split(name):
        x = net.op("Reshape", net.dense("x", path + "attention." + name, width, width), net.sizes(batch, length, heads, each))
        return net.op("Transpose", x, perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])

    scores = net.op("Mul", net.op("MatMul", split("query"), split("key")), net.number(each ** -0.5))
    mixed = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), split("value")), perm=[0, 2, 1, 3])
    mixed = net.op("Reshape", mixed, net.sizes(batch, length, width))
    x = net.layer_norm(net.op("Add", "x", net.dense(mixed, path + "attention.out", width, width)), path + "norm1", width)
    y = net.dense(net.gelu(net.dense(x, path + "linear1", width, hidden)), path + "linear2", hidden, width)
    return net.layer_norm(net.op("Add", x, y), path + "norm2", width), [batch, length, width]


def unet(net, batch, channels=32, levels=3, classes=2, size=128):
    def pair(x, path, channels, inputs):
        x = net.relu(net.conv(x, path + ".first", channels, inputs, 3))
        return net.relu(net.conv(x, path + ".second", channels, channels, 3))

    x, inputs, sides = "x", 3, []
    for level in range(levels):
        sides.append(pair(x, f"0.down{level}", channels << level, inputs))
        x, inputs = net.max_pool(sides[-1], 2), channels << level
    x = pair(x, "0.bottom", channels << levels, inputs)
    for level in reversed(range(levels)):
        width = channels << level
        weight = net.parameter(f"0.widen{level}.weight", 2 * width, width, 2, 2)
        y = net.op("ConvTranspose", x, weight, net.parameter(f"0.widen{level}.bias", width), strides=[2, 2], kernel_shape=[2, 2])
        x = pair(net.op("Concat", sides[level], y, axis=1), f"0.up{level}", width, 2 * width)
    return net.conv(x, "0.head", classes, channels, 1), [batch, classes, size, size]


def resnet50(net, batch):
    """Without normalization, which is part of the convolutions."""
    x, inputs, position = net.max_pool(net.relu(net.conv("x", "0", 64, 3, 7, 2)), 3, 2, 1), 64, 2
    for channels, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            path, stride = str(position), 2 if block == 0 and channels > 64 else 1
            y = net.relu(net.conv(x, path + ".reduce", channels, inputs, 1))
            y = net.relu(net.conv(y, path + ".window", channels, channels, 3, stride))
            y = net.conv(y, path + ".expand", 4 * channels, channels, 1)
            side = net.conv(x, path + ".shortcut", 4 * channels, inputs, 1, stride) if block == 0 else x
            x, inputs, position = net.relu(net.op("Add", y, side)), 4 * channels, position + 1
    return net.dense(net.pooled(x), str(position + 2), 2048, 1000), [batch, 1000]


# Name: the input without its batch, what builds it.
NETWORKS = {
    "lenet": ([1, 28, 28], lenet), "mlp3": ([784], perceptron(784, 256, 128, 10, activation="relu")),
    "mlp-wide": ([512], perceptron(512, 2048, 2048, 512, activation="gelu")), "resnet18": ([3, 224, 224], resnet18),
    "mobilenet2": ([3, 224, 224], mobilenet2), "lstm": ([32, 128], lstm), "transformer": ([128, 512], transformer), "unet": ([3, 128, 128], unet),
}


def build(name, batch):
    """The model, and the input that arms give it."""
    one, make = ([3, 224, 224], resnet50) if name == "resnet50" else NETWORKS[name]
    net, shape = Net(), [batch, *one]
    y, result = make(net, batch)
    return net.model(shape, y, result), values("a" if name == "resnet50" else "x", *shape) * (1 if name == "resnet50" else 2)


def main():
    name, batch, path = sys.argv[1:]
    onnx.save(build(name, int(batch))[0], path)


if __name__ == "__main__":
    main()
