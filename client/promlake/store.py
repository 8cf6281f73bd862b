"""SQL over a local store's files, without a server."""

import importlib.resources
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_SQL = "segments.sql"


def open_store(path: str | os.PathLike[str], tenant: str = "anonymous") -> "duckdb.DuckDBPyConnection":
    """Opens a local store for SQL.

    The connection has one view per kind of data, over the segments that the tenant has now; open it again to see later ones.

    * `samples`: metric, series_id, ts, value; one row per float sample.
    * `series`: metric, series_id, and a column `l_<name>` per label; one row per series. Join on (metric, series_id).
    * `histograms` and `exemplars`, if the tenant has any.

    It also has the macros of Promlake's schemas (`promlake_samples(files)` and so on), for other files.

    Args:
        path: The store's directory, or its URL `file://...`.
        tenant: Whose data is read.

    Raises:
        ImportError: DuckDB is not installed; it comes with `pip install promlake[sql]`.
        FileNotFoundError: The tenant has no segments in this store.
    """
    try:
        import duckdb
    except ImportError as e:
        raise ImportError("promlake.open_store wants DuckDB: pip install promlake[sql]") from e
    files = _segments(_directory(path), tenant)
    connection = duckdb.connect()
    try:
        connection.execute(importlib.resources.files("promlake").joinpath(_SQL).read_text(encoding="utf-8"))
        _create_views(connection, files)
    except BaseException:
        connection.close()
        raise
    return connection


def _directory(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    scheme, separator, _ = text.partition("://")
    if not separator:
        return Path(text)
    if scheme != "file":
        raise ValueError(f"store {text!r}: want a directory or a file:// URL")
    # As the server reads it: what follows is a path, relative in file://./dir, and nothing in it is escaped.
    return Path(text.removeprefix("file://"))


def _segments(store: Path, tenant: str) -> list[str]:
    if tenant in {"", ".", ".."} or "/" in tenant:
        raise ValueError(f"tenant {tenant!r}: not a tenant's name")
    directory = store / "v1" / tenant / "segments"
    # Not rglob with the tenant in the pattern: tenants' names may hold *.
    files = sorted(str(f) for f in directory.glob("*/*.parquet"))
    if not files:
        raise FileNotFoundError(f"no segments of tenant {tenant} in {directory}")
    return files


def _create_views(connection: "duckdb.DuckDBPyConnection", files: list[str]) -> None:
    # The list is part of the views, so that they keep their columns while a server writes new segments.
    listed = "[" + ", ".join("'" + _literal(f).replace("'", "''") + "'" for f in files) + "]"
    columns = {
        row[0]
        for row in connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet({listed}, union_by_name = true, hive_partitioning = false)"  # noqa: S608
        ).fetchall()
    }
    for view, column in (("samples", "ts"), ("series", "series_id"), ("histograms", "h_ts"), ("exemplars", "ex_ts")):
        if column in columns:
            connection.execute(f"CREATE VIEW {view} AS SELECT * FROM promlake_{view}({listed})")  # noqa: S608


def _literal(path: str) -> str:
    """Protects the characters of a path that DuckDB would take for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)
