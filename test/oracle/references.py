"""Who else judges ops that NumPy does not have: ONNX's reference evaluator, and JAX. A judge takes a case, and gives its results, or
None where it knows no such call. Nothing here computes but by the two libraries: only operands and attributes are arranged."""
import functools

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
import jax.scipy  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import rnn  # noqa: E402

ONNX, JAX = {}, {}


class Case:
    """Operands by name, floats widened (`c.x`) or as they are (`c.raw["x"]`); None where absent; and attributes."""

    def __init__(self, wide, raw, attrs):
        self.raw, self.attrs = raw, attrs
        self.__dict__.update(wide)
        self.__dict__.update(attrs)


def judge(table, *ops):
    def register(function):
        for op in ops:
            table[op] = function if len(ops) == 1 else functools.partial(function, op)
        return function
    return register


@functools.lru_cache(maxsize=512)
def evaluator(op, types, outputs, attrs):
    inputs = [f"x{i}" if t is not None else "" for i, t in enumerate(types)]
    node = helper.make_node(op, inputs, [f"y{i}" for i in range(outputs)],
                            **{k: list(v) if isinstance(v, tuple) else v for k, v in attrs})
    graph = helper.make_graph([node], "case", [helper.make_tensor_value_info(f"x{i}", t, None) for i, t in enumerate(types) if t is not None],
                              [helper.make_tensor_value_info(f"y{i}", TensorProto.UNDEFINED, None) for i in range(outputs)])
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)]))


def onnx_op(op, *inputs, outputs=1, **attrs):
    """The results of one node. Attributes that are None are left out."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    types = tuple(None if x is None else helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs)
    given = tuple(sorted((k, tuple(v) if isinstance(v, (list, tuple)) else v) for k, v in attrs.items() if v is not None))
    return evaluator(op, types, outputs, given).run(None, {f"x{i}": x for i, x in enumerate(inputs) if x is not None})


# --- Functions of one number ---------------------------------------------------------------------------------------------------
NODES = {"erf": "Erf", "sigmoid": "Sigmoid", "relu": "Relu", "softplus": "Softplus", "mish": "Mish", "selu": "Selu",
         "hard_swish": "HardSwish", "gelu": "Gelu"}


@judge(ONNX, *NODES)
def one_node(op, c):
    return onnx_op(NODES[op], c.x)


@judge(ONNX, "gelu_tanh")
def gelu_tanh(c):
    return onnx_op("Gelu", c.x, approximate="tanh")


def has_nan(x):
    return x.dtype.kind == "f" and np.isnan(x).any()


@judge(ONNX, "leaky_relu", "elu", "celu", "thresholded_relu")
def with_alpha(op, c):
    if op == "thresholded_relu" and has_nan(c.x):
        return None
    return onnx_op({"leaky_relu": "LeakyRelu", "elu": "Elu", "celu": "Celu", "thresholded_relu": "ThresholdedRelu"}[op], c.x, alpha=c.alpha)


@judge(ONNX, "hard_sigmoid")
def hard_sigmoid(c):
    return onnx_op("HardSigmoid", c.x, alpha=c.alpha, beta=c.beta)


@judge(ONNX, "hard_shrink", "soft_shrink")
def shrink(op, c):
    if has_nan(c.x):
        return None
    return onnx_op("Shrink", c.x, lambd=c.alpha, bias=c.alpha if op == "soft_shrink" else 0.0)


@judge(JAX, "silu", "log_sigmoid", "relu6")
def activation(op, c):
    return [getattr(jax.nn, op)(c.x)]


# --- Order, places -----------------------------------------------------------------------------------------------------------------
@judge(JAX, "argsort")
def argsort(c):
    return [jnp.argsort(c.x, axis=c.axis, descending=c.descending, stable=True)]


@judge(JAX, "top_k")
def top_k(c):
    if c.x.dtype == bool or (not c.largest and has_nan(c.x)):
        return None
    if not c.largest:
        return onnx_op("TopK", c.x, np.array([c.k]), outputs=2, axis=c.axis, largest=0)
    values, indices = lax.top_k(jnp.moveaxis(c.x, c.axis, -1), c.k)
    return [jnp.moveaxis(values, -1, c.axis), jnp.moveaxis(indices, -1, c.axis)]


@judge(JAX, "cumsum", "cumprod")
def running(op, c):
    x = c.x if c.x.dtype.kind == "f" else c.x.astype(np.int64)
    y = getattr(lax, op)(x, c.axis % x.ndim, c.reverse)
    if not c.exclusive:
        return [y]
    if op == "cumsum":
        return onnx_op("CumSum", x, np.array(c.axis), exclusive=1, reverse=int(c.reverse))
    return onnx_op("CumProd", x, np.array(c.axis), exclusive=1, reverse=int(c.reverse))


@judge(JAX, "cummax", "cummin")
def running_extremum(op, c):
    if c.x.dtype == bool:
        return None
    return [getattr(lax, op)(c.x, c.axis % c.x.ndim, c.reverse)]


@judge(JAX, "cumulative_logsumexp")
def cumulative_logsumexp(c):
    return [lax.cumlogsumexp(c.x.astype(np.float64), c.axis % c.x.ndim, c.reverse)]


@judge(JAX, "logsumexp")
def logsumexp(c):
    return [jax.jit(lambda x: jax.scipy.special.logsumexp(x, axis=c.axis, keepdims=c.keepdims))(c.x)]


@judge(JAX, "vector_norm")
def vector_norm(c):
    return [jax.jit(lambda x: jnp.linalg.vector_norm(x, axis=c.axis, keepdims=c.keepdims, ord=c.ord))(c.x)]


REDUCTIONS = {"set": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def written(x, place, updates, mode):
    return [getattr(jnp.asarray(x).at[place], {"mul": "multiply"}.get(mode, mode))(updates.astype(x.dtype))]


def distinct(indices, size):
    """Which of several updates stays when they are set is left open."""
    flat = (indices.reshape(-1, indices.shape[-1]) % size).tolist()
    return len({tuple(row) for row in flat}) == len(flat)


@judge(ONNX, "gather_nd")
def gather_nd(c):
    return onnx_op("GatherND", c.x, c.indices.astype(np.int64), batch_dims=c.batch_dims)


@judge(JAX, "scatter_nd")
def scatter_nd(c):
    x, indices = c.raw["x"], c.indices.astype(np.int64)
    if x.dtype == bool or (c.mode == "set" and not distinct(indices, x.shape[0])):
        return None
    return written(x, tuple(np.moveaxis(indices, -1, 0)), c.raw["updates"], c.mode)


@judge(ONNX, "put_along_axis")
def put_along_axis(c):
    x, axis = c.raw["x"], c.axis % c.raw["x"].ndim
    shape = tuple(c.indices.shape[axis] if d == axis else n for d, n in enumerate(x.shape))
    indices = np.broadcast_to(c.indices, shape).astype(np.int64)
    if x.dtype == bool or (c.mode == "set" and not distinct(np.moveaxis(indices, axis, -1).reshape(-1, shape[axis]).T[..., None], x.shape[axis])):
        return None
    return onnx_op("ScatterElements", x, indices, np.broadcast_to(c.raw["values"], shape).astype(x.dtype), axis=axis,
                   reduction=REDUCTIONS[c.mode])


@judge(JAX, "scatter")
def scatter(c):
    x, axis = c.raw["x"], c.axis % c.raw["x"].ndim
    if x.dtype == bool or (c.mode == "set" and not distinct(c.indices.reshape(-1, 1).astype(np.int64), x.shape[axis])):
        return None
    return written(x, (slice(None),) * axis + (c.indices,), c.raw["updates"], c.mode)


@judge(JAX, "dynamic_slice")
def dynamic_slice(c):
    starts = np.maximum(c.starts, 0)  # JAX counts negative ones from the end
    return [lax.dynamic_slice(c.x, list(starts), c.sizes)]


@judge(JAX, "dynamic_update_slice")
def dynamic_update_slice(c):
    return [lax.dynamic_update_slice(c.x, c.update.astype(c.x.dtype), list(np.maximum(c.starts, 0)))]


@judge(JAX, "one_hot")
def one_hot(c):
    return [jax.nn.one_hot(c.x, c.depth, dtype=c.dtype)]


# --- Windows --------------------------------------------------------------------------------------------------------------------------
def window(c, n):
    return {"strides": c.strides or [1] * n, "pads": (c.pad_low or [0] * n) + (c.pad_high or [0] * n),
            "dilations": c.dilations or [1] * n}


def on_images(f):
    """Images with their channels last are judged as the same with their channels first."""
    @functools.wraps(f)
    def either(*args):
        c = args[-1]
        if not c.channels_last:
            return f(*args)
        c.x = np.moveaxis(c.x, -1, 1)
        results = f(*args)
        return results and [np.moveaxis(np.asarray(y), 1, -1) for y in results]
    return either


@judge(ONNX, "conv")
@on_images
def conv(c):
    if 0 in c.x.shape or 0 in c.w.shape:
        return None
    return onnx_op("Conv", c.x, c.w, group=c.groups, kernel_shape=c.w.shape[2:], **window(c, c.x.ndim - 2))


@judge(JAX, "conv_transpose")
def conv_transpose(c):
    """What is differentiated is the convolution whose transpose this is."""
    n = c.x.ndim - 2
    w, extra = window(c, n), c.output_padding or [0] * n
    if any(e >= s for e, s in zip(extra, w["strides"])) or 0 in c.x.shape:
        return None
    x = jnp.moveaxis(c.x, -1, 1) if c.channels_last else jnp.asarray(c.x)
    pads = list(zip(w["pads"][:n], w["pads"][n:]))
    sizes = [(s - 1) * t + (k - 1) * d + 1 - low - high + e for s, t, k, d, (low, high), e in
             zip(x.shape[2:], w["strides"], c.w.shape[2:], w["dilations"], pads, extra)]
    def conv(y):
        return lax.conv_general_dilated(y, c.w, w["strides"], pads, rhs_dilation=w["dilations"], feature_group_count=c.groups)
    y, = jax.vjp(conv, jnp.zeros((len(x), c.w.shape[1] * c.groups, *sizes)))[1](x)
    return [jnp.moveaxis(y, 1, -1) if c.channels_last else y]


@judge(ONNX, "avg_pool")
@on_images
def avg_pool(c):
    if 0 in c.x.shape or c.ceil_mode:
        return None  # windows of ceil_mode differ between versions of ONNX
    n = c.x.ndim - 2
    return onnx_op("AveragePool", c.x, kernel_shape=c.window, count_include_pad=int(c.count_include_pad),
                   **{**window(c, n), "strides": c.strides or c.window})


def reduce_window(c, start, combine):
    n = c.x.ndim - 2
    if c.ceil_mode:
        return None
    low, high = c.pad_low or [0] * n, c.pad_high or [0] * n
    return [lax.reduce_window(c.x, start, combine, (1, 1, *c.window), (1, 1, *(c.strides or c.window)),
                              [(0, 0), (0, 0), *zip(low, high)], window_dilation=(1, 1, *(c.dilations or [1] * n)))]


@judge(JAX, "sum_pool")
@on_images
def sum_pool(c):
    x = c.x if c.x.dtype.kind == "f" else c.x.astype(np.int64)
    c.x = x
    return reduce_window(c, np.zeros((), x.dtype), lax.add)


@judge(JAX, "max_pool")
@on_images
def max_pool(c):
    if c.x.dtype == bool:
        return None
    lowest = np.array(-np.inf if c.x.dtype.kind == "f" else np.iinfo(c.x.dtype).min, c.x.dtype)
    return reduce_window(c, lowest, lax.max)


@judge(ONNX, "adaptive_avg_pool", "adaptive_max_pool")
@on_images
def adaptive_pool(op, c):
    if any(s != 1 for s in c.sizes):
        return None
    return onnx_op("GlobalMaxPool", c.x) if op == "adaptive_max_pool" else onnx_op("GlobalAveragePool", c.x.astype(np.float64))


@judge(ONNX, "resize")
def resize(c):
    if c.x.dtype == bool:
        return None
    return onnx_op("Resize", c.x, None, None, np.array(c.sizes), mode=c.mode, coordinate_transformation_mode=c.coordinates,
                   nearest_mode=c.nearest, cubic_coeff_a=c.cubic_a, antialias=int(c.antialias))


# --- Norms, softmax, losses ---------------------------------------------------------------------------------------------------------
@judge(ONNX, "softmax", "log_softmax")
def softmax(op, c):
    return onnx_op("Softmax" if op == "softmax" else "LogSoftmax", c.x, axis=c.axis)


@judge(ONNX, "layer_norm")
def layer_norm(c):
    return onnx_op("LayerNormalization", c.x, c.scale, c.bias, axis=-c.scale.ndim, epsilon=c.epsilon)


@judge(ONNX, "rms_norm")
def rms_norm(c):
    return onnx_op("RMSNormalization", c.x, c.scale, axis=-c.scale.ndim, epsilon=c.epsilon)


@judge(ONNX, "batch_norm")
def batch_norm(c):
    return onnx_op("BatchNormalization", c.x, c.scale, c.bias, c.mean, c.variance, epsilon=c.epsilon)


@judge(ONNX, "batch_norm_train")
def batch_norm_train(c):
    zero = np.zeros_like(c.scale)
    return onnx_op("BatchNormalization", c.x, c.scale, c.bias, zero, zero, outputs=3, epsilon=c.epsilon, momentum=0.0, training_mode=1)


@judge(ONNX, "group_norm")
def group_norm(c):
    return onnx_op("GroupNormalization", c.x, c.scale, c.bias, num_groups=c.groups, epsilon=c.epsilon)


@judge(ONNX, "instance_norm")
def instance_norm(c):
    return onnx_op("InstanceNormalization", c.x, c.scale, c.bias, epsilon=c.epsilon)


def outside(labels, classes, ignored):
    return ((labels != ignored) & ((labels < 0) | (labels >= classes))).any()


@judge(ONNX, "nll_loss")
def nll_loss(c):
    if outside(c.labels, c.log_probs.shape[1], c.ignore_index):
        return None
    return onnx_op("NegativeLogLikelihoodLoss", c.log_probs, c.labels.astype(np.int64), c.weight, reduction=c.reduction, ignore_index=c.ignore_index)


@judge(ONNX, "softmax_cross_entropy")
def softmax_cross_entropy(c):
    if c.target.ndim == c.logits.ndim or c.label_smoothing or outside(c.target, c.logits.shape[1], c.ignore_index):
        return None
    return onnx_op("SoftmaxCrossEntropyLoss", c.logits, c.target.astype(np.int64), c.weight, reduction=c.reduction, ignore_index=c.ignore_index)


@judge(JAX, "kl_div_loss")
def kl_div_loss(c):
    loss = jax.scipy.special.rel_entr(c.target, jnp.exp(c.x))
    return [{"mean": jnp.mean, "sum": jnp.sum, "none": lambda v: v}[c.reduction](loss)]


# --- Attention, recurrent cells -------------------------------------------------------------------------------------------------------
@judge(ONNX, "scaled_dot_product_attention")
def attention(c):
    def four(t):  # [batch, heads, rows, columns]
        lead = t.shape[:-2]
        return t.reshape((int(np.prod(lead[:-1])), lead[-1] if lead else 1) + t.shape[-2:])
    q, k, v = four(c.q), four(c.k), four(c.v)
    mask = None
    if c.mask is not None:
        seen = c.raw["mask"]  # the evaluator makes NaN of a bool mask beside is_causal
        mask = np.where(seen, 0, -np.inf) if seen.dtype == bool else c.mask
        mask = four(np.broadcast_to(mask, c.q.shape[:-1] + c.k.shape[-2:-1]))
    y = onnx_op("Attention", q, k, v, mask, is_causal=int(c.causal), scale=c.scale or None)
    return [y[0].reshape(c.q.shape[:-1] + c.v.shape[-1:])]


@judge(JAX, "lstm_cell")
def lstm_cell(c):
    biases = [np.zeros(c.w_in.shape[1]) if b is None else b for b in (c.bias_in, c.bias_hidden)]
    sizes = {"input_size": c.x.shape[1], "hidden_size": c.hidden.shape[1], "num_layers": 1, "dropout": 0.0, "bidirectional": False}
    _, hidden, cell = rnn.lstm_ref(c.x[:, None], c.hidden[None], c.cell[None], {0: c.w_in.T}, {0: c.w_hidden.T}, {0: biases[0]},
                                   {0: biases[1]}, np.ones(len(c.x), np.int32), *sizes.values())
    return [hidden[0], cell[0]]


def gates(w, order):
    """Columns of ours, by gate, as one direction's rows of ONNX's."""
    parts = np.split(w, len(order), axis=-1)
    return np.concatenate([parts[i] for i in order], axis=-1).T[None]


@judge(ONNX, "gru_cell")
def gru_cell(c):
    order = (1, 0, 2)  # update, reset, hidden
    biases = [np.zeros(c.w_in.shape[1]) if b is None else b for b in (c.bias_in, c.bias_hidden)]
    _, hidden = onnx_op("GRU", c.x[None], gates(c.w_in, order), gates(c.w_hidden, order),
                        np.concatenate([gates(b, order) for b in biases], axis=-1), None, c.hidden[None], outputs=2,
                        hidden_size=c.hidden.shape[1], linear_before_reset=1)
    return [hidden[0]]
