#!/usr/bin/env python3
"""Writes every kernel text under a folder into one C file (struct lksi_embedded)."""
import os
import sys


def listing(root):
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.join(folder, n) for n in names if n.endswith((".h", ".cl"))]
    return sorted(found)


def literal(text):
    lines = text.split("\n")
    quoted = [l.replace("\\", "\\\\").replace('"', '\\"') for l in lines]
    return "\n".join('    "%s\\n"' % l for l in quoted)


def main():
    if sys.argv[1] == "--list":
        print("\n".join(listing(sys.argv[2])))
        return
    root, out = sys.argv[1:3]
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "rt/rt.h"\n\nconst struct lksi_embedded lksi_embedded_files[] = {\n')
        for path in listing(root):
            with open(path, encoding="ascii") as source:
                text = source.read().rstrip("\n")
            name = os.path.relpath(path, root)
            f.write('    {"%s",\n%s},\n' % (name, literal(text)))
        f.write("    {0, 0},\n};\n")


main()
