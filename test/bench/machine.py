"""What the report says of where and when a row was measured."""
import datetime
import functools
import json
import os
import pathlib
import platform
import subprocess

# Of the processor's flags, those that kernels choose by, and those of 16-bit and 8-bit units.
FLAGS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8",
         "asimd", "sve")
WIDEST = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
LIMITS = ("TRESSEL_KERNEL_LEVEL", "TRESSEL_KERNEL_TILES")


def cpuinfo(key):
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return ""


@functools.cache
def flags():
    there = set(cpuinfo("flags").split() or cpuinfo("Features").split())
    return [flag for flag in FLAGS if flag in there]


def widest(flags):
    """The widest instructions among the flags, by which machines differ that call themselves alike."""
    return next((word for flag, word in WIDEST.items() if flag in flags), "no AVX2")


@functools.cache
def name():
    """The machine in a word, and what limits it in this run."""
    limits = [f"{key}={os.environ[key]}" for key in LIMITS if key in os.environ]
    processor = cpuinfo("model name") or platform.processor() or "unknown"
    return ", ".join([processor, widest(flags()), f"{os.cpu_count()} cores", *limits])


def caches():
    """By level and kind, in the order of the first core: {"L1d": 32768, ...}."""
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get((index / "type").read_text().strip(), "")
        size = (index / "size").read_text().strip()
        found["L" + (index / "level").read_text().strip() + kind] = int(size.rstrip("K")) * 1024
    return found


class Machine:
    """Measured once per run, by the program of the benchmarks."""

    def __init__(self, build):
        done = subprocess.run([build / "bin/tressel-bench", "--machine"], capture_output=True, text=True)
        self.measured = json.loads(done.stdout) if done.returncode == 0 else {}
        self.tiles = self.measured.get("tile_flops_per_second", 0) > 0
        root = pathlib.Path(__file__).parent
        git = lambda *words: subprocess.run(["git", "-C", root, *words], capture_output=True, text=True).stdout.strip()  # noqa: E731
        self.commit = git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")

    def record(self):
        """What every row of the report holds beside its figures."""
        return {"machine": name(), "isa": flags(), "tiles": self.tiles, "caches": caches(), "measured": self.measured, "commit": self.commit,
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
