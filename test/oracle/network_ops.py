"""Definitions of network ops that NumPy does not have, for the records' `numpy` expressions."""
import numpy as np


def group_norm(x, scale, bias, groups, epsilon):
    rows = x.reshape((x.shape[0], groups, -1))
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + epsilon)
    per_channel = (-1,) + (1,) * (x.ndim - 2)
    return rows.reshape(x.shape) * scale.reshape(per_channel) + bias.reshape(per_channel)


def reduce_loss(loss, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction](loss)


def poisson_nll_loss(x, target, reduction, log_input, full, epsilon):
    loss = np.exp(x) - target * x if log_input else x - target * np.log(x + epsilon)
    if full:
        many = np.where(target > 1, target, 1)
        loss = loss + np.where(target > 1, many * np.log(many) - many + 0.5 * np.log(2 * np.pi * many), 0)
    return reduce_loss(loss, reduction)


def triplet_margin_loss(x, positive, negative, reduction, margin, p, epsilon):
    def distance(other):
        return (np.abs(x - other + epsilon) ** p).sum(-1) ** (1 / p)

    return reduce_loss(np.maximum(distance(positive) - distance(negative) + margin, 0), reduction)


def cosine_embedding_loss(x, other, target, reduction, margin):
    cosine = (x * other).sum(-1) / np.sqrt(((x * x).sum(-1) + 1e-12) * ((other * other).sum(-1) + 1e-12))
    return reduce_loss(np.where(target == 1, 1 - cosine, np.where(target == -1, np.maximum(cosine - margin, 0), 0)), reduction)


def multi_margin_loss(x, labels, reduction, p, margin):
    loss = np.zeros(len(x))
    for n, label in enumerate(labels):
        own = x[n, int(label)]
        loss[n] = sum(max(0, margin - own + x[n, i]) ** p for i in range(x.shape[1]) if i != label) / x.shape[1]
    return reduce_loss(loss, reduction)


def multilabel_margin_loss(x, labels, reduction):
    rows, classes = x.reshape(-1, x.shape[-1]), x.shape[-1]
    loss = np.zeros(len(rows))
    for n, row in enumerate(labels.reshape(rows.shape)):
        own = [int(label) for label in row[:next((i for i, label in enumerate(row) if label < 0), classes)]]
        of_label = [rows[n, j] for j in own]
        loss[n] = sum(max(0, 1 - value + rows[n, i]) for value in of_label for i in range(classes) if i not in own) / classes
    return reduce_loss(loss.reshape(x.shape[:-1]), reduction)


def bce_with_logits_loss(x, target, pos_weight, reduction):
    weight = 1 if pos_weight is None else pos_weight
    return reduce_loss(weight * target * np.logaddexp(0, -x) + (1 - target) * np.logaddexp(0, x), reduction)


def nll_loss(log_probs, labels, weight, reduction, ignore_index):
    loss = np.zeros(labels.shape)
    counted = 0
    for at in np.ndindex(labels.shape):
        label = int(labels[at])
        if label == ignore_index:
            continue
        share = 1 if weight is None else weight[label]
        counted += share
        loss[at] = -log_probs[(at[0], label) + at[1:]] * share
    return loss.sum() / counted if reduction == "mean" else reduce_loss(loss, reduction)


def softmax_cross_entropy(logits, target, weight, reduction, smoothing, ignore_index):
    log_probs = logits - logits.max(1, keepdims=True)
    log_probs = log_probs - np.log(np.exp(log_probs).sum(1, keepdims=True))
    classes = logits.shape[1]
    weight = np.ones(classes) if weight is None else weight
    weighted = log_probs * weight.reshape((classes,) + (1,) * (logits.ndim - 2))
    if target.ndim == logits.ndim:
        smooth = target * (1 - smoothing) + smoothing / classes
        return reduce_loss(-(smooth * weighted).sum(1), reduction)
    counts = target != ignore_index
    loss = (1 - smoothing) * nll_loss(log_probs, target, weight, "none", ignore_index)
    loss = loss - counts * smoothing * weighted.mean(1)
    share = np.where(counts, weight[np.where(counts, target, 0).astype(int)], 0)
    return loss.sum() / share.sum() if reduction == "mean" else reduce_loss(loss, reduction)


def conv_by_weights(x, dy, window, strides, low, high, dilations, groups):
    """By the definition of the derivative: conv is linear in the weights, so each gets the product of dy with what it alone makes."""
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    low, high = low or [0] * n, high or [0] * n
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(low, high)))
    channels, features = x.shape[1] // groups, dy.shape[1] // groups
    w = np.zeros((dy.shape[1], channels, *window))
    for tap in np.ndindex(*window):
        place = tuple(slice(a * d, a * d + (k - 1) * s + 1, s) for a, d, k, s in zip(tap, dilations, dy.shape[2:], strides))
        for g in range(groups):
            seen = x[(slice(None), slice(g * channels, (g + 1) * channels)) + place]
            given = dy[:, g * features:(g + 1) * features]
            axes = [0] + list(range(2, n + 2))
            w[(slice(g * features, (g + 1) * features), slice(None)) + tap] = np.tensordot(given, seen, (axes, axes))
    return w


def conv_transpose(x, w, strides, low, high, extra, dilations, groups, channels_last):
    """By its definition: every element of x adds its multiple of the window."""
    if channels_last:
        first = conv_transpose(np.moveaxis(x, -1, 1), w, strides, low, high, extra, dilations, groups, False)
        return np.moveaxis(first, 1, -1)
    n = x.ndim - 2
    strides, dilations = strides or [1] * n, dilations or [1] * n
    low, high, extra = low or [0] * n, high or [0] * n, extra or [0] * n
    full = [(s - 1) * t + (k - 1) * d + 1 + e
            for s, t, k, d, e in zip(x.shape[2:], strides, w.shape[2:], dilations, extra)]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    channels, features = w.shape[0] // groups, w.shape[1]
    for at in np.ndindex(*x.shape[2:]):
        place = tuple(slice(a * t, a * t + (k - 1) * d + 1, d) for a, t, k, d in zip(at, strides, w.shape[2:], dilations))
        for g in range(groups):
            part = np.tensordot(x[(slice(None), slice(g * channels, (g + 1) * channels)) + at],
                                w[g * channels:(g + 1) * channels], 1)
            y[(slice(None), slice(g * features, (g + 1) * features)) + place] += part
    return y[(slice(None), slice(None)) + tuple(slice(a, s - b) for a, b, s in zip(low, high, full))]


def resize(x, sizes, mode, coordinates, nearest, cubic_a, antialias):
    """Dimension by dimension, each element of the result by itself."""
    for axis, size in enumerate(sizes):
        length = x.shape[axis]
        scale = size / length
        if size == length:
            continue
        rows = []
        for i in range(size):
            if coordinates == "align_corners":
                at = i * (length - 1) / (size - 1) if size > 1 else 0.0
            elif coordinates == "asymmetric":
                at = i * length / size
            elif coordinates == "pytorch_half_pixel" and size == 1:
                at = -0.5
            else:
                at = (i + 0.5) * length / size - 0.5
            if mode == "nearest":
                index = {"round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
                         "floor": np.floor(at), "ceil": np.ceil(at)}[nearest]
                rows.append(np.take(x, int(np.clip(index, 0, length - 1)), axis))
                continue
            width = min(scale, 1.0) if antialias else 1.0
            reach = int(np.ceil((1 if mode == "linear" else 2) / width)) + 1
            total, weights = 0, 0
            for j in range(int(np.floor(at)) - reach, int(np.floor(at)) + reach + 1):
                d = abs(j - at) * width
                if mode == "linear":
                    weight = max(0.0, 1 - d)
                elif d <= 1:
                    weight = (cubic_a + 2) * d**3 - (cubic_a + 3) * d**2 + 1
                else:
                    weight = cubic_a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0
                total = total + weight * np.take(x, min(max(j, 0), length - 1), axis)
                weights += weight
            rows.append(total / weights)
        x = np.stack(rows, axis)
    return x


def adaptive_pool(x, sizes, combine):
    y = np.empty(x.shape[:2] + tuple(sizes), x.dtype if combine is np.max else np.float64)
    for at in np.ndindex(*sizes):
        place = tuple(slice(i * s // n, -(-(i + 1) * s // n)) for i, n, s in zip(at, sizes, x.shape[2:]))
        y[(slice(None), slice(None)) + at] = combine(x[(slice(None), slice(None)) + place], axis=tuple(range(2, x.ndim)))
    return y


def batch_norm_train(x, scale, bias, epsilon):
    axes = (0,) + tuple(range(2, x.ndim))
    shape = (-1,) + (1,) * (x.ndim - 2)
    mean, variance = x.mean(axes), x.var(axes)
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    return y * scale.reshape(shape) + bias.reshape(shape), mean, variance


def attention(q, k, v, mask, types, causal, scale):
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(t, q.shape[-3] // k.shape[-3], axis=-3) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(q.shape[-1]))
    if mask is not None:
        scores = np.where(mask != 0, scores, -np.inf) if types["mask"] == "bool" else scores + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) != 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_cell(x, hidden, cell, w_in, w_hidden, bias_in, bias_hidden):
    gates = x @ w_in + hidden @ w_hidden + (0 if bias_in is None else bias_in) + (0 if bias_hidden is None else bias_hidden)
    i, f, g, o = np.split(gates, 4, axis=1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru_cell(x, hidden, w_in, w_hidden, bias_in, bias_hidden):
    a = np.split(x @ w_in + (0 if bias_in is None else bias_in), 3, axis=1)
    b = np.split(hidden @ w_hidden + (0 if bias_hidden is None else bias_hidden), 3, axis=1)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    return (1 - z) * np.tanh(a[2] + r * b[2]) + z * hidden


DEFINITIONS = {f.__name__: f for f in (group_norm, reduce_loss, bce_with_logits_loss, nll_loss, poisson_nll_loss, triplet_margin_loss, cosine_embedding_loss, multi_margin_loss, multilabel_margin_loss, softmax_cross_entropy, conv_by_weights, conv_transpose, resize,
                                       adaptive_pool, batch_norm_train, attention, lstm_cell, gru_cell)}
