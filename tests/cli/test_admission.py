"""A schedule that gives other bits is struck off and the next one serves; where none is left the
device is refused; verdicts are kept, under everything that may change a kernel.
"""
import glob
import hashlib
import os
import sys

from common import LENET, ROOT, main, read
from sabotage import KernelCase, UNFUSED, UNFUSED_CONTRACT

OTHER_DRIVER = os.path.abspath(sys.argv[3])


class Admission(KernelCase):
    def weights(self, out, *args, **more):
        """sha256 of a training on the CPU device and its warnings."""
        done = self.run_program("train", self.model, "--device", "cpu", "--out", self.path(out),
                                "--quiet", "--overwrite", *args, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (hashlib.sha256(read(self.path(out) + "/weights.safetensors")).hexdigest(),
                done.stderr.splitlines())

    def setUp(self):
        super().setUp()
        self.train("ref")
        self.right = hashlib.sha256(read(self.path("ref/weights.safetensors"))).hexdigest()

    def test_a_first_run_is_silent(self):
        """No warnings of the implementation's compiler, which a first user would take for faults."""
        done = self.run_program("train", LENET, "--device", "cpu", "--steps", "1", "--quiet", "--out",
                                self.path("lenet"), env={"XDG_CACHE_HOME": self.path("new")})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_struck_off(self):
        self.assertEqual(self.weights("clean"), (self.right, []))
        env = self.kernels([("op/dense_cpu.cl", UNFUSED)])
        first = self.weights("first", env=env)
        self.assertEqual(first[0], self.right)
        for op in ("dense", "dense_data_grad"):
            lines = [w for w in first[1] if "schedule `cpu` of operator `%s` " % op in w]
            self.assertEqual(len(lines), 1, first[1])
            self.assertRegex(lines[0], r"struck off \(wrong: output 0, element \d+ is "
                                       r"0x[0-9a-f]{8}, expected 0x[0-9a-f]{8}\)")
        self.assertEqual(len(first[1]), 2, first[1])
        # The second start knows it, and says it too.
        verdicts = self.verdicts()
        self.assertEqual(self.weights("second", env=env), first)
        self.assertEqual(self.verdicts(), verdicts)

    def test_refused(self):
        contract = ("contract/dense.h", UNFUSED_CONTRACT)
        # Every schedule of this layer, `plain` among them, whatever there is of them.
        unfused = "".join("#define %s(a, b, c) ((a) * (b) + (c))\n" % f for f in ("fma", "lks_fma"))
        fma = [("op/" + name, (r"\A", unfused)) for name in os.listdir(ROOT + "/cl/op")
               if b"fma(" in read(ROOT + "/cl/op/" + name)]
        every = self.kernels([contract, *fma, ("op/dense_clblast.cl",
                                               (r"v \+ 0\.0f", "v + 1.0f"))])
        done = self.run_program("train", self.model, "--device", "cpu", "--out", self.path("no"),
                                "--quiet", env=every)
        self.assertEqual(done.returncode, 3, done.stderr)
        # `dense` or one of its gradients, whichever runs out first.
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"no schedule of operator `dense\w*` gives the contract's bits")
        self.assertFalse(os.path.exists(self.path("no")))
        done = self.run_program("train", self.model, "--device", "cpu", "--out", self.path("no"),
                                "--quiet", "--plain", env=self.kernels([contract]))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("`plain` of operator `dense` gives other bits", done.stderr.splitlines()[-1])

    def test_refused_by_the_probe(self):
        env = self.kernels([("contract/num.h", (r"return fma\(a, b, c\)", "return a * b + c"))])
        self.bad(3, ["fma is not rounded once"], "train", self.model, "--device", "cpu", "--quiet",
                 env=env)
        self.assertIn("fma is not rounded once", self.good("devices", env=env))

    # ---- verdicts ----

    def verdicts(self):
        files = glob.glob(self.cache + "/lockstep/*.txt")
        return {name: read(name) for name in files}

    def test_verdicts_are_kept(self):
        for name in self.verdicts():
            os.remove(name)
        self.weights("first")
        before = self.verdicts()
        self.assertIn(b"right", {text.split(b"\n", 1)[1] for text in before.values()})
        self.assertEqual(self.weights("second"), (self.right, []))
        self.assertEqual(self.verdicts(), before, "the second start checked again")
        lie = b"wrong: a lie"
        for name in before:
            with open(name, "wb") as f:
                f.write(hashlib.sha256(lie).hexdigest().encode() + b"\n" + lie)
        # The kept verdict is believed, so it was read and nothing was computed.
        done = self.run_program("train", self.model, "--device", "cpu", "--quiet")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("struck off (wrong: a lie)", done.stderr)
        # Another driver, another text: other keys.
        preload = {"LD_PRELOAD": OTHER_DRIVER, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        self.assertIn("another driver", self.good("devices", env=preload))
        self.assertEqual(self.weights("driver", env=preload), (self.right, []))
        # (The kernel that takes pictures in is a program of its own.)
        text = self.kernels([("op/%s.cl" % name, (r"\Z", "/* changed */\n"))
                             for name in ("dense_cpu", "pixels")])
        self.assertEqual(self.weights("text", env=text), (self.right, []))
        # A damaged verdict is none: said, and checked again.
        for name in before:
            with open(name, "wb") as f:
                f.write(b"right")
        right, said = self.weights("damaged")
        self.assertEqual(right, self.right)
        self.assertTrue(said and all("is damaged" in line for line in said), said)
        self.assertEqual({n: t for n, t in self.verdicts().items() if n in before}, before)


if __name__ == "__main__":
    main()
