#!/usr/bin/python3
"""The gradients of one step of model files against PyTorch in double, from the same weights and
samples: how far from it lockstep is, and how far PyTorch's own floats are.

Usage: tests/peer/gradients.py BUILD MODEL[:BATCH]... [--device D] [--weights FILE] [--rounds N]
                               [--all]

MODEL is a file or the name of an example. The error of a gradient is its norm-wise one,
|g - g64| / |g64|, its lower quartile over N batches (8): in a deep network a number next to 0 may
in floats be on the other side of a relu, by chance, and the gradients of that batch then jump, on
either side of the comparison. The table gives the worst parameter of each model (--all: every one). The status is 1 if
lockstep's error is more than twice that of PyTorch's floats for any parameter. Gradients whose exact
value is 0 (a bias before a batch normalisation) are left out: nothing to compare with.
PyTorch is Debian's python3-torch; this is no test and PyTorch no dependency. FILE (of `lockstep
train`) takes the place of the initial weights.
"""
import argparse
import gzip
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_net


def read_idx(path, n):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as f:
        rank = f.read(4)[3]
        dims = np.frombuffer(f.read(4 * rank), ">u4").astype(int)
        one = int(np.prod(dims[1:]))
        return np.frombuffer(f.read(one * n), np.uint8).reshape([n, *dims[1:]])


def samples(net, path, first, n):
    """Samples first to first + n of the training data, as lockstep normalises them."""
    data, here = net.model["data"], os.path.dirname(path)
    part = data["train"]
    images = read_idx(os.path.join(here, part["images"]), first + n)[first:]
    images = images if images.ndim == 4 else images[..., None]
    norm = data.get("normalize", {"mean": 0.0, "std": 1.0})
    labels = read_idx(os.path.join(here, part["labels"]), first + n)[first:].astype(np.int32)
    return ((images / 255.0 - norm["mean"]) / norm["std"]).astype(np.float32), labels


def ours(a, path, x, labels):
    """[(name, weight, gradient)] in the canonical layout."""
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/x")
        labels.tofile(folder + "/labels")
        done = subprocess.run([a.build + "/tests/peer/gradients", path, a.device, a.weights,
                               folder + "/x", folder + "/labels", str(len(x)), folder + "/out"],
                              check=True, stdout=subprocess.PIPE, text=True)
        data, at, result = np.fromfile(folder + "/out", np.float32), 0, []
    for line in done.stdout.splitlines():
        name, count = line.split()[0], int(line.split()[1])
        result.append((name, data[at:at + count], data[at + count:at + 2 * count]))
        at += 2 * count
    assert at == len(data)
    return result


def gradients(path, weights, x, labels, dtype):
    net = torch_net.Net(path, dtype=dtype, weights=weights)
    net.loss(torch.from_numpy(x).to(dtype), torch.from_numpy(labels).long()).backward()
    return net.gradients()


def errors(a, path, x, labels):
    """{name: (lockstep's error, PyTorch's)}; None where the exact gradient is 0."""
    mine = ours(a, path, x, labels)
    weights = {name: w for name, w, _ in mine}
    exact = gradients(path, weights, x, labels, torch.float64)
    floats = gradients(path, weights, x, labels, torch.float32)
    assert set(exact) == set(weights), set(exact) ^ set(weights)
    largest, out = max(np.linalg.norm(g) for g in exact.values()), {}
    for name, _, gradient in mine:
        norm = np.linalg.norm(exact[name])
        out[name] = None if norm < 1e-9 * largest else (
            np.linalg.norm(gradient.astype(np.float64) - exact[name]) / norm,
            np.linalg.norm(floats[name] - exact[name]) / norm)
    return out


def compare(a, what):
    name, batch = (what.split(":") + ["2"])[:2]
    path, batch = torch_net.model_path(name), int(batch)
    net, rounds, rows = torch_net.Net(path), [], []
    for i in range(a.rounds):
        rounds.append(errors(a, path, *samples(net, path, i * batch, batch)))
    skipped = [name for name in rounds[0] if any(r[name] is None for r in rounds)]
    for name in rounds[0]:
        if name not in skipped:
            error, other = (np.quantile([r[name][k] for r in rounds], 0.25) for k in (0, 1))
            rows.append((error / other, error, other, name))
    rows.sort(reverse=True)
    above = sum(row[0] > 2 for row in rows)
    for ratio, error, other, name in rows if a.all else rows[:1]:
        print("%-14s batch %-3d %s %-30s lockstep %.1e, PyTorch's floats %.1e, ratio %.2f"
              % (what.split(":")[0], batch, "" if a.all else "%3d tensors, %d above 2; worst" %
                 (len(rows), above), name, error, other, ratio), flush=True)
    if skipped:
        print("%-14s %d tensors whose gradient is 0 left out" % ("", len(skipped)))
    return above == 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("model", nargs="+")
    p.add_argument("--device", default="cpu")
    p.add_argument("--weights", default="-")
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(2)
    sys.exit(0 if all([compare(a, what) for what in a.model]) else 1)


main()
