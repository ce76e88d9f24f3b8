"""Compiles models for every GPU architecture and writes what the assembler says of their kernels as a table.

table.py --build BUILD [--check] [--markdown FILE]: with --check it fails where a kernel spills or a model does not assemble (and is skipped, with
exit status 77, where there is no assembler); with --markdown the table replaces what stands between the two comments in FILE.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ARCHS = ["sm_80", "sm_90", "sm_100", "sm_120"]
MODELS = pathlib.Path(__file__).resolve().parents[3] / "build/models"  # of ./dev setup, whatever build is looked at
BEGIN, END = "<!-- table of kernels: test/cuda/models/table.py -->\n", "<!-- end of the table -->\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    tressel, here = build / "bin" / "tressel", pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        models = {}
        for name, file, text in (("magika", "magika/model.onnx", "content types from 2048 bytes, f32"), ("basic-pitch", "basic-pitch/nmp.onnx", "any batch, f32"),
                                 ("silero-vad", "silero/silero_vad_v6.onnx", "any length, f32")):
            models[name] = (MODELS / file, text)
        for name, dtype, text in (("resnet18", "f32", "224 x 224, batch 1, f32"), ("encoder", "f32", "6 layers, 128 tokens of 384, f32"),
                                  ("encoder", "f16", "the same, f16")):
            path = folder / f"{name}-{dtype}.onnx"
            subprocess.run([sys.executable, here / "make.py", name, path, "--dtype", dtype], check=True)
            models[path.stem] = (path, text)
        rows, bad = [], []
        for name, (path, text) in models.items():
            package = folder / "out.tsl"
            dims = ["--dim", "unk__214=1"] if name == "magika" else []
            for arch in ARCHS: # one by one: how kernels are cut is decided for the first of a package
                subprocess.run([tressel, "compile", path, "--device", "cuda", "--gpu", arch, *dims, "-o", package, "-q"], check=True)
                info = json.loads(subprocess.run([tressel, "inspect", package, "--json"], check=True, capture_output=True).stdout)
                gpu = info["gpu"][0]
                if not gpu["cubin_bytes"]:
                    print("skipped: no assembler for PTX (nvJitLink or ptxas) on this machine")
                    sys.exit(77)
                kernels = gpu["kernels"]
                registers = sorted(k["registers"] for k in kernels)
                spilling = [k["symbol"] for k in kernels if k["spill_stores"] + k["spill_loads"]]
                bad += [f"{name} for {gpu['arch']}: {symbol} spills registers" for symbol in spilling]
                rows.append([f"{name} ({text})" if gpu["arch"] == ARCHS[0] else "", gpu["arch"], len(kernels), registers[len(registers) // 2],
                             registers[-1], len(spilling), f"{max(k['shared_bytes'] for k in kernels) / 1024:.1f}",
                             f"{gpu['ptx_bytes'] / 1000:.0f}", f"{gpu['cubin_bytes'] / 1000:.0f}"])
                tool = gpu["assembler"]
    head = ["model", "GPU", "kernels", "registers, median", "most", "with register spills", "shared memory, KiB at most", "PTX, kB", "cubin, kB"]
    lines = [head, ["---"] * len(head), *rows]
    table = "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines) + f"\nAssembled by {tool}.\n"
    print(table)
    if args.markdown:
        file = pathlib.Path(args.markdown)
        text = file.read_text()
        before, rest = text.split(BEGIN)
        file.write_text(before + BEGIN + table + END + rest.split(END)[1])
    print("\n".join(bad))
    sys.exit(bool(args.check and bad))


main()
