"""SQL over a local store's files, without a server."""

import importlib.resources
import os
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from promlake._live import live_objects
from promlake._views import create_views

if TYPE_CHECKING:
    import duckdb


def open_store(path: str | os.PathLike[str], tenant: str = "anonymous") -> "duckdb.DuckDBPyConnection":
    """Opens a local store for SQL.

    The connection has one view per kind of data, over the segments and blocks that are live now;
    open it again to see later ones. Compaction deletes replaced objects after
    `--compactor.deletion-delay`, so do not use a connection for longer than that.

    * `samples`: metric, series_id, ts, value; one row per float sample.
    * `series`: metric, series_id, and a column `l_<name>` per label; one row per series. Join on
      (metric, series_id).
    * `histograms` and `exemplars`, if the tenant has any.

    It also has the macros of Promlake's schemas (`promlake_samples(files)`,
    `promlake_block_samples(block)` and so on), for other files.
    Samples that were deleted through the API are visible until compaction has removed them.

    Args:
        path: The store's directory, or its URL `file://...`.
        tenant: The tenant to read.

    Raises:
        ImportError: DuckDB is not installed; `pip install promlake[sql]` installs it.
        FileNotFoundError: The tenant has no data in this store.
    """
    try:
        import duckdb
    except ImportError as e:
        raise ImportError("promlake.open_store wants DuckDB: pip install promlake[sql]") from e
    objects = live_objects(_directory(path), tenant)
    connection = duckdb.connect()
    try:
        for name in ("segments.sql", "blocks.sql"):
            connection.execute(_macros().joinpath(name).read_text(encoding="utf-8"))
        create_views(connection, objects)
    except BaseException:
        connection.close()
        raise
    return connection


def _macros() -> Traversable:
    """Returns the directory of the macros: in the package, or beside it in a checkout."""
    packaged = importlib.resources.files("promlake").joinpath("sql")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "schemas/sql"


def _directory(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    scheme, separator, _ = text.partition("://")
    if not separator:
        return Path(text)
    if scheme != "file":
        raise ValueError(f"store {text!r}: want a directory or a file:// URL")
    # As in the server: the rest is a path, relative in file://./dir, without escapes.
    return Path(text.removeprefix("file://"))
