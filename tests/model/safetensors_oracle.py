"""Checks the canonical form with an independent writer made of json and struct.

Usage: safetensors_oracle.py PROGRAM TEST_SOURCE
PROGRAM FILE writes the tensors of st_sample.h; TEST_SOURCE holds the golden sha256 of that file.
"""
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

TENSORS = {
    "conv1.weight": ("F32", [2, 3], struct.pack("<6I", 0, 0x80000000, 0x3F800000, 0x7FC00000, 1,
                                                0xC0200000)),
    "a\"\\\u00e9\n": ("U8", [3], bytes([1, 2, 255])),
    "opt.state": ("F64", [2], struct.pack("<2Q", 0x3FF0000000000001, 0x7FF8000000000000)),
    "empty": ("F32", [4, 0], b""),
    "Zeta": ("I64", [], struct.pack("<q", -2)),
    "conv1.bias": ("F32", [1], struct.pack("<f", -2.5)),
}
META = {"note": "tab\there, \x01, \x1f, \x7f, /, \u00e9", "b": "", "contract": "2"}


def canonical(tensors, meta):
    header, data = {"__metadata__": meta}, b""
    for name in sorted(tensors, key=lambda n: n.encode()):
        dtype, shape, content = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample.safetensors")
        subprocess.run([sys.argv[1], path], check=True)
        with open(path, "rb") as f:
            got = f.read()
        if os.listdir(folder) != ["sample.safetensors"]:
            sys.exit(f"more than one file was left: {os.listdir(folder)}")
    want = canonical(TENSORS, META)
    if got != want:
        pairs = enumerate(zip(got, want))
        at = next((i for i, (a, b) in pairs if a != b), min(len(got), len(want)))
        sys.exit(f"differs from byte {at} on:\n got {got[at:at + 80]!r}\nwant {want[at:at + 80]!r}")
    digest = hashlib.sha256(want).hexdigest()
    with open(sys.argv[2], encoding="utf-8") as f:
        if digest not in f.read():
            sys.exit(f"the golden sha256 in {sys.argv[2]} should be {digest}")
    print(f"{len(want)} bytes agree, sha256 {digest}")


if __name__ == "__main__":
    main()
