"""Programs that JAX makes, in StableHLO's generic form, through `tressel run` against JAX's own results.

  jax_oracle.py --tressel build/bin/tressel --out build/test/stablehlo [--only NAME] control|models|ops|places

Each case is a function and its arguments; integer arguments are random in the range that the case gives. A case that fails is
printed with the command that repeats it.
"""
import argparse
import pathlib
import subprocess
import sys

import jax
import numpy as np

jax.config.update("jax_platforms", "cpu")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import control  # noqa: E402
import models  # noqa: E402
import ops  # noqa: E402
import places  # noqa: E402


def lowered(case):
    arguments = [np.asarray(a) for a in case.arguments]
    low = jax.jit(case.function, keep_unused=True).lower(*arguments)
    text = low.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    results = [np.asarray(r) for r in jax.tree.leaves(jax.jit(case.reference or case.function)(*arguments))]
    return text, arguments, results


def run(case, folder, tressel):
    """Empty if Tressel agrees with JAX, else what to print."""
    folder.mkdir(parents=True, exist_ok=True)
    text, arguments, results = lowered(case)
    model = folder / f"{case.name}.mlir"
    model.write_text(text)
    command = [tressel, "run", "-q", "--keep-subnormals", model, "--rtol", case.rtol, "--atol", case.atol]
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
    parser.add_argument("set", choices=("control", "models", "ops", "places"))
    args = parser.parse_args()
    cases = list({"control": control, "models": models, "ops": ops, "places": places}[args.set].cases())
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
