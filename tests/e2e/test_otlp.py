"""OpenTelemetry's own exporter writes, and PromQL reads the same values."""

import json
import os
import shlex
import time
import urllib.error
import urllib.request

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import Counter, Histogram, Meter, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from support.documentation import ADDRESS, block
from support.questions import vector
from support.server import Server


@pytest.fixture
def configured(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with the variables that the documentation gives to SDKs."""
    for name in [n for n in os.environ if n.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for assignment in shlex.split(block("otlp", "OTEL_", {ADDRESS: server.url}), comments=True):
        name, _, value = assignment.partition("=")
        monkeypatch.setenv(name, value)
    return server


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


def test_the_collectors_endpoint_exists(server: Server) -> None:
    configuration = yaml.safe_load(block("otlp", "exporters:", {ADDRESS: server.url}))
    (exporter,) = configuration["exporters"].values()
    assert post(f"{exporter['endpoint']}/v1/metrics", {"resourceMetrics": []}) == (200, {})
    pipeline = configuration["service"]["pipelines"]["metrics"]
    assert pipeline["receivers"] == ["otlp"]
    assert set(pipeline["exporters"]) <= set(configuration["exporters"])
