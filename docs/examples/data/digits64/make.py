#!/usr/bin/env python3
"""Makes the coloured digits of this folder from ../mnist10k: 64 x 64 x 3 bytes in IDX, channels
last, a digit of twice its size in a drawn colour at a drawn place on a drawn background.

Usage: make.py [FOLDER]       (default: this folder)
"""
import gzip
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SETS = [("train", "train", 400), ("t10k", "t10k", 100)]


def read_idx(path):
    with gzip.open(path) as f:
        head = f.read(4)
        dims = struct.unpack(">%dI" % head[3], f.read(4 * head[3]))
        return dims, f.read()


def write_idx(path, dims, data):
    head = bytes([0, 0, 8, len(dims)]) + struct.pack(">%dI" % len(dims), *dims)
    with open(path, "wb") as f:
        with gzip.GzipFile(filename="", fileobj=f, mode="wb", compresslevel=9, mtime=0) as z:
            z.write(head + data)


def picture(digit, draw):
    paper = [draw.randrange(0, 110) for _ in range(3)]
    ink = [draw.randrange(140, 256) for _ in range(3)]
    top, left = draw.randrange(9), draw.randrange(9)
    out = bytearray()
    for y in range(64):
        for x in range(64):
            h, w = (y - top) // 2, (x - left) // 2
            a = digit[28 * h + w] if 0 <= h < 28 and 0 <= w < 28 else 0
            out += bytes((p * (255 - a) + i * a + 127) // 255 for p, i in zip(paper, ink))
    return bytes(out)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    for name, source, count in SETS:
        base = os.path.join(HERE, "..", "mnist10k", source)
        _, images = read_idx(base + "-images-idx3-ubyte.gz")
        _, labels = read_idx(base + "-labels-idx1-ubyte.gz")
        draw = random.Random(1)
        data = b"".join(picture(images[784 * n:784 * (n + 1)], draw) for n in range(count))
        write_idx(os.path.join(folder, name + "-images-idx4-ubyte.gz"), (count, 64, 64, 3), data)
        write_idx(os.path.join(folder, name + "-labels-idx1-ubyte.gz"), (count,), labels[:count])


main()
