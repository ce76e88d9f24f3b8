"""The figures of check.sh as rows like those of test/bench/run.py: FOLDER/{machine,programs,steps,losses,peers}.jsonl into one JSON file.

report.py FOLDER --out build/gpu/report.json
report.py --skipped "no driver" --out build/gpu/report.json     no card: each row says why it was skipped
"""
import argparse
import json
import pathlib

# row: the programs whose time it takes, of which the slowest against its peer counts
ROWS = {"gpu.elementwise": ["elementwise.f32"], "gpu.softmax": ["softmax.f32.512", "softmax.f32.4096", "softmax.f32.32768"],
        "gpu.layernorm": ["layer_norm.f32.512", "layer_norm.f32.4096", "layer_norm.f32.32768"],
        "gpu.attention": ["attention.bf16.512", "attention.bf16.2048", "attention.f32.512", "attention.f32.2048"],
        "gpu.gemm": ["matmul.f32.4096x4096x4096", "matmul.bf16.4096x4096x4096"], "gpu.copy": ["copy.f32"]}

STEPS = ["mlp", "lenet", "resnet18", "charlm", "lstm"]
LOSSES_AGREE = 1e-3  # of ten steps in f32: relative, of what is small to a hundredth of the first


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")] if path.exists() else []


def row(name, **figures):
    return {"id": name, "unit": "s", "better": "lower", "tressel": None, "spread": None, "peers": {}, "ratio": None, "machine": None,
            "note": ""} | figures


def steps(folder, peers, machine):
    """What a caller waits for a step of training; its losses beside those of the processor."""
    ours, processor = ({line["program"].removesuffix(".tsl"): line for line in lines(folder / f"{name}.jsonl")} for name in ("steps", "losses"))
    for short in STEPS:
        name, program = f"gpu.train.{short}.step", f"train.{short}.step"
        line, peer = ours.get(program, {}), peers.get(program, {}).get("eager_us")
        if "step_us" not in line:
            yield row(name, machine=machine, note="failed: " + line.get("failed", "the program did not end; steps.log says why"))
            continue
        expected = processor[program]["losses"]
        apart = max(abs(a - b) / max(abs(b), 0.01 * expected[0]) for a, b in zip(line["losses"], expected, strict=True))
        seconds = 1e-6 * line["step_us"]
        yield row(name, tressel=seconds, peers={"pytorch eager": 1e-6 * peer} if peer else {}, ratio=1e-6 * peer / seconds if peer else None, machine=machine,
                  note=f"losses of ten steps {'agree with' if apart <= LOSSES_AGREE else 'DIFFER from'} the processor's, at most {apart:.1e} apart")


def measured(folder):
    cards = [line for line in lines(folder / "machine.jsonl") if "card" in line]
    machine = f"{cards[0]['card']} ({cards[0]['architecture']})" if cards else None
    ours = {line["program"].removesuffix(".tsl"): line["kernels_us"] for line in lines(folder / "programs.jsonl") if "kernels_us" in line}
    peers = {line["program"]: line for line in lines(folder / "peers.jsonl") if "program" in line}
    yield from steps(folder, peers, machine)
    for name, programs in ROWS.items():
        found = []
        for program in programs:
            times = {key: peers.get(program, {}).get(f"{key}_us") for key in ("eager", "compiled")}
            times = {f"pytorch {key}": 1e-6 * us for key, us in times.items() if us}
            if program in ours:
                seconds = 1e-6 * ours[program]
                found.append(row(name, tressel=seconds, peers=times, ratio=min(times.values()) / seconds if times else None, machine=machine,
                                 note=f"{program}: kernels, by the card's clock" + ("" if times else "; no peer ran")))
        if found:
            yield min(found, key=lambda r: (r["ratio"] is None, r["ratio"] or 0))
        else:
            yield row(name, machine=machine, note="failed: no program of this row ended; programs.log says why")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--skipped")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    if (args.folder is None) == (args.skipped is None):
        parser.error("give a folder of figures, or --skipped")
    rows = list(measured(args.folder)) if args.folder else [row(name, note=f"skipped: {args.skipped}") for name in [*(f"gpu.train.{short}.step" for short in STEPS), *ROWS]]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows, indent=1) + "\n")
    for r in rows:
        ratio = f"{r['tressel'] * 1e6:10.1f} us   {r['ratio']:.2f} of the faster PyTorch" if r["ratio"] else ""
        print(f"{r['id']:18} {ratio}  {r['note']}")


if __name__ == "__main__":
    main()
