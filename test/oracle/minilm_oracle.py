#!/usr/bin/env python3
"""The sentence encoder of docs/examples/minilm.cpp against NumPy, both with the weights PyTorch saved.

usage: minilm_oracle.py PROGRAM MODEL_DIR
"""
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.numpy

SENTENCES = ["A cat sits on the mat.", "Two kittens are lying on a carpet!", "The central bank raised interest rates."]
erf = np.vectorize(math.erf)


def norm(x, w, name):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return y * w[name + ".weight"] + w[name + ".bias"]


def encode(w, tokens, valid):
    dense = lambda x, name: x @ w[name + ".weight"].T + w[name + ".bias"]
    length = tokens.shape[1]
    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.position_embeddings.weight"][:length]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], w, "embeddings.LayerNorm")
    for i in range(6):
        at = f"encoder.layer.{i}."
        heads = lambda name: dense(x, f"{at}attention.self.{name}").reshape(*tokens.shape, 12, -1).swapaxes(1, 2)
        scores = heads("query") @ heads("key").swapaxes(2, 3) / np.sqrt(32)
        scores = np.where(valid[:, None, None, :], scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (p / p.sum(-1, keepdims=True) @ heads("value")).swapaxes(1, 2).reshape(x.shape)
        x = norm(x + dense(mixed, at + "attention.output.dense"), w, at + "attention.output.LayerNorm")
        h = dense(x, at + "intermediate.dense")
        h = h / 2 * (1 + erf(h / np.sqrt(2)))
        x = norm(x + dense(h, at + "output.dense"), w, at + "output.LayerNorm")
    m = valid[:, :, None]
    x = (x * m).sum(1) / m.sum(1)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.npz")
        subprocess.run([program, model, "--save", out, *SENTENCES], check=True)
        found = dict(np.load(out))
    assert found["tokens"][0].tolist() == [101, 1037, 4937, 7719, 2006, 1996, 13523, 1012, 102, 0, 0], found["tokens"][0]
    weights = {k: v.astype("f8") for k, v in safetensors.numpy.load_file(pathlib.Path(model, "model.safetensors")).items()}
    expected = encode(weights, found["tokens"], found["valid"])
    for name in ("eager", "compiled"):
        np.testing.assert_allclose(found[name], expected, atol=2e-5, err_msg=name)
    cosines = expected @ expected.T
    assert cosines[0, 1] > 0.4 > 0.2 > cosines[0, 2], cosines
    print(f"largest difference {abs(found['compiled'] - expected).max():.1e}")


main()
