#!/usr/bin/env python3
"""The rules of the report, shown on arms that are scripts: what differs fails before it is timed, a failed peer leaves no verdict, samples that lie too far apart are taken again, rows
of an interrupted run are kept, and the table has a line per machine.

usage: check_report.py
"""
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import measure  # noqa: E402
import report  # noqa: E402
from rows import ROWS, Row, by_tiles  # noqa: E402

FACTS = {"machine": "one", "tiles": False}
# An arm by its words: what it computes, then the samples that it gives, one after the other and over again.
SCRIPT = f"""
import itertools, sys
sys.path.insert(0, {str(HERE)!r})
from protocol import serve
value, *samples = map(float, sys.argv[1:])
given = itertools.cycle(samples)
serve(lambda arm, case: next(given), lambda arm, case: [value] * 3)
"""


def arm(*words):
    def command(build, row):
        return [sys.executable, "-c", SCRIPT, *map(str, words)]
    command.version = lambda build: "a script"
    return command


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        real = measure.start_arms

        def start(row, build, variant, preload=None):
            """Our own arm is a script too."""
            nothing, *peers = real(row, build, variant)
            nothing.close()
            return [measure.Arm("tressel", row.ours(build, row), "tressel"), *peers]

        measure.start_arms = start
        measure.bench_command, self.bench = lambda row, build: [sys.executable, "-c", "pass"], measure.bench_command
        self.addCleanup(lambda: (setattr(measure, "start_arms", real), setattr(measure, "bench_command", self.bench)))

    def measured(self, ours, expected=1, aim=0.5, **peers):
        row = Row("a.row", "s", "lower", "what", peers, aim, "ratio", rounds=5, samples=1, reference=lambda build: arm(expected, 1)(build, None))
        row.ours = ours
        arms, repeated = measure.measure_row(row, self.build)
        return measure.report_row(row, arms, repeated, self.build, FACTS)[0]

    def test_agrees(self):
        row = self.measured(arm(1, 2.0), peer=arm(1, 3.0))
        self.assertEqual((row["ratio"], row["aim_met"], row["compared"]), (1.5, True, True))

    def test_we_differ(self):
        row = self.measured(arm(1.01, 2.0), peer=arm(1, 3.0))
        self.assertIn("outputs differ", row["failed"])

    def test_no_number(self):
        self.assertIn("outputs differ", self.measured(arm("nan", 2.0))["failed"])

    def test_failed_peer_leaves_no_verdict(self):
        row = self.measured(arm(1, 2.0), right=arm(1, 3.0), wrong=arm(2, 1.0))
        self.assertIn("failed", row["peers"]["wrong"])
        self.assertEqual((row["ratio"], row["aim_met"]), (1.5, None))

    def test_ended_peer_says_why(self):
        ends = lambda build, row: [sys.executable, "-c", "import sys; sys.exit('no such library')"]  # noqa: E731
        ends.version = lambda build: ""
        self.assertIn("no such library", self.measured(arm(1, 2.0), peer=ends)["peers"]["peer"]["failed"])

    def test_samples_that_lie_apart_are_taken_again(self):
        # The first is not counted; of the next five three are slow; then all are alike.
        row = self.measured(arm(1, 2, 2, 9, 9, 9, 2, *[2] * 50), peer=arm(1, 3.0))
        self.assertEqual((row["repeated"], row["tressel"]), (1, 2))
        self.assertEqual(self.measured(arm(1, 2.0), peer=arm(1, 3.0))["repeated"], 0)

    def test_interrupted_run_goes_on(self):
        first = report.State(self.build, "key", again=False)
        first.keep([{"id": "a"}])
        self.assertTrue(report.State(self.build, "key", again=False).has(["a"]))
        self.assertFalse(report.State(self.build, "other commit", again=False).has(["a"]))
        last = report.State(self.build, "key", again=False)
        last.keep([{"id": "b"}])
        self.assertEqual([r["id"] for r in last.finish(merge=False)], ["b"])
        self.assertFalse(report.State(self.build, "key", again=False).has(["b"]))

    def test_line_per_machine(self):
        page = self.build / "page.md"
        row = self.measured(arm(1, 2.0), peer=arm(1, 3.0)) | {"id": ROWS[0].figures_of(False)[0][0]}
        report.write_markdown(page, [row])
        report.write_markdown(page, [row | {"machine": "another", "tressel": 4}])
        report.write_markdown(page, [row | {"tressel": 5}])
        lines = [line for line in page.read_text().splitlines() if line.startswith("| `")]
        self.assertEqual(len(lines), 2)
        self.assertTrue(any("| 5 s |" in line and line.endswith("| one |") for line in lines))

    def test_every_row_is_compared_or_says_why_not(self):
        import reference
        for row in ROWS:
            self.assertTrue(row.computes or row.id in reference.OUTPUTS, row.id)

    def test_rows_of_tiles(self):
        native, off = by_tiles([Row("x", "s", "lower", "", aim=1, aim_with_tiles=2)])
        self.assertEqual((native.figures_of(True), native.figures_of(False), off.figures_of(True)), ([("x", "", 2)], [("x", "", 1)], [("x.notiles", "", 1)]))


if __name__ == "__main__":
    unittest.main()
