#!/bin/sh
# lockstep on the other OpenCL implementations of this machine, all on the CPU:
#   pocl       the normal test run's own
#   intel      Intel's CPU runtime from PyPI, in a venv that INTEL names
#   rusticl    Mesa's rusticl on llvmpipe; it keeps no subnormals in fma, so a refusal is what is right
#   oclgrind   the simulator: memory errors, races, uninitialised values, as a GPU and as a CPU
# Each runs the contract harness over all operators, LeNet and the example networks, whose digests must
# be those of tests/golden/. A schedule that fails the harness must be struck off by admission. On
# Oclgrind: the two smallest cases of each kernel that has small ones, and a tiny network.
# Prints a Markdown table; the status is 0 if nothing that ran was wrong. A run that was stopped goes on
# where it was; one with other programs, or another version of the implementation, begins anew.
#
# Usage: sh tests/implementations.sh BUILD [--full] [IMPLEMENTATION...]
# --full adds three epochs of LeNet and the large networks. OUT names the folder for results and logs
# (default: BUILD/implementations), OPS the operators (default: all).
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
if [ $# -lt 1 ] || [ ! -x "$1/tools/lockstep" ] || [ ! -x "$1/tests/contract/contract" ]; then
    sed -n '13,15s/^# //p' "$0"
    exit 2
fi
build=$(realpath "$1")
shift
lockstep=$build/tools/lockstep
contract=$build/tests/contract/contract
networks="mlp autoencoder conv_autoencoder dcgan wgan_gp convlstm prednet transformer resnet20 mobilenet_v2"
epochs=steps4
[ "${1:-}" = --full ] && {
    networks="$networks resnet18 resnet50 alexnet vgg16"
    epochs="steps4 epochs3"
    shift
}
[ $# -gt 0 ] || set -- pocl intel rusticl oclgrind
out=${OUT:-$build/implementations}
mkdir -p "$out"
out=$(realpath "$out")
operators=${OPS:-$("$lockstep" check --list | cut -d' ' -f1)}
bad=0

# ---- steps ----

# step NAME COMMAND...: runs it under $prefix, once; its output in $dir/NAME.log, its status and seconds
# in $dir/NAME.done.
step() {
    at=$dir/$1
    shift
    [ -f "$at.done" ] && return
    from=$(date +%s)
    rm -f "$at.complaints"
    # shellcheck disable=SC2086 # $prefix is words
    env $prefix OCLGRIND_LOG="$at.complaints" "$@" >"$at.log" 2>&1
    echo "$? $(($(date +%s) - from))" >"$at.done"
}

# passed NAME: the step ended with status 0.
passed() {
    grep -q '^0 ' "$dir/$1.done"
}

# begin NAME: the folder of an implementation, emptied if its results are those of other programs.
begin() {
    dir=$out/$1
    mkdir -p "$dir"
    export XDG_CACHE_HOME="$dir/cache"
    # shellcheck disable=SC2086
    env $prefix "$lockstep" devices >"$dir.devices" 2>&1
    { sha256sum <"$lockstep" && sha256sum <"$contract" && cat "$dir.devices"; } >"$dir.now"
    cmp -s "$dir.now" "$dir/stamp" || {
        rm -rf "$dir"
        mkdir -p "$dir"
        mv "$dir.now" "$dir/stamp"
    }
}

# about FIELD: of the first device that `lockstep devices` listed.
about() {
    sed -n "s/^    $1 *//p" "$dir.devices" | head -n 1
}

# wrong TEXT: goes in front of the verdict.
wrong() {
    verdict="WRONG: $1; $verdict"
    bad=1
}

# row NAME VERSION HARNESS DIGESTS VERDICT
row() {
    printf '| %s | %s | %s | %s | %s |\n' "$@" | tee -a "$out/table.md"
}

missing() {
    row "$1" "" "" "" "not run: $2"
}

# ---- what is run ----

# ended LOG: the harness walked to its last line, and no failure was its own.
ended() {
    grep -q '^1\.\.[1-9]' "$1" && ! grep -q '^not ok [0-9]* - check:' "$1"
}

# harness DEVICE OPTIONS...: all operators, a program each, so that one that dies has a name.
harness() {
    device=$1
    shift
    for op in $operators; do
        step "harness.$op" "$contract" check "$device" --op "$op" "$@"
        ended "$dir/harness.$op.log" ||
            wrong "the harness did not end for \`$op\` (status and seconds $(cat "$dir/harness.$op.done"))"
    done
    sed -n 's/^not ok [0-9]* - \([a-z0-9_]*\) \([a-z0-9_]*\): .*/\1 \2/p' "$dir"/harness.*.log >"$dir/failed"
    while read -r op schedule; do
        step "admission.$op.$schedule" "$build/tests/contract/admission" "$device" "$op" "$schedule"
        if passed "admission.$op.$schedule"; then
            verdict="$verdict; \`$op\` \`$schedule\` struck off ($(tail -n 1 "$dir/admission.$op.$schedule.log"))"
        else
            wrong "\`$op\` \`$schedule\` fails and is admitted"
        fi
    done <"$dir/failed"
    schedules=$(cat "$dir"/harness.*.log | awk '
        /# SKIP/ { skip++; next }
        /^ok/ { ok++ }
        /^not ok/ { bad++ }
        /^(not )?ok/ && match($0, /[0-9]+ of [0-9]+ runs/) {
            split(substr($0, RSTART, RLENGTH), n, " "); p += n[1]; r += n[3]
        }
        END { printf "%d passed, %d failed, %d not for it; %d of %d", ok, bad, skip, p, r }')
}

# digests DEVICE: LeNet and the example networks against the published hashes.
digests() {
    right=0 all=0
    for case in $epochs; do
        step "lenet.$case" python3 tests/golden_lenet.py "$lockstep" "$root" "$1" "$case"
        digest "lenet.$case"
    done
    for case in $networks; do
        step "network.$case" python3 tests/golden_models.py "$lockstep" "$root" "$1" "$case"
        digest "network.$case"
    done
    count="$right of $all"
}

digest() {
    all=$((all + 1))
    if passed "$1"; then
        right=$((right + 1))
    else
        wrong "$1: $(tail -n 1 "$dir/$1.log" | cut -c1-120)"
    fi
}

# tiny DEVICE: two steps of a small network, the digest being that of `ref`.
tiny() {
    data=$root/docs/examples/data/mnist10k
    cat >"$dir/tiny.yaml" <<END
name: tiny
data:
  train: {format: idx, images: $data/train-images-idx3-ubyte.gz, labels: $data/train-labels-idx1-ubyte.gz}
layers:
  - conv2d: {out: 4, kernel: 5, stride: 3}
  - relu
  - maxpool: {kernel: 2}
  - dense: {out: 10}
loss: softmax_cross_entropy
train: {batch: 4, epochs: 1, leaf: 2, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}}
END
    # Its watch over uninitialised values complains of values that were written; the digest is right.
    for device in ref "$1"; do
        step "tiny.$device" env -u OCLGRIND_UNINITIALIZED "$lockstep" train "$dir/tiny.yaml" --device "$device" \
            --steps 2 --out "$dir/run.$device" --overwrite --quiet
    done
    all=1 right=0
    if cmp -s "$dir/run.ref/weights.safetensors" "$dir/run.$1/weights.safetensors"; then
        right=1
    else
        wrong "the tiny network has another digest than on \`ref\`"
    fi
    count="$right of $all, tiny"
}

# complaints: what Oclgrind wrote; a row of kernels that nobody complained of.
complaints() {
    for file in "$dir"/*.complaints; do
        [ -s "$file" ] && wrong "complaints in $file"
    done
}

# refused DEVICE: true if the device is not admitted; then training must say why.
refused() {
    case $(about admitted) in no:*) ;; *) return 1 ;; esac
    step refusal "$lockstep" train docs/examples/models/lenet.yaml --device "$1" --out "$dir/run"
    reason=$(about admitted)
    if grep -q '^3 ' "$dir/refusal.done" && grep -q "cannot keep the bits" "$dir/refusal.log"; then
        row "$name" "$(about driver)" "" "" "refused: ${reason#*cannot keep the bits: }"
    else
        wrong "not refused with a reason (status and seconds $(cat "$dir/refusal.done"))"
        row "$name" "$(about driver)" "" "" "$verdict"
    fi
}

# implementation NAME DEVICE HARNESS-OPTIONS...: $prefix puts a program on it.
implementation() {
    name=$1 device=$2
    shift 2
    verdict=right
    begin "$name"
    if ! grep -q '^0:0 ' "$dir.devices"; then
        row "$name" "" "" "" "not run: no device: $(tail -n 1 "$dir.devices" | cut -c1-120)"
        return
    fi
    refused "$device" && return
    harness "$device" "$@"
    case $name in
    oclgrind*) tiny "$device" ;;
    *) digests "$device" ;;
    esac
    complaints
    seconds=$(cat "$dir"/*.done | awk '{ s += $2 } END { print s }')
    row "$name" "$(about driver)" "$schedules" "$count" "$verdict ($seconds s)"
}

# alone NAME LIBRARY: the loader sees this implementation only.
alone() {
    mkdir -p "$out/icd-$1"
    printf '%s\n' "$2" >"$out/icd-$1/one.icd"
    prefix="OCL_ICD_VENDORS=$out/icd-$1"
}

# oclgrind_sees WORDS EDIT: complains with WORDS of a relu kernel with this fault in it.
oclgrind_sees() {
    rm -rf "$out/cl"
    cp -r cl "$out/cl"
    sed -i "$2" "$out/cl/contract/relu.h"
    # shellcheck disable=SC2086
    env $prefix OCLGRIND_LOG="$out/sees" LKS_KERNEL_DIR="$out/cl" \
        "$contract" check gpu --op relu --schedule plain --case 3 >"$out/sees.log" 2>&1
    if ! grep -qi "$1" "$out/sees"; then
        echo "implementations.sh: Oclgrind does not see '$1' where it is" >&2
        bad=1
    fi
}

oclgrind() {
    alone oclgrind "$1"
    # 21.10 cannot run two instructions of its LLVM: `freeze`, which the optimiser makes, and the scopes
    # of pointers that inlining makes.
    export OCLGRIND_BUILD_OPTIONS="-cl-opt-disable -Dalways_inline=unused"
    prefix="$prefix OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_UNINITIALIZED=1"
    oclgrind_sees "Invalid read" 's/F32 v = x\[i\];/F32 v = x[i + 99999999u];/'
    oclgrind_sees "data race" 's/y\[i\] = v <= 0.0f/y[i \/ 2u] = v <= 0.0f/'
    implementation oclgrind-gpu gpu --smallest 2 --max-flops 4000 --regime wide
    prefix="$prefix LD_PRELOAD=$build/tests/contract/libas_cpu.so"
    implementation oclgrind-cpu cpu --smallest 2 --max-flops 4000 --regime wide
}

# vendor NAME FILE PACKAGE [ENVIRONMENT]: an implementation of /etc/OpenCL/vendors.
vendor() {
    if [ -f "/etc/OpenCL/vendors/$2" ]; then
        alone "$1" "$(cat "/etc/OpenCL/vendors/$2")"
        prefix="$prefix ${4:-}"
        implementation "$1" cpu
    else
        missing "$1" "apt-get install $3"
    fi
}

intel() {
    if [ ! -f "${INTEL:-/nowhere}/lib/libintelocl.so" ]; then
        missing intel "python3 -m venv DIR && DIR/bin/pip install intel-opencl-rt intel-cmplr-lib-rt, then INTEL=DIR"
        return
    fi
    # Its folder holds a loader of its own, which would stand in front of the system's.
    libs=$(realpath "$INTEL")/lib
    mkdir -p "$out/intel-lib"
    ln -sf "$libs"/*.so* "$libs"/*.rtl "$libs"/*.o "$libs/cl.cfg" "$out/intel-lib/"
    rm -f "$out"/intel-lib/libOpenCL.so*
    alone intel "$libs/libintelocl.so"
    prefix="$prefix LD_LIBRARY_PATH=$out/intel-lib"
    implementation intel cpu
}

{
    echo '| implementation | version | harness: schedules; runs | digests right | verdict (time of the steps) |'
    echo '|---|---|---|---|---|'
} | tee "$out/table.md"
for wanted; do
    case $wanted in
    pocl) vendor pocl pocl.icd pocl-opencl-icd ;;
    rusticl) vendor rusticl rusticl.icd mesa-opencl-icd RUSTICL_ENABLE=llvmpipe ;;
    intel) intel ;;
    oclgrind)
        library=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
        if [ -n "$library" ]; then
            oclgrind "$library"
        else
            missing oclgrind "apt-get install oclgrind"
        fi
        ;;
    *)
        echo "implementations.sh: unknown implementation '$wanted'" >&2
        exit 2
        ;;
    esac
done
exit $bad
