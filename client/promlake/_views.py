"""Views over segments and blocks.

Of equal series and timestamps the sample of the object with the higher rank counts, as Go's package
internal/live defines it. Deletions are not applied, and floats and histograms are counted apart.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from promlake._live import Object

if TYPE_CHECKING:
    import duckdb

# The columns of each view except metric, series_id and ts: in segments, where they are lists, and
# in blocks.
_VALUES = {
    "samples": {"value": ("value", "v_int / v_div")},
    "histograms": {"count": ("h_count", "count"), "sum": ("h_sum", "sum"), "histogram": ("h", "h")},
    "exemplars": {"value": ("ex_value", "value"), "labels": ("ex_labels", "labels")},
}
_TIMES = {"samples": "ts", "histograms": "h_ts", "exemplars": "ex_ts"}
_OPTIONS = "union_by_name = true, hive_partitioning = false"


def create_views(connection: "duckdb.DuckDBPyConnection", objects: list[Object]) -> None:
    """Creates a view for each kind of data that the objects hold.

    A view names its files, so it does not include later objects.
    """
    segments = [o.path for o in objects if not o.is_block]
    tables = [*segments, *(o.path / "series.parquet" for o in objects if o.is_block)]
    connection.execute(f"CREATE VIEW series AS SELECT * FROM promlake_series({_listed(tables)})")  # noqa: S608
    columns = _columns(connection, segments)
    for view in ("samples", "histograms", "exemplars"):
        selects = list(_selects(view, objects, _TIMES[view] in columns))
        if selects:
            connection.execute(f"CREATE VIEW {view} AS {' UNION ALL '.join(selects)}")


def _columns(connection: "duckdb.DuckDBPyConnection", segments: list[Path]) -> set[str]:
    if not segments:
        return set()
    return {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {_read(segments)}").fetchall()}  # noqa: S608


def _selects(view: str, objects: list[Object], in_segments: bool) -> Iterator[str]:
    """Yields the SELECTs of a view. Blocks whose window overlaps no other object are read without deduplication."""
    alone = [o for o in objects if o.is_block and not any(o.overlaps(other) for other in objects if other is not o)]
    shared = [o for o in objects if o not in alone]
    values = _VALUES[view]
    if files := _files(view, alone):
        yield f"SELECT metric, series_id, ts, {_named(values, 1)} FROM {_read(files)}"  # noqa: S608
    parts = []
    segments = [o for o in shared if not o.is_block]
    if segments and in_segments:
        lists = ", ".join(f"unnest({column}) AS {name}" for name, (column, _) in values.items())
        rows = f"metric, series_id, rank, unnest({_TIMES[view]}) AS ts, {lists}"
        ranks = ", ".join(f"({_quoted(str(o.path))}, '{o.rank}')" for o in segments)
        files = _read([o.path for o in segments], filename=True)
        parts.append(f"SELECT {rows} FROM {files} JOIN (VALUES {ranks}) AS ranks(file, rank) ON filename = file")  # noqa: S608
    parts += [
        f"SELECT metric, series_id, '{o.rank}' AS rank, ts, {_named(values, 1)} FROM {_read(files)}"  # noqa: S608
        for o in shared
        if o.is_block and (files := _files(view, [o]))
    ]
    if not parts:
        return
    rows = f"({' UNION ALL '.join(parts)})"
    if view == "exemplars":
        yield f"SELECT DISTINCT metric, series_id, ts, {', '.join(values)} FROM {rows}"  # noqa: S608
    else:
        newest = ", ".join(f"arg_max({name}, rank) AS {name}" for name in values)
        yield f"SELECT metric, series_id, ts, {newest} FROM {rows} GROUP BY metric, series_id, ts"  # noqa: S608


def _named(values: dict[str, tuple[str, str]], at: int) -> str:
    return ", ".join(f"{columns[at]} AS {name}" for name, columns in values.items())


def _files(view: str, blocks: list[Object]) -> list[Path]:
    return [f for b in blocks for f in sorted(b.path.glob(f"{view}*.parquet"))]


def _read(files: Iterable[Path], filename: bool = False) -> str:
    return f"read_parquet({_listed(files)}, {_OPTIONS}{', filename = true' if filename else ''})"


def _listed(files: Iterable[Path]) -> str:
    return "[" + ", ".join(_quoted(_literal(str(f))) for f in files) + "]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(path: str) -> str:
    """Escapes the characters of a path that are wildcards in DuckDB."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)
