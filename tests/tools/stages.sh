#!/usr/bin/env bash
# Runs stages one after another, prints the start and the end of each, and at the end the seconds
# and the CPU seconds that each target took. It ends after the first stage that fails. A stage is a
# target of make, or several lanes that run at once. A lane is one target, or several that run one
# after another; the output of lanes follows when all have ended. After a target has failed, no lane
# starts another.
# usage: stages.sh STAGE...     STAGE: LANE[+LANE]..., LANE: TARGET[,TARGET]...
# MAKE names the make program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
touch "$outputs/summary"

used() { # used NAME: sets cpu to the CPU seconds of the ended children of the shell NAME
    times >"$outputs/times.$1" # in a subshell, there would be no children
    cpu=$(tail -n 1 "$outputs/times.$1" | awk '{ split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2] }')
}

run() { # run TARGET: makes it, and notes its seconds
    local begin=$SECONDS status=passed before cpu
    echo "test: $1: started at $(date -u +%H:%M:%S) UTC"
    used "$1" && before=$cpu
    "${MAKE:-make}" "$1" || status=FAILED
    used "$1"
    printf '%-20s %5d s %5d CPU-s  %s\n' "$1" $((SECONDS - begin)) $((cpu - before)) $status >>"$outputs/summary"
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
