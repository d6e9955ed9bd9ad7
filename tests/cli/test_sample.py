"""`lockstep sample`: pictures of a layer as one PNG, the same from every device; blocks that share
their parameters; what is refused."""
import struct
import zlib

from common import Case, MODEL, main, read, write

LAYERS = """blocks:
  look:
    layers:
      - block: {use: inner, name: a}
      - relu
      - dense: {out: 64, bias: false}
  inner:
    layers:
      - dense: {out: 20, name: d}
layers:
  - block: {use: look, name: first}
  - mul: {by: 0.1, name: faint, from: first}
  - block: {use: look, from: faint, share: first, name: second}
  - reshape: {shape: [8, 8], name: square}
  - dense: {out: 3}
loss:"""
NET = MODEL[:MODEL.index("layers:")] + LAYERS + MODEL.split("loss:")[1]


def pixels(path):
    """Width, height and rows of a grey PNG of 8 bits."""
    data, at, packed = read(path), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, color = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    assert (bits, color) == (8, 0), "not a grey picture of 8 bits"
    raw, rows = zlib.decompress(packed), []
    for y in range(height):
        kind, line = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        up = rows[-1] if rows else bytes(width)
        for x in range(width):
            a, b, c = line[x - 1] if x else 0, up[x], up[x - 1] if x else 0
            near = min((a, b, c), key=lambda v: abs(a + b - c - v))
            line[x] = (line[x] + (0, a, b, (a + b) // 2, near)[kind]) % 256
        rows.append(bytes(line))
    return width, height, rows


class Sample(Case):
    def setUp(self):
        super().setUp()
        write(self.model, NET)
        self.train("run", "--steps", "2")
        self.weights = self.path("run/weights.safetensors")

    def sample(self, *args, device="ref", out="a.png"):
        self.good("sample", self.model, "-w", self.weights, "-d", device, "-o", out, *args)
        return read(self.path(out))

    def test_the_data_come_back(self):
        self.sample("--of", "input", "--count", "5", "--columns", "2", "--data", "train")
        width, height, rows = pixels(self.path("a.png"))
        self.assertEqual((width, height), (18, 28))
        images = read(self.path("data/train-images"))[16:]
        for i in range(5):
            top, left = i // 2 * 10, i % 2 * 10
            for y in range(8):
                self.assertEqual(rows[top + y][left:left + 8],
                                 images[i * 64 + y * 8:i * 64 + y * 8 + 8])
        self.assertEqual(set(rows[8]) | {r[9] for r in rows} | set(rows[27][10:]), {255})

    def test_one_sheet_on_two_devices(self):
        one = self.sample("--of", "square", "--beside", "input", "--count", "15")
        two = self.sample("--of", "square", "--beside", "input", "--count", "15", device="cpu")
        self.assertEqual(one, two)
        self.assertEqual(pixels(self.path("a.png"))[:2], (158, 18))
        self.assertEqual(one, self.sample("--of", "second", "--beside", "input", "--count", "15",
                                          "--batch", "4"))
        self.assertNotEqual(one, self.sample("--of", "first", "--beside", "input", "--count", "15"))

    def test_shared_blocks(self):
        text = self.good("summary", self.model)
        self.assertEqual(text.count("first_a_d"), 1)
        self.assertIn("2775", text.replace(",", ""))  # once 64 * 20 + 20 + 20 * 64, then 64 * 3 + 3
        for old, new, part in (("share: first", "share: fist", "`fist`"),
                               ("share: first", "share: square", "`square`"),
                               ("      - relu\n", "      - batch_norm\n", "cannot be shared"),
                               ("use: look, from", "use: inner, from", "`first_d`")):
            self.assertIn(old, NET)
            write(self.model, NET.replace(old, new))
            self.bad(2, ["model.yaml:", part], "summary", self.model)

    def test_refusals(self):
        same = ["sample", self.model, "-w", self.weights, "-d", "ref"]
        self.bad(2, ["one model file, 0 given"], "sample")
        self.bad(2, ["sample needs --weights"], "sample", self.model)
        self.bad(2, ["no layer is named `nope`"], *same, "--of", "nope")
        self.bad(2, ["layer `dense1` gives no pictures"], *same, "--count", "4")
        self.bad(2, ["layer `first_a_d` gives no pictures"], *same, "--of", "first_a_d")
        self.bad(2, ["--count is 16", "15 samples"], *same, "--of", "square", "--count", "16")
        self.assertIn("15 samples of", self.good(*same, "--of", "square")) # all that there are
        self.bad(2, ["cannot write `no/sheet.png`"], "sample", self.model, "-w", self.weights, "-d",
                 "nosuch", "-o", "no/sheet.png") # before the device
        self.bad(2, ["--count", "`0`"], *same, "--count", "0")
        self.bad(2, ["--columns", "`x`"], *same, "--columns", "x")
        self.bad(2, ["no/where/a.png"], *same, "--of", "square", "--count", "4", "-o",
                 "no/where/a.png")


if __name__ == "__main__":
    main()
