"""Philox4x32-10 and the streams of docs/numerics.md, rule 10, in numpy."""
import numpy as np

LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)


def stream(text):
    """FNV-1a-32 of `use:name`."""
    h = 2166136261
    for byte in text.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def words(seed, number, step, count):
    """The first `count` 32-bit words of stream `number`."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [blocks & LOW, blocks >> SHIFT, np.full_like(blocks, number), np.full_like(blocks, step)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> SHIFT) ^ c[1] ^ np.uint64(k0), q & LOW,
             (p >> SHIFT) ^ c[3] ^ np.uint64(k1), p & LOW]
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return np.stack(c, 1).ravel()[:count].astype(np.uint32)


def dropout(seed, layer, shape, p):
    """What `dropout` multiplies by in the first step: 0 or the scale."""
    uniform = (words(seed, stream("dropout:" + layer), 0, int(np.prod(shape))) >> 8) * 2.0 ** -24
    return np.where(uniform.astype(np.float32) >= np.float32(p), np.float32(1.0 / (1.0 - p)),
                    np.float32(0)).reshape(shape)
