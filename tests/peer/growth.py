#!/usr/bin/python3
"""How the time of a training step grows with the batch and with the depth, beside PyTorch.

Usage: tests/peer/growth.py PROGRAM [--device D] [--save FILE] [--limit SECONDS] [--images FOLDER]

Measures LeNet at batch 1, 2, 4 to 1024, and ResNets of 8 to 56 layers on pictures of 32 x 32 at
batch 32 (docs/examples/models/resnet20.yaml with other `times`), prints a table and draws
growth_batch_DEVICE.svg and growth_depth_DEVICE.svg into FOLDER. Steps, data and PyTorch's two modes
are those of speed.py; of the two modes the faster one counts. FILE keeps what was measured: points
in it are not measured again, so a run that --limit ended goes on where it stopped. With --prepare
nothing is timed, only lockstep's kernels are compiled into its cache. PyTorch is no dependency of
the project.
"""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

import torch
import yaml

import speed
import torch_net

BATCHES = [2 ** i for i in range(11)]
DEPTHS = [8, 14, 20, 32, 44, 56]
DEPTH_BATCH = 32
SAMPLES = 4096  # of the data, so that epochs are several steps long at every batch
COLORS = {"lockstep": "#2563eb", "PyTorch": "#d97706"}


# ---- models ----

def resnet(depth, folder):
    """A model file of He et al.'s ResNet of 6 n + 2 layers."""
    source = torch_net.model_path("resnet20")
    with open(source, encoding="utf-8") as f:
        model = yaml.safe_load(f)
    n = (depth - 2) // 6
    times = {"stage1": n, "stage2b": n - 1, "stage3b": n - 1}
    layers = []
    for layer in model["layers"]:
        block = layer.get("block", {}) if isinstance(layer, dict) else {}
        if block.get("name") in times:
            block["times"] = times[block["name"]]
        if block.get("times", 1) > 0:
            layers.append(layer)
    model["layers"], model["name"] = layers, "resnet%d" % depth
    here = os.path.dirname(os.path.abspath(source))
    for part in model["data"]["train"], model["data"]["test"]:
        for key in "images", "labels":
            part[key] = os.path.join(here, part[key])
    path = os.path.join(folder, "source.yaml")
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(model, f)
    return path


def points(folder):
    """[(kind, number, model file, batch)], each file with random pictures."""
    out = []
    for name in ["lenet"] + DEPTHS:
        place = os.path.join(folder, str(name))
        os.mkdir(place)
        source = torch_net.model_path(name) if name == "lenet" else resnet(name, place)
        path = speed.prepare(source, SAMPLES // 2, 0, place)
        out += [("batch", b, path, b) for b in BATCHES] if name == "lenet" else \
            [("depth", name, path, DEPTH_BATCH)]
    return out


# ---- measuring ----

def ours(a, path, batch, repeats):
    done = subprocess.run([a.program, "bench", path, "-d", a.device, "-b", str(batch), "-n",
                           str(repeats), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[0])


def theirs(a, path, batch):
    """The median step of PyTorch's faster mode."""
    medians = []
    for first in (True, False):
        if a.device == "gpu":
            peer = speed.Peer(path, batch, "cuda", first, False)
        else:
            peer = speed.Peer(path, batch, "cpu", False, not first)
        peer.modes()
        peer.step()
        peer.wait()
        times, end = [], time.perf_counter() + a.seconds
        while len(times) < 2 or time.perf_counter() < end:
            count = 5 if a.device == "gpu" else 1
            start = time.perf_counter()
            for _ in range(count):
                peer.step()
            peer.wait()
            times.append(1e3 * (time.perf_counter() - start) / count)
        medians.append(statistics.median(times[len(times) > 4:]))  # the first ones warm up
        del peer
    return min(medians)


def prepare_kernels(a, todo):
    """lockstep once at each point, side by side: all kernels are in its cache then."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda p: ours(a, p[2], p[3], 1), todo))


def measure(a, result, todo):
    end = time.monotonic() + a.limit
    for kind, number, path, batch in todo:
        if time.monotonic() > end:
            print("the limit of %g s ended the run; points are missing" % a.limit)
            return
        bench = ours(a, path, batch, a.repeats)
        result["points"].append({"kind": kind, "number": number, "batch": batch,
                                 "lockstep": bench["median_ms"],
                                 "PyTorch": theirs(a, path, batch)})
        result["device"] = bench["device"]
        if a.save:
            with open(a.save, "w", encoding="utf-8") as f:
                json.dump(result, f, indent=1)


# ---- table and plots ----

def digits(ms):
    """Three digits, and those before the point."""
    return "%.0f" % ms if ms >= 100 else "%.3g" % ms


def table(result):
    print("%s, torch %s, %s" % (result["device"], result["torch"], result["date"]))
    for kind in "batch", "depth":
        print("| %s | lockstep, ms | PyTorch, ms | lockstep, samples/s | PyTorch, samples/s "
              "| ratio |\n|---|---|---|---|---|---|" % kind)
        for p in chosen(result, kind):
            print("| %d | %s | %s | %.0f | %.0f | %.2f |" % (
                p["number"], *(digits(p[name]) for name in COLORS),
                *(1e3 * p["batch"] / p[name] for name in COLORS), p["lockstep"] / p["PyTorch"]))


def chosen(result, kind):
    return sorted((p for p in result["points"] if p["kind"] == kind), key=lambda p: p["number"])


def text(x, y, what, size=12, anchor="middle", color="#374151", more=""):
    return '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s"%s>%s</text>' % (
        x, y, size, anchor, color, more,
        what.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def line(x1, y1, x2, y2, color="#e5e7eb", more=""):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"%s/>' % (
        x1, y1, x2, y2, color, more)


def plot(result, kind, path):
    """Both programs on logarithmic axes, and dashed what would be in proportion."""
    data = chosen(result, kind)
    values = [p[name] for p in data for name in COLORS]
    low, high = math.log10(min(values)) - 0.15, math.log10(max(values)) + 0.15
    first, last = data[0]["number"], data[-1]["number"]
    left, right, top, bottom = 76, 690, 76, 430
    px = lambda n: left + 20 + (right - left - 40) * math.log(n / first) / math.log(last / first)
    py = lambda ms: bottom - (bottom - top) * (math.log10(ms) - low) / (high - low)
    what = "LeNet, 28 x 28" if kind == "batch" else \
        "ResNets, 32 x 32, batch %d" % DEPTH_BATCH
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="720" height="490" viewBox="0 0 720 490" '
           'font-family="Helvetica, Arial, sans-serif">',
           '<rect width="720" height="490" fill="#ffffff"/>',
           text(left, 24, "Time of a training step over the %s: %s" % (kind, what), 16, "start"),
           text(left, 43, "%s, %s" % (result["device"], result["date"]), 11, "start", "#6b7280")]
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            ms = digit * 10.0 ** exponent
            if low <= math.log10(ms) <= high:
                out += [line(left, py(ms), right, py(ms)),
                        text(left - 8, py(ms) + 4, "%g" % ms, anchor="end")]
    for p in data:
        out += [line(px(p["number"]), top, px(p["number"]), bottom),
                text(px(p["number"]), bottom + 18, str(p["number"]))]
    out += [text((left + right) / 2, bottom + 42, {
        "batch": "batch (samples a step)", "depth": "depth (layers with weights)"}[kind], 13),
            text(20, (top + bottom) / 2, "time of a step (ms)", 13, more=
                 ' transform="rotate(-90 20 %.1f)"' % ((top + bottom) / 2))]
    for i, (name, color) in enumerate(COLORS.items()):
        at = left + 130 * i
        start = max(first, last * 10 ** low / data[-1][name])
        out += [line(px(start), py(data[-1][name] * start / last), px(last), py(data[-1][name]),
                     color, ' stroke-dasharray="3 4" stroke-opacity="0.6"'),
                '<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (
                    color, " ".join("%.1f,%.1f" % (px(p["number"]), py(p[name])) for p in data)),
                line(at, 60, at + 24, 60, color, ' stroke-width="2"'),
                text(at + 30, 64, name, anchor="start")]
        out += ['<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (
            px(p["number"]), py(p[name]), color) for p in data]
    at = left + 130 * len(COLORS)
    out += [line(at, 60, at + 24, 60, "#6b7280", ' stroke-dasharray="3 4"'),
            text(at + 30, 64, "in proportion to the %s" % kind, anchor="start"), "</svg>"]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    p.add_argument("--save")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--images", default="docs/images")
    p.add_argument("--repeats", type=int, default=3, help="of half a second, for lockstep")
    p.add_argument("--seconds", type=float, default=1.0, help="for each mode of PyTorch")
    p.add_argument("--prepare", action="store_true")
    a = p.parse_args()
    speed.settings()
    result = {"points": [], "torch": torch.__version__,
              "date": datetime.date.today().isoformat(), "device": a.device}
    if a.save and os.path.exists(a.save):
        with open(a.save, encoding="utf-8") as f:
            result = json.load(f)
    done = {(q["kind"], q["number"]) for q in result["points"]}
    with tempfile.TemporaryDirectory() as folder:
        todo = [q for q in points(folder) if q[:2] not in done]
        if a.prepare:
            return prepare_kernels(a, todo)
        measure(a, result, todo)
    table(result)
    os.makedirs(a.images, exist_ok=True)
    for kind in "batch", "depth":
        if len(chosen(result, kind)) > 1:
            plot(result, kind, os.path.join(a.images, "growth_%s_%s.svg" % (kind, a.device)))


main()
