#!/usr/bin/env bash
# run.sh ROOT PRESET PROGRAM...: builds test programs that need neither LLVM nor MLIR with the sanitizers of a preset, in build/PRESET, and
# runs them. A report of a sanitizer ends a program, and with it this script.
set -euo pipefail
root=$1 preset=$2 folder=build/$2
shift 2
cd "$root"
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=$root
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-} TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}
mkdir -p "$folder"
[ -f "$folder/build.ninja" ] || cmake --preset "$preset" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; exit 1; }
ninja -C "$folder" "$@" | tail -n 20
built=$SECONDS
for program in "$@"; do
  "$folder/bin/$program" --gtest_brief=1
done
echo "built in $built s, run in $((SECONDS - built)) s"
