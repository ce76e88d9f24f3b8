"""What check.py has written into a folder as one table and report.json, whose rows have the form of those of test/bench.

report.py STAGE FOLDER
"""
import argparse
import datetime
import json
import pathlib
import re

LOSSES_AGREE = 1e-3  # of ten steps in f32: relative, of what is small to a hundredth of the first
STANDIN = "stand-in card"
WIDTHS = (512, 4096, 32768)
STEPS = ("mlp", "lenet", "resnet18", "charlm", "lstm")
ENDED = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] ([\w/.]+)")


def lines(path):
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            found += [json.loads(line)] if line.startswith("{") else []
        except json.JSONDecodeError:  # the last one of a process that was ended
            pass
    return found


def tests_of(*paths):
    """What became of each test that logs of googletest name."""
    words, found = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}, {}
    for line in (line for path in paths if path.exists() for line in path.read_text(errors="replace").splitlines()):
        if begun := re.match(r"^\[ RUN +\] ([\w/.]+)", line):
            found[begun[1]] = "not ended"
        elif (ended := ENDED.match(line)) and found.get(ended[2]) == "not ended":
            found[ended[2]] = words[ended[1]]
    return found


def differences(ours, theirs):
    """Tests whose result is not that of the stand-in driver: lines for people, and how many are worse."""
    listed, worse = [], 0
    for name in sorted({*ours, *theirs}):
        here, there = ours.get(name, "not run"), theirs.get(name, "not run")
        if here != there:
            listed.append(f"{name}: {here} here, {there} on the stand-in driver")
            worse += there == "passed"
    return listed, worse


class Folder:
    def __init__(self, stage, out):
        self.stage, self.out = stage, out
        self.pack = json.loads((stage / "pack.json").read_text())
        status = out / "status.json"
        self.status = json.loads(status.read_text()) if status.exists() else {}
        machine = lines(out / "machine.jsonl")
        card = next((line for line in machine if "card" in line), {})
        self.is_standin = card.get("card", "").startswith(STANDIN)
        self.machine = "stand-in driver" if self.is_standin else f"{card['card']} ({card['architecture']})" if card else "no card" if (out / "no-card.txt").exists() else "unknown card"
        self.copies = {line["copy"]: line["gb_per_second"] for line in machine if "copy" in line}
        self.graphs = {line["graph"]: line for line in machine if "graph" in line}
        self.programs, self.one_by_one, self.steps, self.losses = (
            {line["program"].rpartition("/")[2].removesuffix(".tsl"): line for line in lines(path)}
            for path in (out / "programs.jsonl", out / "one-by-one.jsonl", out / "steps.jsonl", stage / "steps/losses.jsonl"))
        self.peers, self.versions = {}, {}
        for line in [*lines(out / "peers.torch.jsonl"), *lines(out / "peers.jax.jsonl")]:
            if "version" in line:
                self.versions[line["framework"]] = line["version"]
            elif "program" in line:
                self.peers.setdefault(line["program"], {}).update({key: value for key, value in line.items() if key.endswith("_us")})

    def facts(self):
        return {"machine": self.machine, "stand_in": self.is_standin, "commit": self.pack["commit"],
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}

    def why(self, step):
        """Why a step has not given a figure."""
        no_card = self.out / "no-card.txt"
        if no_card.exists():
            return "skipped", no_card.read_text().strip()
        status = self.status.get(step, {"status": "skipped", "why": "it is not part of this pack"})
        if status["status"] == "skipped":
            return "skipped", status["why"]
        if status["status"] == "ok" and self.pack["small"]:
            return "skipped", "not part of a small pack"
        return "failed", f"{step}: {status['why'] or 'it wrote no figure'}"

    def absent(self, name, step, programs=()):
        kind, why = self.why(step)
        said = [f"{program}: {self.programs[program]['failed']}" for program in programs if "failed" in self.programs.get(program, {})]
        return {"id": name, "failed" if said else kind: "; ".join(said) or why, **self.facts()}

    def row(self, name, unit, better, value, note, spread=None, peers=None, aim=None, aim_on="ratio", needs=None, is_time=True, ratio=None):
        """`needs`: peers without one of which the aim is not judged. The ratio is how many times better than the best peer."""
        peers = {peer: median for peer, median in (peers or {}).items() if median}
        if ratio is None and peers and value:
            ratio = min(peers.values()) / value if better == "lower" else value / max(peers.values())
        figure = ratio if aim_on == "ratio" else value
        met = None
        if aim is not None and figure is not None and not (is_time and self.is_standin) and (not needs or any(each in peers for each in needs)):
            met = figure <= aim if aim_on == "tressel" and better == "lower" else figure >= aim
        if is_time and self.is_standin:
            note = "measured; on the stand-in driver times mean nothing"
        versions = {peer: {"median": median, "version": self.versions.get("jax" if peer == "jax" else "torch" if "pytorch" in peer else "", "")} for peer, median in peers.items()}
        return {"id": name, "unit": unit, "better": better, "tressel": value, "spread": spread or [value, value], "peers": versions, "ratio": ratio, "note": note,
                "aim": aim, "aim_on": aim_on, "aim_met": met, "is_time": is_time, **self.facts()}

    # --- What is right -------------------------------------------------------------------------------------------------

    def tests(self, name, steps, log, compare):
        """Of the steps, each with its log, which are processes of one program."""
        ours = tests_of(self.out / f"{log}.log", *(self.out / f"{log}.{i}.log" for i in range(len(steps))))
        step = next((each for each in steps if self.status.get(each, {}).get("status") != "ok"), steps[0])
        if not ours:
            return self.absent(name, step)
        counts = {word: sum(result == word for result in ours.values()) for word in ("passed", "failed", "skipped", "not ended")}
        listed, worse = differences(ours, tests_of(self.stage / "expected" / f"{log}.log")) if compare else ([], 0)
        text = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        if compare:
            text += f"; {len(listed)} differ from the stand-in driver" + (f", {worse} passed there" if worse else "")
        if self.status.get(step, {}).get("status") == "ended":
            text += "; " + self.status[step]["why"]
        bad = [test for test, result in ours.items() if result in ("failed", "not ended")]
        if bad or self.status.get(step, {}).get("status") != "ok":
            return {"id": name, "failed": f"{text}: {', '.join(bad[:5]) or self.status[step]['why']}", "differences": listed, **self.facts()}
        return self.row(name, "tests", "higher", counts["passed"], text, is_time=False) | {"differences": listed}

    def confirmed(self):
        """Lines of the table of the driver's meaning, all of whose tests have passed."""
        ours, found = tests_of(self.out / "semantics.log"), []
        for line in (self.stage / "test/standin/README.md").read_text().splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) != 4 or cells[3] not in ("yes", "no"):
                continue
            names = re.findall(r"\b[A-Z]\w+\b", cells[2].replace("CudaGraphSemantics.", ""))
            results = [result for name in names for test, result in ours.items() if test.rpartition(".")[2].startswith(name)]
            if results:
                found.append({"what": cells[0], "before": cells[3], "here": "yes" if set(results) == {"passed"} else ", ".join(sorted(set(results)))})
        return found

    def models(self):
        log = self.out / "models.log"
        judged = [line for line in log.read_text().splitlines() if line.startswith(("agrees", "DIFFERS"))] if log.exists() else []
        if not judged or self.status["models"]["status"] != "ok":
            row = self.absent("gpu.models", "models")
            return row | ({"failed": "; ".join([row["failed"], *(line for line in judged if line.startswith("DIFFERS"))])} if "failed" in row else {})
        return self.row("gpu.models", "models", "higher", len(judged), "agree with ONNX Runtime", is_time=False)

    def example(self, name, figure):
        path, step = self.out / f"{name}.json", f"examples.{name}"
        if self.status.get(step, {}).get("status") != "ok" or not path.exists():
            return None, self.absent(f"gpu.example.{name}", step)
        figures = json.loads(path.read_text())
        note = f"{figure.replace('_', ' ')} {figures[figure]:.1e}" if figure in figures else "as on the processor"
        return figures, self.row(f"gpu.example.{name}", "programs", "higher", 1, note, is_time=False)

    # --- How fast it is ------------------------------------------------------------------------------------------------

    def kernels(self, program):
        line = self.programs.get(program, {})
        return (1e-6 * line["kernels_us"], [1e-6 * us for us in line["kernels_us_spread"]]) if line.get("kernels_us") else (None, None)

    def share(self, name, program, moved, aim):
        """Of the rate at which this card copies."""
        copy, (seconds, spread) = self.copies.get("on the card, read and written"), self.kernels(program)
        if not copy or not seconds:
            return self.absent(name, "programs" if copy else "machine", [program])
        share = moved / seconds / 1e9 / copy
        peers = {f"pytorch {key}": self.peers[program][f"{key}_us"] for key in ("eager", "compiled") if f"{key}_us" in self.peers.get(program, {})}
        peers = {peer: moved / us / 1e3 / copy for peer, us in peers.items()}
        return self.row(name, "share", "higher", share, f"{program}: kernels, by the card's clock, of the copy's {copy:.0f} GB/s", [share * seconds / s for s in reversed(spread)] if all(spread) else None,
                        peers, aim, "tressel")

    def against_torch(self, name, programs, aim):
        """The program that is slowest against its peer."""
        found = []
        for program in programs:
            seconds, spread = self.kernels(program)
            if seconds:
                peers = {f"pytorch {key}": 1e-6 * self.peers.get(program, {}).get(f"{key}_us", 0) for key in ("eager", "compiled")}
                found.append(self.row(name, "s", "lower", seconds, f"{program}: kernels, by the card's clock" + ("" if any(peers.values()) else "; no peer ran"), spread, peers, aim, needs=["pytorch compiled"]))
        return min(found, key=lambda r: r["ratio"] or float("inf")) if found else self.absent(name, "programs", programs)

    LIBRARIES = {"cublaslt": "cuBLASLt", "cudnn.attention": "cuDNN"}

    def library_note(self, library="cublaslt"):
        """Why generated kernels ran in place of a library's, which is said once."""
        log = self.out / "programs.err"
        said = [line for line in log.read_text(errors="replace").splitlines() if f"without {self.LIBRARIES[library]}" in line] if log.exists() else []
        return said[0] if said else ""

    def is_by(self, library, program):
        return not self.library_note(library) and any(kernel.get("library") == library for kernel in self.programs.get(program, {}).get("kernels", []))

    def product(self, name, program, end="", how="generated kernels"):
        """Generated kernels, and what the compiler takes where libraries are allowed, beside cuBLASLt."""
        seconds, spread = self.kernels(program + end)
        library, _ = self.kernels(program + ".library")
        if not seconds:
            return self.absent(name, "programs", [program + end])
        peers = {"cublaslt": library if self.is_by("cublaslt", program + ".library") else None, "pytorch eager": 1e-6 * self.peers.get(program, {}).get("eager_us", 0)}
        return self.row(name, "s", "lower", seconds, f"{program}: {how}, by the card's clock" + ("" if peers["cublaslt"] else f"; no cuBLASLt: {self.library_note() or 'the compiler did not choose it'}"),
                        spread, peers, 1.0, needs=["cublaslt"])

    def library(self, name, kind, library):
        """Through our calls of a library against PyTorch's: the programs of a kind that were compiled so."""
        programs = [program.removesuffix(".library") for program in self.programs if program.startswith(kind) and program.endswith(".library")]
        found = []
        for program in programs:
            seconds, spread = self.kernels(program + ".library")
            if seconds and self.is_by(library, program + ".library"):
                found.append(self.row(name, "s", "lower", seconds, f"{program} by {self.LIBRARIES[library]}, by the card's clock", spread, {"pytorch eager": 1e-6 * self.peers.get(program, {}).get("eager_us", 0)}, 1.0))
        if not found and self.library_note(library):
            return {"id": name, "skipped": self.library_note(library), **self.facts()}
        return min(found, key=lambda r: r["ratio"] or float("inf")) if found else self.absent(name, "programs", [f"{program}.library" for program in programs])

    def graph(self):
        ours, single = self.programs.get("chain.20", {}), self.one_by_one.get("chain.20", {})
        if "step_us" not in ours or "step_us" not in single:
            return self.absent("gpu.graph.20", "one-by-one" if "step_us" in ours else "programs", ["chain.20"])
        peers = self.peers.get("chain.20", {})
        return self.row("gpu.graph.20", "s", "lower", 1e-6 * ours["step_us"], f"a call of 20 kernels as a CUDA graph, until its result is there; one by one {single['step_us']:.0f} us",
                        [1e-6 * us for us in ours["step_us_spread"]], {"one by one": 1e-6 * single["step_us"], "pytorch graph": 1e-6 * peers.get("graph_us", 0), "pytorch eager": 1e-6 * peers.get("waited_us", 0)})

    def devices(self, figures):
        if not figures or "together_ms" not in figures:
            return [self.absent(name, "examples.two_devices") for name in ("gpu.two-devices", "gpu.overlap")]
        alone, both = [figures["first_ms"], figures["second_ms"]], figures["together_ms"]
        is_one = self.pack_cards() < 2
        if is_one:
            two = self.row("gpu.two-devices", "ratio", "lower", both / sum(alone), "50 products on each of two devices: one card as both, together over one after the other")
        else:
            two = self.row("gpu.two-devices", "ratio", "lower", both / max(alone), "50 products on each of two cards: together over the slower one alone", aim=1.005, aim_on="tressel")
        return [two, self.row("gpu.overlap", "share", "higher", figures["overlap"], "50 products and copies of all results to the host: of what could be hidden was; "
                              f"planned {figures['planned_overlap']:.2f}; {figures['compute_ms']:.0f} ms, copies {figures['copies_ms']:.0f}, together {figures['overlapped_ms']:.0f}", aim=0.95, aim_on="tressel")]

    def pack_cards(self):
        log = self.out / "cards.txt"
        return int(log.read_text()) if log.exists() else 1

    def cholesky(self, figures):
        if not figures or "step_ms" not in figures:
            return self.absent("gpu.cholesky", "examples.cholesky")
        cards = "two cards" if self.pack_cards() > 1 else "one card as two"
        return self.row("gpu.cholesky", "ratio", "lower", figures["step_ms"] / figures["one_accelerator_ms"], f"a tiled Cholesky factorization, dependent work: over {cards}, against one")

    def training(self, short):
        """What a caller waits for a step of training; its losses beside those of the processor."""
        name, program = f"gpu.train.{short}.step", f"train.{short}.step"
        line, peers = self.steps.get(program, {}), self.peers.get(program, {})
        if "step_us" not in line:
            return {"id": name, "failed": line["failed"], **self.facts()} if "failed" in line else self.absent(name, "steps")
        expected = self.losses[program]["losses"]
        apart = max(abs(a - b) / max(abs(b), 0.01 * expected[0]) for a, b in zip(line["losses"], expected, strict=True))
        if not apart <= LOSSES_AGREE:
            return {"id": name, "failed": f"losses of ten steps differ from the processor's by {apart:.1e} of their value", **self.facts()}
        return self.row(name, "s", "lower", 1e-6 * line["step_us"], f"losses of ten steps agree with the processor's, at most {apart:.1e} apart", [1e-6 * us for us in line["step_us_spread"]],
                        {"pytorch eager": 1e-6 * peers.get("eager_us", 0), "pytorch compiled": 1e-6 * peers.get("compiled_us", 0), "jax": 1e-6 * peers.get("jax_us", 0)}, 1.3,
                        needs=["pytorch compiled", "jax"])

    def rows(self):
        for name, step, log, compare in [("gpu.conformance", ["devices"], "devices", True), ("gpu.semantics", ["semantics"], "semantics", True),
                                         *((f"gpu.numerics.{name}", [f"ops.{name}.{i}" for i in range(shards)], name, False) for name, (_, shards) in self.pack["ops"].items())]:
            yield self.tests(name, step, log, compare)
        yield self.models()
        two, row = self.example("two_devices", "largest_difference")
        yield row
        tiles, row = self.example("cholesky", "residual")
        yield row
        for name in ("split_network", "all_at_once", "data_parallel"):
            yield self.example(name, "largest_difference")[1]
        for key, name in (("on the card, read and written", "gpu.copy.card"), ("pinned to card", "gpu.copy.in"), ("card to pinned", "gpu.copy.out")):
            yield self.row(name, "GB/s", "higher", self.copies[key], key) if key in self.copies else self.absent(name, "machine")
        sizes = self.pack["bytes"]
        for t in ("f32", "bf16"):
            yield self.share(f"gpu.elementwise.{t}", f"elementwise.{t}", sizes.get(f"elementwise.{t}", 0), 0.92)
        for kind in ("softmax", "layer_norm"):
            yield self.against_torch(f"gpu.{kind.replace('_', '')}", [f"{kind}.f32.{width}" for width in WIDTHS], 1.0)
        yield self.against_torch("gpu.attention", [f"attention.{t}.{tokens}" for t in ("bf16", "f32") for tokens in (512, 2048)], 1.0)
        yield self.library("gpu.attention.library", "attention.", "cudnn.attention")
        for t in ("f32", "bf16"):
            yield self.product(f"gpu.gemm.{t}", f"matmul.{t}.4096x4096x4096")
            yield self.product(f"gpu.gemm.{t}.deep", f"matmul.{t}.64x64x16384", how="generated kernels, whose blocks share the depth")
        yield self.product("gpu.gemm.bf16.warpgroup", "matmul.bf16.4096x4096x4096", ".warpgroup", "wgmma and TMA, or tcgen05")
        yield self.library("gpu.gemm.library", "matmul.", "cublaslt")
        yield self.graph()
        yield from self.devices(two)
        yield self.cholesky(tiles)
        for short in STEPS:
            yield self.training(short)


def verdict(row):
    if "failed" in row or "skipped" in row:
        return "FAILED" if "failed" in row else "SKIPPED"
    if row["stand_in"] and row["is_time"]:
        return "STAND-IN"
    return {True: "PASS", False: "MISSED", None: "-" if row["is_time"] else "PASS"}[row["aim_met"]]


def figure(value, unit):
    return "-" if value is None else f"{1e6 * value:.1f} us" if unit == "s" else f"{value:.3g} {unit}"


def table(rows):
    yield f"{'row':34} {'verdict':9} {'tressel':>16} {'ratio':>7} {'aim':>6}  note"
    for row in rows:
        word = verdict(row)
        if word in ("FAILED", "SKIPPED"):
            yield f"{row['id']:34} {word:9} {'':31}  {row.get('failed') or row.get('skipped')}"
            continue
        hidden = word == "STAND-IN"
        peers = ", ".join(f"{peer} {figure(each['median'], row['unit'])}" for peer, each in row["peers"].items()) if not hidden else ""
        ratio = "-" if hidden or row["ratio"] is None else f"{row['ratio']:.2f}"
        aim = "-" if row["aim"] is None else f"{row['aim']:g}"
        yield f"{row['id']:34} {word:9} {'-' if hidden else figure(row['tressel'], row['unit']):>16} {ratio:>7} {aim:>6}  {row['note']}{'; ' + peers if peers else ''}"


def finish(stage, out):
    """Writes report.json, prints the table, and returns the status of the check."""
    folder = Folder(stage, out)
    rows = list(folder.rows())
    (out / "report.json").write_text(json.dumps(rows, indent=1) + "\n")
    text = [f"On {folder.machine}, commit {folder.pack['commit']}", *table(rows)]
    for row in rows:
        if row.get("differences"):
            text += [f"{row['id']}, other than on the stand-in driver:", *(f"  {line}" for line in row["differences"])]
    confirmed = [] if folder.is_standin else folder.confirmed()
    if confirmed:
        text.append("The driver's meaning (test/standin/README.md) on this card:")
        text += [f"  {line['here']:10} {line['what']}" + (" (new)" if line["here"] == "yes" and line["before"] == "no" else "") for line in confirmed]
    elif folder.is_standin:
        text.append("On the stand-in driver: no line of test/standin/README.md is confirmed by a card.")
    (out / "confirmed.json").write_text(json.dumps(confirmed, indent=1) + "\n")
    (out / "table.txt").write_text("\n".join(text) + "\n")
    print("\n".join(text), flush=True)
    return 1 if any(verdict(row) == "FAILED" for row in rows) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    raise SystemExit(finish(args.stage, args.folder))


if __name__ == "__main__":
    main()
