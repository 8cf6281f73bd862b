"""The examples that users copy."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.documentation import DOCUMENTS, block, local_commands, run_shell
from support.programs import ROOT, Programs
from support.remote_write import series
from support.server import Server, Start
from support.stores import directory_store

# The server of the documentation of the SQL endpoint.
ENDPOINT = "http://localhost:9009"
# The series that statements in the documentation of the SQL endpoint name, with their labels
# beside instance.
SQL_SERIES = {"node_load1": {}, "node_cpu_seconds_total": {"mode": "user"}, "node_uname_info": {"release": "6.1"}}


def test_prometheus_configuration(programs: Programs) -> None:
    """The configuration is checked with the rules that it names."""
    done = subprocess.run(
        [programs.promtool, "check", "config", ROOT / "infra/prometheus/prometheus.yml"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_unit_tests_of_rules(programs: Programs) -> None:
    """Promtool and promlake judge the tests of Promlake's alerts equally, and they pass."""
    for command in ([programs.promtool, "test", "rules"], [programs.promlake, "rules", "test"]):
        run([*command, "infra/prometheus/alerts_test.yml"], ROOT)


def links() -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if "://" not in target:
                yield document, target


@pytest.mark.parametrize(("document", "target"), list(links()), ids=lambda x: x if isinstance(x, str) else x.name)
def test_links_have_targets(document: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = document.parent / path if path else document
    assert file.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


COMMANDS = (
    "serve", "query", "query up", "sql", "compact", "inspect", "copy", "import tsdb", "import prometheus", "publish", "export",
    "tenant delete", "doctor", "config", "token", "cost", "redrive", "rules test", "rules replay", "rules backfill",
)  # fmt: skip
# Their flags are those of tests/bench; decisions describe what was measured with them.
BENCHMARKS = {"docs/benchmarks.md", "docs/decisions/005-block-values.md", "docs/decisions/014-rollups.md"}
# Of aws and mimirtool.
FOREIGN = {
    "docs/deploy.md": {"overwrite", "parameter-overrides", "qualifier", "s3-bucket"},
    "docs/operations-aws.md": {"cli-binary-format", "qualifier"},
    "docs/rules.md": {"address", "id"},
}


def test_flags_in_the_documentation_exist(programs: Programs) -> None:
    known = {"help"}
    commands = ([programs.promlake, *name.split()] for name in COMMANDS)
    for args in (*commands, [programs.ingest_fn], [programs.query_fn], [programs.compact_fn]):
        text = subprocess.run([*args, "--help-all"], capture_output=True, text=True, timeout=300, check=True).stdout
        known.update(re.findall(r"--([a-z][a-z0-9.-]*)", text))
        for name in re.findall(r"--\[no-\]([a-z][a-z0-9.-]*)", text):
            known.update({name, f"no-{name}"})
    groups = {name[: i + 1] for name in known for i, c in enumerate(name) if c == "."}  # `--validation.` stands for all of them
    for document in DOCUMENTS:
        name = str(document.relative_to(ROOT))
        if name not in BENCHMARKS:
            used = set(re.findall(r"`--([a-z][a-z0-9.-]*)", document.read_text()))
            assert used - known - groups == FOREIGN.get(name, set()), name


def test_commands(programs: Programs, start: Start, tmp_path: Path) -> None:
    """Each command succeeds over a store with data, in the order of the documents; commands for a server come first."""
    server = start(directory_store(tmp_path / "data"))
    now = int(time.time() * 1000)
    dense = [(now - 50 * s, 1.0) for s in reversed(range(2100))]  # enough for rows in the rollup of an hour, in one of two days
    for tenant in (None, "team-a"):
        assert server.sender(tenant).write(series("up", dense, job="api", instance="host")).status == 204
    for name, labels in SQL_SERIES.items():
        assert server.sender().write(series(name, dense, instance="host", **labels)).status == 204
    every = list(local_commands())
    assert {args[0] for args in every} >= {"query", "compact", "inspect"}
    to_server = [args for args in every if "--url" in args]
    for args in to_server:
        run([programs.promlake, *(a.replace("http://127.0.0.1:9009", server.url) for a in args)], tmp_path)
    check_endpoint(server, tmp_path)
    check_rules(server, tmp_path)
    server.stop()
    for file in (ROOT / "infra/prometheus").iterdir():
        shutil.copy(file, tmp_path)
    make_blocks(programs, tmp_path)
    rule = {"record": "job:up:sum", "expr": "sum by (job) (up)"}
    (tmp_path / "recording.yml").write_text(json.dumps({"groups": [{"name": "jobs", "rules": [rule]}]}))
    for args in every:
        if args not in to_server:
            run([programs.promlake, *args], tmp_path)
    (tmp_path / "schemas").symlink_to(ROOT / "schemas")
    check_sql(tmp_path)
    check_parquet(programs, tmp_path)
    check_python(tmp_path)


def make_blocks(programs: Programs, directory: Path) -> None:
    """Makes the data directory of a Prometheus that the documentation of imports names."""
    (directory / "samples.om").write_text("# TYPE old gauge\nold 1 1767225600\nold 2 1767225660\n# EOF\n")
    run([programs.promtool, "tsdb", "create-blocks-from", "openmetrics", "samples.om", "prometheus-data"], directory)


def check_endpoint(server: Server, directory: Path) -> None:
    """The server answers every statement for its endpoint, and the program that sends one."""
    statements = [s for code in blocks_of_code("sql") if ".read" not in code for s in code.split(";")[:-1]]
    assert len(statements) >= 4
    for statement in statements:
        with urllib.request.urlopen(
            f"{server.url}/api/v1/sql", urllib.parse.urlencode({"query": statement}).encode(), timeout=300
        ) as answer:
            assert json.load(answer)["status"] == "success", statement
    (program,) = (code for code in blocks_of_code("python") if ENDPOINT in code)
    run([sys.executable, "-c", program.replace(ENDPOINT, server.url)], directory)


def check_rules(server: Server, directory: Path) -> None:
    """The lines of the documentation of rules set, show and remove a group."""
    printed = run_shell(block("rules", "curl ", {ENDPOINT: server.url}), directory)
    assert printed.count('"status":"success"') == 2
    assert "web:\n    - name: availability\n      interval: 30s\n" in printed


def test_block_upload(programs: Programs, start: Start, tmp_path: Path) -> None:
    """The script of the documentation of imports uploads a block of Prometheus, whose samples queries have then.

    A block that is refused comes first.
    """
    make_blocks(programs, tmp_path)
    (whole,) = (tmp_path / "prometheus-data").glob("01*")
    shutil.copytree(whole, whole.with_name("01" + 24 * "0"))
    server = start(directory_store(tmp_path / "data"), "--compactor.block-upload-enabled")
    refused, complete = run_shell(block("import", "for dir in ", {ENDPOINT: server.url}), tmp_path).splitlines()
    assert refused == f"invalid meta.json: it is of block {whole.name}, the request names 01{24 * '0'}"
    assert complete == '{"result":"complete"}'
    asked = urllib.parse.urlencode({"query": "old[5m]", "time": "1767225660"})
    with urllib.request.urlopen(f"{server.url}/api/v1/query?{asked}", timeout=300) as answer:
        (found,) = json.load(answer)["data"]["result"]
    assert found["values"] == [[1767225600, "1"], [1767225660, "2"]]


def blocks_of_code(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/sql.md").read_text(), re.MULTILINE | re.DOTALL)


def check_sql(directory: Path) -> None:
    """Every statement over files has a result over the store, which is fully compacted and without deletions."""
    for code in (c for c in blocks_of_code("sql") if ".read" in c):
        with duckdb.connect() as c:
            c.execute(f"SET file_search_path = '{directory}'")
            for file in re.findall(r"^\.read (.*)$", code, re.MULTILINE):
                c.execute((directory / file).read_text())
            for statement in re.sub(r"^(\.read|--) .*$", "", code, flags=re.MULTILINE).split(";")[:-1]:
                assert c.execute(statement).fetchall(), statement


def check_parquet(programs: Programs, directory: Path) -> None:
    """DuckDB reads an exported file as the documentation says: the samples of up, all of which are 1."""
    args = ("export", "--format", "parquet", "--output", "samples.parquet", "--start", "2025-01-01T00:00:00Z")
    subprocess.run([programs.promlake, *args], cwd=directory, capture_output=True, timeout=300, check=True)
    statement = block("export", "SELECT labels")
    with duckdb.connect() as c:
        c.execute(f"SET file_search_path = '{directory}'")
        assert c.execute(statement).fetchall() == [("api", 1.0)]
        types = dict(c.execute("SELECT column_name, column_type FROM (DESCRIBE FROM 'samples.parquet')").fetchall())
    told = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", (ROOT / "docs/export.md").read_text(), re.MULTILINE))
    for name in types:
        assert types[name].replace('"', "") == told[name]


def check_python(directory: Path) -> None:
    # The programs for Flight SQL need a server with a listener for it, and a token.
    code = [c for c in blocks_of_code("python") if ENDPOINT not in c and "grpc://" not in c]
    assert len(code) == 2
    for program in code:
        run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'client')!r})\n{program}"], directory)


def run(args: list[str | Path], directory: Path) -> None:
    done = subprocess.run(args, cwd=directory, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    assert done.stdout, f"{args} printed nothing"
