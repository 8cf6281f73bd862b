"""Arrow Flight SQL, asked by Arrow's own client: the rows, tables and errors of the HTTP endpoint."""

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_flightsql.dbapi as flight
import pyarrow as pa
import pytest
from adbc_driver_manager import ProgrammingError
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
