#!/bin/sh
# The milestone on this machine's devices: LeNet's digest after three epochs, with a batch of 48
# (whose last batch is short), and after a kill and a resume; and the contract harness.
# Ends with a table; the status is 0 if every digest equals that of tests/golden/lenet.txt and
# every schedule kept its contract.
#
# Usage: sh tests/devices.sh BUILD [DEVICE...]      (default: gpu cpu ref)
# DEVICE is what `lockstep train --device` takes. OUT names the folder for logs (default: a new one).
set -u
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || {
    sed -n '7,8s/^# //p' "$0"
    exit 2
}
build=$1
shift
[ $# -gt 0 ] || set -- gpu cpu ref
out=${OUT:-$(mktemp -d)}
model=docs/examples/models/lenet.yaml
mkdir -p "$out" || exit 2
table=$out/devices.txt
bad=0
: >"$table"

# golden CASE: the digest that this case must give.
golden() {
    awk -v name="$1" '$1 == name { print $2 }' tests/golden/lenet.txt
}

# row DEVICE CASE DIGEST SECONDS
row() {
    want=$(golden "$2")
    if [ "$3" = "$want" ] && [ -n "$want" ]; then
        verdict=right
    else
        verdict="WRONG, expected $want"
        bad=1
    fi
    printf '%-28s %-18s %s  %6s s  %s\n' "$1" "$2" "$3" "$4" "$verdict" >>"$table"
}

digest() {
    sha256sum "$1/weights.safetensors" 2>/dev/null | cut -d' ' -f1
}

for device; do
    folder=$out/$(printf %s "$device" | tr -c 'a-zA-Z0-9\n' _)
    log=$folder.log
    run() { # CASE FOLDER OPTIONS...
        case=$1
        to=$2
        shift 2
        start=$(date +%s)
        "$build/tools/lockstep" train "$model" --device "$device" --out "$to" "$@" >>"$log" 2>&1
        status=$?
        seconds=$(($(date +%s) - start))
        return $status
    }
    : >"$log"
    if ! run epochs3 "$folder/epochs3"; then
        printf '%-28s failed: %s\n' "$device" "$(tail -n 1 "$log")" >>"$table"
        bad=1
        continue
    fi
    row "$device" epochs3 "$(digest "$folder/epochs3")" "$seconds"
    run batch48 "$folder/batch48" --batch 48
    row "$device" batch48 "$(digest "$folder/batch48")" "$seconds"
    # A resume in the middle of an epoch: stopped after 200 steps, then to the end.
    run stop "$folder/resume" --steps 200 --checkpoint-every 200
    run resume "$folder/resume" --resume
    row "$device" epochs3 "$(digest "$folder/resume")" "$seconds"
    if [ -x "$build/tests/contract/contract" ]; then
        if "$build/tests/contract/contract" check "$device" >>"$log" 2>&1; then
            printf '%-28s contract harness passed\n' "$device" >>"$table"
        else
            printf '%-28s contract harness FAILED: see %s\n' "$device" "$log" >>"$table"
            bad=1
        fi
    fi
done
cat "$table"
exit $bad
