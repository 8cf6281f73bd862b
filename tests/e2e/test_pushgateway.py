"""Jobs that are written for a Pushgateway push, and PromQL reads what they pushed."""

import time
import urllib.error

import pytest
from prometheus_client import CollectorRegistry, Gauge, delete_from_gateway, push_to_gateway, pushadd_to_gateway
from support.documentation import ADDRESS, block, run_shell
from support.questions import vector
from support.server import Server


def registry(**values: float) -> CollectorRegistry:
    out = CollectorRegistry()
    for name, value in values.items():
        Gauge(name, name, registry=out).set(value)
    return out


def values(server: Server, job: str) -> dict[str, float]:
    found = vector(server.client(), f'{{job="{job}",__name__!~"push.*"}}', time.time() + 1).samples
    return {s.labels["__name__"]: s.value for s in found}


def test_prometheus_client(server: Server) -> None:
    job = {"job": "a/b", "grouping_key": {"instance": "", "path": "/x"}}
    push_to_gateway(server.url, registry=registry(a=1, b=2), **job)
    assert values(server, "a/b") == {"a": 1, "b": 2}
    pushadd_to_gateway(server.url, registry=registry(b=3, c=4), **job)
    assert values(server, "a/b") == {"a": 1, "b": 3, "c": 4}
    push_to_gateway(server.url, registry=registry(a=5), **job)
    assert values(server, "a/b") == {"a": 5}
    (pushed,) = vector(server.client(), 'push_time_seconds{job="a/b",path="/x"}', time.time() + 1).samples
    assert abs(pushed.value - time.time()) < 600
    with pytest.raises(urllib.error.HTTPError) as refused:
        push_to_gateway(server.url, registry=registry(a=6), job="x", grouping_key={"__name__": "y"})
    assert refused.value.code == 400
    refused.value.close()
    delete_from_gateway(server.url, **job)
    assert values(server, "a/b") == {}
    (last,) = vector(server.client(), 'last_over_time(a{job="a/b"}[1h])', time.time() + 1).samples
    assert last.value == 5


def test_the_documentations_requests(server: Server) -> None:
    run_shell(block("pushgateway", "echo ", {ADDRESS: server.url}))
    exec(block("pushgateway", "from prometheus_client", {ADDRESS: server.url}), {})  # noqa: S102
    files, age = block("pushgateway", "last_over_time").splitlines()
    (sample,) = vector(server.client(), files, time.time() + 1).samples
    assert sample.value == 42
    assert sample.labels == {"__name__": "backup_files", "job": "backup", "instance": "web01"}
    assert vector(server.client(), age, time.time() + 1).samples == ()
