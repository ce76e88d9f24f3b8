#!/usr/bin/env bash
# Checks Tressel on a machine with a card: what pack.sh packed or staged, with the sources around it. Writes its tables into FOLDER (README.md).
#   test/cuda/check/check.sh PACK FOLDER [STEP...]     steps: machine programs steps peers devices ops models (all)
set -uo pipefail
pack=$(readlink -f "$1") out=$(mkdir -p "$2" && readlink -f "$2")
shift 2
steps=${*:-machine programs steps peers devices ops models parallel}
here=$(dirname "$(readlink -f "$0")") root=$(readlink -f "$(dirname "$0")/../../..")
there=${TRESSEL_CHECK_FOLDER:-/tmp/tressel-check}
if [ -d "$pack/bin" ]; then
  there=$pack # a stage, where it was built
elif [ ! -f "$there/unpacked" ]; then
  mkdir -p "$there/lib"
  for file in "$pack"/*.so*.xz; do
    xz -dc "$file" >"$there/lib/$(basename "${file%.xz}")" &
  done
  xz -dc "$pack/tressel.tar.xz" | tar -C "$there" -xf -
  wait
  touch "$there/unpacked"
fi
[ ! -f "$pack/parallel.tar.xz" ] || xz -dc "$pack/parallel.tar.xz" | tar -C "$there" -xf -
[ -d "$there/steps" ] || [ ! -f "$pack/steps.tar.xz" ] || xz -dc "$pack/steps.tar.xz" | tar -C "$there" -xf -
export LD_LIBRARY_PATH=$there/lib TRESSEL_CALIBRATION= TRESSEL_CACHE=
has() { case " $steps " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
report() { printf '%-28s %s (%s s)\n' "$1" "$2" "$((SECONDS - begun))" | tee -a "$out/summary.txt"; }
# tests NAME COMMAND...: runs a test program, and says what it skipped and failed.
tests() {
  local name=$1 begun=$SECONDS
  shift
  timeout 400 "$@" >"$out/$name.log" 2>&1
  local status=$?
  report "$name" "exit $status, $(grep -c '^\[       OK' "$out/$name.log") ok, $(grep -c '^\[  SKIPPED \].*)$' "$out/$name.log") skipped, $(grep -c '^\[  FAILED  \].*)$' "$out/$name.log") failed"
}
# Times first, while nothing else runs.
begun=$SECONDS
has machine && { timeout 100 "$there/bin/gpu-bench" --machine >"$out/machine.jsonl" 2>"$out/machine.log"; report machine "exit $?"; }
for group in programs steps; do
  begun=$SECONDS ended=0
  has $group || continue
  for program in "$there/$group"/*.tsl; do
    timeout 30 "$there/bin/gpu-bench" "$program" >>"$out/$group.jsonl" 2>>"$out/$group.log" || { echo "$(basename "$program"): exit $?" >>"$out/$group.log"; ended=1; }
  done
  report $group "exit $ended"
done
has steps && cp "$there/steps/losses.jsonl" "$out/"
begun=$SECONDS
has peers && { PYTHONPATH=$here timeout 300 python3 "$here/peers.py" --compile >"$out/peers.jsonl" 2>"$out/peers.log"; report peers "exit $?"; }
has devices && tests devices "$there/bin/test_devices" --gtest_filter='*Conformance*/cuda*'
has devices && tests semantics "$there/bin/test_cuda_semantics" # what the stand-in driver takes for the driver's meaning
if has ops; then
  export TRESSEL_TEST_ON=cuda
  for name in gpu_ops_test cuda_loops_test cuda_device_test cuda_ops_test cuda_forms_test; do
    tests $name "$there/bin/$name" --gtest_filter='-GpuMutants*' &
  done
  wait
fi
begun=$SECONDS
if has parallel && [ -f "$there/bin/data_parallel" ]; then # one card as two accelerators: real launches, copies and waits between streams
  (cd "$out" && timeout 100 "$there/bin/data_parallel" cuda:0,0) >"$out/parallel.log" 2>&1
  report parallel "exit $?"
fi
begun=$SECONDS
if has models; then
  mkdir -p "$root/build"
  [ -d "$root/build/models" ] || ln -sfn "$there/models" "$root/build/models"
  timeout 200 python3 "$root/test/cuda/models/emulated.py" --build "$there" --device cuda silero magika alexa embedding \
    ppocr.angle basic-pitch encoder resnet18 >"$out/models.log" 2>&1
  report models "exit $?, $(grep -c '^agrees' "$out/models.log") agree, $(grep -c '^DIFFERS' "$out/models.log") differ"
fi
