"""Spark reads the Iceberg tables as SQL shows them. `make test-spark` runs this; it is not part of `make test`."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.iceberg import joined
from support.programs import Programs
from support.server import Start
from support.stores import Store
from test_iceberg import DAY_MS, FIRST_MS, STEP_MS, by_sql, filled

# Spark leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0"


@pytest.fixture
def spark(file_store: Store) -> Iterator[SparkSession]:
    """A session with the catalog `lake`, as docs/iceberg.md configures it."""
    settings = {
        "spark.jars.packages": ICEBERG,
        "spark.jars.ivy": str(Path(os.environ["PROMLAKE_IVY"]).absolute()),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{file_store.url}/v1/anonymous",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def test_spark_gives_the_rows_of_sql(programs: Programs, file_store: Store, start: Start, spark: SparkSession) -> None:
    lake = filled(programs, file_store, start)
    lake.publish()
    samples = "SELECT metric, series_id, ts_ms, v_int / v_div AS value FROM lake.iceberg.samples"
    table = spark.table("lake.iceberg.series")
    series = table.select("metric", "series_id", *(c for c in table.columns if c.startswith("l_")))
    # Spark cannot read the labels that have no column.
    want = Counter({row: n for row, n in by_sql(lake).items() if row[0] != "corrected"})
    assert want.total() == 5 * 2 * DAY_MS // STEP_MS
    got = [r.asDict() for r in spark.sql(f"{samples} WHERE metric <> 'corrected'").collect()]
    assert joined(got, [r.asDict() for r in series.collect()]) == want
    rows = spark.sql(
        "SELECT count(*) AS n, count(DISTINCT series_id) AS series FROM lake.iceberg.samples WHERE ts_ms >= :second",
        args={"second": FIRST_MS + DAY_MS},
    )
    assert rows.collect()[0].asDict() == {"n": 6 * DAY_MS // STEP_MS, "series": 6}
    documented = spark.sql(
        "SELECT s.l_job, avg(v_int / v_div) AS mean FROM lake.iceberg.samples "
        "JOIN (SELECT DISTINCT metric, series_id, l_job FROM lake.iceberg.series) s USING (metric, series_id) "
        "WHERE metric = 'up' AND ts_ms >= unix_millis(TIMESTAMP '2026-03-01 00:00:00') GROUP BY s.l_job"
    )
    assert {(r["l_job"], r["mean"]) for r in documented.collect()} == {("api", 0.5), ("db", 0.5)}
