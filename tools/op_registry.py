#!/usr/bin/env python3
"""Writes the table of operators from the list in src/op/meson.build."""
import sys

out, names = sys.argv[1], sys.argv[2:]
with open(out, "w", encoding="ascii") as f:
    f.write('#include "op/op.h"\n\n')
    for n in names:
        f.write("extern const struct lksi_op *const lksi_ops_%s[];\n" % n)
    f.write("extern const struct lksi_op *const *const lksi_op_table[];\n")
    f.write("const struct lksi_op *const *const lksi_op_table[] = {\n")
    for n in names:
        f.write("    lksi_ops_%s,\n" % n)
    f.write("    0,\n};\n")
