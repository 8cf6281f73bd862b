#!/usr/bin/env bash
# Runs stages one after another, prints the start and the end of each, and at the end the seconds
# that each took. It ends after the first stage that fails. A stage is a target of make, or several
# that run at once: the output of these follows when all have ended.
# usage: stages.sh TARGET[+TARGET]...     MAKE names the make program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT

run() { # run STAGE
    local targets target status=0
    local -A running
    IFS=+ read -ra targets <<<"$1"
    if [ ${#targets[@]} = 1 ]; then
        "${MAKE:-make}" "$1"
        return
    fi
    for target in "${targets[@]}"; do
        "${MAKE:-make}" "$target" >"$outputs/$target" 2>&1 &
        running[$target]=$!
    done
    for target in "${targets[@]}"; do
        wait "${running[$target]}" || status=$?
    done
    for target in "${targets[@]}"; do
        echo "test: output of $target:"
        cat "$outputs/$target"
    done
    return $status
}

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
    run "$stage" || status=FAILED
    took=$((SECONDS - begin))
    summary+=("$(printf '%-32s %5d  %s' "$stage" "$took" "$status")")
    echo "test: $name: $status after $took s"
    if [ "$status" = FAILED ]; then
        finish FAILED
        exit 1
    fi
done
finish passed
