#!/usr/bin/env bash
# Builds the functions' bootstraps, fully static, and packs them as dist/<arch>/<program>.zip: equal
# sources and tools give equal bytes.
# usage: build.sh ARCH...     arm64 or x86_64
# VERSION is the version that the programs report; GO and PYTHON name the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
python=${PYTHON:-python3}
ldflags="-s -w -X github.com/promlake/promlake/internal/telemetry.version=${VERSION:-dev}"
host=$(uname -m)

# gcc finds mold there as ld. GNU ld fails to link DuckDB for arm64 (more than 32 KiB of GOT), and
# LLVM's lld links a program that crashes.
linker=$PWD/.cache/ld
mkdir -p "$linker"
ln -sfn "$(command -v mold)" "$linker/ld"

build() { # build PROGRAM CGO GOARCH FLAG...
    local program=$1 cgo=$2 goarch=$3
    shift 3
    CGO_ENABLED=$cgo GOOS=linux GOARCH=$goarch "$go" build -trimpath -buildvcs=false "$@" -o "$out/$program/bootstrap" "./$program"
    "$python" infra/pack.py "$out/$program/bootstrap" "$arch" "dist/$arch/$program.zip"
}

for arch in "$@"; do
    case $arch in
    arm64) goarch=arm64 cross=aarch64-linux-gnu ;;
    x86_64) goarch=amd64 cross=x86_64-linux-gnu ;;
    *)
        echo "build: unknown architecture $arch: arm64 or x86_64" >&2
        exit 2
        ;;
    esac
    cc=gcc cxx=g++
    if [ "${host/aarch64/arm64}" != "$arch" ]; then
        cc=$cross-gcc cxx=$cross-g++
    fi
    out=dist/$arch/programs
    mkdir -p "$out"
    echo "build: functions for $arch"
    build ingest-fn 0 "$goarch" -ldflags "$ldflags"
    build compact-fn 0 "$goarch" -ldflags "$ldflags"
    # DuckDB is C++. netgo and osusergo avoid the dynamic parts of the C library; the linker still
    # warns of them.
    CC=$cc CXX=$cxx build query-fn 1 "$goarch" -tags netgo,osusergo \
        -ldflags "$ldflags -linkmode external -extldflags '-static -B$linker'"
done
