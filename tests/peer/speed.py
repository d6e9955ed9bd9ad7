#!/usr/bin/python3
"""Training steps of model files beside PyTorch, in one run, by turns.

Usage: tests/peer/speed.py PROGRAM MODEL[:BATCH[:SIZE]]... [--device D] [--rounds N] [--seconds S]

PROGRAM is build/tools/lockstep; MODEL a file or the name of an example; SIZE the height and width of
the pictures (default: those of the model's data). Pictures are drawn at random, texts and moving
digits are the model's own. With --device gpu PyTorch runs on CUDA, without TF32, in its deterministic
mode and in its fastest (cudnn.benchmark); with cpu on 2 threads, in both memory layouts. A step is
forward, backward of each loss for the parameters of its optimiser, and SGD with momentum. Each round
times one and then the others, so that other load on the machine meets all; the table gives medians
over all steps, the ratio of lockstep to each, and the memory that each says it needs. PyTorch is no
dependency of the project.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_net


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(">%dI" % array.ndim, *array.shape) + \
        array.tobytes()


def read_shape(path):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as f:
        head = f.read(4)
        return struct.unpack(">%dI" % head[3], f.read(4 * head[3]))


def pictures(model, path, batch, size, folder):
    """Random pictures in the shape of the model's, or of another size, in place of its data."""
    data, rng = model["data"]["train"], np.random.default_rng(1)
    shape = list(read_shape(os.path.join(os.path.dirname(path), data["images"])))
    shape = [2 * batch, *shape[1:3], shape[3] if len(shape) == 4 else 1]
    if size:
        shape[1:3] = size, size
    out = {"format": "idx", "images": "images"}
    arrays = {"images": rng.integers(0, 256, shape, np.uint8)}
    if "labels" in data:
        out["labels"] = "labels"
        arrays["labels"] = rng.integers(0, 10, shape[0], np.uint8)
    for name, array in arrays.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(idx(array))
    return {"train": out, "normalize": model["data"].get("normalize", {"mean": 0.5, "std": 0.25})}


def prepare(path, batch, size, folder):
    """The model file to time: a copy with data and optimisers of its own."""
    with open(path, encoding="utf-8") as f:
        model = yaml.safe_load(f)
    if model["data"]["train"]["format"] == "idx":
        model["data"] = pictures(model, path, batch, size, folder)
    else:
        here = os.path.dirname(os.path.abspath(path))
        model["data"] = {"train": {k: os.path.join(here, v) if k in ("file", "images") else v
                                   for k, v in model["data"]["train"].items()}}
    # Random pictures teach nothing; a small rate keeps every number finite.
    sgd = lambda: {"sgd": {"lr": 1e-6, "momentum": 0.9, "weight_decay": 1e-4}}
    train = model["train"]
    train.pop("groups", None)
    if "optimizers" in train:
        train["optimizers"] = [{**sgd(), **{k: o[k] for k in ("loss", "params") if k in o}}
                               for o in train["optimizers"]]
    else:
        train["optimizer"] = sgd()
    out = os.path.join(folder, "model.yaml")
    with open(out, "w", encoding="utf-8") as f:
        yaml.safe_dump(model, f)
    return out


def batch_of(path, batch, device):
    """Random samples and labels as the model takes them, and the shape of a sample."""
    with open(path, encoding="utf-8") as f:
        data = yaml.safe_load(f)["data"]["train"]
    if data["format"] == "text":
        with open(data["file"], "rb") as f:
            vocabulary = len(set(f.read()))
        shape = [data["context"]]
        x, y = (torch.randint(0, vocabulary, (batch, *shape), device=device) for _ in range(2))
        return x, y, shape
    if data["format"] == "moving_digits":
        size = data["size"] if isinstance(data["size"], list) else [data["size"]] * 2
        shape = [data.get("frames", 10), *size, 1]
    else:
        shape = list(read_shape(os.path.join(os.path.dirname(path), data["images"])))[1:]
    return (torch.rand(batch, *shape, device=device),
            torch.randint(0, 10, (batch,), device=device), shape)


class Chance:
    """PyTorch's own random numbers."""

    def __init__(self, device):
        self.device = device

    def dropout(self, layer, x, p):
        return F.dropout(x, p)

    def random(self, layer, shape):
        uniform = layer.keys.get("kind", "normal") == "uniform"
        return (torch.rand if uniform else torch.randn)(*shape, device=self.device)


class Peer:
    """A mode of PyTorch."""

    def __init__(self, path, batch, device, deterministic, channels_last):
        self.device, self.deterministic = device, deterministic
        self.x, self.y, _ = batch_of(path, batch, device)
        self.net = torch_net.Net(path, device=device, chance=Chance(device))
        self.net.losses(self.x, self.y)
        if channels_last:
            self.net.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-6, momentum=0.9,
                                         weight_decay=1e-4)

    def modes(self):
        torch.use_deterministic_algorithms(self.deterministic)
        torch.backends.cudnn.deterministic = self.deterministic
        torch.backends.cudnn.benchmark = not self.deterministic

    def wait(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def step(self):
        self.optimizer.zero_grad()
        self.net.backward(self.x, self.y)
        self.optimizer.step()

    def times(self, seconds):
        self.modes()
        out, end = [], 0
        if self.device != "cpu":
            torch.cuda.reset_peak_memory_stats()
        for i in range(3):
            self.step()
        self.wait()
        end = time.perf_counter() + seconds
        while len(out) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(1 if self.device == "cpu" else 5):
                self.step()
            self.wait()
            out.append(1e3 * (time.perf_counter() - start) / (1 if self.device == "cpu" else 5))
        return out

    def memory(self):
        return "" if self.device == "cpu" else "%.2f GiB" % (
            torch.cuda.max_memory_allocated() / 2 ** 30)


def ours(program, path, batch, device):
    done = subprocess.run([program, "bench", path, "-d", device, "-b", str(batch), "--json"],
                          check=True, capture_output=True, text=True)
    step = [json.loads(line) for line in done.stdout.splitlines() if "training step" in line][0]
    return step["median_ms"]


def our_memory(program, path, batch, device):
    done = subprocess.run([program, "summary", path, "-d", device, "-b", str(batch)], check=True,
                          capture_output=True, text=True)
    return done.stdout.split("total")[-1].strip()


def compare(a, what):
    name, batch, size = (what.split(":") + ["", ""])[:3]
    batch, size = int(batch or 64), int(size or 0)
    with tempfile.TemporaryDirectory() as folder:
        path = prepare(torch_net.model_path(name), batch, size, folder)
        shape = batch_of(path, 1, "cpu")[2]
        if a.device == "gpu":
            modes = {"torch, deterministic": ("cuda", True, False),
                     "torch, fastest": ("cuda", False, False)}
        else:
            modes = {"torch": ("cpu", False, False), "torch, channels last": ("cpu", False, True)}
        times, memory, mine = {mode: [] for mode in modes}, {}, []
        for _ in range(a.rounds):
            mine.append(ours(a.program, path, batch, a.device))
            for mode, (device, deterministic, last) in modes.items():
                if device != "cpu":
                    torch.cuda.empty_cache()
                peer = Peer(path, batch, device, deterministic, last)
                times[mode] += peer.times(a.seconds)
                memory[mode] = peer.memory()
                del peer
        middle = statistics.median(mine)
        label = "%s, batch %d, %s" % (name, batch, " x ".join(map(str, shape)))
        print("%-40s %-22s %9.2f  %14s" % (label, "lockstep", middle,
                                           our_memory(a.program, path, batch, a.device)))
        for mode, t in times.items():
            print("%-40s %-22s %9.2f  %14s   ratio %.2f" %
                  ("", mode, statistics.median(t), memory[mode], middle / statistics.median(t)),
                  flush=True)


def settings():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(2)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("model", nargs="+")
    p.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3.0)
    a = p.parse_args()
    settings()
    print("torch %s%s; load before: %.1f" % (
        torch.__version__, ", 2 threads" if a.device == "cpu" else ", CUDA, TF32 off",
        os.getloadavg()[0]))
    print("%-40s %-22s %9s  %14s" % ("model", "program", "median ms", "memory"))
    for what in a.model:
        compare(a, what)


if __name__ == "__main__":
    main()
