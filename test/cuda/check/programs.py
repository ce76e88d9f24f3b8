"""The programs that are measured on a card: each as text for `tressel compile`, and as what another framework computes.

programs.py FOLDER --tressel build/bin/tressel [--arch sm_90]: compiles them into FOLDER; products and attention of bf16 also with NVIDIA's libraries allowed, as NAME.library, and those of bf16 by instructions of that architecture alone, as NAME.warpgroup.
programs.py FOLDER --steps build/bin/tressel-bench: steps of training instead, without their weights, and FOLDER/losses.jsonl, the losses of ten steps on this processor.
programs.py FOLDER --describe COMMIT: FOLDER/pack.json, what check.py runs.
--small: few of them, of few elements, for a test on the stand-in driver.
"""
import argparse
import array
import json
import pathlib
import subprocess

F = {"f32": 4, "bf16": 2, "f16": 2}


def elementwise(n=1 << 26, t="f32"):
    t_ = f"tensor<{n}x{t}>"
    return f"""func.func @main(%x: {t_}, %y: {t_}) -> {t_} {{
  %0 = tressel.mul %x, %y : ({t_}, {t_}) -> {t_}
  %1 = tressel.gelu_tanh %0 : ({t_}) -> {t_}
  %2 = tressel.add %1, %x : ({t_}, {t_}) -> {t_}
  return %2 : {t_}
}}
"""


def copy(n=1 << 26, t="f32"):
    t_ = f"tensor<{n}x{t}>"
    return f"func.func @main(%x: {t_}) -> {t_} {{\n  %0 = tressel.negative %x : ({t_}) -> {t_}\n  return %0 : {t_}\n}}\n"


def softmax(rows, columns, t="f32"):
    t_ = f"tensor<{rows}x{columns}x{t}>"
    return f"func.func @main(%x: {t_}) -> {t_} {{\n  %0 = tressel.softmax %x {{axis = -1 : i64}} : ({t_}) -> {t_}\n  return %0 : {t_}\n}}\n"


def layer_norm(rows, columns, t="f32"):
    t_, p = f"tensor<{rows}x{columns}x{t}>", f"tensor<{columns}x{t}>"
    return (f"func.func @main(%x: {t_}, %s: {p}, %b: {p}) -> {t_} {{\n"
            f"  %0 = tressel.layer_norm %x, %s, %b : ({t_}, {p}, {p}) -> {t_}\n  return %0 : {t_}\n}}\n")


def matmul(m, n, k, t="f32"):
    a, b, c = f"tensor<{m}x{k}x{t}>", f"tensor<{k}x{n}x{t}>", f"tensor<{m}x{n}x{t}>"
    return f"func.func @main(%a: {a}, %b: {b}) -> {c} {{\n  %0 = tressel.matmul %a, %b : ({a}, {b}) -> {c}\n  return %0 : {c}\n}}\n"


def attention(batch, heads, tokens, width, t="f32"):
    x = f"tensor<{batch}x{heads}x{tokens}x{width}x{t}>"
    return (f"func.func @main(%q: {x}, %k: {x}, %v: {x}) -> {x} {{\n"
            f"  %0 = tressel.scaled_dot_product_attention %q, %k, %v : ({x}, {x}, {x}) -> {x}\n  return %0 : {x}\n}}\n")


def reduction(rows, columns, axis, t="f32"):
    x, y = f"tensor<{rows}x{columns}x{t}>", f"tensor<{rows if axis else columns}x{t}>"
    return f"func.func @main(%x: {x}) -> {y} {{\n  %0 = tressel.sum %x {{axis = array<i64: {axis}>}} : ({x}) -> {y}\n  return %0 : {y}\n}}\n"


def transpose(rows, columns, t="f32"):
    x, y = f"tensor<{rows}x{columns}x{t}>", f"tensor<{columns}x{rows}x{t}>"
    return f"func.func @main(%x: {x}) -> {y} {{\n  %0 = tressel.transpose %x {{permutation = array<i64: 1, 0>}} : ({x}) -> {y}\n  return %0 : {y}\n}}\n"


def chain(length=20, rows=64, columns=64):
    x = f"tensor<{rows}x{columns}xf32>"
    lines, at = [], "%x"
    for i in range(length):  # products, which no fusion joins
        lines.append(f"  %{i} = tressel.matmul {at}, %w : ({x}, {x}) -> {x}")
        at = f"%{i}"
    return f"func.func @main(%x: {x}, %w: {x}) -> {x} {{\n" + "\n".join(lines) + f"\n  return {at} : {x}\n}}\n"


# Name: text, bytes that have to pass memory, operations of its products, and the same in PyTorch of inputs a, b, c.
PROGRAMS = {}


def add(name, text, moved=0, flops=0, torch="", shapes=(), dtype="f32"):
    PROGRAMS[name] = dict(text=text, bytes=moved, flops=flops, torch=torch, shapes=shapes, dtype=dtype)


for t in ("f32", "bf16"):
    n = 1 << 26
    add(f"copy.{t}", copy(n, t), 2 * n * F[t], 0, "-a", [(n,)], t)
    add(f"elementwise.{t}", elementwise(n, t), 3 * n * F[t], 0, "F.gelu(a * b, approximate='tanh') + a", [(n,)] * 2, t)
    for rows, columns in ((8192, 4096), (65536, 512), (2048, 32768)):
        size = rows * columns * F[t]
        add(f"softmax.{t}.{columns}", softmax(rows, columns, t), 2 * size, 0, "torch.softmax(a, -1)", [(rows, columns)], t)
        add(f"layer_norm.{t}.{columns}", layer_norm(rows, columns, t), 2 * size, 0, f"F.layer_norm(a, ({columns},), b, c)", [(rows, columns), (columns,), (columns,)], t)
    add(f"sum.rows.{t}", reduction(8192, 8192, 1, t), 8192 * 8192 * F[t], 0, "a.sum(1)", [(8192, 8192)], t)
    add(f"sum.columns.{t}", reduction(8192, 8192, 0, t), 8192 * 8192 * F[t], 0, "a.sum(0)", [(8192, 8192)], t)
    add(f"transpose.{t}", transpose(8192, 8192, t), 2 * 8192 * 8192 * F[t], 0, "a.t().contiguous()", [(8192, 8192)], t)
    for m, n, k in ((4096, 4096, 4096), (512, 512, 512), (128, 4096, 1024), (8, 4096, 4096), (64, 64, 16384)):
        add(f"matmul.{t}.{m}x{n}x{k}", matmul(m, n, k, t), 0, 2 * m * n * k, "a @ b", [(m, k), (k, n)], t)
    for batch, heads, tokens, width in ((4, 16, 2048, 64), (8, 12, 512, 64)):
        add(f"attention.{t}.{tokens}", attention(batch, heads, tokens, width, t), 0, 4 * batch * heads * tokens * tokens * width,
            "F.scaled_dot_product_attention(a, b, c)", [(batch, heads, tokens, width)] * 3, t)
add("chain.20", chain(), 0, 20 * 2 * 64 ** 3, "chain(a, b)", [(64, 64)] * 2)


# Steps of training: rows of test/bench.
STEPS = ["train.mlp.step", "train.lenet.step", "train.resnet18.step", "train.charlm.step", "train.lstm.step"]

# For the test: each row of the report has one.
SMALL = {"copy.f32": copy(64), "elementwise.f32": elementwise(64), "softmax.f32.4096": softmax(2, 32), "layer_norm.f32.4096": layer_norm(2, 32),
         "matmul.bf16.4096x4096x4096": matmul(64, 64, 64, "bf16"), "matmul.f32.64x64x16384": matmul(32, 32, 1024), "matmul.bf16.64x64x16384": matmul(64, 32, 2048, "bf16"),
         "attention.f32.512": attention(1, 1, 8, 8), "attention.bf16.512": attention(1, 1, 16, 16, "bf16"), "chain.20": chain(20, 8, 8)}


TESTS = {"gpu_ops_test": 6, "cuda_loops_test": 1, "cuda_device_test": 1, "cuda_ops_test": 2, "cuda_forms_test": 1}  # processes at the same time
MODELS = {"silero": "silero/silero_vad_v6.onnx", "magika": "magika/model.onnx", "alexa": "openwakeword/alexa_v0.1.onnx", "embedding": "openwakeword/embedding_model.onnx",
          "ppocr.angle": "ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx", "basic-pitch": "basic-pitch/nmp.onnx"}


def describe(commit, small):
    """Sizes and selections of a pack."""
    every = {"commit": commit, "small": small, "bytes": {name: program["bytes"] for name, program in PROGRAMS.items()}}
    if small:
        return every | {"seconds": 0.01, "machine_bytes": 1 << 16, "devices": "*Conformance*/cuda*", "ops": {"cuda_loops_test": ("CudaLoops.SoftmaxAlongEveryAxis:CudaLoops.LayerNorm:CudaLoops.Products", 2)}, "models": [],
                        "two_devices": "16", "cholesky": "16", "split_network": ["64"], "bytes": {name: 0 for name in PROGRAMS} | {"elementwise.f32": 3 * 64 * 4}}
    return every | {"seconds": 0.3, "machine_bytes": 1 << 28, "devices": "*Conformance*/cuda*", "ops": {name: ("-GpuMutants*", shards) for name, shards in TESTS.items()}, "models": list(MODELS),
                    "two_devices": "4000", "cholesky": "4096", "split_network": ["4096"]}


def has_library(name):
    return name.startswith(("matmul.", "attention.bf16."))


def export_steps(folder, bench, arch, steps):
    with open(folder / "losses.jsonl", "w") as file:
        for row in steps:
            subprocess.run([bench, "--export-step", row, folder / f"{row}.tsl", arch, "--blank"], check=True)
            kept = folder / "losses"
            subprocess.run([bench, row], input=f"outputs tressel 0 {kept}\n", text=True, check=True, stdout=subprocess.DEVNULL)
            print(json.dumps({"program": row, "losses": list(array.array("f", kept.read_bytes()))}), file=file)
            kept.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tressel", default="build/bin/tressel")
    parser.add_argument("--steps", help="tressel-bench")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--describe", metavar="COMMIT")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if args.describe:
        (folder / "pack.json").write_text(json.dumps(describe(args.describe, args.small)) + "\n")
        return None
    if args.steps:
        return export_steps(folder, args.steps, args.arch, STEPS[:1] if args.small else STEPS)
    for name, text in SMALL.items() if args.small else ((name, program["text"]) for name, program in PROGRAMS.items()):
        for end, flags in (("", []), (".library", ["--allow-library"]), (".warpgroup", ["--gpu", f"{args.arch}a"])):
            if (end == ".library" and not has_library(name)) or (end == ".warpgroup" and not name.startswith("matmul.bf16.")):
                continue
            source = folder / f"{name}{end}.mlir"
            source.write_text(text)
            subprocess.run([args.tressel, "compile", source, "--device", "cuda", "--gpu", args.arch, *flags, "-o", source.with_suffix(".tsl"), "-q"], check=True)
            source.unlink()


if __name__ == "__main__":
    main()
