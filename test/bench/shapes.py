"""The shapes of rows over several cases, which Products.h, Convolutions.h, Attention.h and Memory.cpp list: `tressel-bench --shapes` prints them."""
import json
import subprocess
from dataclasses import dataclass


@dataclass
class Convolution:
    inputs: int
    outputs: int
    high: int
    wide: int
    window: int
    stride: int
    groups: int


def read(build):
    """Per list its shapes: "products", "convolutions", "wide", "winograd", "attention", "rows"."""
    lists = json.loads(subprocess.run([build / "bin/tressel-bench", "--shapes"], capture_output=True, text=True, check=True).stdout)
    for name in ("convolutions", "wide", "winograd"):
        lists[name] = [Convolution(*shape) for shape in lists[name]]
    return lists
