"""The rows of a statement, as Arrow and what is made of it."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from promlake.errors import PromlakeError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SHOWN = 20  # rows of the text
_WIDTH = 60  # characters of a value in the text


class Rows:
    """The result of a statement or of a PromQL query.

    The rows come as a stream. `arrow`, `df`, `pl`, `register`, `fetchall`, iteration, `len` and `print`
    read it to its end and keep the table, so that each of them works again. `batches` keeps nothing, for
    results beyond memory.

    Every method raises PromlakeError if the statement fails after its first rows.
    """

    def __init__(self, transport: object, response: http.client.HTTPResponse) -> None:
        import pyarrow as pa

        self._transport = transport  # a child process lives as long as its results
        self._response = response
        self._table: pa.Table | None = None
        with _complete():
            self._stream: pa.RecordBatchReader = pa.ipc.open_stream(response)

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._stream.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.schema.names

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yields the rows as they come, once.

        Raises:
            ValueError: The stream was read before.
        """
        if self._table is not None:
            yield from self._table.to_batches()
            return
        if self._response.closed:
            raise ValueError("the rows were read already; ask again, or use arrow() instead of batches()")
        with self._response, _complete():
            yield from self._stream

    def arrow(self) -> "pa.Table":
        """Returns all rows as a table of pyarrow."""
        import pyarrow as pa

        if self._table is None:
            self._table = pa.Table.from_batches(self.batches(), self.schema)
        return self._table

    def read(self) -> Self:
        """Reads all rows, which then need no connection."""
        self.arrow()
        return self

    def register(self, name: str, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyConnection":
        """Makes all rows the view `name` of a connection of DuckDB, where statements join them with other tables.

        Args:
            name: Name of the view, which replaces one of the same name.
            connection: Connection of DuckDB (`pip install promlake[duckdb]`). Default: a new one, in memory.

        Returns:
            The connection.
        """
        _require("duckdb")
        import duckdb

        connection = duckdb.connect() if connection is None else connection
        return connection.register(name, self.arrow())

    def df(self) -> "pd.DataFrame":
        """Returns all rows as a data frame of pandas (`pip install promlake[pandas]`). Labels are dicts."""
        _require("pandas")
        return self.arrow().to_pandas(maps_as_pydicts="strict")

    def pl(self) -> "pl.DataFrame":
        """Returns all rows as a data frame of polars (`pip install promlake[polars]`). Labels are lists of key and value."""
        _require("polars")
        import polars as pl

        frame = pl.from_arrow(self.arrow())
        assert isinstance(frame, pl.DataFrame)  # noqa: S101
        return frame

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows as tuples of Python's values. Labels are dicts, times are datetimes in UTC."""
        return _tuples(self.arrow())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return self.arrow().num_rows

    def __str__(self) -> str:
        """The first rows as a text table."""
        table = self.arrow()
        cells = [tuple(map(_cell, row)) for row in _tuples(table.slice(0, _SHOWN))]
        widths = [max(len(r[i]) for r in [tuple(self.columns), *cells]) for i in range(len(self.columns))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [tuple(self.columns), *cells]]
        if table.num_rows > _SHOWN:
            lines.append(f"({table.num_rows} rows, {_SHOWN} shown)")
        return "\n".join(lines)


def _tuples(table: "pa.Table") -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist(maps_as_pydicts="strict") for c in table.columns), strict=True))


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


@contextmanager
def _complete() -> Iterator[None]:
    """Raises PromlakeError if the answer ends before its end."""
    import pyarrow as pa

    try:
        yield
    except (http.client.HTTPException, OSError, pa.ArrowInvalid) as e:
        raise PromlakeError("unavailable", f"the result is incomplete: {e or type(e).__name__}; the server's log says why") from e


def _require(module: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{module} is not installed: pip install promlake[{module}]")
