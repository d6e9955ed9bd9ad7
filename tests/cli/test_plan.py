"""lockstep summary --plan tells what the plan does, and what it leaves aside and why."""
import json

from common import main
from sabotage import KernelCase, UNFUSED


class Plan(KernelCase):
    def plan(self, *args, device="cpu", **more):
        return json.loads(self.good("summary", self.model, "--plan", "--json", "--device", device,
                                    *args, **more))

    def stage(self, plan, layer):
        found, = [s for s in plan["stages"] if s["layer"] == layer]
        return found

    def test_record(self):
        plan = self.plan()
        self.assertEqual(plan["batch"], 20)
        self.assertEqual(plan["launches"], sum(len(s["launches"]) for s in plan["stages"]))
        dense1, dense2 = self.stage(plan, "dense1"), self.stage(plan, "dense2")
        self.assertEqual((dense1["operator"], dense1["schedule"], dense1["in"], dense1["out"]),
                         ("dense", "cpu", [[20, 64], [24, 64], [24]], [[20, 24]]))
        self.assertEqual((dense1["fused"], dense2["fused"]), ("bias, relu (relu)", "bias"))
        self.assertEqual(self.stage(plan, "update")["fused"], "all parameters")
        self.assertEqual([x["kernel"] for x in dense1["launches"]], ["pack", "product"])
        self.assertGreater(dense1["workspace"], 0)
        memory = plan["memory"]
        self.assertEqual(memory["total"],
                         memory["parameters"] + memory["inputs"] + memory["values"])
        self.assertEqual(self.plan("--batch", "7")["batch"], 7)
        self.assertEqual(self.stage(plan, "loss")["declined"], {"gpu": "made for GPUs"})

    def test_ref(self):
        plan = self.plan(device="ref")
        self.assertEqual({s["schedule"] for s in plan["stages"]}, {"ref"})
        self.assertEqual(plan["launches"], 0)

    def test_struck_off(self):
        plan = self.plan(env=self.kernels([("op/dense_cpu.cl", UNFUSED)]))
        dense1 = self.stage(plan, "dense1")
        self.assertNotEqual(dense1["schedule"], "cpu")
        self.assertIn("other bits", dense1["declined"]["cpu"])

    def test_table(self):
        text = self.good("summary", self.model, "--plan", "--device", "cpu")
        self.assertRegex(text, r"dense1 +dense +cpu +2 .*bias, relu \(relu\)\n")
        self.assertRegex(text, r"a step at batch 20: \d+ operators, \d+ launches, 1 upload, ")
        self.assertColumns(text, self.plan())
        text = self.good("summary", self.model, "--plan", "-v", "--device", "cpu")
        self.assertIn("not `gpu`: made for GPUs", text)
        self.assertIn("product in op/dense_cpu.cl [PRODUCT ", text)

    def assertColumns(self, text, plan):
        """Each word below its heading, however long another row's is; and the record's numbers."""
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["layer", "operator"])
        head, rows = lines[at], lines[at + 1:at + 1 + len(plan["stages"])]
        start = {word: head.index(word) for word in ("layer", "operator", "schedule")}
        end = {word: head.index(word) + len(word) for word in ("launches", "MFLOP", "MB")}
        self.assertGreater(max(len(s["operator"]) for s in plan["stages"]), 22)
        for row, stage in zip(rows, plan["stages"]):
            for word, column in start.items():
                self.assertEqual(row[column:].split("  ")[0].split()[0], stage[word], row)
                self.assertEqual(row[column - 1], " ", row)
            told = {word: row[:column].split()[-1] for word, column in end.items()}
            self.assertEqual(told, {"launches": "%d" % len(stage["launches"]),
                                    "MFLOP": "%.3f" % (stage["operations"] * 1e-6),
                                    "MB": "%.3f" % (stage["bytes"] * 1e-6)}, row)
            self.assertEqual(row, row.rstrip())

    def test_work(self):
        for device in ("cpu", "ref"):
            dense1 = self.stage(self.plan(device=device), "dense1")
            # 2 operations a multiply-add, then bias and relu; tensors of 20x64, 24x64, 24, 20x24
            self.assertEqual(dense1["bytes"], 4 * (20 * 64 + 24 * 64 + 24 + 20 * 24))
            self.assertGreaterEqual(dense1["operations"], 2 * 20 * 24 * 64)
            self.assertLessEqual(dense1["operations"], 2 * 20 * 24 * 64 + 2 * 20 * 24)

    def test_resident(self):
        sent, lying = self.plan("--resident", "no"), self.plan("--resident", "yes")
        self.assertEqual([p["stages"][0]["operator"] for p in (sent, lying)],
                         ["pixels", "take_pixels"])
        self.assertEqual(len(lying["stages"]), len(sent["stages"]))
        self.assertEqual(sent["memory"]["resident_data"], 0)
        self.assertGreater(lying["memory"]["resident_data"], 0)
        text = self.good("summary", self.model, "--plan", "--resident", "yes", "--device", "cpu")
        self.assertIn("the training data lie on the device", text)
        text = self.good("summary", self.model, "--resident", "yes")
        self.assertIn("the training data", text)
        self.bad(2, ["--resident", "`maybe`", "auto, yes or no"], "summary", self.model,
                 "--resident", "maybe")

    def test_usage(self):
        self.bad(2, ["--json is for --plan"], "summary", self.model, "--json")
        self.bad(2, ["--verbose is for --plan"], "summary", self.model, "-v")


if __name__ == "__main__":
    main()
