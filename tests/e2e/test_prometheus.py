"""A real Prometheus writes or is imported, and it and Promlake answer the same queries with the same numbers."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from promlake import Client
from support.documentation import ADDRESS, block
from support.peers import NODE, SELF, Prometheus, evaluation_times, newest, newest_of_all, prometheus_command
from support.programs import Process, Programs, free_port, wait_until
from support.questions import vector
from support.server import Server, Start
from support.stores import Gateway, Store, directory_store

SCRAPES = 20
RANGE_SECONDS = 8
STORES = ("file", "s3")
KINDS = (*STORES, "import")


@dataclass(frozen=True)
class Pair:
    """A Prometheus, the servers that it writes to, and one over a store into which it was imported.

    At the evaluation times all of them hold all samples.
    """

    prometheus: Prometheus
    servers: dict[str, Server]
    start: float
    end: float


@pytest.fixture(scope="module")
def pair(programs: Programs, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("prometheus")
    stores = {"file": directory_store(directory / "store"), "s3": gateway.store()}
    servers = {kind: Server([programs.promlake, "serve"], stores[kind], directory / kind) for kind in STORES}
    prometheus = Prometheus(programs, directory / "peer", [s.url for s in servers.values()])
    try:
        first = prometheus.wait_for_scrapes(SCRAPES)
        start, end = evaluation_times(prometheus.client, first)
        for server in servers.values():
            wait_until(lambda: caught_up(server, end), "Promlake to catch up", context=server.process.log)  # noqa: B023
        imported = directory_store(directory / "imported")
        # A scrape that has begun and is not stored yet is later than the newest ones.
        imports(programs, prometheus.url, imported.url, start - HISTORY_SECONDS, min(newest_of_all(prometheus.client).values()))
        servers["import"] = Server([programs.promlake, "serve"], imported, directory / "import")
        yield Pair(prometheus, servers, start, end)
        for server in servers.values():
            server.stop()
    finally:
        prometheus.cleanup()
        for server in servers.values():
            server.cleanup()


HISTORY_SECONDS = 600


def imports(programs: Programs, url: str, store: str, start: float, end: float) -> None:
    """Imports twice what a Prometheus has between two times. The second time, the samples are there."""
    args = ["import", "prometheus", "--url", url, "--store", store, "--start", repr(start), "--end", repr(end)]
    for pattern in (r"samples written +[1-9]", r"samples written +0\n"):
        done = subprocess.run([programs.promlake, *args], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(pattern, done.stdout), done.stdout


def caught_up(server: Server, end: float) -> bool:
    """Reports whether every scrape up to end has arrived: each job's newest one is later."""
    got = newest(server.client())
    return set(got) == {NODE, SELF} and min(got.values()) > end


# The values are the same to the last digit. Aggregations are over integers here, where order and
# method of addition do not matter.
EXACT = [
    'up{job="node"}',
    "node_cpu_seconds_total",
    "node_memory_MemAvailable_bytes",
    "scrape_duration_seconds",
    f"rate(node_cpu_seconds_total[{RANGE_SECONDS}s])",
    f"irate(node_cpu_seconds_total[{RANGE_SECONDS}s])",
    f"increase(node_context_switches_total[{RANGE_SECONDS}s])",
    f"delta(node_memory_MemFree_bytes[{RANGE_SECONDS}s])",
    f"changes(node_memory_MemFree_bytes[{RANGE_SECONDS}s])",
    f"max_over_time(node_load1[{RANGE_SECONDS}s])",
    f"count_over_time(node_network_receive_bytes_total{{job=~'node|prometheus'}}[{RANGE_SECONDS}s])",
    "sum by (job) (scrape_samples_scraped)",
    "sum by (device) ({__name__=~'node_network_(receive|transmit)_bytes_total'})",
    "count by (__name__) ({job='node'})",
    "max by (mode) (node_cpu_seconds_total)",
    "topk(3, node_cpu_seconds_total)",
    "quantile by (job) (0.5, {__name__=~'.*_goroutines'})",
    "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
    "node_filesystem_avail_bytes / on (device, mountpoint) group_left (fstype) node_filesystem_size_bytes",
    "histogram_quantile(0.9, prometheus_http_request_duration_seconds_bucket)",
    f"histogram_quantile(0.5, rate(prometheus_http_request_duration_seconds_bucket{{handler='/api/v1/query'}}[{RANGE_SECONDS}s]))",
    "absent(no_such_metric)",
    "label_replace(node_uname_info, 'short', '$1', 'release', '([0-9]+).*')",
    "time() - timestamp(node_time_seconds)",
]

# Sums of fractions: Prometheus 3 compensates for rounding (Kahan summation) and Prometheus 2 does
# not.
CLOSE = [
    f"sum by (mode) (rate(node_cpu_seconds_total[{RANGE_SECONDS}s]))",
    "avg by (cpu) (node_cpu_seconds_total)",
    f"avg_over_time(node_load1[{RANGE_SECONDS}s])",
    f"stddev_over_time(node_memory_MemFree_bytes[{RANGE_SECONDS}s])",
    f"histogram_quantile(0.9, sum by (le) (rate(prometheus_http_request_duration_seconds_bucket[{RANGE_SECONDS}s])))",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expr", EXACT)
def test_same_numbers(pair: Pair, kind: str, expr: str) -> None:
    want, got = range_query(pair.prometheus.url, expr, pair), range_query(pair.servers[kind].url, expr, pair)
    assert want, "the question must have an answer"
    assert got == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expr", CLOSE)
def test_close_numbers(pair: Pair, kind: str, expr: str) -> None:
    want, got = range_query(pair.prometheus.url, expr, pair), range_query(pair.servers[kind].url, expr, pair)
    assert want, "the question must have an answer"
    assert got.keys() == want.keys()
    for labels, points in want.items():
        assert [t for t, _ in got[labels]] == [t for t, _ in points]
        assert [float(v) for _, v in got[labels]] == pytest.approx([float(v) for _, v in points], rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("selector", ["{job='node'}", "{job='prometheus'}"])
def test_same_samples(pair: Pair, kind: str, selector: str) -> None:
    """The store holds exactly the scraped samples, with times, values and labels."""
    form = {"query": f"{selector}[{SCRAPES - 5}s]", "time": repr(pair.end)}
    want, got = ask(pair.prometheus.url, "query", form), ask(pair.servers[kind].url, "query", form)
    assert len(want["result"]) > 100
    assert by_labels(got) == by_labels(want)


@pytest.mark.parametrize("kind", KINDS)
def test_same_names(pair: Pair, kind: str) -> None:
    peer, client = pair.prometheus.client, pair.servers[kind].client()
    times = (pair.start, pair.end)
    assert client.labels((), *times) == peer.labels((), *times)
    for label in ("__name__", "job", "mode", "device"):
        assert client.label_values(label, "{job='node'}", *times) == peer.label_values(label, "{job='node'}", *times)
    assert sorted_sets(client.series("{job='node'}", *times)) == sorted_sets(peer.series("{job='node'}", *times))


def sorted_sets(series: list[dict[str, str]]) -> list[list[tuple[str, str]]]:
    return sorted(sorted(s.items()) for s in series)


@pytest.mark.parametrize("kind", STORES)
def test_metadata_arrives(pair: Pair, kind: str) -> None:
    client = pair.servers[kind].client()
    wait_until(lambda: "node_load1" in client.metadata(), "metadata")
    (load,) = client.metadata("node_load1")["node_load1"]
    assert (load.type, load.help) == ("gauge", "1m load average.")


PROMTOOL = [
    ["instant", "--time={end}", "{url}", "max by (job) (up)"],
    ["instant", "--time={end}", "{url}", "sum by (mode) (count_over_time(node_cpu_seconds_total[5s]))"],
    ["range", "--start={start}", "--end={end}", "--step=1s", "{url}", "node_load1"],
    ["series", "--start={start}", "--end={end}", "--match=node_cpu_seconds_total", "{url}"],
    ["labels", "--start={start}", "--end={end}", "{url}", "job"],
    ["labels", "--start={start}", "--end={end}", "--match=node_cpu_seconds_total", "{url}", "mode"],
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", PROMTOOL, ids=lambda c: c[0])
def test_promtool(programs: Programs, pair: Pair, kind: str, command: list[str]) -> None:
    want, got = (promtool(programs, pair, command, url) for url in (pair.prometheus.url, pair.servers[kind].url))
    assert want
    assert got == want


def promtool(programs: Programs, pair: Pair, command: list[str], url: str) -> list[str]:
    args = [a.format(start=f"{pair.start:.3f}", end=f"{pair.end:.3f}", url=url) for a in command]
    done = subprocess.run([programs.promtool, "query", *args], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


def written(programs: Programs, directory: Path, config: dict[str, Any], clients: list[Client]) -> None:
    """Runs a Prometheus that scrapes itself, with a section remote_write, until one of the clients has its samples."""
    own = free_port()
    config["remote_write"][0].setdefault("queue_config", {})["batch_send_deadline"] = "200ms"
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config["scrape_configs"] = [{"job_name": SELF, "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]}]
    prometheus = Process(prometheus_command(programs, directory, own, config), directory / "prometheus")
    try:
        prometheus.wait_until(lambda: any(vector(c, "up == 1").samples for c in clients), "the samples of Prometheus")
    finally:
        prometheus.cleanup()


def test_the_documentations_remote_write(programs: Programs, server: Server, tmp_path: Path) -> None:
    """Debian's Prometheus 2.42 reads `headers` and does not send them, so it writes to the tenant anonymous."""
    config = yaml.safe_load(block("remote-write", "remote_write:\n  - url: http://127.0.0.1:9009/api/v1/write\n", {ADDRESS: server.url}))
    ((header, tenant),) = config["remote_write"][0]["headers"].items()
    assert header == "X-Scope-OrgID"
    written(programs, tmp_path, config, [server.client(tenant), server.client()])


def test_the_documentations_extra_labels(programs: Programs, server: Server, tmp_path: Path) -> None:
    """The labels of the address are those of every series."""
    text = block("remote-write", "remote_write:\n  - url: http://127.0.0.1:9009/api/v1/write?", {ADDRESS: server.url})
    written(programs, tmp_path, yaml.safe_load(text), [server.client()])
    assert vector(server.client(), 'up{region="eu", env="prod"}').samples
    assert vector(server.client(), '{__name__=~".+", region!="eu"} or {__name__=~".+", env!="prod"}').samples == ()


def test_the_documentations_token(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> None:
    """A token names the tenant of a Prometheus: with the documentation's section it writes to this one, and to no other."""
    tokens, secret = tmp_path / "tokens.json", {}
    for tenant, access in (("team-a", "write"), ("*", "read")):
        done = subprocess.run(
            [programs.promlake, "token", "--tenant", tenant, "--access", access, "--tokens", tokens],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        secret[access] = done.stdout.strip()
    server = start(file_store, f"--auth.tokens=file:{tokens}")
    (tmp_path / "promlake-token").write_text(secret["write"])
    replacements = {"https://promlake.example": server.url, "/etc/prometheus/promlake-token": str(tmp_path / "promlake-token")}
    config = yaml.safe_load(block("security", "remote_write:", replacements))
    team, anonymous = (Client(server.url, tenant, token=secret["read"]) for tenant in ("team-a", None))
    written(programs, tmp_path, config, [team])
    assert vector(anonymous, '{__name__=~".+"}').samples == ()


def range_query(url: str, expr: str, pair: Pair) -> dict[str, list[Any]]:
    start = pair.start + RANGE_SECONDS
    return by_labels(ask(url, "query_range", {"query": expr, "start": repr(start), "end": repr(pair.end), "step": "1"}))


def by_labels(data: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns the samples with the text of their values, by label set."""
    assert data["resultType"] == "matrix"
    return {json.dumps(s["metric"], sort_keys=True): s["values"] for s in data["result"]}


def ask(url: str, path: str, form: dict[str, str]) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/api/v1/{path}", data=urllib.parse.urlencode(form).encode(), timeout=300) as response:
        body = json.load(response)
    assert body["status"] == "success"
    assert not body.get("warnings")
    return body["data"]
