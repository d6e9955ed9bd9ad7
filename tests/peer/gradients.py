#!/usr/bin/python3
"""The gradients of one step of model files against PyTorch in double, from the same weights,
samples and random numbers: how far from it lockstep is, and how far PyTorch's own floats are.

Usage: tests/peer/gradients.py BUILD MODEL[:BATCH]... [--device D] [--steps N] [--rounds N] [--all]
                               [--any-layout]

MODEL is a file or the name of an example. The error of a gradient is its norm-wise one,
|g - g64| / |g64|, and its ratio lockstep's error by that of PyTorch's floats, the median over N
batches (16), each with random numbers of its own. The weights are initial ones, another seed a
batch, or with --steps those after so many steps of training. The status is 1 if the ratio of any
parameter is above 2. Gradients whose exact value is 0 are left out: nothing to compare with.

A line a model, or with --all a parameter, has the ratio twice. "as it is" is the one above. In a deep
network a number next to 0 may in floats be on the other side of a relu, by chance, and gradients
then jump by far more than they are rounded: so the second, "rounding alone", compares each float
gradient with the double one on the same side of every relu, clamp and maximum. "moved" is how many
elements of a batch lay on another side than in double, of lockstep and of PyTorch.

PyTorch's floats are taken at their best: images stay contiguous, so that its batch normalisation sums
in double. --any-layout leaves the layout to it; then it often sums in float.

PyTorch is Debian's python3-torch; this is no test and PyTorch no dependency.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import philox
import torch_layers
import torch_net


class Chance:
    """lockstep's own random numbers: dropout by its rule, the rest as it gave it."""

    def __init__(self, seed, values):
        self.seed, self.values = seed, values

    def dropout(self, layer, x, p):
        return x * torch.from_numpy(philox.dropout(self.seed, layer.name, tuple(x.shape), p))

    def random(self, layer, shape):
        return torch.from_numpy(self.values[layer.name].reshape(shape))


class Ours:
    """lockstep's pass over a batch."""

    def __init__(self, a, net, path, weights, seed, first, batch):
        layers = {l.name for l in net.layers if l.kind == "random"}
        for l in net.layers:
            if torch_layers.has_pieces(l):
                layers.add(l.sources[0] if l.kind == "maxpool" else l.name)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [a.build + "/tests/peer/gradients", path, a.device, weights, str(seed), str(first),
                 str(batch), folder + "/out", *sorted(layers - {"input"})],
                check=True, stdout=subprocess.PIPE, text=True)
            data = np.fromfile(folder + "/out", np.float32)
        self.weights, self.gradients, self.values = {}, {}, {}
        kinds = {"parameter": self.weights, "gradient": self.gradients, "value": self.values}
        at = 0
        for line in done.stdout.splitlines():
            kind, count, *rest = line.split()
            part = data[at:at + int(count)]
            at += len(part)
            if kind == "samples":
                self.x, shape = part, [batch, *map(int, rest)]
            elif kind == "labels":
                self.labels = torch.from_numpy(part.view(np.int32).reshape(batch, -1)).long()
            else:
                kinds[kind][rest[0]] = part
        assert at == len(data)
        text = net.model["data"]["train"]["format"] == "text"
        self.x = torch.from_numpy(self.x.view(np.int32 if text else np.float32).reshape(shape))
        self.x = self.x.long() if text else self.x

    def pieces(self, net):
        """Which side of each kink its numbers lay on; `net` has run, and gives the shapes."""
        out = {}
        for l in net.layers:
            if torch_layers.has_pieces(l):
                source = l.sources[0] if l.kind == "maxpool" else l.name
                like = net.values[source]
                data = self.x if source == "input" else torch.from_numpy(
                    self.values[source].reshape(like.plain().shape))
                value = torch_layers.Value(data.permute(0, 3, 1, 2), True) if like.image else \
                    torch_layers.Value(data)
                out[l.name] = torch_layers.piece_of(l, value)
        return out


def own_pieces(net):
    return {l.name: torch_layers.piece_of(l, net.values[l.sources[0] if l.kind == "maxpool"
                                                        else l.name])
            for l in net.layers if torch_layers.has_pieces(l)}


def moved(pieces, exact):
    return sum(int((pieces[name] != exact[name]).sum()) for name in exact)


def peer(a, path, ours, seed, dtype, pieces=None):
    net = torch_net.Net(path, dtype=dtype, weights=ours.weights, pieces=pieces,
                        chance=Chance(seed, ours.values), contiguous=not a.any_layout)
    net.backward(ours.x if ours.x.dtype == torch.long else ours.x.to(dtype), ours.labels)
    return net


def distance(gradient, exact):
    return np.linalg.norm(gradient.astype(np.float64) - exact)


class Round:
    """The errors of one batch: {parameter: (lockstep's, PyTorch's)}, None where the gradient is 0,
    as it is and on the same pieces; and how many elements moved."""

    def __init__(self, a, path, weights, seed, first, batch):
        plain = torch_net.Net(path)
        ours = Ours(a, plain, path, weights, seed, first, batch)
        double = peer(a, path, ours, seed, torch.float64)
        exact = double.gradients()
        floats = peer(a, path, ours, seed, torch.float32)
        gradients = floats.gradients()
        assert set(exact) == set(ours.gradients), set(exact) ^ set(ours.gradients)
        pieces = [own_pieces(double), ours.pieces(double), own_pieces(floats)]
        del double, floats
        self.moved = [moved(p, pieces[0]) for p in pieces[1:]]
        same = [peer(a, path, ours, seed, torch.float64, p).gradients() if m else exact
                for p, m in zip(pieces[1:], self.moved)]
        largest = max(np.linalg.norm(g) for g in exact.values())
        self.whole, self.rounding = {}, {}
        for name, g in exact.items():
            norm = np.linalg.norm(g)
            zero = norm < 1e-9 * largest
            self.whole[name] = None if zero else (
                distance(ours.gradients[name], g) / norm, distance(gradients[name], g) / norm)
            self.rounding[name] = None if zero else (
                distance(ours.gradients[name], same[0][name]) / norm,
                distance(gradients[name], same[1][name]) / norm)


def ratios(rounds, which):
    """[(median ratio, median error of lockstep, of PyTorch, name)], worst first."""
    out = []
    for name in getattr(rounds[0], which):
        errors = [getattr(r, which)[name] for r in rounds]
        if None not in errors:
            out.append((np.median([o / p for o, p in errors]), *np.median(errors, 0), name))
    return sorted(out, reverse=True)


def trained(a, path, batch, folder):
    """A weights file after a.steps steps, or "-"."""
    if a.steps == 0:
        return "-"
    subprocess.run([a.build + "/tools/lockstep", "train", path, "--device", a.device, "--quiet",
                    "--steps", str(a.steps), "--batch", str(batch), "--out", folder + "/run"],
                   check=True, stdout=subprocess.PIPE)
    return folder + "/run/weights.safetensors"


def compare(a, what):
    name, batch = (what.split(":") + ["2"])[:2]
    path, batch = torch_net.model_path(name), int(batch)
    with tempfile.TemporaryDirectory() as folder:
        weights = trained(a, path, batch, folder)
        rounds = [Round(a, path, weights, i, i * batch, batch) for i in range(a.rounds)]
    whole, rounding = ratios(rounds, "whole"), ratios(rounds, "rounding")
    label = "%s:%d" % (os.path.basename(name).replace(".yaml", ""), batch)
    if a.all:
        alone = {row[3]: row for row in rounding}
        for ratio, error, other, parameter in whole:
            print("%-20s %-34s %.1e / %.1e = %5.2f   %.1e / %.1e = %5.2f" % (
                label, parameter, error, other, ratio, *alone[parameter][1:3],
                alone[parameter][0]), flush=True)
    above = sum(row[0] > 2 for row in whole)
    print("%-20s %4d parameters, %3d above 2; ratio: median %.2f, worst %.2f (%s); "
          "rounding alone: median %.2f, worst %.2f (%s); moved %g and %g; %s" % (
              label, len(whole), above, np.median([row[0] for row in whole]), whole[0][0],
              whole[0][3], np.median([row[0] for row in rounding]), rounding[0][0],
              rounding[0][3], *np.median([r.moved for r in rounds], 0),
              "fail" if above else "pass"), flush=True)
    return above == 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("model", nargs="+")
    p.add_argument("--device", default="ref")
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--rounds", type=int, default=16)
    p.add_argument("--all", action="store_true")
    p.add_argument("--any-layout", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(1)
    sys.exit(0 if all([compare(a, what) for what in a.model]) else 1)


main()
