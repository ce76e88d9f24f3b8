#!/usr/bin/env python3
"""Images read from files, augmented and batched by Pillow and NumPy, as Loading.cpp does it; by threads or by processes.

usage: pillow_peer.py BUILD_DIR threads|processes   answers requests (protocol: Bench.h)
       pillow_peer.py BUILD_DIR write               writes the images, once: 2,000 of Fashion-MNIST, and 64 parts of two photos of a wheel, as JPEG
"""
import concurrent.futures
import itertools
import math
import pathlib
import random
import shutil
import sys
import time

import numpy as np
from PIL import Image, ImageEnhance

# Folder, mode, size, batch and whether there are colours to change.
CASES = [("clothes", "L", 28, 100, False), ("photos", "RGB", 224, 8, True)]
WORKERS = 2


def crop(image, size):
    """A part of random area and aspect, resized."""
    width, height = image.size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return image.resize((size, size), Image.BILINEAR, (left, top, left + w, top + h))
    return image.resize((size, size), Image.BILINEAR)


def turn_hue(image, turn):
    h, s, v = image.convert("HSV").split()
    h = Image.fromarray(np.asarray(h) + np.uint8(round(turn * 255) % 256))
    return Image.merge("HSV", (h, s, v)).convert("RGB")


def load(path, mode, size, colours):
    image = Image.open(path)
    image.draft(mode, image.size)
    image = crop(image.convert(mode), size)
    if random.random() < 0.5:
        image = image.transpose(Image.FLIP_LEFT_RIGHT)
    changes = [ImageEnhance.Brightness, ImageEnhance.Contrast] + ([ImageEnhance.Color, None] if colours else [])
    for change in random.sample(changes, len(changes)):
        image = change(image).enhance(random.uniform(0.6, 1.4)) if change else turn_hue(image, random.uniform(-0.1, 0.1))
    x = (np.asarray(image, np.float32) * np.float32(1 / 255) - np.float32(0.45)) * np.float32(1 / 0.225)
    return np.ascontiguousarray(x.transpose(2, 0, 1)) if x.ndim == 3 else x[None]


def load_batch(paths, mode, size, colours):
    return np.stack([load(path, mode, size, colours) for path in paths])


class Images:
    def __init__(self, build, case):
        self.folder, self.mode, self.size, self.batch, self.colours = CASES[case]
        self.paths = sorted((build / "bench/images" / self.folder).rglob("*.jpg"))

    def seconds(self, pool):
        """Of an image."""
        begin = time.perf_counter()
        paths = random.sample(self.paths, len(self.paths))
        batches = [paths[i:i + self.batch] for i in range(0, len(paths), self.batch)]
        for batch in pool.map(load_batch, batches, itertools.repeat(self.mode), itertools.repeat(self.size), itertools.repeat(self.colours)):
            assert batch.dtype == np.float32
        return (time.perf_counter() - begin) / len(paths)


def write(build):
    folder, photos = build / "bench/images", build / "models/images"
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    import gzip
    clothes = pathlib.Path("/usr/share/datasets/fashion-mnist")

    def idx(name, header):
        packed = clothes / f"{name}.gz"
        return np.frombuffer((gzip.open(packed) if packed.exists() else open(clothes / name, "rb")).read(), np.uint8, offset=header)

    images, labels = idx("t10k-images-idx3-ubyte", 16).reshape(-1, 28, 28), idx("t10k-labels-idx1-ubyte", 8)
    for i in range(2000):
        kind = folder / "clothes" / str(labels[i])
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[i]).save(kind / f"{i}.jpg", quality=90)
    for name in ("china", "flower"):
        photo = Image.open(photos / f"{name}.jpg")
        kind = folder / "photos" / name
        kind.mkdir(parents=True)
        for i in range(32):  # 500 x 375, as the mean of ImageNet is about
            left, top = i % 8 * (photo.width - 500) // 7, i // 8 * (photo.height - 375) // 3
            photo.crop((left, top, left + 500, top + 375)).save(kind / f"{i}.jpg", quality=90)
    (folder / "done").touch()


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("threads", "processes", "write"):
        sys.exit(__doc__)
    build, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    if what == "write":
        return write(build)
    from protocol import serve
    images = [Images(build, case) for case in range(len(CASES))]
    pools = {"threads": concurrent.futures.ThreadPoolExecutor, "processes": concurrent.futures.ProcessPoolExecutor}
    with pools[what](WORKERS) as pool:
        serve(lambda _, case: images[case].seconds(pool))


main()
