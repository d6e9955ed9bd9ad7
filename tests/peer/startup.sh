#!/bin/sh
# Start-up on the CPU device: from the start of the program to its end after one training step of
# LeNet (weights, checkpoint and curve are written; no test data), with every cache empty, and again
# with them filled. Wall and CPU seconds; on a busy machine the CPU seconds tell more.
#
# Usage: sh tests/peer/startup.sh BUILD [COLD [WARM]]      (repeats, default 3 and 10)
set -eu
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] && [ -x "$1/tools/lockstep" ] || {
    sed -n '6s/^# //p' "$0"
    exit 2
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python3 - "$1/tools/lockstep" "$PWD" "$out" "${2:-3}" "${3:-10}" <<'EOF'
import os, re, resource, shutil, statistics, subprocess, sys, time

program, root, out = sys.argv[1:4]
cold, warm = int(sys.argv[4]), int(sys.argv[5])
text = open(root + "/docs/examples/models/lenet.yaml").read().replace("../data", root + "/docs/examples/data")
open(out + "/lenet.yaml", "w").write("\n".join(l for l in text.split("\n") if "  test:" not in l))
env = {**os.environ, "XDG_CACHE_HOME": out + "/cache", "POCL_CACHE_DIR": out + "/pocl"}


def run():
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([program, "train", out + "/lenet.yaml", "--device", "cpu", "--steps", "1",
                    "--quiet", "--overwrite", "--out", out + "/run"], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name, times):
    for what, column in zip(("wall", "CPU"), zip(*times)):
        print("%-5s %-4s s: least %6.2f, median %6.2f, most %6.2f (%d runs)" %
              (name, what, min(column), statistics.median(column), max(column), len(column)))


def empty():
    for folder in ("cache", "pocl"):
        shutil.rmtree(out + "/" + folder, ignore_errors=True)
        os.mkdir(out + "/" + folder)
    return run()


print("load before: %.1f on %d processors" % (os.getloadavg()[0], os.cpu_count()))
row("cold", [empty() for _ in range(cold)])
row("warm", [run() for _ in range(warm)])
kernels = sum(f.endswith(".so") for _, _, files in os.walk(out + "/pocl") for f in files)
print("kernels that PoCL compiled: %d" % kernels)
EOF
