#!/usr/bin/env bash
# In a pack (pack.sh): unpacks what it lies beside, and runs the check.
#   tressel-check/check.sh FOLDER [OPTION...]      options of check.py
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
stage=$here/stage
if [ ! -f "$stage/unpacked" ]; then
  mkdir -p "$stage/lib"
  for file in "$here"/*.so*.xz; do
    xz -dc "$file" >"$stage/lib/$(basename "${file%.xz}")" &
  done
  xz -dc "$here/tressel.tar.xz" | tar -C "$stage" -xf -
  wait
  touch "$stage/unpacked"
fi
exec python3 "$stage/test/cuda/check/check.py" "$stage" "$@"
