#!/usr/bin/env bash
# Runs stages one after another, prints the start and the end of each, and at the end the seconds
# that each target took. It ends after the first stage that fails. A stage is a target of make, or
# several lanes that run at once. A lane is one target, or several that run one after another; the
# output of lanes follows when all have ended. After a target has failed, no lane starts another.
# usage: stages.sh STAGE...     STAGE: LANE[+LANE]..., LANE: TARGET[,TARGET]...
# MAKE names the make program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
touch "$outputs/summary"

run() { # run TARGET: makes it, and notes its seconds
    local begin=$SECONDS status=passed
    echo "test: $1: started at $(date -u +%H:%M:%S) UTC"
    "${MAKE:-make}" "$1" || status=FAILED
    printf '%-20s %5d  %s\n' "$1" $((SECONDS - begin)) $status >>"$outputs/summary"
    echo "test: $1: $status after $((SECONDS - begin)) s"
    [ $status = passed ] || touch "$outputs/failed"
}

lane() { # lane TARGET,...: keeps the output of each target, and prints its end
    local target targets
    IFS=, read -ra targets <<<"$1"
    for target in "${targets[@]}"; do
        [ ! -e "$outputs/failed" ] || return 0
        run "$target" &>"$outputs/$target.log"
        tail -n 1 "$outputs/$target.log"
    done
}

for stage in "$@"; do
    IFS=+ read -ra lanes <<<"$stage"
    if [ ${#lanes[@]} = 1 ]; then
        run "$stage"
    else
        echo "test: at once: ${lanes[*]}"
        for lane in "${lanes[@]}"; do
            lane "$lane" &
        done
        wait
        cat "$outputs"/*.log
        rm "$outputs"/*.log
    fi
    if [ -e "$outputs/failed" ]; then
        break
    fi
done
echo "test: seconds of each target"
sed 's/^/test:   /' "$outputs/summary"
if [ -e "$outputs/failed" ]; then
    echo "test: FAILED after $SECONDS s"
    exit 1
fi
echo "test: passed after $SECONDS s"
