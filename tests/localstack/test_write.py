"""Both protocols in both modes: acknowledged samples are in the answers of the gateway and of the function's own URL."""

import functools
import hashlib
import secrets
import time
import urllib.parse
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge, delete_from_gateway, push_to_gateway, pushadd_to_gateway
from prometheus_client.exposition import basic_auth_handler
from stack.doors import Door, Samples
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import Series

START = 1_760_000_400_000
DOORS = ("gateway", "function URL")
MODES = ("buffered", "direct")
MESSAGE_BYTES = 1 << 20
PAYLOAD_BYTES = 6 << 20
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, quiet: Stack) -> Iterator[str]:
    quiet.set("ingest", PROMLAKE_INGEST_MODE=request.param)
    yield request.param
    quiet.set("ingest", PROMLAKE_INGEST_MODE="buffered")


@pytest.fixture
def tenant() -> str:
    return f"write-{secrets.token_hex(4)}"


def batch(count: int, noise: int = 0) -> list[Series]:
    """Returns series of one sample each; 128 * noise bytes of each hardly compress."""
    return [
        Series(
            {"__name__": "written", "number": str(n)}
            | ({"noise": "".join(hashlib.sha512(f"{n} {i}".encode()).hexdigest() for i in range(noise))} if noise else {}),
            [(START + n, n + 0.5)],
        )
        for n in range(count)
    ]


def expected(written: list[Series]) -> Samples:
    return {frozenset(s.labels.items()): list(s.samples) for s in written}


@pytest.mark.parametrize("version", [1, 2])
def test_written_samples_are_answered(quiet: Stack, mode: str, version: int, tenant: str) -> None:
    written, doors = batch(100), quiet.doors(tenant)
    reply = doors["gateway"].write(written, version)
    assert reply.status == 204, reply
    if version == 2:
        assert reply.headers["x-prometheus-remote-write-samples-written"] == "100"
    if mode == "direct":  # no wait without a queue; a repeated request becomes another segment
        assert doors["gateway"].write(written, version).status == 204
        assert len(quiet.keys(f"v1/{tenant}/segments/")) == 2
        assert doors["gateway"].samples("written", START - 1, START + 1000) == expected(written)
    for door in doors.values():
        wait_until(lambda: door.samples("written", START - 1, START + 1000) == expected(written), "the samples")  # noqa: B023


def test_larger_than_a_message_and_than_a_payload(quiet: Stack, tenant: str) -> None:
    """A large request is split at its series. The gateway refuses a large answer with advice; the function's own URL streams it."""
    written, doors, before = batch(2000, noise=10), quiet.doors(tenant), len(quiet.sent())
    assert doors["gateway"].write(written).status == 204
    sizes = [len(body) for body in quiet.sent()[before:]]
    assert len(sizes) > 1
    assert max(sizes) <= MESSAGE_BYTES
    total = f"sum(count_over_time(written[{len(written)}ms]))"

    def count() -> int:
        data = doors["gateway"].ask("query", query=total, time=repr((START + len(written) - 1) / 1000))
        return sum(int(s["value"][1]) for s in data["result"])

    wait_until(lambda: count() == len(written), "the samples")

    copies = " or ".join(f"label_replace(written, 'copy', '{n}', '', '')" for n in range(3))
    question = urllib.parse.urlencode({"query": copies, "time": repr(START / 1000 + 60)}).encode()
    gateway, url = (doors[name].send("POST", "/api/v1/query", question, Content_Type=FORM) for name in DOORS)
    assert (url.status, url.body.count(b'"metric"')) == (200, 3 * len(written))
    assert len(url.body) > PAYLOAD_BYTES
    assert gateway.status in (413, 422), gateway
    assert b"limit" in gateway.body or b"6" in gateway.body


def registry(**values: float) -> CollectorRegistry:
    out = CollectorRegistry()
    for name, value in values.items():
        Gauge(name, name, registry=out).set(value)
    return out


def test_pushes(quiet: Stack, mode: str) -> None:
    """Prometheus' own client pushes through the gateway. A PUT ends what it replaces, and a DELETE ends the group."""
    token = quiet.description["tokens"]["team-a"]
    door, job = Door(quiet.description["gateway"], token), f"back/up-{secrets.token_hex(4)}"
    group = {"job": job, "grouping_key": {"instance": ""}, "handler": functools.partial(basic_auth_handler, username="any", password=token)}
    states, requests = quiet.keys("v1/team-a/pushes/"), len(quiet.proxy.seen())

    def values(form: str = "%s") -> dict[str, float]:
        selector = f'{{job="{job}",__name__!~"push_.*"}}'
        found = door.ask("query", query=form % selector, time=f"{time.time() + 1:.3f}")["result"]
        return {s["metric"]["__name__"]: float(s["value"][1]) for s in found}

    push_to_gateway(door.url, registry=registry(a=1, b=2), **group)
    wait_until(lambda: values() == {"a": 1, "b": 2}, "the first push")
    pushadd_to_gateway(door.url, registry=registry(b=3, c=4), **group)
    wait_until(lambda: values() == {"a": 1, "b": 3, "c": 4}, "the push that adds")
    push_to_gateway(door.url, registry=registry(a=5), **group)
    wait_until(lambda: values() == {"a": 5}, "the push that replaces")
    delete_from_gateway(door.url, **group)
    wait_until(lambda: values() == {}, "the end of the group")
    assert values("last_over_time(%s[1h])") == {"a": 5, "b": 3, "c": 4}

    (state,) = set(quiet.keys("v1/team-a/pushes/")) - set(states)
    stored = [r for r in quiet.proxy.seen()[requests:] if r.function == quiet.name("ingest") and r.operation in ("GetObject", "PutObject")]
    assert [r.operation for r in stored if r.key == state] == ["GetObject", "PutObject"] * 4
    assert all(r.key == state for r in stored) == (mode == "buffered"), "the role permits no other object then"
