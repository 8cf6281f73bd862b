import datetime as dt
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from api import Api, serve
from promlake import PromlakeError, connect, query, query_range

TABLE = pa.table(
    {
        "labels": pa.array([[("job", "a")], None], pa.map_(pa.string(), pa.string())),
        "ts": pa.array([0, 1], pa.timestamp("us", tz="Etc/UTC")),
        "value": [1.5, float("inf")],
    }
)
EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


@pytest.fixture
def api() -> Iterator[Api]:
    with serve() as api:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)
        api.body = sink.getvalue().to_pybytes()
        yield api


def test_rows(api: Api) -> None:
    rows = connect(api.url).sql("FROM x")
    assert rows.columns == ["labels", "ts", "value"]
    assert rows.fetchall() == [({"job": "a"}, EPOCH, 1.5), (None, EPOCH + dt.timedelta(microseconds=1), float("inf"))]
    assert list(rows) == rows.fetchall()
    assert rows.arrow() == TABLE
    assert rows.df()["labels"].tolist() == [{"job": "a"}, None]
    assert rows.pl()["value"].to_list() == [1.5, float("inf")]
    assert [b.num_rows for b in rows.batches()] == [2]
    assert str(rows).splitlines()[1:] == [
        "{'job': 'a'}  1970-01-01 00:00:00+00:00         1.5",
        "NULL          1970-01-01 00:00:00.000001+00:00  inf",
    ]


def test_rows_join_tables_of_duckdb(api: Api) -> None:
    connection = connect(api.url).sql("FROM x").register("x")
    connect(api.url).sql("FROM y").register("y", connection)
    owners = pa.table({"job": ["a"], "team": ["red"]})  # noqa: F841 - the statement names it
    joined = connection.execute("SELECT team, x.value FROM x JOIN owners ON x.labels['job'] = job JOIN y USING (ts)").fetchall()
    assert joined == [("red", 1.5)]


def test_questions_without_a_connection(api: Api) -> None:
    assert query(api.url, "up", 5, tenant="team-a").arrow() == TABLE
    assert len(query_range(api.url, "up", EPOCH, 10, "5m", as_of=EPOCH)) == 2
    assert [json.loads(dict(a.form)["params"]) for a in api.asked] == [["up", "5"], ["up", "0.0", "10", "5m"]]
    assert [(a.tenant, dict(a.form).get("as_of")) for a in api.asked] == [("team-a", None), (None, "0.0")]


def test_batches_keep_nothing(api: Api) -> None:
    rows = connect(api.url).sql("FROM x")
    assert sum(b.num_rows for b in rows.batches()) == 2
    for again in (rows.arrow, lambda: next(rows.batches())):
        with pytest.raises(ValueError, match="read already"):
            again()


def test_what_is_broken_off(api: Api) -> None:
    api.body = api.body[: len(api.body) // 2]
    with pytest.raises(PromlakeError, match="incomplete"):
        connect(api.url).sql("FROM x").arrow()
    api.body = b"no Arrow"
    with pytest.raises(PromlakeError, match="incomplete"):
        connect(api.url).sql("FROM x")


def test_requests(api: Api) -> None:
    lake = connect(api.url, tenant="team-a", token="pl_x", as_of=EPOCH)  # noqa: S106
    lake.sql("FROM x WHERE a = $1", [EPOCH])
    lake.query("up", 5)
    lake.query("up")
    lake.query_range("up", EPOCH, "2026-01-01T00:00:00Z", dt.timedelta(minutes=5))
    asked = [dict(a.form) for a in api.asked]
    assert {(a.tenant, a.authorization, a.path) for a in api.asked} == {("team-a", "Bearer pl_x", "/api/v1/sql")}
    assert {(f["format"], f["as_of"]) for f in asked} == {("arrow", "0.0")}
    assert [(f["query"], json.loads(f["params"])) for f in asked] == [
        ("FROM x WHERE a = $1", ["1970-01-01T00:00:00+00:00"]),
        ("FROM promql($1, $2, $2, 1)", ["up", "5"]),
        ("FROM promql($1, now(), now(), 1)", ["up"]),
        ("FROM promql($1, $2, $3, $4)", ["up", "0.0", "2026-01-01T00:00:00Z", "300.0"]),
    ]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ([float("nan")], "no such number"),
        ([dt.datetime(2026, 1, 1)], "time zone"),
        ([b"x"], "type bytes"),
        ({"a": object()}, "type object"),
    ],
)
def test_parameters_are_checked(api: Api, params: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        connect(api.url).sql("SELECT $1", params)
    assert not api.asked


# A double of the program: it says what it was told, and waits for the end of its input.
PROGRAM = """#!{python}
import os, sys
open({log!r}, "a").write(" ".join(sys.argv[1:4]) + "\\n")
if "broken" in sys.argv[3]:
    sys.exit("promlake: error: open store: it is broken")
print("ready", flush=True)
sys.stdin.read()
open({log!r}, "a").write("end\\n")
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program, log = tmp_path / "program", tmp_path / "log"
    program.write_text(PROGRAM.format(python=sys.executable, log=str(log)))
    program.chmod(0o700)
    monkeypatch.setenv("PROMLAKE_BINARY", str(program))
    return log


def test_a_store_has_a_child(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the connection, or with the last reference to it, and its directory is private."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lake = connect("./data")
    (directory,) = tmp_path.glob("promlake-*")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    lake.close()
    lake.close()
    with connect("s3://bucket/prefix"):
        pass
    lake = connect("file:///data")
    del lake
    stores = ("file://./data", "s3://bucket/prefix", "file:///data")
    assert log.read_text().splitlines() == [line for store in stores for line in (f"read --store {store}", "end")]
    assert not list(tmp_path.glob("promlake-*"))


FORK = """
import os, promlake
lake = promlake.connect("./data")
if (pid := os.fork()) == 0:
    lake.close()
    os._exit(0)
os.waitpid(pid, 0)
assert os.path.isdir(os.path.dirname(lake._transport.reader.socket))
lake.close()
"""
KILLED = """
import os, promlake, signal
lake = promlake.connect("./data")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("program", "status"), [(FORK, 0), (KILLED, -signal.SIGKILL)])
def test_the_child_is_that_of_one_process(log: Path, program: str, status: int) -> None:
    """It outlives forks, and no process that started it, even if that is killed."""
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | path, timeout=300, check=False)
    assert done.returncode == status
    deadline = time.monotonic() + 300
    while "end" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("log")
def test_a_store_that_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PromlakeError, match="unavailable: open store: it is broken"):
        connect("s3://broken")
    monkeypatch.setenv("PROMLAKE_BINARY", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        connect("./data")
