#!/usr/bin/env python3
"""Tokens by the tokenizers of Hugging Face.

usage: tokens.py write DIR VOCABULARY TEXT...   lines.txt of the texts and of random characters, the tokens of word pieces of each line (VOCABULARY, small letters or
                                                not) and of byte pairs that are learned here, as .json, with the files of those: learned-vocab.json, learned-merges.txt
       tokens.py check DIR                      the tokens of own-vocab.json and own-merges.txt for each line, which are compared with own.json
Ends with 77 where the wheel is missing.
"""
import json
import pathlib
import random
import sys

try:
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
except ImportError:
    sys.exit(77)


def lines(texts):
    found = [line for text in texts for line in pathlib.Path(text).read_text(errors="replace").splitlines()[:400]]
    random.seed(1)
    blocks = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x600, 0x6FF), (0x2000, 0x206F), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0x1F300, 0x1F5FF), (0x300, 0x36F)]
    for _ in range(400):
        begin, end = random.choice(blocks)
        found.append("".join(chr(random.randint(begin, end)) if random.random() < 0.7 else random.choice(" a.B7'\t") for _ in range(random.randint(1, 20))))
    found += ["I'll, we've, don't; they're 'quoted' 's", "  two  blanks   three ", "1234 5.6 x2", "", "A\u030angstr\u00f6m \u00c5 \u0130stanbul \u1e9e", "a" * 101, "a" * 100]
    found = [line.replace("\u061d", "") for line in found]  # punctuation in Unicode 14, which the wheel does not know
    return [line.replace("\r", " ").replace("\n", " ").replace("\u2028", " ").replace("\u2029", " ").replace("\x85", " ") for line in found]


def write(folder, vocabulary, *texts):
    all_lines = lines(texts)
    (folder / "lines.txt").write_bytes("\n".join(all_lines).encode())
    for name, lower in (("small", True), ("cased", False)):
        words = BertWordPieceTokenizer(vocabulary, lowercase=lower)
        (folder / f"{name}.json").write_text(json.dumps([words.encode(line, add_special_tokens=False).ids for line in all_lines]))
    pairs = ByteLevelBPETokenizer()
    pairs.train(list(texts), vocab_size=600, min_frequency=2, show_progress=False)
    pairs.save_model(str(folder), "learned")
    (folder / "pairs.json").write_text(json.dumps([pairs.encode(line).ids for line in all_lines]))


def check(folder):
    pairs = ByteLevelBPETokenizer(str(folder / "own-vocab.json"), str(folder / "own-merges.txt"))
    all_lines, own = (folder / "lines.txt").read_bytes().decode().split("\n"), json.loads((folder / "own.json").read_text())
    wrong = [line for line, tokens in zip(all_lines, own, strict=True) if pairs.encode(line).ids != tokens]
    if wrong:
        sys.exit(f"{len(wrong)} of {len(all_lines)} lines have other tokens: {wrong[0]!r}")


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
