"""lockstep bench runs and tells all that it promises. No figure decides anything here."""
import json
import os

from common import main
from sabotage import KernelCase, UNFUSED


class Bench(KernelCase):
    def cases(self, *args, **more):
        found = [json.loads(line) for line in self.good("bench", "--json", *args,
                                                        **more).splitlines()]
        for case in found:
            self.assertLessEqual(0, case["min_ms"])
            self.assertLessEqual(case["min_ms"], case["median_ms"])
            self.assertLessEqual(case["median_ms"], case["max_ms"])
            self.assertGreater(case["max_ms"], 0)
            self.assertGreater(case["peak_gflops"], 0)
            self.assertGreater(case["peak_gbs"], 0)
            self.assertAlmostEqual(case["fma_share"] * case["peak_gflops"], case["gflops"],
                                   delta=1e-4 * case["gflops"])
            self.assertTrue(case["case"] and case["device"])
            self.assertAlmostEqual(case["gbs"] * case["median_ms"] * 1e6, case["bytes"],
                                   delta=1e-3 * case["bytes"])
            self.assertAlmostEqual(case["gflops"] * case["median_ms"] * 1e6, case["operations"],
                                   delta=1e-3 * case["operations"])
            if case["operations"] + case["bytes"] > 0:
                self.assertEqual(case["bound"], max(("copy", "fma"),
                                                    key=lambda peak: case[peak + "_share"]))
        return found

    def test_operator(self):
        shape = ["--op", "conv2d", "--in", "2,9,8,3", "--out", "5", "--kernel", "3", "--stride",
                 "2", "--pad", "1", "--repeats", "3"]
        ref = self.cases(*shape, "--device", "ref", "--schedule", "all")
        self.assertEqual([(c["schedule"], c["timer"], c["repeats"]) for c in ref],
                         [("ref", "clock", 3), ("plain", "clock", 3)])
        self.assertEqual(ref[0]["case"], "conv2d [2,9,8,3] [5,3,3,3] [5] -> [2,5,4,5]")
        cpu = self.cases(*shape, "--device", "cpu")
        self.assertEqual(cpu[0]["case"], ref[0]["case"])
        self.assertEqual((len(cpu), cpu[0]["timer"], cpu[0]["repeats"]), (1, "events", 3))
        # 2 operations a multiply-add of the 40 positions, 5 outputs, 27 inputs of a window.
        self.assertAlmostEqual(ref[0]["gflops"] * ref[0]["median_ms"] * 1e6,
                               2 * 40 * 5 * 27, delta=100)

    def test_every_shape(self):
        for op, more in (("conv2d_data_grad", ["--out", "4", "--kernel", "3"]),
                         ("conv2d_weight_grad", ["--out", "4", "--kernel", "3"]),
                         ("dense", ["--out", "4"]), ("dense_data_grad", ["--out", "4"]),
                         ("dense_weight_grad", ["--out", "4"]), ("maxpool", ["--kernel", "2"]),
                         ("relu", []), ("relu_grad", []), ("add", []), ("bias_grad", [])):
            case, = self.cases("--op", op, "--in", "3,6,6,2", *more, "--device", "ref",
                               "--repeats", "2")
            self.assertEqual(case["op"], op)
        case, = self.cases("--op", "sgd", "--device", "ref", "--repeats", "1")
        self.assertTrue(case["case"].startswith("sgd ["))

    def test_model(self):
        for device in ("ref", "cpu"):
            whole, *parts = self.cases(self.model, "--device", device, "--batch", "16", "--profile",
                                       "--repeats", "2")
            self.assertEqual(whole["case"], "tiny: training step, batch 16")
            self.assertGreater(whole["samples_per_s"], 0)
            self.assertAlmostEqual(sum(p["share_of_step"] for p in parts), 1, delta=1e-3)
            self.assertIn(("dense1", "dense"), {(p["case"], p["op"]) for p in parts})
            plan = json.loads(self.good("summary", self.model, "--plan", "--json", "--device",
                                        device, "--batch", "16"))
            self.assertEqual([(p["case"], p["op"], p["operations"], p["bytes"]) for p in parts],
                             [(s["layer"], s["operator"], s["operations"], s["bytes"])
                              for s in plan["stages"]])
            for number in ("operations", "bytes"):
                self.assertEqual(whole[number], sum(p[number] for p in parts))
            self.assertEqual({p["timer"] for p in parts},
                             {"clock" if device == "ref" else "events"})
        text = self.good("bench", self.model, "--device", "ref", "--repeats", "2")
        self.assertIn("measured peaks", text)
        self.assertIn("samples/s", text)

    def test_profile_table(self):
        """Every number below its heading, in each row."""
        lines = self.good("bench", self.model, "--device", "ref", "--repeats", "1",
                          "--profile").splitlines()
        head, rows = lines[1], lines[2:]
        words = ("median ms", "min", "max", "n", "step", "MFLOP", "MB", "GFLOP/s", "GB/s", "fma",
                 "copy", "bound")
        self.assertEqual(head.split(), " ".join(words).split() + ["case"])
        self.assertIn("-", rows[0].split()[4])
        self.assertEqual(rows[0].split()[12:15], ["tiny:", "training", "step,"])
        for row in rows:
            numbers, column = row.split()[:len(words)], 0
            for word, number in zip(words, numbers):
                column = head.index(word, column) + len(word)
                self.assertTrue(row[:column].endswith(number) and row[column] == " ", row)
        self.assertGreater(len(rows), 10)

    def test_trace(self):
        """Every launch of the plan once a step; in order, within the step; on host and device."""
        for device in ("ref", "cpu"):
            path = os.path.join(self.folder, device + ".json")
            self.good("bench", self.model, "--device", device, "--batch", "16", "--repeats", "1",
                      "--trace", path)
            with open(path, encoding="utf-8") as f:
                events = json.load(f)["traceEvents"]
            rows = {1: [], 2: []}
            for e in events:
                if e["ph"] == "X":
                    self.assertGreaterEqual(e["ts"], 0, e)
                    self.assertGreaterEqual(e["dur"], 0, e)
                    rows[e["tid"]].append(e)
            self.assertEqual({e["args"]["name"] for e in events if e["name"] == "thread_name"} - {
                "host"}, {json.loads(self.good("bench", self.model, "--device", device, "--json",
                                               "--repeats", "1", "--batch", "16"))["device"]})
            plan = json.loads(self.good("summary", self.model, "--plan", "--json", "--device",
                                        device, "--batch", "16"))
            stages = [s["layer"] for s in plan["stages"]]
            queued = [e["name"] for e in rows[1] if e["cat"] != "host"]
            self.assertEqual(queued, stages * 3)
            ran = [e["name"].split(":")[0] for e in rows[2]]
            self.assertEqual([n for i, n in enumerate(ran) if i == 0 or ran[i - 1] != n],
                             [n for i, n in enumerate(queued) if i == 0 or queued[i - 1] != n])
            launched = [x for s in plan["stages"] for x in s["launches"] if "kernel" in x]
            self.assertEqual(bool(launched), device == "cpu")
            self.assertEqual([(e["args"]["kernel"], e["args"]["global"]) for e in rows[2]
                              if e["cat"] == "launch"],
                             [(x["kernel"], x["items"]) for x in launched] * 3)
            for row in rows.values():
                for one, two in zip(row, row[1:]):
                    self.assertLessEqual(one["ts"] + one["dur"], two["ts"] + 1, (one, two))
            for e in rows[2]:
                self.assertLessEqual(rows[1][0]["ts"], e["ts"])
                self.assertGreater(e["args"]["bytes"], 0)
                self.assertTrue(e["args"]["operator"] and e["args"]["schedule"])
        self.bad(2, ["model file"], "bench", "--trace", path)
        self.bad(2, ["none/there.json"], "bench", self.model, "--device", "ref", "--trace",
                 os.path.join(self.folder, "none", "there.json"))

    def test_wrong_bits_are_not_timed(self):
        done = self.run_program("bench", "--op", "dense", "--in", "20,64", "--out", "24",
                                "--device", "cpu", env=self.kernels([("op/dense_cpu.cl", UNFUSED)]))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("is not timed", done.stderr.splitlines()[-1])

    def test_usage(self):
        self.bad(2, ["did you mean `dense`"], "bench", "--op", "dens")
        self.bad(2, ["not both"], "bench", self.model, "--op", "dense")
        self.bad(2, ["needs --out"], "bench", "--op", "dense", "--in", "2,3")
        self.bad(2, ["takes no --kernel"], "bench", "--op", "relu", "--in", "2,3", "--kernel", "2")
        self.bad(2, ["larger than the padded input"], "bench", "--op", "maxpool", "--in", "1,2,2,1",
                 "--kernel", "3")
        for shape in ("2", "2,3,4", "2,3,", "0,3", "2x3", "1,2,3,4,5", "-1,2"):
            self.bad(2, ["--in: `%s`" % shape], "bench", "--op", "relu", "--in=" + shape)
        self.bad(2, ["largest case"], "bench", "--op", "sgd", "--in", "2,3")
        self.bad(2, ["say nothing without --in"], "bench", "--op", "dense", "--out", "3")
        self.bad(2, ["nothing to time"], "bench", "--op", "reshape")
        self.bad(2, ["for --op"], "bench", self.model, "--schedule", "plain", "--device", "ref")
        self.bad(2, ["model file"], "bench", "--profile")


if __name__ == "__main__":
    main()
