"""Formats of data in model files: texts, moving digits, pictures without labels, limits; what is
refused, with file, line and key; what the model's hash and run.json hold."""
import json
import os

from common import Case, MODEL, idx, main, read, write

TEXT = """name: text
data:
  train: {format: text, file: data/book.txt, context: 8, to: 0.75}
  test: {format: text, file: data/book.txt, context: 8, from: 0.75}
layers:
  - dense: {out: 7}
loss: softmax_cross_entropy
train: {batch: 2, optimizer: adam}
"""
MOVING = """name: moving
data:
  train: {format: moving_digits, images: data/train-images, size: [10, 12], frames: 3, count: 20}
  test: {format: moving_digits, images: data/train-images, size: [10, 12], frames: 3, count: 5, seed: 1}
  normalize: {mean: 0.5}
layers:
  - dense: {out: 3}
loss: softmax_cross_entropy
train: {batch: 2, optimizer: adam}
"""
FORECAST = """layers:
  - select: {axis: 0, index: 0, name: first}
  - select: {axis: 0, index: -1, from: input, name: last}
  - conv2d: {out: 2, kernel: 3, pad: 1, from: first}
  - conv2d: {out: 1, kernel: 3, pad: 1}
loss: {mse: {target: last}}
train: {batch: 2, epochs: 3, optimizer: {sgd: {lr: 0.01}}}
"""


class Formats(Case):
    def setUp(self):
        super().setUp()
        write(self.path("data/book.txt"), "the cat sat at the hat, a cat that sat. " * 8)

    def refused(self, text, old, new, *parts, line, data=None):
        self.assertIn(old, text)
        write(self.model, text.replace(old, new, 1))
        for command in (["train", self.model, "--device", "ref"], ["summary", self.model]):
            self.bad(2, ["%s:%d: " % (self.model, line), *parts], *command)

    def test_texts(self):
        self.refused(TEXT, "book.txt", "book", "`file`", "data/book", "No such file", line=3)
        self.refused(TEXT, "context: 8, to", "to", "`context`", "context: 64", line=3)
        self.refused(TEXT, "context: 8", "context: 0", "`context`", "from 1", line=3)
        self.refused(TEXT, "context: 8", "context: 8, stride: 0", "`stride`", line=3)
        self.refused(TEXT, "context: 8", "contxt: 8", "did you mean `context`", line=3)
        self.refused(TEXT, "to: 0.75", "to: 1.5", "`to`", "1.5", line=3)
        self.refused(TEXT, "from: 0.75", "from: 0.9, to: 0.5", "`from`", "not below `to`", line=4)
        self.refused(TEXT, "to: 0.75", "to: 0.01", "`train`", "bytes 0 to 3 are 3", "takes 9", line=3)
        self.refused(TEXT, "layers:", "  normalize: {mean: 0.5}\nlayers:", "`normalize`", line=3)
        self.refused(TEXT, "from: 0.75", "from: 0.75, limit: 0", "`limit`", line=4)
        self.refused(TEXT, "format: text", "format: txt", "`txt`", "`text`", line=3)
        self.refused(TEXT, "context: 8, from", "context: 9, from", "are 9", "`train` 8", line=4)
        write(self.path("data/other.txt"), "the cat that sat! the cat")
        self.refused(TEXT, "book.txt, context: 8, from: 0.75", "other.txt, context: 8",
                     "`test`", "other.txt: byte 16: 0x21", line=4)

    def test_mixed(self):
        picture = "{format: idx, images: data/train-images, labels: data/train-labels}"
        self.refused(TEXT, "{format: text, file: data/book.txt, context: 8, to: 0.75}", picture,
                     "`test`", "`train` is no text", line=4)
        self.refused(TEXT, "{format: text, file: data/book.txt, context: 8, from: 0.75}", picture,
                     "`test`", "must be alike", line=4)

    def test_sequences(self):
        self.refused(MOVING, "size: [10, 12], ", "", "`size`", "[40, 40]", line=3)
        self.refused(MOVING, "size: [10, 12]", "size: [10]", "height and width", line=3)
        self.refused(MOVING, "size: [10, 12]", "size: [10, 0]", "`0`", line=3)
        self.refused(MOVING, "size: [10, 12]", "size: 7", "`train`", "8 x 8", "7 x 7", line=3)
        self.refused(MOVING, "count: 20", "count: none", "`count`", line=3)
        self.refused(MOVING, "frames: 3, count: 20", "frames: 4, count: 20",
                     "3 x 10 x 12 x 1", "`train` 4 x 10 x 12 x 1", line=4)
        self.refused(MOVING, "images: data/train-images", "images: data/train-labels",
                     "train-labels: byte 3", line=3)
        self.refused(MOVING, "count: 20", "count: 20, labels: data/train-labels", "`labels`", line=3)

    def test_labels(self):
        self.refused(MODEL, ", labels: data/train-labels", "", "`train`", "no labels", line=3)

    def test_limit(self):
        write(self.model, MODEL.replace("data/train-labels", "data/train-labels, limit: 20")
              .replace("test-labels}", "test-labels, limit: 999}"))
        self.assertIn("20 samples to train on, 15 to test on", self.good("summary", self.model))
        self.good("train", self.model, "--device", "ref", "--out", "a", "--epochs", "1")
        write(self.model, MODEL)
        self.good("train", self.model, "--device", "ref", "--out", "b", "--epochs", "1")
        a, b = (json.loads(read(self.path(x + "/run.json")))["data"] for x in "ab")
        self.assertEqual((a["train"]["samples"], b["train"]["samples"]), (20, 48))
        self.assertNotEqual(a["train"]["sha256"], b["train"]["sha256"])
        self.assertEqual(a["test"], b["test"])
        self.assertNotIn("vocabulary", a["train"])

    def test_sequences_train(self):
        """One hash on two devices, and after a resume."""
        write(self.model, MOVING[:MOVING.index("layers:")] + FORECAST)
        self.assertRegex(self.good("summary", self.model), r"input +3 x 10 x 12 x 1 *\n")
        self.good("train", self.model, "--device", "ref", "--out", "ref")
        run = json.loads(read(self.path("ref/run.json")))
        self.assertEqual(run["data"]["train"]["samples"], 20)
        self.good("train", self.model, "--device", "cpu", "--out", "cpu", "--steps", "15")
        self.good("train", self.model, "--device", "cpu", "--out", "cpu", "--resume")
        for name in ("weights.safetensors", "metrics.csv", "steps.csv", "best.safetensors"):
            one, other = (os.path.join(self.folder, x, name) for x in ("ref", "cpu"))
            self.assertEqual(os.path.exists(one), os.path.exists(other), name)
            if os.path.exists(one):
                self.assertEqual(read(one), read(other), name)
        write(self.model, read(self.model).decode().replace("count: 20", "count: 20, seed: 9"))
        self.bad(2, ["data"], "train", self.model, "--device", "cpu", "--out", "cpu", "--resume",
                 "--epochs", "4")

    def test_text_trains(self):
        """One hash on two devices; vocabulary, hits and predictions of every position."""
        book = "the cat sat at the hat, a cat that sat. " * 8
        text = TEXT.replace("  - dense: {out: 7}", "  - embedding: {vocabulary: N, out: 6}\n"
                            "  - conv1d: {out: N, kernel: 2, pad: [1, 0]}")
        text = text.replace("N", str(len(set(book)))).replace("adam", "{adam: {lr: 0.05}}")
        write(self.model, text)
        shown = self.good("summary", self.model)
        self.assertRegex(shown, r"input +tokens +8 *\n")
        self.assertIn("a vocabulary of %d different bytes" % len(set(book)), shown)
        for device in ("ref", "cpu"):
            self.good("train", self.model, "--device", device, "--out", device)
        self.assertEqual(read(self.path("ref/weights.safetensors")),
                         read(self.path("cpu/weights.safetensors")))
        data = json.loads(read(self.path("ref/run.json")))["data"]
        for part in data.values():
            self.assertEqual(bytes(part["vocabulary"]), bytes(sorted(set(book.encode()))))
        self.assertEqual((data["train"]["samples"], data["test"]["samples"]), (29, 9))
        weights = ["--weights", "ref/weights.safetensors", "--device", "ref"]
        accuracy = float(self.good("eval", self.model, *weights).split("accuracy ")[1])
        right = count = 0
        part = book[len(book) * 3 // 4:]
        for sample in range(9):
            lines = self.good("predict", self.model, *weights, "--index", str(sample)).splitlines()
            self.assertEqual(len(lines), 8)
            for i, line in enumerate(lines):
                name, best = line.split("\t")[:2]
                self.assertEqual(name, "%d[%d]" % (sample, i))
                right += sorted(set(book))[int(best)] == part[8 * sample + i + 1]
                count += 1
        self.assertAlmostEqual(accuracy, right / count, places=6)
        self.assertGreater(accuracy, 0.3)
        self.refused(text, "out: %d" % len(set(book)), "out: 3", "`train`", "write `out: ", line=3)


main()
