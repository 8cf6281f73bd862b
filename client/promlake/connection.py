"""Connections to a server or to a store, with SQL and PromQL."""

import datetime as dt
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

from promlake._http import Duration, Time, Transport, duration_text, store_transport, time_text
from promlake.client import Client
from promlake.rows import Rows

Params = Sequence[Any] | Mapping[str, Any]


def connect(
    target: str | os.PathLike[str],
    tenant: str | None = None,
    as_of: Time | None = None,
    token: str | None = None,
    timeout: float = 300.0,
) -> "Connection":
    """Connects to a server, or to a store without a server.

    A store is read by a child process that is private to the connection: the program promlake of the
    wheel. It finds credentials as the server does, and the variables `PROMLAKE_*` set its limits
    (https://github.com/promlake/promlake: docs/configuration.md), such as
    PROMLAKE_QUERY_MAX_MEMORY.

    Args:
        target: A server (`http://localhost:9009`), a store (`s3://bucket/prefix`, `file://./data`),
            or a path of a store's directory.
        tenant: The tenant to read. Default: the token's, otherwise `anonymous`.
        as_of: Read the data as it stood at that time: a datetime with a time zone, seconds since
            1970, or RFC 3339.
        token: Token for a server with authentication.
        timeout: Longest wait for data, in seconds.

    Raises:
        PromlakeError: The store cannot be opened. A server is not asked yet.
        ValueError: An argument is wrong.
        FileNotFoundError: For a store: this installation has no program promlake.
    """
    text = os.fspath(target)
    moment = None if as_of is None else time_text(as_of)
    if text.partition("://")[0] in {"http", "https"}:
        return Connection(Transport(text, tenant, token, timeout, moment))
    if token is not None:
        raise ValueError("token belongs to a server; a store is opened with its own credentials")
    return Connection(store_transport(text if "://" in text else f"file://{text}", tenant, timeout, moment))


def query(
    target: str | os.PathLike[str],
    expr: str,
    time: Time | None = None,
    *,
    tenant: str | None = None,
    as_of: Time | None = None,
    token: str | None = None,
    timeout: float = 300.0,
) -> Rows:
    """Evaluates a PromQL expression at one time (default: now), over a server or a store as `connect` takes them.

    Returns:
        As `Connection.query`. All rows are read. Several questions to a store are faster over one connection.
    """
    with connect(target, tenant, as_of, token, timeout) as lake:
        return lake.query(expr, time).read()


def query_range(
    target: str | os.PathLike[str],
    expr: str,
    start: Time,
    end: Time,
    step: Duration,
    *,
    tenant: str | None = None,
    as_of: Time | None = None,
    token: str | None = None,
    timeout: float = 300.0,
) -> Rows:
    """Evaluates a PromQL expression at each step from start to end, over a server or a store.

    Returns:
        As `Connection.query_range`. All rows are read.
    """
    with connect(target, tenant, as_of, token, timeout) as lake:
        return lake.query_range(expr, start, end, step).read()


class Connection:
    """A connection, made by `connect`. It is safe for concurrent use.

    Every statement and query reads a snapshot of its own, by the same rules: of samples with equal
    series and time the latest, without deleted ones.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def sql(self, query: str, params: Params = ()) -> Rows:
        """Runs a statement of DuckDB's SQL over the tables `samples`, `series` and others (docs/sql.md).

        Args:
            query: One SELECT, FROM, DESCRIBE, EXPLAIN …
            params: Values of `$1`, `$2`, … or `?`, or a mapping for `$name`: None, bool, int, float,
                str, datetime, and flat lists of one of these types.

        Raises:
            PromlakeError: The statement is refused or fails.
        """
        form = [("query", query), ("format", "arrow")]
        if params:
            form.append(("params", json.dumps(_param(params), allow_nan=False)))
        return Rows(self._transport, self._transport.open("POST", "/api/v1/sql", form))

    def query(self, expr: str, time: Time | None = None) -> Rows:
        """Evaluates a PromQL expression at one time (default: now).

        Returns:
            Columns metric, labels, ts, value, in the order of the labels. `client` returns native
            histograms, strings and ranges.
        """
        if time is None:
            return self.sql("FROM promql($1, now(), now(), 1)", [expr])
        return self.sql("FROM promql($1, $2, $2, 1)", [expr, time_text(time)])

    def query_range(self, expr: str, start: Time, end: Time, step: Duration) -> Rows:
        """Evaluates a PromQL expression at each step from start to end, both included.

        Returns:
            As `query`, ascending in time for each series.
        """
        return self.sql("FROM promql($1, $2, $3, $4)", [expr, time_text(start), time_text(end), duration_text(step)])

    @property
    def client(self) -> Client:
        """The Prometheus HTTP API over this connection: typed results, labels, metadata."""
        return Client.over(self._transport)

    def close(self) -> None:
        """Ends the child process of a store. Results that were not read are lost."""
        if self._transport.reader is not None:
            self._transport.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _param(value: object) -> object:
    """Returns a parameter as JSON has it."""
    if isinstance(value, Mapping):
        return {str(k): _param(v) for k, v in value.items()}
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"parameter {value}: want a datetime with a time zone")
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"parameter {value}: JSON has no such number; write '{value}'::DOUBLE in the statement")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_param(v) for v in value]
    raise TypeError(f"parameter of type {type(value).__name__}: want None, bool, int, float, str, datetime, or a list of them")
