"""Wrong models, data, weights and folders: each is refused before training, in one line that names
file, line or byte, and what to do; nothing is left behind."""
import errno
import gzip
import os
import resource
import shutil
import struct
import subprocess
import time
import zlib

from common import Case, MODEL, PROGRAM, idx, main, make_model, read, write


class Model(Case):
    def refused(self, old, new, *parts, line=None):
        """The model with `old` replaced by `new` must be refused; `line` is where."""
        self.assertIn(old, MODEL)
        write(self.model, MODEL.replace(old, new, 1))
        where = [self.model + (":%d:" % line if line else ":")]
        for command in (["train", self.model, "--device", "ref"], ["summary", self.model]):
            self.bad(2, where + list(parts), *command)

    def test_unknown_keys(self):
        self.refused("normalize:", "normalise:", "`normalise`", "did you mean `normalize`", line=5)
        self.refused("kernel: 3", "kernal: 3", "`kernal`", "did you mean `kernel`", line=7)
        self.refused("- relu", "- rellu", "`rellu`", "did you mean `relu`", line=8)
        self.refused("momentum: 0.9", "momentun: 0.9", "did you mean `momentum`", line=12)
        self.refused("loss:", "lost:", "did you mean `loss`", line=11)
        self.refused("sgd:", "sdg:", "unknown key `sdg`", "did you mean `sgd`", line=12)
        self.refused("- conv2d:", "- convolution:", "no layer `convolution`", "`conv2d`", line=7)
        self.refused("format: idx", "format: png", "`png`", "`idx`", line=3)

    def test_wrong_types(self):
        self.refused("out: 4", "out: four", "expected", "`four`", "out: 32", line=7)
        self.refused("out: 4", "out: 0", "from 1 to", "`0`", line=7)
        self.refused("out: 4", "out: 4.5", "an integer", line=7)
        self.refused("out: 4", "out: [4]", "sequence", line=7)
        self.refused("lr: 0.1", "lr: fast", "a number above 0", "`fast`", line=12)
        self.refused("lr: 0.1", "lr: 0,1", line=12)
        self.refused("lr: 0.1", "lr: -1", "a number above 0", line=12)
        self.refused("momentum: 0.9", "momentum: 1", "below 1", line=12)
        self.refused("schedule: linear", "schedule: linnear", "did you mean `linear`", line=12)
        self.refused("seed: 7", "seed: -7", "18446744073709551615", line=12)
        self.refused("seed: 7", "seed: 7, leaf: 6", "power of two", line=12)
        self.refused("seed: 7", "seed: 7, leaf: 131072", "1 to 65536", line=12)
        self.refused("std: 0.25", "std: 0", "positive", line=5)
        self.refused("name: tiny", "name: ../tiny", "`/`", line=1)
        self.refused("name: tiny", "name: [tiny]", line=1)
        self.refused("- relu", "- [relu]", "expected a layer", line=8)
        self.refused("- relu", "- {relu: {}, dense: {out: 3}}", "side by side", line=8)
        self.refused("- dense: {out: 3}", "- dense", "needs keys", "out: 10", line=10)
        self.refused("pad: 1", "pad: 1, bias: maybe", "`true` or `false`", line=7)

    def test_optimisers(self):
        sgd = "optimizer: {sgd: {lr: 0.1, momentum: 0.9, schedule: linear}}"
        for new, *parts in (
                ("optimizer: sgd", "`optimizer`", "learning rate"),
                ("optimizer: adm", "did you mean `adam`"),
                ("optimizer: {}", "an optimiser is missing"),
                ("optimizer: {adam: {}, sgd: {lr: 1}}", "`sgd` and `adam`"),
                ("optimizer: {sgd: {momentum: 0.9}}", "`lr` is missing in `sgd`"),
                ("optimizer: {sgd: {lr: 0.1, nesterov: true}}", "`sgd`", "momentum above 0"),
                ("optimizer: {sgd: {lr: 0.1, beta1: 0.9}}", "unknown key `beta1` in sgd"),
                ("optimizer: {adam: {beta2: 1}}", "`beta2`", "below 1"),
                ("optimizer: {adam: {eps: 0}}", "`eps`", "above 0"),
                ("optimizer: {adam: {eps: 1e-60}}", "eps is 1e-60", "32-bit"),
                ("optimizer: {rmsprop: {centered: 1}}", "`centered`", "`true` or `false`"),
                ("optimizer: {lamb: {clip_norm: -1}}", "`clip_norm`", "0 to"),
                ("optimizer: {adagrad: {schedule: step}}", "`schedule`", "needs settings"),
                ("optimizer: {adagrad: {schedule: {step: {}}}}", "`step`", "either `steps` or"),
                ("optimizer: {adagrad: {schedule: {step: {epochs: 0}}}}", "`epochs`", "positive"),
                ("optimizer: {adam: {schedule: {cosine: {min: 1}}}}", "min is 1, expected 0 to lr"),
                ("optimizer: {adam: {schedule: {cosine: , linear: }}}", "`linear` and `cosine`"),
                ("optimizer: {adam: {schedule: {constant: {min: 0.1}}}}", "unknown key `min`"),
                ("optimizer: {adam: {schedule: {one_cycle: {rise: 1}}}}", "`rise`"),
                ("optimizer: {adam: {schedule: {warmup: -5}}}", "`warmup`"),
                ("optimizer: adam, optimizers: [{adam: {}}]", "leave one of them out"),
                ("optimizers: []", "0 optimisers"),
                ("optimizers: [{adam: {}, params: []}]", "at least one pattern"),
                ("optimizers: [{adam: {}, params: [nothing]}]", "no parameter fits `nothing`"),
                (sgd + ", groups: [{params: ['bias']}]", "no parameter fits `bias`", "conv1."),
                (sgd + ", groups: [{weight_decay: 0}]", "`params` is missing"),
                (sgd + ", groups: [{params: ['*'], lr: 1}]", "unknown key `lr`"),
                (sgd + ", frozen: conv1", "`frozen`", "a sequence"),
                (sgd + ", frozen: ['conv9*']", "no parameter fits `conv9*`"),
                (sgd + ", frozen: ['*']", "no parameters to train"),
                ("optimizers: [{adam: {}}, {sgd: {lr: 1}}]", "belongs to optimisers 1 and 2"),
                ("optimizers: [{adam: {}, params: ['conv*']}]", "belongs to no optimiser"),
                (sgd + ", ema: 1", "`ema`", "below 1"),
                (sgd + ", evaluate: ema", "`evaluate`", "no average")):
            self.refused(sgd, new, *parts, line=12)

    def test_missing_keys(self):
        self.refused("loss: softmax_cross_entropy\n", "", "`loss` is missing")
        self.refused("lr: 0.1, ", "", "`lr` is missing", "lr: 0.05", line=12)
        self.refused("kernel: 3, ", "", "`kernel` is missing", line=7)
        self.refused("name: tiny\n", "", "`name` is missing")
        self.refused("images: data/train-images, ", "", "`images` is missing", line=3)
        write(self.model, "")
        self.bad(2, [self.model], "train", self.model)

    def test_impossible_shapes(self):
        self.refused("kernel: 3, pad: 1", "kernel: 9", "conv1", "8", "9", line=7)
        self.refused("maxpool: {kernel: 2}", "maxpool: {kernel: 9}", "maxpool1", line=9)
        self.refused("pad: 1", "pad: 1, groups: 3", "conv1", "groups", line=7)
        self.refused("pad: 1", "pad: 1, dilation: 9", "conv1", line=7)
        self.refused("  - dense: {out: 3}\n", "", "dense: {out: 3}", line=10)
        self.refused("  - maxpool: {kernel: 2}\n", "  - flatten\n  - maxpool: {kernel: 2}\n",
                     "maxpool1", line=10)
        self.refused("  - maxpool: {kernel: 2}\n", "  - flatten\n  - conv2d: {out: 2, kernel: 1}\n",
                     "conv2", line=10)

    def test_messages_name_a_layer_once(self):
        write(self.model, MODEL.replace("kernel: 3, pad: 1", "kernel: 9"))
        text = self.run_program("summary", self.model).stderr
        self.assertEqual((text.count("conv1"), text.count("conv2d")), (1, 1), text)
        write(self.model, MODEL.replace("maxpool: {kernel: 2}", "maxpool: {kernel: 9}"))
        text = self.run_program("summary", self.model).stderr
        self.assertEqual(text.count("maxpool:"), 1, text)

    def test_layers_that_lead_nowhere(self):
        self.refused("- relu", "- relu\n  - dense: {out: 2, name: lost}\n"
                               "  - relu: {from: relu1}", "`lost` does not reach the loss", line=9)

    def test_names(self):
        self.refused("pad: 1", "pad: 1, name: a.b", "letters", line=7)
        self.refused("pad: 1", "pad: 1, name: input", "`input`", line=7)
        self.refused("- relu", "- relu: {name: conv1}", "taken", "line 7", line=8)
        self.refused("- relu", "- relu: {from: conv3}", "`conv3`", "did you mean `conv1`", line=8)
        self.refused("- relu", "- relu: {from: [conv1, input]}", "takes one value", line=8)

    def test_branches(self):
        text = self.good("summary", self.model)
        write(self.model, MODEL.replace("  - maxpool", "  - relu: {name: other, from: conv1}\n"
                                                       "  - maxpool: {kernel: 2, from: relu1}\n"
                                                       "  - maxpool"
                                        ).replace("kernel: 2}\n  - dense", "kernel: 2, from: other}"
                                                                           "\n  - dense"))
        changed = self.good("summary", self.model)
        self.assertIn("from conv1", changed)
        self.assertIn("from other", changed)
        self.assertNotEqual(text.splitlines()[0], changed.splitlines()[0])

    def test_hash_of_the_model(self):
        """Comments, order, defaults written out and training do not change it; the network does."""
        def sha():
            return self.good("summary", self.model).split("sha256 ")[1][:64]
        first = sha()
        same = MODEL.replace("{out: 4, kernel: 3, pad: 1}", "{pad: 1, stride: 1, kernel: 3, out: 4}")
        same = same.replace("loss:", "# comment\ninit: glorot_uniform\nloss:")
        write(self.model, same.replace("seed: 7", "seed: 8").replace("name: tiny", "name: other"))
        self.assertEqual(sha(), first)
        for old, new in (("out: 4", "out: 5"), ("std: 0.25", "std: 0.26"), ("pad: 1", "pad: 1, name: a"),
                         ("loss:", "init: zero\nloss:"), ("- relu\n", "- relu\n  - relu\n")):
            write(self.model, MODEL.replace(old, new))
            self.assertNotEqual(sha(), first, new)

    def test_syntax(self):
        self.refused("kernel: 3,", "kernel: 3, }", line=7)
        self.refused("  - relu", "\t- relu")
        self.refused("name: tiny", "name: tiny\nname: twice", "name", line=2)
        write(self.model, b"\0\1\2")
        self.bad(2, [self.model], "train", self.model)
        self.bad(2, ["nowhere.yaml"], "train", "nowhere.yaml")
        self.bad(2, ["folder"], "train", self.folder)


class Data(Case):
    def refused(self, *parts):
        self.bad(2, [self.model + ":", *parts], "train", self.model, "--device", "ref")

    def test_missing(self):
        for name, line in (("train-images", 3), ("train-labels", 3), ("test-images.gz", 4)):
            os.rename(self.path("data/" + name), self.path("away"))
            self.refused(":%d:" % line, "data/" + name, "No such file",
                         "the folder of the model file", "so this one is `%s/data/" % self.folder)
            os.rename(self.path("away"), self.path("data/" + name))

    def test_paths_are_relative_to_the_file(self):
        os.mkdir(self.path("elsewhere"))
        done = subprocess.run([PROGRAM, "summary", "../model.yaml"], cwd=self.path("elsewhere"),
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_truncated(self):
        path = self.path("data/train-images")
        whole = read(path)
        for size in (0, 1, 3, 4, 10, 16, 17, len(whole) - 1):
            write(path, whole[:size])
            self.refused("data/train-images", "byte")
        write(path, whole + b"x")
        self.refused("data/train-images", "byte")
        write(path, whole)
        path = self.path("data/test-images.gz")
        packed = read(path)
        for size in (1, 9, 30, len(packed) - 1):
            write(path, packed[:size])
            self.refused("data/test-images.gz")
        broken = bytearray(packed)
        broken[len(packed) // 2] ^= 0xff
        write(path, bytes(broken))
        self.refused("data/test-images.gz")

    def test_lies(self):
        images, labels = self.path("data/train-images"), self.path("data/train-labels")
        whole, names = read(images), read(labels)
        write(images, struct.pack(">I", 0xffffffff).join([whole[:4], whole[8:]]))
        self.refused("data/train-images", "byte")
        write(images, idx([48, 8, 8], whole[16:], kind=0x0d))
        self.refused("data/train-images", "byte 2")
        write(images, b"GIF89a" + whole)
        self.refused("data/train-images", "byte")
        write(images, idx([47, 8, 8], whole[16:-64]))
        self.refused("47", "48")
        write(images, whole)
        write(labels, idx([0], b""))
        self.refused("data/train-labels")
        write(labels, names[:8] + b"\3" + names[9:])
        self.refused("dense1", "3 outputs", "data/train-labels", "up to 3", "out: 4",
                     "first 3 of sample 0 at byte 8")
        write(labels, names)
        write(self.path("data/test-labels"), idx([15], bytes([200] * 15)))
        self.refused("data/test-labels", "up to 200")
        write(self.path("data/test-labels"), idx([15], bytes([2] * 14 + [5])))
        self.refused("first 5 of sample 14 at byte 22")

    def test_test_data_of_another_size(self):
        write(self.path("data/test-images.gz"),
              gzip.compress(idx([15, 4, 16], bytes(15 * 64)), mtime=0))
        self.refused(":4:", "4 x 16 x 1", "8 x 8 x 1")


class Weights(Case):
    def setUp(self):
        super().setUp()
        self.train("run", "--steps", "1")
        self.weights = self.path("run/weights.safetensors")

    def refused(self, *parts, status=2, weights=None):
        weights = weights or self.weights
        for command in (["eval", self.model], ["predict", self.model, "--index", "0"],
                        ["train", self.model, "--out", self.path("new")]):
            self.bad(status, parts, *command, "--device", "ref", "--weights", weights)

    def test_broken(self):
        self.refused("nowhere", "No such file", "starts at the current folder", weights="nowhere")
        self.refused("/nowhere", "check the spelling", weights="/nowhere")
        write(self.path("text"), "these are no weights, but a text\n")
        self.refused("text: byte 8: this is no safetensors file", weights=self.path("text"))
        whole = read(self.weights)
        for size in (0, 7, 8, 100, len(whole) - 1):
            write(self.weights, whole[:size])
            self.refused("weights.safetensors")
            self.bad(2, ["weights.safetensors"], "hash", self.weights)
        write(self.weights, b"\xff" * 8 + whole[8:])
        self.refused("weights.safetensors", "byte")

    def test_of_another_model(self):
        write(self.model, MODEL.replace("out: 4", "out: 5"))
        self.refused("weights.safetensors", "conv1")
        write(self.model, MODEL.replace("pad: 1", "pad: 1, name: other"))
        self.refused("weights.safetensors", "other")

    def test_indices(self):
        for index in ("15", "-1", "x", "18446744073709551616", ""):
            self.bad(2, ["samples 0 to 14"], "predict", self.model, "--device", "ref", "--weights",
                     self.weights, "--index=" + index)

    def test_pictures(self):
        def png(width, height, depth=8, color=0, channels=1):
            raw = b"".join(b"\0" + bytes(range(width * channels)) for _ in range(height))
            def chunk(kind, data):
                return (struct.pack(">I", len(data)) + kind + data
                        + struct.pack(">I", zlib.crc32(kind + data)))
            head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
            return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                    + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
        def predict(data):
            write(self.path("a.png"), data)
            return ["predict", self.model, "--device", "ref", "--weights", self.weights, "a.png"]
        fields = self.good(*predict(png(8, 8)), "--probabilities").rstrip("\n").split("\t")
        values = [float(v) for v in fields[3].split()]
        self.assertEqual((fields[0], len(values)), ("a.png", 3))
        self.assertEqual(values.index(max(values)), int(fields[1]))
        self.assertEqual(float(fields[2]), max(values))
        self.good(*predict(png(8, 8, color=2, channels=3)))
        self.bad(2, ["a.png", "9 pixels high", "8 wide", "8 and 8"], *predict(png(8, 9)))
        self.bad(2, ["a.png", "PNG"], *predict(b"no picture"))
        self.bad(2, ["a.png", "PNG"], *predict(png(8, 8)[:60]))
        self.bad(2, ["b.png", "No such file"], *predict(png(8, 8))[:-1], "b.png")


    def test_before_the_device(self):
        """Wrong weights are refused before a device is opened, let alone kernels built."""
        write(self.weights, "text")
        for command in (["eval", self.model], ["train", self.model, "--out", self.path("new")]):
            self.bad(2, ["no safetensors"], *command, "--device", "nosuch", "--weights",
                     self.weights)


class Folders(Case):
    def refused(self, out, *parts, **more):
        self.bad(2, parts, "train", self.model, "--device", "ref", "--out", out, **more)

    def test_a_file_in_its_place(self):
        write(self.path("file"), "x")
        self.refused(self.path("file"), "file", "choose another")
        self.refused(self.path("file/below"), "file", "not a folder")
        self.refused("/dev/full", "/dev/full")
        self.refused("/proc/lockstep", "/proc/lockstep")
        self.refused(self.path("a/b/" + "n" * 300), "too long")

    def test_limit_on_file_sizes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.refused(self.path("out/deep"), "ulimit -f", preexec_fn=limit)

    def test_full_file_system(self):
        """Too small from the start: refused at once. Filling up on the way: an error, and what stands
        there is whole, so that the run can go on."""
        small = self.path("small")
        os.mkdir(small)
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True,
                                                       check=False).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.refused(small + "/out", "free some space")
        subprocess.run(["mount", "-o", "remount,size=110m", small], check=True)
        command = ["train", self.model, "--device", "ref", "--epochs", "2000000", "--quiet"]
        running = subprocess.Popen([PROGRAM, *command, "--out", small + "/out"],
                                   stderr=subprocess.PIPE, text=True)
        while not os.path.exists(small + "/out/checkpoint.safetensors"):
            time.sleep(0.01)
        try:
            with open(small + "/filler", "wb", buffering=0) as filler:
                while filler.write(bytes(1 << 16)) > 0:
                    pass
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOSPC)
        text = running.communicate()[1]
        self.assertEqual(running.returncode, 2, text)
        self.assertIn("free some space", text)
        left = os.listdir(small + "/out")
        self.assertIn("checkpoint.safetensors", left)
        self.assertEqual([name for name in left if name.startswith(".")], [])
        os.remove(small + "/filler")
        steps = str(read(small + "/out/steps.csv").count(b"\n") + 9)
        text = self.good(*command, "--steps", steps, "--out", small + "/out", "--resume")
        other = self.good(*command, "--steps", steps, "--out", self.path("other"))
        self.assertEqual(text, other.replace(self.path("other"), small + "/out"))

    def test_two_runs_in_one_folder(self):
        first = subprocess.Popen([PROGRAM, "train", self.model, "--device", "ref", "--out",
                                  self.path("out"), "--epochs", "1000000"],
                                 stdout=subprocess.PIPE, text=True)
        try:
            while "epoch 1/" not in first.stdout.readline():
                pass
            done = self.run_program("train", self.model, "--device", "ref", "--out",
                                    self.path("out"), "--overwrite")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("another run", done.stderr)
        finally:
            first.kill()
            first.wait()
            first.stdout.close()

    def test_log_file(self):
        self.bad(2, ["--log-json", "nowhere/log"], "train", self.model, "--device", "ref", "--out",
                 self.path("out"), "--log-json", "nowhere/log")

    def test_devices(self):
        self.bad(3, ["xyzzy", "ref"], "train", self.model, "--device", "xyzzy", "--out",
                 self.path("out"))
        self.bad(3, ["99:0"], "train", self.model, "--device", "99:0", "--out", self.path("out"))
        self.bad(2, ["resident", "`auto`, `yes` and `no`"], "train", make_model(
            self.folder, MODEL.replace("seed: 7", "seed: 7, resident: true")), "--device", "ref",
                 "--out", self.path("out"))
        self.bad(2, ["drop_last", "batch"], "train", make_model(self.folder, MODEL.replace(
            "seed: 7", "seed: 7, drop_last: true")), "--batch", "49", "--device", "ref", "--out",
                 self.path("out"))


if __name__ == "__main__":
    main()
