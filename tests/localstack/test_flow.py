"""A real Prometheus scrapes a real node_exporter and writes to the stack, and both answer alike."""

import json
import math
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from stack.doors import Door
from stack.running import Stack
from support.peers import NODE, SELF, Prometheus, evaluation_times
from support.programs import Programs, wait_until
from test_prometheus import EXACT, RANGE_SECONDS, by_labels, sorted_sets

TENANT = "team-a"
SCRAPES = 15
SCHEDULE_SECONDS = 300.0
CATCH_UP_SECONDS = 300.0
DOORS = ("gateway", "function URL")


@dataclass(frozen=True)
class Flow:
    """A Prometheus and the stack that it writes to, with evaluation times at which both hold all samples."""

    prometheus: Door
    doors: dict[str, Door]
    start: float
    end: float


@pytest.fixture(scope="module")
def flow(stack: Stack, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """Writes for some seconds, until the schedule has compacted the first segments."""
    doors = stack.doors(TENANT)
    at = urllib.parse.urlsplit(doors["gateway"].url)
    writer = f"http://{TENANT}:{stack.description['tokens'][TENANT]}@{at.netloc}"
    ticks = planned(stack)
    prometheus = Prometheus(programs, tmp_path_factory.mktemp("prometheus") / "peer", [writer])
    try:
        first = prometheus.wait_for_scrapes(SCRAPES)
        wait_until(lambda: has_block(stack) and planned(stack) > ticks, "the schedule to compact", SCHEDULE_SECONDS)
        start, end = evaluation_times(prometheus.client, first)
        wait_until(lambda: caught_up(doors["gateway"], end), "the stack to catch up", CATCH_UP_SECONDS)
        yield Flow(Door(prometheus.url), doors, start, end)
    finally:
        prometheus.cleanup()


def planned(stack: Stack) -> int:
    """Returns the number of runs of the plan function."""
    return stack.log("plan").count('"msg":"planned"')


def has_block(stack: Stack) -> bool:
    return any(key.endswith("/meta.json") for key in stack.keys(f"v1/{TENANT}/blocks/"))


def caught_up(door: Door, end: float) -> bool:
    """Reports whether every scrape up to end has arrived: each job's newest one is later."""
    got = {s["metric"]["job"]: float(s["value"][1]) for s in door.ask("query", query="timestamp(up)")["result"]}
    return set(got) == {NODE, SELF} and min(got.values()) > end


def over_range(door: Door, expr: str, flow: Flow) -> dict[str, list[Any]]:
    times = {"start": repr(flow.start + RANGE_SECONDS), "end": repr(flow.end), "step": "1"}
    return by_labels(door.ask("query_range", query=expr, **times))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("expr", EXACT)
def test_same_numbers(flow: Flow, door: str, expr: str) -> None:
    want = over_range(flow.prometheus, expr, flow)
    assert want, "the question must have an answer"
    assert over_range(flow.doors[door], expr, flow) == want


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("expr", ["node_load1", "sum by (mode) (count_over_time(node_cpu_seconds_total[5s]))"])
def test_same_instant(flow: Flow, door: str, expr: str) -> None:
    want, got = (d.ask("query", query=expr, time=repr(flow.end)) for d in (flow.prometheus, flow.doors[door]))
    assert want["result"]
    assert by_set(got) == by_set(want)


def by_set(data: dict[str, Any]) -> dict[str, Any]:
    return {json.dumps(s["metric"], sort_keys=True): s["value"] for s in data["result"]}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("selector", ["{job='node'}", "{job='prometheus'}"])
def test_same_samples(flow: Flow, door: str, selector: str) -> None:
    """The stack holds exactly the scraped samples, once, with times, values and labels."""
    form = {"query": f"{selector}[{math.floor(flow.end - flow.start)}s]", "time": repr(flow.end)}
    want, got = (d.ask("query", **form) for d in (flow.prometheus, flow.doors[door]))
    assert len(want["result"]) > 100
    assert by_labels(got) == by_labels(want)


@pytest.mark.parametrize("door", DOORS)
def test_same_names(flow: Flow, door: str) -> None:
    peer, ours = flow.prometheus, flow.doors[door]
    times = {"start": repr(flow.start), "end": repr(flow.end)}
    assert ours.ask("labels", **times) == peer.ask("labels", **times)
    for label in ("__name__", "job", "mode", "device"):
        form = {"match": "{job='node'}", **times}
        assert ours.ask(f"label/{label}/values", "GET", **form) == peer.ask(f"label/{label}/values", "GET", **form)
    selector = {"match": "{job='node'}", **times}
    assert sorted_sets(ours.ask("series", **selector)) == sorted_sets(peer.ask("series", **selector))


@pytest.mark.parametrize("door", DOORS)
def test_metadata(flow: Flow, door: str) -> None:
    wait_until(lambda: "node_load1" in flow.doors[door].ask("metadata", "GET"), "metadata")
    assert flow.doors[door].ask("metadata", "GET", metric="node_load1") == {
        "node_load1": [{"type": "gauge", "help": "1m load average.", "unit": ""}]
    }


def test_segments_became_blocks(flow: Flow, stack: Stack) -> None:  # noqa: ARG001 (it must have flowed)
    found = stack.inspect(TENANT)
    assert found["manifest"]["generation"] > 0
    assert sum(block["samples"] for block in found["blocks"]) > 0
    assert found["garbage"]["consumed"]["objects"] > 0
    assert found["garbage"]["foreign"]["objects"] == 0


def test_dead_letter_queue_stays_empty(flow: Flow, stack: Stack) -> None:  # noqa: ARG001 (it must have flowed)
    assert stack.waiting("DeadLetterQueueUrl") == 0


def test_functions_write_their_own_metrics(flow: Flow, stack: Stack) -> None:  # noqa: ARG001 (it must have flowed)
    """Their own metrics arrive in a tenant of their own, on the same path."""
    own = stack.doors("promlake")["gateway"]

    def told() -> set[str]:
        stack.tick()  # they write metrics only after a job
        result = own.ask("query", query="count by (function) (promlake_function_invocations_total)")["result"]
        found = {s["metric"]["function"] for s in result}
        if stack.name("plan") in found:
            stack.end("plan")  # a new process plans at once for a tenant that was idle; this one waits for minutes
        return found

    wait_until(
        lambda: told() >= {stack.name(f) for f in ("ingest", "flush", "plan", "compact", "query")},
        "metrics of all functions",
        SCHEDULE_SECONDS,
    )


def test_the_folder_of_a_function_keeps_its_log(flow: Flow, stack: Stack) -> None:  # noqa: ARG001 (it must have flowed)
    for function in ("ingest", "flush", "plan", "compact", "query"):
        assert stack.log(function), function
        assert "panic" not in stack.log(function)
    assert Path(stack.description["state"], "functions").is_dir()
