# lit's configuration. ctest runs lit once per file (CMakeLists.txt); by hand: lit -v test/ir, or with another build folder
# lit -v -D build=build/asan test/ir.
import os
import shutil

import lit.formats

config.name = "tressel"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
project = os.path.dirname(config.test_source_root)
build = os.path.abspath(lit_config.params.get("build", os.path.join(project, "build")))
config.test_exec_root = os.path.join(build, "test", "lit")
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22/bin")
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm, os.environ.get("PATH", "")])
sanitizers = [name for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ]
for name in (*sanitizers, "XDG_CACHE_HOME", "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# An environment that is empty, but for what a build with sanitizers cannot do without.
config.substitutions.append(("%no_environment", " ".join(["env -i"] + [f"{name}={os.environ[name]}" for name in sanitizers])))
config.substitutions.append(("%build", build))
config.substitutions.append(("%project", project))
config.environment["NO_COLOR"] = "1"
config.environment["TRESSEL_CACHE_LIMIT"] = "0"  # kernels are compiled by what is tested
# For tests that build programs of their own.
config.substitutions.append(("%cxx", lit_config.params.get("cxx", "clang++-22")))
config.substitutions.append(("%cc", lit_config.params.get("cc", "clang-22")))
# What a machine may lack. A test that needs it says REQUIRES, and is then skipped by name in ctest's summary (lit_entry.py).
for feature, program in (("qemu", "qemu-x86_64"), ("node", "node")):
    if shutil.which(program) and not (feature == "qemu" and sanitizers):  # which need more memory than an emulated processor has
        config.available_features.add(feature)
# Models, oracles and their Python belong to the default build folder, whatever preset is tested.
setup = os.path.join(project, "build")
config.substitutions.append(("%models", os.path.join(setup, "models")))
config.substitutions.append(("%python", os.path.join(setup, "venv", "bin", "python")))
for feature, path in (("models", "models/magika"), ("oracles", "venv/bin/python")):
    if os.path.exists(os.path.join(setup, path)):
        config.available_features.add(feature)
