"""The ONNX models of networks.py as functions of other frameworks, node by node, as a user would write them there. What a framework lacks is an
error that names the op."""
import numpy as np
import onnx
from onnx import numpy_helper


class Evaluator:
    """`function(x)` computes the model's output; weights are made the framework's own arrays once."""

    def __init__(self, path):
        graph = onnx.load(path).graph
        raw = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        self.sizes = {name: array for name, array in raw.items() if array.dtype == np.int64}
        self.weights = {name: self.array(array) for name, array in raw.items() if array.dtype != np.int64}
        self.nodes, self.input, self.output = list(graph.node), graph.input[0].name, graph.output[0].name
        for node in self.nodes:
            if not hasattr(self, node.op_type):
                raise NotImplementedError(f"{type(self).__name__} has no {node.op_type}")

    def function(self, x):
        values = {**self.weights, self.input: x}
        for node in self.nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            inputs = [self.sizes[name] if name in self.sizes else values[name] for name in node.input]
            values[node.output[0]] = getattr(self, node.op_type)(*inputs, **attributes)
        return values[self.output]

    def Add(self, a, b): return a + b
    def Mul(self, a, b): return a * b
    def MatMul(self, a, b): return a @ b
    def Flatten(self, x): return x.reshape(x.shape[0], -1)
    def Reshape(self, x, sizes): return x.reshape(*(int(n) for n in sizes))
    def BatchNormalization(self, x, scale, bias, mean, variance, epsilon):
        factor = scale / (variance + epsilon) ** 0.5
        return x * factor.reshape(1, -1, 1, 1) + (bias - mean * factor).reshape(1, -1, 1, 1)

    def LSTM(self, x, w, r, b, hidden_size):
        xs, h, c, states = x @ w[0].T + (b[0][:4 * hidden_size] + b[0][4 * hidden_size:]), None, None, []
        for t in range(x.shape[0]):
            gates = xs[t] if h is None else xs[t] + h @ r[0].T
            i, o, f, g = (gates[:, k * hidden_size:(k + 1) * hidden_size] for k in range(4))
            i, o, f, g = self.sigmoid(i), self.sigmoid(o), self.sigmoid(f), self.tanh(g)
            c = i * g if c is None else f * c + i * g
            h = o * self.tanh(c)
            states.append(h)
        return self.stack(states)[:, None]


class Jax(Evaluator):
    def __init__(self, path):
        import jax
        import jax.numpy as jnp
        self.jax, self.jnp = jax, jnp
        super().__init__(path)
        self.call = jax.jit(self.function)

    def array(self, a): return self.jnp.asarray(a)
    def sigmoid(self, x): return self.jax.nn.sigmoid(x)
    def tanh(self, x): return self.jnp.tanh(x)
    def stack(self, xs): return self.jnp.stack(xs)
    def Relu(self, x): return self.jnp.maximum(x, 0)
    def Clip(self, x, low, high): return self.jnp.clip(x, low, high)
    def Erf(self, x): return self.jax.scipy.special.erf(x)
    def Softmax(self, x, axis): return self.jax.nn.softmax(x, axis)
    def Transpose(self, x, perm): return self.jnp.transpose(x, perm)
    def Concat(self, *xs, axis): return self.jnp.concatenate(xs, axis)
    def Squeeze(self, x, axes): return self.jnp.squeeze(x, tuple(int(a) for a in axes))
    def GlobalAveragePool(self, x): return x.mean((2, 3), keepdims=True)

    def LayerNormalization(self, x, scale, bias, axis, epsilon):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / self.jnp.sqrt(variance + epsilon) * scale + bias

    def Conv(self, x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1, kernel_shape=None):
        y = self.jax.lax.conv_general_dilated(x, w, strides, ((pads[0], pads[2]), (pads[1], pads[3])), feature_group_count=group)
        return y if b is None else y + b[None, :, None, None]

    def ConvTranspose(self, x, w, b, strides, kernel_shape):
        y = self.jax.lax.conv_transpose(x, w, strides, "VALID", dimension_numbers=("NCHW", "IOHW", "NCHW"), transpose_kernel=False)
        return y[...] + b[None, :, None, None] if strides != kernel_shape else self.blocks(x, w) + b[None, :, None, None]

    def blocks(self, x, w):  # windows that do not overlap
        n, _, h, wide = x.shape
        _, out, a, c = w.shape
        return self.jnp.einsum("nihw,ioac->nohawc", x, w).reshape(n, out, h * a, wide * c)

    def MaxPool(self, x, kernel_shape, strides, pads):
        return self.jax.lax.reduce_window(x, -self.jnp.inf, self.jax.lax.max, (1, 1, *kernel_shape), (1, 1, *strides),
                                          ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))

    def run(self, x):
        return self.call(x).block_until_ready()


class Torch(Evaluator):
    def __init__(self, path):
        import torch
        self.torch, self.f = torch, torch.nn.functional
        torch.set_grad_enabled(False)
        super().__init__(path)

    def array(self, a): return self.torch.from_numpy(np.array(a))
    def sigmoid(self, x): return x.sigmoid()
    def tanh(self, x): return x.tanh()
    def stack(self, xs): return self.torch.stack(xs)
    def Relu(self, x): return x.relu()
    def Clip(self, x, low, high): return x.clamp(low, high)
    def Erf(self, x): return x.erf()
    def Softmax(self, x, axis): return x.softmax(axis)
    def Transpose(self, x, perm): return x.permute(*perm)
    def Concat(self, *xs, axis): return self.torch.cat(xs, axis)
    def Squeeze(self, x, axes): return x.squeeze(int(axes[0]))
    def GlobalAveragePool(self, x): return x.mean((2, 3), keepdim=True)
    def BatchNormalization(self, x, scale, bias, mean, variance, epsilon): return self.f.batch_norm(x, mean, variance, scale, bias, eps=epsilon)
    def LayerNormalization(self, x, scale, bias, axis, epsilon): return self.f.layer_norm(x, x.shape[-1:], scale, bias, epsilon)
    def Conv(self, x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1, kernel_shape=None):
        return self.f.conv2d(x, w, b, tuple(strides), tuple(pads[:2]), groups=group)

    def ConvTranspose(self, x, w, b, strides, kernel_shape): return self.f.conv_transpose2d(x, w, b, tuple(strides))
    def MaxPool(self, x, kernel_shape, strides, pads): return self.f.max_pool2d(x, tuple(kernel_shape), tuple(strides), tuple(pads[:2]))

    def LSTM(self, x, w, r, b, hidden_size):
        if not hasattr(self, "lstm"):
            def gates(a):  # i, o, f, c to i, f, g, o
                i, o, f, c = a.chunk(4)
                return self.torch.cat([i, f, c, o])
            self.lstm = self.torch.nn.LSTM(w.shape[2], hidden_size)
            both = b[0].chunk(2)
            for name, value in (("weight_ih_l0", w[0]), ("weight_hh_l0", r[0]), ("bias_ih_l0", both[0]), ("bias_hh_l0", both[1])):
                setattr(self.lstm, name, self.torch.nn.Parameter(gates(value)))
            self.lstm.flatten_parameters()
        return self.lstm(x)[0][:, None]

    def run(self, x):
        return self.function(x).numpy()


class Mlx(Evaluator):
    """Images have their channels last within convolutions alone."""

    def __init__(self, path):
        import mlx.core as mx
        import mlx.nn as nn
        self.mx, self.nn = mx, nn
        super().__init__(path)
        self.call = mx.compile(self.function)

    def array(self, a): return self.mx.array(np.array(a))
    def sigmoid(self, x): return self.mx.sigmoid(x)
    def tanh(self, x): return self.mx.tanh(x)
    def stack(self, xs): return self.mx.stack(xs)
    def Relu(self, x): return self.mx.maximum(x, 0)
    def Clip(self, x, low, high): return self.mx.clip(x, low, high)
    def Erf(self, x): return self.mx.erf(x)
    def Softmax(self, x, axis): return self.mx.softmax(x, axis)
    def Transpose(self, x, perm): return self.mx.transpose(x, perm)
    def Concat(self, *xs, axis): return self.mx.concatenate(xs, axis)
    def Squeeze(self, x, axes): return self.mx.squeeze(x, int(axes[0]))
    def GlobalAveragePool(self, x): return x.mean((2, 3), keepdims=True)
    def LayerNormalization(self, x, scale, bias, axis, epsilon): return self.mx.fast.layer_norm(x, scale, bias, epsilon)
    def Conv(self, x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1, kernel_shape=None):
        y = self.mx.conv2d(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), tuple(strides), tuple(pads[:2]), groups=group)
        return (y if b is None else y + b).transpose(0, 3, 1, 2)

    def ConvTranspose(self, x, w, b, strides, kernel_shape):
        y = self.mx.conv_transpose2d(x.transpose(0, 2, 3, 1), w.transpose(1, 2, 3, 0), tuple(strides))
        return (y + b).transpose(0, 3, 1, 2)

    def MaxPool(self, x, kernel_shape, strides, pads):
        if any(pads):
            x = self.mx.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=float("-inf"))
        return self.nn.MaxPool2d(tuple(kernel_shape), tuple(strides))(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

    def run(self, x):
        y = self.call(x)
        self.mx.eval(y)
        return y
