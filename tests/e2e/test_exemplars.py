"""Exemplars come back as they were sent, by all protocols that have them, before and after compaction."""

import json
import time
import urllib.parse
import urllib.request

from support.commands import Commands
from support.programs import Programs
from support.remote_write import Series
from support.server import Server, Start
from support.stores import Store

AT = (int(time.time()) // 86_400 * 86_400 - 43_200) * 1000  # yesterday's noon, ms
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def post(server: Server, path: str, body: str, content_type: str) -> None:
    request = urllib.request.Request(server.url + path, body.encode(), {"Content-Type": content_type})
    with urllib.request.urlopen(request, timeout=300) as answer:
        assert answer.status in {200, 204}


def exemplar(ms: int, value: float) -> dict:
    attributes = [{"key": "user", "value": {"stringValue": "köln"}}]
    return {"timeUnixNano": str(ms * 10**6), "asDouble": value, "traceId": TRACE, "spanId": SPAN, "filteredAttributes": attributes}


def write(server: Server) -> None:
    """Writes exemplars of a counter and two kinds of histograms by OTLP, of text by OpenMetrics, and of remote_write."""
    times = {"startTimeUnixNano": str((AT - 60_000) * 10**6), "timeUnixNano": str(AT * 10**6)}
    metrics = []
    for temporality, suffix in ((2, ""), (1, ".delta")):
        counter = times | {"asInt": "7", "exemplars": [exemplar(AT - 10, 3)]}
        buckets = {"count": "3", "sum": 5, "explicitBounds": [1, 4], "bucketCounts": ["1", "1", "1"]}
        classic = times | buckets | {"exemplars": [exemplar(AT - 20, 0.5), exemplar(AT - 15, 9)]}
        native = times | {"count": "1", "sum": 1, "scale": 0, "positive": {"offset": -1, "bucketCounts": ["1"]}}
        native |= {"exemplars": [exemplar(AT - 30, 1)]}
        kind = {"aggregationTemporality": temporality}
        metrics += [
            {"name": "requests" + suffix, "sum": kind | {"isMonotonic": True, "dataPoints": [counter]}},
            {"name": "duration" + suffix, "histogram": kind | {"dataPoints": [classic]}},
            {"name": "payload" + suffix, "exponentialHistogram": kind | {"dataPoints": [native]}},
        ]
    post(server, "/v1/metrics", json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}), "application/json")
    seconds = AT / 1000
    text = f"""# TYPE jobs counter
jobs_total{{queue="mail"}} 5 {seconds} # {{trace_id="{TRACE}"}} 2 {seconds - 0.25}
# TYPE wait histogram
wait_bucket{{le="1.0"}} 1 {seconds} # {{trace_id="a"}} 0.75 {seconds - 0.5}
wait_bucket{{le="+Inf"}} 2 {seconds} # {{}} 8
wait_count 2 {seconds}
wait_sum 8.75 {seconds}
# EOF
"""
    post(server, "/api/v1/import/prometheus", text, "application/openmetrics-text")
    sent = Series({"__name__": "written_total"}, [(AT, 1.0)], exemplars=[(AT - 5, 1.0, "b")])
    assert server.sender().write(sent).status == 204


def exemplars(server: Server, query: str) -> dict[frozenset, list[tuple[float, float, dict]]]:
    """Returns the exemplars by series: time in seconds, value and labels."""
    form = {"query": query, "start": str(AT / 1000 - 3600), "end": str(AT / 1000 + 3600)}
    with urllib.request.urlopen(f"{server.url}/api/v1/query_exemplars?{urllib.parse.urlencode(form)}", timeout=300) as answer:
        found = json.load(answer)["data"]
    return {frozenset(s["seriesLabels"].items()): [(e["timestamp"], float(e["value"]), e["labels"]) for e in s["exemplars"]] for s in found}


def wanted() -> dict[frozenset, list[tuple[float, float, dict]]]:
    of_otlp = {"trace_id": TRACE, "span_id": SPAN, "user": "köln"}

    def at(ago: int) -> float:
        return (AT - ago) / 1000

    want = {}
    for suffix, labels in (("", {}), (".delta", {"__temporality__": "delta"})):
        name = suffix.replace(".", "_")
        for metric, more, value in (
            (f"requests{name}_total", {}, (at(10), 3.0)),
            (f"duration{name}_bucket", {"le": "1"}, (at(20), 0.5)),
            (f"duration{name}_bucket", {"le": "+Inf"}, (at(15), 9.0)),
            (f"payload{name}", {}, (at(30), 1.0)),
        ):
            want[frozenset({"__name__": metric, **labels, **more}.items())] = [(*value, of_otlp)]
    for series, found in (
        ({"__name__": "jobs_total", "queue": "mail"}, (at(250), 2.0, {"trace_id": TRACE})),
        ({"__name__": "wait_bucket", "le": "1.0"}, (at(500), 0.75, {"trace_id": "a"})),
        ({"__name__": "wait_bucket", "le": "+Inf"}, (at(0), 8.0, {})),
        ({"__name__": "written_total"}, (at(5), 1.0, {"trace_id": "b"})),
    ):
        want[frozenset(series.items())] = [found]
    return want


def test_exemplars(programs: Programs, start: Start, file_store: Store) -> None:
    server = start(file_store)
    commands = Commands(programs, file_store)
    write(server)
    assert exemplars(server, '{__name__=~".+"}') == wanted()
    server.stop()
    commands.compact(time.time() + 86_400)
    assert all(level.endswith("h") for level in commands.levels())
    server.start()
    write(server)  # the same again: each counts once
    for _ in range(2):
        assert exemplars(server, '{__name__=~".+"}') == wanted()
        (one,) = exemplars(server, 'histogram_quantile(0.9, rate(duration_bucket{le="1"}[5m]))').values()
        assert one == wanted()[frozenset({"__name__": "duration_bucket", "le": "1"}.items())]
        server.stop()
        commands.compact(time.time() + 2 * 86_400)
        server.start()
