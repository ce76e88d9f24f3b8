"""weaken.py LIBRARY VERSION: the library also loads where its C library lacks the symbols of a version, "GLIBC_2.36", as long as none of them is called, or another
library has them. The entry of the version is marked as weak, which loaders honour."""
import pathlib
import struct
import sys

NEEDED_VERSIONS, WEAK = 0x6ffffffe, 2  # SHT_GNU_verneed, VER_FLG_WEAK


def main():
    path, version = pathlib.Path(sys.argv[1]), sys.argv[2].encode()
    data = bytearray(path.read_bytes())
    assert data[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit ELF file"
    sections, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * size) for i in range(count)]
    found = 0
    for header in headers:
        if header[1] != NEEDED_VERSIONS:
            continue
        strings, need = headers[header[6]][4], header[4]
        while True:
            _, entries, _, first, following = struct.unpack_from("<HHIII", data, need)
            entry = need + first
            for _ in range(entries):
                _, flags, _, name, step = struct.unpack_from("<IHHII", data, entry)
                if data[strings + name:data.index(0, strings + name)] == version:
                    struct.pack_into("<H", data, entry + 4, flags | WEAK)
                    found += 1
                entry += step
            if not following:
                break
            need += following
    path.write_bytes(data)
    print(f"{path.name}: {found} of {version.decode()}")


main()
