"""A running bootstrap."""

import collections
import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from .runtime_api import RuntimeAPI

# From SIGTERM to SIGKILL, for processes that asked for the former.
TERM_SECONDS = 2.0
KEPT_LINES = 2000


class FunctionProcess:
    """A bootstrap with the API that it speaks to. It lives once: after its end there is another one.

    Its output goes to the log file of the function, and its pid into a file as long as it lives.
    """

    def __init__(self, bootstrap: Path, env: Mapping[str, str], log: Path, pid_file: Path) -> None:
        """Starts it. The pid file's name gets the pid before its suffix, so that a later process never takes it for its own."""
        self.api = RuntimeAPI()
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        try:
            self._process = subprocess.Popen(
                [bootstrap],
                cwd=bootstrap.parent,
                env={**env, "AWS_LAMBDA_RUNTIME_API": self.api.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as e:
            self.api.close(f"Runtime.InvalidEntrypoint: {e}")
            raise
        self._pid_file = pid_file.with_suffix(f".{self._process.pid}{pid_file.suffix}")
        self._pid_file.write_text(f"{self._process.pid}\n")
        threading.Thread(target=self._watch, args=(log,), daemon=True).start()

    def _watch(self, log: Path) -> None:
        with self._process, log.open("ab", buffering=0) as file:
            for line in self._process.stdout or ():
                file.write(line)
                self._lines.append(line.decode(errors="replace"))
        code = self._process.wait()
        with contextlib.suppress(FileNotFoundError):
            self._pid_file.unlink()
        how = f"exit status {code}" if code >= 0 else f"signal: {-code}"
        self.api.close(f"Runtime exited with error: {how}")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def take_output(self) -> str:
        """Returns what it has printed since the last call, at most the last KEPT_LINES lines."""
        lines = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._lines.popleft())
        return "".join(lines)

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends it as AWS does when an environment is given up."""
        if self.running and self.api.wants_sigterm:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(TERM_SECONDS)
        if self.running:
            self.kill()


def live_pids(folder: Path, function: str) -> list[int]:
    """Returns the pids of a function's processes from the files that they have below the executor's folder."""
    pids = []
    for file in (folder / function).glob("*.pid"):
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            pid = int(file.read_text())
            os.kill(pid, 0)
            pids.append(pid)
    return pids
