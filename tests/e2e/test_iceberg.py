"""Iceberg tables over a store's blocks, as other engines read them, give the rows of SQL."""

import json
import math
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from time import time

import duckdb
import pytest
from promlake import connect
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import StaticTable
from support.commands import Commands
from support.iceberg import Row, by_duckdb, by_pyiceberg, duckdb_with_iceberg
from support.programs import Programs
from support.remote_write import series
from support.server import Start
from support.stores import Gateway, Store

DAY_MS = 24 * 60 * 60 * 1000
# Three days ago in UTC: two whole days whose windows are closed.
FIRST_MS = (int(time() * 1000) // DAY_MS - 3) * DAY_MS
STEP_MS = 20 * 60 * 1000
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-290, 1.7e308, 2.0**53 + 2, 0.1, 12.233999999999998]


@dataclass(frozen=True)
class Lake:
    """A store whose server is gone."""

    store: Store
    commands: Commands

    def publish(self) -> dict[str, str]:
        """Publishes, and returns where the newest metadata of each table is."""
        (report,) = json.loads(self.commands.run("publish", "--json").stdout)
        assert report["waiting"] == report["old"] == 0
        return {t["name"]: t["metadata"] for t in report["tables"]}


@pytest.fixture
def lake(programs: Programs, file_store: Store, start: Start) -> Lake:
    return filled(programs, file_store, start)


def filled(programs: Programs, store: Store, start: Start) -> Lake:
    """Two days of samples in blocks, some of them sent twice, and one series corrected."""
    server = start(store, "--no-compactor.enabled")
    times = range(FIRST_MS, FIRST_MS + 2 * DAY_MS, STEP_MS)
    batch = [
        *(
            series("up", [(t, float(t // STEP_MS % 2)) for t in times], job=job, instance=f"{job}:{i}")
            for job in ("api", "db")
            for i in range(2)
        ),
        series("edges", [(t, EDGES[i % len(EDGES)]) for i, t in enumerate(times)], zone="ä"),
        series("corrected", [(t, 1.0) for t in times], **{"a.label": "of no column"}),
    ]
    sender = server.sender()
    assert sender.write(*batch).status == 204
    assert sender.write(*batch[:2], series("corrected", [(t, 2.0) for t in times[:9]], **{"a.label": "of no column"})).status == 204
    server.stop()
    lake = Lake(store, Commands(programs, store))
    lake.commands.compact(time() + 3600)
    return lake


def by_sql(lake: Lake) -> Counter[Row]:
    with connect(lake.store.url) as connection:
        rows = connection.sql("SELECT metric, labels, ts, value FROM samples").arrow().to_pylist()
    return Counter((r["metric"], tuple(sorted(r["labels"])), round(r["ts"].timestamp() * 1000), repr(r["value"])) for r in rows)


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with_iceberg() as connection:
        yield connection


def test_readers_give_the_rows_of_sql(lake: Lake, duck: duckdb.DuckDBPyConnection) -> None:
    tables = lake.publish()
    want = by_sql(lake)
    assert want.total() == 6 * 2 * DAY_MS // STEP_MS
    assert by_pyiceberg(tables, lake.store) == want
    assert by_duckdb(duck, tables) == want


def test_a_bucket(programs: Programs, gateway: Gateway, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables in a bucket name their files there, and have the rows of SQL, before and after another publication."""
    lake = filled(programs, gateway.store(), start)
    for name, value in lake.store.env.items():
        monkeypatch.setenv(name, value)
    tables = lake.publish()
    assert all(t.startswith(lake.store.url.partition("?")[0] + "/v1/anonymous/iceberg/") for t in tables.values())
    want = by_sql(lake)
    assert want.total() == 6 * 2 * DAY_MS // STEP_MS
    assert by_pyiceberg(tables, lake.store) == want
    server = start(lake.store, "--no-compactor.enabled")
    assert server.sender().write(series("late", [(FIRST_MS + 1, 3.0)], rack="r1")).status == 204
    server.stop()
    lake.commands.compact(time() + 3600)
    after = lake.publish()
    assert by_pyiceberg(after, lake.store) == by_sql(lake) != want
    assert by_pyiceberg(tables, lake.store) == want, "the version before stays readable"


def test_conditions_prune_files(lake: Lake, duck: duckdb.DuckDBPyConnection) -> None:
    samples = lake.publish()["samples"]
    second = FIRST_MS + DAY_MS
    table = StaticTable.from_metadata(samples)
    for condition, files in ((AlwaysTrue(), 2), (f"ts_ms >= {second}", 1), (f"ts_ms < {FIRST_MS}", 0), ("metric = 'z'", 0)):
        assert len(list(table.scan(row_filter=condition).plan_files())) == files
    plan = "EXPLAIN ANALYZE SELECT count(*) FROM iceberg_scan(?) WHERE ts_ms >= ?"
    assert "Total Files Read: 1" in duck.execute(plan, [samples, second]).fetchall()[0][1]


def test_tables_follow_the_store(lake: Lake, start: Start, duck: duckdb.DuckDBPyConnection) -> None:
    """After a deletion and late samples, and their compaction, the next version has them, and the one before stays readable."""
    before = lake.publish()
    rows = by_pyiceberg(before, lake.store)
    server = start(lake.store, "--no-compactor.enabled", "--web.enable-admin-api")
    assert server.sender().write(series("late", [(FIRST_MS + 1, 3.0)], rack="r1")).status == 204
    form = {"match[]": '{job="api"}', "start": str(FIRST_MS // 1000), "end": str((FIRST_MS + DAY_MS) // 1000 - 1)}
    with urllib.request.urlopen(f"{server.url}/api/v1/admin/tsdb/delete_series", urllib.parse.urlencode(form).encode()) as response:
        assert response.status == 204
    server.stop()
    lake.commands.compact(time() + 3600)
    assert by_pyiceberg(before, lake.store) == rows
    after = lake.publish()
    assert after != before
    want = by_sql(lake)
    assert sum(r[0] == "late" for r in want) == 1
    assert want.total() == rows.total() + 1 - 2 * DAY_MS // STEP_MS
    assert by_pyiceberg(after, lake.store) == by_duckdb(duck, after) == want
    assert lake.publish() == after, "nothing changed"
