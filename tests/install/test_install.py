#!/usr/bin/env python3
"""The library as its users get it: installed, found by pkg-config, compiled against, run.

Installs the build folder under a scratch root; checks the exported symbols against a golden list,
soname and versions; compiles every program of docs/examples/c as C11 and as C++17 with all warnings
as errors; runs them; and holds the program in the comment of lockstep.h to train.c.

Usage: test_install.py BUILD_DIR SOURCE_ROOT VERSION [--cpu]
With --cpu the programs also run on an OpenCL CPU device (exit status 77 if there is none).
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
STEPS = "3"


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit("%s\nended with %d\n%s%s" % (" ".join(command), done.returncode, done.stdout,
                                             done.stderr))
    return done.stdout


def expect(what, found, wanted):
    if found != wanted:
        sys.exit("%s: found %r, expected %r" % (what, found, wanted))


class Installed:
    """The installed tree and how to compile against it."""

    def __init__(self, build, root):
        self.scratch = root
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root])
        found = glob.glob(os.path.join(root, "**", "lockstep.pc"), recursive=True)
        expect("files called lockstep.pc", len(found), 1)
        self.pc_dir = os.path.dirname(found[0])
        declared = re.search(r"^prefix=(.*)$", open(found[0], encoding="utf-8").read(), re.M)[1]
        self.prefix = root + declared
        self.lib_dir = self.pkg_config("--variable=libdir").strip()

    def pkg_config(self, *what):
        env = dict(os.environ, PKG_CONFIG_PATH=self.pc_dir)
        return run(["pkg-config", "--define-variable=prefix=" + self.prefix, *what, "lockstep"],
                   env=env)

    def compile(self, source, target, language):
        compiler = {"c": ["gcc", "-std=c11"], "c++": ["g++", "-x", "c++", "-std=c++17"]}[language]
        flags = self.pkg_config("--cflags").split()
        libs = self.pkg_config("--libs").split()
        run([*compiler, *STRICT, *flags, source, "-o", target, "-pthread", *libs, "-lm"])

    def run(self, program, *args):
        env = dict(os.environ, LD_LIBRARY_PATH=self.lib_dir,
                   XDG_CACHE_HOME=os.path.join(self.scratch, "cache"))
        return run([program, *args], env=env, cwd=os.path.dirname(program))


def check_symbols(installed, source_root):
    library = os.path.join(installed.lib_dir, "liblockstep.so")
    lines = run(["nm", "-D", "--defined-only", library]).split("\n")
    found = sorted(line.split()[-1] for line in lines if line)
    path = os.path.join(source_root, "tests", "golden", "symbols.txt")
    wanted = open(path, encoding="utf-8").read().split()
    if found != wanted:
        sys.exit("exported symbols differ from tests/golden/symbols.txt: new %s, gone %s" %
                 (sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))))
    declared = set()
    for header in glob.glob(os.path.join(installed.prefix, "include", "lockstep", "*.h")):
        text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
        declared |= set(re.findall(r"LKS_API[^;(]*?\b(lks_\w+)\s*\(", text))
    expect("functions that the headers declare", sorted(declared), found)


def check_versions(installed, version):
    expect("version of pkg-config", installed.pkg_config("--modversion").strip(), version)
    library = os.path.join(installed.lib_dir, "liblockstep.so")
    soname = re.search(r"SONAME\s+(\S+)", run(["objdump", "-p", library]))[1]
    expect("soname", soname, "liblockstep.so.0")
    expect("file behind the library", os.path.basename(os.path.realpath(library)),
           "liblockstep.so." + version)
    source = os.path.join(installed.scratch, "version.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include <stdio.h>\n#include <lockstep/version.h>\n'
                'int main(void) { printf("%s %d.%d.%d %d", lks_version(), LKS_VERSION_MAJOR,\n'
                'LKS_VERSION_MINOR, LKS_VERSION_PATCH,\n'
                'lks_contract_version() == LKS_CONTRACT_VERSION); return 0; }\n')
    program = os.path.join(installed.scratch, "version")
    installed.compile(source, program, "c")
    expect("versions", installed.run(program), "%s %s 1" % (version, version))


def check_page(installed, source_root):
    """The comment at the top of lockstep.h holds train.c, line by line."""
    header = os.path.join(installed.prefix, "include", "lockstep", "lockstep.h")
    comment = open(header, encoding="utf-8").read().split("*/")[0].split("\n")
    lines = [line[3:] if line.startswith(" * ") else line[2:] for line in comment]
    path = os.path.join(source_root, "docs", "examples", "c", "train.c")
    program = open(path, encoding="utf-8").read().rstrip("\n").split("\n")
    starts = [i for i, line in enumerate(lines) if line == program[0]]
    expect("places in lockstep.h where train.c begins", len(starts), 1)
    shown = lines[starts[0]:starts[0] + len(program)]
    for i, (a, b) in enumerate(zip(shown, program)):
        expect("line %d of the program in lockstep.h" % (i + 1), a, b)
    expect("lines of the program in lockstep.h", len(shown), len(program))
    expect("what follows it there", lines[starts[0] + len(program):], [""])


def sha_of(output):
    return re.findall(r"\b[0-9a-f]{64}\b", output)


def digests_of_the_program(build, source_root, scratch, device):
    """What `lockstep train` gives for the same network, data and steps."""
    model = os.path.join(source_root, "docs", "examples", "models", "lenet.yaml")
    out = os.path.join(scratch, "run")
    run([os.path.join(build, "tools", "lockstep"), "train", model, "--device", device, "--steps",
         STEPS, "--out", out, "--quiet"])
    with open(os.path.join(out, "weights.safetensors"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def main():
    build, source_root, version = sys.argv[1:4]
    devices = ["cpu"] if "--cpu" in sys.argv[4:] else ["ref"]
    mnist = os.path.join(source_root, "docs", "examples", "data", "mnist10k")
    for tool in ("meson", "pkg-config", "gcc", "g++", "nm", "objdump"):
        if shutil.which(tool) is None:
            sys.exit("%s is missing: install build-essential, meson and pkg-config" % tool)
    scratch = tempfile.mkdtemp(prefix="lockstep-install-")
    try:
        installed = Installed(build, scratch)
        if devices == ["cpu"]:
            listing = run([os.path.join(build, "tools", "lockstep"), "devices"])
            if not re.search(r"\bcpu\b", listing, re.I):
                sys.exit(77)
        check_symbols(installed, source_root)
        check_versions(installed, version)
        check_page(installed, source_root)
        wanted = digests_of_the_program(build, source_root, scratch, "ref")
        own = set()
        for language in ("c", "c++"):
            folder = os.path.join(scratch, language)
            os.mkdir(folder)
            for name in ("train", "own_loop", "two_threads"):
                source = os.path.join(source_root, "docs", "examples", "c", name + ".c")
                installed.compile(source, os.path.join(folder, name), language)
            for device in ["ref", *(d for d in devices if d != "ref")]:
                text = installed.run(os.path.join(folder, "train"), mnist, device, STEPS)
                expect("digest of train on " + device, sha_of(text), [wanted])
                with open(os.path.join(folder, "weights.safetensors"), "rb") as f:
                    expect("sha256 of the file", hashlib.sha256(f.read()).hexdigest(), wanted)
                own |= set(sha_of(installed.run(os.path.join(folder, "own_loop"), device, "12")))
                text = installed.run(os.path.join(folder, "two_threads"), device, "12")
                expect("digests of two_threads", len(set(sha_of(text))), 2)
        expect("digests of own_loop over languages and devices", len(own), 1)
    finally:
        shutil.rmtree(scratch)


main()
