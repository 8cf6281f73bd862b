"""The processes of the stack."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_SECONDS = 300.0
STOP_SECONDS = 10.0
LOG_TAIL = 4000


class StackError(Exception):
    """An error to print for the user."""


class Child:
    """A process that runs until it is stopped, with its output in a file and in a process group of its own."""

    def __init__(self, command: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> None:
        self.name, self.log = log.stem, log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [str(c) for c in command],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Waits until ready returns true. Raises StackError if the process ends before."""

        def ready_or_ended() -> bool:
            if not self.running:
                raise StackError(f"{self.name} has ended:\n{tail(self.log)}")
            return ready()

        wait_until(ready_or_ended, what)

    def wait_for_line(self, text: str) -> str:
        """Waits for a whole line of output with the text, and returns it."""
        self.wait_until(lambda: self._line(text) is not None, f"{self.name} to print {text!r}")
        return self._line(text) or ""

    def _line(self, text: str) -> str | None:
        lines = self.log.read_text(errors="replace").splitlines(keepends=True)
        return next((line.strip() for line in lines if text in line and line.endswith("\n")), None)

    def stop(self) -> None:
        """Ends the process and its children: SIGTERM, then SIGKILL after STOP_SECONDS."""
        if self.running:
            self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()


def run(command: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> None:
    """Runs a command. Raises StackError with the end of its output if it fails."""
    with log.open("wb") as out:
        args, everything = [str(c) for c in command], {**os.environ, **env}
        done = subprocess.run(args, env=everything, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise StackError(f"{log.stem} ended with {done.returncode}:\n{tail(log)}")


def tail(log: Path) -> str:
    """Returns the end of a log."""
    return log.read_text(errors="replace")[-LOG_TAIL:]


def wait_until(ready: Callable[[], bool], what: str, seconds: float | None = START_SECONDS) -> None:
    """Waits until ready returns true. Raises StackError after so many seconds; None waits forever."""
    begin = time.monotonic()
    while not ready():
        if seconds is not None and time.monotonic() > begin + seconds:
            raise StackError(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)


def port_is_free(port: int) -> bool:
    """Reports whether a port of the loopback interface is free."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Returns a free port below those that the kernel gives to connections, so that none of them takes it."""
    while True:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", 10_000 + secrets.randbelow(22_000))) as s:
            return s.getsockname()[1]
