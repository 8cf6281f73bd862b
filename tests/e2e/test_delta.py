"""Delta temporality over HTTP: the points of a sender and its cumulative counters have equal rates, in whatever order they arrive."""

import gzip
import json
import random
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.commands import Commands
from support.programs import Programs
from support.server import Server, Start
from support.stores import Store

SECOND = 1000
HOUR = 3600 * SECOND
# Yesterday's noon in UTC: all windows are over.
END = (int(time.time()) // 86_400 * 86_400 - 43_200) * SECOND
BEGIN = END - 3 * HOUR
BATCH = 25
DELTA, CUMULATIVE = 1, 2
BOUNDS = [0.5, 5]


@dataclass
class Stream:
    """The points of one sender, in the form of OTLP's JSON: of a counter, a histogram and an exponential histogram."""

    temporality: int
    points: dict[str, list[dict]] = field(default_factory=lambda: {"events": [], "duration": [], "payload": []})

    def add(self, start: int, end: int, counts: list[int]) -> None:
        """Adds points with so many events below, between and above the bounds."""
        times = {"startTimeUnixNano": str(start * 1_000_000), "timeUnixNano": str(end * 1_000_000)}
        n, texts = sum(counts), [str(c) for c in counts]
        self.points["events"].append(times | {"asInt": str(n)})
        self.points["duration"].append(times | {"count": str(n), "sum": 2 * n, "explicitBounds": BOUNDS, "bucketCounts": texts})
        payload = {"count": str(n), "sum": 2 * n, "scale": 0, "zeroCount": "0", "positive": {"offset": -1, "bucketCounts": texts}}
        self.points["payload"].append(times | payload)

    def requests(self) -> list[dict]:
        """Returns all points in requests of some points of each metric."""
        out = []
        for at in range(0, len(self.points["events"]), BATCH):
            of = {name: {"aggregationTemporality": self.temporality, "dataPoints": p[at : at + BATCH]} for name, p in self.points.items()}
            metrics = [
                {"name": "events", "sum": of["events"] | {"isMonotonic": True}},
                {"name": "duration", "histogram": of["duration"]},
                {"name": "payload", "exponentialHistogram": of["payload"]},
            ]
            out.append({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})
        return out


def counted(rng: random.Random) -> tuple[Stream, Stream]:
    """Returns the same events as points and as totals. Collections fail; the sender is started again, and away for up to five minutes."""
    points, totals = Stream(DELTA), Stream(CUMULATIVE)
    t = start = last = BEGIN
    total = [0, 0, 0]
    while (t := t + 15 * SECOND) < END:
        fate = rng.randrange(60)
        if fate < 2:
            continue  # the next point has these events, too
        if fate == 2:
            t += rng.randrange(300) * SECOND
            start = last = t - rng.randrange(1, 15) * SECOND
            total = [0, 0, 0]
        now = [rng.randrange(20) * rng.randrange(3) for _ in total]
        now[0] += 5 * (last == start)
        total = [a + b for a, b in zip(total, now, strict=True)]
        points.add(last, t, now)
        totals.add(start, t, total)
        last = t
    return points, totals


def post(server: Server, body: dict) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    request = urllib.request.Request(f"{server.url}/v1/metrics", gzip.compress(json.dumps(body).encode(), 1), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        assert json.load(answer) == {}


def ask(server: Server, expr: str, temporality: str) -> dict[str, Any]:
    """Returns the values of a range query by the labels of the series, of which the temporality is none."""
    filled = expr.replace("{", f'{{__temporality__="{temporality}"')
    form = {"query": filled, "start": str(BEGIN / 1000 - 60), "end": str(END / 1000), "step": "13"}
    with urllib.request.urlopen(f"{server.url}/api/v1/query_range", urllib.parse.urlencode(form).encode(), timeout=300) as answer:
        result = json.load(answer)["data"]["result"]
    for series in result:
        series["metric"].pop("__temporality__", None)
    return {json.dumps(s["metric"], sort_keys=True): s["values"] for s in result}


QUESTIONS = [
    "increase(events_total{}[2m])", "increase(events_total{}[5m])", "increase(events_total{}[1h])", "rate(events_total{}[17m] offset 3m)",
    "irate(events_total{}[2m])", "resets(events_total{}[1h])", "sum(increase(events_total{}[30s]))", "increase(duration_bucket{}[5m])",
    "increase(duration_count{}[5m])", "histogram_quantile(0.9, sum by (le) (rate(duration_bucket{}[5m])))",
    "histogram_count(increase(payload{}[5m]))", "histogram_quantile(0.9, rate(payload{}[5m]))",
]  # fmt: skip


def compare(server: Server) -> dict[str, Any]:
    answers = {expr: ask(server, expr, "delta") for expr in QUESTIONS}
    for expr, got in answers.items():
        assert sum(len(values) for values in got.values()) > 500, expr
        assert got == ask(server, expr, ""), expr
    return answers


@pytest.mark.parametrize("seed", [1, 2])
def test_equal_rates(programs: Programs, start: Start, file_store: Store, seed: int) -> None:
    """Bit for bit, with the setting that makes cumulative counters count from their starts; before and after compaction."""
    rng = random.Random(seed)
    points, totals = counted(rng)
    requests = [*points.requests(), *totals.requests()]
    rng.shuffle(requests)
    late = [requests.pop() for _ in range(len(requests) // 5)]
    server = start(file_store, "--query.use-start-timestamps")
    commands = Commands(programs, file_store)
    for body in requests:
        post(server, body)
    server.stop()
    commands.compact(time.time() + 86_400)
    server.start()
    for body in [*late, requests[0]]:  # one comes twice
        post(server, body)
    before = compare(server)
    events = sum(int(p["asInt"]) for p in points.points["events"])
    ends = [int(p["timeUnixNano"]) // 10**9 for p in points.points["events"]]
    whole = server.client().query('increase(events_total{__temporality__="delta"}[4h])', ends[-1])
    assert [s.value for s in whole.samples] == [events], "all events count, those of the first points too"
    server.stop()
    commands.compact(time.time() + 2 * 86_400)
    assert all(level.endswith("h") for level in commands.levels())
    server.start()
    assert compare(server) == before


def test_without_the_setting(start: Start, file_store: Store) -> None:
    """Then a cumulative counter lacks the events of its first point, in windows in which it starts, and in no other one."""
    points, totals = counted(random.Random(3))
    server = start(file_store)
    for body in [*points.requests(), *totals.requests()]:
        post(server, body)
    starts = {int(p["startTimeUnixNano"]) / 10**9 for p in totals.points["events"]}
    expr = "increase(events_total{}[5m])"
    ((_, delta),) = ask(server, expr, "delta").items()
    ((_, cumulative),) = ask(server, expr, "").items()
    theirs = dict(cumulative)
    compared = [(value, theirs.get(at)) for at, value in delta if not any(at - 315 <= s <= at for s in starts)]
    assert len(compared) > 100
    assert all(a == b for a, b in compared)
    assert dict(delta) != theirs
