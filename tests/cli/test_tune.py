"""lockstep tune writes what later trainings use; it moves no bit, and what is wrong, crashes or hangs
is left aside. No figure decides anything: where one choice must win, the other is made slow.
"""
import hashlib
import json
import os
import subprocess

from common import PROGRAM, main, read, write
from sabotage import KernelCase

PRODUCT = r"U32 m0 = get_global_id\(0\) \* MR, n0 = get_global_id\(1\) \* WIDTH;"


def fault(when, what):
    """A change of the dense kernels, for the tiles that `when` names."""
    return ("op/dense_cpu.cl", (PRODUCT, "%s\n#if %s\n%s\n#endif\n" %
                                (PRODUCT.replace("\\", ""), when, what)))


SLOW = fault("NV == 2 && MR == 8",
             "volatile F32 z = 0.0f; for (U32 q = 0u; q < 30000u; q++) z = z + 1.0f;")
# a * b rounded, then + c, in the tiles with one vector
WRONG = ("op/dense_cpu.cl", (r"acc\[i\]\[j\] = fma\(s, v\[j\], acc\[i\]\[j\]\);",
                             "acc[i][j] = NV == 1 ? s * v[j] + acc[i][j] "
                             ": fma(s, v[j], acc[i][j]);"))
DENSE = ["--op", "dense", "--in", "20,64", "--features", "24"]
ONE = {"op": "dense", "in": [[20, 64], [24, 64], [24]], "leaf": 8, "attr": [], "schedule": "cpu",
       "version": 0, "choices": {"tile": "12 rows x 1 of 16 lanes"}, "ms": 1, "before": "cpu",
       "before_ms": 2}


class Tune(KernelCase):
    @property
    def config(self):
        return self.path("config")

    @property
    def contract(self):
        return int(self.good("--version").split()[-1])

    def run_program(self, *args, env=None, **more):
        return super().run_program(*args, env={"XDG_CONFIG_HOME": self.config, **(env or {})},
                                   **more)

    def lines(self, name):
        return [json.loads(line) for line in read(self.path(name)).decode().splitlines()]

    def file(self, name, *entries, device=None):
        """A file of tuning for the CPU device or another one."""
        if device is None:
            device = json.loads(self.good("summary", self.model, "--plan", "--json", "--device",
                                          "cpu", "--tuning", "none"))["device"]
        head = [{"lockstep_tuning": 1},
                {"device": device, "driver": "*", "platform": "*", "contract": self.contract}]
        write(self.path(name), "".join(json.dumps(x) + "\n" for x in [*head, *entries]))
        return self.path(name)

    def schedules(self, *args, **more):
        plan = json.loads(self.good("summary", self.model, "--plan", "--json", "--device", "cpu",
                                    *args, **more))
        return {s["layer"]: s.get("tuned") for s in plan["stages"]}

    def weights(self, out, *args, **more):
        done = self.run_program("train", self.model, "--out", self.path(out), "--quiet", *args,
                                **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (hashlib.sha256(read(self.path(out) + "/weights.safetensors")).hexdigest(),
                done.stderr)

    def entry(self):
        """What the training uses: fused with relu, as the plan has it."""
        return {**ONE, "attr": [1]}

    def test_tunes_a_model(self):
        env = self.kernels([SLOW])
        text = self.good("tune", self.model, "--device", "cpu", "--budget", "60", env=env)
        path = text.splitlines()[-2]
        self.assertTrue(path.startswith(self.config + "/lockstep/tuning/"), text)
        self.assertRegex(text.splitlines()[-1], r"^[1-9]\d* of \d+ calls have a faster choice")
        head, device, *entries = self.lines(path)
        self.assertEqual(head, {"lockstep_tuning": 1})
        self.assertEqual(device["contract"], self.contract)
        dense, = [e for e in entries if e["op"] == "dense" and e["in"][1] == [24, 64]]
        self.assertLess(dense["ms"], dense["before_ms"])
        # The next run uses it, its last batch too; and the hash is that of `ref`.
        tuned = self.schedules(env=env)
        self.assertIsNotNone(tuned["dense1"])
        self.assertEqual(self.schedules("--batch", "8", env=env)["dense1"], tuned["dense1"])
        self.assertIsNone(self.schedules("--tuning", "none", env=env)["dense1"])
        self.assertIsNone(self.schedules(env={**env, "LKS_TUNING": "none"})["dense1"])
        self.assertEqual(self.weights("cpu", "--device", "cpu", env=env)[0],
                         self.weights("ref", "--device", "ref")[0])

    def test_one_operator(self):
        out = self.path("one")
        self.good("tune", *DENSE, "--device", "cpu", "--budget", "30", "--out", out,
                  env=self.kernels([SLOW]))
        (entry,) = self.lines("one")[2:]
        self.assertEqual((entry["op"], entry["in"], entry["attr"]), ("dense", ONE["in"], []))

    def test_skips_what_fails(self):
        crash = fault("NV == 3 && MR == 8", "*(volatile __global I32 *)0 = 1;")
        hang = fault("NV == 4 && MR == 6", "volatile I32 z = 1; while (z) {}")
        broken = fault("NV == 2 && MR == 12", "#error no such tile")
        text = self.good("tune", *DENSE, "--device", "cpu", "--budget", "120", "--limit", "15",
                         "--out", self.path("f"),
                         env=self.kernels([WRONG, crash, hang, broken]))
        said = {line.split(": ")[1]: line for line in text.splitlines() if "skipped" in line}
        self.assertIn("other bits than the contract", said["cpu, tile 8 rows x 1 of 16 lanes"])
        self.assertIn("no such tile", said["cpu, tile 12 rows x 2 of 16 lanes"])
        self.assertIn("Segmentation fault", said["cpu, tile 8 rows x 3 of 16 lanes"])
        self.assertIn("too long", said["cpu, tile 6 rows x 4 of 16 lanes"])
        for entry in self.lines("f")[2:]:
            self.assertNotIn(" x 1 of", entry["choices"].get("tile", ""))

    def test_entry_that_went_wrong(self):
        right = self.weights("ref", "--device", "ref")[0]
        name = self.file("f", self.entry())
        self.assertEqual(self.schedules("--tuning", name)["dense1"], "tile 12 rows x 1 of 16 lanes")
        for number, (change, word) in enumerate((
                (WRONG, "other bits"),
                (fault("NV == 1 && MR == 12", "#error no such tile"), "built without"))):
            done = self.weights("out%d" % number, "--device", "cpu", "--tuning", name,
                                env=self.kernels([change]))
            self.assertEqual(done[0], right)
            self.assertIn(word, done[1])

    def test_passed_over(self):
        good = self.entry()
        self.assertIsNotNone(self.schedules("--tuning", self.file("f", good))["dense1"])
        for name, entry, device in (
                ("device", good, "another"), ("schedule", {**good, "schedule": "gone"}, None),
                ("version", {**good, "version": 7}, None), ("op", {**good, "op": "gone"}, None),
                ("choice", {**good, "choices": {"tile": "9 rows"}}, None),
                ("tunable", {**good, "choices": {"speed": "high"}}, None),
                ("shape", {**good, "in": [[20, 63], [24, 63], [24]]}, None),
                ("declines", {**good, "schedule": "gpu", "choices": {}, "op": "loss"}, None)):
            self.assertIsNone(self.schedules("--tuning", self.file(name, entry, device=device))
                              ["dense1"], name)

    def test_damaged(self):
        name = self.file("f", self.entry())
        for line in ("{", "[]", '{"op": "dense"}', json.dumps({**ONE, "in": [[0]]}),
                     json.dumps({**ONE, "attr": [-1]}), '{"lockstep_tuning": 2}'):
            with open(name, "a", encoding="utf-8") as f:
                f.write(line + "\n")
            self.bad(2, [name + ":4: ", "lockstep tune"], "train", self.model, "--device", "cpu",
                     "--tuning", name)
            self.bad(2, [name + ":4: "], "train", self.model, "--device", "cpu",
                     env={"LKS_TUNING": name})
            self.file("f", self.entry())
        self.bad(2, ["missing"], "train", self.model, "--device", "cpu", "--tuning", "missing")
        # The user's own file that nobody named: a warning.
        own = self.good("tune", *DENSE, "--device", "cpu", "--budget", "1").splitlines()[-2]
        write(own, "no json\n")
        done = self.weights("out", "--device", "cpu")
        self.assertIn(own + ":1: ", done[1])
        self.assertEqual(done[0], self.weights("ref", "--device", "ref")[0])

    def test_merge(self):
        a = self.file("a", self.entry(), device="x")
        b = self.file("b", {**self.entry(), "ms": 0.5}, {**ONE, "leaf": 4}, device="x")
        c = self.file("c", ONE, device="y")
        self.good("tune", "--merge", a, "--out", self.path("out"), b, c)
        head, x, first, second, y, third = self.lines("out")
        self.assertEqual((head, x["device"], y["device"]), ({"lockstep_tuning": 1}, "x", "y"))
        self.assertEqual((first, second, third), ({**self.entry(), "ms": 0.5}, {**ONE, "leaf": 4},
                                                  ONE))
        self.bad(2, ["--out"], "tune", "--merge", a)
        # Several writers at once lose nothing.
        names = [self.file("n%d" % i, {**ONE, "leaf": i + 1}, device="x") for i in range(12)]
        runs = [subprocess.Popen([PROGRAM, "tune", "--merge", n, "--out", self.path("all")],
                                 stdout=subprocess.DEVNULL) for n in names]
        self.assertEqual([r.wait() for r in runs], [0] * 12)
        self.assertEqual(sorted(e["leaf"] for e in self.lines("all")[2:]), list(range(1, 13)))

    def test_usage(self):
        self.bad(2, ["neither is given"], "tune")
        self.bad(2, ["not both"], "tune", self.model, "--op", "dense")
        self.bad(2, ["are for --op"], "tune", self.model, "--kernel", "3")
        self.bad(2, ["device ref"], "tune", self.model, "--device", "ref")
        self.assertEqual(os.path.exists(self.config), False)


if __name__ == "__main__":
    main()
