"""lockstep compare: equal devices, and the first difference by name."""
import re

from common import LENET, main, write
from sabotage import DENSE, KernelCase, UNFUSED


class Compare(KernelCase):
    def compare(self, *args, **more):
        done = self.run_program("compare", *args, "--quiet", **more)
        rows = dict(re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines()
                    if re.search(r"\S  +\S", line))
        return done, rows

    def test_lenet_ref_and_cpu(self):
        done, rows = self.compare(LENET, "--device", "ref", "--device", "cpu", "--steps", "2",
                                  "--batch", "4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        steps, tensors, size = map(int, re.match(
            r"(\d+) steps, (\d+) tensors, (\d+) bytes", rows["same bits"]).groups())
        self.assertEqual(steps, 2)
        # Forward, backward, the update and the loss: 9 layers cannot be less; both steps alike.
        self.assertGreater(tensors, 2 * 20)
        self.assertEqual(tensors % 2, 0)
        # At least two arenas (parameters, momentum) of all scalars a step.
        self.assertGreater(size, 2 * 2 * 4 * 1663370)
        self.assertRegex(rows["weights"], r"^sha256 [0-9a-f]{64}$")
        self.assertIn("ref", rows["device A"])

    def test_hash_is_that_of_train(self):
        done, rows = self.compare(self.model, "-d", "ref", "-d", "ref", "--steps", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.train("run", device="ref")
        line = self.good("hash", self.path("run/weights.safetensors"))
        self.assertIn(rows["weights"].split()[1], line)

    def test_plain_and_start(self):
        self.train("start", device="ref")
        args = [self.model, "-d", "ref", "-d", "ref", "--steps", "1", "--seed", "5"]
        hashes = set()
        for more in ([], ["--plain"], ["--weights", self.path("start/weights.safetensors")],
                     ["--batch", "8"]):
            done, rows = self.compare(*args, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            hashes.add(rows["weights"])
        self.assertEqual(len(hashes), 3, "plain moves no bit, the others do")

    def test_difference(self):
        env = self.kernels([("op/dense_cpu.cl", UNFUSED)])
        args = [self.model, "-d", "ref", "-d", "cpu", "--steps", "2"]
        done, rows = self.compare(*args, "--no-admission", env=env)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("first difference in step 0", done.stdout)
        self.assertEqual((rows["operation"], rows["operator"]), ("dense1", "dense"))
        self.assertEqual(rows["schedules"], "A ref, B cpu")
        self.assertEqual(rows["tensor"], "output 0, [20,24]")
        element, n, k = map(int, re.match(r"(\d+), \[(\d+),(\d+)\]$", rows["element"]).groups())
        self.assertEqual(element, n * 24 + k)
        bits = [int(rows[side].split()[0], 16) for side in "AB"]
        self.assertRegex(rows["A"], r"^0x[0-9a-f]{8}  -?[0-9.e-]+$")
        self.assertNotEqual(*bits)
        self.assertEqual(rows["apart"], "%d ulp" % abs(bits[0] - bits[1]))
        self.assertEqual(rows["before it"], "0 whole steps, 1 tensor agreed")  # the pixels
        self.assertRegex(rows["differing"], r"^[1-9]\d* of 480 elements")
        # With admission the faulty schedules are struck off, so all agrees again.
        done, rows = self.compare(*args, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("struck off"), 2)

    def test_what_agreed_before(self):
        """Tensors of the step that parts count too; one of a thing is no plural."""
        write(self.model, DENSE.replace("layers:\n", "layers:\n  - relu\n"))
        args = [self.model, "-d", "ref", "-d", "cpu", "--steps", "1"]
        done, rows = self.compare(*args, "--no-admission",
                                  env=self.kernels([("op/dense_cpu.cl", UNFUSED)]))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(rows["before it"], "0 whole steps, 2 tensors agreed")
        done, rows = self.compare(*args)
        self.assertRegex(rows["same bits"], r"^1 step, \d+ tensors, ")

    def test_usage(self):
        self.bad(2, ["one model file, 0 given"], "compare", "-d", "ref", "-d", "ref")
        self.bad(2, ["two devices, 1 given"], "compare", self.model, "-d", "ref")
        self.bad(2, ["two devices, 3 given"], "compare", self.model, *["-d", "ref"] * 3)
        self.bad(2, ["--steps 4", "has 3 steps"], "compare", self.model, "-d", "ref", "-d", "ref",
                 "--steps", "4")
        self.bad(3, ["nosuch"], "compare", self.model, "-d", "ref", "-d", "nosuch")


if __name__ == "__main__":
    main()
