#!/bin/sh
# lockstep on other OpenCL implementations of this machine, one after the other, all on the CPU:
#   pocl       Debian's pocl-opencl-icd
#   intel      Intel's CPU runtime: pip install intel-opencl-rt intel-cmplr-lib-rt into a venv, whose
#              folder INTEL names
#   rusticl    Mesa's rusticl on llvmpipe, Debian's mesa-opencl-icd; it keeps no subnormals in fma,
#              so a refusal with the reason is what is right
#   oclgrind   the simulator, Debian's oclgrind: memory errors, races, uninitialised values; on small
#              cases and two steps of a tiny network, with the schedules for GPUs
# Each runs the contract harness and trains LeNet; the digest must be that of `ref` in the same run.
# A schedule that fails the harness must be struck off by admission. Prints a Markdown table; what
# is not installed is `not run`. The status is 0 if nothing that ran was wrong.
#
# Usage: sh tests/implementations.sh BUILD [--full] [IMPLEMENTATION...]
# --full trains all epochs of LeNet (default: 5 steps). OUT names the folder for logs.
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
[ $# -ge 1 ] && [ -x "$1/tools/lockstep" ] || {
    sed -n '14,15s/^# //p' "$0"
    exit 2
}
lockstep=$(realpath "$1")/tools/lockstep
contract=$(realpath "$1")/tests/contract/contract
admission=$(realpath "$1")/tests/contract/admission
shift
steps="--steps 5"
[ "${1:-}" = --full ] && {
    steps=
    shift
}
[ $# -gt 0 ] || set -- pocl intel rusticl oclgrind
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(realpath "$out")
export XDG_CACHE_HOME="$out/cache"
lenet=$root/docs/examples/models/lenet.yaml
data=$root/docs/examples/data/mnist10k
table=$out/table.md
bad=0

cat >"$out/tiny.yaml" <<EOF
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
EOF

# digest MODEL FOLDER DEVICE OPTIONS...: of a training; nothing if it failed.
digest() {
    model=$1 folder=$2 device=$3
    shift 3
    # shellcheck disable=SC2086 # $prefix is words
    ${prefix:-} "$lockstep" train "$model" --device "$device" --out "$folder" --overwrite --quiet "$@" \
        >"$folder.log" 2>&1 && sha256sum "$folder/weights.safetensors" | cut -d' ' -f1
}

# row NAME VERSION DEVICE HARNESS DIGEST VERDICT
row() {
    printf '| %s | %s | %s | %s | %s | %s |\n' "$@" | tee -a "$table"
}

# about FIELD LOG: of the first device that `lockstep devices` listed.
about() {
    case $1 in
    name) sed -n '1s/^[^ ]*  \(.*\) on .*/\1/p' "$2" ;;
    driver) sed -n 's/^    driver *//p' "$2" | head -n 1 ;;
    admitted) sed -n 's/^    admitted *//p' "$2" | head -n 1 ;;
    esac
}

# implementation NAME DEVICE MODEL TRAIN-OPTIONS CHECK-OPTIONS: $prefix runs a program on it.
implementation() {
    name=$1 device=$2 model=$3 train=$4 check=$5
    # shellcheck disable=SC2086
    $prefix "$lockstep" devices >"$out/$name.devices" 2>&1
    if ! grep -q '^0:0 ' "$out/$name.devices"; then
        row "$name" "" "" "" "" "not run: no device: $(tail -n 1 "$out/$name.devices" | cut -c1-120)"
        return
    fi
    version=$(about driver "$out/$name.devices")
    on=$(about name "$out/$name.devices")
    admitted=$(about admitted "$out/$name.devices")
    case $admitted in
    no:*)
        # shellcheck disable=SC2086
        $prefix "$lockstep" train "$model" --device "$device" --out "$out/$name" >"$out/$name.log" 2>&1
        status=$?
        if [ $status -eq 3 ] && grep -q "cannot keep the bits" "$out/$name.log"; then
            row "$name" "$version" "$on" "" "" "refused: ${admitted#*cannot keep the bits: }"
        else
            row "$name" "$version" "$on" "" "" "WRONG: status $status, not a refusal with a reason"
            bad=1
        fi
        return
        ;;
    esac

    # shellcheck disable=SC2086
    $prefix "$contract" check "$device" $check >"$out/$name.tap" 2>"$out/$name.err"
    if ! grep -q '^1\.\.[1-9]' "$out/$name.tap"; then
        row "$name" "$version" "$on" "" "" "WRONG: the harness did not end; see $out/$name.err"
        bad=1
        return
    fi
    passed=$(grep '^ok' "$out/$name.tap" | grep -vc '# SKIP')
    failed=$(grep -c '^not ok' "$out/$name.tap")
    declined=$(grep -c '# SKIP' "$out/$name.tap")
    runs=$(sed -n 's/.*: \([0-9]*\) of \([0-9]*\) runs.*/\1 \2/p' "$out/$name.tap" |
        awk '{ p += $1; r += $2 } END { print p " of " r " runs" }')
    verdict=right
    if grep -q '^not ok [0-9]* - check' "$out/$name.tap"; then
        verdict="WRONG: $(grep -A1 '^not ok [0-9]* - check' "$out/$name.tap" | tail -n 1)"
        bad=1
    fi
    sed -n 's/^not ok [0-9]* - \([a-z0-9_]*\) \([a-z0-9_]*\): .*/\1 \2/p' "$out/$name.tap" >"$out/$name.wrong"
    while read -r op schedule; do
        # shellcheck disable=SC2086
        if $prefix "$admission" "$device" "$op" "$schedule" >"$out/$name.$op.$schedule" 2>&1; then
            verdict="$verdict; \`$schedule\` of \`$op\` struck off ($(tail -n 1 "$out/$name.$op.$schedule"))"
        else
            verdict="WRONG and admitted: \`$schedule\` of \`$op\`; $verdict"
            bad=1
        fi
    done <"$out/$name.wrong"

    # shellcheck disable=SC2086
    sha=$(digest "$model" "$out/$name" "$device" $train)
    # shellcheck disable=SC2086
    want=$(prefix='' digest "$model" "$out/ref-${model##*/}" ref $train)
    if [ -z "$sha" ] || [ "$sha" != "$want" ]; then
        verdict="WRONG digest, \`ref\` gives $want; $verdict"
        bad=1
    fi
    if [ -s "$out/$name.complaints" ]; then
        verdict="WRONG: complaints in $out/$name.complaints; $verdict"
        bad=1
    fi
    row "$name" "$version" "$on" "$passed passed, $failed failed, $declined not for it; $runs" \
        "$(printf %.12s "$sha")" "$verdict"
}

# oclgrind_sees WORDS EDIT: complains with WORDS of a relu kernel with this fault in it.
oclgrind_sees() {
    rm -rf "$out/cl"
    cp -r "$root/cl" "$out/cl"
    sed -i "$2" "$out/cl/contract/relu.h"
    : >"$out/oclgrind.complaints"
    LKS_KERNEL_DIR=$out/cl $prefix "$contract" check gpu --op relu --schedule plain --case 3 \
        >"$out/oclgrind.sees" 2>&1
    if ! grep -qi "$1" "$out/oclgrind.complaints"; then
        echo "implementations.sh: oclgrind does not see '$1' where it is" >&2
        bad=1
    fi
}

# alone NAME LIBRARY: the loader sees this implementation only.
alone() {
    mkdir -p "$out/icd-$1"
    printf '%s\n' "$2" >"$out/icd-$1/one.icd"
    prefix="env OCL_ICD_VENDORS=$out/icd-$1"
}

{
    echo '| implementation | version | device | harness: schedules; runs | digest | verdict |'
    echo '|---|---|---|---|---|---|'
} | tee "$table"
for name; do
    case $name in
    pocl)
        if [ -f /etc/OpenCL/vendors/pocl.icd ]; then
            alone pocl "$(cat /etc/OpenCL/vendors/pocl.icd)"
            implementation pocl cpu "$lenet" "$steps" ""
        else
            row pocl "" "" "" "" "not run: no /etc/OpenCL/vendors/pocl.icd"
        fi
        ;;
    intel)
        if [ -f "${INTEL:-/nowhere}/lib/libintelocl.so" ]; then
            # Its folder holds a loader of its own, which would stand in front of the system's.
            mkdir -p "$out/intel-lib"
            ln -sf "$INTEL"/lib/*.so* "$INTEL"/lib/*.rtl "$INTEL"/lib/*.o "$INTEL"/lib/cl.cfg "$out/intel-lib/"
            rm -f "$out"/intel-lib/libOpenCL.so*
            alone intel "$(realpath "$INTEL")/lib/libintelocl.so"
            prefix="$prefix LD_LIBRARY_PATH=$out/intel-lib"
            implementation intel cpu "$lenet" "$steps" ""
        else
            row intel "" "" "" "" "not run: INTEL names no folder with lib/libintelocl.so"
        fi
        ;;
    rusticl)
        if [ -f /etc/OpenCL/vendors/rusticl.icd ]; then
            alone rusticl "$(cat /etc/OpenCL/vendors/rusticl.icd)"
            prefix="$prefix RUSTICL_ENABLE=llvmpipe"
            implementation rusticl cpu "$lenet" "$steps" ""
        else
            row rusticl "" "" "" "" "not run: no /etc/OpenCL/vendors/rusticl.icd"
        fi
        ;;
    oclgrind)
        if command -v oclgrind >/dev/null; then
            # Without optimisation: 21.10 cannot run `freeze`, which the optimiser of its LLVM makes.
            cat >"$out/under-oclgrind" <<EOF
#!/bin/sh
# Its watch over uninitialised values calls values uninitialised in a whole training whose digest is
# right, so it is kept for the harness.
case \$1 in */contract) more=--uninitialized ;; *) more= ;; esac
oclgrind --data-races --check-api \$more --build-options -cl-opt-disable \\
    --log $out/oclgrind.log.\$\$ "\$@"
status=\$?
cat $out/oclgrind.log.\$\$ >>$out/oclgrind.complaints
exit \$status
EOF
            chmod +x "$out/under-oclgrind"
            prefix=$out/under-oclgrind
            oclgrind_sees "Invalid read" 's/F32 v = x\[i\];/F32 v = x[i + 99999999u];/'
            oclgrind_sees "data race" 's/y\[i\] = v <= 0.0f/y[i \/ 2u] = v <= 0.0f/'
            : >"$out/oclgrind.complaints"
            implementation oclgrind gpu "$out/tiny.yaml" "--steps 2" "--max-flops 3000 --regime wide"
        else
            row oclgrind "" "" "" "" "not run: no program oclgrind"
        fi
        ;;
    *)
        echo "implementations.sh: unknown implementation '$name'" >&2
        exit 2
        ;;
    esac
done
exit $bad
