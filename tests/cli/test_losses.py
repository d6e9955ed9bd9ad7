"""Losses of model files: without labels, several of them, their errors; one hash on two devices."""
import json
import xml.etree.ElementTree

from common import Case, MODEL, main, read, write

HEAD = MODEL[:MODEL.index("layers:")]
UNLABELLED = HEAD.replace(", labels: data/train-labels", "").replace(", labels: data/test-labels", "")
AUTOENCODER = UNLABELLED + """layers:
  - dense: {out: 12}
  - relu: {name: code}
  - dense: {out: 64}
  - reshape: {shape: [8, 8, 1], name: decoded}
loss: {mse: {target: input}}
train: {batch: 16, epochs: 3, seed: 7, optimizer: {adam: {lr: 0.01}}}
"""
PAIR = UNLABELLED + """layers:
  - random: {shape: [5], name: noise}
  - dense: {out: 64, name: g1}
  - reshape: {name: made, shape: [8, 8, 1]}
  - dense: {out: 6, name: d1, from: input}
  - dense: {out: 6, name: e1, from: made, share: d1}
  - dense: {out: 1, name: d2, from: d1}
  - dense: {out: 1, name: e2, from: e1, share: d2}
losses:
  d_loss:
    - bce_with_logits: {of: d2, target: 1}
    - bce_with_logits: {of: e2, target: 0, weight: 0.5}
  g_loss: {bce_with_logits: {of: e2, target: 1}}
train:
  batch: 16
  epochs: 3
  seed: 7
  optimizers:
    - {adam: {lr: 0.01}, loss: d_loss, params: ["d*"]}
    - {adam: {lr: 0.01}, loss: g_loss, params: ["g*"]}
"""
LOSS = "loss: {mse: {target: input}}"


class Losses(Case):
    def sha(self, text):
        write(self.model, text)
        return self.good("summary", self.model).split("sha256 ")[1][:64]

    def refused(self, text, line, *parts):
        write(self.model, text)
        self.bad(2, ["model.yaml:%d:" % line, *parts], "summary", self.model)

    def one_hash(self, text):
        write(self.model, text)
        for device in ("ref", "cpu"):
            self.train(device, device=device)
        self.assertEqual(read(self.path("ref/weights.safetensors")),
                         read(self.path("cpu/weights.safetensors")))

    def test_one_hash_of_an_autoencoder(self):
        self.one_hash(AUTOENCODER)

    def test_one_hash_of_two_losses(self):
        self.one_hash(PAIR)

    def rows(self, file):
        return [row.split(",") for row in read(self.path(file)).decode().splitlines()]

    def test_files_of_an_autoencoder(self):
        write(self.model, AUTOENCODER)
        log = self.path("log")
        text = self.train("run", "--log-json", log)
        steps, epochs = self.rows("run/steps.csv"), self.rows("run/metrics.csv")
        self.assertEqual(steps[0], ["step", "samples", "loss"])
        self.assertEqual(epochs[0], ["epoch", "steps", "train_loss", "test_loss"])
        self.assertEqual((len(steps), len(epochs)), (10, 4))
        self.assertTrue(all(len(row) == len(rows[0]) for rows in (steps, epochs) for row in rows))
        self.assertLess(float(steps[-1][2]), float(steps[1][2]))
        self.assertRegex(text, r"^test loss  %.4f\n[0-9a-f]{64}  " % float(epochs[-1][3]))
        result = json.loads(read(self.path("run/run.json")))["result"]
        self.assertEqual(sorted(result), ["steps", "test_loss", "weights_sha256"])
        events = [json.loads(line) for line in read(log).splitlines()]
        self.assertEqual(sorted(events[0]), ["epoch", "event", "loss", "samples", "step"])
        self.assertEqual(sorted(events[-1]), ["event", "steps", "test_loss", "weights_sha256"])
        svg = read(self.path("run/curves.svg")).decode()
        xml.etree.ElementTree.fromstring(svg)
        self.assertNotIn("Accuracy", svg)
        # The best epoch is that of the lowest test loss: here the last.
        self.assertEqual(min(epochs[1:], key=lambda row: float(row[3])), epochs[-1])
        self.assertEqual(read(self.path("run/best.safetensors")),
                         read(self.path("run/weights.safetensors")))
        self.assertEqual(self.good("eval", self.model, "-d", "ref", "-w",
                                   self.path("run/weights.safetensors")),
                         "samples 15\nloss %s\n" % epochs[-1][3])
        self.assertRegex(self.good("train", self.model, "-d", "ref", "-o", self.path("other")),
                         r"epoch 1/3  loss \d+\.\d{4}  test loss \d+\.\d{4}  \(")

    def test_files_of_two_losses(self):
        write(self.model, PAIR)
        self.train("run")
        steps, epochs = self.rows("run/steps.csv"), self.rows("run/metrics.csv")
        self.assertEqual(steps[0], ["step", "samples", "loss", "g_loss"])
        self.assertEqual(epochs[0], ["epoch", "steps", "train_loss", "train_g_loss", "test_loss",
                                     "test_g_loss"])
        for k in (2, 3):  # an epoch's loss is the mean of its steps', which have 9 digits
            self.assertAlmostEqual(float(epochs[2][k]), sum(float(row[k]) for row in steps[4:7]) / 3,
                                   delta=1e-7)
        self.assertEqual(self.good("eval", self.model, "-d", "ref", "-w",
                                   self.path("run/weights.safetensors")),
                         "samples 15\nloss %s\ng_loss %s\n" % (epochs[-1][4], epochs[-1][5]))
        svg = read(self.path("run/curves.svg")).decode()
        self.assertIn(">g_loss</text>", svg)
        self.assertEqual(svg.count("<circle"), 1 + 2 * 3)  # of the legend, and two of each epoch

    def test_resume(self):
        """Stopped within an epoch: the same files as without a stop."""
        for text, test in ((AUTOENCODER, True), (PAIR, True), (PAIR, False)):
            write(self.model, text if test else text.replace("  test:", "  # test:"))
            self.train("whole", "--overwrite")
            self.train("parts", "--steps", "4", "--overwrite")
            self.train("parts", "--resume")
            for name in ("weights.safetensors", "checkpoint.safetensors", "metrics.csv",
                         "steps.csv", "curves.svg"):
                self.assertEqual(read(self.path("whole/" + name)), read(self.path("parts/" + name)),
                                 name)

    def test_refusals(self):
        write(self.model, AUTOENCODER)
        self.train("run")
        weights = self.path("run/weights.safetensors")
        self.bad(2, ["knows no classes", "lockstep sample"], "predict", self.model, "-w", weights,
                 "--index", "0")
        self.bad(2, ["knows no classes"], "eval", self.model, "-w", weights, "--expect-accuracy",
                 "0.5")
        self.bad(2, ["needs a loss with labels"], "train", self.model, "--expect-accuracy", "0.5")
        damaged = read(self.path("run/metrics.csv"))
        for change in (damaged.replace(b",test_loss", b""), damaged[:damaged.rindex(b",")] + b"\n",
                       damaged.replace(b"\n2,", b"\n2,x")):
            write(self.path("run/metrics.csv"), change)
            self.bad(2, ["metrics.csv:"], "train", self.model, "-d", "ref", "-o", self.path("run"),
                     "--resume")

    def test_forms(self):
        """Every form is read, and is another model."""
        forms = [LOSS, "loss: {mse: {of: decoded, target: 0.5}}", "loss: {l1: {target: input}}",
                 "loss: {huber: {target: input}}", "loss: {huber: {target: input, beta: 0.5}}",
                 "loss: {smooth_l1: {target: input}}", "loss: {bce_with_logits: {target: input}}",
                 "loss: {mse: {target: input, weight: 2}}", "loss: {mean: {of: decoded}}",
                 "loss: [{mse: {target: input}}, {mean: {of: code, weight: 0.1}}]",
                 "losses: {a: {mse: {target: input}}, b: {mean: {of: code}}}"]
        self.assertEqual(len({self.sha(AUTOENCODER.replace(LOSS, f)) for f in forms}), len(forms))
        # Said otherwise, but the same.
        self.assertEqual(self.sha(AUTOENCODER.replace(LOSS, "loss: [mse: {of: decoded, weight: 1, "
                                                            "target: input}]")),
                         self.sha(AUTOENCODER))
        old = "loss: softmax_cross_entropy"
        forms = [old] + ["loss: {softmax_cross_entropy: {%s}}" % keys for keys in (
            "of: dense1", "smoothing: 0.1", "weights: [1, 2, 0.5]", "ignore: 1")]
        self.assertEqual(len({self.sha(MODEL.replace(old, f)) for f in forms}), len(forms))

    def test_errors(self):
        for new, line, part in (
                ("loss: mse", 11, "`mse` needs keys"),
                ("loss: {msa: {target: input}}", 11, "did you mean `mse`"),
                ("loss: {mse: {}}", 11, "`target`"),
                ("loss: []", 11, "needs a term"),
                ("losses: {}", 11, "no loss"),
                ("loss: {mse: {target: input}, l1: {target: input}}", 11, "as a list"),
                ("loss: {mse: {target: input, beta: 1}}", 11, "unknown key `beta`"),
                ("loss: {huber: {target: input, beta: 0}}", 11, "beta"),
                ("loss: {mse: {target: cod}}", 11, "did you mean `code`"),
                ("loss: {mse: {target: code}}", 11, "`code` is 12, but"),
                ("loss: {mse: {of: encoded, target: input}}", 11, "`encoded`"),
                ("loss: {mse: {target: input, weight: much}}", 11, "`much`"),
                ("loss: {mean: {of: decoded, target: 1}}", 11, "unknown key `target`"),
                ("loss: {mse: {of: code, target: 0}}", 9, "`dense2` does not reach the loss"),
                ("losses: {hits: {mse: {target: input}}}", 11, "cannot be called `hits`"),
                ("losses: {a b: {mse: {target: input}}}", 11, "letters"),
                ("loss: softmax_cross_entropy", 11, "put a dense layer before it"),
                ("loss: {softmax_cross_entropy: {of: code}}", 3, "no labels"),
                ("loss: {softmax_cross_entropy: {of: code, weights: [1]}}", 11, "class weights"),
                ("loss: {softmax_cross_entropy: {of: code, smoothing: 1}}", 11, "smoothing")):
            self.refused(AUTOENCODER.replace(LOSS, new), line, part)
        both = AUTOENCODER.replace(LOSS, LOSS + "\nlosses: {a: {mean: {}}}")
        self.refused(both, 12, "leave one of them out")
        image = MODEL.replace("  - dense: {out: 3}\n", "  - linear: {out: 3}\n")
        self.refused(image.replace("softmax_cross_entropy", "{softmax_cross_entropy: {}}"), 3,
                     "1 labels a sample", "needs 16")

    def test_errors_of_optimisers(self):
        self.refused(PAIR.replace("loss: g_loss", "loss: g_los"), 25, "no loss `g_los`", "`g_loss`")
        # g1 does not reach d_loss behind stop_gradient, and e2 takes it no further.
        cut = PAIR.replace("shape: [8, 8, 1]}\n", "shape: [8, 8, 1]}\n  - stop_gradient\n")
        self.refused(cut.replace("from: made", "from: stop_gradient1"), 8,
                     "`g1` does not reach the loss `g_loss`")

    def test_random_keys(self):
        for old, new, part in (("shape: [5], name", "name", "`shape` is missing"),
                               ("shape: [5]", "shape: []", "1 to 4 sizes"),
                               ("shape: [5]", "shape: [0]", "shape"),
                               ("shape: [5]", "shape: [5], kind: gauss", "`gauss`"),
                               ("shape: [5]", "shape: [5], from: input", "unknown key `from`")):
            self.refused(PAIR.replace(old, new), 7, part)
        seen = {self.sha(PAIR.replace("shape: [5], name: noise", new))
                for new in ("shape: [5], name: noise", "shape: [5], name: other",
                            "shape: [6], name: noise", "shape: [5], name: noise, kind: uniform")}
        self.assertEqual(len(seen), 4)


main()
