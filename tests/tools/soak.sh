#!/usr/bin/env bash
# Runs the long tests: upstream's PromQL suite over every layout of the store, the long forms of the
# tests of queries, random PromQL against upstream's engine, random timelines of alerts in which the
# rule function is killed at every request, the simulation of the store's protocol with many
# schedules, its model with larger systems, an hour of hostile and random requests
# (PROMLAKE_RESOURCE_SECONDS), all packages with the race detector, and every fuzz target, one after
# another.
# usage: soak.sh [DURATION]     of each fuzz target, default 30s
# PROMLAKE_SIM_SCHEDULES (default 20000; 1000000 take a night), PROMLAKE_FUZZPROMQL_QUERIES (default
# 200000) and PROMLAKE_RULE_TIMELINES (default 1000) set the lengths.
set -euo pipefail
cd "$(dirname "$0")/../.."

duration=${1:-30s}
echo "soak: upstream's PromQL suite over every layout, and the long forms of the tests of queries"
PROMLAKE_SOAK=1 go test -count=1 -timeout 0 ./internal/query ./tests/promql ./tests/sql
echo "soak: random PromQL"
PROMLAKE_FUZZPROMQL_QUERIES=${PROMLAKE_FUZZPROMQL_QUERIES:-200000} PROMLAKE_FUZZPROMQL_SEED=${PROMLAKE_FUZZPROMQL_SEED:-$((RANDOM * 1000000))} \
    go test -run '^TestDifferential$' -count=1 -v -timeout 0 ./tests/fuzzpromql
echo "soak: rules in functions that are killed at every request"
go test -run '^Test(TimelinesEqualUpstreams|(TimelinesKilled|Killed)AtEveryRequest)$' -count=1 -v -timeout 0 ./internal/rules/rulefn \
    -args -steptimelines "${PROMLAKE_RULE_TIMELINES:-1000}" -timelines "${PROMLAKE_RULE_TIMELINES:-1000}" -timelines-from "${PROMLAKE_RULE_SEED:-$((RANDOM * 1000000))}" -kills 0
echo "soak: simulation"
PROMLAKE_SIM_SCHEDULES=${PROMLAKE_SIM_SCHEDULES:-20000} PROMLAKE_SIM_SEED=${PROMLAKE_SIM_SEED:-$RANDOM} \
    go test -run '^TestSimulation$' -count=1 -v -timeout 0 ./tests/sim
echo "soak: model"
PROMLAKE_MODEL_LARGE=1 go test -count=1 -v -parallel 1 -timeout 0 ./tests/model
echo "soak: hostile and random requests"
PROMLAKE_RESOURCE_SECONDS=${PROMLAKE_RESOURCE_SECONDS:-3600} PROMLAKE_RESOURCE_SEED=${PROMLAKE_RESOURCE_SEED:-$RANDOM} \
    go test -count=1 -v -timeout 0 ./tests/resource
echo "soak: all packages with the race detector"
go test -race -p 1 -timeout 0 ./internal/... ./cmd/... ./*-fn
count=0
failed=()
while IFS=: read -r file target; do
    count=$((count + 1))
    package=./$(dirname "$file")
    echo "soak: $target in $package, $duration"
    # Decoders share goroutines, so coverage varies a little; minimising every find for a minute
    # would take all of the time.
    if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 10x "$package"; then
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
