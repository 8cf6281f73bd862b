"""An execution environment of a function, run by infra/localstack/lambda."""

import collections
import contextlib
import http.client
import json
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

STOP_SECONDS = 5.0
KEPT_LINES = 2000


class Answer(NamedTuple):
    """The payload of an answer. Errors are JSON objects with errorType and errorMessage."""

    payload: bytes
    is_error: bool


@dataclass(frozen=True)
class Function:
    """A function. Its log, its pid files and its /tmp directories are below the folder, under the function's name."""

    name: str
    bootstrap: Path
    timeout: float  # seconds
    folder: Path

    @property
    def log(self) -> Path:
        """The file with the output of all processes of the function."""
        return self.folder / f"{self.name}.log"


class Environment:
    """One execution environment, which runs one invocation at a time.

    The emulator starts the function's process at the first invocation, and a new one after its end.
    """

    def __init__(self, emulator: Path, environment_id: str, function: Function) -> None:
        self._emulator, self._function = emulator, function
        self._home = function.folder / function.name
        self._tmp = self._home / f"{environment_id}.tmp"
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    def start(self, env: Mapping[str, str]) -> None:
        """Starts the emulator with the function's variables. Raises OSError or RuntimeError if it does not start."""
        self._tmp.mkdir(parents=True, exist_ok=True)
        options = [f"--function-name={self._function.name}", f"--function-timeout={self._function.timeout}s", f"--pid-folder={self._home}"]
        self._process = subprocess.Popen(
            [self._emulator, "function", *options, self._function.bootstrap],
            env={name: self._own_tmp(value) for name, value in env.items()} | {"TMPDIR": str(self._tmp)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        copier = threading.Thread(target=self._copy_output, args=(self._process.stderr,), daemon=True)
        copier.start()
        with self._process.stdout as out:
            _, listening, self._address = out.readline().decode().strip().partition("listening on http://")
        if not listening:
            copier.join()
            raise RuntimeError(f"{self._emulator} has ended: {self.take_output()}")

    def _own_tmp(self, value: str) -> str:
        """Replaces /tmp at the beginning of a path by this environment's directory: on AWS no two environments share /tmp."""
        return str(self._tmp) + value[len("/tmp") :] if value == "/tmp" or value.startswith("/tmp/") else value  # noqa: S108

    def _copy_output(self, output: IO[bytes]) -> None:
        with self._function.log.open("ab", buffering=0) as file, output:
            for line in output:
                file.write(line)
                self._lines.append(line.decode(errors="replace"))

    def invoke(self, payload: bytes) -> Answer:
        """Runs one invocation, with a cold start if no process lives."""
        # No timeout here: the emulator ends invocations that exceed the function's timeout.
        with contextlib.closing(http.client.HTTPConnection(self._address)) as connection:
            try:
                connection.request("POST", f"/2015-03-31/functions/{self._function.name}/invocations", payload)
                response = connection.getresponse()
                return Answer(response.read(), "X-Amz-Function-Error" in response.headers)
            except (OSError, http.client.HTTPException) as e:
                error = {"errorType": "Runtime.ExitError", "errorMessage": f"The environment has ended: {e!r}"}
                return Answer(json.dumps(error).encode(), is_error=True)

    def take_output(self) -> str:
        """Returns the function's output since the last call, at most the last KEPT_LINES lines."""
        lines = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._lines.popleft())
        return "".join(lines)

    def stop(self) -> None:
        """Ends the function's process as AWS ends an environment, and removes its /tmp directory."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._tmp, ignore_errors=True)
