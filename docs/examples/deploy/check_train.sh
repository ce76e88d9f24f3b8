#!/bin/sh
# check_train.sh EXPORT_TRAINING TRAIN FOLDER: a training in parts, one of them killed, ends with the bytes of one that was left alone.
set -e
rm -rf "$3" && mkdir -p "$3"
"$1" "$3/spiral.tsl"
"$2" "$3/spiral.tsl" "$3/whole.safetensors" 1000 >"$3/whole"
"$2" "$3/spiral.tsl" "$3/parts.safetensors" 300 >/dev/null
"$2" "$3/spiral.tsl" "$3/parts.safetensors" 1000000 >/dev/null &
sleep 0.05
kill -9 $!
wait $! 2>/dev/null || true
done=$("$2" "$3/spiral.tsl" "$3/parts.safetensors" 0 | sed -n 's/^goes on after \([0-9]*\) steps/\1/p')
"$2" "$3/spiral.tsl" "$3/whole.safetensors" 0 >/dev/null
[ "$done" -ge 300 ]
# From there on to the next thousands, both.
"$2" "$3/spiral.tsl" "$3/parts.safetensors" $(((done / 1000 + 1) * 1000 - done)) >"$3/parts"
"$2" "$3/spiral.tsl" "$3/whole.safetensors" $((done / 1000 * 1000)) >"$3/whole"
cmp "$3/whole.safetensors" "$3/parts.safetensors"
cat "$3/parts"
grep -q ' 6[0-4] of 64 right' "$3/parts"
