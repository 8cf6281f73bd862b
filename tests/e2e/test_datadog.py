"""Datadog's own client writes, PromQL counts the same events, and the documentation's requests are stored as it says."""

import json
import re
import subprocess
import time
import urllib.request
import zlib
from pathlib import Path

import cramjam
import pytest
import yaml
from datadog import ThreadStats, api, initialize
from promlake import Client
from support.documentation import ADDRESS, block, page, run_shell
from support.programs import Programs
from support.questions import vector
from support.server import Server, Start
from support.stores import Store

NOW = int(time.time()) // 10 * 10


def test_the_documentations_requests(server: Server) -> None:
    run_shell(block("datadog", "curl ", {ADDRESS: server.url}))
    found = re.search(r"PromQL reads them as `(.*?)` and `(.*?)`", page("datadog"))
    assert found
    for selector, value in zip(found.groups(), (0.7, 3), strict=True):
        (sample,) = vector(server.client(), selector, 1_700_000_000).samples
        assert sample.value == value


# jobs.running of host web01, a gauge: 7 at 1700000000, as the agent's payload package writes it.
SERIES = bytes.fromhex("0a300a0d0a04686f737412057765623031120c6a6f62732e72756e6e696e67220f090000000000001c401080e2cfaa062803")


def test_the_agents_address(server: Server) -> None:
    """Stands for the agent: the requests that it makes of `dd_url`, in its file or its environment."""
    address = yaml.safe_load(block("datadog", "dd_url:", {ADDRESS: server.url}))["dd_url"]
    assert f"`DD_DD_URL={address.replace(server.url, ADDRESS)}`" in page("datadog")
    key = {"DD-API-KEY": "0" * 32}
    with urllib.request.urlopen(urllib.request.Request(f"{address}/api/v1/validate", headers=key), timeout=300) as response:
        assert json.load(response) == {"valid": True}
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "zstd", **key}
    body = bytes(cramjam.zstd.compress(SERIES))
    with urllib.request.urlopen(urllib.request.Request(f"{address}/api/v2/series", body, headers), timeout=300) as response:
        assert response.status == 202
    headers = {"Content-Type": "application/json", "Content-Encoding": "deflate", **key}
    for path, what in (("/intake/", b"{}"), ("/api/v1/check_run", b"[]")):
        request = urllib.request.Request(address + path, zlib.compress(what), headers)
        with urllib.request.urlopen(request, timeout=300) as response:
            assert response.status in {200, 202}
    (sample,) = vector(server.client(), '{"jobs.running", host="web01"}', 1_700_000_000).samples
    assert sample.value == 7


# Of one series: values around -1, 0, 1 (three), 1.02 and 2 (two), as the agent's payload package
# writes them.
SKETCHES = bytes.fromhex(
    "0a5a0a076c6174656e6379120577656230312208656e763a70726f643a3e0880e2cfaa06100919000000000000f0bf210000"
    "00000000004029000000000000f03f310000000000001e403a09f31400f414f614ce1542050102030102"
)


def test_sketches_are_histograms(server: Server) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    request = urllib.request.Request(f"{server.url}/datadog/api/beta/sketches", data=SKETCHES, headers=headers)
    with urllib.request.urlopen(request, timeout=300) as response:
        assert response.status == 202
    for query, value in {
        "histogram_count(sum_over_time(latency[1m]))": 9,
        "histogram_sum(latency)": 7.5,
        'histogram_fraction(1.5, 3, latency{host="web01", env="prod"})': 2 / 9,
    }.items():
        (sample,) = vector(server.client(), query, 1_700_000_000).samples
        assert abs(sample.value - value) < 1e-9, query


def test_sketches_of_several_intervals(server: Server) -> None:
    """Each sketch has the values of its interval, so increase and rate add them up."""
    at = bytes.fromhex("80e2cfaa06")  # the time of the sketches: 1,700,000,000 seconds as a varint
    for after in (0, 10, 20, 30):
        body = SKETCHES.replace(at, bytes([at[0] + after]) + at[1:])
        request = urllib.request.Request(
            f"{server.url}/datadog/api/beta/sketches", data=body, headers={"Content-Type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            assert response.status == 202
    for query, value in {
        "histogram_count(increase(latency[30s]))": 27,
        "histogram_sum(rate(latency[30s])) * 30": 22.5,
        "histogram_fraction(1.5, 3, rate(latency[30s]))": 2 / 9,
        "histogram_count(sum_over_time(latency[1m]))": 36,
    }.items():
        (sample,) = vector(server.client(), query, 1_700_000_030).samples
        assert abs(sample.value - value) < 1e-9, query


def test_datadogs_client_counts(server: Server) -> None:
    """Counts, and rates of an interval, are what happened: as rate and increase of PromQL say."""
    initialize(api_key="none-is-required", api_host=f"{server.url}/datadog", host_name="web01")
    times = range(NOW - 600, NOW + 1, 10)
    for packed in (False, True):
        sent = api.Metric.send(
            compress_payload=packed,
            metrics=[
                {"metric": "jobs.count", "type": "count", "interval": 10, "points": [(t, 7) for t in times], "tags": ["queue:mail"]},
                {"metric": "jobs.rate", "type": "rate", "interval": 10, "points": [(t, 0.7) for t in times]},
                {"metric": "jobs.waiting", "type": "gauge", "points": [(t, 7) for t in times]},
            ],
        )
        assert sent == {"status": "ok"}
    promlake = server.client()
    for query, value in {
        'rate({"jobs.count", queue="mail", host="web01"}[5m])': 0.7,
        'increase({"jobs.count"}[5m])': 210,
        'sum_over_time({"jobs.count"}[5m])': 210,
        'rate({"jobs.rate"}[5m])': 0.7,
        'increase({"jobs.rate"}[1m])': 42,
        '{"jobs.waiting"}': 7,
    }.items():
        (sample,) = vector(promlake, query, NOW).samples
        assert abs(sample.value - value) < 1e-9, query


def test_datadogs_client_adds_up(server: Server) -> None:
    initialize(api_key="none-is-required", api_host=f"{server.url}/datadog", host_name="web01")
    stats = ThreadStats()
    stats.start(flush_in_thread=False, roll_up_interval=10)
    for _ in range(30):
        stats.increment("clicks", timestamp=NOW - 20)
    stats.increment("clicks", 20, timestamp=NOW - 10)
    stats.gauge("temperature", 20.5, timestamp=NOW - 10)
    stats.flush(NOW)
    promlake = server.client()
    assert [s.value for s in vector(promlake, "sum_over_time(clicks[1m])", NOW).samples] == [50]
    assert [s.value for s in vector(promlake, "temperature", NOW).samples] == [20.5]


def test_the_documentations_program(server: Server) -> None:
    exec(block("datadog", "from datadog", {ADDRESS: server.url}), {})  # noqa: S102
    (sample,) = vector(server.client(), '{"mails.sent", queue="news", host="web01"}', time.time() + 1).samples
    assert sample.value == 3


def test_the_api_key_is_the_token(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> None:
    tokens, secret = tmp_path / "tokens.json", {}
    for access in ("read", "write"):
        secret[access] = subprocess.run(
            [programs.promlake, "token", "--tenant", "team-a", "--access", access, "--tokens", tokens],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
    server = start(file_store, f"--auth.tokens=file:{tokens}")
    for key, well in ((secret["write"], True), (secret["read"], False), ("wrong", False)):
        initialize(api_key=key, api_host=f"{server.url}/datadog", host_name="web01", mute=False)
        if well:
            assert api.Metric.send(metric="jobs", points=(NOW, 1)) == {"status": "ok"}
        else:
            with pytest.raises(Exception, match=r"token"):
                api.Metric.send(metric="jobs", points=(NOW, 2))
    (sample,) = vector(Client(server.url, "team-a", token=secret["read"]), "jobs", NOW).samples
    assert sample.value == 1
