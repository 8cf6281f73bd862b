"""The documentation's lines for histories in buckets and of servers: imports, and exports of what they brought."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Commands
from support.documentation import block, run_shell
from support.programs import Programs
from support.questions import samples
from support.remote_write import series
from support.server import Start
from support.stores import Gateway, Store, directory_store

JANUARY = 1_767_225_600_000  # 2026-01-01T00:00:00Z
YEAR_BEFORE = 1_735_689_600_000  # 2025-01-01T00:00:00Z
BUCKET = "promlake-bucket"


@pytest.fixture
def target(gateway: Gateway) -> Iterator[Store]:
    """The bucket that the documentation imports into and exports from, empty."""
    directory = gateway.bucket(BUCKET)
    yield Store(f"s3://{BUCKET}", directory, gateway.env())
    shutil.rmtree(directory)


def make_block(programs: Programs, directory: Path, metric: str) -> Path:
    """Makes a block of Prometheus with two samples of a metric."""
    text = directory / f"{metric}.om"
    text.write_text(f"# TYPE {metric} gauge\n{metric} 1 {JANUARY // 1000}\n{metric} 2 {JANUARY // 1000 + 60}\n# EOF\n")
    args = [programs.promtool, "tsdb", "create-blocks-from", "openmetrics", text, directory / metric]
    subprocess.run(args, capture_output=True, timeout=300, check=True)
    (made,) = (directory / metric).iterdir()
    return made


def test_import_from_buckets(programs: Programs, gateway: Gateway, target: Store, start: Start, tmp_path: Path) -> None:
    """Thanos' block brings the external labels that its meta.json has."""
    thanos, mimir = (make_block(programs, tmp_path, name) for name in ("of_thanos", "of_mimir"))
    meta = json.loads((thanos / "meta.json").read_text())
    meta["thanos"] = {"labels": {"region": "eu", "__replica__": "a"}, "downsample": {"resolution": 0}, "source": "sidecar"}
    (thanos / "meta.json").write_text(json.dumps(meta))
    shutil.copytree(thanos, gateway.bucket("thanos-bucket") / thanos.name)
    shutil.copytree(mimir, gateway.bucket("mimir-blocks") / "team-a" / mimir.name)
    lines = block("import", "promlake import tsdb s3://thanos-bucket")
    run_shell(lines, tmp_path, gateway.env())
    server = start(target)
    points = [(JANUARY, 1.0), (JANUARY + 60_000, 2.0)]
    found = samples(server.client(), "of_thanos", JANUARY + 60_000, 120_000)
    assert found == {frozenset({"__name__": "of_thanos", "region": "eu"}.items()): points}
    found = samples(server.client("team-a"), "of_mimir", JANUARY + 60_000, 120_000)
    assert found == {frozenset({"__name__": "of_mimir"}.items()): points}


def test_import_from_servers(gateway: Gateway, target: Store, start: Start, tmp_path: Path) -> None:
    """The sources are servers of Promlake, which have Prometheus' remote read."""
    source = start(directory_store(tmp_path / "source"))
    times = [JANUARY, JANUARY + 60_000, JANUARY + 40 * 86_400_000]
    for team in ("a", "b"):
        assert source.sender().write(series("old", [(t, 1.0) for t in times], team=team)).status == 204
    (tmp_path / "http.yml").write_text("http_headers: {X-Scope-OrgID: {values: [anonymous]}}\n")
    addresses = {"http://prometheus:9090": source.url, "https://thanos.example/": source.url}
    run_shell(block("import", "promlake import prometheus --url http://prometheus", addresses), tmp_path, gateway.env())
    server = start(target)
    everything = samples(server.client(), "old", times[-1], 60 * 86_400_000)
    assert everything == {frozenset({"__name__": "old", "team": team}.items()): [(t, 1.0) for t in times] for team in ("a", "b")}
    part = samples(server.client("a"), "old", times[-1], 60 * 86_400_000)
    assert part == {frozenset({"__name__": "old", "team": "a"}.items()): [(t, 1.0) for t in times[:2]]}


def test_export(programs: Programs, gateway: Gateway, target: Store, start: Start, tmp_path: Path) -> None:
    """The first line writes what the local store has of the day and the job; the second one makes blocks for a Prometheus."""
    local = directory_store(tmp_path / "data")
    points = [(YEAR_BEFORE + 15_000 * i, float(i)) for i in range(10)]
    for store in (local, target):
        server = start(store)
        for job in ("api", "web"):
            assert server.sender().write(series("up", points, job=job)).status == 204
        server.stop()
    printed = run_shell(block("export", "promlake export"), tmp_path, gateway.env())
    lines = [line.split() for line in printed.splitlines() if not line.startswith("#")]
    assert {name for name, _, _ in lines} == {'up{job="api"}'}
    assert [(round(float(t) * 1000), float(v)) for _, v, t in lines] == points
    assert printed.endswith("# EOF\n")
    again = directory_store(tmp_path / "again")
    Commands(programs, again).import_tsdb(tmp_path / "prometheus-export")
    found = samples(start(again).client(), "up", points[-1][0], 3_600_000)
    assert found == {frozenset({"__name__": "up", "job": job}.items()): points for job in ("api", "web")}
