"""The operator's view: the demo, the command line, the stages as separate processes, metrics and pages."""

import json
import re
import shlex
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
from support.programs import Programs, wait_until
from support.questions import vector
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store

NOW_MS = int(time.time() * 1000)


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=300) as response:
        return response.read().decode()


def test_demo_shows_live_data(start: Start, file_store: Store) -> None:
    server = start(file_store, "--demo", "--demo.interval", "500ms")
    wait_until(lambda: "remote_write target" in server.process.out.read_text(), "the welcome", context=server.process.log)
    welcome = server.process.out.read_text()
    assert server.url in welcome
    commands = [shlex.split(line) for line in welcome.splitlines() if line.strip().startswith("curl ")]
    assert len(commands) == 3
    for curl, flags, url, option, form in commands:
        assert (curl, flags, option) == ("curl", "-sG", "--data-urlencode")
        name, _, expr = form.partition("=")
        answer = json.loads(get(f"{url}?{urllib.parse.urlencode({name: expr})}"))
        assert answer["status"] == "success"
        assert answer["data"]["result"], f"{expr} has no answer"
    server.stop()


METRICS = {
    "promlake_build_info": "which build",
    "promlake_ingest_samples_total": "samples per second",
    "promlake_ingest_flush_duration_seconds_count": "flush latency",
    "promlake_ingest_segment_bytes_total": "segment bytes",
    "promlake_ingest_requests_total": "writes by status",
    "promlake_objstore_": "store requests",
    "promlake_query_storage_seconds_count": "query seconds",
    "promlake_query_rows_scanned_total": "rows scanned",
    "promlake_http_request_duration_seconds_count": "HTTP requests",
}


def test_metrics_for_operators(server: Server) -> None:
    assert server.sender().write(series("up", [(NOW_MS, 1)])).status == 204
    assert len(vector(server.client(), "up", NOW_MS / 1000).samples) == 1
    text = get(f"{server.url}/metrics")
    values = dict(re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", text, re.MULTILINE))
    for prefix, what in METRICS.items():
        assert any(name.startswith(prefix) and float(v) > 0 for name, v in values.items()), f"no metric says: {what}"


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/", "Promlake"),
        ("/-/healthy", "healthy"),
        ("/-/ready", "ready"),
        ("/api/v1/status/buildinfo", '"version"'),
        ("/api/v1/status/flags", '"ingest.flush-interval"'),
        ("/api/v1/status/tsdb", '"seriesCountByMetricName"'),
        ("/api/v1/format_query?query=sum(up)by(job)", "sum by (job) (up)"),
    ],
)
def test_pages(server: Server, path: str, want: str) -> None:
    assert want in get(server.url + path)


def test_command_line_asks_a_store(programs: Programs, start: Start, store: Store) -> None:
    server = start(store)
    assert server.sender().write(series("up", [(NOW_MS, 1)], job="api")).status == 204
    server.stop()
    command = [programs.promlake, "query", "--store", store.url, "--format", "json", "--time", str(NOW_MS / 1000), "up"]
    done = subprocess.run(command, env={**store.env, "HOME": "/nonexistent"}, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout)["result"] == [{"metric": {"__name__": "up", "job": "api"}, "value": [NOW_MS / 1000, "1"]}]


def test_stages_as_processes_of_their_own(programs: Programs, start: Start, store: Store) -> None:
    """Two writers and a reader that share nothing but the store."""
    writers = [start(store, command=[programs.ingest_fn]) for _ in range(2)]
    reader = start(store, command=[programs.query_fn])
    for i, writer in enumerate(writers):
        assert writer.sender().write(series("up", [(NOW_MS, i)], writer=str(i))).status == 204
        assert len(vector(reader.client(), "up", NOW_MS / 1000).samples) == i + 1, "what was acknowledged can be asked at once"
    for server in (*writers, reader):
        server.stop()


def test_compaction_as_a_process_of_its_own(programs: Programs, start: Start, store: Store) -> None:
    """A compactor that runs on request, concurrently with a writer and a reader."""
    writer, reader = start(store, command=[programs.ingest_fn]), start(store, command=[programs.query_fn])
    # The window stays open, so that no segment is merged alone, also if the window ends meanwhile.
    flags = ["--compactor.settle-delay=1ms", "--compactor.late-delay=1ms", "--compactor.window-delay=24h"]
    compactor = start(store, *flags, "--compactor.min-part-segments=2", command=[programs.compact_fn])
    for i in range(2):
        assert writer.sender().write(series("up", [(NOW_MS - i, i)])).status == 204
    cycles = 0
    while True:  # a bucket's clock has an uncertainty of seconds, during which nothing settles
        cycles += 1
        request = urllib.request.Request(f"{compactor.url}/-/compact", method="POST")
        with urllib.request.urlopen(request, timeout=300) as response:
            done = json.loads(response.read())
        assert done["status"] == "success"
        if done["data"]["jobs"]:
            break
        assert cycles < 600
        time.sleep(0.1)
    assert (done["data"]["jobs"], done["data"]["samples_read"], done["data"]["samples_written"]) == (1, 2, 2)
    assert f'promlake_compact_cycles_total{{result="ok"}} {cycles}' in get(f"{compactor.url}/metrics")
    assert list(store.directory.rglob("meta.json"))
    assert [s.value for s in vector(reader.client(), "up", NOW_MS / 1000).samples] == [0]
    for server in (writer, reader, compactor):
        server.stop()


def test_a_store_is_all_the_state(start: Start, store: Store) -> None:
    """A server that starts on the store of an ended one returns the same answers."""
    first = start(store)
    assert first.sender().write(series("up", [(NOW_MS, 1)])).status == 204
    first.stop()
    second = start(store)
    assert [s.value for s in vector(second.client(), "up", NOW_MS / 1000).samples] == [1]
    second.stop()


def test_version(programs: Programs) -> None:
    done = subprocess.run([programs.promlake, "version"], capture_output=True, text=True, timeout=300, check=True)
    assert re.fullmatch(r"promlake \S+ \(revision \S+, go\S+\)\n", done.stdout)


@pytest.mark.parametrize("args", [["serve", "--nonsense"], ["nonsense"], ["serve", "--query.timeout", "soon"]])
def test_wrong_arguments(programs: Programs, args: list[str]) -> None:
    done = subprocess.run([programs.promlake, *args], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("promlake: error: ")
