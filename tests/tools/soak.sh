#!/usr/bin/env bash
# Runs every fuzz target of the module, one after another.
# usage: soak.sh [DURATION]     of each target, default 30s
set -euo pipefail
cd "$(dirname "$0")/../.."

duration=${1:-30s}
count=0
failed=()
while IFS=: read -r file target; do
    count=$((count + 1))
    package=./$(dirname "$file")
    echo "soak: $target in $package, $duration"
    if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package"; then
        failed+=("$package $target")
    fi
done < <(git ls-files --cached --others --exclude-standard -- '*_test.go' |
    xargs grep -oE '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/:func /:/' | sort)

if [ ${#failed[@]} -gt 0 ]; then
    printf 'soak: FAILED %s\n' "${failed[@]}" >&2
    exit 1
fi
if [ "$count" -eq 0 ]; then
    echo "soak: no fuzz target found" >&2
    exit 1
fi
echo "soak: $count fuzz targets passed"
