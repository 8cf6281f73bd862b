#!/usr/bin/env bash
# Builds the functions' bootstraps, fully static, and packs them as dist/<arch>/<program>.zip: equal
# sources and tools give equal bytes.
# usage: build.sh ARCH...     arm64 or x86_64
# VERSION is the version that the programs report, BUILDVCS whether they report the commit (auto or
# false); GO and PYTHON name the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
python=${PYTHON:-python3}
ldflags="-s -w -X github.com/promlake/promlake/internal/base/telemetry.version=${VERSION:-dev}"
. infra/toolchain.sh

build() { # build PROGRAM FLAG...
    local program=$1
    shift
    GOGC=off GOMEMLIMIT=1GiB CGO_ENABLED=1 CC=$cc CXX=$cxx GOOS=linux GOARCH=$goarch "$go" build -trimpath -buildvcs="${BUILDVCS:-false}" -tags "$static_tags" "$@" -o "$out/$program/bootstrap" "./$program"
    "$python" infra/pack.py "$out/$program/bootstrap" "$arch" "dist/$arch/$program.zip"
}

for arch in "$@"; do
    toolchain "$arch"
    out=dist/$arch/programs
    mkdir -p "$out"
    exec 9>"dist/$arch/.lock"
    flock 9 # others may build the same files at once
    echo "build: functions for $arch"
    build ingest-fn -ldflags "$ldflags"
    build compact-fn -ldflags "$ldflags"
    build query-fn -ldflags "$ldflags $static_ldflags"
done
