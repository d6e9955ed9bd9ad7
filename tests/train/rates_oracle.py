"""Learning rates once more, with 50 decimal digits: what rates.c prints must be within a few units of
the last place of these, and give the same 32-bit float unless the exact number is next to a tie.
Also says the sha256 of all rates, which no host may change.

Usage: rates_oracle.py RATES"""
import hashlib
import math
import struct
import subprocess
import sys
from decimal import Decimal as D, getcontext

getcontext().prec = 50
LR = D(0.05)
GOLDEN = "e940007ce4dfd056021a3312d6ead6698b3fd3c3b0f9ef798dcf2b1965b92d82"


def pi():
    """Machin's formula."""
    def arctan_of(n):
        x, term, k, total = D(1) / n, D(1) / n, 1, D(0)
        while abs(term) > D(10) ** -55:
            total += term / k if k % 4 == 1 else -term / k
            term, k = term / (n * n), k + 2
        return total
    return 4 * (4 * arctan_of(5) - arctan_of(239))


PI = pi()


def cos(x):
    term, k, total = D(1), 0, D(0)
    while abs(term) > D(10) ** -55:
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def swing(a, b, t):
    return b + (a - b) * (1 + cos(PI * t)) / 2


def rate(word, s, total, epoch, warmup, low, every, epochs, factor, rise, start, end):
    if s < warmup:
        return LR * (s + 1) / warmup
    s, total = s - warmup, total - warmup
    if word == "constant":
        return LR
    if word == "linear":
        return low + (LR - low) * (1 - D(s) / total)
    if word == "step":
        return LR * (factor or D(0.1)) ** (s // (every * (epoch if epochs else 1)))
    if word == "cosine":
        return swing(LR, low, D(s) / total)
    rise, start, end = rise or D(0.3), start or D(25), end or D(10000)
    top = rise * total - 1
    if 0 < top and s <= top:
        return swing(LR / start, LR, s / top)
    return swing(LR, LR / start / end, (s - top) / (total - 1 - top) if s < total - 1 else D(1))


def main():
    out = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    faults = seen = 0
    for line in out.splitlines():
        words = line.split()
        if len(words) > 2:
            word, counts = words[0], [int(w) for w in words[1:4]]
            settings = (word, counts[0], counts[1], counts[2], D(float(words[4])), int(words[5]),
                        words[6] == "1", *(D(float(w)) for w in words[7:]))
            continue
        step, got = int(words[0]), struct.unpack(">d", bytes.fromhex(words[1]))[0]
        want = rate(settings[0], step, *settings[1:])
        seen += 1
        # A sum near `min` rounds at the size of lr, so the bound is one on lr's ulp.
        bound = 8 * math.ulp(0.05) if settings[0] != "step" else 64 * math.ulp(float(want))
        if abs(D(got) - want) > bound:
            faults += 1
            print("%s, step %d: %r, exactly %s" % (settings[0], step, got, want))
        if struct.pack(">f", got) != struct.pack(">f", float(want)) and settings[0] != "step" and \
                abs(want) > D(10) ** -6:
            faults += 1
            print("%s, step %d: another float: %r, %s" % (settings[0], step, got, want))
    digest = hashlib.sha256(out.encode()).hexdigest()
    if digest != GOLDEN:
        faults += 1
        print("sha256 of all rates is %s, expected %s" % (digest, GOLDEN))
    print("%d rates, %d faults" % (seen, faults))
    sys.exit(faults != 0)


main()
