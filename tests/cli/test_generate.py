"""Generators in model files: gradients as layers, two networks with an optimiser each, random
numbers; one hash on two devices and after interruptions; what is refused."""
import signal
import subprocess
import time

from common import Case, MODEL, PROGRAM, main, read, write

HEAD = MODEL[:MODEL.index("layers:")].replace(", labels: data/train-labels", "").replace(
    ", labels: data/test-labels", "")
WGAN_GP = HEAD + """blocks:
  critic:
    layers:
      - conv2d: {out: 3, kernel: 4, stride: 2, pad: 1}
      - leaky_relu: {slope: 0.2}
      - dense: {out: 1}
layers:
  - random: {shape: [5], name: noise}
  - dense: {out: 32, name: g1}
  - reshape: {shape: [4, 4, 2]}
  - batch_norm: {name: g_norm}
  - relu
  - conv_transpose2d: {out: 1, kernel: 4, stride: 2, pad: 1, name: g2}
  - tanh: {name: fake}
  - block: {use: critic, from: input, name: c}
  - block: {use: critic, from: fake, share: c, name: c_fake}
  - stop_gradient: {from: fake, name: made}
  - sub: {from: [input, made], name: way}
  - random: {shape: [1, 1, 1], kind: uniform, name: place}
  - mul: {from: [way, place]}
  - add: {from: [made, mul1], name: between}
  - block: {use: critic, from: between, share: c, name: c_between}
  - gradient: {of: c_between, by: between}
  - square
  - sum
  - add: {value: 1.0e-12}
  - sqrt
  - sub: {value: 1}
  - square: {name: penalty}
losses:
  c_loss:
    - mean: {of: c_fake}
    - mean: {of: c, weight: -1}
    - mean: {of: penalty, weight: 10}
  g_loss: {mean: {of: c_fake, weight: -1}}
train:
  batch: 16
  epochs: 4
  seed: 7
  optimizers:
    - {adam: {lr: 0.01, beta1: 0.5}, loss: c_loss, params: ["c_*"]}
    - {adam: {lr: 0.01, beta1: 0.5}, loss: g_loss, params: ["g*"], every: 5}
"""


class Generate(Case):
    def setUp(self):
        super().setUp()
        write(self.model, WGAN_GP)

    def weights(self, out):
        return read(self.path(out + "/weights.safetensors"))

    def test_one_hash(self):
        for device in ("ref", "cpu"):
            self.train(device, device=device)
        self.assertEqual(self.weights("ref"), self.weights("cpu"))
        write(self.model, WGAN_GP.replace("penalty, weight: 10", "penalty, weight: 9"))
        self.train("other")
        self.assertNotEqual(self.weights("ref"), self.weights("other"))

    def test_stopped_at_any_step(self):
        self.train("whole")
        for steps in (1, 4, 5, 9):
            self.train("run", "--steps", str(steps), "--overwrite")
            self.train("run", "--resume")
            self.assertEqual(self.weights("whole"), self.weights("run"), steps)

    def test_killed(self):
        many = ["--epochs", "400"]
        self.train("whole", *many)
        run = [PROGRAM, "train", self.model, "-d", "ref", "-o", self.path("run"), "--quiet", *many]
        with subprocess.Popen([*run, "--checkpoint-every", "7"], cwd=self.folder) as child:
            while child.poll() is None:
                try:
                    read(self.path("run/checkpoint.safetensors"))
                except OSError:
                    time.sleep(0.005)
                    continue
                child.send_signal(signal.SIGKILL)
                break
        self.assertEqual(child.returncode, -signal.SIGKILL, "it ended before it could be killed")
        self.train("run", "--resume", *many)
        self.assertEqual(self.weights("whole"), self.weights("run"))

    def test_sheets(self):
        self.train("run")
        sheets = {}
        for device in ("ref", "cpu"):
            for seed in ("1", "2"):
                self.good("sample", self.model, "-w", self.path("run/weights.safetensors"), "-d",
                          device, "--of", "fake", "--count", "12", "--seed", seed, "-o", "a.png")
                sheets[device, seed] = read(self.path("a.png"))
        self.assertEqual(sheets["ref", "1"], sheets["cpu", "1"])
        self.assertEqual(sheets["ref", "2"], sheets["cpu", "2"])
        self.assertNotEqual(sheets["ref", "1"], sheets["ref", "2"])

    def test_refusals(self):
        for old, new, part in (
                ("of: c_between, by", "by", "`of` is missing"),
                (", by: between", "", "`by` is missing"),
                ("by: between", "by: betwen", "did you mean `between`"),
                ("of: c_between, by: between", "from: c_between", "unknown key `from`"),
                ("by: between", "by: noise", "gradient1"),
                ("- gradient: {of: c_between, by: between}", "- gradient", "needs keys")):
            self.assertIn(old, WGAN_GP)
            write(self.model, WGAN_GP.replace(old, new))
            self.bad(2, ["model.yaml:28:", part], "summary", self.model)
        # through the generator's batch normalisations
        write(self.model, WGAN_GP.replace("of: c_between, by: between", "of: fake, by: noise"))
        self.good("summary", self.model)


if __name__ == "__main__":
    main()
