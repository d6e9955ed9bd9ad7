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


# A cell over the rows of the image; a block of its own makes one gate.
CELL = """blocks:
  gate:
    args: {out: , frame: }
    layers:
      - add: {value: $frame}
      - dense: {out: $out, name: d}
      - tanh
  cell:
    args: {out: 5}
    layers:
      - select: {index: $i, from: input}
      - flatten: {name: x}
      - concat: {from: [x, h], axis: 0, name: both}
      - block: {use: gate, out: $out, frame: $i, name: g}
      - dense: {out: $out, from: both, name: o}
      - add: {from: [c, g], name: next}
      - mul: {from: [next, o], name: hidden}
layers:
  - flatten
  - dense: {out: 5, name: begin}
  - block: {use: cell, times: 3, name: t, shared: true, carry: {h: hidden, c: next},
            start: {h: [5], c: begin}}
  - stack: {from: t_*_hidden}
  - dense: {out: 3, name: last}
"""

CELL_FLAT = """layers:
  - flatten
  - dense: {out: 5, name: begin}
  - constant: {shape: [5], name: t_h}
""" + "".join("""  - select: {index: %d, from: input, name: t_%d_select1}
  - flatten: {name: t_%d_x}
  - concat: {from: [t_%d_x, %s], axis: 0, name: t_%d_both}
  - add: {value: %d, name: t_%d_g_add1}
  - dense: {out: 5, name: t_%d_g_d%s}
  - tanh: {name: t_%d_g_tanh1}
  - dense: {out: 5, from: t_%d_both, name: t_%d_o%s}
  - add: {from: [%s, t_%d_g_tanh1], name: t_%d_next}
  - mul: {from: [t_%d_next, t_%d_o], name: t_%d_hidden}
""" % (t - 1, t, t, t, "t_h" if t == 1 else "t_%d_hidden" % (t - 1), t, t - 1, t, t,
       "" if t == 1 else ", share: t_1_g_d", t, t, t, "" if t == 1 else ", share: t_1_o",
       "begin" if t == 1 else "t_%d_next" % (t - 1), t, t, t, t, t) for t in (1, 2, 3)) + """
  - stack: {from: [t_1_hidden, t_2_hidden, t_3_hidden]}
  - dense: {out: 3, name: last}
"""


class Blocks(Case):
    def digest(self, layers):
        write(self.model, HEAD.replace("layers:\n", "") + layers + TAIL)
        text = self.good("summary", self.model, "--device", "ref")
        return re.search("sha256 ([0-9a-f]{64})", text).group(1), text

    def refused(self, old, new, *parts, line, blocks=BLOCKS):
        self.assertIn(old, blocks)
        write(self.model, HEAD.replace("layers:\n", "") + blocks.replace(old, new, 1) + TAIL)
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
        self.refused("out: 4, times", "times", "needs the argument `out`", line=19)
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

    def test_carried(self):
        one, text = self.digest(CELL)
        two, _ = self.digest(CELL_FLAT)
        self.assertEqual(one, two, text)
        for old, new in (("shared: true", "shared: false"), ("c: next}", "c: hidden}"),
                         ("times: 3", "times: 2"), ("h: [5], c: begin", "h: begin, c: begin")):
            self.assertIn(old, CELL)
            self.assertNotEqual(one, self.digest(CELL.replace(old, new))[0], new)
        # All are looked up before any moves, so that one may wait in another for a use.
        self.digest(CELL.replace("c: next}", "c: h}"))

    def test_carried_mistakes(self):
        def refused(old, new, *parts, line):
            self.refused(old, new, *parts, line=line, blocks=CELL)
        refused("h: [5], c: begin", "h: [5]", "key `c` is missing", line=27)
        refused("h: hidden, c: next", "h: hidden", "`carry` has no `c`", line=27)
        refused("h: hidden, ", "h: hiden, ", "`hiden`", line=26)
        refused("h: [5]", "h: [6]", "another shape", line=26)
        refused("h: [5]", "h: [0]", "`h[0]`", line=27)
        refused("carry: {h: hidden, c: next},", "", "`carry` is missing", line=27)
        refused("h: hidden, c", "in: hidden, h: hidden, c", "are taken", line=26)
        refused("name: both}", "name: h}", "the use before", line=18)
        refused("args: {out: 5}", "args: {out: 5, i: 1}", "cannot be called `i`", line=14)
        refused("shared: true", "shared: 3", "shared", line=26)
        refused("t_*_hidden", "t_*_hiden", "`t_*_hiden`", line=28)
        refused("t_*_hidden", "t_*_*", "more than one", line=28)
        refused("      - dense: {out: $out, from: both, name: o}\n",
                "      - dense: {out: $out, from: both, name: o}\n      - batch_norm\n",
                "cannot be shared", line=27)

    def test_shared_without_carry(self):
        blocks = BLOCKS.replace("from: stem}", "from: block2}").replace(
            "      - conv2d: {out: 5, kernel: 1, from: in, name: short}\n", "")
        _, apart = self.digest(blocks.replace("out: 4, times: 2", "out: 1, times: 2"))
        _, shared = self.digest(blocks.replace("out: 4, times: 2", "out: 1, shared: true, times: 2"))
        self.assertNotEqual(apart, shared)

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
