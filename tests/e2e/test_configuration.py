"""What promlake serve does with parts of a configuration file: reloads, discovery, start timestamps, options of rule groups."""

import itertools
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support import nameserver
from support.nameserver import ADDRESSES, PORT, SERVICE
from support.programs import Process, Programs, wait_until
from support.remote_read import EQUAL, read
from support.server import Server, Start
from support.stores import Store
from support.targets import Target, serving

SECOND = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}


class Configured:
    """A configuration file, and the flags of a server that uses it."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "prometheus.yml"
        self.flags = ("--config.file", str(self.file), "--scrape.queue-dir", str(directory / "queue"))

    def write(self, jobs: list[dict[str, Any]], groups: list[dict[str, Any]] | None = None, **sections: Any) -> None:
        rules = self.file.with_name("rules.yml")
        rules.write_text(json.dumps({"groups": groups or []}))
        self.file.write_text(json.dumps({"global": SECOND, "scrape_configs": jobs, "rule_files": [rules.name]} | sections))


@pytest.fixture
def config(tmp_path: Path) -> Configured:
    return Configured(tmp_path)


def static(name: str, *targets: Target) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [{"targets": [t.address for t in targets]}]}


def data(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=300) as response:
        return json.load(response)["data"]


def metrics(server: Server) -> dict[str, float]:
    """Returns the process's metrics by name and labels."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=300) as response:
        lines = [line.rsplit(" ", 1) for line in response.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def answered(server: Server, expr: str) -> list[tuple[dict[str, str], float]]:
    return [(s.labels, s.value) for s in server.client().query(expr).samples]


def until(server: Server, expr: str, want: int) -> None:
    """Waits until an expression has so many values."""
    wait_until(lambda: len(answered(server, expr)) == want, f"{want} values of {expr}", context=server.process.log)


def test_reload_by_a_signal(start: Start, file_store: Store, config: Configured) -> None:
    """SIGHUP exchanges targets and rules. A file that is invalid changes nothing, and a metric says so."""
    with serving(Target("a 1\n")) as target:
        config.write([static("first", target)], [{"name": "g", "rules": [{"record": "one", "expr": "1"}]}])
        server = start(file_store, *config.flags)
        until(server, 'up{job="first"} == 1', 1)
        until(server, "one", 1)
        config.write([static("second", target)], [{"name": "g", "rules": [{"record": "two", "expr": "2"}]}])
        server.process.signal(signal.SIGHUP)
        until(server, 'up{job="second"} == 1', 1)
        until(server, "two", 1)
        until(server, "one", 0)  # the series of a target that is not scraped any more end by the lookback, as in Prometheus
        assert metrics(server)["prometheus_config_last_reload_successful"] == 1

        config.file.write_text("scrape_configs: [{job_name: third, nonsense: 1}]")
        server.process.signal(signal.SIGHUP)
        wait_until(lambda: metrics(server)["prometheus_config_last_reload_successful"] == 0, "the refusal", context=server.process.log)
        assert "nonsense" in server.process.log()
        assert [t["scrapePool"] for t in data(server.url, "targets")["activeTargets"]] == ["second"]
        config.write([static("third", target)])
        server.process.signal(signal.SIGHUP)
        until(server, 'up{job="third"} == 1', 1)
        assert metrics(server)["prometheus_config_last_reload_successful"] == 1
        server.stop()


def test_what_has_no_effect_is_named(start: Start, file_store: Store, config: Configured) -> None:
    """Each section that is not honoured is a warning at the start, and at each reload."""
    ignored = {
        "remote_write": [{"url": "http://example.com/"}],
        "remote_read": [{"url": "http://example.com/"}],
        "tracing": {"endpoint": "example.com:1"},
    }
    config.write([], **ignored, otlp={"promote_resource_attributes": ["a"]}, storage={"tsdb": {"out_of_order_time_window": "1h"}})
    server = start(file_store, *config.flags)

    def named() -> list[str]:
        lines = [json.loads(line) for line in server.process.log().splitlines() if '"setting"' in line]
        assert {line["level"] for line in lines} <= {"WARN"}
        return sorted(line["setting"].split(":")[0].split(".")[0] for line in lines)

    assert named() == sorted(ignored)
    server.process.signal(signal.SIGHUP)
    wait_until(lambda: named() == sorted([*ignored, *ignored]), "the warnings", context=server.process.log)
    server.stop()


@contextmanager
def listing() -> Iterator[Target]:
    """A server for http_sd_configs, whose text is the list of targets."""
    with serving(Target("[]", kind="application/json")) as listed:
        yield listed


def test_targets_are_discovered(start: Start, file_store: Store, tmp_path: Path, config: Configured) -> None:
    """Targets that a file or a URL names are scraped with their labels, and others when it names others."""
    with ExitStack() as stack:
        targets = [stack.enter_context(serving(Target(f"a {n}\n"))) for n in (1, 2)]
        listed, file = stack.enter_context(listing()), tmp_path / "targets.json"

        def name(target: Target, label: str) -> None:
            text = json.dumps([{"targets": [target.address], "labels": {"found": label}}])
            listed.change(text)
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").rename(file)

        name(targets[0], "x")
        jobs = {
            "file": {"file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}]},
            "http": {"http_sd_configs": [{"url": f"http://{listed.address}/", "refresh_interval": "1s"}]},
        }
        config.write([{"job_name": job, **sd} for job, sd in jobs.items()])
        server = start(file_store, *config.flags)
        for number, label in ((1, "x"), (2, "y")):
            name(targets[number - 1], label)
            until(server, f'a{{found="{label}"}} == {number}', 2)
            until(server, "a", 2)
            assert sorted(labels["job"] for labels, _ in answered(server, "a")) == ["file", "http"]
        server.stop()


# A network and a mount of its own, as a user who is root there.
ISOLATED = ["unshare", "--map-root-user", "--mount", "--net"]


def test_targets_are_discovered_by_names(programs: Programs, start: Start, file_store: Store, tmp_path: Path, config: Configured) -> None:
    """Addresses and services that a name server knows are scraped. What the isolated process stores, another one reads."""
    if subprocess.run([*ISOLATED, "true"], check=False, capture_output=True, timeout=300).returncode != 0:
        pytest.skip("this system allows no user namespaces, in which a test may have a name server")
    names = {
        "addresses": {"names": ["a.example.test", "b.example.test"], "type": "A", "port": PORT},
        "services": {"names": [SERVICE]},
        "unknown": {"names": ["c.example.test"], "type": "A", "port": PORT},
    }
    config.write([{"job_name": job, "dns_sd_configs": [sd | {"refresh_interval": "1s"}]} for job, sd in names.items()])
    helper = [sys.executable, str(Path(nameserver.__file__)), str(tmp_path)]
    scraper = [programs.promlake, "serve", "--listen", "127.0.0.1:0", "--store", file_store.url, *config.flags]
    process = Process([*ISOLATED, *helper, *scraper], tmp_path / "isolated")
    try:
        reader = start(file_store)
        until(reader, "found_by_dns", 4)
        until(reader, "up == 1", 4)
        found = sorted((labels["job"], labels["instance"]) for labels, _ in answered(reader, "up"))
        addresses = [("addresses", f"{address}:{PORT}") for address in sorted(ADDRESSES.values())]
        assert found == [*addresses, *(("services", f"{host}:{PORT}") for host in sorted(ADDRESSES))]
        reader.stop()
        assert process.terminate() == 0, process.log()
    finally:
        process.cleanup()


def test_start_timestamps(start: Start, file_store: Store, config: Configured) -> None:
    """The times of OpenMetrics' _created lines are stored with the samples, and are no series."""
    created = round(time.time()) - 1000
    text = f"# TYPE c counter\nc_total 5\nc_created {created}\n# EOF\n"
    with serving(Target(text, kind="application/openmetrics-text; version=1.0.0; charset=utf-8")) as target:
        config.write([static("j", target)])
        server = start(file_store, *config.flags, "--scrape.start-timestamps", "--query.use-start-timestamps")
        until(server, "c_total", 1)
        assert [value for _, value in answered(server, "start_timestamp(c_total)")] == [created]
        assert answered(server, "c_created") == []
        server.stop()


def test_options_of_rule_groups(start: Start, file_store: Store, config: Configured) -> None:
    """A rule beyond the limit of its group has an error and no result. With an offset, results have earlier times."""
    with serving(Target('a{x="1"} 1\na{x="2"} 9\n')) as target:
        rules = [
            {"record": "within", "expr": 'a{x="1"}'},
            {"record": "beyond", "expr": "a"},
            {"alert": "Beyond", "expr": "a > 0"},
            {"alert": "Within", "expr": "a > 1"},
        ]
        groups = [
            {"name": "limited", "limit": 1, "rules": rules},
            {"name": "now", "rules": [{"record": "now", "expr": "time()"}]},
            {"name": "before", "query_offset": "10s", "rules": [{"record": "before", "expr": "time()"}]},
        ]
        config.write([static("j", target)], groups)
        server = start(file_store, *config.flags)
        until(server, "a", 2)
        until(server, 'within or ALERTS{alertname="Within"}', 2)

        def health() -> dict[str, str]:
            groups = {g["name"]: g for g in data(server.url, "rules")["groups"]}
            return {r["name"]: r.get("lastError") or r["health"] for r in groups["limited"]["rules"]}

        many = "exceeded limit of 1 with 2"
        want = {"within": "ok", "beyond": f"{many} series", "Beyond": f"{many} alerts", "Within": "ok"}
        wait_until(lambda: health() == want, "the errors", context=lambda: str(health()))
        assert answered(server, 'beyond or ALERTS{alertname="Beyond"}') == []

        def newest(name: str) -> int:
            now = int(time.time() * 1000)
            (samples,) = read(server.url, now - 3_600_000, now + 60_000, (EQUAL, "__name__", name)).values()
            return samples[-1][0]

        until(server, "now", 1)
        until(server, "before offset 10s or before", 1)
        wait_until(lambda: newest("now") > newest("before") + 8_000, "results of both", context=server.process.log)
        assert newest("before") <= time.time() * 1000 - 10_000
        server.stop()


@pytest.mark.parametrize("most", [1, 4])
def test_rules_are_evaluated_side_by_side(most: int, start: Start, file_store: Store, config: Configured) -> None:
    """Rules of a group that do not depend on each other take turns only if the process may evaluate one at a time."""
    slow = [{"record": f"slow{n}", "expr": f"sum(count_over_time(vector({n})[5m:10ms]))"} for n in range(4)]
    config.write([], [{"name": "g", "rules": slow}])
    server = start(file_store, *config.flags, f"--rules.max-concurrent-evals={most}")
    seen = set[tuple[str, ...]]()

    def side_by_side() -> bool:
        """Reports whether two of the last evaluations overlap, and notes which evaluations were seen."""
        (group,) = data(server.url, "rules")["groups"]
        spans = []
        for rule in group["rules"]:
            begin = datetime.fromisoformat(rule["lastEvaluation"]).timestamp()
            spans.append((begin, begin + rule["evaluationTime"]))
        if all(rule["health"] == "ok" for rule in group["rules"]):
            seen.add(tuple(rule["lastEvaluation"] for rule in group["rules"]))
        return any(a[1] > b[0] for a, b in itertools.pairwise(sorted(spans)))

    until(server, '{__name__=~"slow.*"}', 4)
    if most == 1:
        wait_until(lambda: not side_by_side() and len(seen) >= 5, "evaluations", context=server.process.log)
        assert not side_by_side()
    else:
        wait_until(side_by_side, "evaluations side by side", context=server.process.log)
    server.stop()
