"""Readers of Iceberg tables."""

import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import StaticTable

from support.stores import Store

# A sample: metric, labels without __name__, ms since the Unix epoch, and the value as Python writes it.
Row = tuple[str, tuple[tuple[str, str], ...], int, str]


def joined(samples: list[dict[str, Any]], table: list[dict[str, Any]]) -> Counter[Row]:
    """Gives each sample the labels of its series."""
    labels = {}
    for row in table:
        of = {name.removeprefix("l_"): value for name, value in row.items() if name.startswith("l_") and value}
        labels[row["metric"], row["series_id"]] = tuple(sorted({**of, **dict(row.get("labels") or {})}.items()))
    return Counter((s["metric"], labels[s["metric"], s["series_id"]], s["ts_ms"], repr(s["value"])) for s in samples)


def by_pyiceberg(tables: dict[str, str], store: Store) -> Counter[Row]:
    """Reads the samples of tables, whose newest metadata are at these URLs, by name."""
    properties = {}
    if store.url.startswith("s3://"):
        (endpoint,) = urllib.parse.parse_qs(urllib.parse.urlsplit(store.url).query)["endpoint"]
        properties = {"s3.endpoint": endpoint, "s3.region": store.env["AWS_REGION"]}
        properties |= {"s3.access-key-id": store.env["AWS_ACCESS_KEY_ID"], "s3.secret-access-key": store.env["AWS_SECRET_ACCESS_KEY"]}
    samples = StaticTable.from_metadata(tables["samples"], properties).scan().to_arrow()
    value = pc.divide(pc.cast(samples["v_int"], pa.float64(), safe=False), samples["v_div"])
    table = StaticTable.from_metadata(tables["series"], properties).scan().to_arrow()
    return joined(samples.append_column("value", value).to_pylist(), table.to_pylist())


@contextmanager
def duckdb_with_iceberg() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for module in (duckdb_extension_avro, duckdb_extension_iceberg):
            (extension,) = Path(module.__file__).parent.glob("extensions/**/*.duckdb_extension")
            connection.load_extension(str(extension))
        yield connection


def by_duckdb(duck: duckdb.DuckDBPyConnection, tables: dict[str, str]) -> Counter[Row]:
    """Reads the samples of tables as by_pyiceberg, from their folders."""
    folders = {name: metadata.rsplit("/metadata/", 1)[0] for name, metadata in tables.items()}
    samples = duck.execute("SELECT metric, series_id, ts_ms, v_int / v_div AS value FROM iceberg_scan(?)", [folders["samples"]])
    rows = samples.to_arrow_table().to_pylist()
    return joined(rows, duck.execute("FROM iceberg_scan(?)", [folders["series"]]).to_arrow_table().to_pylist())
