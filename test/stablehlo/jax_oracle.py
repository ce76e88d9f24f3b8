"""Programs that JAX makes, in StableHLO's generic form, through `tressel run` against JAX's own results.

  jax_oracle.py --tressel build/bin/tressel --out build/test/stablehlo [--only NAME] control|models|ops|places|sharded

Each case is a function and its arguments; integer arguments are random in the range that the case gives. A case that fails is
printed with the command that repeats it.
"""
import argparse
import os
import pathlib
import subprocess
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # before JAX is there
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # its partitioner warns of layouts that it changes by way of the whole

import jax  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_platforms", "cpu")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import control  # noqa: E402
import models  # noqa: E402
import ops  # noqa: E402
import places  # noqa: E402
import sharded  # noqa: E402


def lowered(case):
    arguments = jax.tree.map(np.asarray, case.arguments)
    low = jax.jit(case.function, keep_unused=True, **case.jit).lower(*arguments)
    text = low.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    results = [np.asarray(r) for r in jax.tree.leaves(jax.jit(case.reference or case.function, **case.jit)(*arguments))]
    return text, jax.tree.leaves(arguments), results


def run(case, folder, tressel):
    """Empty if Tressel agrees with JAX, else what to print."""
    folder.mkdir(parents=True, exist_ok=True)
    text, arguments, results = lowered(case)
    model = folder / f"{case.name}.mlir"
    model.write_text(text)
    command = [tressel, "run", "-q", "--keep-subnormals", "--device", case.device, model, "--rtol", case.rtol, "--atol", case.atol]
    for kind, prefix, arrays in (("--input", "arg", arguments), ("--expect", "out", results)):
        for i, array in enumerate(arrays):
            file = folder / f"{case.name}.{prefix}{i}.npy"
            np.save(file, array)
            command += [kind, f"{prefix}{i}={file}"]
    command = [str(c) for c in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)}\n  status {done.returncode}: {done.stderr.strip()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tressel", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="cases whose name holds this")
    parser.add_argument("set", choices=("control", "models", "ops", "places", "sharded"))
    args = parser.parse_args()
    cases = list({"control": control, "models": models, "ops": ops, "places": places, "sharded": sharded}[args.set].cases())
    failed = 0
    for case in cases:
        if args.only and args.only not in case.name:
            continue
        if trouble := run(case, args.out / args.set, args.tressel):
            failed += 1
            print(f"{case.name}: {trouble}")
    print(f"{len(cases)} programs, {failed} differ or fail")
    sys.exit(1 if failed else 0)


main()
