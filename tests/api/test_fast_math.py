#!/usr/bin/env python3
"""A program linked with -ffast-math trains to the bits of one that is not, and keeps its own
floating-point state; or is refused, with the reason, if it started OpenCL before the library.

Usage: test_fast_math.py DIGEST DIGEST_FAST MACHINE   (the two builds of digest.c)
"""
import re
import subprocess
import sys

LINE = re.compile(r"flush (\d) -> (\d), (\d+) subnormal weights, (.*)\n")


def run(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        sys.exit("%s %s ended with %d: %s" % (program, " ".join(args), done.returncode, done.stderr))
    return done.stdout


def check(text, flush, digests):
    match = LINE.fullmatch(text)
    if match is None:
        sys.exit("no digest in: " + text)
    before, after, subnormal, found = match.groups()
    if (before, after) != (flush, flush):
        sys.exit("the state was %s and became %s, expected %s" % (before, after, flush))
    if int(subnormal) < 10:
        sys.exit("only %s weights are subnormal: this test shows nothing" % subnormal)
    if digests is not None and found != digests:
        sys.exit("other bits: %s, expected %s" % (found, digests))
    return found


def main():
    normal, fast, machine = sys.argv[1:4]
    flush = "1" if machine == "x86_64" else run(fast, "ref")[6]
    digests = check(run(normal, "ref"), "0", None)
    check(run(fast, "ref"), flush, digests)
    if run(normal, "cpu") is None:
        print("no OpenCL CPU device: only ref was compared")
        return
    check(run(normal, "cpu"), "0", digests)
    check(run(normal, "cpu", "started"), "0", digests)
    check(run(fast, "cpu"), flush, digests)
    text = run(fast, "cpu", "started")
    if text.startswith("refused: "):
        if "-ffast-math" not in text:
            sys.exit("the refusal does not name its cause: " + text)
        print(text.strip())
    else:
        check(text, flush, digests)


main()
