"""What the program says to mistakes in a model file: the user's own words, the word that was meant
first, and what there is. Whatever stands behind a key: an answer, never a crash."""
import re

from common import Case, MODEL, main, write

BLOCK = MODEL.replace("layers:", """blocks:
  basic:
    args: {out: , stride: 1}
    layers:
      - conv2d: {out: $out, kernel: 3, pad: 1, stride: $stride}
      - relu
layers:""").replace("  - relu\n  - max", "  - block: {use: basic, out: 4}\n  - max")


class Messages(Case):
    def says(self, old, new, *parts, model=MODEL, never=()):
        self.assertIn(old, model)
        write(self.model, model.replace(old, new, 1))
        self.bad(2, [self.model + ":", *parts], "summary", self.model)
        text = self.run_program("summary", self.model).stderr
        for part in never:
            self.assertNotIn(part, text)
        return text

    def test_words_of_keys(self):
        self.says("pad: 1", "pad: sam", "key `pad`", "did you mean `same`?", "a number", "`same`")
        self.says("pad: 1", "pad: valid", "without padding leave `pad` out")
        self.says("softmax_cross_entropy", "cross_entropy",
                  "found `cross_entropy`; did you mean `softmax_cross_entropy`? Expected one of",
                  "`mse`", "`bce_with_logits`")
        self.says("softmax_cross_entropy", "nll", "expected one of", "`softmax_cross_entropy`")
        self.says("loss:", "init: xavier\nloss:", "did you mean `glorot_uniform`?", "`he_normal`")

    def test_unknown_layers(self):
        for new, word in (("rellu", "relu"), ("batchnorm", "batch_norm"), ("Conv2D: {out: 3}",
                          "conv2d"), ("fc: {out: 3}", "dense"), ("maxpool2d", "maxpool")):
            text = self.says("- relu", "- " + new, "there is no layer `%s`; did you mean `%s`?"
                             % (new.split(":")[0], word), "docs/models.md")
            self.assertLess(len(text) - len(self.folder), 140, "all words are listed")
        self.says("- relu", "- transformer", "no layer `transformer`", "docs/models.md", "`dense`")

    def test_blocks(self):
        self.good("summary", write(self.model, BLOCK) or self.model)
        self.says("out: $out", "out: $oot", "block `basic` has no argument `oot`",
                  "did you mean `$out`?", "`out` and `stride`", model=BLOCK)
        self.says("out: $out", "out: $width", "no argument `width`", "`out` and `stride`",
                  model=BLOCK)
        self.says("{use: basic, out: 4}", "{use: basic}", "block `basic` needs the argument `out`",
                  "{use: basic, out: 64}", model=BLOCK)
        self.says("use: basic", "use: bottleneck", "no block is named `bottleneck`", "`basic`",
                  model=BLOCK)

    def test_shapes_that_do_not_fit(self):
        conv = "- conv2d: {out: 5, kernel: 3, name: side}\n  "
        self.says("- relu\n", conv + "- add: {from: [conv1, side], name: join}\n",
                  "layer `join`: add: [8,8,4] and [6,6,5] do not fit", "`conv1` [8,8,4]",
                  "`side` [6,6,5]", never=["add_wide", "[1,8,8,4]"])
        self.says("- relu\n", conv + "- concat: {from: [conv1, side]}\n", "`side` [6,6,5]")
        self.says("- relu\n", conv + "- matmul: {from: [conv1, side]}\n",
                  "matmul: [8,8,4] and [6,6,5] do not fit", never=["[1,8,8,4]"])
        self.says("- relu\n", "- flatten\n  - upsample: {factor: 2}\n", "`upsample1`: upsample:",
                  "[256]", never=["resize"])
        self.says("- relu\n", "- upsample: {mode: nearest}\n", "`factor` is missing",
                  never=["resize"])
        self.says("- relu\n", "- resize: {mode: nearest}\n", "a size is missing", "height: 32")

    def test_data_files_in_one_voice(self):
        text = self.says("data/train-images", "data/train-image", "key `images`: `data/train-image`")
        self.assertNotIn("current folder", text)
        self.says("data/train-images", "/nowhere/images", "`/nowhere/images`", "check the spelling",
                  never=["folder of the model"])

    def test_words_of_the_program_stay_inside(self):
        self.says("loss: softmax_cross_entropy", "losses: {'a,b': {mean: {}}}", "a loss is named by",
                  never=["lks_graph"])
        self.says("- relu", "- flatten\n  - conv2d: {out: 3, kernel: 3}", "its input is [256]",
                  "[height,width,channels]")
        self.says("name: tiny", "name: ''", "1 to 64 characters")
        self.says("kernel: 3", "kernel: [3]", "a list of 1", "a list of two")

    def test_whatever_stands_behind_a_key(self):
        """Each value of a file in turn becomes something else."""
        model = BLOCK.replace("loss: softmax_cross_entropy", "losses: {a: {softmax_cross_entropy: "
                              "{of: dense1, weight: 1}}, b: {mean: {of: dense1}}, c: {huber: {of: "
                              "dense1, target: 0, beta: 1}}}")
        write(self.model, model)
        self.good("summary", self.model)
        values = list(re.finditer(r"(?<=: )([\w$][\w./-]*)(?=[,}\n])", model))
        self.assertGreater(len(values), 30)
        for match in values:
            for new in ("", "[]", "{}", "[[1]]", "{a: {b: 1}}", "-1", "99999999999999999999", "1e400",
                        "'x'", "$x", "*x", "!!int 3"):
                write(self.model, model[:match.start()] + new + model[match.end():])
                done = self.run_program("summary", self.model)
                what = "`%s` as `%s`: %s" % (match.group(), new, done.stderr)
                self.assertIn(done.returncode, (0, 2), what)
                if done.returncode == 2:
                    self.assertEqual(done.stderr.count("\n"), 1, what)
                    self.assertTrue(done.stderr.startswith("lockstep: " + self.model), what)

    def test_one_and_many(self):
        text = self.good("train", self.model, "--device", "ref", "--epochs", "1", "--batch", "48")
        self.assertIn("48 samples, batch 48, 1 epoch of 1 step, seed", text)
        text = self.good("train", self.model, "--device", "ref", "--epochs", "2", "--out", "many")
        self.assertIn("2 epochs of 3 steps", text)


if __name__ == "__main__":
    main()
