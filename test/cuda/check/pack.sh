#!/usr/bin/env bash
# Puts what a check on a machine with a card needs into BUILD/gpu/stage: tests, examples, the command line with its compiler, compiled programs, models with the
# results expected of them, and what the tests gave on the stand-in driver. With FILE also packed, with LLVM and MLIR, for a machine that has nothing of this project.
#   test/cuda/check/pack.sh BUILD [FILE]       FILE.tar, which has to stay below 60 MiB
#   test/cuda/check/pack.sh BUILD --small STAGE      a stage for the test of all this on the stand-in driver, elsewhere
#   test/cuda/check/pack.sh BUILD --tools            the programs alone: enough to say that there is no card
set -euo pipefail
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")") source=$(readlink -f "$(dirname "$0")/../../..")
stage=$build/gpu/stage cache=$build/gpu/cache small= out= kind=${2:-}
case $kind in
--small) small=--small stage=$3 ;;
--tools) ;;
*) out=$kind ;;
esac
rm -rf "$stage"
mkdir -p "$stage"/{bin,lib,expected,programs,steps,models} "$cache"
tests="gpu_ops_test cuda_loops_test cuda_device_test cuda_ops_test cuda_forms_test" examples="two_devices cholesky split_network all_at_once data_parallel"
[ -z "$small" ] || tests=cuda_loops_test examples="two_devices split_network"
for program in test_devices test_cuda_semantics gpu-bench tressel $tests $examples; do
  strip -o "$stage/bin/$program" "$build/bin/$program" &
done
for library in libtressel_runtime.so.0 libtressel_kernels.so.0 libtressel_devices.so.0 libtressel_cuda.so.0 libtressel.so.0 libtressel_compiler.so; do
  strip -o "$stage/lib/$library" "$(readlink -f "$build/lib/$library")" &
done
wait
# Scripts, where they are in the sources.
for file in test/cuda/check/{check,report,peers,programs}.py test/cuda/models/emulated.py test/bench/{training,values,protocol}.py test/standin/README.md; do
  install -D "$source/$file" "$stage/$file"
done
commit=$(git -C "$source" rev-parse --short HEAD 2>/dev/null || echo unknown)
python3 "$here/programs.py" "$stage" --describe "$commit" $small
[ "$kind" != --tools ] || exit 0

# What the tests give on the stand-in driver, to compare with.
for pair in devices:test_devices:'*Conformance*/cuda*' semantics:test_cuda_semantics:'*'; do
  IFS=: read -r name program filter <<<"$pair"
  LD_LIBRARY_PATH=$build/standin TRESSEL_STANDIN="order=late seed=7" "$build/bin/$program" --gtest_filter="$filter" >"$stage/expected/$name.log" 2>&1 ||
    { echo "pack.sh: $program fails on the stand-in driver: $stage/expected/$name.log" >&2; exit 1; }
done
python3 "$here/programs.py" "$stage/programs" --tressel "$build/bin/tressel" $small
python3 "$here/programs.py" "$stage/steps" --steps "$build/bin/tressel-bench" $small
[ -z "$small" ] || exit 0
models=$(python3 -c "import sys; sys.path.insert(0, '$here'); import programs; print(*programs.MODELS)")
for model in $models; do
  file=$(python3 -c "import sys; sys.path.insert(0, '$here'); import programs; print(programs.MODELS['$model'])")
  install -D "$build/models/$file" "$stage/models/$file"
done
"$build/venv/bin/python" "$source/test/cuda/models/emulated.py" --build "$build" --keep "$stage/models" $models
[ -n "$out" ] || exit 0

# Libraries that such a machine may lack; and for those of which nothing is called there, others without content: symbols that end the process when they are called, as their addresses
# may be taken. The one for oneDNN is empty, by which the compiler knows that it is not there.
there() { ldconfig -p | awk -v name="$1" '$1 == name {print $NF; exit}'; }
for name in libzip.so.4 libprotobuf-lite.so.32; do
  cp -L "$(there $name)" "$stage/lib/"
done
packed() { ls /usr/lib/llvm-22/lib/lib{LLVM,MLIR}.so.22.1 "$stage"/{lib,bin}/*; }
nm -D --undefined-only $(packed) 2>/dev/null | awk '$1 == "U" || $1 == "w" {sub("@.*", "", $2); print $2}' | sort -u >"$cache/asked"
for name in libz3.so.4 libedit.so.2 libxml2.so.2 libdnnl.so.2 libpng16.so.16 libjpeg.so.62 libutf8proc.so.2; do
  # With the versions that are asked of it, or the loader complains.
  objdump -p $(packed) 2>/dev/null | awk -v name="$name" '/required from/ {on = index($0, name ":")} on && NF == 4 {print $4 " {};"}' | sort -u >"$cache/versions"
  nm -D --defined-only "$(there $name)" | awk '$2 ~ /^[TDBRWV]$/ {sub("@.*", "", $3); print $3}' | sort -u | comm -12 - "$cache/asked" | sed 's/.*/void &(void) { __builtin_trap(); }/' >"$cache/functions.c"
  [ $name != libdnnl.so.2 ] || : >"$cache/functions.c"
  # For C libraries before 2.36, which is where libLLVM.so has it from.
  [ $name != libz3.so.4 ] || echo 'int getentropy(void *, unsigned long); unsigned arc4random(void) { unsigned x = 4; getentropy(&x, sizeof x); return x; }' >>"$cache/functions.c"
  script=
  [ ! -s "$cache/versions" ] || script=-Wl,--version-script="$cache/versions"
  gcc -w -O1 -fno-builtin -shared -nostdlib -s -o "$stage/lib/$name" -Wl,-soname,$name $script "$cache/functions.c"
done
pack() { xz --x86 --lzma2=preset=9e,dict=256MiB -c "$1"; }
parts=$build/gpu/tressel-check
rm -rf "$parts"
mkdir -p "$parts"
for library in /usr/lib/llvm-22/lib/libLLVM.so.22.1 /usr/lib/llvm-22/lib/libMLIR.so.22.1; do
  kept=$cache/$(basename $library).xz
  if [ ! "$kept" -nt "$library" ]; then
    cp "$library" "$cache/library"
    python3 "$here/weaken.py" "$cache/library" GLIBC_2.36
    pack "$cache/library" >"$kept.new"
    mv "$kept.new" "$kept"
    rm "$cache/library"
  fi
  cp "$kept" "$parts/"
done
tar -C "$stage" --sort=name -cf "$stage.tar" .
pack "$stage.tar" >"$parts/tressel.tar.xz"
rm -f "$stage.tar"
cp "$here/check.sh" "$parts/"
tar -C "$build/gpu" -cf "$out" tressel-check
bytes=$(stat -c %s "$out")
for part in "$parts"/*; do
  printf '%8.2f MiB  %s\n' "$(stat -c %s "$part" | awk '{print $1 / 1048576}')" "$(basename "$part")"
done
printf '%8.2f MiB  %s\n' "$(awk "BEGIN {print $bytes / 1048576}")" "$out"
[ "$bytes" -lt $((60 << 20)) ] || { echo "pack.sh: $out has to stay below 60 MiB" >&2; exit 1; }
