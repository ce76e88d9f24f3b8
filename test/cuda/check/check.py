#!/usr/bin/env python3
"""Checks Tressel on this machine's cards with what pack.sh staged or packed, and writes one table and report.json (README.md). Needs Python alone.

check.py STAGE FOLDER [--only STEP...] [--require-gpu]

Each step has a budget of seconds, and all have 8 minutes together: one that runs out of its time is ended and reported, the others go on.
Status 1: something failed, which a missed aim is not; 3: no card, with --require-gpu.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import report

UNTIL = {"timed": 225, "peers": 365, "tests": 470}  # seconds from the start, at the end of which a phase leaves the rest to the next
HERE = pathlib.Path(__file__).resolve().parent


class Check:
    def __init__(self, stage, out, only):
        self.stage, self.out, self.only = stage, out, only
        self.pack = json.loads((stage / "pack.json").read_text())
        self.start, self.lock = time.monotonic(), threading.Lock()
        self.status, self.until = {}, 0
        paths = [str(stage / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        self.env = {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), "TRESSEL_CALIBRATION": "", "TRESSEL_CACHE_DIR": ""}
        self.env.pop("TRESSEL_CUDA_GRAPHS", None)

    def bin(self, name):
        return str(self.stage / "bin" / name)

    def left(self):
        return self.until - (time.monotonic() - self.start)

    def enter(self, phase):
        self.until = UNTIL[phase]

    def say(self, step, status, why="", seconds=0.0):
        with self.lock:
            self.status[step] = {"status": status, "why": why, "seconds": round(seconds, 1)}
            print(f"{step:28} {status}{': ' + why if why else ''} ({seconds:.0f} s)", file=sys.stderr, flush=True)
            (self.out / "status.json").write_text(json.dumps(self.status, indent=1) + "\n")

    def step(self, name, budget, commands, out, env=None, one_fails=True):
        """Runs commands one after the other. `one_fails`: the first that fails ends the step."""
        if self.only and name.split(".")[0] not in self.only and name not in self.only:
            return self.say(name, "skipped", "it was not asked for")
        begin = time.monotonic()
        end, failed = begin + min(budget, self.left()), []
        with open(self.out / out, "w") as file, open(self.out / f"{name}.err", "w") as errors:
            for command in commands:
                seconds = end - time.monotonic()
                if seconds <= 0:
                    return self.say(name, "ended", f"its {budget} seconds, or those of its phase, were over", time.monotonic() - begin)
                process = subprocess.Popen([*map(str, command)], stdout=file, stderr=errors, stdin=subprocess.DEVNULL, cwd=self.out,
                                           env={**self.env, **(env or {})}, start_new_session=True)
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return self.say(name, "ended", f"its {budget} seconds, or those of its phase, were over", time.monotonic() - begin)
                if code:
                    failed.append(f"{pathlib.Path(command[-1] if one_fails is False else command[0]).name}: {'signal' if code < 0 else 'status'} {abs(code)}")
                    if one_fails:
                        break
        last = (self.out / f"{name}.err").read_text(errors="replace").strip().splitlines()[-1:] if failed else []
        self.say(name, "failed" if failed else "ok", "; ".join([*failed, *last])[:300], time.monotonic() - begin)

    def skip(self, name, why):
        self.say(name, "skipped", why)

    def packages(self, folder):
        return sorted((self.stage / folder).glob("*.tsl"))

    def timed(self, cards):
        """What is measured, while nothing else runs."""
        self.enter("timed")
        pack, seconds = self.pack, str(self.pack["seconds"])
        self.step("machine", 20, [[self.bin("gpu-bench"), "--machine", str(pack["machine_bytes"])]], "machine.jsonl")
        for group, budget in (("programs", 110), ("steps", 30)):
            self.step(group, budget, [[self.bin("gpu-bench"), "--seconds", seconds, package] for package in self.packages(group)], f"{group}.jsonl", one_fails=False)
        self.step("one-by-one", 10, [[self.bin("gpu-bench"), "--seconds", seconds, self.stage / "programs/chain.20.tsl"]], "one-by-one.jsonl", {"TRESSEL_CUDA_GRAPHS": "0"})
        pair = "cuda" if cards > 1 else "cuda:0,0"
        for name, budget, words in (("two_devices", 40, [pack["two_devices"]]), ("cholesky", 40, [pack["cholesky"], "2"])):
            self.example(name, budget, [pair, *words])

    def example(self, name, budget, words):
        if not (self.stage / "bin" / name).exists():
            return self.skip(f"examples.{name}", "it is not part of this pack")
        self.step(f"examples.{name}", budget, [[self.bin(name), *words, "--figures", self.out / f"{name}.json"]], f"{name}.log")

    def peers(self):
        self.enter("peers")
        for framework, budget in (("torch", 100), ("jax", 50)):
            name = f"peers.{framework}"
            if self.pack["small"]:
                self.skip(name, "a small pack has none")
            elif subprocess.run([sys.executable, "-c", f"import {framework}"], capture_output=True).returncode:
                self.skip(name, f"{framework} is not installed for {sys.executable}")
            else:
                # Without our libraries in its way.
                self.step(name, budget, [[sys.executable, HERE / "peers.py", framework, *(["--seconds", "75"] if framework == "torch" else [])]], f"peers.{framework}.jsonl",
                          {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})

    def tests(self, cards):
        """What is right, all at the same time."""
        self.enter("tests")
        pair = "cuda" if cards > 1 else "cuda:0,0"
        jobs = [lambda: self.step("devices", 240, [[self.bin("test_devices"), "--gtest_filter=" + self.pack["devices"]]], "devices.log"),
                lambda: self.step("semantics", 240, [[self.bin("test_cuda_semantics")]], "semantics.log"),
                lambda: self.example("split_network", 240, [pair, *self.pack["split_network"]])]
        if not self.pack["small"]:
            jobs += [lambda: self.example("data_parallel", 240, [pair]), lambda: self.example("all_at_once", 240, [pair])]
        for name, (filters, shards) in self.pack["ops"].items():
            for i in range(shards):
                jobs.append(lambda name=name, filters=filters, shards=shards, i=i: self.step(
                    f"ops.{name}.{i}", 240, [[self.bin(name), "--gtest_filter=" + filters]], f"{name}.{i}.log",
                    {"TRESSEL_TEST_ON": "cuda", "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i)}))
        jobs.append(self.models)
        threads = [threading.Thread(target=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def models(self):
        if not self.pack["models"]:
            return self.skip("models", "a small pack has none")
        if subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True).returncode:
            return self.skip("models", f"numpy is not installed for {sys.executable}")
        self.step("models", 240, [[sys.executable, HERE.parent / "models/emulated.py", "--build", self.stage, "--device", "cuda", "--kept", self.stage / "models", *self.pack["models"]]], "models.log")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--require-gpu", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    args.folder.mkdir(parents=True)
    check = Check(args.stage.resolve(), args.folder.resolve(), args.only)
    listed = subprocess.run([check.bin("tressel"), "devices"], capture_output=True, text=True, env=check.env)
    cards = sum(line.startswith("gpu") for line in listed.stdout.splitlines())
    if not cards:
        lines = [line.removeprefix("no GPU: ") for line in listed.stdout.splitlines() if line.startswith("no GPU: ")] or (listed.stdout + listed.stderr).strip().splitlines()[-1:]
        why = lines[0] if lines else f"tressel devices ended with status {listed.returncode}"
        (check.out / "no-card.txt").write_text(why + "\n")
        code = report.finish(check.stage, check.out)
        sys.exit(3 if args.require_gpu else code)
    (check.out / "cards.txt").write_text(f"{cards}\n")
    check.timed(cards)
    check.peers()
    check.tests(cards)
    print(f"{time.monotonic() - check.start:.0f} seconds in all", file=sys.stderr)
    sys.exit(report.finish(check.stage, check.out))


if __name__ == "__main__":
    main()
