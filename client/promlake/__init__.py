"""Client for Promlake, which keeps Prometheus metrics in an object store.

`Client` sends PromQL to a server; `open_store` reads a store's files with SQL, without a server.
"""

from promlake.client import Client
from promlake.errors import PromlakeError
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
from promlake.store import open_store

__all__ = [
    "Client",
    "Histogram",
    "HistogramBucket",
    "HistogramPoint",
    "Matrix",
    "Metadata",
    "Point",
    "PromlakeError",
    "Result",
    "Sample",
    "Scalar",
    "Series",
    "String",
    "Vector",
    "open_store",
]
