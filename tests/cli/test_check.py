"""lockstep check: the table, its JSON form, and faults that it must report."""
import json
import shlex

from common import main
from sabotage import KernelCase, UNFUSED


class Check(KernelCase):
    def rows(self, *args, status=0, **more):
        done = self.run_program("check", "--json", *args, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_ref(self):
        rows = self.rows("--device", "ref", "--case", "0")
        by_op = {}
        for row in rows:
            by_op.setdefault(row["op"], []).append(row["schedule"])
            self.assertEqual((row["verdict"], row["cases"], row["runs"], row["passed"]),
                             ("passed", 1, 6, 6), row)
            self.assertEqual(row["device"], "ref")
        self.assertGreaterEqual(len(by_op), 20)
        self.assertEqual(by_op["conv2d"], ["ref", "plain"])
        text = self.good("check", "--device", "ref", "--case", "0")
        self.assertEqual(text.count("same bits"), len(rows))
        self.assertIn("\n%d schedules give the contract's bits, 0 failed" % len(rows), text)

    def test_cpu(self):
        rows = self.rows("--device", "cpu", "--op", "softmax_cross_entropy", "--case", "1")
        self.assertEqual([(r["schedule"], r["verdict"]) for r in rows],
                         [("gpu", "not_here"), ("plain", "passed")])
        self.assertGreater(len(rows[0]["reason"]), 5)
        text = self.good("check", "--device", "cpu", "--op", "softmax_cross_entropy", "--case", "1")
        self.assertIn("declines: " + rows[0]["reason"], text)
        self.assertIn("1 decline here", text)

    def test_reasons(self):
        """A schedule for other devices says so, whatever else speaks against it."""
        row, = self.rows("--device", "cpu", "--op", "dense", "--schedule", "nv", "--case", "0")
        self.assertEqual(row["reason"], "made for NVIDIA's GPUs")

    def test_sabotage(self):
        env = self.kernels([("op/dense_cpu.cl", UNFUSED)])
        narrow = ["--device", "cpu", "--op", "dense", "--schedule", "cpu"]
        row, = self.rows(*narrow, "--case", "5", status=1, env=env)
        self.assertEqual(row["verdict"], "failed")
        self.assertLess(row["passed"], row["runs"])
        failure = row["failure"]
        self.assertEqual((failure["fault"], failure["case"], failure["seed"]), ("bits", 5, 1))
        self.assertNotEqual(failure["got"], failure["want"])
        done = self.run_program("check", *narrow, "--case", "5", env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in ("schedule `cpu` of `dense` differs from the contract on " + row["device"],
                     failure["shapes"], failure["got"], failure["want"],
                     "element %d:" % failure["index"], "%d ulp apart" % failure["ulp"], "1 failed"):
            self.assertIn(part, done.stdout)
        # The line that repeats it does, and not with the right kernels.
        line, = [x for x in done.stdout.splitlines() if x.startswith("  repeat: lockstep check ")]
        words = shlex.split(line)[2:]
        self.assertIn("--regime", words)
        again = self.run_program(*words, env=env)
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn(failure["got"], again.stdout)
        self.good(*words)

    def test_kernel_that_does_not_build(self):
        env = self.kernels([("op/dense_cpu.cl", (r"\Z", "#error broken\n"))])
        rows = self.rows("--device", "cpu", "--op", "dense", "--case", "1", status=3, env=env)
        verdicts = {r["schedule"]: r["verdict"] for r in rows}
        self.assertEqual((verdicts["cpu"], verdicts["plain"]), ("failed", "passed"))
        self.assertEqual(rows[0]["failure"]["fault"], "status")
        self.assertIn("broken", rows[0]["failure"]["text"])

    def test_usage(self):
        ref = ["check", "--device", "ref"]
        self.bad(2, ["no operator `dens`", "did you mean `dense`"], *ref, "--op", "dens")
        self.bad(2, ["`loud`", "underflow"], *ref, "--regime", "loud")
        self.bad(2, ["--case 999"], *ref, "--case", "999")
        self.bad(2, ["`x`"], *ref, "--op", "dense", "--schedule", "x")
        self.bad(2, ["takes no `x`"], *ref, "x")
        self.bad(3, ["nosuch"], "check", "--device", "nosuch")


if __name__ == "__main__":
    main()
