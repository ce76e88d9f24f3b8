"""The protocol of a benchmark arm (Bench.h) for arms in Python."""
import json
import sys


def serve(measure, outputs=None):
    """Answers requests until standard input ends: `measure(arm, case)` gives one sample, `outputs(arm, case)` an array."""
    for line in sys.stdin:
        verb, arm, *rest = line.split()
        if verb == "measure":
            count, case = map(int, rest)
            print(json.dumps([measure(arm, case) for _ in range(count)]), flush=True)
        elif verb == "outputs" and outputs:
            import numpy as np  # arms without outputs run with a Python that has none
            case, path = rest
            array = np.ascontiguousarray(np.asarray(outputs(arm, int(case))).ravel(), np.float32)
            array.tofile(path)
            print(array.size, flush=True)
        else:
            sys.exit(f"cannot answer {line!r}")
