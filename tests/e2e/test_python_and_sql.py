"""The Python client against a live server, and connections to it and to its store without it."""

import datetime as dt
import random
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from promlake import Client, Connection, Matrix, Point, PromlakeError, Sample, Scalar, String, Vector, connect
from support.programs import wait_until
from support.questions import samples, vector
from support.remote_write import Series, series
from support.server import FRESH, Server, Start
from support.stores import Gateway, Store, directory_store

NOW = int(time.time())
NOW_MS = NOW * 1000
MOMENT = dt.datetime.fromtimestamp(NOW, dt.UTC)
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


Connect = Callable[..., Connection]


@pytest.fixture(scope="module", params=["file", "s3"])
def served(
    request: pytest.FixtureRequest, start_for_module: Start, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with samples, over each kind of store in turn. No test changes these samples."""
    server = start_for_module(gateway.store() if request.param == "s3" else directory_store(tmp_path_factory.mktemp("lake") / "store"))
    sender = server.sender()
    for _ in range(2):
        assert sender.write(*traffic(), series("up", [(NOW_MS, 1)], job="api")).status == 204
    yield server
    server.stop()


@pytest.fixture(params=["server", "store"])
def connected(request: pytest.FixtureRequest, served: Server, monkeypatch: pytest.MonkeyPatch) -> tuple[Server, Connect]:
    """The server, and what connects to it or to its store."""
    for name, value in (FRESH | served.store.env).items():
        monkeypatch.setenv(name, value)
    return served, lambda **more: connect(served.url if request.param == "server" else served.store.url, **more)


def test_sql_and_promql_agree(connected: tuple[Server, Connect]) -> None:
    server, open_lake = connected
    over_time = f"requests_total[{COUNT * 400}s]"
    with open_lake() as lake:
        rows = lake.sql(
            "SELECT labels['job'] AS job, sum(value), count(*), max(value) FROM samples WHERE metric = $1 GROUP BY ALL ORDER BY ALL",
            ["requests_total"],
        ).fetchall()
        client = server.client()
        questions = [("sum", "sum"), ("sum", "count"), ("max", "max")]
        asked = [by_job(client, f"{outer} by (job) ({inner}_over_time({over_time}))") for outer, inner in questions]
        assert rows == [(job, *(answer[job] for answer in asked)) for job in JOBS]
        assert [r[2] for r in rows] == [3 * COUNT] * len(JOBS), "what was sent twice counts once"
        for expr in (f"sum by (job) (rate({over_time}))", "requests_total * 2", "vector(1)"):
            instant = {tuple(sorted(s.labels.items())): s.value for s in vector(client, expr, NOW).samples}
            assert instant == {labelled(metric, labels): value for metric, labels, _, value in lake.query(expr, NOW)}, expr
        expr = "rate(requests_total[20m])"
        ranges = client.query_range(expr, NOW - 3600, NOW, 300)
        want = {(tuple(sorted(s.labels.items())), p.time): p.value for s in ranges.series for p in s.points}
        got = lake.query_range(expr, dt.datetime.fromtimestamp(NOW - 3600, dt.UTC), NOW, dt.timedelta(minutes=5))
        assert want == {(labelled(metric, labels), ts.timestamp()): value for metric, labels, ts, value in got}
        assert want
        assert lake.client.query("up", NOW) == client.query("up", NOW)


def labelled(metric: str | None, labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((labels | ({"__name__": metric} if metric else {})).items()))


def test_results(connected: tuple[Server, Connect]) -> None:
    _, open_lake = connected
    lake = open_lake()
    rows = lake.sql("SELECT metric, labels, ts, value FROM samples WHERE metric = 'up' AND ts >= $since", {"since": MOMENT})
    del lake  # the result still has its connection
    assert rows.columns == ["metric", "labels", "ts", "value"]
    assert rows.fetchall() == [("up", {"job": "api"}, MOMENT, 1.0)]
    assert rows.arrow().schema.field("value").type == pa.float64()
    assert str(rows).splitlines()[0].split() == ["metric", "labels", "ts", "value"]
    assert len(rows) == 1
    lake = open_lake()
    many = lake.sql("SELECT i FROM range(300000) t(i)").batches()
    assert sum(batch.num_rows for batch in many) == 300_000
    assert lake.sql("SELECT count(*) FROM samples WHERE metric <> 'changed'", []).fetchall() == [(9 * COUNT + 1,)]
    times = lake.sql("SELECT unnest($names), unnest($times)::TIMESTAMPTZ", {"names": ["a", None], "times": [MOMENT, MOMENT]})
    assert times.fetchall() == [("a", MOMENT), (None, MOMENT)]
    assert open_lake(tenant="nobody").sql("SELECT count(*) FROM samples").fetchall() == [(0,)]


def test_errors(connected: tuple[Server, Connect]) -> None:
    _, open_lake = connected
    with open_lake() as lake:
        for statement, kind, message in [
            ("SELECT nothing FROM samples", "bad_data", "nothing"),
            ("FROM '/etc/passwd'", "bad_data", "there is no table"),
            ("SELECT metric::INT FROM samples", "execution", "Conversion Error"),
        ]:
            with pytest.raises(PromlakeError, match=message) as e:
                lake.sql(statement)
            assert e.value.error_type == kind
        with pytest.raises(PromlakeError, match="incomplete"):
            lake.sql("SELECT CASE WHEN range = 900000 THEN error('midway') ELSE 'x' || range END FROM range(1000000)").arrow()
        with pytest.raises(PromlakeError, match="parse error"):
            lake.query("sum(")


def test_as_of(connected: tuple[Server, Connect]) -> None:
    server, open_lake = connected
    assert server.sender().write(series("changed", [(NOW_MS, 1)])).status == 204
    then = dt.datetime.now(dt.UTC)
    wait_until(lambda: dt.datetime.now(dt.UTC) > then + dt.timedelta(seconds=1), "a later second")
    assert server.sender().write(series("changed", [(NOW_MS, 2)])).status == 204
    for as_of, want in ((None, 2.0), (then, 1.0)):
        with open_lake(as_of=as_of) as lake:
            assert lake.query("changed", NOW).fetchall()[0][3] == want
            assert lake.sql("SELECT value FROM samples WHERE metric = 'changed'").fetchall() == [(want,)]


def test_a_store_that_is_not_there(file_store: Store) -> None:
    with pytest.raises(PromlakeError, match="no such file"):
        connect(file_store.url)
    with pytest.raises(PromlakeError, match="gopher"):
        connect("gopher://x")
    with pytest.raises(ValueError, match="token belongs to a server"):
        connect(file_store.url, token="x")  # noqa: S106


def by_job(client: Client, expr: str) -> dict[str, float]:
    return {s.labels["job"]: s.value or 0 for s in vector(client, expr, NOW).samples}


def test_later_writes_win(server: Server) -> None:
    sender = server.sender()
    for value in (1.0, 2.0):
        assert sender.write(series("corrected", [(NOW_MS, value)])).status == 204
    assert list(samples(server.client(), "corrected", NOW_MS, 1000).values()) == [[(NOW_MS, 2.0)]]
    assert connect(server.store.url).sql("SELECT value FROM samples").fetchall() == [(2.0,)]


def test_out_of_order_and_late_samples(start: Start, store: Store) -> None:
    server = start(store)
    times = [NOW_MS - offset for offset in (0, 60_000, 30_000, 86_400_000, 90_000)]
    for t in times:
        assert server.sender().write(series("late", [(t, t % 1000 + t // 1000)])).status == 204
    (points,) = samples(server.client(), "late", NOW_MS, 2 * 86_400_000).values()
    assert [t for t, _ in points] == sorted(times)
    server.stop()
