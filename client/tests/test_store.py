import datetime as dt
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from promlake import open_store

# Two flushes of one series, the second of which sends the sample at 2000 ms again, and one of a
# series with another label.
FIRST = """SELECT 'up' AS metric, 1::UBIGINT AS series_id, 'node' AS l_job,
    [epoch_ms(1000), epoch_ms(2000)]::TIMESTAMPTZ[] AS ts, [1.0, 2.0] AS value"""
SECOND = """SELECT 'up' AS metric, 1::UBIGINT AS series_id, 'node' AS l_job,
    [epoch_ms(2000)]::TIMESTAMPTZ[] AS ts, [3.0] AS value"""
OTHER = """SELECT 'down' AS metric, 2::UBIGINT AS series_id, 'eu' AS l_zone,
    [epoch_ms(1000)]::TIMESTAMPTZ[] AS ts, [5.0] AS value,
    [epoch_ms(1000)]::TIMESTAMPTZ[] AS ex_ts, [7.0] AS ex_value, ['{"trace":"x"}'] AS ex_labels"""
WINDOW = "19700101T0000Z"


def ulid(name: str) -> str:
    return name.ljust(26, "0")


def write(store: Path, tenant: str, name: str, select: str, mark: str = "") -> None:
    file = store / "v1" / tenant / "segments" / WINDOW / f"{ulid(name)}{mark}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as c:
        c.execute("SET TimeZone = 'UTC'")
        c.execute(f"CREATE TABLE segment AS {select}")
        c.table("segment").write_parquet(str(file))


@pytest.fixture(params=["plain", "odd [a]*? name"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    store = tmp_path / request.param
    write(store, "anonymous", "01A", FIRST)
    write(store, "anonymous", "01B", SECOND)
    return store


def test_samples_count_once_and_the_later_wins(store: Path) -> None:
    with open_store(store) as lake:
        got = lake.sql("SELECT metric, series_id, epoch_ms(ts), value FROM samples ORDER BY ts").fetchall()
    assert got == [("up", 1, 1000, 1.0), ("up", 1, 2000, 3.0)]


def test_timestamps_are_utc_moments(store: Path) -> None:
    with open_store(store) as lake:
        (first,) = lake.sql("SELECT min(ts) FROM samples").fetchone() or ()
    assert first == dt.datetime.fromtimestamp(1, tz=dt.UTC)


def test_series_have_a_column_per_label(store: Path) -> None:
    write(store, "anonymous", "01C", OTHER)
    with open_store(store) as lake:
        got = lake.sql("SELECT metric, coalesce(l_job, ''), coalesce(l_zone, '') FROM series ORDER BY metric").fetchall()
        joined = lake.sql("SELECT value FROM samples JOIN series USING (metric, series_id) WHERE l_zone = 'eu'").fetchall()
    assert got == [("down", "", "eu"), ("up", "node", "")]
    assert joined == [(5.0,)]


def test_views_match_the_kinds_of_objects(store: Path) -> None:
    with open_store(store) as lake:
        assert views(lake) == {"samples", "series"}
    write(store, "anonymous", "01C", OTHER)
    with open_store(store) as lake:
        assert views(lake) == {"samples", "series", "exemplars"}
        assert lake.sql("SELECT metric, value, labels FROM exemplars").fetchall() == [("down", 7.0, '{"trace":"x"}')]


def test_views_do_not_move(store: Path) -> None:
    with open_store(store) as lake:
        write(store, "anonymous", "01C", OTHER)
        assert lake.sql("SELECT count(*) FROM series").fetchone() == (1,)


def test_tenants_are_apart(store: Path) -> None:
    write(store, "team (a)*", "01A", OTHER)
    with open_store(store, tenant="team (a)*") as lake:
        assert lake.sql("SELECT metric FROM series").fetchall() == [("down",)]


# The rows of blocks as they stand in their files, with the times and values of FIRST and SECOND,
# and a histogram.
SAMPLES = """SELECT 'up' AS metric, 1::UBIGINT AS series_id, epoch_ms(t)::TIMESTAMPTZ AS ts, v AS v_int, 10.0 AS v_div
    FROM (VALUES (1000, 10), (2000, 30), (3000, 45)) AS x(t, v)"""
HISTOGRAMS = """SELECT 'h' AS metric, 3::UBIGINT AS series_id, epoch_ms(5)::TIMESTAMPTZ AS ts, 2.0 AS count, 4.0 AS sum, 'x'::BLOB AS h"""
SERIES = """SELECT 'up' AS metric, 1::UBIGINT AS series_id, 'node' AS l_job, 0 AS row_start
    UNION ALL SELECT 'h', 3, '', 3"""


def write_block(store: Path, level: str, name: str, **files: str) -> None:
    directory = store / "v1/anonymous/blocks" / level / WINDOW / name
    directory.mkdir(parents=True)
    with duckdb.connect() as c:
        c.execute("SET TimeZone = 'UTC'")
        for kind, select in files.items():
            c.sql(select).write_parquet(str(directory / f"{kind}.parquet"))


def write_manifest(store: Path, blocks: list[tuple[str, str, str]], consumed: list[str], version: int = 2) -> None:
    manifest = {
        "version": version,
        "blocks": [{"level": level, "window": WINDOW, "id": name, "rank": rank} for level, name, rank in blocks],
        "consumed": [{"window": WINDOW, "id": ulid(name)} for name in consumed],
    }
    (store / "v1/anonymous/manifest.json").write_text(json.dumps(manifest))


def all_samples(store: Path) -> list[tuple[int, float]]:
    with open_store(store) as lake:
        return lake.sql("SELECT epoch_ms(ts), value FROM samples ORDER BY ts").fetchall()


def test_blocks_replace_consumed_segments(store: Path) -> None:
    files = {"series": SERIES, "samples-0000": SAMPLES, "histograms-0000": HISTOGRAMS}
    write_block(store, "24h", "02A", **files)
    assert all_samples(store) == [(1000, 1.0), (2000, 3.0)], "a block that no manifest names does not count"
    write_manifest(store, [("24h", "02A", "01B")], ["01A", "01B"])
    assert all_samples(store) == [(1000, 1.0), (2000, 3.0), (3000, 4.5)]
    with open_store(store) as lake:
        assert views(lake) == {"samples", "series", "histograms"}
        assert lake.sql("SELECT metric, count, sum, histogram FROM histograms").fetchall() == [("h", 2.0, 4.0, b"x")]
        assert lake.sql("SELECT metric, l_job FROM series ORDER BY metric").fetchall() == [("h", ""), ("up", "node")]


@pytest.mark.parametrize(("rank", "at_2000"), [("7ZZ", 3.0), ("00A", 5.0)])
def test_the_higher_rank_wins(store: Path, rank: str, at_2000: float) -> None:
    write(store, "anonymous", "01B", SECOND.replace("3.0", "5.0"))
    write_block(store, "2h", "02A", series=SERIES, **{"samples-0000": SAMPLES})
    write_manifest(store, [("2h", "02A", ulid(rank))], ["01A"])
    assert all_samples(store) == [(1000, 1.0), (2000, at_2000), (3000, 4.5)]


def test_the_order_of_segments_is_that_of_the_store_or_the_queue(store: Path) -> None:
    """Names hold no order, because machines' clocks made them, except those of the queue's segments: they hold a message's send time."""
    write(store, "anonymous", "00A", SECOND.replace("3.0", "4.0"))
    assert all_samples(store) == [(1000, 1.0), (2000, 4.0)]
    write(store, "anonymous", "00B", SECOND.replace("3.0", "5.0"), mark="-q")
    assert all_samples(store) == [(1000, 1.0), (2000, 4.0)], "an old message that came late"
    write(store, "anonymous", "7ZZ", SECOND.replace("3.0", "6.0"), mark="-q")
    assert all_samples(store) == [(1000, 1.0), (2000, 6.0)]
    write_manifest(store, [], ["7ZZ"])
    assert all_samples(store) == [(1000, 1.0), (2000, 6.0)], "another segment was consumed"
    manifest = store / "v1/anonymous/manifest.json"
    manifest.write_text(manifest.read_text().replace('"id"', '"queued": true, "id"'))
    assert all_samples(store) == [(1000, 1.0), (2000, 4.0)]


def test_blocks_alone(store: Path) -> None:
    """Two slices of a window, as large jobs leave them; their segments are deleted."""
    shutil.rmtree(store / "v1/anonymous/segments")
    write_block(store, "24h", "02A", series=SERIES, **{"samples-0000": SAMPLES, "samples-0001": SAMPLES.replace("1000, 10", "4000, 50")})
    write_block(store, "24h", "02B", series=OTHER)
    write_manifest(store, [("24h", "02A", "01B"), ("24h", "02B", "01B")], ["01A", "01B"])
    assert all_samples(store) == [(1000, 1.0), (2000, 3.0), (3000, 4.5), (4000, 5.0)]


def test_a_later_version_is_refused(store: Path) -> None:
    write_manifest(store, [], [], version=3)
    with pytest.raises(ValueError, match="manifest of version 3"):
        open_store(store)


def test_urls(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    for url in (f"file://{store}", f"file://./{store.name}", store.name):
        with open_store(url) as lake:
            assert lake.sql("SELECT count(*) FROM samples").fetchone() == (2,)


def test_invalid_stores_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no data of tenant anonymous"):
        open_store(tmp_path)
    with pytest.raises(ValueError, match="want a directory or a file:// URL"):
        open_store("s3://bucket")
    with pytest.raises(ValueError, match="not a tenant's name"):
        open_store(tmp_path, tenant="../other")


def views(lake: duckdb.DuckDBPyConnection) -> set[str]:
    return {name for (name,) in lake.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}


# The cases of all readers, without those that have histograms: the views count them apart.
CASES = [
    case
    for case in json.loads((Path(__file__).parents[2] / "internal/live/livetest/cases.json").read_text(encoding="utf-8"))
    if not any("hists" in step for step in case["steps"])
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_views_answer_the_cases_of_all_readers(tmp_path: Path, case: dict[str, Any]) -> None:
    """The rank of a segment is its file's time, whatever its name."""
    for i, step in enumerate(case["steps"]):
        if "floats" not in step:
            continue
        times = ", ".join(f"epoch_ms({t})" for t in step["floats"])
        values = ", ".join("'NaN'::DOUBLE" if t in step.get("stale", []) else f"{i}.0" for t in step["floats"])
        name = f"0{9 - i}"
        write(
            tmp_path,
            "t",
            name,
            f"SELECT 'm' AS metric, 1::UBIGINT AS series_id, [{times}]::TIMESTAMPTZ[] AS ts, [{values}]::DOUBLE[] AS value",
        )
        os.utime(tmp_path / "v1/t/segments" / WINDOW / f"{ulid(name)}.parquet", ns=(10**18 + i, 10**18 + i))
    with open_store(tmp_path, "t") as lake:
        got = lake.sql("SELECT epoch_ms(ts), value FROM samples ORDER BY ts").fetchall()
    assert [(t, "stale" if math.isnan(v) else int(v)) for t, v in got] == [
        (w["t"], "stale" if w["kind"] == "stale" else w["step"]) for w in case["undeleted"]
    ]
