"""Layers of model files that move elements: spellings, shapes, refusals; one hash on two devices."""
from common import Case, MODEL, main, read, write

HEAD = "  - maxpool: {kernel: 2}\n"
MOVED = MODEL.replace(HEAD, """  - transpose: {order: [2, 0, 1], name: turned}
  - reshape: {shape: [0, -1, 4], name: flat}
  - slice: {axis: 1, begin: 1, end: -1, step: 2}
  - pad: {before: [0, 2, 0], after: [1, 0, 1], mode: edge, name: padded}
  - upsample: {factor: 2, mode: bilinear, name: large}
  - pad: {axis: 0, before: 1, mode: reflect}
  - resize: {height: 4, width: 4, from: padded, name: small}
  - depth_to_space: {block: 1}
  - select: {axis: -1, index: 1, name: one}
  - stack: {from: [one, one]}
  - concat: {from: [one, one, one], axis: 0}
  - pad: {axis: 1, after: 2, value: 0.5}
  - space_to_depth: {block: 1, from: pad2}
  - flatten: {name: a}
  - flatten: {from: pad3, name: b}
  - flatten: {from: stack1, name: c}
  - concat: {from: [a, b, c]}
""")


class Shapes(Case):
    def sha(self, text):
        write(self.model, text)
        return self.good("summary", self.model).split("sha256 ")[1][:64]

    def refused(self, layer, *texts):
        write(self.model, MODEL.replace(HEAD, "  - %s\n" % layer))
        self.bad(2, ["model.yaml:9", *texts], "summary", self.model)

    def test_spellings(self):
        def sha(layer):
            return self.sha(MODEL.replace(HEAD, "  - %s\n" % layer))
        for a, b in (("slice: {begin: [2]}", "slice: {axis: 0, begin: 2}"),
                     ("slice: {end: [0, 0, 2]}", "slice: {axis: -1, end: 2}"),
                     ("pad: {before: [0, 1, 0]}", "pad: {axis: 1, before: 1, mode: constant, value: 0}"),
                     ("upsample: {factor: 2}",
                      "upsample: {factor: 2, mode: nearest, align_corners: false}"),
                     ("concat: {from: [conv1, relu1]}", "concat: {from: [conv1, relu1], axis: 2}")):
            self.assertEqual(sha(a), sha(b), a)
        seen = {sha(layer) for layer in (
            "slice: {begin: [2]}", "slice: {begin: [0, 2]}", "slice: {end: [2]}",
            "slice: {axis: 0, end: 2, step: -1}", "pad: {axis: 0, before: 1}",
            "pad: {axis: 0, after: 1}", "pad: {axis: 0, after: 1, mode: edge}",
            "pad: {axis: 0, after: 1, mode: reflect}", "pad: {axis: 0, after: 1, value: 1}",
            "upsample: {factor: 2}", "upsample: {factor: 2, mode: bilinear}",
            "upsample: {factor: 2, mode: bilinear, align_corners: true}", "upsample: {factor: 3}",
            "resize: {height: 5}", "resize: {width: 5}", "resize: {height: 5, round: up}",
            "resize: {height: 5, place: half_pixel}", "select: {index: 1}",
            "select: {index: 1, axis: 1}", "transpose: {order: [1, 0, 2]}",
            "transpose: {order: [0, 1, 2]}", "concat: {from: [conv1, relu1]}",
            "concat: {from: [conv1, relu1], axis: 0}", "stack: {from: [conv1, conv1]}",
            "reshape: {shape: [-1, 4]}", "reshape: {shape: [2, -1]}")}
        self.assertEqual(len(seen), 26)

    def test_refusals(self):
        self.refused("reshape: {shape: [7, -1, 1000]}", "elements", "[7,-1,1000]")
        self.refused("reshape", "shape")
        self.refused("reshape: {shape: [1, 2, 3, 4, 5]}", "5 numbers")
        self.refused("transpose: {order: [0, 1]}", "2 numbers", "3 axes")
        self.refused("transpose: {order: [0, 1, 1]}", "each of 0 to 2")
        self.refused("slice: {begin: [0, 0, 9]}", "axis 2 has 4 elements")
        self.refused("slice: {begin: 2}", "begin")
        self.refused("slice: {axis: 3, begin: 2}", "axis")
        self.refused("select: {axis: 2, index: 4}", "index 4", "4 elements")
        self.refused("pad: {before: [1], mode: mirror}", "mirror", "reflect")
        self.refused("upsample: {mode: nearest}", "factor")
        self.refused("upsample: {factor: 2, mode: cubic}", "cubic", "bilinear")
        self.refused("concat: {from: conv1}", "2 values")
        self.refused("concat: {from: [conv1, input], axis: 0}", "concat", "equal shapes")
        self.refused("depth_to_space: {block: 3}", "block 3")

    def test_one_hash(self):
        write(self.model, MOVED)
        for device in ("ref", "cpu"):
            self.good("train", self.model, "-d", device, "-o", self.path(device), "--quiet")
        self.assertEqual(read(self.path("ref/weights.safetensors")),
                         read(self.path("cpu/weights.safetensors")))


main()
