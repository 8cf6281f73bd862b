"""SQL at the HTTP API: rows as Arrow, JSON and CSV are the samples that PromQL sees."""

import csv
import io
import json
import random
import time
import urllib.error
import urllib.request

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.questions import vector
from support.remote_write import Series, series
from support.server import Server, Start
from support.stores import Store

NOW = int(time.time())
COUNT = 50


def traffic() -> list[Series]:
    chance = random.Random(7)
    times = [NOW * 1000 - 300_000 * i for i in reversed(range(COUNT))]
    return [series("load", [(t, chance.random()) for t in times], job=job, core=str(core)) for job in ("api", "db") for core in range(3)]


def ask(server: Server, query: str, params: object = None, form: str = "arrow") -> bytes:
    body = json.dumps({"query": query, "params": params, "format": form}).encode()
    request = urllib.request.Request(f"{server.url}/api/v1/sql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as response:
        return response.read()


def arrow(server: Server, query: str, params: object = None) -> pa.Table:
    return pa.ipc.open_stream(ask(server, query, params)).read_all()


@pytest.fixture
def loaded(server: Server) -> Server:
    sender = server.sender()
    for s in traffic():
        assert sender.write(s).status == 204
    assert sender.write(*traffic()).status == 204, "the same samples again"
    return server


def test_rows_are_the_samples(loaded: Server) -> None:
    table = arrow(
        loaded, "SELECT labels['job'] AS job, labels['core'] AS core, ts, value FROM samples WHERE metric = $1 ORDER BY ALL", ["load"]
    )
    assert table.schema.field("ts").type == pa.timestamp("us", tz="Etc/UTC")
    assert table.num_rows == 6 * COUNT
    rows = {(r["job"], r["core"], round(r["ts"].timestamp() * 1000)): r["value"] for r in table.to_pylist()}
    sent = {(s.labels["job"], s.labels["core"], t): v for s in traffic() for t, v in s.samples}
    assert rows == sent


def test_both_languages(loaded: Server) -> None:
    expr = f"sum by (job) (last_over_time(load[{COUNT * 300}s]))"
    table = arrow(loaded, "SELECT labels['job'] AS job, value FROM promql($1, $2, $2, '1m')", [expr, NOW])
    promql = {s.labels["job"]: s.value for s in vector(loaded.client(), expr, NOW).samples}
    assert dict(zip(table["job"].to_pylist(), table["value"].to_pylist(), strict=True)) == promql
    joined = arrow(
        loaded,
        "SELECT m.core, count(*) AS n FROM promlake_metric('load', NULL, NULL) m "
        "JOIN promql('count by (core) (load)', $1, $1, '1m') p ON m.core = p.labels['core'] GROUP BY ALL ORDER BY ALL",
        [NOW],
    )
    assert joined.to_pylist() == [{"core": str(core), "n": 2 * COUNT} for core in range(3)]


def test_formats(loaded: Server) -> None:
    query = "SELECT labels['core'] AS core, count(*) AS n FROM samples GROUP BY ALL ORDER BY ALL"
    want = [{"core": str(core), "n": 2 * COUNT} for core in range(3)]
    assert arrow(loaded, query).to_pylist() == want
    assert pq.read_table(io.BytesIO(ask(loaded, query, form="parquet"))).to_pylist() == want
    assert list(csv.DictReader(io.StringIO(ask(loaded, query, form="csv").decode()))) == [{k: str(v) for k, v in r.items()} for r in want]
    data = json.loads(ask(loaded, query, form="json"))["data"]
    assert [c["name"] for c in data["columns"]] == ["core", "n"]
    assert data["rows"] == [[r["core"], r["n"]] for r in want]


@pytest.mark.parametrize("query", ["DROP VIEW samples", "FROM '/etc/passwd'", "SELECT getenv('HOME')", "SELECT nothing FROM samples"])
def test_refused(loaded: Server, query: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as e:
        ask(loaded, query)
    assert e.value.code == 400
    answer = json.loads(e.value.read())
    assert (answer["status"], answer["errorType"]) == ("error", "bad_data")


def test_the_process_limits_aggregates_of_values(start: Start, file_store: Store) -> None:
    """What these aggregates keep is in no count of DuckDB. The memory limit of the process ends them, and the server goes on."""
    server = start(file_store, "--memory-limit=600MiB")
    for statement in (
        "SELECT entropy(range) FROM range(10000000000)",
        "SELECT histogram(range) FROM range(10000000000)",
        "SELECT mode(range) FROM range(10000000000)",
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(server, statement)
        assert refused.value.code == 422
        assert "--memory-limit" in json.load(refused.value)["error"]
        assert ask(server, "SELECT 1 AS one", form="csv") == b"one\n1\n"
