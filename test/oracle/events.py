"""events.py TRAIN_TEXT FOLDER TEXT: what a training leaves for TensorBoard, read by TensorBoard, is what its log says."""
import json
import pathlib
import shutil
import subprocess
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

program, folder, text = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
STEPS = 12
log, events = folder / "run.jsonl", folder / "events"
subprocess.run([program, text, "--steps", str(STEPS), "--batch", "2", "--write", "0", "--log", log, "--events", events], check=True, stderr=subprocess.DEVNULL)

records = [json.loads(line) for line in log.read_text().splitlines()]
read = EventAccumulator(str(events))
read.Reload()
names = {name for record in records for name in record} - {"step", "seconds"}
assert set(read.Tags()["scalars"]) == names == {"loss", "bits"}, (read.Tags(), names)
for name in names:
    want = [(record["step"], record[name]) for record in records if name in record]
    got = [(event.step, event.value) for event in read.Scalars(name)]
    assert len(got) == len(want) and all(a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(got, want)), (name, got, want)
times = [event.wall_time for event in read.Scalars("loss")]
assert times == sorted(times)
assert len(read.Scalars("loss")) == STEPS
print(f"{STEPS} losses and {len(read.Scalars('bits'))} other figures are what the log says")
