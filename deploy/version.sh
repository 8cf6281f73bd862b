#!/usr/bin/env bash
# Prints the version of this checkout: that of the file VERSION if the commit has its tag and
# nothing is changed, otherwise a version before it, such as 0.1.0-dev+217f3961 or
# 0.1.0-dev+217f3961.dirty. Without git, as in an archive of the sources, it is that of the file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(<VERSION)
if ! commit=$(git describe --always --dirty=.dirty --exclude='*' 2>/dev/null) ||
    [ "$(git describe --exact-match --dirty --match="v$version" 2>/dev/null)" = "v$version" ]; then
    echo "$version"
else
    echo "$version-dev+$commit"
fi
