#!/usr/bin/env python3
"""Runs lit on one file, and ends with 77 where lit leaves it out, for which lit itself ends with 0: the file REQUIRES what is not here.

lit_entry.py LIT ARGUMENT...
lit_entry.py --self-test LIT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

RAN = {"PASS", "FLAKYPASS", "XFAIL"}


def run(command):
    """The exit status for ctest. What a test prints has no part in it."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        status = subprocess.run([*command, "-o", report]).returncode
        if status:
            return 1 if status == 77 else status
        tests = json.loads(report.read_text())["tests"]
    left_out = [test for test in tests if test["code"] not in RAN]
    for test in left_out:
        print(f"skipped: {test['name']}: {test['code']}: {test['output'].strip()}")
    return 77 if left_out or not tests else 0


def self_test(lit):
    files = {
        "passes": ("RUN: true", 0),
        "passes-and-says-otherwise": ("RUN: echo UNSUPPORTED: FAIL: Unsupported: 1", 0),
        "fails": ("RUN: false", 1),
        "fails-and-says-otherwise": ("RUN: echo UNSUPPORTED: Unsupported: 1 && exit 77", 1),
        "has-no-command": ("nothing", 1),
        "fails-as-expected": ("XFAIL: *\nRUN: false", 0),
        "is-left-out": ("REQUIRES: nothing-of-the-kind\nRUN: false", 77),
        "is-unsupported": ("UNSUPPORTED: true\nRUN: false", 77),
    }
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "lit.cfg.py").write_text("import lit.formats\nconfig.name = 'self-test'\nconfig.test_format = lit.formats.ShTest()\n"
                                           "config.suffixes = ['.test']\n")
        for name, (text, want) in files.items():
            (folder / f"{name}.test").write_text(text + "\n")
            got = run([lit, "-v", "--no-progress-bar", "--skip-test-time-recording", folder / f"{name}.test"])
            if got != want:
                print(f"WRONG: a test that {name} ends with {got}, not {want}")
                wrong += 1
    return 1 if wrong else 0


if len(sys.argv) < 3:
    sys.exit(__doc__)
sys.exit(self_test(sys.argv[2]) if sys.argv[1] == "--self-test" else run(sys.argv[1:]))
