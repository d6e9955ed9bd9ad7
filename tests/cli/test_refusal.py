"""An implementation whose arithmetic loses bits is refused with the reason: Mesa's rusticl on
llvmpipe, which flushes subnormal numbers in fma. Skipped where it is not installed.
"""
import os
import re
import sys

from common import Case, main

VENDOR_FILE = "/etc/OpenCL/vendors/rusticl.icd"
REASON = ("subnormal numbers are flushed to zero in fma", "does not claim CL_FP_DENORM")


class Refusal(Case):
    def setUp(self):
        super().setUp()
        self.env = {"OCL_ICD_VENDORS": VENDOR_FILE, "RUSTICL_ENABLE": "llvmpipe"}
        listed = self.good("devices", env=self.env)
        self.assertIn("llvmpipe", listed)
        self.listed = listed

    def test_devices_says_why(self):
        admitted = re.findall(r"^    admitted +(.*)$", self.listed, re.M)
        self.assertEqual(len(admitted), 2, self.listed)
        self.assertTrue(admitted[0].startswith("no: "), admitted)
        for part in REASON:
            self.assertIn(part, admitted[0])
        self.assertEqual(admitted[1], "yes", "ref")

    def test_nothing_runs_on_it(self):
        for select in ("cpu", "llvmpipe", "rusticl:0"):
            self.bad(3, ("cannot keep the bits", *REASON), "train", self.model, "--device", select,
                     "--out", self.path("run"), env=self.env)
        self.bad(3, ("cannot keep the bits", *REASON), "check", "--device", "cpu", "--op", "relu",
                 env=self.env)
        # No device is asked for: the only one is refused, and `ref` does not take its place.
        self.bad(3, ("cannot keep the bits", *REASON), "train", self.model,
                 "--out", self.path("run"), env=self.env)


if __name__ == "__main__":
    if not os.path.exists(VENDOR_FILE):
        print("skipped: no %s (Debian package mesa-opencl-icd)" % VENDOR_FILE)
        sys.exit(77)
    main()
