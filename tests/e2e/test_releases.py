"""A store that each release wrote is answered from as that release did, before and after it is compacted and deleted in.

`releases/VERSION.tar.xz` has the store and the answers. PROMLAKE_MAKE_RELEASE=0.2 makes that file with today's program.
"""

import json
import os
import shutil
import tarfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge, push_to_gateway
from support.commands import Commands
from support.programs import Programs
from support.remote_write import Series, series
from support.server import Server, Start
from support.stores import directory_store

RELEASES = Path(__file__).parent / "releases"
FLAGS = ("--no-compactor.enabled", "--no-ruler.evaluate", "--web.enable-admin-api", "--ingest.flush-interval=5ms")
HOUR_MS = 60 * 60 * 1000
FIRST_MS = 1_793_577_600_000  # 2026-11-02T00:00:00Z
STEP_MS = 10 * 60 * 1000
EDGES = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7e308, 2.0**53 + 2, 0.1]
RULES = b"""
name: g
interval: 1m
rules:
- {record: "job:requests:rate", expr: "sum by (job) (rate(requests_total[30m]))"}
- {alert: High, expr: "temperature > 30", for: 5m, labels: {severity: page}, annotations: {summary: "{{ $value }} > 30"}}
"""


def hours(first: int, last: int) -> list[int]:
    return list(range(FIRST_MS + first * HOUR_MS, FIRST_MS + last * HOUR_MS, STEP_MS))


def batch(times: list[int], tenant: str) -> list[Series]:
    steps = [(t, (t - FIRST_MS) // STEP_MS) for t in times]
    minutes = range(times[0], times[-1] + STEP_MS, 60 * 1000)  # enough for a rollup
    return [
        *(series("requests_total", [(t, 7.0 * (t // 60_000 % 900)) for t in minutes], job=job, tenant_of=tenant) for job in ("api", "db")),
        series("temperature", [(t, 20 + n % 17 + n / 3) for t, n in steps], room="kitchen", température="yes"),
        series("edges", [(t, EDGES[n % len(EDGES)]) for t, n in steps]),
        series("gone", [(t, 1.0) for t, _ in steps]),
        series("half_gone", [(t, 1.0) for t, _ in steps]),
        Series({"__name__": "latency_seconds", "job": "api"}, [], [(times[0], 1.0, f"trace-{times[0]}")], [(t, n + 1) for t, n in steps]),
    ]


def write_store(server: Server, commands: Commands) -> None:
    """Writes a compacted day and, later, samples of that day and of the next one; two deletions, of which one is done."""
    for tenant in ("anonymous", "b"):
        assert server.sender(tenant).write(*batch(hours(0, 24), tenant)).status == 204
    delete(server, "gone")
    push_to_gateway(server.url, registry=pushed(), job="backup")
    request = urllib.request.Request(f"{server.url}/prometheus/config/v1/rules/web", RULES)
    urllib.request.urlopen(request, timeout=300).close()
    commands.compact(time.time() + 3600)
    assert commands.levels("b") == {"24h": 1}
    delete(server, "half_gone", end=str((FIRST_MS + 12 * HOUR_MS) / 1000))
    assert server.sender().write(*batch(hours(22, 29), "late")).status == 204


def pushed() -> CollectorRegistry:
    registry = CollectorRegistry()
    Gauge("backup_files", "files", registry=registry).set(42)
    return registry


def delete(server: Server, metric: str, **form: str) -> None:
    body = urllib.parse.urlencode({"match[]": metric, **form}).encode()
    urllib.request.urlopen(f"{server.url}/api/v1/admin/tsdb/delete_series", body, timeout=300).close()


WHOLE = {"start": str(FIRST_MS / 1000), "end": str((FIRST_MS + 30 * HOUR_MS) / 1000)}
EXPRESSIONS = [
    "edges",
    "half_gone",
    "rate(requests_total[30m])",
    "sum by (job) (increase(requests_total[3h]))",
    "avg_over_time(temperature[2h])",
    "max(max_over_time(requests_total[1d]))",
    "histogram_quantile(0.9, rate(latency_seconds[30m]))",
    "count by (__name__) ({job!=''})",
    "absent(gone)",
]
STATEMENT = "SELECT metric, count(*) AS n, max(value) AS v, min(ts), max(ts) FROM samples GROUP BY ALL ORDER BY ALL"


def questions(made: float) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yields tenant, path and parameters of questions to a store that was made at a time (seconds since 1970)."""
    for tenant in ("anonymous", "b"):
        for expr in EXPRESSIONS:
            yield tenant, "api/v1/query_range", {"query": expr, "step": "3600", **WHOLE}
        yield tenant, "api/v1/query", {"query": '{__name__=~".+"}[30h]', "time": WHOLE["end"]}
        yield tenant, "api/v1/series", {"match[]": '{__name__=~".+"}', **WHOLE}
        yield tenant, "api/v1/labels", WHOLE
        yield tenant, "api/v1/query_exemplars", {"query": "latency_seconds", **WHOLE}
        yield tenant, "api/v1/sql", {"query": STATEMENT, **WHOLE}
    yield "anonymous", "api/v1/query", {"query": "last_over_time(backup_files[1h])", "time": repr(made)}
    yield "anonymous", "prometheus/config/v1/rules", {}


def answers(server: Server, made: float) -> dict[str, str]:
    out = {}
    for tenant, path, form in questions(made):
        request = urllib.request.Request(f"{server.url}/{path}?{urllib.parse.urlencode(form)}", headers={"X-Scope-OrgID": tenant})
        with urllib.request.urlopen(request, timeout=300) as response:
            out[f"{tenant} {path} {json.dumps(form)}"] = response.read().decode()
    return out


@pytest.mark.skipif("PROMLAKE_MAKE_RELEASE" not in os.environ, reason="makes the file of a release")
def test_make(programs: Programs, start: Start, tmp_path: Path) -> None:
    store = directory_store(tmp_path / "store")
    server = start(store, *FLAGS)
    write_store(server, Commands(programs, store))
    made = time.time()
    found = answers(server, made)
    server.stop()
    (tmp_path / "answers.json").write_text(json.dumps({"made": made, "answers": found}))
    with tarfile.open(RELEASES / f"{os.environ['PROMLAKE_MAKE_RELEASE']}.tar.xz", "w:xz") as tar:
        for name in ("store", "answers.json"):
            tar.add(tmp_path / name, name, filter=anonymous)


def anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


@pytest.mark.parametrize("release", [f.name.removesuffix(".tar.xz") for f in sorted(RELEASES.glob("*.tar.xz"))])
def test_release(programs: Programs, start: Start, tmp_path: Path, release: str) -> None:
    with tarfile.open(RELEASES / f"{release}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    golden = json.loads((tmp_path / "answers.json").read_text())
    made, want = golden["made"], golden["answers"]
    store = directory_store(tmp_path / "store")
    commands = Commands(programs, store)
    server = start(store, *FLAGS)

    def check(when: str, without: str = "nothing") -> None:
        found = answers(server, made)
        assert found.keys() == want.keys()
        for question, answer in want.items():
            if without not in question + answer:
                assert found[question] == answer, f"{when}: {question}"

    check("as it was written")
    commands.run("doctor", "--verify")
    commands.compact(made + 3600)  # the window of the push is open then, whenever the test runs
    assert commands.levels() == {"24h": 2, "segment": 1}
    check("compacted")
    delete(server, "temperature")
    assert json.loads(answers(server, made)[next(q for q in want if "avg_over_time" in q)])["data"]["result"] == []
    check("after a deletion", without="temp")
    commands.compact(time.time() + 3600)
    server.stop()
    server.start()
    check("after a deletion, compacted", without="temp")
    commands.run("doctor", "--verify")
    server.stop()
    shutil.rmtree(store.directory)
