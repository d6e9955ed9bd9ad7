"""Help, versions, options and the like: nothing here trains."""
import os
import re
import shutil
import signal
import subprocess
import sys

from common import Case, PROGRAM, ROOT, main, write

COMMANDS = ["train", "eval", "predict", "sample", "hash", "summary", "devices", "compare", "check",
            "bench", "tune"]


def options_of(text):
    return set(re.findall(r"^  (?:-., |    )(--[a-z-]+)", text, re.M))


class Usage(Case):
    def test_version(self):
        self.assertRegex(self.good("--version"), r"^lockstep \d+\.\d+\.\d+, contract \d+\n$")

    def test_help(self):
        text = self.good("--help")
        for command in COMMANDS:
            self.assertIn("\n  %-8s  " % command, text)
            page = self.good(command, "--help")
            self.assertTrue(page.startswith("Usage: lockstep %s " % command), page)
            self.assertIn("--help", options_of(page))
            self.assertEqual(self.good("help", command), page)
            self.assertLessEqual(max(map(len, page.splitlines())), 100)

    def test_wrong_words(self):
        self.bad(2, ["no command"])
        self.bad(2, ["unknown command `trian`", "did you mean `train`"], "trian")
        self.bad(2, ["unknown command", "--help"], "xyzzy")
        self.bad(2, ["--epoch", "did you mean `--epochs`"], "train", "--epoxhs", "3", self.model)
        self.bad(2, ["unknown option `--zzzzzz`"], "train", "--zzzzzz", self.model)
        self.bad(2, ["unknown option `-Z`"], "train", "-Z", self.model)
        self.bad(2, ["--batch", "needs a value"], "train", self.model, "--batch")
        self.bad(2, ["--quiet takes no value"], "train", self.model, "--quiet=yes")
        self.bad(2, ["one model file, 0 given"], "train")
        self.bad(2, ["one model file, 2 given"], "train", self.model, self.model)
        self.bad(2, ["--color", "auto, always, never"], "devices", "--color", "red")
        self.bad(2, ["needs --weights"], "eval", self.model)
        self.bad(2, ["either pictures"], "predict", self.model, "--weights", "w")

    def test_wrong_numbers(self):
        for value in ["0", "-1", "1.5", "1e3", "", " 3", "3x", "0x10", "4294967296"]:
            self.bad(2, ["--epochs", "`%s`" % value, "1 to 4294967295"], "train", self.model,
                     "--epochs=" + value)
        self.bad(2, ["--seed", "0 to 18446744073709551615"], "train", self.model, "--seed",
                 "18446744073709551616")
        for value in ["1.5", "-0.1", "nan", "0,5", "x", ""]:
            self.bad(2, ["--expect-accuracy", "0 to 1"], "train", self.model,
                     "--expect-accuracy=" + value)

    def test_threads(self):
        for value in ["0", "-1", "257", "2147483648", "4294967297"]:
            self.bad(2, ["--threads", "`%s`" % value, "1 to 256"], "train", self.model, "--device",
                     "ref", "--threads=" + value)
            self.bad(2, ["--threads", "1 to 256"], "compare", self.model, "-d", "ref", "-d", "ref",
                     "--threads=" + value)

    def test_operators(self):
        for command in ("check", "bench"):
            self.bad(2, ["no operator `nope`", "check --list"], command, "--op", "nope")
            self.bad(2, ["did you mean `dense`", "check --list"], command, "--op", "dens")
            self.bad(2, ["is a layer", "`group_norm`"], command, "--op", "layer_norm")
            self.bad(2, ["`foo`", "`flat`, `plain`"], command, "--op", "relu", "--schedule", "foo")
            self.bad(2, ["`foo`", "check --list"], command, "--schedule", "foo")
        rows = dict(line.split(None, 1) for line in self.good("check", "--list").splitlines())
        self.assertEqual(rows["relu"], "flat plain")
        self.assertEqual(rows["conv2d"].split()[0], "ref")

    def test_layers(self):
        rows = {r[0]: r[1:] for r in map(str.split, self.good("summary", "--layers").splitlines())}
        self.assertEqual(rows["dense"], ["out", "bias", "share", "from", "name"])
        self.assertEqual(rows["relu"], ["from", "name"])
        self.bad(2, ["takes no model file"], "summary", "--layers", self.model)

    def test_several_devices_are_refused(self):
        self.bad(2, ["--device is given 2 times", "one device"], "train", self.model, "--device",
                 "ref", "--device", "cpu")
        self.bad(2, ["--device all", "one device"], "train", self.model, "--device", "all")

    def test_color(self):
        self.assertNotIn("\033", self.good("--help"))
        self.assertNotIn("\033", self.good("devices"))
        self.assertIn("\033[1m", self.good("devices", "--color", "always"))

    def test_devices(self):
        text = self.good("devices")
        self.assertIn("\nref  ", "\n" + text)
        self.assertIn("admitted    yes", text)
        self.assertIn("memory", text)

    def test_no_platform(self):
        os.mkdir(self.path("none"))
        env = {"OCL_ICD_VENDORS": self.path("none")}
        done = self.run_program("devices", env=env)
        self.assertEqual(done.returncode, 0)
        self.assertIn(".icd", done.stderr)
        self.assertIn("ref", done.stdout)
        for device in ([], ["--device", "cpu"], ["--device", "gpu"]):
            self.bad(3, [".icd"], "train", self.model, *device, env=env)

    def test_platforms_without_a_device(self):
        """PoCL is there, but cannot make its cache folder."""
        env = {"XDG_CACHE_HOME": "/proc/none", "POCL_CACHE_DIR": "/proc/none"}
        if "0:0" in self.run_program("devices", env=env).stdout:
            self.skipTest("a device is there that needs no cache")
        self.bad(3, ["none of them shows a device", "XDG_CACHE_HOME"], "train", self.model, env=env)

    def test_ref_needs_no_opencl(self):
        """A driver that kills whoever loads it does not hurt `ref`."""
        os.mkdir(self.path("vendors"))
        write(self.path("vendors/broken.icd"), os.path.abspath(sys.argv[3]) + "\n")
        env = {"OCL_ICD_VENDORS": self.path("vendors")}
        self.assertEqual(self.run_program("devices", env=env).returncode, -signal.SIGABRT)
        self.train("run", "--epochs", "1", env=env)

    def test_full_output(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output", done.stderr)

    def test_man_page_and_completion(self):
        every = set()
        for command in COMMANDS:
            every |= options_of(self.good(command, "--help"))
        with open(ROOT + "/docs/lockstep.1", encoding="utf-8") as f:
            man = f.read()
        named = set("-" + o for o in re.findall(r"\bFl (-[a-z-]+)", man))
        self.assertEqual(named - {"--version"}, every)
        for command in COMMANDS:
            self.assertIn("\n.It Cm %s\n" % command, man)
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", ROOT + "/docs/lockstep.1"],
                                  capture_output=True, text=True, check=False,
                                  env=dict(os.environ, MANWIDTH="80", LC_ALL="C"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        script = """
            source '%s/tools/lockstep.bash'
            ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lockstep; echo "${COMPREPLY[@]}"; }
            ask '%s' ''
            ask '%s' train --
            ask '%s' train --color ''
        """ % (ROOT, PROGRAM, PROGRAM, PROGRAM)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        words = [set(line.split()) for line in done.stdout.splitlines()]
        self.assertEqual(words[0], set(COMMANDS) | {"--help", "--version"})
        self.assertEqual(words[1], options_of(self.good("train", "--help")))
        self.assertEqual(words[2], {"auto", "always", "never"})


if __name__ == "__main__":
    main()
