"""Checks the orders and keys written in test_shuffle.c with an independent Philox4x32-10.

Usage: shuffle_oracle.py test_shuffle.c
The expected values stand there in lines that end with "/* oracle: SEED EPOCH COUNT order|key */".
"""
import re
import sys

MASK = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def fnv1a(text):
    h = 2166136261
    for byte in text.encode():
        h = ((h ^ byte) * 16777619) & MASK
    return h


def word(seed, stream, step, e):
    block = e // 4
    return philox((block & MASK, block >> 32, stream, step), (seed & MASK, seed >> 32))[e % 4]


def key(seed, epoch, i):
    stream = fnv1a("shuffle:train")
    return word(seed, stream, epoch, 2 * i) | word(seed, stream, epoch, 2 * i + 1) << 32


def main():
    # Known answers of the Random123 distribution (kat_vectors).
    assert philox((0,) * 4, (0,) * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((MASK,) * 4, (MASK,) * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == [
        0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    text = open(sys.argv[1], encoding="utf-8").read()
    checked = 0
    for values, seed, epoch, count, kind in re.findall(
            r"\{([^{}]*)\}[;,]\s*/\* oracle: (\w+) (\d+) (\d+) (order|key) \*/", text):
        seed, epoch, count = int(seed, 0), int(epoch), int(count)
        got = [int(v.strip().rstrip("uUlL"), 0) for v in values.split(",") if v.strip()]
        keys = [key(seed, epoch, i) for i in range(count)]
        want = keys if kind == "key" else sorted(range(count), key=lambda i: (keys[i], i))
        if got != want:
            sys.exit(f"seed {seed} epoch {epoch} {kind}: the test says {got}, should be {want}")
        checked += 1
    if checked != 4:
        sys.exit(f"{checked} lists found in {sys.argv[1]}, expected 4")
    print(f"{checked} lists agree")


if __name__ == "__main__":
    main()
