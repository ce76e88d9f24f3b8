#!/usr/bin/env python3
"""Images by Pillow, and what it makes of them.

usage: images.py write DIR   image files, and as .npy what they hold as three channels and as one, and what operations make of one
       images.py check DIR   ends with 1 unless the files written.png and written-grey.png hold written.npy and written-grey.npy, written.jpg about that
Ends with 77 where Pillow is missing.
"""
import colorsys
import pathlib
import sys

try:
    import numpy as np
    from PIL import Image
except ImportError:
    sys.exit(77)

FORMS = {"rgb.png": "RGB", "grey.png": "L", "alpha.png": "RGBA", "palette.png": "P", "bits.png": "1", "rgb.jpg": "RGB", "grey.jpg": "L",
         "progressive.jpg": "RGB", "subsampled.jpeg": "RGB", "full.jpg": "RGB"}
SIZES = [(7, 5), (16, 16), (40, 61), (23, 31), (1, 1), (64, 10)]  # height, width


def picture(height, width):
    """Smooth colours with an edge."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [128 + 100 * np.sin(x / 5), 128 + 100 * np.cos(y / 7), np.where(x > y, 220, 30)]
    return np.stack(planes, -1).astype(np.uint8)


def planes(image):
    return np.ascontiguousarray(np.moveaxis(image, -1, 0) if image.ndim == 3 else image[None])


def write(folder):
    rgb = Image.fromarray(picture(23, 31))
    for name, mode in FORMS.items():
        options = {"progressive.jpg": {"progressive": True}, "subsampled.jpeg": {"subsampling": 2}, "full.jpg": {"subsampling": 0}}.get(name, {})
        image = rgb.convert(mode)
        if mode == "RGBA":
            image.putalpha(Image.fromarray(picture(23, 31)[..., 0]))
        image.save(folder / name, **options)
        read = Image.open(folder / name)
        np.save(folder / f"{name}.3.npy", planes(np.asarray(read.convert("RGB"))))
        if not name.endswith("g") or "jp" not in name:
            np.save(folder / f"{name}.1.npy", planes(np.asarray(read.convert("RGB").convert("L"))))
        else:  # a JPEG file has its grey as a channel of its own
            read = Image.open(folder / name)
            read.draft("L", read.size)
            np.save(folder / f"{name}.1.npy", planes(np.asarray(read.convert("L"))))
    rgb.convert("CMYK").save(folder / "cmyk.jpg")
    deep = np.arange(12 * 9, dtype=np.uint16).reshape(12, 9) * 500
    Image.fromarray(deep).save(folder / "deep.png")
    np.save(folder / "deep.npy", np.round(deep / 257.0).astype(np.uint8)[None])

    source = picture(23, 31)
    for height, width in SIZES:
        made = [np.asarray(Image.fromarray(source[..., c].astype(np.float32)).resize((width, height), Image.BILINEAR)) for c in range(3)]
        np.save(folder / f"resized.{height}x{width}.npy", np.stack(made).astype(np.float32) / 255)
    x = source.astype(np.float64) / 255
    grey = x @ [0.299, 0.587, 0.114]
    np.save(folder / "source.npy", planes(source))
    for factor in (0, 0.5, 1, 1.7):
        np.save(folder / f"brightness.{factor}.npy", planes(np.clip(x * factor, 0, 1)).astype(np.float32))
        np.save(folder / f"contrast.{factor}.npy", planes(np.clip(x * factor + (1 - factor) * grey.mean(), 0, 1)).astype(np.float32))
        np.save(folder / f"saturation.{factor}.npy", planes(np.clip(x * factor + (1 - factor) * grey[..., None], 0, 1)).astype(np.float32))
    for turn in (-0.5, -0.1, 0.25, 0.5):
        made = np.array([[colorsys.hsv_to_rgb((h + turn) % 1, s, v) for h, s, v in (colorsys.rgb_to_hsv(*p) for p in row)] for row in x])
        np.save(folder / f"hue.{turn}.npy", planes(made).astype(np.float32))


def check(folder):
    wrong = []
    for name in ("written", "written-grey"):
        if not np.array_equal(planes(np.asarray(Image.open(folder / f"{name}.png"))), np.load(folder / f"{name}.npy")):
            wrong.append(f"{name}.png")
    lossy = planes(np.asarray(Image.open(folder / "written.jpg").convert("RGB"))).astype(float)
    if np.abs(lossy - np.load(folder / "written.npy")).mean() > 6:
        wrong.append("written.jpg")
    if wrong:
        sys.exit(f"differ: {', '.join(wrong)}")


if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
    sys.exit(__doc__)
{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
