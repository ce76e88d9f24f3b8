#!/usr/bin/env python3
"""Interrupts a training again and again, and checks that it ends with the bits of one that was left alone.

usage: interrupt_training.py kill TRAINING-LIFE COUNT         kills it at random instants
       interrupt_training.py disk TRAINING-LIFE FAILING-DISK  lets each call that brings a state to the disk fail in turn
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time


def run(program, state, steps, **environment):
    # What is preloaded comes before a sanitizer's own library.
    sanitizer = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    done = subprocess.run([program, state, str(steps)], capture_output=True, text=True, env={**os.environ, **sanitizer, **environment}, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def undisturbed(program, folder, steps):
    code, line, error = run(program, os.path.join(folder, "alone"), steps)
    assert code == 0 and line.startswith(f"ended at step {steps} "), (code, line, error)
    return line


def kill(program, count):
    randomness = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        steps = 40 * int(count)
        begin = time.monotonic()
        expected = undisturbed(program, folder, steps)
        each = (time.monotonic() - begin) / int(count)
        state = os.path.join(folder, "training-state.safetensors")
        kills = 0
        while kills < int(count):
            process = subprocess.Popen([program, state, str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(randomness.uniform(0.02, 0.3 + each))
            process.send_signal(signal.SIGKILL)
            out, error = process.communicate()
            assert process.returncode in (0, -signal.SIGKILL), (process.returncode, error)
            if process.returncode == 0:
                assert out.strip() == expected, (out, expected)
                os.remove(state)  # it came to the end: again from the beginning
            else:
                kills += 1
        code, line, error = run(program, state, steps)
        assert code == 0 and line == expected, (code, line, expected, error)
        print(f"killed {kills} times; ended with the same bits")


def disk(program, shim):
    with tempfile.TemporaryDirectory() as folder:
        steps = 8
        expected = undisturbed(program, folder, steps)
        state = os.path.join(folder, "training-state.safetensors")
        failures = 0
        for at in range(1, 1000):
            if os.path.exists(state):
                os.remove(state)
            code, line, error = run(program, state, steps, LD_PRELOAD=shim, FAIL_AT=str(at))
            if code == 0:
                assert line == expected
                if not error:
                    break  # nothing was left to fail
                continue
            assert code == 1 and "save_state" in error and "training-state" in error, (at, code, error)
            left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
            assert not left, left
            code, line, error = run(program, state, steps)
            assert code == 0 and line == expected, (at, code, line, expected, error)
            failures += 1
        assert failures >= 10, failures
        print(f"{failures} calls failed in turn; each time it went on and ended with the same bits")


if __name__ == "__main__":
    {"kill": kill, "disk": disk}[sys.argv[1]](*sys.argv[2:])
