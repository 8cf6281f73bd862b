"""The executor alone. tests/support/emulator and infra/localstack/lambda test what the emulator does with a process."""

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from promlake_executor.environment import Environment, Function
from support.programs import Programs, wait_until

BOOTSTRAP = Path(__file__).parent / "stack" / "bootstrap.py"
NAME = "answers-with-its-variables"

Start = Callable[..., Environment]


@pytest.fixture
def start(programs: Programs, tmp_path: Path) -> Iterator[Start]:
    """Starts environments of the function, with further variables."""
    bootstrap = tmp_path / "bootstrap"
    bootstrap.write_text(BOOTSTRAP.read_text().replace("/usr/bin/env python3", sys.executable, 1))
    bootstrap.chmod(bootstrap.stat().st_mode | stat.S_IXUSR)
    started: list[Environment] = []

    def start(program: Path = bootstrap, **env: str) -> Environment:
        environment = Environment(programs.emulator, f"environment-{len(started)}", Function(NAME, program, 30, tmp_path / "functions"))
        started.append(environment)
        environment.start(env)
        return environment

    yield start
    for environment in started:
        environment.stop()


def invoke(environment: Environment, event: str = "x") -> dict[str, str]:
    answer = environment.invoke(json.dumps(event).encode())
    assert not answer.is_error, answer.payload
    return json.loads(answer.payload)


def pids(tmp_path: Path) -> set[int]:
    return {int(file.stem) for file in (tmp_path / "functions" / NAME).glob("*.pid")}


def test_a_cold_start_follows_a_kill(start: Start, tmp_path: Path) -> None:
    environment = start()
    invoke(environment)
    (before,) = pids(tmp_path)
    invoke(environment)
    assert pids(tmp_path) == {before}
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not pids(tmp_path), "the process to be gone")
    invoke(environment)
    assert len(pids(tmp_path)) == 1
    environment.stop()
    assert not pids(tmp_path)


def test_output_goes_to_the_log(start: Start, tmp_path: Path) -> None:
    environment = start()
    invoke(environment, "hello")
    log = tmp_path / "functions" / f"{NAME}.log"
    wait_until(lambda: log.read_text() == '"hello"\n', "the log")
    assert environment.take_output() == '"hello"\n'
    assert environment.take_output() == ""


def test_each_environment_has_its_own_tmp(start: Start, tmp_path: Path) -> None:
    seen = [invoke(start(CACHE="/tmp/cache", OTHER="/tmpfs/x")) for _ in range(2)]  # noqa: S108
    assert seen[0]["CACHE"] != seen[1]["CACHE"]
    assert len(pids(tmp_path)) == 2
    for env in seen:
        assert env["CACHE"] == env["TMPDIR"] + "/cache"
        assert Path(env["TMPDIR"]).is_dir()
        assert env["OTHER"] == "/tmpfs/x"  # noqa: S108


def test_a_process_that_ends_at_its_start_is_an_error(start: Start) -> None:
    answer = start(program=Path("/bin/false")).invoke(b"{}")
    assert answer.is_error
    assert json.loads(answer.payload)["errorType"] == "Runtime.ExitError"


def test_invocations_after_the_end_are_errors(start: Start) -> None:
    environment = start()
    environment.stop()
    assert json.loads(environment.invoke(b"{}").payload)["errorType"] == "Runtime.ExitError"
