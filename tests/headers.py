#!/usr/bin/env python3
"""Compiles every installed header alone, as C11 and as C++17, with all warnings as errors.

Usage: headers.py INCLUDE_DIR
"""
import glob
import os
import shutil
import subprocess
import sys

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Werror", "-fsyntax-only"]
MODES = [("gcc", "c", "c11"), ("g++", "c++", "c++17"), ("clang", "c", "c11"),
         ("clang++", "c++", "c++17")]


def compile_text(text, compiler, language, standard, include):
    command = [compiler, "-x", language, "-std=" + standard, "-I", include, *STRICT, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def main():
    include = sys.argv[1]
    headers = sorted(glob.glob(os.path.join(include, "lockstep", "*.h")))
    modes = [m for m in MODES if shutil.which(m[0])]
    if not headers or {m[1] for m in modes} != {"c", "c++"}:
        sys.exit("no header, or no compiler for C and for C++ (install build-essential)")
    faults = 0
    for header in headers:
        name = "lockstep/" + os.path.basename(header)
        # Twice, so that a missing include guard shows.
        text = "#include <%s>\n#include <%s>\nint main(void);\n" % (name, name)
        for compiler, language, standard in modes:
            done = compile_text(text, compiler, language, standard, include)
            if done.returncode != 0:
                faults += 1
                print("%s as %s with %s:\n%s" % (name, standard, compiler, done.stderr))
    for compiler, language, standard in modes:
        if compile_text("int f(int unused) { }\n", compiler, language, standard,
                        include).returncode == 0:
            faults += 1
            print("%s accepts a text full of warnings: this test cannot fail" % compiler)
    print("%d headers, %d compilers, %d faults" % (len(headers), len(modes), faults))
    sys.exit(1 if faults else 0)


main()
