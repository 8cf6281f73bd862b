"""All ways to read a lake agree: PromQL, SQL at the server, over Flight SQL and from the bucket alone, and Iceberg tables.

Each history is random: writes in any order of time, the same samples again, corrected values, deletions. A model in this file has what must
be there. The server compacts meanwhile, so the answers come from segments, from blocks of all levels, and from both.
"""

import datetime as dt
import json
import math
import random
import re
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import adbc_driver_flightsql.dbapi as flight
import pyarrow as pa
import pytest
from promlake import Matrix, Vector, connect
from support.commands import Commands
from support.iceberg import Row, by_duckdb, by_pyiceberg, duckdb_with_iceberg
from support.programs import Programs, wait_until
from support.questions import matrix, vector
from support.remote_write import Sender, Series, series
from support.server import FRESH, Server, Start
from support.stores import Store

DAY_MS = 24 * 60 * 60 * 1000
# Three days ago in UTC: two whole days whose windows are closed.
FIRST_MS = (int(time.time() * 1000) // DAY_MS - 3) * DAY_MS
LAST_MS = FIRST_MS + 2 * DAY_MS - 1
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-290, 1.7e308, 2.0**53 + 2, 0.1, 12.233999999999998]
COMPACTING = (
    "--compactor.compaction-interval=1s", "--ingest.flush-timeout=2s", "--ingest.settle-delay=3s", "--compactor.settle-delay=3s",
    "--compactor.late-delay=1s", "--compactor.window-delay=1s",
)  # fmt: skip

Labels = tuple[tuple[str, str], ...]
Ask = Callable[[str], pa.Table]  # asks a statement


@dataclass(frozen=True)
class Selector:
    """A metric, a condition on one label in both languages, and times: (start, end] in ms."""

    metric: str
    label: str
    operator: str
    value: str
    start: int
    end: int

    def promql(self) -> str:
        return f'{self.metric}{{{self.label}{self.operator}"{self.value}"}}'

    def sql(self) -> str:
        label = f"coalesce(labels['{self.label}'], '')"
        test = {
            "=": f"{label} = '{self.value}'", "!=": f"{label} != '{self.value}'",
            "=~": f"regexp_full_match({label}, '{self.value}')", "!~": f"NOT regexp_full_match({label}, '{self.value}')",
        }  # fmt: skip
        return f"metric = '{self.metric}' AND {test[self.operator]} AND ts > {moment(self.start)} AND ts <= {moment(self.end)}"

    def has(self, metric: str, labels: Labels) -> bool:
        value = dict(labels).get(self.label, "")
        equal = re.fullmatch(self.value, value) is not None if "~" in self.operator else value == self.value
        return metric == self.metric and equal == (self.operator[0] == "=")


def moment(ms: int) -> str:
    return f"TIMESTAMPTZ '{dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec='milliseconds')}'"


@dataclass
class Model:
    """What must be there: the last value that was acknowledged for each time of each series."""

    chance: random.Random
    samples: dict[tuple[str, Labels], dict[int, float]] = field(default_factory=dict)
    sent: list[list[Series]] = field(default_factory=list)

    def batch(self) -> list[Series]:
        """Returns series to write: new ones at times anywhere, or those of an earlier request again, some with other values."""
        c = self.chance
        if self.sent and c.random() < 0.3:
            again = c.choice(self.sent)
            if c.random() < 0.5:
                return again
            return [Series(s.labels, [(t, self.value(s.labels["__name__"])) for t, _ in s.samples]) for s in again]
        out = []
        for _ in range(c.randint(1, 6)):
            name = c.choice(["total", "total", "edges"])
            start, step = c.randrange(FIRST_MS, LAST_MS), c.choice([15_000, 60_000, 611_003])
            times = [t for t in range(start, start + c.randint(1, 200) * step, step) if t <= LAST_MS]
            labels = {"job": c.choice("abc"), "instance": str(c.randrange(3))} | ({"zone": "ä"} if c.random() < 0.3 else {})
            out.append(series(name, [(t, self.value(name)) for t in times], **labels))
        return list({tuple(sorted(s.labels.items())): s for s in out}.values())

    def value(self, name: str) -> float:
        """Whole numbers have sums that do not depend on the order of addition."""
        return self.chance.choice(EDGES) if name == "edges" else float(self.chance.randrange(1_000_000))

    def write(self, batch: list[Series]) -> None:
        self.sent.append(batch)
        for s in batch:
            labels = dict(s.labels)
            self.samples.setdefault((labels.pop("__name__"), tuple(sorted(labels.items()))), {}).update(s.samples)

    def selector(self) -> Selector:
        c = self.chance
        operator = c.choice(["=", "!=", "=~", "!~"])
        value = c.choice(["a|b", "b.*", "[^c]", ""]) if "~" in operator else c.choice(["a", "b", ""])
        start, end = sorted(c.sample(range(FIRST_MS - 3_600_000, LAST_MS), 2))
        return Selector(c.choice(["total", "edges"]), c.choice(["job", "zone"]), operator, value, start, end)

    def delete(self, s: Selector) -> None:
        for (metric, labels), points in self.samples.items():
            if s.has(metric, labels):
                for t in [t for t in points if s.start <= t <= s.end]:
                    del points[t]

    def rows(self, s: Selector | None = None) -> Counter[Row]:
        return Counter(
            (metric, labels, t, repr(v))
            for (metric, labels), points in self.samples.items()
            if s is None or s.has(metric, labels)
            for t, v in points.items()
            if s is None or s.start < t <= s.end
        )


def http(server: Server) -> Ask:
    def ask(statement: str) -> pa.Table:
        body = json.dumps({"query": statement, "format": "arrow"}).encode()
        request = urllib.request.Request(f"{server.url}/api/v1/sql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as response:
            return pa.ipc.open_stream(response.read()).read_all()

    return ask


def flight_sql(server: Server, stack: ExitStack) -> Ask:
    (line,) = (line for line in server.process.log().splitlines() if '"msg":"serving Flight SQL"' in line)
    connection = stack.enter_context(flight.connect("grpc://" + json.loads(line)["listen"], autocommit=True))

    def ask(statement: str) -> pa.Table:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetch_arrow_table()

    return ask


def python(url: str) -> Ask:
    """Opens the lake for each statement: a connection to a bucket has a snapshot."""

    def ask(statement: str) -> pa.Table:
        with connect(url) as connection:
            return pa.table(connection.sql(statement).arrow())

    return ask


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def lake(start: Start, file_store: Store, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name, value in FRESH.items():
        monkeypatch.setenv(name, value)
    return start(file_store, "--flight.listen-address", "127.0.0.1:0", "--web.enable-admin-api", *COMPACTING)


def change(server: Server, model: Model) -> None:
    """Makes a few random changes, each of which the server has acknowledged."""
    sender = server.sender()
    for _ in range(model.chance.randint(1, 4)):
        if model.chance.random() < 0.2:
            s = model.selector()
            form = {"match[]": s.promql(), "start": f"{s.start / 1000:.3f}", "end": f"{s.end / 1000:.3f}"}
            with urllib.request.urlopen(f"{server.url}/api/v1/admin/tsdb/delete_series", urllib.parse.urlencode(form).encode()) as r:
                assert r.status == 204
            model.delete(s)
        else:
            batch = model.batch()
            wait_until(partial(acknowledged, sender, batch), "a write to be acknowledged")
            model.write(batch)


def acknowledged(sender: Sender, batch: list[Series]) -> bool:
    """Sends a batch, and reports whether it is stored. It is refused if its flush takes too long."""
    answer = sender.write(*batch)
    assert answer.status == 204 or answer.status >= 500, answer
    return answer.status == 204


def of_promql(server: Server, s: Selector) -> Counter[Row]:
    out: Counter[Row] = Counter()
    for found in matrix(server.client(), f"{s.promql()}[{s.end - s.start}ms]", s.end / 1000).series:
        labels = dict(found.labels)
        metric, rest = labels.pop("__name__"), tuple(sorted(labels.items()))
        out.update((metric, rest, round(p.time * 1000), repr(p.value)) for p in found.points)
    return out


def of_sql(table: pa.Table) -> Counter[Row]:
    return Counter(
        (r["metric"] or "", tuple(sorted(dict(r["labels"]).items())), round(r["ts"].timestamp() * 1000), repr(r["value"]))
        for r in table.to_pylist()
    )


def agree_on_samples(server: Server, readers: dict[str, Ask], model: Model) -> None:
    s = model.selector()
    want = model.rows(s)
    assert of_promql(server, s) == want, s
    for name, ask in readers.items():
        assert of_sql(ask(f"FROM samples SELECT metric, labels, ts, value WHERE {s.sql()}")) == want, (name, s)


EXPRESSIONS = [
    "sum by (job) (rate(total[1h]))", "increase(total[30m])", "max_over_time(total[2h])", "count by (instance) (total)", "total > 500000",
    "sum without (instance) (last_over_time(total[20m]))", "avg_over_time(total[1h]) * on (job, instance, zone) group_left () total",
    "max(total) - min(total)", "quantile_over_time(0.5, total[1h])", "-edges", "changes(edges[3h])", "absent(total)", "topk(1, total)",
]  # fmt: skip


def agree_on_expressions(server: Server, readers: dict[str, Ask], model: Model) -> None:
    expr = model.chance.choice(EXPRESSIONS)
    start = model.chance.randrange(FIRST_MS, LAST_MS) // 1000
    end = start + 5 * 3600
    answer = server.client().query_range(expr, start, end, 300)
    assert isinstance(answer, Matrix)
    want: Counter[Row] = Counter()
    for found in answer.series:
        labels = dict(found.labels)
        metric = labels.pop("__name__", "")
        want.update((metric, tuple(sorted(labels.items())), round(p.time * 1000), repr(p.value)) for p in found.points)
    for name, ask in readers.items():
        rows = f"promql('{expr}', {moment(start * 1000)}, {moment(end * 1000)}, INTERVAL 5 MINUTE)"
        statement = f"FROM {rows} SELECT metric, labels, ts, value"
        assert of_sql(ask(statement)) == want, (name, expr, start)


AGGREGATES = ["rate", "increase", "delta", "changes", "resets", "sum_over_time", "max_over_time", "count_over_time", "last_over_time"]


def agree_on_aggregates(server: Server, readers: dict[str, Ask], model: Model) -> None:
    function, s = model.chance.choice(AGGREGATES), model.selector()
    answer = vector(server.client(), f"{function}({s.promql()}[{s.end - s.start}ms])", s.end / 1000)
    assert isinstance(answer, Vector)
    want = Counter((tuple(sorted((k, v) for k, v in x.labels.items() if k != "__name__")), repr(x.value)) for x in answer.samples)
    for name, ask in readers.items():
        value = f"prom_{function}(ts, value, {moment(s.start)}, {moment(s.end)})"
        table = ask(f"FROM samples SELECT labels, {value} AS value WHERE {s.sql()} GROUP BY labels")
        got = Counter((tuple(sorted(dict(r["labels"]).items())), repr(r["value"])) for r in table.to_pylist() if r["value"] is not None)
        assert got == want, (name, function, s)


@pytest.mark.parametrize("seed", [1, 2])
def test_all_readers_agree(programs: Programs, lake: Server, stack: ExitStack, seed: int) -> None:
    model = Model(random.Random(seed))
    readers = {"http": http(lake), "flight": flight_sql(lake, stack), "server": python(lake.url), "bucket": python(lake.store.url)}
    for _ in range(12):
        change(lake, model)
        for agree in (agree_on_samples, agree_on_expressions, agree_on_aggregates):
            agree(lake, readers, model)
    commands = Commands(programs, lake.store)
    wait_until(lambda: any(level != "segment" for level in commands.levels()), "a block")
    for agree in (agree_on_samples, agree_on_expressions, agree_on_aggregates):
        agree(lake, readers, model)
    lake.stop()

    commands.compact(time.time() + 3600)
    (report,) = json.loads(commands.run("publish", "--json").stdout)
    assert report["waiting"] == report["old"] == 0
    tables = {t["name"]: t["metadata"] for t in report["tables"]}
    want = model.rows()
    assert of_sql(readers["bucket"]("FROM samples SELECT metric, labels, ts, value")) == want
    assert by_pyiceberg(tables, lake.store) == want
    assert by_duckdb(stack.enter_context(duckdb_with_iceberg()), tables) == want
