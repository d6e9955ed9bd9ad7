#!/usr/bin/env python3
"""Holds the tree to the dependency rule of docs/architecture.md by reading its #includes.

    tools -> train -> data, model -> plan -> graph -> op -> rt -> base; check -> plan;
    op -> cl/contract -> nothing; only src/rt includes OpenCL headers, one file there CLBlast's.

Usage: include_order.py ROOT | --self-test
"""
import os
import re
import sys
import tempfile

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# What each folder may include beside itself. Deeper layers are always written out.
BELOW_OP = {"rt", "base", "contract"}
BELOW_PLAN = {"graph", "op"} | BELOW_OP
LAYERS = {
    "base": set(),
    "rt": {"base"},
    "op": BELOW_OP,
    "graph": {"op"} | BELOW_OP,
    "plan": BELOW_PLAN,
    "data": {"plan"} | BELOW_PLAN,
    "model": {"plan"} | BELOW_PLAN,
    "train": {"data", "model", "plan"} | BELOW_PLAN,
    "check": {"plan"} | BELOW_PLAN,
    "tools": {"train", "check", "data", "model", "plan"} | BELOW_PLAN,
    "include": set(),
    "contract": set(),
    "cl": {"contract"},
}
STANDARD_IN_CONTRACT = {"float.h", "math.h", "stdint.h", "string.h"}


def layer_of(path):
    """The layer of a file of the tree, None if the rule does not speak of it."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else None
    if parts[:2] == ["cl", "contract"]:
        return "contract"
    if parts[0] in ("cl", "tools", "include"):
        return parts[0]
    return None


def target_of(root, path, name):
    """The layer that an #include reaches; None for headers from outside the tree."""
    if name.startswith("lockstep/"):
        return "include"
    here = os.path.dirname(os.path.join(root, path))
    for folder in (here, os.path.join(root, "src"), os.path.join(root, "cl")):
        full = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(full):
            return layer_of(os.path.relpath(full, root).replace(os.sep, "/"))
    return None


def check_file(root, path, clblast):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    layer, faults = layer_of(path), []
    if layer not in LAYERS:
        return ["%s: folder '%s' is not in the dependency rule" % (path, layer)]
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        where = "%s:%d: " % (path, text.count("\n", 0, match.start()) + 1)
        target = target_of(root, path, name)
        if name.startswith(("CL/", "OpenCL/")) and layer != "rt":
            faults.append(where + "only src/rt may include " + name)
        if name.startswith("clblast"):
            clblast.add(path)
            if layer != "rt":
                faults.append(where + "only one file of src/rt may include " + name)
        if layer == "contract" and target != "contract":
            if not (path == "cl/contract/num.h" and name in STANDARD_IN_CONTRACT):
                faults.append(where + "cl/contract may include only cl/contract, not " + name)
        elif layer == "cl" and target not in ("cl", "contract"):
            faults.append(where + "kernels may include only cl/contract and cl/op, not " + name)
        elif target not in (None, layer, "include") and target not in LAYERS[layer]:
            faults.append(where + "%s may not include %s (%s)" % (layer, target, name))
    return faults


def check_tree(root):
    faults, clblast, seen = [], set(), 0
    for top in ("src", "cl", "tools", "include"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
                if name.endswith((".c", ".h", ".cl")) and layer_of(path) is not None:
                    seen += 1
                    faults += check_file(root, path, clblast)
    if len(clblast) > 1:
        faults.append("CLBlast's header is included by more than one file: "
                      + ", ".join(sorted(clblast)))
    return faults, seen


def self_test():
    """Every rule must catch its own violation, and a clean tree must pass."""
    clean = {
        "src/base/base.h": "#include <stdint.h>\n#include <lockstep/status.h>\n",
        "src/rt/rt.h": '#include "base/base.h"\n',
        "src/rt/cl.c": "#include <CL/cl.h>\n",
        "src/rt/clblast.c": "#include <clblast_c.h>\n",
        "src/op/op.h": '#include "contract/num.h"\n#include "rt/rt.h"\n',
        "src/graph/graph.h": '#include "op/op.h"\n',
        "src/plan/plan.h": '#include "graph/graph.h"\n',
        "src/train/train.h": '#include "plan/plan.h"\n',
        "src/check/check.h": '#include "plan/plan.h"\n',
        "src/model/yaml.c": "#include <yaml.h>\n",
        "src/data/idx.c": '#include "base/base.h"\n',
        "cl/contract/num.h": "#include <math.h>\n",
        "cl/contract/sum.h": '#include "num.h"\n',
        "cl/op/a.cl": '#include "contract/sum.h"\n',
        "include/lockstep/status.h": "#include <lockstep/export.h>\n",
        "include/lockstep/export.h": "",
        "tools/main.c": '#include "train/train.h"\n#include "check/check.h"\n',
    }
    bad = {
        "src/base/up.c": '#include "rt/rt.h"\n',
        "src/rt/up.c": '#include "op/op.h"\n',
        "src/rt/contract.c": '#include "contract/num.h"\n',
        "src/op/up.c": '#include "graph/graph.h"\n',
        "src/graph/up.c": '#include "../plan/plan.h"\n',
        "src/plan/up.c": '#include "check/check.h"\n',
        "src/plan/cl.c": '  #  include <CL/cl_ext.h>\n',
        "src/train/up.c": '#include "check/check.h"\n',
        "src/check/up.c": '#include "train/train.h"\n',
        "src/rt/second.c": "#include <clblast_c.h>\n",
        "src/op/blast.c": "#include <clblast_c.h>\n",
        "src/new/new.c": "\n",
        "cl/contract/std.h": "#include <stdlib.h>\n",
        "cl/contract/up.h": '#include "../../src/op/op.h"\n',
        "cl/op/b.cl": '#include "op/op.h"\n',
        "include/lockstep/leak.h": '#include "op/op.h"\n',
    }

    def faults_of(files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="ascii") as f:
                    f.write(text)
            return check_tree(root)[0]

    wrong = ["a clean tree is refused: " + f for f in faults_of(clean)]
    for path, text in bad.items():
        if not faults_of(dict(clean, **{path: text})):
            wrong.append("not caught: %s with %r" % (path, text))
    return wrong, len(bad) + 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    faults, seen = self_test() if sys.argv[1] == "--self-test" else check_tree(sys.argv[1])
    for fault in faults:
        print(fault)
    if seen == 0:
        print("no file found under " + sys.argv[1])
    print("%d looked at, %d faults" % (seen, len(faults)))
    sys.exit(1 if faults or seen == 0 else 0)


main()
