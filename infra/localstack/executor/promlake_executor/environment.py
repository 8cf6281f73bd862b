"""An execution environment: what stays of a function between its invocations."""

import shutil
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path

from .answers import MAX_PAYLOAD_BYTES, Answer, failed
from .process import FunctionProcess
from .runtime_api import Invocation

# AWS gives a function so long from its start to its first request for an event.
INIT_SECONDS = 10.0


@dataclass(frozen=True)
class Function:
    """What a function is made of. Below the folder lie, by the function's name, its log, its pid files and its /tmp directories."""

    name: str
    code: Path
    timeout: float  # seconds
    folder: Path

    @property
    def log(self) -> Path:
        """Where the output of all of its processes goes."""
        return self.folder / f"{self.name}.log"


class Environment:
    """Keeps one process of a function alive, and starts another one when it has died. One invocation at a time."""

    def __init__(self, environment_id: str, function: Function) -> None:
        self._function = function
        self._home = function.folder / function.name
        self._pid_file = self._home / f"{environment_id}.pid"
        self._tmp = self._home / f"{environment_id}.tmp"
        self._env: dict[str, str] = {}
        self._process: FunctionProcess | None = None

    def start(self, env: Mapping[str, str]) -> None:
        """Starts the process. Raises OSError, RuntimeError or TimeoutError if it does not come to ask for an event."""
        self._tmp.mkdir(parents=True, exist_ok=True)
        self._env = {name: self._own_tmp(value) for name, value in env.items()} | {"TMPDIR": str(self._tmp)}
        self._ensure()

    def _own_tmp(self, value: str) -> str:
        """Moves a path under /tmp into the /tmp of this environment: on AWS no two share it."""
        return str(self._tmp) + value[len("/tmp") :] if value == "/tmp" or value.startswith("/tmp/") else value  # noqa: S108

    def _ensure(self) -> FunctionProcess:
        if self._process and self._process.running:
            return self._process
        process = FunctionProcess(self._function.code / "bootstrap", self._env, self._function.log, self._pid_file)
        self._process = process
        try:
            process.api.ready.result(INIT_SECONDS)
        except FutureTimeoutError:
            process.kill()
            raise
        return process

    def invoke(self, request_id: str, payload: bytes, function_arn: str, trace_id: str) -> Answer:
        """Runs one invocation, with a cold start if the process has died since the last one."""
        if len(payload) > MAX_PAYLOAD_BYTES:
            message = f"Request must be smaller than {MAX_PAYLOAD_BYTES} bytes for the InvokeFunction operation; it has {len(payload)}."
            return failed("RequestTooLargeException", message)
        try:
            process = self._ensure()
        except (OSError, RuntimeError, FutureTimeoutError) as e:
            return failed("Runtime.ExitError", f"RequestId: {request_id} Error: {e}")
        invocation = Invocation(request_id, payload, function_arn, trace_id, self._function.timeout)
        process.api.invoke(invocation)
        try:
            return invocation.answer.result(self._function.timeout)
        except FutureTimeoutError:
            process.api.forget(request_id)
            process.kill()
            return failed("Sandbox.Timedout", f"{request_id} Task timed out after {self._function.timeout:.2f} seconds")

    def take_output(self) -> str:
        """Returns what the process has printed since the last call."""
        return self._process.take_output() if self._process else ""

    def stop(self) -> None:
        """Ends the process and removes what it left in /tmp."""
        if self._process:
            self._process.stop()
        shutil.rmtree(self._tmp, ignore_errors=True)
