"""SQL and PromQL over Promlake, which keeps Prometheus metrics in an object store.

`connect` opens a server or a store; its results are Arrow. `query` and `query_range` ask one without
a connection to keep. `scan` cuts a query into pieces, which processes read in parallel. `Client` is
the Prometheus HTTP API with typed results.
"""

from promlake._program import binary
from promlake.client import Client
from promlake.connection import Connection, connect, query, query_range
from promlake.errors import PromlakeError
from promlake.pieces import Piece, Scan, scan
from promlake.results import (
    Histogram,
    HistogramBucket,
    HistogramPoint,
    Matrix,
    Metadata,
    Point,
    Result,
    Sample,
    Scalar,
    Series,
    String,
    Vector,
)
from promlake.rows import Rows

__all__ = [
    "Client",
    "Connection",
    "Histogram",
    "HistogramBucket",
    "HistogramPoint",
    "Matrix",
    "Metadata",
    "Piece",
    "Point",
    "PromlakeError",
    "Result",
    "Rows",
    "Sample",
    "Scalar",
    "Scan",
    "Series",
    "String",
    "Vector",
    "binary",
    "connect",
    "query",
    "query_range",
    "scan",
]
