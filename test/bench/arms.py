"""Processes that measure on request, and whether they had the processor to themselves while they did. Protocol: Bench.h."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np

TICKS = os.sysconf("SC_CLK_TCK")
KEPT_FROM_CORES = 0.08  # share of the time that an arm's threads may wait for a core, or the machine be taken from all


def stolen_seconds():
    """Of all cores, taken by other machines of the same host."""
    return int(pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / TICKS


class Arm:
    def __init__(self, name, command, arm, env=None, crowded=False):
        """`crowded`: more threads than cores are what is measured."""
        self.name, self.arm, self.crowded = name, arm, crowded
        self.samples, self.failed, self.disturbed = {}, None, 0
        self.said = tempfile.TemporaryFile("w+", errors="replace")  # not a pipe, which would fill up
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True,
                                        env={**os.environ, **(env or {})})

    def ask(self, *words):
        """The answer; None, and `failed` says why, if there is none."""
        if self.failed:
            return None
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            if line := self.process.stdout.readline():
                return json.loads(line)
        except json.JSONDecodeError as error:
            self.failed = f"said what is no answer: {error}"
            return None
        except OSError:
            pass  # it has ended
        self.failed = f"ended with status {self.process.wait()}"
        self.said.seek(0)
        if said := self.said.read().strip().splitlines():
            self.failed += ": " + said[-1][:300]
        return None

    def measure(self, count, case=0):
        """Adds samples. Those that were taken while threads were kept from their cores are dropped and taken again, a few times."""
        for attempt in range(4):
            waited, stolen, start = self.seconds_waited(), stolen_seconds(), time.monotonic()
            taken = self.ask("measure", self.arm, count, case)
            if taken is None:
                return
            wall = time.monotonic() - start
            lost = max(self.seconds_waited() - waited, stolen_seconds() - stolen)
            if self.crowded or lost <= max(KEPT_FROM_CORES * wall, 0.004):
                break
            if attempt == 3:
                self.disturbed += 1
        self.samples.setdefault(case, []).extend(taken)

    def outputs(self, case, path):
        """All elements as one array of f32, or None."""
        count = self.ask("outputs", self.arm, case, path)
        if count is None:
            return None
        array = np.fromfile(path, np.float32)
        if array.size != count:
            self.failed = f"announced {count} elements and wrote {array.size}"
            return None
        return array

    def of_threads(self, number):
        """Seconds by /proc/PID/task/*/schedstat: 0 on a core, 1 waiting for one."""
        total = 0
        for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            try:
                total += int(path.read_text().split()[number])
            except OSError:
                pass  # a thread that has ended
        return total / 1e9

    def seconds_waited(self):
        return self.of_threads(1)

    def settle(self):
        """Returns when the process has stopped computing: OpenMP's threads look for more work for some time after a call."""
        before = self.of_threads(0)
        for _ in range(100):
            time.sleep(0.005)
            now = self.of_threads(0)
            if now - before < 0.0005:
                return
            before = now

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.said.close()
