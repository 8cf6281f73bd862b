"""Whichever process is killed during compaction, answers do not change, and garbage is deleted in the end."""

import random
import subprocess
import time

from support.commands import Commands, no_garbage
from support.programs import Programs, wait_until
from support.questions import samples
from support.remote_write import Sender, Series, series
from support.server import Server, Start
from support.stores import Store

DAY_MS = 24 * 60 * 60 * 1000
WINDOW_MS = 2 * 60 * 60 * 1000
DAYS = 2
LAST_MS = (int(time.time() * 1000) // DAY_MS - 1) * DAY_MS
FIRST_MS = LAST_MS - DAYS * DAY_MS
SERIES = 20
KILLS = 5

Samples = dict[frozenset[tuple[str, str]], list[tuple[int, float]]]

# Compaction is as busy as possible. Nothing waits for late data; replaced objects are deleted after
# 20 seconds, longer than a query takes here.
BUSY = (
    "--ingest.flush-interval=5ms",
    "--compactor.compaction-interval=10ms",
    "--compactor.window-delay=1ms",
    "--compactor.late-delay=1ms",
    "--compactor.deletion-delay=20s",
    "--query.timeout=19s",
    "--compactor.min-part-segments=2",
)


def settling(store: Store) -> tuple[str, ...]:
    """In a bucket, a flush must end before its segment may be merged. In a directory, segments settle at once."""
    if store.url.startswith("file:"):
        return ("--compactor.settle-delay=1ms",)
    return ("--compactor.settle-delay=6s", "--ingest.flush-timeout=5s")


def send(sender: Sender, *batch: Series) -> None:
    """Writes a batch. It is sent again if its flush takes too long."""
    wait_until(lambda: sender.write(*batch).status == 204, "a write to be acknowledged")


class Book:
    """Writes samples, each round some to every window of every day, and records them. Every other round corrects the previous one."""

    def __init__(self) -> None:
        self._rounds = 0
        self._written: dict[int, dict[int, float]] = {i: {} for i in range(SERIES)}

    def write(self, server: Server) -> None:
        sender = server.sender()
        for window in range(FIRST_MS, LAST_MS, WINDOW_MS):
            t = window + self._rounds // 2 * 60_000
            batch = {i: float(self._rounds * 1000 + i) for i in range(SERIES)}
            send(sender, *(series("kept", [(t, v)], number=str(i)) for i, v in batch.items()))
            for i, v in batch.items():
                self._written[i][t] = v
        self._rounds += 1

    def check(self, server: Server) -> None:
        want: Samples = {
            frozenset({"__name__": "kept", "number": str(i)}.items()): sorted(points.items()) for i, points in self._written.items()
        }
        assert samples(server.client(), "kept", LAST_MS, DAYS * DAY_MS + 1) == want


def test_kill_serve_during_compaction(programs: Programs, start: Start, store: Store) -> None:
    chance, book, commands = random.Random(1), Book(), Commands(programs, store)
    server = start(store, *BUSY, *settling(store))
    for _ in range(KILLS):
        book.write(server)
        book.check(server)
        time.sleep(chance.uniform(0, 0.3))
        server.process.kill()
        server.start()
        book.check(server)
    wait_until(lambda: commands.levels() == {"24h": DAYS}, "one block a day", context=server.process.log)
    book.check(server)
    server.stop()
    finish(commands)
    server.start()
    book.check(server)
    server.stop()


def test_kill_compact(programs: Programs, start: Start, file_store: Store) -> None:
    chance, book, commands = random.Random(2), Book(), Commands(programs, file_store)
    server = start(file_store, "--no-compactor.enabled")
    now, killed = time.time(), 0
    for _ in range(KILLS):
        book.write(server)
        now += 3600
        killed += run_and_kill(commands, now, chance.uniform(0.03, 0.4))
        book.check(server)
    assert killed > 0
    now += 3600
    commands.compact(now)
    assert commands.levels() == {"24h": DAYS}
    book.check(server)
    finish(commands, now)
    book.check(server)
    server.stop()


def run_and_kill(commands: Commands, now: float, seconds: float) -> bool:
    """Reports whether the command was killed before its end."""
    args = commands.args("compact", "--until-idle", "--now", repr(now))
    try:
        subprocess.run(args, env=commands.env(), capture_output=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        return True
    return False


def finish(commands: Commands, now: float | None = None) -> None:
    """Advances the clock until all garbage is deleted: orphans are first marked, then deleted."""
    commands.collect((now or time.time()) + 3600)
    assert no_garbage(commands)
    assert commands.levels() == {"24h": DAYS}
