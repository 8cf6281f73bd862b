"""Spark and Ray read what SQL and PromQL show. `make test-spark` runs this; it is not part of `make test`."""

import datetime as dt
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from promlake import connect, scan
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from support.documentation import block
from support.iceberg import joined
from support.programs import Programs
from support.server import Start
from support.stores import Store
from test_iceberg import DAY_MS, FIRST_MS, STEP_MS, Lake, by_sql, filled

# Spark leaves its sockets to the garbage collector, and Ray its files.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"


@contextmanager
def session(master: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    common = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master(master)
    for name, value in (common | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def spark(file_store: Store) -> Iterator[SparkSession]:
    """A session with the catalog `lake`, as docs/iceberg.md configures it."""
    settings = {
        "spark.jars.packages": ICEBERG,
        "spark.jars.ivy": str(Path(os.environ["PROMLAKE_IVY"]).absolute()),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{file_store.url}/v1/anonymous",
    }
    with session("local[1]", settings) as spark:
        yield spark


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


START, END = (dt.datetime.fromtimestamp(ms / 1000, dt.UTC) for ms in (FIRST_MS, FIRST_MS + 2 * DAY_MS))
# Without a step, samples. Their slices may end anywhere in the two blocks.
QUESTIONS: list[tuple[str, int | None]] = [
    ("sum by (job) (rate(up[1h])) + on (job) count by (job) (last_over_time(up[1h] @ end()))", 60),
    ("edges", 300),
    ('{__name__=~"up|corrected",job!="db"}', None),
]
ANYWHERE = {"PROMLAKE_QUERY_DIVIDE_BYTES": "1", "PROMLAKE_QUERY_DIVIDE_WINDOWS": "-1"}


@pytest.fixture(scope="module", autouse=True)
def anywhere() -> Iterator[None]:
    """Spark has one Java process for all tests, whose variables are those of its start."""
    with pytest.MonkeyPatch.context() as variables:
        for name, value in ANYWHERE.items():
            variables.setenv(name, value)
        yield


@pytest.fixture
def lake(programs: Programs, file_store: Store, start: Start) -> Lake:
    return filled(programs, file_store, start)


@pytest.fixture
def cluster() -> Iterator[SparkSession]:
    """Two workers, each a process with one core, which registers the data source."""
    from promlake.spark import Source

    with session("local-cluster[2,1,1024]", {"spark.executor.memory": "1g"}) as spark:
        spark.dataSource.register(Source)
        yield spark


def of_arrow(table: pa.Table) -> Counter[Any]:
    """The rows with the bits of their values."""
    return Counter((r["metric"], tuple(sorted(r["labels"])), r["ts"].timestamp(), struct.pack("d", r["value"])) for r in table.to_pylist())


def undivided(lake: Lake, query: str, step: int | None) -> Counter[Any]:
    with connect(lake.store.url) as connection:
        if step is not None:
            return of_arrow(connection.query_range(query, START, END, step).arrow())
        where = "metric IN ('up', 'corrected') AND labels['job'] IS DISTINCT FROM 'db'"
        return of_arrow(connection.sql("FROM samples WHERE " + where).arrow())


def test_two_workers_of_spark_read_pieces(lake: Lake, cluster: SparkSession) -> None:
    for query, step in QUESTIONS:
        options = {"store": lake.store.url, "query": query, "start": START.isoformat(), "end": END.isoformat(), "slices": "6"}
        frame = cluster.read.format("promlake").options(**options, **({} if step is None else {"step": str(step)})).load()
        assert frame.rdd.getNumPartitions() == 6
        assert frame.columns == ["metric", "labels", "ts", "value"]
        want = undivided(lake, query, step)
        assert len(want) > 100
        assert of_arrow(frame.toArrow()) == want
        assert frame.where("ts >= timestamp '1970-01-01'").groupBy("metric").count().agg({"count": "sum"}).collect()[0][0] == want.total()
    whole = options | {"query": "topk(1, sum by (job) (up))", "step": "600"}
    frame = cluster.read.format("promlake").options(**whole).load()
    assert frame.rdd.getNumPartitions() == 1
    assert of_arrow(frame.toArrow()) == undivided(lake, whole["query"], 600)
    for wrong, error in [
        ({"query": "sum("}, "parse error"),
        ({"query": "rate(up[5m])", "step": None}, "want a plain selector"),
        ({"query": "topk(1, sum by (job) (up))", "step": "1"}, "cannot be divided: the answer of topk"),
        ({"store": None}, "options are missing: store"),
        ({"stop": "1"}, "unknown options: stop"),
        ({"start": "yesterday"}, "cannot parse"),
        ({"store": "file:///nowhere/at/all"}, "file:///nowhere/at/all|no such file"),
    ]:
        given = {k: v for k, v in (options | {"step": "60"} | wrong).items() if v is not None}
        with pytest.raises(AnalysisException, match=error):
            cluster.read.format("promlake").options(**given).load()


@pytest.mark.usefixtures("cluster")
def test_the_recording_rule_of_the_documentation(lake: Lake, start: Start) -> None:
    server = start(lake.store)
    names: dict[str, Any] = {}
    times = {"2025-11-01T00:00:00Z": START.isoformat(), "2026-11-01T00:00:00Z": END.isoformat()}
    read = block(
        "spark", "import promlake.spark", {"s3://metrics/prod": lake.store.url, "http_requests_total": "up", "[5m]": "[1h]", **times}
    )
    exec(read, names)  # noqa: S102
    exec(block("spark", "import json", {"http://promlake:9009": server.url}), names)  # noqa: S102
    want = undivided(lake, "sum by (job) (rate(up[1h]))", 60)
    with connect(server.url) as connection:
        rows = connection.sql("SELECT NULL AS metric, labels, ts, value FROM samples WHERE metric = 'job:http_requests:rate5m'")
        assert of_arrow(rows.arrow()) == want
    server.stop()


def test_ray_reads_pieces(lake: Lake) -> None:
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        for query, step in QUESTIONS:
            pieces = scan(lake.store.url, query, START, END, step, slices=6).pieces
            assert len(pieces) == 6
            read = ray.remote(lambda piece: piece.read().read_all())
            table = pa.concat_tables(ray.get(ray.data.from_arrow_refs([read.remote(p) for p in pieces]).to_arrow_refs()))
            assert of_arrow(table) == undivided(lake, query, step)
    finally:
        ray.shutdown()
