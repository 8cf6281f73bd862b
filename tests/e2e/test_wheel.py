"""The Python package as users install it: the wheel, in an environment of its own."""

import importlib.metadata
import os
import re
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest
from support.programs import ROOT, Programs, wait_until
from support.questions import vector
from support.remote_write import series
from support.server import FRESH, Start
from support.stores import Store


@pytest.fixture(scope="module")
def installed(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs of an environment with the wheel and its dependencies."""
    directory = tmp_path_factory.mktemp("wheel")
    # Hatchling with the fastest compression: the default takes seconds for the program.
    hatchling = "import zlib; zlib.Z_DEFAULT_COMPRESSION = 1; from hatchling.cli import hatchling; hatchling()"
    build = [sys.executable, "-c", hatchling, "build", "-t", "wheel", "-d", directory]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "PROMLAKE_WHEEL_PROGRAM": str(programs.promlake)}, check=True, timeout=300)
    (wheel,) = directory.glob("*.whl")
    assert re.fullmatch(r"promlake-[\d.]+-py3-none-linux_(x86_64|aarch64)\.whl", wheel.name), "a program with shared libraries"
    assert {"promlake/py.typed", "promlake/bin/promlake"} <= set(zipfile.ZipFile(wheel).namelist())
    venv.create(directory / "venv", symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", directory / "venv/bin/python", "--disable-pip-version-check"]
    constraints = directory / "constraints.txt"
    constraints.write_text(f"pyarrow=={importlib.metadata.version('pyarrow')}\n")
    subprocess.run([*pip, "install", "--quiet", "--only-binary", ":all:", "--constraint", constraints, wheel], check=True, timeout=600)
    wheel.unlink()
    return directory / "venv/bin"


def test_five_lines(installed: Path, start: Start, store: Store, tmp_path: Path) -> None:
    """The first program of the README prints the samples of a store, whose server is gone."""
    server = start(store)
    now = int(time.time() * 1000)
    assert server.sender().write(series("up", [(now - 1000, 1), (now, 1)], job="api")).status == 204
    server.stop()
    rows = run_five_lines(installed, store, tmp_path)
    assert rows[:3] == [["metric", "samples"], ["up", "2"], ["metric", "labels", "ts", "value"]]
    assert rows[3][:3] == ["NULL", "{'job':", "'api'}"]
    assert rows[3][-1] == "1.0"


def test_five_lines_of_a_demonstration(installed: Path, start: Start, store: Store, tmp_path: Path) -> None:
    """They print the metrics that `make run` stores, in a directory or a bucket."""
    server = start(store, "--demo")
    wait_until(lambda: len(vector(server.client(), "count by (job) (up == 1)", time.time()).samples) >= 2, "the demonstration's targets")
    rows = run_five_lines(installed, store, tmp_path)
    assert rows[0] == ["metric", "samples"]
    assert all(int(samples) > 0 for _, samples in rows[1:11])
    assert rows[11] == ["metric", "labels", "ts", "value"]
    assert {r[-1] for r in rows[12:]} == {"1.0"}, "the targets by job"
    assert len(rows) >= 14


def run_five_lines(installed: Path, store: Store, directory: Path) -> list[list[str]]:
    """Runs the first program of the README over a store. Returns the words of the lines that it prints."""
    (program, _) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "client/README.md").read_text(), re.MULTILINE | re.DOTALL)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PROMLAKE"))}
    done = subprocess.run(
        [installed / "python", "-c", program.replace("file://./data", store.url)],
        cwd=directory,
        env=environment | FRESH | dict(store.env),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_the_command(installed: Path) -> None:
    done = subprocess.run([installed / "promlake", "version"], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.startswith("promlake")


def test_the_program_can_be_named(installed: Path) -> None:
    code = "import promlake; print(promlake.binary())"
    for named, want in (({"PROMLAKE_BINARY": "/elsewhere"}, "/elsewhere"), ({}, str(installed.parent))):
        done = subprocess.run(
            [installed / "python", "-c", code], env=os.environ | named, capture_output=True, text=True, timeout=300, check=True
        )
        assert done.stdout.startswith(want)
