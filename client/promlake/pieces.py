"""Range queries and samples in pieces, which processes on any machines read in parallel."""

import contextlib
import datetime as dt
import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from promlake._http import Duration, Time, duration_text, time_text
from promlake.connection import Connection, connect
from promlake.errors import PromlakeError
from promlake.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

_Source = tuple[str, str | None, str | None, float]  # target, tenant, token, timeout


@dataclass(frozen=True, slots=True)
class Piece:
    """Some consecutive steps of a range query, or the samples of some time.

    It can be pickled. Any process reads it that has the package and reaches the store, or the
    server, under the same name.

    Attributes:
        start: Time of the first step, or from which on there may be samples.
        end: Time of the last step, or until which there may be samples, inclusive.
        sql: The statement that `read` runs.
        snapshot: The objects that it reads, as JSON.
    """

    start: dt.datetime
    end: dt.datetime
    sql: str
    snapshot: str = field(repr=False)
    source: _Source = field(repr=False)

    def read(self) -> "pa.RecordBatchReader":
        """Returns the rows, as they come: metric, labels, ts and value, in no order.

        The first piece of a store that a process reads starts a child process for all further ones.

        Raises:
            PromlakeError: The statement fails, also while the rows are read. If objects of the
                snapshot are gone, which compaction has replaced, only a new `scan` helps.
        """
        import pyarrow as pa

        form = [("query", self.sql), ("format", "arrow"), ("snapshot", self.snapshot)]
        with _reopened_after_failures():
            transport = _opened(os.getpid(), *self.source)._transport
            rows = Rows(transport, transport.open("POST", "/api/v1/sql", form))
        return pa.RecordBatchReader.from_batches(rows.schema, _batches(rows))


@dataclass(frozen=True, slots=True)
class Scan:
    """A range query, or a selection of samples, in pieces.

    Attributes:
        pieces: They have each row once, with the bits of the undivided query, as the store was when
            the scan was made.
        undivided: Why there can be one piece only, if that is so.
    """

    pieces: list[Piece]
    undivided: str | None


def scan(
    target: str | os.PathLike[str],
    query: str,
    start: Time,
    end: Time,
    step: Duration | None = None,
    *,
    slices: int | None = None,
    tenant: str | None = None,
    as_of: Time | None = None,
    token: str | None = None,
    timeout: float = 300.0,
) -> Scan:
    """Cuts a range query, or the samples of a selector, into pieces that can be read in parallel.

    No sample is read. A query may have any number of steps: it gets as many pieces as it takes.

    Args:
        target: A server or a store, as `connect` takes it.
        query: A PromQL expression; without a step, a selector such as `up{job="api"}`.
        start: First step, or time from which on samples are read.
        end: Last step, or time until which samples are read, inclusive.
        step: Distance between two steps. None reads the samples themselves.
        slices: Pieces, at most. Default: as many as are worth their start.
        tenant: As of `connect`.
        as_of: As of `connect`.
        token: As of `connect`. It is a part of the pieces.
        timeout: As of `connect`.

    Raises:
        PromlakeError: The query is wrong, or cannot be divided and has too many steps.
    """
    form = [("query", query), ("start", time_text(start)), ("end", time_text(end))]
    if step is not None:
        form.append(("step", duration_text(step)))
    if slices is not None:
        form.append(("slices", str(slices)))
    source = (_anywhere(os.fspath(target)), tenant, token, timeout)
    with connect(source[0], tenant, as_of, token, timeout) as lake:
        found = lake._transport.json("GET", "/api/v1/slices", form)["data"]
    pieces = [Piece(_moment(s["from"]), _moment(s["upto"]), s["sql"], json.dumps(s["snapshot"]), source) for s in found["slices"]]
    return Scan(pieces, found.get("undivided"))


def _anywhere(target: str) -> str:
    """Returns a target that means the same in other working directories."""
    scheme, found, path = target.partition("://")
    if not found:
        scheme, path = "file", target
    return f"file://{Path(path).absolute()}" if scheme == "file" else target


def _moment(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=ms)


@functools.lru_cache(maxsize=4)
def _opened(_process: int, target: str, tenant: str | None, token: str | None, timeout: float) -> Connection:
    return connect(target, tenant, None, token, timeout)


@contextlib.contextmanager
def _reopened_after_failures() -> Iterator[None]:
    try:
        yield
    except PromlakeError as e:
        if e.error_type == "unavailable":
            _opened.cache_clear()
        raise


def _batches(rows: Rows) -> "Iterator[pa.RecordBatch]":
    with _reopened_after_failures():
        yield from rows.batches()
