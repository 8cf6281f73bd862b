"""Metrics in Prometheus' text formats are written as they are, and PromQL reads the same values."""

import gzip
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.documentation import ADDRESS, block, run_shell
from support.questions import vector
from support.server import Server

NOW = int(time.time())


def push(server: Server, body: bytes, parameters: str = "", **headers: str) -> int:
    request = urllib.request.Request(f"{server.url}/api/v1/import/prometheus{parameters}", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=300) as response:
        return response.status


def test_own_metrics_come_back(server: Server) -> None:
    """A process's own /metrics is what exporters write."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=300) as response:
        body = response.read()
    assert push(server, gzip.compress(body), f"?extra_label=job%3Dbackup&timestamp={NOW * 1000}", **{"Content-Encoding": "gzip"}) == 204
    client = server.client()
    (info,) = vector(client, 'promlake_build_info{job="backup"}', NOW).samples
    assert info.value == 1
    count = sum(1 for line in body.splitlines() if line and not line.startswith(b"#"))
    assert vector(client, 'count({job="backup"})', NOW).samples[0].value == count


def test_mistakes_are_named(server: Server) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        push(server, b"good 1\nbad{ 2\n")
    assert refused.value.code == 400
    assert b"invalid metrics" in refused.value.read()


def test_the_documentations_requests(server: Server, tmp_path: Path) -> None:
    (tmp_path / "metrics.txt").write_text("# TYPE files gauge\nfiles 42\n")
    run_shell(block("text", "curl --data-binary @metrics.txt", {ADDRESS: server.url}), tmp_path)
    for selector, value in (('files{job="backup"}', 42), ("backup_last_success_seconds", 1_700_000_000)):
        assert [s.value for s in vector(server.client(), selector, time.time() + 1).samples] == [value]
