#!/usr/bin/env python3
"""Trains LeNet on a device and compares the sha256 of its weights with tests/golden/lenet.txt.

Usage: golden_lenet.py PROGRAM SOURCE_ROOT DEVICE CASE      (a first word of a line of that file)
Exit status 77 (skipped) if there is no such device.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

SKIPPED, DEVICE_TROUBLE = 77, 3


def golden(root):
    """The lines of tests/golden/lenet.txt, {case: (sha256, options)}."""
    with open(os.path.join(root, "tests/golden/lenet.txt"), encoding="ascii") as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {name: (sha, options) for name, sha, *options in rows}


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    program, root, device, case = sys.argv[1:]
    want, options = golden(root)[case]
    with tempfile.TemporaryDirectory(prefix="lockstep-golden-") as folder:
        # A cache of its own: the first run on a device is what is tested.
        done = subprocess.run(
            [program, "train", os.path.join(root, "docs/examples/models/lenet.yaml"), "--device",
             device, "--out", folder + "/run", "--quiet", *options],
            env=dict(os.environ, XDG_CACHE_HOME=folder), capture_output=True, text=True,
            check=False)
        if done.returncode == DEVICE_TROUBLE and "no OpenCL device" in done.stderr:
            print(done.stderr)
            sys.exit(SKIPPED)
        if done.returncode != 0:
            sys.exit("status %d: %s" % (done.returncode, done.stderr))
        with open(folder + "/run/weights.safetensors", "rb") as f:
            got = hashlib.sha256(f.read()).hexdigest()
    if got != want:
        sys.exit("%s, %s: %s, expected %s" % (device, case, got, want))
    print("%s, %s: %s" % (device, case, got))


main()
