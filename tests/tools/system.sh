#!/usr/bin/env bash
# Installs missing dependencies of the build and the tests that no package manager of theirs
# provides. Without missing ones it does nothing and needs neither root nor the network.
# usage: system.sh [browser | clients | java | release | shells | package ARCH...]
#   browser   also a browser for the page's tests
#   clients   also the programs that commands in the documentation use
#   java      also a Java for Spark
#   release   also what installs and runs releases
#   shells    also the shells for which promlake completes commands
#   package   also the dependencies of packaging functions for these architectures (arm64, x86_64)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Targets that run at once install one after another.
mkdir -p .cache
exec 9>.cache/system.lock
flock 9

missing=()
need() { # need PACKAGE TEST...: the Debian package is missing if the test fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need g++ command -v g++ # DuckDB is C++: its static library needs libstdc++ at link time
need git command -v git # tests/archtest lists the tracked files
need xz-utils command -v xz # captured metrics of tests/bench
need python3-venv "${PYTHON:-python3}" -c 'import ensurepip, venv'

if [ "${1:-}" = package ]; then
    need mold command -v mold # the only linker that links DuckDB statically for arm64, see infra/build.sh
    host=$(uname -m)
    for arch in "${@:2}"; do
        if [ "${host/aarch64/arm64}" = "$arch" ]; then
            continue
        fi
        case $arch in
        arm64) need g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++ ;;
        x86_64) need g++-x86-64-linux-gnu command -v x86_64-linux-gnu-g++ ;;
        esac
    done
fi

if [ "${1:-}" = browser ]; then
    need chromium-headless-shell command -v chromium-headless-shell # the page's tests
fi

if [ "${1:-}" = clients ]; then
    need curl command -v curl
    need jq command -v jq
fi

if [ "${1:-}" = java ]; then
    need openjdk-17-jre-headless command -v java
fi

if [ "${1:-}" = release ]; then
    need zstd command -v zstd
    need qemu-user-static command -v qemu-aarch64-static # runs programs for arm64
    need rpm command -v rpm
    need systemd command -v systemd-analyze
fi

if [ "${1:-}" = shells ]; then
    need zsh command -v zsh
    need fish command -v fish
fi

install_missing() {
    echo "system: installing ${missing[*]}" >&2
    if ! command -v apt-get >/dev/null; then
        echo "system: apt-get is missing; please install ${missing[*]} (Debian's names)" >&2
        exit 1
    fi
    local as_root=() install
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
    fi
    install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${missing[@]}")
    "${install[@]}" >/dev/null || { "${as_root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; }
}

# The page's build and osls require a newer Node.js than Debian 12 has, so a Python package provides it; the Makefile
# adds its folder to the PATH.
has_node() {
    command -v npm >/dev/null &&
        node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit((a === 20 && b >= 19) || a > 20 ? 0 : 1)' 2>/dev/null
}

install_node() {
    echo 'system: installing Node.js into .cache/node' >&2
    rm -rf .cache/node
    "${PYTHON:-python3}" -m venv .cache/node/venv
    .cache/node/venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tests/tools/node.txt
    mkdir -p .cache/node/bin
    ln -s ../venv/bin/node ../venv/bin/npm .cache/node/bin/
}

if [ ${#missing[@]} -gt 0 ]; then
    install_missing
fi
if ! has_node; then
    install_node
fi
