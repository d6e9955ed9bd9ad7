"""What the tests of check, compare and admission share: a model of dense layers alone (few kernels
to compile), a folder for compiled kernels that one test file keeps to itself, and copies of the
kernels with a fault in them.
"""
import os
import re
import shutil
import tempfile

from common import Case, ROOT, make_model

# 48 samples, batch 20: the last batch is short, so a training has three plans (with the test).
DENSE = """name: tiny
data:
  train: {format: idx, images: data/train-images, labels: data/train-labels}
  test: {format: idx, images: data/test-images.gz, labels: data/test-labels}
  normalize: {mean: 0.5, std: 0.25}
layers:
  - dense: {out: 24}
  - relu
  - dense: {out: 3}
loss: softmax_cross_entropy
train: {batch: 20, epochs: 1, seed: 7, optimizer: {sgd: {lr: 0.1, momentum: 0.9}}}
"""

# a * b rounded, then + c: what a compiler does that is told to contract nothing, and no fma.
UNFUSED = (r"fma\(s, v\[j\], acc\[i\]\[j\]\)", r"s * v[j] + acc[i][j]")
UNFUSED_CONTRACT = (r"lks_fma\(([^(),]+), ([^(),]+), acc\)", r"\1 * \2 + acc")


class KernelCase(Case):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.mkdtemp(prefix="lockstep-cache-")
        cls.addClassCleanup(shutil.rmtree, cls.cache)

    def setUp(self):
        super().setUp()
        self.model = make_model(self.folder, DENSE)
        if " cpu\n" not in self.good("devices"):
            self.skipTest("there is no CPU device")

    def run_program(self, *args, env=None, **more):
        return super().run_program(*args, env={"XDG_CACHE_HOME": self.cache, **(env or {})}, **more)

    def kernels(self, changes=()):
        """A copy of cl/ in which each (file, (pattern, replacement)) is done; as environment."""
        folder = self.path("cl-%d" % len(os.listdir(self.folder)))
        shutil.copytree(ROOT + "/cl", folder)
        for name, (pattern, new) in changes:
            with open(folder + "/" + name, encoding="utf-8") as f:
                text, count = re.subn(pattern, new, f.read())
            self.assertGreater(count, 0, "nothing to change in " + name)
            with open(folder + "/" + name, "w", encoding="utf-8") as f:
                f.write(text)
        return {"LKS_KERNEL_DIR": folder}
