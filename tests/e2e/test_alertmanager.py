"""Debian's Alertmanager gets alerts of servers and functions, and webhooks get from functions what they get from it."""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.alertmanager import Alertmanager, Receiver, receiving
from support.functions import Function, run_function
from support.programs import Programs, wait_until
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store, directory_store
from support.targets import Target, serving

SECONDS = 120.0


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiving() as hook:
        yield hook


@pytest.fixture
def alertmanager(programs: Programs, tmp_path: Path, hook: Receiver) -> Iterator[Alertmanager]:
    running = Alertmanager(programs, tmp_path / "alertmanager", hook.url)
    yield running
    running.process.cleanup()


def serve(start: Start, store: Store, directory: Path, target: Target, notify: str) -> Server:
    """Starts a server that scrapes a target and evaluates two alerts by a configuration file, every second.

    A scrape that fails, because the machine is busy, ends no alert.
    """
    alerts = [
        {
            "alert": name,
            "expr": f"last_over_time({name.lower()}[1h]) > 5",
            "labels": {"severity": "page"},
            "annotations": {"summary": "{{ $value }} > 5"},
        }
        for name in ("First", "Second")
    ]
    (directory / "rules.yml").write_text(json.dumps({"groups": [{"name": "g", "rules": alerts}]}))
    every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    managers = [{"static_configs": [{"targets": [notify.removeprefix("http://")]}], "timeout": "5m"}]
    relabel = [{"source_labels": ["severity"], "target_label": "copied"}]
    config = {
        "global": every | {"external_labels": {"cluster": "c"}},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": managers, "alert_relabel_configs": relabel},
        "scrape_configs": [{"job_name": "j", "static_configs": [{"targets": [target.address], "labels": {"instance": "i"}}]}],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))
    flags = ("--config.file", str(directory / "prometheus.yml"), "--scrape.queue-dir", str(directory / "queue"), "--shutdown-timeout", "5m")
    return start(store, *flags, "--web.external-url", "http://prom.example.com/p")


LABELS = {"cluster": "c", "copied": "page", "instance": "i", "job": "j", "severity": "page"}


def test_firing_and_resolved(start: Start, file_store: Store, tmp_path: Path, alertmanager: Alertmanager, hook: Receiver) -> None:
    with serving(Target("first 1\nsecond 1\n")) as target:
        server = serve(start, file_store, tmp_path, target, alertmanager.url)
        wait_until(lambda: server.client().query("first").samples != [], "a scrape", SECONDS, server.process.log)
        assert alertmanager.alerts() == []
        target.change("first 7\nsecond 1\n")
        wait_until(lambda: alertmanager.alerts() != [], "the alert", SECONDS, server.process.log)
        (alert,) = alertmanager.alerts()
        assert alert["labels"] == {"alertname": "First"} | LABELS
        assert alert["annotations"] == {"summary": "7 > 5"}
        assert alert["generatorURL"] == "http://prom.example.com/p/graph?g0.expr=last_over_time%28first%5B1h%5D%29+%3E+5&g0.tab=1"
        # Alertmanager says nothing of an alert that ends before it has said that it fires.
        wait_until(lambda: len(hook.documents()) == 1, "the notification", SECONDS, alertmanager.process.log)
        target.change("first 1\nsecond 1\n")
        wait_until(lambda: len(hook.documents()) == 2, "the end of the alert", SECONDS, alertmanager.process.log)
        assert [d["status"] for d in hook.documents()] == ["firing", "resolved"]
        assert alertmanager.alerts() == []
        server.stop()


def test_silences(start: Start, file_store: Store, tmp_path: Path, alertmanager: Alertmanager) -> None:
    """A silence that the server passes on holds in the Alertmanager until it is expired through the server."""

    def ask(method: str, path: str, silence: dict[str, Any] | None = None) -> bytes:
        body = None if silence is None else json.dumps(silence).encode()
        url, kind = f"{server.url}/alertmanager/api/v2/{path}", {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, kind, method=method), timeout=300) as response:
            return response.read()

    def state() -> list[str]:
        return [a["status"]["state"] for a in alertmanager.alerts()]

    with serving(Target("first 7\nsecond 1\n")) as target:
        server = serve(start, file_store, tmp_path, target, alertmanager.url)
        wait_until(lambda: state() == ["active"], "the alert", SECONDS, server.process.log)
        matchers = [{"name": "alertname", "value": "Fir.t", "isRegex": True, "isEqual": True}]
        times = {"startsAt": "2020-01-01T00:00:00Z", "endsAt": "2100-01-01T00:00:00Z"}
        made = json.loads(ask("POST", "silences", times | {"matchers": matchers, "createdBy": "ann", "comment": "known"}))["silenceID"]
        wait_until(lambda: state() == ["suppressed"], "the silence", SECONDS, server.process.log)
        assert [(s["id"], s["createdBy"], s["status"]["state"]) for s in json.loads(ask("GET", "silences"))] == [(made, "ann", "active")]
        ask("DELETE", f"silence/{made}")
        wait_until(lambda: state() == ["active"], "the end of the silence", SECONDS, server.process.log)
        server.stop()


def test_drained_at_the_end(start: Start, file_store: Store, tmp_path: Path, alertmanager: Alertmanager) -> None:
    """Notifications that wait for an Alertmanager when the process is to end arrive before it ends."""
    with serving(Target("first 7\nsecond 1\n")) as target, receiving(forward=alertmanager.url) as gate:
        gate.close()
        server = serve(start, file_store, tmp_path, target, gate.url)
        wait_until(lambda: gate.arrived > 0, "the first notification", SECONDS, server.process.log)
        target.change("first 7\nsecond 8\n")
        waiting = "prometheus_notifications_queue_length"
        wait_until(lambda: firing(server) == {"First", "Second"} and metric(server, waiting) > 0, "the second one", SECONDS)
        server.process.signal(15)
        wait_until(lambda: "stopping" in server.process.log() or refused(server), "the process to end", SECONDS, server.process.log)
        assert server.process.running
        assert alertmanager.alerts() == []
        gate.open()
        assert server.process.wait() == 0, server.process.log()
        assert {a["labels"]["alertname"] for a in alertmanager.alerts()} == {"First", "Second"}


def refused(server: Server) -> bool:
    try:
        urllib.request.urlopen(f"{server.url}/-/ready", timeout=300).close()
    except OSError:
        return True
    return False


def firing(server: Server) -> set[str]:
    with urllib.request.urlopen(f"{server.url}/api/v1/alerts", timeout=300) as response:
        return {a["labels"]["alertname"] for a in json.load(response)["data"]["alerts"] if a["state"] == "firing"}


def metric(server: Server, name: str) -> float:
    """Returns the sum of a metric of the process."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=300) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + " ", name + "{")))


RULES = b"""
name: g
interval: 1s
rules:
- {alert: High, expr: "last_over_time(v[1h]) > 5", labels: {severity: page, odd: 'a"b'}, annotations: {summary: "{{ $value }} > 5"}}
"""


def test_functions_send_what_alertmanager_sends(
    programs: Programs, start: Start, tmp_path: Path, alertmanager: Alertmanager, hook: Receiver
) -> None:
    """Alertmanager gets that an alert fires and that it ends. A webhook gets the documents that it gets from Alertmanager."""
    got: dict[str, list[dict[str, Any]]] = {}
    with receiving() as direct, ExitStack() as stack:
        for who, variable, url, receiver in (
            ("alertmanager", "PROMLAKE_RULER_ALERTMANAGER_URL", alertmanager.url, hook),
            ("direct", "PROMLAKE_RULER_WEBHOOK_URL", direct.url, direct),
        ):
            store = directory_store(tmp_path / who)
            server = start(store, "--no-ruler.evaluate")
            request = urllib.request.Request(f"{server.url}/prometheus/config/v1/rules/web", RULES, {"X-Scope-OrgID": "team-a"})
            urllib.request.urlopen(request, timeout=300).close()
            env = {
                "PROMLAKE_STORE": store.url, "PROMLAKE_RULER_SCHEDULED": "true", variable: url,
                "PROMLAKE_RULER_EXTERNAL_URL": "http://prom.example.com", "PROMLAKE_RULER_EXTERNAL_LABELS": "cluster=c",
                "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            }  # fmt: skip
            function = stack.enter_context(run_function(programs, programs.query_fn, tmp_path / f"{who}-function", "rules", env))
            for status, value in (("firing", 7.0), ("resolved", 1.0)):
                write(server, value)

                wait_until(partial(told, function, receiver, status), f"{who}: {status}", SECONDS, server.process.log)
            got[who] = receiver.documents()
            server.stop()
    for who, documents in got.items():
        assert [d["status"] for d in documents] == ["firing", "resolved"], who
        (first, last) = (d["alerts"][0] for d in documents)
        assert first["startsAt"] == last["startsAt"]
        assert first["endsAt"] == "0001-01-01T00:00:00Z"
    assert comparable(got["direct"]) == comparable(got["alertmanager"])
    labels = {"alertname": "High", "cluster": "c", "odd": 'a"b', "severity": "page", "tenant": "team-a"}
    assert got["direct"][0]["alerts"][0]["labels"] == labels


def told(function: Function, receiver: Receiver, status: str) -> bool:
    """Lets the function evaluate what is due, and reports whether the receiver was told of the status."""
    function.tick()
    return status in [d["status"] for d in receiver.documents()]


def write(server: Server, value: float) -> None:
    answer = server.sender("team-a").write(series("v", [(int(time.time() * 1000), value)]))
    assert answer.status == 204, answer


def comparable(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns documents without the address and the name of their sender, and without times."""
    out = json.loads(json.dumps(documents))
    for document in out:
        del document["receiver"], document["externalURL"]
        for alert in document["alerts"]:
            del alert["startsAt"], alert["endsAt"]
    return out
