"""Sums and extremes over axes, softmax, linear layers, matrix products and powers in model files; one
hash on two devices."""
from common import Case, MODEL, main, read, write

BEGIN = MODEL.index("  - conv2d")
END = MODEL.index("  - dense")
ATTENTION = """  - conv2d: {name: pixels, out: 8, kernel: 3, stride: 2}
  - reshape: {name: words, shape: [-1, 8]}
  - linear: {name: query, from: words, out: 8}
  - linear: {name: key, from: words, out: 8, bias: false}
  - linear: {name: value, from: words, out: 12}
  - matmul: {name: scores, from: [query, key], transpose_b: true}
  - softmax: {name: weights, causal: true}
  - matmul: {name: mixed, from: [weights, value]}
  - log_softmax
  - max: {name: most, axes: [0], keep: true}
  - min: {name: least, axes: [0], from: log_softmax1, keep: true}
  - sub: {from: [log_softmax1, most]}
  - mul: {from: [sub1, least]}
  - mean: {axes: [0], keep: true}
  - sum: {axes: [0]}
"""
POWERS = """  - conv2d: {name: image, out: 8, kernel: 3, stride: 2}
  - sigmoid
  - add: {value: 0.5}
  - pow: {exponent: -1.5, name: bent}
  - conv2d: {name: exponent, from: image, out: 8, kernel: 1}
  - pow: {from: [bent, exponent]}
"""


class Reduce(Case):
    def model_of(self, body):
        return MODEL[:BEGIN] + body + MODEL[END:]

    def sha(self, text):
        write(self.model, text)
        return self.good("summary", self.model).split("sha256 ")[1][:64]

    def test_one_hash(self):
        for body in (ATTENTION, POWERS):
            write(self.model, self.model_of(body))
            for device in ("ref", "cpu"):
                self.good("train", self.model, "-d", device, "-o", self.path(device), "--quiet",
                          "--overwrite")
            self.assertEqual(read(self.path("ref/weights.safetensors")),
                             read(self.path("cpu/weights.safetensors")))

    def test_keys_count(self):
        seen = {self.sha(self.model_of(ATTENTION))}
        for old, new in ((", causal: true", ""), ("mean: {axes: [0]", "sum: {axes: [0]"),
                         ("mean: {axes: [0], keep: true}", "mean: {axes: [1], keep: true}"),
                         ("max: {name: most", "min: {name: most"),
                         ("key, from: words, out: 8", "key, from: words, out: 8, bias: true")):
            if "bias: true" in new:
                old, new = "out: 8, bias: false", "out: 8"
            self.assertIn(old, ATTENTION)
            seen.add(self.sha(self.model_of(ATTENTION.replace(old, new))))
        self.assertEqual(len(seen), 6)
        seen = {self.sha(self.model_of(POWERS)),
                self.sha(self.model_of(POWERS.replace("-1.5", "1.5"))),
                self.sha(self.model_of(POWERS.replace("[bent, exponent]", "[exponent, bent]")))}
        self.assertEqual(len(seen), 3)

    def test_refusals(self):
        for old, new, text in (("axes: [0], keep", "axes: [2], keep", "axis 2"),
                               ("axes: [0], keep", "axes: [0, -2], keep", "axis -2"),
                               (", transpose_b: true", "", "[9,8] and [9,8] do not fit"),
                               ("from: [query, key]", "from: [query]", "matmul")):
            self.assertIn(old, ATTENTION)
            write(self.model, self.model_of(ATTENTION.replace(old, new)))
            self.bad(2, ["model.yaml:", text], "summary", self.model)
        for old, new, text in (("exponent: -1.5, ", "", "`exponent: 2.5`"),
                               ("from: [bent, exponent]", "from: [bent, exponent], exponent: 2",
                                "`exponent: 2.5`"),
                               ("exponent: -1.5", "exponent: many", "exponent")):
            self.assertIn(old, POWERS)
            write(self.model, self.model_of(POWERS.replace(old, new)))
            self.bad(2, ["model.yaml:", text], "summary", self.model)


main()
