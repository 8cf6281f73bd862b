"""The programs that the tests run, and how they start and stop."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

START_SECONDS = 300.0
STOP_SECONDS = 120.0


@dataclass(frozen=True)
class Programs:
    """Paths of programs. The peers are Debian's; the Collector and Telegraf are built from their modules."""

    promlake: Path = ROOT / "bin/promlake"
    ingest_fn: Path = ROOT / "bin/ingest-fn"
    query_fn: Path = ROOT / "bin/query-fn"
    compact_fn: Path = ROOT / "bin/compact-fn"
    emulator: Path = ROOT / ".cache/bin/lambda"
    versitygw: Path = ROOT / ".cache/bin/versitygw"
    collector: Path = ROOT / ".cache/bin/collector"
    telegraf: Path = ROOT / ".cache/bin/telegraf"
    prometheus: Path = ROOT / ".cache/peers/usr/bin/prometheus"
    promtool: Path = ROOT / ".cache/peers/usr/bin/promtool"
    alertmanager: Path = ROOT / ".cache/peers/usr/bin/prometheus-alertmanager"
    node_exporter: Path = ROOT / ".cache/peers/usr/bin/prometheus-node-exporter"
    collectd: Path = ROOT / ".cache/peers/usr/sbin/collectd"


def find_programs(target: str = "e2e-programs") -> Programs:
    """Builds the programs by a target of make, unless PROMLAKE_E2E_PROGRAMS=ready."""
    if os.environ.get("PROMLAKE_E2E_PROGRAMS") != "ready":
        subprocess.run(["make", target], cwd=ROOT, check=True)
    return Programs()


class Process:
    """A program that runs with its output in files."""

    def __init__(self, args: Sequence[str | Path], directory: Path, env: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.out, self.err = directory / "stdout", directory / "stderr"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self._process = subprocess.Popen(
                [str(a) for a in args], cwd=directory, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        return self.err.read_text(errors="replace")

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Waits until ready returns true. The end of the program fails the test."""
        wait_until(lambda: self._alive() and ready(), what, START_SECONDS, self.log)

    def _alive(self) -> bool:
        assert self.running, f"{self._process.args} ended with {self._process.returncode}:\n{self.log()}"
        return True

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Returns the exit code, negative for a signal."""
        return self._process.wait(STOP_SECONDS)

    def terminate(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def cleanup(self) -> None:
        """Kills the program if it runs."""
        if self.running:
            self.kill()


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 300.0, context: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for: {what}\n{context()}"
        time.sleep(0.02)


_given = set[int]()

# pytest-xdist names its workers gw0, gw1, ...; without it, there is one.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def free_port() -> int:
    """Returns a free port below those that the kernel gives to connections, so that none of them takes it.

    It returns none twice, and none that another worker returns.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_000 // WORKERS) * WORKERS + WORKER
        if port not in _given:
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                _given.add(port)
                return port
