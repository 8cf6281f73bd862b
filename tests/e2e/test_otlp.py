"""OpenTelemetry's own exporter writes, and PromQL reads the same values."""

import json
import math
import os
import shlex
import time
import urllib.error
import urllib.request
from itertools import pairwise
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import Counter, Histogram, Meter, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from support.documentation import ADDRESS, block
from support.programs import Process, Programs, free_port, wait_until
from support.questions import vector
from support.server import Server

PATIENCE = 300  # seconds, of exporters


@pytest.fixture
def configured(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with the variables that the documentation gives to SDKs."""
    configure(monkeypatch, {ADDRESS: server.url})
    return server


def configure(monkeypatch: pytest.MonkeyPatch, replacements: dict[str, str]) -> None:
    for name in [n for n in os.environ if n.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(PATIENCE))
    for assignment in shlex.split(block("otlp", "OTEL_", replacements), comments=True):
        name, _, value = assignment.partition("=")
        monkeypatch.setenv(name, value)


def record(meter: Meter) -> None:
    requests = meter.create_counter("http.server.requests", unit="By", description="Bytes served.")
    requests.add(5, {"http.route": "/a", "code": 200})
    requests.add(7, {"http.route": "/a", "code": 200})
    meter.create_up_down_counter("queue.size").add(-3)
    meter.create_observable_gauge("room.temperature", [lambda _: [Observation(20.5, {"city": "köln"})]], unit="Cel")
    seconds = meter.create_histogram("http.server.duration", unit="s", explicit_bucket_boundaries_advisory=[0.1, 1])
    sizes = meter.create_histogram("payload.size")
    for value in (0.05, 0.5, 5):
        seconds.record(value)
        sizes.record(value)


def test_python_sdk(configured: Server) -> None:
    reader = InMemoryMetricReader()
    resource = Resource.create({"service.name": "shop", "service.namespace": "acme", "service.instance.id": "i-1", "host.name": "h"})
    provider = MeterProvider(
        [reader], resource, views=[View(instrument_name="payload.size", aggregation=ExponentialBucketHistogramAggregation())]
    )
    record(provider.get_meter("test"))
    exporter = OTLPMetricExporter()
    try:
        data = reader.get_metrics_data()
        assert data is not None
        assert exporter.export(data) is MetricExportResult.SUCCESS
    finally:
        exporter.shutdown()
        provider.shutdown()
    client, now = configured.client("team-a"), time.time() + 1

    def value(expr: str) -> float:
        (sample,) = vector(client, expr, now).samples
        return sample.value

    who = 'job="acme/shop", instance="i-1"'
    assert value(f'http_server_requests_bytes_total{{http_route="/a", code="200", {who}}}') == 12
    assert value(f"queue_size{{{who}}}") == -3
    assert value(f'room_temperature_celsius{{city="köln", {who}}}') == 20.5
    assert [value(f'http_server_duration_seconds_bucket{{le="{le}", {who}}}') for le in ("0.1", "1", "+Inf")] == [1, 2, 3]
    assert value(f"http_server_duration_seconds_sum{{{who}}}") == 5.55
    assert value("histogram_count(payload_size)") == 3
    assert value("histogram_sum(payload_size)") == 5.55
    assert value("http_server_requests_bytes_total * on (job, instance) group_left (host_name) target_info{host_name='h'}") == 12
    with urllib.request.urlopen(
        urllib.request.Request(
            f"{configured.url}/api/v1/metadata?metric=http_server_requests_bytes_total", headers={"X-Scope-OrgID": "team-a"}
        ),
        timeout=300,
    ) as answer:
        (meta,) = json.load(answer)["data"]["http_server_requests_bytes_total"]
    assert (meta["type"], meta["help"], meta["unit"]) == ("counter", "Bytes served.", "bytes")


def post(url: str, body: object) -> tuple[int, dict]:
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_delta_counts_as_cumulative_does(configured: Server) -> None:
    """Two readers of one SDK, with either temporality: rates count the same events, and nothing is lost."""
    delta = InMemoryMetricReader(preferred_temporality={Counter: AggregationTemporality.DELTA, Histogram: AggregationTemporality.DELTA})
    cumulative = InMemoryMetricReader()
    provider = MeterProvider([delta, cumulative], Resource.create({"service.name": "shop"}))
    meter, exporter = provider.get_meter("test"), OTLPMetricExporter()
    requests, seconds = meter.create_counter("requests"), meter.create_histogram("duration", unit="s")
    try:
        for n in (3, 1, 4, 1, 5):
            requests.add(n)
            seconds.record(n)
            added = time.time_ns() // 1_000_000
            while time.time_ns() // 1_000_000 <= added:  # points end later than they start
                pass
            for reader in (delta, cumulative):
                data = reader.get_metrics_data()
                assert data is not None
                assert exporter.export(data) is MetricExportResult.SUCCESS
    finally:
        exporter.shutdown()
        provider.shutdown()
    client, now = configured.client("team-a"), time.time() + 1

    def value(expr: str, at: float) -> float:
        (sample,) = vector(client, expr, at).samples
        return sample.value

    point, total = (f'requests_total{{job="shop", __temporality__="{t}"}}' for t in ("delta", ""))
    last = value(f"timestamp({point})", now)
    assert value(point, now) == 5
    assert value(total, now) == 14
    assert value(f"increase({point}[5m])", last) == pytest.approx(14)
    assert value(f"sum_over_time({point}[5m])", now) == 14
    count = 'increase(duration_seconds_{}{{__temporality__="delta"}}[5m])'
    assert value(count.format("count"), last) == pytest.approx(5)
    assert value(count.format("sum"), last) == pytest.approx(14)
    assert value("histogram_quantile(1, sum by (le) (rate(duration_seconds_bucket{__temporality__='delta'}[5m])))", last) == 5


def test_what_delta_is_refused(server: Server) -> None:
    def counter(name: str, temporality: int) -> dict:
        point = {"asInt": "5", "timeUnixNano": str(time.time_ns())}
        return {"name": name, "sum": {"isMonotonic": name != "delta", "aggregationTemporality": temporality, "dataPoints": [point]}}

    metrics = [counter("delta", 1), counter("cumulative", 2)]
    status, answer = post(f"{server.url}/v1/metrics", {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})
    assert status == 200
    assert answer["partialSuccess"]["rejectedDataPoints"] == "1"
    assert "otlp.native-delta-ingestion" in answer["partialSuccess"]["errorMessage"]
    assert [s.value for s in vector(server.client(), "cumulative_total", time.time() + 1).samples] == [5]
    status, answer = post(f"{server.url}/v1/metrics", [])
    assert (status, answer["code"]) == (400, 3)


def test_the_collector(programs: Programs, server: Server, tmp_path: Path) -> None:
    """The OpenTelemetry Collector takes metrics from an SDK, and writes them with the documentation's configuration."""
    at = f"127.0.0.1:{free_port()}"
    (tmp_path / "documented.yaml").write_text(block("otlp", "exporters:", {ADDRESS: server.url}))
    own = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": at}}}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"output_paths": ["stderr"]}}},
    }
    (tmp_path / "own.yaml").write_text(json.dumps(own))  # JSON is YAML
    files = [f"--config=file:{tmp_path / name}" for name in ("documented.yaml", "own.yaml")]
    collector = Process([programs.collector, *files], tmp_path / "collector")
    try:
        collector.wait_until(lambda: "Everything is ready" in collector.log(), "the Collector")
        reader = InMemoryMetricReader()
        views = [View(instrument_name="payload.size", aggregation=ExponentialBucketHistogramAggregation())]
        provider = MeterProvider([reader], Resource.create({"service.name": "shop", "host.name": "h"}), views=views)
        record(provider.get_meter("test"))
        exporter = OTLPMetricExporter(f"http://{at}/v1/metrics", timeout=PATIENCE)
        data = reader.get_metrics_data()
        assert data is not None
        assert exporter.export(data) is MetricExportResult.SUCCESS
        exporter.shutdown()
        provider.shutdown()
        client = server.client("team-a")
        now = time.time() + 60
        wait_until(lambda: len(vector(client, "target_info", now).samples) == 1, "the Collector's request", context=collector.log)
        assert collector.terminate() == 0
        assert "deprecated" not in collector.log()
    finally:
        collector.cleanup()
    want = {
        'http_server_requests_bytes_total{http_route="/a", code="200", job="shop"}': 12,
        "queue_size": -3,
        'room_temperature_celsius{city="köln"}': 20.5,
        'http_server_duration_seconds_bucket{le="1"}': 2,
        "histogram_count(payload_size)": 3,
        "histogram_sum(payload_size)": 5.55,
    }
    assert {expr: [s.value for s in vector(client, expr, now).samples] for expr in want} == {e: [v] for e, v in want.items()}


def test_the_documentations_delta(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other value of the page's variable makes an SDK send points of delta temporality, except for what may fall."""
    configure(monkeypatch, {ADDRESS: server.url, "=cumulative   # or delta": "=delta"})
    exporter = OTLPMetricExporter()
    provider = MeterProvider([PeriodicExportingMetricReader(exporter, math.inf)], Resource.create({"service.name": "shop"}))
    record(provider.get_meter("test"))
    assert provider.force_flush(PATIENCE * 1000)
    provider.shutdown()
    now = time.time() + 1
    for expr, value in {
        'http_server_requests_bytes_total{__temporality__="delta"}': 12,
        'http_server_duration_seconds_bucket{__temporality__="delta", le="+Inf"}': 3,
        'queue_size{__temporality__=""}': -3,
    }.items():
        assert [s.value for s in vector(server.client("team-a"), expr, now).samples] == [value], expr


def cumulative(name: str, points: list[tuple[int, int]], **attributes: str) -> dict:
    """Returns a counter that began at the first point's time."""
    first = points[0][0]
    data = [
        {"startTimeUnixNano": str(first * 10**9), "timeUnixNano": str(at * 10**9), "asInt": str(value), "attributes": pairs(attributes)}
        for at, value in points
    ]
    return {"name": name, "sum": {"isMonotonic": True, "aggregationTemporality": 2, "dataPoints": data}}


def pairs(attributes: dict[str, str]) -> list[dict]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]


def test_the_documentations_target_info(server: Server) -> None:
    now = int(time.time())
    counter = cumulative("http.server.requests", [(now - 240, 0), (now - 120, 75), (now, 150)]) | {"unit": "By"}
    for host in ("a", "b"):
        resource = {"attributes": pairs({"service.name": "shop", "service.instance.id": f"{host}-1", "host.name": host})}
        of = {"resource": resource, "scopeMetrics": [{"metrics": [counter]}]}
        assert post(f"{server.url}/v1/metrics", {"resourceMetrics": [of]}) == (200, {})
    (query,) = block("otlp", "sum by (host_name)").splitlines()
    assert {s.labels["host_name"]: s.value for s in vector(server.client(), query, now).samples} == {"a": 0.5, "b": 0.5}


def test_the_documentations_queries_of_deltas(server: Server) -> None:
    now = int(time.time())
    edges = range(now - 300, now + 1, 60)
    times = [{"startTimeUnixNano": str(a * 10**9), "timeUnixNano": str(b * 10**9)} for a, b in pairwise(edges)]
    requests = {"isMonotonic": True, "aggregationTemporality": 1, "dataPoints": [t | {"asInt": "6"} for t in times]}
    buckets = {"count": "6", "sum": 3, "explicitBounds": [0.5, 1], "bucketCounts": ["3", "3", "0"]}
    duration = {"aggregationTemporality": 1, "dataPoints": [t | buckets for t in times]}
    metrics = [{"name": "http.server.requests", "sum": requests}, {"name": "http.server.duration", "unit": "s", "histogram": duration}]
    assert post(f"{server.url}/v1/metrics", {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}) == (200, {})
    rate, quantile, total = block("otlp", "rate(http_server_requests_total").splitlines()
    assert [s.value for s in vector(server.client(), rate, now).samples] == [0.1]
    assert [s.value for s in vector(server.client(), quantile, now).samples] == pytest.approx([0.99])
    assert [s.value for s in vector(server.client(), total, now).samples] == [30]
