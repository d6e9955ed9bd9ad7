#!/bin/sh
# The tests: all but the suite `long` with gcc; all but the slow ones with clang, and with the address and
# undefined-behaviour sanitizers, which also search the program for leaks.
# Installs what is missing; builds in fresh folders under build-test/. Ends with a line
# "N passed, N failed"; the status is not 0 if any failed.
#
# Usage: sh tools/test.sh
set -u
cd "$(dirname "$0")/.."
jobs=$(nproc)
passed=0
failed=0

sh tools/install.sh test || exit 2
rm -rf build-test
mkdir build-test

# count NAME LOG: adds the results of a `meson test` to the sums and names what failed.
count() {
    counts=$(python3 - "$1" "$2" <<'PY'
import json, os, sys
name, path = sys.argv[1:]
good = bad = 0
for line in open(path, encoding="utf-8") if os.path.exists(path) else []:
    test = json.loads(line)
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        good += 1
    elif test["result"] == "SKIP":
        print("%s: skipped: %s" % (name, test["name"]), file=sys.stderr)
    else:
        bad += 1
        print("%s: %s: %s\n%s\n%s" % (name, test["result"], test["name"],
              test.get("stdout", "")[-4000:], test.get("stderr", "")[-4000:]), file=sys.stderr)
if good + bad == 0:
    bad = 1
    print("%s: no test ran" % name, file=sys.stderr)
print(good, bad)
PY
)
    passed=$((passed + ${counts% *}))
    failed=$((failed + ${counts#* }))
}

# suite NAME COMPILER "SETUP OPTIONS" "TEST OPTIONS": configures, builds, tests, counts.
suite() {
    folder=build-test/$1
    echo "== $1: building"
    # shellcheck disable=SC2086 # options are words
    if ! CC=$2 meson setup "$folder" $3 >"$folder.log" 2>&1 ||
        ! meson compile -C "$folder" -j "$jobs" >>"$folder.log" 2>&1; then
        tail -n 40 "$folder.log"
        failed=$((failed + 1))
        return
    fi
    echo "== $1: testing"
    # shellcheck disable=SC2086
    meson test -C "$folder" --no-rebuild --num-processes "$jobs" $4 2>&1 | grep -E '^ *[0-9]+/[0-9]+ '
    count "$1" "$folder/meson-logs/testlog.json"
}

suite gcc gcc "--buildtype=release" "--no-suite long"
suite clang clang "--buildtype=release" "--no-suite slow"

# Leaks are looked for in the plain program alone (tests/cli says so itself): test programs fork,
# and forked children are not searched.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
suite sanitizers gcc "--buildtype=debugoptimized -Db_sanitize=address,undefined" \
    "--no-suite slow --no-suite memory --timeout-multiplier 4"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
