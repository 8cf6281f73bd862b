"""Arrow Flight SQL, asked by Arrow's own client: the rows, tables and errors of the HTTP endpoint."""

import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_flightsql.dbapi as flight
import pyarrow as pa
import pytest
from adbc_driver_manager import OperationalError, ProgrammingError
from support.commands import Commands
from support.documentation import block
from support.programs import Programs
from support.remote_write import Series, series
from support.server import Server, Start
from support.stores import Store

NOW = int(time.time())
COUNT = 50


def traffic() -> list[Series]:
    chance = random.Random(8)
    times = [NOW * 1000 - 60_000 * i for i in reversed(range(COUNT))]
    return [series("load", [(t, chance.random()) for t in times], core=str(core)) for core in range(3)]


def address(server: Server) -> str:
    for line in server.process.log().splitlines():
        if '"msg":"serving Flight SQL"' in line:
            return "grpc://" + json.loads(line)["listen"]
    raise AssertionError("the server does not speak Flight SQL")


@pytest.fixture
def loaded(start: Start, file_store: Store) -> Iterator[Server]:
    server = start(file_store, "--flight.listen-address", "127.0.0.1:0")
    sender = server.sender()
    for s in traffic():
        assert sender.write(s).status == 204
    yield server
    server.stop()


@contextmanager
def cursor(server: Server, **headers: str) -> Iterator[flight.Cursor]:
    options = {f"adbc.flight.sql.rpc.call_header.{name}": value for name, value in headers.items()}
    with flight.connect(address(server), db_kwargs=options, autocommit=True) as connection, connection.cursor() as c:
        yield c


def test_rows_are_the_samples(loaded: Server) -> None:
    with cursor(loaded) as c:
        c.execute("SELECT labels['core'] AS core, ts, value FROM samples WHERE metric = 'load'")
        table = c.fetch_arrow_table()
    assert table.schema.field("ts").type == pa.timestamp("us", tz="Etc/UTC")
    rows = {(r["core"], round(r["ts"].timestamp() * 1000)): r["value"] for r in table.to_pylist()}
    assert rows == {(s.labels["core"], t): v for s in traffic() for t, v in s.samples}


def test_parameters(loaded: Server) -> None:
    with cursor(loaded) as c:
        for core in ("0", "2"):
            c.execute("SELECT count(*) FROM samples WHERE metric = $1 AND labels['core'] = $2", ("load", core))
            assert c.fetchone() == (COUNT,)
        c.execute("SELECT count(*) FROM promql('count(load)', $1, $1, '1m')", (NOW,))
        assert c.fetchone() == (1,)


def test_tables(loaded: Server) -> None:
    with flight.connect(address(loaded), autocommit=True) as connection:
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        tables = {t["table_name"]: t for c in objects for s in c["catalog_db_schemas"] for t in s["db_schema_tables"]}
        assert {"samples", "series", "rollup_5m", "rollup_1h"} <= set(tables)
        assert [c["column_name"] for c in tables["samples"]["table_columns"]] == ["metric", "labels", "ts", "value"]
        assert connection.adbc_get_table_schema("samples").names == ["metric", "labels", "ts", "value"]
        assert connection.adbc_get_info()["vendor_name"] == "Promlake"


def test_tenants(loaded: Server) -> None:
    with cursor(loaded, **{"x-scope-orgid": "other"}) as c:
        c.execute("SELECT count(*) FROM samples")
        assert c.fetchone() == (0,)


def test_refusals(loaded: Server) -> None:
    with cursor(loaded) as c:
        for statement, reason in [
            ("DROP TABLE samples", "the statement is not a query"),
            ("FROM read_text('/etc/hostname')", "read_text"),
            ("SELECT nothing FROM samples", "nothing"),
        ]:
            with pytest.raises(ProgrammingError, match=reason):
                c.execute(statement)
        with pytest.raises(ProgrammingError, match="SQL only reads"):
            c.adbc_ingest("load", pa.table({"x": [1]}))


PIECES = ("--query.divide-bytes", "1", "--query.divide-windows", "1", "--no-compactor.enabled", "--flight.listen-address", "127.0.0.1:0")


def write_hours(server: Server, end: int, hours: int) -> None:
    for job in range(4):
        points = [(end - 15_000 * i, math.sin(i) + job) for i in reversed(range(240 * hours))]
        assert server.sender().write(series("http_requests_total", points, job=str(job))).status == 204


def ordered(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("job", "ascending"), ("ts", "ascending")])


def test_results_in_parallel(start: Start, file_store: Store) -> None:
    """ADBC and the program of the documentation read all endpoints of a result, with few turns for many rows."""
    server = start(file_store, *PIECES, "--query.max-concurrency", "2")
    write_hours(server, NOW * 1000, 12)
    call = f"promql('rate(http_requests_total[5m])', {NOW - 12 * 3600}, {NOW}, '5s')"
    for table in (call, "samples"):
        text = f"FROM {table} SELECT labels['job'] AS job, ts, value"
        with cursor(server) as c:
            partitions, schema = c.adbc_execute_partitions(text)
            assert len(partitions) > 3
            c.execute(f"WITH all_rows AS ({text}) FROM all_rows")
            want = ordered(c.fetch_arrow_table())
            assert want.schema == schema
            assert want.num_rows > 10_000
            c.execute(text)
            assert ordered(c.fetch_arrow_table()).equals(want)
            parts = []
            for p in partitions:
                c.adbc_read_partition(p)
                parts.append(c.fetch_arrow_table())
            assert ordered(pa.concat_tables(parts)).equals(want)
    program = block("sql", "from concurrent", {"grpc://localhost:31337": address(server), "team-a": "anonymous"})
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    endpoints, rows = map(int, done.stdout.split())
    assert endpoints > 3
    assert rows > 2000
    server.stop()


def test_compaction_between_plan_and_read(start: Start, file_store: Store, programs: Programs) -> None:
    """A ticket whose objects are gone has an error that says so, and the statement is executed again."""
    end = (NOW - 2 * 86_400) * 1000
    first = start(file_store, *PIECES)
    write_hours(first, end, 12)
    commands = Commands(programs, file_store)
    with cursor(first) as c:
        partitions, _ = c.adbc_execute_partitions("FROM samples")
        assert len(partitions) > 3
        commands.compact(NOW + 3600)
    with_blocks = start(file_store, *PIECES)
    with cursor(with_blocks) as c:
        c.adbc_read_partition(partitions[0])  # what is replaced is there for a while
        assert c.fetch_arrow_table().num_rows > 0
    commands.collect(NOW + 3600)
    later = start(file_store, *PIECES)
    with cursor(later) as c:
        with pytest.raises(OperationalError, match="an object of the snapshot is gone"):
            c.adbc_read_partition(partitions[0])
        c.execute("FROM samples")
        assert c.fetch_arrow_table().num_rows == 4 * 12 * 240
    for server in (first, with_blocks, later):
        server.stop()
