"""What the tests of the program share: a folder with a small model and its data, running the
program, and what an error must look like.

Each test file is run as: FILE.py PROGRAM SOURCE_ROOT
"""
import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = (os.path.abspath(a) for a in sys.argv[1:3])
LENET = os.path.join(ROOT, "docs/examples/models/lenet.yaml")

# 48 pictures of 8 x 8 in 3 classes, batch 16: 3 steps an epoch.
MODEL = """name: tiny
data:
  train: {format: idx, images: data/train-images, labels: data/train-labels}
  test: {format: idx, images: data/test-images.gz, labels: data/test-labels}
  normalize: {mean: 0.5, std: 0.25}
layers:
  - conv2d: {out: 4, kernel: 3, pad: 1}
  - relu
  - maxpool: {kernel: 2}
  - dense: {out: 3}
loss: softmax_cross_entropy
train: {batch: 16, epochs: 4, seed: 7, optimizer: {sgd: {lr: 0.1, momentum: 0.9, schedule: linear}}}
"""


def idx(dims, values, kind=8):
    return bytes([0, 0, kind, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + values


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def make_model(folder, text=MODEL):
    """Writes model.yaml and its data: a bright bar whose place is the class."""
    draw = random.Random(1)
    for name, count in (("train", 48), ("test", 15)):
        labels = bytes(i % 3 for i in range(count))
        pixels = bytes(min(255, draw.randrange(120) + (120 if x // 3 == label else 0))
                       for label in labels for _ in range(8) for x in range(8))
        images = idx([count, 8, 8], pixels)
        write(folder + "/data/%s-labels" % name, idx([count], labels))
        if name == "train":
            write(folder + "/data/train-images", images)
        else:
            write(folder + "/data/test-images.gz", gzip.compress(images, mtime=0))
    write(folder + "/model.yaml", text)
    return folder + "/model.yaml"


def tree(folder):
    """Every file and folder below, to see that nothing is left behind."""
    return sorted(os.path.join(top, name) for top, folders, files in os.walk(folder)
                  for name in folders + files)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-cli-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.model = make_model(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *args, env=None, **more):
        environment = {**os.environ, "LC_ALL": "C", **(env or {})}
        return subprocess.run([PROGRAM, *args], cwd=self.folder, env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False, **more)

    def good(self, *args, **more):
        done = self.run_program(*args, **more)
        self.assertEqual(done.returncode, 0, "%s: %s" % (" ".join(args), done.stderr))
        return done.stdout

    def bad(self, status, parts, *args, stderr_lines=1, **more):
        """Fails with `status` and one line that holds all parts, and leaves no file behind."""
        before = tree(self.folder)
        done = self.run_program(*args, **more)
        what = "%s: status %d, %s" % (" ".join(args), done.returncode, done.stderr)
        self.assertEqual(done.returncode, status, what)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), stderr_lines, what)
        self.assertTrue(lines[-1].startswith("lockstep: "), what)
        for part in parts:
            self.assertIn(part, lines[-1], what)
        self.assertEqual(tree(self.folder), before, "something was left behind: " + what)

    def train(self, out, *args, device="ref", **more):
        """Goes on with --resume, else replaces what the folder holds."""
        args += () if "--resume" in args else ("--overwrite",)
        return self.good("train", self.model, "--device", device, "--out", self.path(out), "--quiet",
                         *args, **more)


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
