#!/usr/bin/env python3
"""Writes every text under a folder, with the endings given, into one C file (struct lksi_embedded).

    embed.py --list FOLDER ENDING...    the files
    embed.py FOLDER OUT NAME ENDING...  writes OUT, which defines NAME
"""
import os
import sys


def listing(root, endings):
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.join(folder, n) for n in names if n.endswith(tuple(endings))]
    return sorted(found)


def literal(text):
    lines = text.split("\n")
    quoted = [l.replace("\\", "\\\\").replace('"', '\\"') for l in lines]
    return "\n".join('    "%s\\n"' % l for l in quoted)


def main():
    if sys.argv[1] == "--list":
        print("\n".join(listing(sys.argv[2], sys.argv[3:])))
        return
    root, out, symbol = sys.argv[1:4]
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "rt/rt.h"\n\nconst struct lksi_embedded %s[] = {\n' % symbol)
        for path in listing(root, sys.argv[4:]):
            with open(path, encoding="ascii") as source:
                text = source.read().rstrip("\n")
            name = os.path.relpath(path, root)
            f.write('    {"%s",\n%s},\n' % (name, literal(text)))
        f.write("    {0, 0},\n};\n")


main()
