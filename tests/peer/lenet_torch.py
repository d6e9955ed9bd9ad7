#!/usr/bin/python3
"""A training step of LeNet beside PyTorch on the CPU, in one run, interleaved.

Usage: tests/peer/lenet_torch.py PROGRAM [--batch N ...] [--rounds N]

PROGRAM is build/tools/lockstep. PyTorch is Debian's python3-torch, 2 threads; it is no dependency
of the project and this is no test. Each round times one and then the other, so that other load on
the machine meets both; the table gives the smallest and the median time of all steps.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import torch
from torch import nn

MODEL = os.path.join(os.path.dirname(__file__), "../../docs/examples/models/lenet.yaml")


def network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


class Torch:
    def __init__(self, batch, channels_last):
        self.net = network()
        self.x = torch.randn(batch, 1, 28, 28)
        if channels_last:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (batch,))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.net(self.x), self.y).backward()
        self.optimizer.step()

    def times(self, n):
        out = []
        for i in range(n + 2):
            start = time.perf_counter()
            self.step()
            if i >= 2:
                out.append(1e3 * (time.perf_counter() - start))
        return out


def ours(program, batch, n):
    done = subprocess.run([program, "bench", MODEL, "-d", "cpu", "-b", str(batch), "-n", str(n),
                           "--json"], check=True, capture_output=True, text=True)
    step = [json.loads(line) for line in done.stdout.splitlines() if "training step" in line][0]
    return step["min_ms"], step["median_ms"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=20)
    a = p.parse_args()
    torch.set_num_threads(2)
    print("torch %s, %d threads; load before: %.1f" % (torch.__version__, torch.get_num_threads(),
                                                       os.getloadavg()[0]))
    print("%6s %-24s %9s %9s" % ("batch", "program", "min ms", "median ms"))
    for batch in a.batch:
        peers = {"torch": Torch(batch, False), "torch, channels last": Torch(batch, True)}
        times = {name: [] for name in peers}
        mine = []
        for _ in range(a.rounds):
            mine.append(ours(a.program, batch, a.steps))
            for name, peer in peers.items():
                times[name] += peer.times(a.steps)
        low, mid = min(m for m, _ in mine), statistics.median(m for _, m in mine)
        print("%6d %-24s %9.2f %9.2f" % (batch, "lockstep", low, mid))
        for name, t in times.items():
            print("%6d %-24s %9.2f %9.2f   ratio of the smallest: %.2f, of the medians: %.2f"
                  % (batch, name, min(t), statistics.median(t), low / min(t),
                     mid / statistics.median(t)))


main()
