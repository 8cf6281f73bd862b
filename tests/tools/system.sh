#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need and that are missing. Where all is there, it does nothing and needs neither root
# nor the network.
set -euo pipefail

missing=()
need() { # need PACKAGE TEST...: the package is missing if the test fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need g++ command -v g++ # DuckDB is C++: its static library wants libstdc++ at link time
need git command -v git # internal/archtest asks it which files are tracked
need python3-venv "${PYTHON:-python3}" -c 'import ensurepip, venv'

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
echo "system: installing ${missing[*]}" >&2
if ! command -v apt-get >/dev/null; then
    echo "system: apt-get is not here; please install ${missing[*]} (Debian's names)" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${missing[@]}")
"${install[@]}" >/dev/null || { "${as_root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; }
