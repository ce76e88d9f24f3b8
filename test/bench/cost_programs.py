"""Programs of the graph dialect whose kernels the cost models are fitted to (fit_costs.py): sizes are drawn at random, with those that
real models have among them."""
import random


def tensor(sizes, type="f32"):
    return f"tensor<{'x'.join(map(str, [*sizes, type]))}>"


class Program:
    def __init__(self):
        self.inputs, self.lines, self.types = [], [], {}

    def input(self, *sizes, kind="name", type="f32"):
        name = f"%x{len(self.inputs)}"
        self.types[name] = tensor(sizes, type)
        self.inputs.append((name, kind))
        return name

    def op(self, name, operands, sizes, attributes="", type="f32"):
        value = f"%v{len(self.lines)}"
        self.types[value] = tensor(sizes, type)
        types = ", ".join(self.types[o] for o in operands)
        self.lines.append(f"  {value} = tressel.{name} {', '.join(operands)}{' {' + attributes + '}' if attributes else ''}"
                          f" : ({types}) -> {self.types[value]}")
        return value

    def text(self, *outputs):
        arguments = ", ".join(f'{n}: {self.types[n]} {{tressel.{kind} = "{n[1:]}"}}' for n, kind in self.inputs)
        results = ", ".join(f'{self.types[o]} {{tressel.name = "y{i}"}}' for i, o in enumerate(outputs))
        return "\n".join([f"func.func @main({arguments}) -> ({results}) {{", *self.lines,
                          f"  return {', '.join(outputs)} : {', '.join(self.types[o] for o in outputs)}", "}", ""])


class Draw(random.Random):
    def size(self, least, most):
        """Between both, small ones as often as large ones; half of them round numbers."""
        value = int(round(least * (most / least) ** self.random()))
        if value > 12 and self.random() < 0.6:
            unit = 8 if value < 100 else 16 if value < 400 else 64
            value = max(least, round(value / unit) * unit)
        return max(least, min(most, value))


def ints(values):
    return f"array<i64: {', '.join(map(str, values))}>"


def product(r, large=2e8, most=2e7):
    while True:
        m, n, k = r.size(1, 1024), r.size(1, 4096), r.size(4, 4096)
        if r.random() < 0.15:
            n = r.size(1, 24)
        if r.random() < 0.2:
            m = r.choice([1, 1, 2, 4, 8])
        if most > 2e7 and r.random() < 0.3: # weights that caches do not hold
            n, k = r.size(1024, 4096), r.size(1024, 4096)
        if 2e3 < m * n * k < large and 4 * (m * k + k * n + m * n) < most:
            break
    p, weights = Program(), r.choice(["state", "state", "name"])
    if r.random() < 0.15 and m * n * k < 2e6:
        b = r.size(2, 16)
        x, w = p.input(b, m, k), p.input(b, k, n)
        return p.text(p.op("matmul", [x, w], (b, m, n)))
    x, w = p.input(m, k), p.input(k, n, kind=weights)
    return p.text(p.op("matmul", [x, w], (m, n)))


def convolution(r, form, large=2.5e8):
    """form: dense, few (channels of the image), thin (channels of the result), column (few pixels a row), depthwise, grouped."""
    while True:
        batch = r.choice([1, 1, 1, 1, 2, 8, 64])
        window = r.choice([(1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 2), (1, 7), (7, 3)])
        if form == "depthwise":
            window = r.choice([(3, 3), (3, 3), (5, 5), (5, 5), (7, 7), (1, 3), (9, 9)])
        stride = r.choice([(1, 1), (1, 1), (2, 2), (2, 1)])
        out = (r.size(2, 128), r.size(2, 128)) if r.random() < 0.3 else (r.size(2, 112),) * 2
        if r.random() < 0.05:
            out = (1, r.size(16, 400))
        if form == "column":
            window = r.choice([(3, 1), (5, 1), (9, 1), (3, 3), (3, 3), (2, 2), (5, 5)])
            out = (r.choice([r.size(2, 8), r.size(8, 600)]), r.choice([1, 1, 1, 2, 2, 3, 4, 5]))
        groups, channels, features = 1, r.size(16 if form == "column" else 8, 768), r.size(4, 768)
        if form == "few":
            channels, features = r.choice([1, 1, 2, 3, 3, 4, 6, 8, 12]), r.choice([6, 8, 12, 16, 16, 24, 32, 64])
        elif form == "thin":
            channels, features = r.size(1, 256), r.choice([1, 1, 1, 2, 3, 4, 6, 8, 12])
        elif form == "depthwise":
            groups = channels = features = r.size(8, 960)
        elif form == "grouped":
            width = r.choice([2, 4, 8, 16, 32])
            groups = r.choice([2, 4, 8, 16, 32])
            channels = features = groups * width
        flops = 2 * batch * out[0] * out[1] * features * channels // groups * window[0] * window[1]
        image = [(o - 1) * s + 1 for o, s in zip(out, stride)]
        size = 4 * (batch * image[0] * image[1] * channels + batch * out[0] * out[1] * features)
        if 2e4 < flops < large and size < 1.2e7:
            break
    low = [w // 2 for w in window]
    high = [w - 1 - l for w, l in zip(window, low)]
    last = r.random() < 0.6
    p = Program()
    kind = "state" if r.random() < 0.85 else "name"
    shape = (batch, *image, channels) if last else (batch, channels, *image)
    result = (batch, *out, features) if last else (batch, features, *out)
    x, w = p.input(*shape), p.input(features, channels // groups, *window, kind=kind)
    attributes = f"channels_last = {str(last).lower()}, groups = {groups} : i64, pad_high = {ints(high)}, pad_low = {ints(low)}, strides = {ints(stride)}"
    return p.text(p.op("conv", [x, w], result, attributes))


UNARY = ["relu", "negative", "abs", "exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "hard_swish", "hard_sigmoid", "sqrt", "rsqrt", "erf",
         "log", "square", "softplus", "elu", "mish", "sin", "cos", "tan", "log1p", "atan"]


def elementwise(r):
    p = Program()
    rows, columns = r.size(1, 4096), r.size(1, 4096)
    while rows * columns > 1 << 20:
        rows, columns = r.size(1, 4096), r.size(1, 4096)
    if r.random() < 0.15:
        channels = r.size(3, 256)
        x = p.input(rows, channels, columns) if rows * channels * columns < 1 << 20 else p.input(4, channels, 64)
        sizes = [rows, channels, columns] if rows * channels * columns < 1 << 20 else [4, channels, 64]
        v = p.op("mul", [x, p.input(channels, 1, kind="state")], sizes)
        v = p.op("add", [v, p.input(channels, 1, kind="state")], sizes)
        return p.text(p.op(r.choice(UNARY), [v], sizes) if r.random() < 0.5 else v)
    sizes = [rows, columns]
    values = [p.input(*sizes)]
    for _ in range(r.choice([1, 1, 2, 3, 5])):
        how = r.random()
        if how < 0.5:
            values.append(p.op(r.choice(UNARY), [values[-1]], sizes))
        elif how < 0.75:
            other = p.input(*r.choice([sizes, [columns], [rows, 1]]))
            values.append(p.op(r.choice(["add", "sub", "mul", "maximum", "div", "pow"]), [values[-1], other], sizes))
        else:
            values.append(p.op(r.choice(["add", "mul"]), [values[-1], r.choice(values)], sizes))
    return p.text(values[-1])


def reduction(r):
    p = Program()
    rows, columns = r.size(1, 4096), r.size(2, 4096)
    while rows * columns > 1 << 20:
        rows, columns = r.size(1, 4096), r.size(2, 4096)
    x = p.input(rows, columns)
    how = r.random()
    if how < 0.3:
        return p.text(p.op(r.choice(["softmax", "softmax", "log_softmax"]), [x], (rows, columns), "axis = -1 : i64"))
    if how < 0.5:
        mean = p.op("mean", [x], (rows, 1), "axis = array<i64: 1>, keepdims = true")
        c = p.op("sub", [x, mean], (rows, columns))
        var = p.op("mean", [p.op("square", [c], (rows, columns))], (rows, 1), "axis = array<i64: 1>, keepdims = true")
        y = p.op("mul", [c, p.op("rsqrt", [var], (rows, 1))], (rows, columns))
        return p.text(p.op("mul", [y, p.input(columns, kind="state")], (rows, columns)))
    name = r.choice(["sum", "mean", "max", "min"])
    if how < 0.7:
        return p.text(p.op(name, [x], (rows,), "axis = array<i64: 1>, keepdims = false"))
    if how < 0.85:
        return p.text(p.op(name, [x], (columns,), "axis = array<i64: 0>, keepdims = false"))
    batch, channels, size = r.choice([1, 1, 4]), r.size(4, 256), r.size(2, 40)
    window = r.choice([2, 3])
    last = r.random() < 0.5
    out = (size - window) // 2 + 1
    if out < 1:
        window, out = 2, size // 2
    image = (batch, size, size, channels) if last else (batch, channels, size, size)
    result = (batch, out, out, channels) if last else (batch, channels, out, out)
    q = Program()
    y = q.input(*image)
    return q.text(q.op(r.choice(["max_pool", "avg_pool"]), [y], result,
                       f"channels_last = {str(last).lower()}, strides = array<i64: 2, 2>, window = array<i64: {window}, {window}>"))


def movement(r):
    p = Program()
    how = r.random()
    a, b, c = r.size(1, 64), r.size(2, 512), r.size(2, 512)
    while a * b * c > 1 << 20:
        a, b, c = r.size(1, 64), r.size(2, 512), r.size(2, 512)
    x = p.input(a, b, c)
    if how < 0.35:
        order = r.choice([(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1)])
        sizes = [a, b, c]
        return p.text(p.op("transpose", [x], [sizes[i] for i in order], f"permutation = {ints(order)}"))
    if how < 0.5:
        return p.text(p.op("concat", [x, p.input(a, b, c)], (a, b, 2 * c), "axis = 2 : i64"))
    if how < 0.65 and b > 3 and c > 3:
        return p.text(p.op("relu", [p.op("slice", [x], (a, b - 2, c // 2), f"starts = {ints((0, 1, 0))}, limits = {ints((a, b - 1, c // 2 * 2))}, "
                                         f"strides = {ints((1, 1, 2))}")], (a, b - 2, c // 2)))
    if how < 0.8:
        return p.text(p.op("pad", [x], (a, b + 2, c + 2), f"high = {ints((0, 1, 1))}, low = {ints((0, 1, 1))}"))
    q = Program()
    table, rows = r.size(64, 8192), r.size(1, 512)
    width = r.size(4, 768)
    while table * width > 1 << 21:
        table, width = r.size(64, 8192), r.size(4, 768)
    t, i = q.input(table, width, kind="state"), q.input(rows, type="i64")
    return q.text(q.op("take", [t, i], (rows, width), "axis = 0 : i64"))


def attention(r):
    p = Program()
    heads, queries, size = r.choice([1, 2, 4, 8, 12]), r.size(4, 512), r.choice([16, 32, 64, 64, 80, 128])
    keys = queries if r.random() < 0.7 else r.size(4, 512)
    q, k, v = p.input(heads, queries, size), p.input(heads, keys, size), p.input(heads, keys, size)
    return p.text(p.op("scaled_dot_product_attention", [q, k, v], (heads, queries, size)))


def bitcode(r):
    p = Program()
    rows, columns = r.size(1, 256), r.size(4, 2048)
    x = p.input(rows, columns)
    how = r.random()
    if how < 0.3:
        return p.text(p.op("sort", [x], (rows, columns), "axis = -1 : i64"))
    if how < 0.45:
        return p.text(p.op("argsort", [x], (rows, columns), "axis = -1 : i64", type="i64"))
    if how < 0.6:
        return p.text(p.op("cumsum", [x], (rows, columns), "axis = -1 : i64"))
    n, width = r.size(2, 2000), r.size(1, 256)
    d = p.input(n, 1, type="i64")
    if how < 0.8:
        t = p.input(max(4, rows), width)
        return p.text(p.op("gather_nd", [t, d], (n, width)))
    t, u = p.input(max(4, rows), width), p.input(n, width)
    return p.text(p.op("scatter_nd", [t, d, u], (max(4, rows), width)))


def programs(seed, scale=1.0):
    """(provider, text): which provider's kernels the program is for."""
    r = Draw(seed)
    made = []

    def add(count, providers, make):
        for _ in range(max(2, int(count * scale))):
            text = make()
            made.extend((provider, text) for provider in providers)

    libraries = ["builtin", "onednn"]
    add(260, libraries, lambda: product(r, 5e8, 8e7))
    add(260, libraries, lambda: convolution(r, "dense"))
    add(200, libraries, lambda: convolution(r, "few"))
    add(160, libraries, lambda: convolution(r, "depthwise"))
    add(80, libraries, lambda: convolution(r, "grouped"))
    add(60, ["builtin"], lambda: attention(r))
    add(60, ["generated"], lambda: convolution(r, "depthwise", 1e7))
    add(60, ["generated"], lambda: convolution(r, "few", 4e7))
    add(120, ["generated"], lambda: convolution(r, "thin", 4e7))
    add(60, ["generated"], lambda: convolution(r, "dense", 1e8))
    add(40, libraries, lambda: convolution(r, "thin"))
    add(160, ["generated"], lambda: product(r, 5e8, 8e7))
    add(600, ["generated"], lambda: elementwise(r))
    add(300, ["generated"], lambda: reduction(r))
    add(250, ["generated"], lambda: movement(r))
    add(600, ["bitcode"], lambda: bitcode(r))
    add(120, libraries, lambda: convolution(r, "column"))
    return made
