"""Model files with blocks, several `from` and `share`: a use of a block is the same model as its
layers written out, and mistakes name file and line."""
import re

from common import Case, MODEL, main, write

HEAD, LAYERS, TAIL = re.split(r"(?<=layers:\n)|(?=loss:)", MODEL)

BLOCKS = """blocks:
  unit:
    args: {out: , kernel: 3}
    layers:
      - conv2d: {out: $out, kernel: $kernel, pad: 1}
      - relu
  pair:
    args: {width: 4}
    layers:
      - block: {use: unit, out: $width, name: a}
      - conv2d: {out: 5, kernel: 1, from: in, name: short}
      - block: {use: unit, out: 6, from: a}
layers:
  - block: {use: unit, out: 4, times: 2, name: stem}
  - block: {use: pair, width: 7}
  - maxpool: {kernel: 2, from: stem}
  - dense: {out: 3}
"""

FLAT = """layers:
  - conv2d: {out: 4, kernel: 3, pad: 1, name: stem_1_conv1}
  - relu: {name: stem_1_relu1}
  - conv2d: {out: 4, kernel: 3, pad: 1, name: stem_2_conv1}
  - relu: {name: stem_2_relu1}
  - conv2d: {out: 7, kernel: 3, pad: 1, name: block2_a_conv1}
  - relu: {name: block2_a_relu1}
  - conv2d: {out: 5, kernel: 1, from: stem_2_relu1, name: block2_short}
  - conv2d: {out: 6, kernel: 3, pad: 1, from: block2_a_relu1, name: block2_block2_conv1}
  - relu: {name: block2_block2_relu1}
  - maxpool: {kernel: 2, from: stem_2_relu1}
  - dense: {out: 3}
"""


class Blocks(Case):
    def digest(self, layers):
        write(self.model, HEAD.replace("layers:\n", "") + layers + TAIL)
        text = self.good("summary", self.model, "--device", "ref")
        return re.search("sha256 ([0-9a-f]{64})", text).group(1), text

    def refused(self, old, new, *parts, line):
        self.assertIn(old, BLOCKS)
        write(self.model, HEAD.replace("layers:\n", "") + BLOCKS.replace(old, new, 1) + TAIL)
        self.bad(2, ["%s:%d:" % (self.model, line), *parts], "summary", self.model, "--device",
                 "ref")

    def test_same_as_written_out(self):
        # Every layer must reach the loss, so both lead the pair to it.
        blocks = BLOCKS.replace("from: stem}", "from: block2}")
        flat = FLAT.replace("kernel: 2, from: stem_2_relu1", "kernel: 2")
        blocks = blocks.replace("      - conv2d: {out: 5, kernel: 1, from: in, name: short}\n", "")
        flat = flat.replace("  - conv2d: {out: 5, kernel: 1, from: stem_2_relu1, "
                            "name: block2_short}\n", "")
        one, text = self.digest(blocks)
        two, _ = self.digest(flat)
        self.assertEqual(one, two, text)
        self.assertIn("block2_block2_conv1", text)
        three, _ = self.digest(blocks.replace("width: 7", "width: 8"))
        self.assertNotEqual(one, three)

    def test_mistakes(self):
        self.refused("use: unit, out: 4", "use: unitt, out: 4", "did you mean `unit`", line=19)
        self.refused("out: 4, times", "times", "argument `out` has no value", line=19)
        self.refused("out: 4, times", "out: 4, stride: 2, times", "unknown key `stride`", line=19)
        self.refused("times: 2", "times: 0", "from 1 to 1024", line=19)
        self.refused("kernel: $kernel", "kernel: $kernal", "no argument `kernal`", line=10)
        self.refused("out: 4, times", "out: four, times", "`four`", "an integer", line=19)
        self.refused("from: stem", "from: stam", "`stam`", line=21)
        self.refused("      - relu\n", "      - block: {use: unit, out: 2}\n", "more than 8 deep",
                     line=19)
        self.refused("{out: , kernel: 3}", "{name: , kernel: 3}", "cannot be called `name`",
                     line=8)
        self.refused("- block: {use: pair, width: 7}", "- block", "needs keys", line=20)
        self.refused("- dense: {out: 3}", "- relu: {from: [stem, block2]}", "takes one value",
                     line=22)

    def test_share(self):
        layers = ("layers:\n  - dense: {out: 64, name: a}\n  - relu\n"
                  "  - dense: {out: 64, share: a, bias: %s}\n  - dense: {out: 3%s}\n")
        write(self.model, HEAD.replace("layers:\n", "") + layers % ("true", ", share: a") + TAIL)
        where = self.model + ":10:"
        self.bad(2, [where, "`a.weight`", "[64,64]", "[3,64]"], "summary", self.model, "--device",
                 "ref")
        write(self.model, HEAD.replace("layers:\n", "") + layers % ("true", ", share: relu1") + TAIL)
        self.bad(2, [where, "`relu1`", "`dense`"], "summary", self.model, "--device", "ref")


if __name__ == "__main__":
    main()
