#!/usr/bin/env python3
"""`./dev gpu-check` in its smallest form, in a folder outside of the sources: on the stand-in driver, whose times are never shown; with a mistake planted in the
driver; and without a card.

usage: gpu_check.py BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / "test/cuda/check"))
import report  # noqa: E402

# What the smallest pack gives figures of.
RIGHT = {"gpu.conformance", "gpu.semantics", "gpu.numerics.cuda_loops_test", "gpu.example.two_devices", "gpu.example.split_network"}
TIMED = {"gpu.copy.card", "gpu.copy.in", "gpu.copy.out", "gpu.elementwise.f32", "gpu.softmax", "gpu.layernorm", "gpu.attention", "gpu.attention.library", "gpu.gemm.bf16", "gpu.gemm.f32.deep", "gpu.gemm.bf16.deep", "gpu.gemm.bf16.warpgroup", "gpu.gemm.library",
         "gpu.graph.20", "gpu.two-devices", "gpu.overlap", "gpu.train.mlp.step"}


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tressel-gpu-check-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.stage = pathlib.Path(cls.folder.name) / "stage"
        subprocess.run([ROOT / "test/cuda/check/pack.sh", BUILD, "--small", cls.stage], check=True)

    def check(self, *options, **env):
        """Status, rows by name and the table. CUDA_VISIBLE_DEVICES hides cards that this machine has."""
        out = pathlib.Path(self.folder.name) / "out"
        ran = subprocess.run([sys.executable, self.stage / "test/cuda/check/check.py", self.stage, out, *options], capture_output=True, text=True,
                             env={**os.environ, **env}, cwd=self.folder.name)
        self.assertTrue((out / "report.json").exists(), ran.stderr)
        rows = json.loads((out / "report.json").read_text())
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        return ran.returncode, {row["id"]: row for row in rows}, ran.stdout

    def on_standin(self, *options, control="order=late"):
        return self.check(*options, LD_LIBRARY_PATH=str(BUILD / "standin"), TRESSEL_STANDIN=control)

    def test_all_steps_on_the_standin(self):
        status, rows, table = self.on_standin()
        self.assertEqual(status, 0, table)
        verdicts = {name: report.verdict(row) for name, row in rows.items()}
        self.assertEqual({name for name, word in verdicts.items() if word == "PASS"}, RIGHT)
        self.assertEqual({name for name, word in verdicts.items() if word == "STAND-IN"}, TIMED)
        self.assertEqual({word for name, word in verdicts.items() if name not in RIGHT | TIMED}, {"SKIPPED"})
        for row in rows.values():
            self.assertEqual(row["machine"], "stand-in driver")
            self.assertIsNone(row.get("aim_met"))
        self.assertEqual(rows["gpu.conformance"]["differences"], [])
        self.assertIn("no line of test/standin/README.md is confirmed", table)

    def test_a_planted_mistake_is_a_failure(self):
        """Which the differences name: those tests passed when this was packed."""
        status, rows, table = self.on_standin("--only", "machine", "devices", "programs", control="order=late findings=keep plant=swapped-parameters")
        self.assertEqual(status, 1)
        self.assertIn("failed", rows["gpu.conformance"], table)
        self.assertTrue(any("failed here, passed on the stand-in driver" in line for line in rows["gpu.conformance"]["differences"]), table)
        self.assertIn("it was not asked for", rows["gpu.semantics"]["skipped"])

    def test_a_program_that_fails_fails_its_row(self):
        status, rows, table = self.on_standin("--only", "machine", "programs", control="fail-kernel=2")
        self.assertEqual(status, 1, table)
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", rows["gpu.softmax"]["failed"])

    def test_without_a_card_each_row_says_why(self):
        status, rows, _ = self.check(CUDA_VISIBLE_DEVICES="")
        self.assertEqual(status, 0)
        self.assertEqual(len({row["skipped"] for row in rows.values()}), 1)
        self.assertGreaterEqual(set(rows), RIGHT | TIMED)
        self.assertEqual(self.check("--require-gpu", CUDA_VISIBLE_DEVICES="")[0], 3)


class Differences(unittest.TestCase):
    def test_both_ways(self):
        listed, worse = report.differences({"A.a": "passed", "A.b": "failed", "A.c": "passed", "A.d": "skipped"}, {"A.a": "passed", "A.b": "passed", "A.c": "skipped", "A.e": "passed"})
        self.assertEqual(listed, ["A.b: failed here, passed on the stand-in driver", "A.c: passed here, skipped on the stand-in driver",
                                  "A.d: skipped here, not run on the stand-in driver", "A.e: not run here, passed on the stand-in driver"])
        self.assertEqual(worse, 2)

    def test_a_test_that_ended_the_process(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("[ RUN      ] A.a\n[       OK ] A.a (0 ms)\n[ RUN      ] A.b/cuda\n[  SKIPPED ] A.b/cuda (1 ms)\n[ RUN      ] A.c\n")
            log.flush()
            self.assertEqual(report.tests_of(pathlib.Path(log.name)), {"A.a": "passed", "A.b/cuda": "skipped", "A.c": "not ended"})


if __name__ == "__main__":
    unittest.main()
