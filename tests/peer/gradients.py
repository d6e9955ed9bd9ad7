#!/usr/bin/python3
"""The gradients of one LeNet step against PyTorch in double, from the same weights and samples:
how far from it lockstep is, and how far PyTorch's own floats are.

Usage: tests/peer/gradients.py BUILD [--batch N ...] [--device D] [--weights FILE]

The error of a gradient is its norm-wise one, |g - g64| / |g64|, a parameter a line. The status is 1
if lockstep's is more than twice PyTorch's for any parameter. PyTorch is Debian's python3-torch; this
is no test and PyTorch no dependency. WEIGHTS (of `lockstep train`) takes the place of the initial
ones.
"""
import argparse
import gzip
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MODEL = ROOT + "/docs/examples/models/lenet.yaml"
DATA = ROOT + "/docs/examples/data/mnist10k/train-"


def samples(n):
    with gzip.open(DATA + "images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16)[:n * 784].reshape(n, 28, 28, 1)
    with gzip.open(DATA + "labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)[:n]
    x = ((images / 255.0 - 0.1307) / 0.3081).astype(np.float32)
    return x, labels.astype(np.int32)


def ours(build, device, weights, x, labels):
    """[(name, weight, gradient)] in the canonical layout."""
    with tempfile.TemporaryDirectory() as folder:
        x.tofile(folder + "/x")
        labels.tofile(folder + "/labels")
        done = subprocess.run([build + "/tests/peer/gradients", MODEL, device, weights, folder + "/x",
                               folder + "/labels", str(len(labels)), folder + "/out"], check=True,
                              stdout=subprocess.PIPE, text=True)
        data, at, result = np.fromfile(folder + "/out", np.float32), 0, []
    for line in done.stdout.splitlines():
        name, count = line.split()[0], int(line.split()[1])
        result.append((name, data[at:at + count], data[at + count:at + 2 * count]))
        at += 2 * count
    assert at == len(data)
    return result


# [K][R][S][C] <-> [K][C][R][S]; the first dense layer reads (h, w, c) here, (c, h, w) in PyTorch.
SHAPES = {"conv1.weight": (32, 5, 5, 1), "conv2.weight": (64, 5, 5, 32),
          "dense1.weight": (512, 7, 7, 64)}


def to_torch(name, a):
    if name in SHAPES:
        a = a.reshape(SHAPES[name]).transpose(0, 3, 1, 2)
    if name.startswith("dense") and name.endswith("weight"):
        a = a.reshape(10 if name.startswith("dense2") else 512, -1)
    return np.ascontiguousarray(a)


def gradients(weights, x, labels, dtype):
    net = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)).to(dtype)
    layers = {"conv1": net[0], "conv2": net[3], "dense1": net[7], "dense2": net[9]}
    params = {name: getattr(layers[name.split(".")[0]], name.split(".")[1]) for name in weights}
    with torch.no_grad():
        for name, w in weights.items():
            assert params[name].shape == w.shape, name
            params[name].copy_(torch.from_numpy(w))
    images = torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).to(dtype)
    nn.functional.cross_entropy(net(images), torch.from_numpy(labels).long()).backward()
    return {name: p.grad.double().numpy() for name, p in params.items()}


def compare(a, batch):
    x, labels = samples(batch)
    mine = ours(a.build, a.device, a.weights, x, labels)
    weights = {name: to_torch(name, w) for name, w, _ in mine}
    exact = gradients(weights, x, labels, torch.float64)
    floats = gradients(weights, x, labels, torch.float32)
    good = True
    print("batch %d, %s" % (batch, a.device))
    for name, _, gradient in mine:
        norm = np.linalg.norm(exact[name])
        error = np.linalg.norm(to_torch(name, gradient).astype(np.float64) - exact[name]) / norm
        other = np.linalg.norm(floats[name] - exact[name]) / norm
        good = good and error <= 2 * other
        print("  %-14s lockstep %.2e   PyTorch's floats %.2e   ratio %.2f"
              % (name, error, other, error / other))
    return good


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    p.add_argument("--device", default="cpu")
    p.add_argument("--weights", default="-")
    a = p.parse_args()
    torch.set_num_threads(2)
    sys.exit(0 if all([compare(a, batch) for batch in a.batch]) else 1)


main()
