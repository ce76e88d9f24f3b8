#!/usr/bin/env python3
"""Installs a build into a folder, moves that elsewhere, and uses it as another project would: through find_package and
pkg-config, with the C compiler and a C++ compiler that is not the build's. What it builds must run, and the runtime must need
neither LLVM nor MLIR nor oneDNN.

usage: check_install.py BUILD_DIR SOURCE_DIR [CXX]
"""
import os
import pathlib
import subprocess
import sys
import tempfile


LINKED = """#include "libmlp.h"
#include <stdio.h>
int main(void) {
  tressel_package *package;
  tressel_context *context;
  if (mlp_open(&package) || tressel_context_create(package, NULL, &context))
    return fprintf(stderr, "%s\\n", tressel_error()), 1;
  printf("%zu inputs, %zu outputs\\n", tressel_num_inputs(context), tressel_num_outputs(context));
  tressel_context_destroy(context);
  tressel_close(package);
  return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    compiler = sys.argv[3] if len(sys.argv) > 3 else "g++"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run("cmake", "--install", build, "--prefix", folder / "first")
        prefix = folder / "moved"
        (folder / "first").rename(prefix)
        lib = next(prefix.glob("lib*"))

        for library in ("runtime", "kernels", "devices", "cuda", "states"):
            needed = run("readelf", "-d", lib / f"libtressel_{library}.so")
            for name in ("LLVM", "MLIR", "dnnl"):
                assert name not in needed, f"libtressel_{library}.so needs {name}"
            assert "NODELETE" in needed, f"libtressel_{library}.so may be unloaded under its threads"
            assert library != "runtime" or "libtressel_" not in needed.replace("libtressel_runtime", ""), "the core needs a library that it should open"

        # The installed program, without the build's libraries in reach, makes a package.
        clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        package = folder / "model.tsl"
        model = source / "test/acceptance/Inputs/mlp.mlir"
        run(prefix / "bin/tressel", "compile", model, "-o", package, env=clean)

        consumer = folder / "consumer"
        run("cmake", "-S", source / "test/install/consumer", "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DEXAMPLES={source / 'docs/examples'}", f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_C_COMPILER=cc")
        run("cmake", "--build", consumer)
        hello = run(consumer / "train_or_trace", env=clean)
        assert "largest difference: " in hello, hello
        outputs = [run(consumer / program, package, env=clean) for program in ("predict_c", "predict_cpp")]
        for text in outputs:
            assert "input " in text and "output " in text, text

        flags = {**clean, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}
        listed = run("pkg-config", "--cflags", "--libs", "tressel_runtime", env=flags).split()
        run("cc", "-std=c99", source / "docs/examples/deploy/predict.c", *listed, f"-Wl,-rpath,{lib}", "-o", folder / "by-hand")
        assert run(folder / "by-hand", package, env=clean) == outputs[0]
        assert "-ltressel" in run("pkg-config", "--libs", "tressel", env=flags).split()

        # The package as a library to link, static and shared.
        linked = folder / "linked.c"
        linked.write_text(LINKED)
        for kind, name in (("static", "libmlp.a"), ("shared", "libmlp.so")):
            made = folder / kind
            made.mkdir()
            run(prefix / "bin/tressel", "compile", model, "--format", kind, "-o", made / name, env=clean)
            run("cc", "-std=c99", "-Wall", "-Werror", f"-I{made}", linked, made / name, *listed,
                f"-Wl,-rpath,{lib},-rpath,{made}", "-o", made / "linked")
            text = run(made / "linked", env=clean)
            assert text == f"{outputs[0].count('input ')} inputs, {outputs[0].count('output ')} outputs\n", text
            assert kind == "static" or "NEEDED" not in run("readelf", "-d", made / name)

        # On a machine's devices: the core opens what lies beside it, and says what is missing.
        deployed = folder / "deployed"
        run("cc", "-std=c99", source / "test/unit/runtime/deployed.c", *listed, f"-Wl,-rpath,{lib}", "-o", deployed)
        small = folder / "small.mlir"
        small.write_text("func.func @main(%x: tensor<4xf32> {tressel.name = \"x\"}) -> (tensor<4xf32> {tressel.name = \"y\"}) {\n  %0 = tressel.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
                         "  return %0 : tensor<4xf32>\n}\n")
        run(prefix / "bin/tressel", "compile", small, "-o", folder / "small.tsl", env=clean)
        assert ": 0 2 4 6\n" in run(deployed, folder / "small.tsl", "cpu", env=clean)
        for file in lib.glob("libtressel_devices.so*"):
            file.rename(folder / file.name)
        bad = subprocess.run([deployed, folder / "small.tsl", "cpu"], capture_output=True, text=True, env=clean)
        assert bad.returncode == 1 and "libtressel_devices.so" in bad.stderr and str(lib) in bad.stderr, bad.stderr
        for file in folder.glob("libtressel_devices.so*"):
            file.rename(lib / file.name)

        # Training: its files are by a library that is opened for them.
        run(build / "bin/export_training", folder / "spiral.tsl")
        states = folder / "spiral.safetensors"
        shown = run(build / "bin/tressel", "inspect", folder / "spiral.tsl", "--function", "predict")
        assert "step predict" in shown and "scores: f32[batch, 2]" in shown, shown
        assert "scores: f32[3, 2]" in run(build / "bin/tressel", "run", folder / "spiral.tsl", "--function", "predict", "--random-inputs", "1", "--dim", "batch=3")
        bad = subprocess.run([build / "bin/tressel", "run", folder / "spiral.tsl", "--function", "predictt"], capture_output=True, text=True)
        assert bad.returncode == 2 and "has no function 'predictt'; it has: step, predict" in bad.stderr, bad.stderr
        assert "begins after 0 steps" in run(consumer / "train_c", folder / "spiral.tsl", states, "50", env=clean)
        assert "goes on after 50 steps" in run(consumer / "train_c", folder / "spiral.tsl", states, "50", env=clean)
        for file in lib.glob("libtressel_states.so*"):
            file.rename(folder / file.name)
        bad = subprocess.run([consumer / "train_c", folder / "spiral.tsl", states, "50"], capture_output=True, text=True, env=clean)
        assert bad.returncode == 1 and "libtressel_states.so" in bad.stderr and str(lib) in bad.stderr, bad.stderr
        for file in folder.glob("libtressel_states.so*"):
            file.rename(lib / file.name)

        # Nothing in PATH is needed to run a package, and damage is told.
        run(folder / "by-hand", package, env={"PATH": ""})
        package.write_bytes(package.read_bytes()[:-1])
        bad = subprocess.run([folder / "by-hand", package], capture_output=True, text=True)
        assert bad.returncode == 1 and "truncated" in bad.stderr, bad.stderr
    print("installed, found and used")


main()
