"""Exact numbers of series from a real server, over segments and blocks, as the documentation asks for them."""

import json
import time
import urllib.parse
import urllib.request
from typing import Any

from support.commands import Commands
from support.documentation import ADDRESS, block, run_shell
from support.programs import Programs
from support.questions import vector
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store

DAY = 86_400_000
MORNING = 1_795_305_600_000  # 2026-11-22T00:00:00Z, the day of the page's example
NOW = int(time.time() * 1000)
DISKS, PODS = 40, 25


def ask(server: Server, path: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"{server.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=300) as answer:
        return json.load(answer)


def write(server: Server, at: int, minutes: int) -> None:
    """Writes metrics of two environments, in requests of ten minutes: in every one, prod has up, disk_free and pod_seconds_total."""
    for first in range(0, minutes, 10):
        points = [(at + 60_000 * m, float(m)) for m in range(first, min(first + 10, minutes))]
        batch = [series("up", points, job=job, env=env) for env in ("prod", "dev") for job in ("api", "node")]
        batch += [series("disk_free", points, job="node", env="prod", disk=f"sd{n}") for n in range(DISKS)]
        batch += [series("pod_seconds_total", points, job="api", env="prod", pod=f"p{n}") for n in range(PODS)]
        assert server.sender().write(*batch).status == 204


def counts(rows: list[dict]) -> dict[str, int]:
    return {row["name"]: row["value"] for row in rows}


def test_exact_figures(programs: Programs, start: Start, file_store: Store) -> None:
    """The figures of a past day are the same before and after compaction, where samples that were sent twice count once."""
    server = start(file_store)
    minutes = 60
    write(server, MORNING - 30 * DAY, minutes)
    write(server, MORNING - 30 * DAY, 10)
    for twice in (10, 0):
        all_series = 4 + DISKS + PODS
        day = {"date": "2026-10-23", "topN": "5", "focusLabel": "job"}
        data = ask(server, "/api/v1/status/tsdb", **day)["data"]
        assert data["totalSeries"] == all_series
        assert counts(data["seriesCountByMetricName"]) == {"disk_free": DISKS, "pod_seconds_total": PODS, "up": 4}
        assert counts(data["seriesCountByFocusLabelValue"]) == {"node": DISKS + 2, "api": PODS + 2}
        assert counts(data["labelValueCountByLabelName"])["disk"] == DISKS
        samples = {row["name"]: row["samples"] for row in data["seriesCountByMetricName"]}
        assert samples["disk_free"] == DISKS * (minutes + twice)
        assert all(row["bytes"] > 0 and row["dollarsPerMonth"] > 0 for row in data["seriesCountByMetricName"])
        prod = ask(server, "/api/v1/status/tsdb", **day, **{"match[]": '{env="prod"}'})["data"]
        assert prod["totalSeries"] == all_series - 2
        names = ask(server, "/prometheus/api/v1/cardinality/label_names", date=day["date"])
        assert (names["label_names_count"], names["label_values_count_total"]) == (5, 3 + 2 + 2 + DISKS + PODS)
        values = ask(server, "/prometheus/api/v1/cardinality/label_values", date=day["date"], **{"label_names[]": "pod"})
        assert values["series_count_total"] == all_series
        (pods,) = values["labels"]
        assert (pods["label_values_count"], pods["series_count"]) == (PODS, PODS)
        assert ask(server, "/api/v1/status/tsdb", date="2026-10-24")["data"]["totalSeries"] == 0
        if twice:
            server.stop()
            Commands(programs, file_store).compact(time.time() + 86_400)
            assert all(level.endswith("h") for level in Commands(programs, file_store).levels())
            server.start()


def test_the_documentations_questions(start: Start, file_store: Store) -> None:
    """Each line of the page has an answer, and rows have the members that the page shows."""
    server = start(file_store)
    write(server, MORNING, 5)
    write(server, NOW - 240_000, 5)
    printed = documents(run_shell(block("cardinality", "curl -g", {ADDRESS: server.url})))
    assert len(printed) == 4
    status, names, values, active = printed
    assert counts(status["data"]["seriesCountByFocusLabelValue"]) == {"node": DISKS + 1, "api": PODS + 1}
    shown = json.loads(block("cardinality", '{"name": "http_requests_total"'))
    assert all(row.keys() == shown.keys() for row in status["data"]["seriesCountByMetricName"])
    assert shown["value"] <= shown["samples"]
    assert (names["cardinality"][0]["label_name"], names["cardinality"][0]["label_values_count"]) == ("disk", DISKS)
    assert values["labels"][0]["label_values_count"] == PODS
    assert len(active["data"]) == 4


def test_the_documentations_usage(start: Start, file_store: Store) -> None:
    """Since counting began 40 days ago, nobody asked for one of the metrics."""
    usage = file_store.directory / "v1/anonymous/usage/queries.json"
    usage.parent.mkdir(parents=True)
    usage.write_text(sealed({"version": 1, "since": NOW - 40 * DAY, "names": {}, "patterns": {}, "labels": {}, "saves": []}))
    server = start(file_store)
    write(server, NOW - 240_000, 5)
    assert len(vector(server.client(), "sum by (env, job) (disk_free) * on (env, job) up", NOW / 1000).samples) == 1
    metrics, labels = documents(run_shell(block("cardinality", "curl 'http", {ADDRESS: server.url})))
    assert [row["metricName"] for row in metrics["records"]] == ["pod_seconds_total"]
    assert {row["labelName"] for row in labels["records"]} == {"disk", "pod"}
    shown = json.loads(block("cardinality", '{"metricName"'))
    assert metrics["records"][0].keys() == shown.keys()
    assert metrics["statsCollectedSince"] == (NOW - 40 * DAY) // 1000


def documents(text: str) -> list[Any]:
    """Returns the JSON documents that follow one another in a text."""
    out, at = [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        out.append(value)
    return out


def sealed(document: dict) -> str:
    """Returns a document that ends in the checksum of schemas/README.md."""
    begin = json.dumps(document, separators=(",", ":"))[:-1] + ","
    crc = 0xFFFFFFFF
    for byte in begin.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f'{begin}"crc32c":"{crc ^ 0xFFFFFFFF:08x}"}}'
