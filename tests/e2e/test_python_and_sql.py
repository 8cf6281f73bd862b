"""The Python client against a live server, and SQL over the same samples."""

import random
import time

import pytest
from promlake import Client, Matrix, Point, PromlakeError, Sample, Scalar, String, Vector, open_store
from support.questions import samples, vector
from support.remote_write import Series, series
from support.server import Server, Start
from support.stores import Store

NOW = int(time.time())
NOW_MS = NOW * 1000
JOBS = ("api", "db", "web")
COUNT = 20


def traffic() -> list[Series]:
    """Whole numbers, so that sums do not depend on the order of addition; over two hours, so that there are several windows."""
    chance = random.Random(3)
    times = [NOW_MS - 400_000 * i for i in reversed(range(COUNT))]
    return [
        series("requests_total", [(t, float(chance.randrange(1_000_000))) for t in times], job=job, core=str(core))
        for job in JOBS
        for core in range(3)
    ]


@pytest.fixture
def loaded(server: Server) -> Server:
    sender = server.sender()
    for s in traffic():
        assert sender.write(s).status == 204
    assert sender.write(*traffic()).status == 204, "the same samples again, as a sender that missed an answer would"
    assert sender.write(series("up", [(NOW_MS, 1)], job="api")).status == 204
    return server


def test_client_against_a_server(loaded: Server) -> None:
    client = loaded.client()
    assert client.query("42", NOW) == Scalar(NOW, 42.0)
    assert client.query('"text"', NOW) == String(NOW, "text")
    assert client.query("up", NOW) == Vector((Sample({"__name__": "up", "job": "api"}, NOW, value=1.0),))
    ranges = client.query_range("up", NOW - 10, NOW + 20, 10)
    assert isinstance(ranges, Matrix)
    assert [s.points for s in ranges.series] == [(Point(NOW, 1), Point(NOW + 10, 1), Point(NOW + 20, 1))]
    assert client.labels() == ["__name__", "core", "job"]
    assert client.labels("up") == ["__name__", "job"]
    assert client.label_values("job") == list(JOBS)
    assert client.label_values("job", "up") == ["api"]
    assert client.series("up", NOW - 60, NOW) == [{"__name__": "up", "job": "api"}]
    assert client.metadata("up") == {}
    limited = client.query("requests_total", NOW, limit=2)
    assert isinstance(limited, Vector)
    assert len(limited.samples) == 2
    assert limited.warnings
    with pytest.raises(PromlakeError) as e:
        client.query("sum(")
    assert (e.value.error_type, e.value.status) == ("bad_data", 400)


def test_sql_and_promql_agree(loaded: Server) -> None:
    span = COUNT * 400_000
    over_time = f"requests_total[{span}ms]"
    with open_store(loaded.store.url) as lake:
        rows = lake.sql(
            "SELECT l_job, sum(value), count(*), max(value) FROM samples JOIN series USING (metric, series_id) "
            "WHERE metric = 'requests_total' GROUP BY l_job ORDER BY l_job"
        ).fetchall()
        (distinct,) = lake.sql("SELECT count(DISTINCT ts) FROM samples WHERE metric = 'requests_total'").fetchone() or (0,)
    client = loaded.client()
    questions = [("sum", "sum"), ("sum", "count"), ("max", "max")]
    asked = [by_job(client, f"{outer} by (job) ({inner}_over_time({over_time}))") for outer, inner in questions]
    assert rows == [(job, *(answer[job] for answer in asked)) for job in JOBS]
    assert [r[2] for r in rows] == [3 * COUNT] * len(JOBS), "what was sent twice counts once"
    assert distinct == COUNT


def by_job(client: Client, expr: str) -> dict[str, float]:
    return {s.labels["job"]: s.value or 0 for s in vector(client, expr, NOW).samples}


def test_later_writes_win(server: Server) -> None:
    sender = server.sender()
    for value in (1.0, 2.0):
        assert sender.write(series("corrected", [(NOW_MS, value)])).status == 204
    assert list(samples(server.client(), "corrected", NOW_MS, 1000).values()) == [[(NOW_MS, 2.0)]]
    with open_store(server.store.url) as lake:
        assert lake.sql("SELECT value FROM samples").fetchall() == [(2.0,)]


def test_out_of_order_and_late_samples(start: Start, store: Store) -> None:
    server = start(store)
    times = [NOW_MS - offset for offset in (0, 60_000, 30_000, 86_400_000, 90_000)]
    for t in times:
        assert server.sender().write(series("late", [(t, t % 1000 + t // 1000)])).status == 204
    (points,) = samples(server.client(), "late", NOW_MS, 2 * 86_400_000).values()
    assert [t for t, _ in points] == sorted(times)
    server.stop()
