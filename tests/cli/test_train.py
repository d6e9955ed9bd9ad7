"""Training: equal files on every device, after interruptions, and in every locale."""
import hashlib
import json
import os
import pty
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

from common import Case, LENET, MODEL, PROGRAM, main, read, write

# Every file of a run but run.json, which holds device and times.
FILES = ["best.safetensors", "checkpoint.safetensors", "curves.svg", "metrics.csv", "steps.csv",
         "weights.safetensors"]


class Train(Case):
    def files(self, out):
        return {name: hashlib.sha256(read(self.path(out + "/" + name))).hexdigest()
                for name in FILES}

    def need_cpu(self):
        if "type        cpu" not in self.good("devices"):
            self.skipTest("no OpenCL CPU device here")

    def start(self, *args, **more):
        return subprocess.Popen([PROGRAM, "train", self.model, "--device", "ref", *args],
                                cwd=self.folder, **more)

    def wait_for(self, what):
        end = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), end, "nothing happens")
            time.sleep(0.002)

    def test_files(self):
        text = self.train("run")
        weights = read(self.path("run/weights.safetensors"))
        sha = hashlib.sha256(weights).hexdigest()
        self.assertEqual(text, "test accuracy  1.0000\n%s  %s\n"
                         % (sha, self.path("run/weights.safetensors")))
        self.assertEqual(sorted(os.listdir(self.path("run"))), sorted(FILES + ["run.json"]))
        rows = read(self.path("run/metrics.csv")).decode().splitlines()
        self.assertEqual(rows[0],
                         "epoch,steps,train_loss,train_accuracy,test_loss,test_accuracy")
        self.assertEqual([row.split(",")[:2] for row in rows[1:]],
                         [["1", "3"], ["2", "6"], ["3", "9"], ["4", "12"]])
        steps = read(self.path("run/steps.csv")).decode().splitlines()
        self.assertEqual([row.split(",")[:2] for row in steps[1:]],
                         [[str(i + 1), "16"] for i in range(12)])
        # The epoch's loss is the mean of its steps', which have 9 digits here.
        mean = sum(float(row.split(",")[2]) for row in steps[1:4]) / 3
        self.assertAlmostEqual(float(rows[1].split(",")[2]), mean, delta=1e-7)
        hits = sum(int(row.split(",")[3]) for row in steps[1:4])
        self.assertAlmostEqual(float(rows[1].split(",")[3]), hits / 48, delta=1e-8)
        run = json.loads(read(self.path("run/run.json")))
        self.assertEqual(run["result"]["weights_sha256"], sha)
        self.assertEqual((run["finished"], run["training"]["seed"], run["training"]["batch"]),
                         (True, 7, 16))
        self.assertEqual(run["device"]["type"], "ref")
        self.assertEqual(run["contract"], int(self.good("--version").split()[-1]))
        lines = self.good("hash", self.path("run/weights.safetensors")).splitlines()
        self.assertEqual(lines[0], text.splitlines()[-1])
        size = int.from_bytes(weights[:8], "little")
        head = json.loads(weights[8:8 + size])
        for line in lines[1:]:
            digest, name = line.split("  ")[:2]
            begin, end = head[name]["data_offsets"]
            self.assertEqual(digest, hashlib.sha256(weights[8 + size:][begin:end]).hexdigest())
        self.assertEqual(len(lines), len([name for name in head if name != "__metadata__"]) + 1)

    def test_curves(self):
        """Sound XML whatever the name; every epoch is a dot in both panels, all inside the picture."""
        write(self.model, MODEL.replace("name: tiny", "name: 'a & <b>'"))
        self.train("run", "--epochs", "30")
        picture = xml.etree.ElementTree.fromstring(read(self.path("run/curves.svg")))
        space = "{http://www.w3.org/2000/svg}"
        texts = [t.text for t in picture.iter(space + "text")]
        self.assertEqual(texts[0], "a & <b>")
        self.assertLessEqual({"Loss", "Accuracy", "train", "test", "0", "80"}, set(texts))
        self.assertEqual(len(list(picture.iter(space + "circle"))), 2 * 30 + 1)
        lines = [p.get("points").split() for p in picture.iter(space + "polyline")]
        # Each panel: all 90 steps, their average, the test results.
        self.assertEqual([len(line) for line in lines], [90, 40, 30] * 2)
        for line in lines:
            for point in line:
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= 960 and 0 <= y <= 400, point)

    def test_devices_agree(self):
        self.need_cpu()
        self.train("ref")
        self.train("cpu", device="cpu")
        self.assertEqual(self.files("cpu"), self.files("ref"))
        self.train("plain", "--plain", device="cpu")
        self.assertEqual(self.files("plain"), self.files("ref"))
        self.train("threads", "--threads", "3")
        self.assertEqual(self.files("threads"), self.files("ref"))
        self.train("mixed", "--steps", "5")
        self.train("mixed", "--resume", device="cpu")
        self.assertEqual(self.files("mixed"), self.files("ref"))

    def test_lenet(self):
        self.need_cpu()
        lines = [self.good("train", LENET, "--device", device, "--steps", "3", "--quiet", "--out",
                           self.path("run"), "--overwrite").splitlines()
                 for device in ("ref", "cpu")]
        self.assertEqual(lines[0], lines[1])

    def test_seeds_differ(self):
        first = self.train("run")
        self.assertEqual(self.train("run"), first)
        self.assertNotEqual(self.train("run", "--seed", "8"), first)
        self.assertNotEqual(self.train("run", "--batch", "15"), first)

    def test_kill_and_resume(self):
        options = ["--epochs", "60", "--quiet"]
        self.train("whole", *options)
        draw, kills = random.Random(3), 0
        checkpoint = self.path("killed/checkpoint.safetensors")

        def written():
            return os.stat(checkpoint).st_mtime_ns if os.path.exists(checkpoint) else 0
        for every in ("1", "2", "1", "2", "7", "1", "2", "1"):
            before = written()
            more = ["--resume"] if before else []
            running = self.start("--out", self.path("killed"), *options, "--checkpoint-every",
                                 every, *more)
            self.wait_for(lambda: written() != before or running.poll() is not None)
            time.sleep(draw.random() * 0.03)
            running.kill()
            kills += running.wait() == -signal.SIGKILL
        self.assertGreater(kills, 3)
        self.train("killed", *options, "--resume")
        self.assertEqual(self.files("killed"), self.files("whole"))
        self.assertEqual(sorted(os.listdir(self.path("killed"))), sorted(FILES + ["run.json"]))
        self.train("killed", *options, "--resume") # a finished run: once more the same
        self.assertEqual(self.files("killed"), self.files("whole"))

    def test_signals(self):
        options = ["--epochs", "100000", "--out", self.path("a b"), "--quiet"]
        for number in (signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(self.path("a b"), ignore_errors=True)
            running = self.start(*options, "--overwrite", stderr=subprocess.PIPE, text=True)
            self.wait_for(lambda: os.path.exists(self.path("a b/checkpoint.safetensors")))
            running.send_signal(number)
            text = running.communicate()[1]
            self.assertEqual(running.returncode, 128 + number)
            found = re.fullmatch(r"lockstep: stopped after step (\d+); written is `(.*)`, which "
                                 r"--weights takes too, but no final weights yet; go on with: "
                                 r"(.*)\n", text)
            self.assertTrue(found, text)
            self.assertEqual(found[2], self.path("a b/checkpoint.safetensors"))
            self.assertFalse(os.path.exists(self.path("a b/weights.safetensors")))
            self.assertIn("accuracy", self.good("eval", self.model, "--device", "ref", "--weights",
                                                found[2]))
        steps = str(int(found[1]) + 7)
        self.assertEqual(len(read(self.path("a b/steps.csv")).splitlines()), int(found[1]) + 1)
        again = shlex.split(found[3])
        self.assertEqual((again.count("--resume"), again.count("--overwrite")), (1, 0))
        done = subprocess.run([*again, "--steps", steps], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.train("whole", "--epochs", "100000", "--steps", steps)
        self.assertEqual(self.files("a b"), self.files("whole"))

    def test_resume_refuses_another_run(self):
        self.train("run", "--steps", "5")
        before = self.files("run")
        go_on = ["train", self.model, "--device", "ref", "--out", self.path("run"), "--resume"]
        self.bad(2, ["seed"], *go_on, "--seed", "8")
        self.bad(2, ["batch"], *go_on, "--batch", "8")
        self.bad(2, ["epochs"], *go_on, "--epochs", "9")
        self.bad(2, ["leave out --weights"], *go_on, "--weights", "w")
        self.bad(2, ["contradict"], *go_on, "--overwrite")
        for old, new in (("out: 4", "out: 5"), ("std: 0.25", "std: 0.5"),
                         ("loss:", "init: he_normal\nloss:")):
            write(self.model, MODEL.replace(old, new))
            self.bad(2, ["run.json", "another model"], *go_on)
        write(self.model, MODEL.replace("lr: 0.1", "lr: 0.2"))
        self.bad(2, ["lr"], *go_on)
        write(self.model, MODEL)
        labels = read(self.path("data/train-labels"))
        write(self.path("data/train-labels"), labels[:-2] + labels[:-3:-1])
        self.bad(2, ["data"], *go_on)
        write(self.path("data/train-labels"), labels)
        self.assertEqual(self.files("run"), before)
        self.bad(2, ["no checkpoint"], *go_on[:-2], self.path("other"), "--resume")
        self.train("run", "--resume")
        self.train("whole")
        self.assertEqual(self.files("run"), self.files("whole"))

    def test_refusals_come_before_the_device(self):
        """Folder and checkpoint are looked at first: kernels may take minutes. A device that does not
        exist shows the order."""
        def refused(status, part, *args, out="run"):
            self.bad(status, [part], "train", self.model, "--device", "nosuch", "--out",
                     self.path(out), *args)
        refused(2, "no checkpoint", "--resume", out="new")
        refused(3, "nosuch", out="a/b/c")
        write(self.path("file"), "x")
        refused(2, "a file stands there", out="file")
        self.train("run", "--steps", "5")
        os.remove(self.path("run/run.json"))
        refused(2, "not finished")
        refused(2, "--log-json: cannot write `/nowhere/log`", "--log-json", "/nowhere/log", out="b")
        refused(2, "Is a directory", "--log-json", self.folder, out="b")
        refused(2, "a part of the path is a file", "--log-json", self.model + "/log", out="b")
        self.train("run", "--steps", "5", "--overwrite")
        refused(2, "batch", "--resume", "--batch", "8")
        refused(2, "epochs", "--resume", "--epochs", "9")
        refused(2, "at step 5 already, past --steps 4", "--resume", "--steps", "4")
        refused(3, "nosuch", "--resume")

    def test_leftovers(self):
        """Temporary files of processes that are gone are removed, others stay."""
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.train("run", "--steps", "1")
        stay = [".lockstep-%d-0.tmp" % os.getpid(), ".lockstep-x.tmp", ".lockstep-%d-0.tmp2" % gone.pid]
        for name in stay + [".lockstep-%d-0.tmp" % gone.pid, ".lockstep-%d-17.tmp" % gone.pid]:
            write(self.path("run/" + name), "x")
        self.train("run")
        self.assertEqual(sorted(os.listdir(self.path("run"))), sorted(FILES + ["run.json"] + stay))

    def test_resume_refuses_damage(self):
        self.train("run", "--steps", "5")
        go_on = ["train", self.model, "--device", "ref", "--out", self.path("run"), "--resume"]
        for name, change, part in (
                ("checkpoint.safetensors", lambda b: b[:-1], "checkpoint.safetensors"),
                ("checkpoint.safetensors", lambda b: b"\xff" * 8 + b[8:], "byte"),
                ("steps.csv", lambda b: b[:-3], "steps.csv:6"),
                ("steps.csv", lambda b: b.replace(b"\n3,", b"\n4,"), "steps.csv:4"),
                ("steps.csv", lambda b: b"\n".join(b.split(b"\n")[:3]) + b"\n", "ends at step 2"),
                ("metrics.csv", lambda b: b[:-3], "metrics.csv:2"),
                ("metrics.csv", lambda b: b"x" + b, "metrics.csv:1"),
                ("run.json", lambda b: b[:-3], "run.json:")):
            whole = read(self.path("run/" + name))
            write(self.path("run/" + name), change(whole))
            self.bad(2, [part], *go_on)
            write(self.path("run/" + name), whole)
        os.rename(self.path("run/metrics.csv"), self.path("away"))
        self.bad(2, ["metrics.csv", "No such file"], *go_on)

    def test_unfinished_runs_are_kept(self):
        running = self.start("--epochs", "100000", "--out", self.path("run"), "--quiet")
        self.wait_for(lambda: os.path.exists(self.path("run/checkpoint.safetensors")))
        running.kill()
        running.wait()
        for name in os.listdir(self.path("run")): # what the kill cut short; any run tidies it up
            if name.startswith(".lockstep-"):
                os.remove(self.path("run/" + name))
        self.bad(2, ["not finished", "--resume", "--overwrite"], "train", self.model, "--device",
                 "ref", "--out", self.path("run"))
        self.train("run", "--overwrite")
        self.train("whole")
        self.assertEqual(self.files("run"), self.files("whole"))

    def test_finished_runs_are_kept(self):
        again = ["train", self.model, "--device", "ref", "--out", self.path("run")]
        self.train("run", "--steps", "5")
        before = self.files("run")
        self.bad(2, ["is finished", "ended by --steps", "--resume", "--overwrite", "--out"], *again)
        self.bad(2, ["is finished"], *again, "--steps", "9")
        self.assertEqual(self.files("run"), before)
        self.train("run", "--resume")
        self.train("whole")
        self.assertEqual(self.files("run"), self.files("whole"))
        self.bad(2, ["is finished"], *again)
        os.remove(self.path("run/checkpoint.safetensors"))
        self.bad(2, ["is finished"], *again)
        self.good(*again, "--steps", "5", "--overwrite")
        self.assertEqual(self.files("run"), before)

    def test_weights_of_a_checkpoint(self):
        """A checkpoint holds the weights of its step, beside what the optimiser remembers."""
        self.train("run", "--steps", "5")
        weights, checkpoint = (self.path("run/%s.safetensors" % w) for w in ("weights", "checkpoint"))
        for command in (["eval", self.model], ["predict", self.model, "--index", "3"]):
            one, other = (self.good(*command, "--device", "ref", "--weights", w)
                          for w in (weights, checkpoint))
            self.assertEqual(one, other)
        self.assertEqual(self.train("a", "--weights", weights).split()[-2],
                         self.train("b", "--weights", checkpoint).split()[-2])
        write(self.model, MODEL.replace("out: 4", "out: 5"))
        self.bad(2, ["another network"], "eval", self.model, "--device", "ref", "--weights",
                 checkpoint)

    def test_start_weights(self):
        self.train("first")
        weights = self.path("first/weights.safetensors")
        sha = self.train("second", "--weights", weights)
        self.assertNotIn(sha.split()[-2], self.good("hash", weights))
        run = json.loads(read(self.path("second/run.json")))
        self.assertEqual(run["start_weights_sha256"], hashlib.sha256(read(weights)).hexdigest())
        # Weights out of the folder that the new run replaces.
        self.assertEqual(self.train("first", "--weights", weights).split()[-2], sha.split()[-2])

    def test_expected_accuracy(self):
        self.train("run", "--expect-accuracy", "1.0")
        self.bad(2, ["needs test data"], "train", self.no_test_data(), "--expect-accuracy", "0.5")
        # One small step leaves the network undecided.
        write(self.model, MODEL.replace("lr: 0.1", "lr: 0.000001"))
        done = self.run_program("train", self.model, "--device", "ref", "--steps", "1", "--out",
                                self.path("run"), "--expect-accuracy", "0.99", "--quiet",
                                "--overwrite")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^lockstep: test accuracy 0\.\d{4} is below the expected "
                                      r"0\.9900\n$")
        self.assertTrue(os.path.exists(self.path("run/weights.safetensors")))

    def no_test_data(self):
        text = "\n".join(line for line in MODEL.split("\n") if "  test:" not in line)
        write(self.path("untested.yaml"), text)
        return self.path("untested.yaml")

    def test_without_test_data(self):
        text = self.good("train", self.no_test_data(), "--device", "ref", "--out",
                         self.path("run"), "--quiet")
        self.assertEqual(len(text.splitlines()), 1)
        rows = read(self.path("run/metrics.csv")).decode().splitlines()
        self.assertTrue(all(row.endswith(",,") for row in rows[1:]))
        self.good("train", self.path("untested.yaml"), "--device", "ref", "--out",
                  self.path("run"), "--resume")

    def test_numbers_that_are_not_finite(self):
        write(self.model, MODEL.replace("lr: 0.1", "lr: 1000000"))
        done = self.run_program("train", self.model, "--device", "ref", "--out", self.path("run"),
                                "--epochs", "40", "--quiet")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^lockstep: .*step \d+.*\n$")
        self.assertFalse(os.path.exists(self.path("run/weights.safetensors")))

    def test_eval_and_predict(self):
        self.train("run", "--steps", "6")
        row = read(self.path("run/metrics.csv")).decode().splitlines()[-1].split(",")
        same = ["--device", "ref", "--weights", self.path("run/weights.safetensors")]
        self.assertEqual(self.good("eval", self.model, *same),
                         "samples 15\nloss %s\naccuracy %s\n" % (row[4], row[5]))
        done = self.run_program("eval", self.model, *same, "--data", "train",
                                "--expect-accuracy", "1")
        self.assertIn("samples 48\n", done.stdout)
        labels = read(self.path("data/test-labels"))[8:]
        text = self.good("predict", self.model, *same,
                         *[word for i in range(15) for word in ("--index", str(i))])
        lines = [line.split("\t") for line in text.splitlines()]
        right = sum(int(line[1]) == labels[int(line[0])] for line in lines)
        self.assertEqual(len(lines), 15)
        self.assertAlmostEqual(right / 15, float(row[5]), delta=1e-6)

    def test_event_log(self):
        self.train("run", "--log-json", self.path("log"))
        events = [json.loads(line) for line in read(self.path("log")).splitlines()]
        self.assertEqual([e["event"] for e in events], (["step"] * 3 + ["epoch"]) * 4 + ["end"])
        self.assertEqual(events[-1]["weights_sha256"],
                         hashlib.sha256(read(self.path("run/weights.safetensors"))).hexdigest())
        rows = read(self.path("run/metrics.csv")).decode().splitlines()
        self.assertEqual("%.9g" % events[3]["train_loss"], rows[1].split(",")[2])

    def test_terminal(self):
        master, slave = pty.openpty()
        running = self.start("--out", self.path("run"), "--epochs", "30", stdout=slave,
                             stderr=slave, env=dict(os.environ, TERM="xterm"))
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError: # what Linux says at the end
                break
            if not piece:
                break
            text += piece
        os.close(master)
        self.assertEqual(running.wait(), 0)
        text = text.decode()
        self.assertRegex(text, r"epoch \d+/30 \[.*#.*\.+.*\] loss [\d.]+  accuracy [\d.]+  "
                               r"[\d-]+ samples/s  [\d:-]+ left")
        self.assertIn("epoch 30/30  loss", text)
        self.assertIn("\033[1m", text)
        piped = self.run_program("train", self.model, "--device", "ref", "--out",
                                 self.path("run"), "--overwrite")
        self.assertNotRegex(piped.stdout + piped.stderr, "[\r\033]")
        self.assertEqual(len(piped.stdout.splitlines()), 1 + 4 + 2)

    def test_locale(self):
        if not shutil.which("localedef") or not os.path.exists("/usr/share/i18n/locales/de_DE"):
            self.skipTest("no German locale can be made here (package locales)")
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.path("de_DE.UTF-8")],
                       check=False, capture_output=True)
        env = {"LOCPATH": self.folder, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
        shown = subprocess.run([sys.executable, "-c", "import locale;"
                                "locale.setlocale(locale.LC_ALL, '');"
                                "print(locale.format_string('%.1f', 0.5))"],
                               env=dict(os.environ, **env), capture_output=True, text=True,
                               check=True)
        self.assertEqual(shown.stdout.strip(), "0,5") # so the locale is in force
        first = self.train("run")
        before = self.files("run")
        self.assertEqual(self.train("run", "--steps", "5", "--expect-accuracy", "0.1", env=env)
                         .count("\n"), 2)
        self.assertEqual(self.train("run", "--resume", env=env), first)
        self.assertEqual(self.files("run"), before)
        self.assertIn('"lr": 0.1', read(self.path("run/run.json")).decode())


if __name__ == "__main__":
    main()
