#!/bin/sh
# From nothing to a trained network: installs what is missing, builds into build/, and trains a
# small convolutional network on the bundled handwritten digits on the CPU, through OpenCL. Ends
# with the sha256 of the weights, which is the same on every device.
#
# Usage: sh tools/demo.sh [options of `lockstep train`, e.g. --device gpu]
set -eu
cd "$(dirname "$0")/.."

sh tools/install.sh build

build() {
    if [ ! -f build/build.ninja ]; then
        meson setup build --buildtype=release -Dtests=false >/dev/null || return 1
    fi
    meson compile -C build
}
echo "Building in build/"
if ! build; then
    echo "That failed; once more from the start"
    rm -rf build
    build
fi

if [ $# -eq 0 ]; then
    set -- --device cpu
fi
build/tools/lockstep train docs/examples/models/lenet.yaml --epochs 3 --overwrite "$@"
