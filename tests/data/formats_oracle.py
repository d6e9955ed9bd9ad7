"""Checks the hashes written in test_formats.c with an independent maker of the same samples.

Usage: formats_oracle.py test_formats.c IMAGES(.gz) TEXT
The hashes stand there in lines that end with "/* oracle: KIND KEY=VALUE ... */": of moving digits
sha256 of the bytes of samples `first` to `last`, of a text sha256 of little-endian i32, the tokens of
a sample, then its labels, sample by sample.
"""
import gzip
import hashlib
import re
import struct
import sys

from shuffle_oracle import fnv1a, word


def pick(w, n):
    return (w * n) >> 32


def bounce(place, end):
    """Walks there step by step, turning round at 0 and `end`."""
    at, step = 0, 1 if place >= 0 else -1
    for _ in range(abs(place)):
        if end == 0:
            return 0
        if not 0 <= at + step <= end:
            step = -step
        at += step
    return at


def moving(images, k):
    n, h, w = struct.unpack(">III", images[4:16])
    t, height, width, speed = k["frames"], k["height"], k["width"], 16 * k["speed"]
    stream, out = fnv1a("data:moving_digits"), bytearray()
    for sample in range(k["first"], k["last"] + 1):
        frames = [[[0] * width for _ in range(height)] for _ in range(t)]
        for d in range(k["digits"]):
            r = [word(k["seed"], stream, sample, 5 * d + i) for i in range(5)]
            image = images[16 + pick(r[0], n) * h * w:][:h * w]
            ends = 16 * (height - h), 16 * (width - w)
            start = pick(r[1], ends[0] + 1), pick(r[2], ends[1] + 1)
            step = pick(r[3], 2 * speed + 1) - speed, pick(r[4], 2 * speed + 1) - speed
            for f in range(t):
                y, x = (bounce(start[i] + f * step[i], ends[i]) for i in (0, 1))
                # Each pixel of the image spreads over the places that it touches.
                sums = {}
                for i in range(h):
                    for j in range(w):
                        for a, wa in ((0, 16 - y % 16), (1, y % 16)):
                            for b, wb in ((0, 16 - x % 16), (1, x % 16)):
                                place = y // 16 + i + a, x // 16 + j + b
                                sums[place] = sums.get(place, 0) + wa * wb * image[i * w + j]
                for (i, j), s in sums.items():
                    v = (s + 128) // 256
                    if v > 0:
                        frames[f][i][j] = max(frames[f][i][j], v)
        out += bytes(v for frame in frames for row in frame for v in row)
    return bytes(out)


def text(data, k):
    vocabulary = sorted(set(data))
    # `from` and `to` are given in thousandths; the test's are exact in binary or not near a byte.
    part = data[len(data) * k["from"] // 1000:len(data) * k["to"] // 1000]
    code, out = [vocabulary.index(b) for b in part], b""
    for i in range(k["first"], k["last"] + 1):
        window = code[i * k["stride"]:][:k["context"] + 1]
        out += struct.pack("<%di" % (2 * k["context"]), *window[:-1], *window[1:])
    return out


def main():
    with gzip.open(sys.argv[2]) as f:
        images = f.read()
    with open(sys.argv[3], "rb") as f:
        book = f.read()
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = re.findall(r'"([0-9a-f]{64})"[^/]*/\* oracle: (\w+) ([^*]*) \*/', f.read())
    if len(lines) != 5:
        sys.exit(f"{len(lines)} hashes found, expected 5")
    for sha, kind, keys in lines:
        k = {a: int(b) for a, b in (p.split("=") for p in keys.split())}
        got = hashlib.sha256(moving(images, k) if kind == "moving" else text(book, k)).hexdigest()
        if got != sha:
            sys.exit(f"{kind} {keys}: the test says {sha}, should be {got}")
    print(f"{len(lines)} hashes agree")


main()
