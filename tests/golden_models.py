#!/usr/bin/env python3
"""Trains an example network for a few steps and holds it to its line of tests/golden/models.txt:
the sha256 of the weights, and that the loss falls.

Usage: golden_models.py PROGRAM SOURCE_ROOT DEVICE CASE...     (first words of lines of that file)
       golden_models.py PROGRAM SOURCE_ROOT DEVICE --write      (prints the file with new hashes)
Exit status 77 (skipped) if there is no such device.
"""
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
import time

SKIPPED, DEVICE_TROUBLE = 77, 3


def rows(root):
    """(case, model, sha256, fall, options): `fall` is what the last loss must be below, as a share
    of the first; `-` asks nothing (too few steps to say)."""
    with open(os.path.join(root, "tests/golden/models.txt"), encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words and words[0] != "#":
                yield words[0], words[1], words[2], words[3], words[4:]


def mean(values):
    return sum(values) / len(values)


def check_fall(path, fall):
    """The mean of the last tenth of the steps' losses against the first tenth's."""
    with open(path, encoding="ascii") as f:
        loss = [float(row["loss"]) for row in csv.DictReader(f)]
    part = max(1, len(loss) // 10)
    share = mean(loss[-part:]) / mean(loss[:part])
    if fall != "-" and not share < float(fall):
        sys.exit("the loss came to %.3f of what it was, below %s expected" % (share, fall))
    return share


def train(program, root, device, model, options, fall):
    with tempfile.TemporaryDirectory(prefix="lockstep-golden-") as folder:
        done = subprocess.run(
            [program, "train", os.path.join(root, "docs/examples/models", model), "--device",
             device, "--out", folder + "/run", "--quiet", *options],
            capture_output=True, text=True, check=False)
        if done.returncode == DEVICE_TROUBLE and "no OpenCL device" in done.stderr:
            print(done.stderr)
            sys.exit(SKIPPED)
        if done.returncode != 0:
            sys.exit("status %d: %s" % (done.returncode, done.stderr))
        share = check_fall(folder + "/run/steps.csv", fall)
        with open(folder + "/run/weights.safetensors", "rb") as f:
            return hashlib.sha256(f.read()).hexdigest(), share


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    program, root, device, *cases = sys.argv[1:]
    write = cases[0] == "--write"
    known = list(rows(root))
    wanted = [row for row in known if write or row[0] in cases]
    if not write and len(wanted) != len(cases):
        sys.exit("no such case: " + " ".join(set(cases) - {row[0] for row in known}))
    wrong = 0
    for case, model, sha, fall, options in wanted:
        start = time.monotonic()
        got, share = train(program, root, device, model, options, fall)
        if write:
            print("%-20s %-24s %s  %-5s %s" % (case, model, got, fall, " ".join(options)))
            continue
        wrong += got != sha
        print("%s, %s: %s%s, loss to %.3f, %.1f s" %
              (device, case, got, "" if got == sha else ", expected " + sha, share,
               time.monotonic() - start), flush=True)
    sys.exit(1 if wrong else 0)


main()
