#!/bin/sh
# Installs the packages of tools/packages.txt that are missing, with apt-get, as root or through
# sudo. Says what it installs; does nothing, without the network, if all are there.
#
# Usage: sh tools/install.sh build | test      (`test` means both)
set -eu

list=$(dirname "$0")/packages.txt
case ${1:-} in
build) words='^build ' ;;
test) words='^(build|test) ' ;;
*)
    echo "usage: sh tools/install.sh build | test" >&2
    exit 2
    ;;
esac

missing=
for package in $(grep -E "$words" "$list" | cut -d' ' -f2); do
    # The name may carry an architecture, and be provided by another package.
    if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
        missing="$missing $package"
    fi
done
if [ -z "$missing" ]; then
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install.sh: no apt-get here; install the equivalents of:$missing" >&2
    exit 2
fi
root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "install.sh: run as root, or install sudo; missing packages:$missing" >&2
        exit 2
    fi
    root=sudo
fi
echo "Installing with apt-get:$missing"
$root apt-get update -q
# shellcheck disable=SC2086 # one word a package
$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
