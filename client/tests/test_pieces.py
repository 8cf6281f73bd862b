import datetime as dt
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from api import Api, serve
from promlake import PromlakeError, scan

START, DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.timedelta(days=1)
TABLE = pa.table({"metric": ["up"], "value": [1.5]})


@pytest.fixture
def api() -> Iterator[Api]:
    with serve() as api:
        ms = [int((START + DAY * i).timestamp() * 1000) for i in range(3)]
        api.answers(
            {"slices": [{"from": a, "upto": b - 1, "sql": f"FROM x{a}", "snapshot": {"version": 1}} for a, b in itertools.pairwise(ms)]}
        )
        yield api


def rows_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_pieces_are_read_elsewhere(api: Api) -> None:
    found = scan(api.url, "up", START, "2026-01-03T00:00:00Z", dt.timedelta(minutes=1), slices=5, tenant="a", as_of=5, token="pl_x")  # noqa: S106
    (asked,) = api.asked
    form = [("query", "up"), ("start", repr(START.timestamp())), ("end", "2026-01-03T00:00:00Z"), ("step", "60.0"), ("slices", "5")]
    assert (asked.path, asked.form, asked.tenant, asked.authorization) == ("/api/v1/slices", [*form, ("as_of", "5")], "a", "Bearer pl_x")
    assert found.undivided is None
    assert [(p.start, p.end) for p in found.pieces] == [
        (START + DAY * i, START + DAY * (i + 1) - dt.timedelta(milliseconds=1)) for i in range(2)
    ]
    assert "pl_x" not in repr(found)

    api.body = rows_of(TABLE)
    for piece in pickle.loads(pickle.dumps(found.pieces)):  # noqa: S301
        assert piece.read().read_all() == TABLE
        asked = api.asked[-1]
        assert (asked.path, asked.tenant, asked.authorization) == ("/api/v1/sql", "a", "Bearer pl_x")
        assert asked.form == [("query", piece.sql), ("format", "arrow"), ("snapshot", '{"version": 1}')]


def test_samples_have_no_step(api: Api) -> None:
    api.answers({"slices": [], "undivided": "because"})
    assert scan(api.url, "up", 0, 1).undivided == "because"
    assert api.asked[0].form == [("query", "up"), ("start", "0"), ("end", "1")]


def test_errors(api: Api) -> None:
    (piece, _) = scan(api.url, "up", START, START + DAY).pieces
    api.body = rows_of(TABLE)[:-40]
    with pytest.raises(PromlakeError, match="incomplete"):
        piece.read().read_all()
    api.fails(422, b'{"status":"error","errorType":"execution","error":"an object of the snapshot is gone"}')
    with pytest.raises(PromlakeError, match="gone"):
        piece.read()
    with pytest.raises(ValueError, match="time zone"):
        scan(api.url, "up", dt.datetime(2026, 1, 1), 5)


def test_a_relative_store_is_the_same_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = []

    def connected(target: str, *_: object) -> None:
        targets.append(target)
        raise PromlakeError("unavailable", "")

    monkeypatch.setattr("promlake.pieces.connect", connected)
    for target in ("data", "file://./data", Path("data"), "/data", "s3://bucket", "http://h:1"):
        with pytest.raises(PromlakeError):
            scan(target, "up", 0, 1)
    here = Path.cwd()
    assert targets == [*[f"file://{here}/data"] * 3, "file:///data", "s3://bucket", "http://h:1"]
