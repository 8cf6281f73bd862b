"""Spark's data source `promlake` (pyspark 4): `spark.dataSource.register(promlake.spark.Source)`.

spark.read.format("promlake").option("store", "s3://bucket/prefix").option("query", "rate(x[5m])")
    .option("start", "2026-01-01T00:00:00Z").option("end", "2026-12-31T00:00:00Z").option("step", "1m").load()
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from promlake.pieces import Piece, scan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_REQUIRED = {"store", "query", "start", "end"}
_OPTIONAL = {"step", "slices", "tenant", "as_of", "token", "timeout"}


class Source(DataSource):
    """A range query, or without the option `step` the samples of a selector; a partition for each piece.

    `load()` takes the snapshot that all reads of the data frame see. The options are the parameters
    of `promlake.scan`; `store` is its target.

    Raises:
        PromlakeError, ValueError: An option is wrong; at `load()`.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        given = {name.lower(): value for name, value in options.items()}
        if missing := sorted(_REQUIRED - given.keys()):
            raise ValueError(f"options are missing: {', '.join(missing)}")
        if unknown := sorted(given.keys() - _REQUIRED - _OPTIONAL):
            raise ValueError(f"unknown options: {', '.join(unknown)}; there are {', '.join(sorted(_REQUIRED | _OPTIONAL))}")
        self._pieces = scan(
            given["store"],
            given["query"],
            given["start"],
            given["end"],
            given.get("step"),
            slices=int(given["slices"]) if "slices" in given else None,
            tenant=given.get("tenant"),
            as_of=given.get("as_of"),
            token=given.get("token"),
            timeout=float(given.get("timeout", 300)),
        ).pieces

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "promlake"

    def schema(self) -> str:
        """Returns the columns of `promql()` and of the table `samples`."""
        return "metric STRING, labels MAP<STRING, STRING>, ts TIMESTAMP, value DOUBLE"

    def reader(self, schema: "StructType") -> DataSourceReader:  # noqa: ARG002
        """Returns what reads the pieces."""
        pieces, self._pieces = self._pieces, []  # a copy of the source goes to every task
        return _Reader(pieces)


class _Reader(DataSourceReader):
    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    def __reduce__(self) -> tuple[type["_Reader"], tuple[list[Piece]]]:
        """Leaves the pieces out: a task gets its own one as its partition."""
        return _Reader, ([],)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(p) for p in self._pieces]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return iter(partition.value.read())
