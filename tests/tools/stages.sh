#!/usr/bin/env bash
# Runs targets of make one after another, prints the start and the end of each, and at the end the
# seconds that each took. It ends at the first failure.
# usage: stages.sh TARGET...     MAKE names the make program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

summary=()
finish() { # finish STATUS: prints the seconds of each stage
    echo "test: seconds of each stage"
    printf 'test:   %s\n' "${summary[@]}"
    echo "test: $1 after $SECONDS s"
}

number=0
for stage in "$@"; do
    number=$((number + 1))
    name="stage $number of $#, $stage"
    begin=$SECONDS
    echo "test: $name: started at $(date -u +%H:%M:%S) UTC"
    status=passed
    "${MAKE:-make}" "$stage" || status=FAILED
    took=$((SECONDS - begin))
    summary+=("$(printf '%-16s %5d  %s' "$stage" "$took" "$status")")
    echo "test: $name: $status after $took s"
    if [ "$status" = FAILED ]; then
        finish FAILED
        exit 1
    fi
done
finish passed
