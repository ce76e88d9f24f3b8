#!/usr/bin/env python3
"""keep_corpus.py MERGED SEEDS ARCHIVE: what a campaign found, for the repository.

Packs the files of the folder MERGED that make_corpus.py does not write into SEEDS anew, each named by a hash of its bytes. The same files
make the same archive.
"""

import hashlib
import io
import pathlib
import sys
import tarfile

merged, seeds, archive = map(pathlib.Path, sys.argv[1:])


def contents(folder, with_kept):
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file() and (with_kept or path.parent.name != "kept")}


# What another format's archive holds already is not held twice.
elsewhere = seeds.name != archive.name.removesuffix(".tar.xz")
kept = sorted((hashlib.sha1(data).hexdigest()[:16], data) for data in contents(merged, False) - contents(seeds, elsewhere))
archive.parent.mkdir(parents=True, exist_ok=True)
with tarfile.open(archive, "w:xz", preset=9) as out:
    for name, data in kept:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        out.addfile(entry, io.BytesIO(data))
print(f"{archive}: {len(kept)} inputs of {sum(len(d) for _, d in kept)} bytes, packed {archive.stat().st_size}")
