"""The shell of `promlake sql`, typed on a terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs import Programs
from support.remote_write import series
from support.server import FRESH, Server

PROMPT = "promlake> "
SECONDS = 300.0


class Typist:
    """A user at a terminal."""

    def __init__(self, args: list[str | Path], directory: Path) -> None:
        self._terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        environment = os.environ | FRESH | {"TERM": "xterm", "HOME": str(directory)}
        streams = {"stdin": inside, "stdout": inside, "stderr": inside}
        # A session of its own, whose terminal this is, so that Ctrl-C is a signal.
        take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-c", take, *map(str, args)]
        self.process = subprocess.Popen(command, **streams, env=environment, start_new_session=True)
        os.close(inside)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def reads(self, pattern: str) -> str:
        """Waits for a text on the screen and returns everything up to its end that was not returned before."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self._seen)):
            assert time.monotonic() < deadline, f"waited for {pattern!r}:\n{self._seen}"
            self._look(1.0)
        text, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return text

    def _look(self, seconds: float) -> None:
        """Takes what the screen shows within some time."""
        if select.select([self._terminal], [], [], seconds)[0]:
            try:
                self._seen += os.read(self._terminal, 65536).decode(errors="replace")
            except OSError as e:
                raise AssertionError(f"the program has ended:\n{self._seen}") from e

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)


@pytest.fixture(params=["url", "store"])
def shell(request: pytest.FixtureRequest, programs: Programs, server: Server, tmp_path: Path) -> Iterator[Typist]:
    assert server.sender().write(series("up", [(int(time.time() * 1000), 1)], job="api")).status == 204
    target = server.url if request.param == "url" else server.store.url
    typist = Typist([programs.promlake, "sql", f"--{request.param}", target], tmp_path)
    yield typist
    typist.close()


# What is shown of a statement that runs long: of a store, how much of the samples is read.
RUNNING = {"url": r"running for \d+ s; Ctrl-C cancels", "store": r"\[█{24}\] 100% read, \d+ s; Ctrl-C cancels"}


def test_shell(shell: Typist, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    shell.reads(PROMPT)
    shell.type("SELECT metric,\r")
    shell.reads(r"\.\.\.> ")
    shell.type("value FROM samples;\r")
    assert re.search(r"metric\s+value\s+up\s+1\s+\(1 row\)", shell.reads(r"\(1 row\)"))
    shell.reads(PROMPT)
    shell.type("SELECT nothing FROM samples;\r")
    shell.reads("error: bad_data: .*nothing")
    shell.reads(PROMPT)
    shell.type("\\d samp\t")  # alone: a tab that more follows is one of pasted text
    shell.reads("samples")
    shell.type("\r")
    shell.reads("column_name")
    shell.reads("DOUBLE")
    shell.reads(PROMPT)
    shell.type("SELECT sum(value * i) FROM samples, range(10000000000000) r(i);\r")
    shell.reads(r"r\(i\);")
    shell.reads(RUNNING[request.node.callspec.params["shell"]])
    shell.type("\x03")  # once: what is pressed again may cancel the next statement
    assert shell.reads("cancelled").endswith("\r\x1b[Kcancelled"), "the line is erased"
    shell.reads(PROMPT)
    shell.type("SELECT 40 + 2 AS answer;\r")
    shell.reads("42")
    shell.reads(PROMPT)
    shell.type("\\q\r")
    assert shell.process.wait(SECONDS) == 0
    history = tmp_path / ".promlake_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert history.read_text().splitlines()[:2] == ["SELECT metric,", "value FROM samples;"]


def test_pages(programs: Programs, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are longer than the screen are shown by the pager, until the user leaves it, unless the user wants none."""
    monkeypatch.setenv("PAGER", "cat -n; read -r line </dev/tty")
    shell = Typist([programs.promlake, "sql", "--url", server.url], tmp_path)
    try:
        shell.reads(PROMPT)
        shell.type("SELECT range AS n FROM range(200);\r")
        shell.reads(r"\s202\t\(200 rows\)")
        shell.type("\r")
        shell.reads(PROMPT)
        shell.type("SELECT 40 + 2 AS answer;\r")
        assert "\t" not in shell.reads(r"\(1 row\)")
        shell.reads(PROMPT)
        shell.type("\\pager off\r")
        shell.reads(PROMPT)
        shell.type("SELECT range AS n FROM range(200);\r")
        assert "\t" not in shell.reads(r"\(200 rows\)")
        shell.reads(PROMPT)
        shell.type("\\q\r")
        assert shell.process.wait(SECONDS) == 0
    finally:
        shell.close()
