"""A day of real samples becomes one block, and no answer changes."""

import json
import math
import struct
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from promlake import connect
from support.capture import replay
from support.commands import Commands, no_garbage
from support.programs import ROOT, Programs
from support.remote_write import Series, series
from support.server import Server, Start
from support.stores import Gateway, Store, directory_store

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
# The day before yesterday in UTC, all of whose windows are closed.
FIRST_MS = (int(time() * 1000) // DAY_MS - 2) * DAY_MS
SCRAPE_MS = 5 * 60 * 1000
STALE, PAYLOAD = (struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF0000000000002, 0x7FF8DEAD0000BEEF))
EDGES = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), PAYLOAD, 5e-324, 1.7e308, 2.0**53 + 2, 0.1, 12.233999999999998, STALE]


@dataclass(frozen=True)
class Day:
    """A server over a compacted day, with its answers from before the compaction."""

    server: Server
    commands: Commands
    before: dict[str, bytes]
    samples: int
    now: float


@pytest.fixture(scope="module", params=["file", "s3"])
def day(
    request: pytest.FixtureRequest, programs: Programs, start_for_module: Start, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Day]:
    store = directory_store(tmp_path_factory.mktemp("day") / "store") if request.param == "file" else gateway.store()
    server = start_for_module(store, "--no-compactor.enabled", "--ingest.flush-interval=5ms")
    samples = write_day(server)
    before = answers(server)
    commands = Commands(programs, store)
    assert set(commands.levels()) == {"segment"}
    now = time() + 3600
    # So few that it takes several steps.
    print(commands.compact(now, "--compactor.max-sources", "4", "--compactor.max-segments", "4"))
    yield Day(server, commands, before, samples, now)
    server.stop()


def write_day(server: Server) -> int:
    """Writes a day in small requests, out of order, some of it twice, and with a correction. Returns the number of different samples."""
    sender, every = server.sender(), 8
    count = 0
    for start in order():
        times = list(range(start, start + HOUR_MS, SCRAPE_MS))
        batch = [*replay(times, every, instance="a:9100", job="node"), *special(times)]
        assert sender.write(*batch).status == 204
        count += sum(len(list(s.samples)) + len(list(s.histograms)) for s in batch)
    again = list(range(FIRST_MS, FIRST_MS + HOUR_MS, SCRAPE_MS))
    assert sender.write(*replay(again, every, instance="a:9100", job="node")).status == 204
    assert sender.write(series("corrected", [(t, 2.0) for t in again])).status == 204
    return count


def order() -> list[int]:
    """Returns the hours of the day, the second half first."""
    hours = [FIRST_MS + h * HOUR_MS for h in range(24)]
    return hours[12:] + hours[:12]


def special(times: list[int]) -> list[Series]:
    """Returns samples of kinds that a node_exporter does not have."""
    edges = [(t, EDGES[t // SCRAPE_MS % len(EDGES)]) for t in times]
    return [
        series("corrected", [(t, 1.0) for t in times]),
        series("edges", edges, **{"a.label": "of no column"}),
        Series(
            {"__name__": "latency_seconds", "job": "api"},
            [],
            [(t, 1.0, f"trace-{t}") for t in times[:2]],
            [(t, (t - FIRST_MS) // SCRAPE_MS + 1) for t in times],
        ),
    ]


RANGE = {"start": f"{FIRST_MS / 1000}", "end": f"{(FIRST_MS + DAY_MS) / 1000}", "step": "900"}
MOMENTS = [{"time": f"{(FIRST_MS + hour * HOUR_MS - 1) / 1000}"} for hour in (1, 12, 24)]
EXPRESSIONS = [
    "edges",
    "corrected",
    'node_cpu_seconds_total{mode!="idle"}',
    '{__name__=~"node_memory_.*_bytes"}',
    "rate(node_cpu_seconds_total[20m])",
    "sum by (mode) (rate(node_cpu_seconds_total[1h]))",
    "avg_over_time(node_memory_MemFree_bytes[3h])",
    'count by (__name__) ({job="node"})',
    "histogram_quantile(0.9, rate(latency_seconds[30m]))",
    "histogram_count(latency_seconds)",
    "topk(3, node_network_receive_bytes_total)",
    "absent(no_such_metric)",
]
RAW = [f'{{__name__=~".+"}}[{DAY_MS}ms]', f"edges[{DAY_MS}ms]"]
NAMES = {"start": RANGE["start"], "end": RANGE["end"], "match[]": '{__name__=~"node_.*|edges|latency_seconds"}'}


def questions() -> Iterator[tuple[str, dict[str, str]]]:
    for expr in EXPRESSIONS:
        yield "query_range", {"query": expr, **RANGE}
        for moment in MOMENTS:
            yield "query", {"query": expr, **moment}
    for expr in RAW:
        yield "query", {"query": expr, **MOMENTS[-1]}
    yield "series", NAMES
    yield "labels", NAMES
    for name in ("__name__", "device", "a.label"):
        yield f"label/U__{name.replace('.', '_2e_')}/values" if "." in name else f"label/{name}/values", NAMES
    yield "query_exemplars", {"query": "latency_seconds", "start": RANGE["start"], "end": RANGE["end"]}


def answers(server: Server) -> dict[str, bytes]:
    """Returns the bodies of the answers to all questions."""
    return {f"{path} {json.dumps(form)}": ask(server, path, form) for path, form in questions()}


def ask(server: Server, path: str, form: dict[str, str]) -> bytes:
    with urllib.request.urlopen(f"{server.url}/api/v1/{path}?{urllib.parse.urlencode(form)}", timeout=300) as response:
        return response.read()


def check_answers(day: Day) -> None:
    after = answers(day.server)
    assert after.keys() == day.before.keys()
    for question, body in after.items():
        assert body == day.before[question], question


def test_the_questions_have_answers(day: Day) -> None:
    for question, body in day.before.items():
        assert json.loads(body)["data"], question


def test_one_block_remains(day: Day) -> None:
    found = day.commands.inspect("anonymous", "--now", repr(day.now))
    (block,) = found["blocks"]
    assert block["level"] == "24h"
    assert block["samples"] == day.samples
    assert {level["level"]: level["objects"] for level in found["levels"]} == {"segment": 0, "24h": 1}
    assert sum(c["bytes"] for c in found["columns"]) == block["bytes"]
    assert {c["file"] for c in found["columns"]} >= {"samples", "histograms", "exemplars", "series", "meta"}
    assert found["next"] == []


def test_no_answer_changes(day: Day) -> None:
    check_answers(day)


def test_a_new_process_answers_alike(day: Day, start: Start) -> None:
    fresh = start(day.server.store, "--no-compactor.enabled")
    assert answers(fresh) == day.before
    fresh.stop()


def live_block(day: Day) -> Path:
    (block,) = day.commands.inspect()["blocks"]
    return day.server.store.directory / block["prefix"]


Rows = dict[frozenset[tuple[str, str]], list[tuple[int, float]]]


def stored(day: Day) -> Rows:
    """Returns every float sample by the query API: (ms, value) by label set."""
    data = json.loads(day.before[f"query {json.dumps({'query': RAW[0], **MOMENTS[-1]})}"])["data"]["result"]
    found = {frozenset(s["metric"].items()): [(round(t * 1000), float(v)) for t, v in s["values"]] for s in data if "values" in s}
    assert sum(len(points) for points in found.values()) > 15_000
    return found


def check_rows(got: Rows, want: Rows) -> None:
    """Checks that the samples and their sum are the same. The query API does not show stale markers."""
    got = {labels: [(t, v) for t, v in points if not (math.isnan(v) and t in stale_times())] for labels, points in got.items()}
    assert got.keys() == want.keys()
    for labels, points in want.items():
        assert [(t, repr(divided(v))) for t, v in sorted(got[labels])] == [(t, repr(divided(v))) for t, v in points], labels
    assert total(got) == total(want)


def divided(value: float) -> float:
    """Returns a value as readers compute it that only divide: schemas/block.md."""
    return math.copysign(0.0, value) if abs(value) < 2.0**-971 else value


def stale_times() -> set[int]:
    return {t for t in range(FIRST_MS, FIRST_MS + DAY_MS, SCRAPE_MS) if EDGES[t // SCRAPE_MS % len(EDGES)] is STALE}


def total(rows: Rows) -> float:
    return math.fsum(v for points in rows.values() for _, v in points if math.isfinite(v) and abs(v) < 1e300)


def label_set(columns: list[tuple[str, str | None]], others: dict[str, str] | list[tuple[str, str]] | None) -> frozenset[tuple[str, str]]:
    """Returns a label set from columns (metric and l_<name>) and the MAP of labels without a column."""
    named = {("__name__" if name == "metric" else name.removeprefix("l_")): value for name, value in columns if value}
    return frozenset({**named, **dict(others or {})}.items())


def test_plain_duckdb_reads_the_block(day: Day) -> None:
    block, got = live_block(day), Rows()
    with duckdb.connect() as c:
        c.execute((ROOT / "schemas/sql/blocks.sql").read_text())
        cursor = c.execute("SELECT epoch_ms(ts), value, COLUMNS('^(metric|l_.*|labels)$') FROM promlake_block_labelled(?)", [str(block)])
        names = [d[0] for d in cursor.description or []][2:]
        for ms, value, *cells in cursor.fetchall():
            row = dict(zip(names, cells, strict=True))
            others = row.pop("labels")
            got.setdefault(label_set(list(row.items()), others), []).append((ms, value))
    check_rows(got, stored(day))


def test_pyarrow_reads_the_block(day: Day) -> None:
    block, got = live_block(day), Rows()
    rows = pq.read_table(sorted(block.glob("samples-*.parquet")))
    values = pc.divide(pc.cast(rows["v_int"], "float64", safe=False), rows["v_div"]).to_pylist()
    times = pc.cast(rows["ts"], "int64").to_pylist()
    for s in pq.read_table(block / "series.parquet").to_pylist():
        first, count = s["row_start"], s["row_count"]
        if count:
            columns = [(name, value) for name, value in s.items() if name == "metric" or name.startswith("l_")]
            got[label_set(columns, s.get("labels"))] = list(zip(times[first : first + count], values[first : first + count], strict=True))
    check_rows(got, stored(day))


def test_polars_reads_the_block_and_its_segments(day: Day) -> None:
    """Polars refuses what pyarrow and DuckDB ignore, such as fields of another type in the headers of pages."""
    block = live_block(day)
    for file in sorted(block.rglob("*.parquet")) + sorted((day.server.store.directory / "v1/anonymous/segments").rglob("*.parquet"))[:20]:
        got, want = pl.read_parquet(file, glob=False), pq.read_table(file)
        assert got.columns == want.column_names
        for name in got.columns:
            if got[name].dtype.is_numeric():
                assert got[name].equals(pl.Series(name, want[name], dtype=got[name].dtype)), (file, name)


def test_the_python_client_reads_the_store(day: Day) -> None:
    """Over the live block, with the segments that it replaced still there."""
    assert list((day.server.store.directory / "v1/anonymous/segments").rglob("*.parquet"))
    with connect(day.server.store.directory) as lake:
        ((count, series, total_sql),) = lake.sql(
            "SELECT count(*), count(DISTINCT (metric, labels)), fsum(value) FILTER (isfinite(value) AND abs(value) < 1e300) FROM samples"
        )
        assert lake.sql("SELECT count(*), max(count) FROM histograms").fetchall() == [(DAY_MS // SCRAPE_MS, DAY_MS // SCRAPE_MS)]
        assert lake.sql("SELECT count(*) FROM exemplars").fetchall() == [(48,)]
    want = stored(day)
    assert count == sum(len(points) for points in want.values())
    assert series == len(want)
    assert total_sql == pytest.approx(total(want), rel=1e-12)


def test_garbage_goes_after_its_delay(day: Day) -> None:
    garbage = day.commands.inspect()["garbage"]
    assert garbage["consumed"]["objects"] > 24
    assert garbage["retired"]["objects"] > 0
    assert (garbage["unlisted"]["objects"], garbage["foreign"]["objects"]) == (0, 0)
    day.commands.collect(day.now)
    assert no_garbage(day.commands)
    assert len(blocks(day.server.store)) == 1
    assert list((day.server.store.directory / "v1/anonymous/segments").rglob("*.parquet")) == []
    check_answers(day)
    text = day.commands.run("inspect").stdout
    for want in ("tenant anonymous", "24h", "BYTES/SAMPLE", "samples.v_int", "No garbage.", "Nothing to compact now."):
        assert want in text


def blocks(store: Store) -> list[Path]:
    return [p.parent for p in (store.directory / "v1/anonymous/blocks").rglob("meta.json")]
