#!/usr/bin/env bash
# Builds the Python wheel of each architecture into dist/, or into OUT, with a fully static program
# promlake that has all service discoveries.
# usage: build.sh ARCH...     arm64 or x86_64
# VERSION is the version of the program and of the wheel, BUILDVCS whether the program reports the
# commit (auto or false); GO and HATCHLING name the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. infra/toolchain.sh

for arch in "$@"; do
    toolchain "$arch"
    program=dist/$arch/wheel/promlake
    echo "build: wheel for $arch"
    GOGC=off GOMEMLIMIT=1GiB CC=$cc CXX=$cxx CGO_ENABLED=1 GOOS=linux GOARCH=$goarch "${GO:-go}" build -trimpath -buildvcs="${BUILDVCS:-false}" -tags "$static_tags,all_sd" \
        -ldflags "-s -w -X github.com/promlake/promlake/internal/base/telemetry.version=${VERSION:-dev} $static_ldflags" -o "$program" ./cmd/promlake
    PROMLAKE_WHEEL_PROGRAM=$program PROMLAKE_WHEEL_VERSION=${VERSION:-} "${HATCHLING:-hatchling}" build -t wheel -d "${OUT:-dist}"
done
