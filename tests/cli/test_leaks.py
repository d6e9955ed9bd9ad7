"""One pass through the program on each device. Says little by itself: in a build with the address
sanitizer it is where leaks show."""
import os

from common import Case, main, write


class Leaks(Case):
    def on(self, device):
        self.train("run", "--steps", "5", device=device)
        self.train("run", "--resume", "--log-json", self.path("log"), device=device)
        same = ["--device", device, "--weights", self.path("run/weights.safetensors")]
        self.good("eval", self.model, *same)
        self.good("predict", self.model, *same, "--index", "3", "--probabilities")
        self.good("sample", self.model, *same, "--of", "input", "--count", "3")
        self.good("summary", self.model, "--device", device)
        self.good("hash", self.path("run/best.safetensors"))
        write(self.path("run/checkpoint.safetensors"), b"damaged")
        self.bad(2, ["checkpoint"], "train", self.model, "--device", device, "--out",
                 self.path("run"), "--resume", "--quiet")

    def test_ref(self):
        self.on("ref")

    def test_cpu(self):
        if "type        cpu" not in self.good("devices"):
            self.skipTest("no OpenCL CPU device here")
        self.on("cpu")

    def test_environment(self):
        """A sanitizer that was told not to look would find nothing."""
        if "detect_leaks" in os.environ.get("ASAN_OPTIONS", ""):
            self.assertIn("detect_leaks=1", os.environ["ASAN_OPTIONS"])


if __name__ == "__main__":
    main()
