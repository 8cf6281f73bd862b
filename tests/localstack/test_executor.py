"""The executor alone, with a function that does what it is told."""

import base64
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from promlake_executor.answers import MAX_PAYLOAD_BYTES, Answer
from promlake_executor.environment import Environment, Function
from promlake_executor.process import live_pids
from support.programs import wait_until

BOOTSTRAP = Path(__file__).parent / "stack" / "bootstrap.py"
NAME = "told"

Start = Callable[..., Environment]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts environments of the function, with further variables."""
    code = tmp_path / "code"
    code.mkdir()
    bootstrap = code / "bootstrap"
    bootstrap.write_text(BOOTSTRAP.read_text().replace("/usr/bin/env python3", sys.executable, 1))
    bootstrap.chmod(bootstrap.stat().st_mode | stat.S_IXUSR)
    started: list[Environment] = []

    def start(timeout: float = 30, **env: str) -> Environment:
        environment = Environment(f"environment-{len(started)}", Function(NAME, code, timeout, tmp_path / "functions"))
        started.append(environment)
        environment.start({"AWS_LAMBDA_FUNCTION_NAME": NAME, **env})
        return environment

    yield start
    for environment in started:
        environment.stop()


def ask(environment: Environment, **event: Any) -> Answer:
    ask.count += 1
    return environment.invoke(f"request-{ask.count}", json.dumps(event).encode(), "arn:aws:lambda:told", "Root=1")


ask.count = 0  # type: ignore[attr-defined]


def good(environment: Environment, **event: Any) -> dict[str, Any]:
    answer = ask(environment, **event)
    assert not answer.is_error, answer.payload
    return json.loads(answer.payload)


def error_type(answer: Answer) -> str:
    assert answer.is_error
    return json.loads(answer.payload)["errorType"]


def test_one_process_serves_many_invocations(start: Start, tmp_path: Path) -> None:
    environment = start()
    first, second = good(environment, n=1), good(environment, n=2)
    assert (first["event"], second["event"]) == ({"n": 1}, {"n": 2})
    assert first["pid"] == second["pid"]
    assert live_pids(tmp_path / "functions", NAME) == [first["pid"]]
    assert 20 < first["seconds_left"] <= 30


def test_environments_are_processes_of_their_own(start: Start, tmp_path: Path) -> None:
    pids = {good(start())["pid"] for _ in range(3)}
    assert set(live_pids(tmp_path / "functions", NAME)) == pids
    assert len(pids) == 3


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"do": "die"}, "Runtime.ExitError"),
        ({"do": "exit", "code": 3}, "Runtime.ExitError"),
        ({"do": "exit", "code": 0}, "Runtime.ExitError"),
        ({"do": "sleep", "seconds": 60}, "Sandbox.Timedout"),
    ],
)
def test_after_its_death_comes_a_cold_start(start: Start, event: dict[str, Any], kind: str) -> None:
    environment = start(timeout=1)
    before = good(environment)["pid"]
    assert error_type(ask(environment, **event)) == kind
    assert good(environment)["pid"] != before


def test_killed_while_it_waits(start: Start, tmp_path: Path) -> None:
    """No event goes to the process that is gone."""
    environment = start()
    before = good(environment)["pid"]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not live_pids(tmp_path / "functions", NAME), "the process to be gone")
    for n in range(3):
        assert good(environment, n=n)["event"] == {"n": n}


def test_errors_of_the_function_leave_it_alive(start: Start) -> None:
    environment = start()
    before = good(environment)["pid"]
    assert ask(environment, do="fail") == Answer(b'{"errorType":"Mine","errorMessage":"as told"}', is_error=True)
    assert good(environment)["pid"] == before


def test_a_stream_becomes_an_http_answer(start: Start) -> None:
    answer = good(start(), do="stream")
    assert (answer["statusCode"], answer["headers"], answer["isBase64Encoded"]) == (201, {"X-Its": "streamed"}, True)
    assert base64.b64decode(answer["body"]) == bytes(range(256))


def test_a_stream_that_breaks_is_an_error(start: Start) -> None:
    environment = start()
    assert error_type(ask(environment, do="stream", **{"break": True})) == "Broken"
    assert good(environment, n=1)["event"] == {"n": 1}


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_limit_of_answers(start: Start, more: int, fits: bool) -> None:
    answer = ask(start(), do="large", bytes=MAX_PAYLOAD_BYTES + more)
    if fits:
        assert (len(answer.payload), answer.is_error) == (MAX_PAYLOAD_BYTES, False)
    else:
        assert error_type(answer) == "Function.ResponseSizeTooLarge"


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_limit_of_requests(start: Start, more: int, fits: bool) -> None:
    around = len(json.dumps({"pad": ""}))
    answer = ask(start(), pad="x" * (MAX_PAYLOAD_BYTES - around + more))
    if fits:
        # What it answers repeats the event, so that is too large.
        assert error_type(answer) == "Function.ResponseSizeTooLarge"
    else:
        assert error_type(answer) == "RequestTooLargeException"


def test_output_goes_to_the_log(start: Start, tmp_path: Path) -> None:
    environment = start()
    good(environment, do="print", text="hello")
    log = tmp_path / "functions" / f"{NAME}.log"
    wait_until(lambda: log.read_text() == "hello\n", "the log")
    assert environment.take_output() == "hello\n"
    assert environment.take_output() == ""


def test_each_environment_has_its_own_tmp(start: Start) -> None:
    seen = [good(start(CACHE="/tmp/cache", OTHER="/tmpfs/x"), do="env") for _ in range(2)]  # noqa: S108
    assert seen[0]["CACHE"] != seen[1]["CACHE"]
    for env in seen:
        assert env["CACHE"] == env["TMPDIR"] + "/cache"
        assert Path(env["TMPDIR"]).is_dir()
        assert env["OTHER"] == "/tmpfs/x"  # noqa: S108


def test_a_failed_init_names_its_end(start: Start) -> None:
    with pytest.raises(RuntimeError, match="exit status 1"):
        start(FAIL_INIT="1")


@pytest.mark.parametrize(("env", "said"), [({"WITH_SIGTERM": "1"}, "told to end\n"), ({}, "")])
def test_sigterm_is_for_those_who_register(start: Start, tmp_path: Path, env: dict[str, str], said: str) -> None:
    environment = start(**env)
    good(environment)
    environment.stop()
    wait_until(lambda: not live_pids(tmp_path / "functions", NAME), "the process to be gone")
    assert (tmp_path / "functions" / f"{NAME}.log").read_text() == said
