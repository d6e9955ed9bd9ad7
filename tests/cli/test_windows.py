"""Windows in model files: numbers for both axes, lists, `same`; poolings; and one hash on two devices."""
from common import Case, MODEL, main, read, write

POOLED = MODEL.replace("""  - conv2d: {out: 4, kernel: 3, pad: 1}
  - relu
  - maxpool: {kernel: 2}
""", """  - conv2d: {out: 4, kernel: [3, 2], stride: [1, 2], pad: [1, 2, 0, 1]}
  - relu
  - avgpool: {kernel: [2, 3], stride: 1, pad: [1, 1], ceil: true, count_pad: true}
  - maxpool: {kernel: 2, stride: [2, 1], dilation: [2, 1], pad: same}
  - conv2d: {out: 5, kernel: 3, pad: same}
  - conv_transpose2d: {out: 6, kernel: [4, 3], stride: 2, pad: [1, 1, 0, 1], output_pad: [0, 1]}
  - relu
  - conv_transpose2d: {out: 4, kernel: 3, dilation: 2, groups: 2, bias: false}
  - global_avgpool
""")


class Windows(Case):
    def sha(self, text):
        write(self.model, text)
        return self.good("summary", self.model).split("sha256 ")[1][:64]

    def refused(self, old, new, *texts, line):
        self.assertIn(old, MODEL)
        write(self.model, MODEL.replace(old, new))
        self.bad(2, ["model.yaml:%d" % line, *texts], "summary", self.model)

    def test_spellings(self):
        first = self.sha(MODEL)
        for same in ("kernel: [3, 3], pad: 1", "kernel: 3, pad: [1, 1]", "kernel: 3, pad: same",
                     "kernel: 3, pad: [1, 1, 1, 1], stride: [1, 1], dilation: [1, 1]",
                     "kernel: 3, pad: 1, algo: direct"):
            self.assertEqual(self.sha(MODEL.replace("kernel: 3, pad: 1", same)), first, same)
        seen = {first}
        for other in ("kernel: [3, 1], pad: 1", "kernel: [1, 3], pad: 1", "kernel: 3, pad: [1, 0]",
                      "kernel: 3, pad: [1, 0, 1, 1]", "kernel: 3, pad: [1, 1, 1, 0]",
                      "kernel: 3, pad: 1, stride: [2, 1]", "kernel: 3, pad: 1, dilation: [1, 2]",
                      "kernel: 3, pad: 1, algo: winograd"):
            seen.add(self.sha(MODEL.replace("kernel: 3, pad: 1", other)))
        for other in ("{kernel: 2, ceil: true}", "{kernel: 2, stride: 2, dilation: 2}"):
            seen.add(self.sha(MODEL.replace("{kernel: 2}", other)))
        seen.add(self.sha(MODEL.replace("maxpool: {kernel: 2}", "avgpool: {kernel: 2}")))
        seen.add(self.sha(MODEL.replace("maxpool: {kernel: 2}", "avgpool: {kernel: 2, count_pad: true}")))
        seen.add(self.sha(MODEL.replace("maxpool: {kernel: 2}", "global_avgpool")))
        seen.add(self.sha(MODEL.replace("maxpool: {kernel: 2}", "global_maxpool")))
        self.assertEqual(len(seen), 15)

    def test_same_pads_the_end_more(self):
        text = MODEL.replace("kernel: 3, pad: 1", "kernel: 3, stride: 2, pad: %s")
        self.assertEqual(self.sha(text % "same"), self.sha(text % "[0, 1, 0, 1]"))

    def test_refusals(self):
        self.refused("kernel: 3, pad: 1", "kernel: [3, 3, 3]", "key `kernel`: a list of 3", line=7)
        self.refused("kernel: 3, pad: 1", "kernel: [3, 0]", "1", line=7)
        self.refused("kernel: 3, pad: 1", "kernel: 3, pad: [1, 1, 1]", "key `pad`: a list of 3", line=7)
        self.refused("kernel: 3, pad: 1", "kernel: 3, pad: valid", line=7)
        self.refused("kernel: 3, pad: 1", "kernel: 3, algo: winnograd", "`winograd`", line=7)
        for window in ("kernel: 5", "kernel: [3, 1]", "kernel: 3, stride: 2", "kernel: 3, dilation: 2"):
            self.refused("kernel: 3, pad: 1", window + ", algo: winograd",
                         "`algo: winograd` serves kernels of 3 x 3 with stride 1", line=7)
        self.refused("maxpool: {kernel: 2}", "maxpool: {kernel: 2, count_pad: true}", "count_pad",
                     line=9)
        self.refused("maxpool: {kernel: 2}", "avgpool: {kernel: 2, pad: 2}", "padding 2", line=9)
        self.refused("- maxpool: {kernel: 2}", "- conv1d: {out: 3, kernel: 3}", "conv1d",
                     "input is [8,8,4], a sequence is", line=9)

    def test_one_hash(self):
        write(self.model, POOLED)
        for device in ("ref", "cpu"):
            self.good("train", self.model, "-d", device, "-o", self.path(device), "--quiet")
        self.assertEqual(read(self.path("ref/weights.safetensors")),
                         read(self.path("cpu/weights.safetensors")))


main()
