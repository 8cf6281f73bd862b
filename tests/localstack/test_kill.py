"""Whatever function dies at whatever moment, no sample that was acknowledged is lost and none is doubled.

Each test kills a function with SIGKILL before and after each request by which it changes something, one after another, and asks after
each death. Nobody helps but those who help on AWS: the sender sends again what was not acknowledged, the queue delivers again what was not
deleted, and the schedule comes again.
"""

import secrets
from collections.abc import Callable

from stack.doors import Samples
from stack.proxy import AFTER, BEFORE, Deaths
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import Series, series

DAY_MS = 24 * 60 * 60 * 1000
WINDOW_MS = 2 * 60 * 60 * 1000
DAY = 1_760_000_000_000 // DAY_MS * DAY_MS
SERIES = 5
SAMPLES = 10
SECONDS = 300.0


class Book:
    """Writes samples of one day of a tenant, to two windows with each request, and records the acknowledged ones."""

    def __init__(self, stack: Stack, tenant: str) -> None:
        self.tenant, self._stack = f"{tenant}-{secrets.token_hex(4)}", stack
        self._door = stack.doors(self.tenant)["gateway"]
        self._want: Samples = {}
        self._requests = 0

    def write(self) -> int:
        """Sends a request until it is acknowledged, as a sender does, and returns how often it was not."""
        batch = self._batch(self._requests)
        self._requests += 1
        refused = 0

        def acknowledged() -> bool:
            nonlocal refused
            reply = self._door.write(batch)
            assert reply.status == 204 or reply.status >= 500, reply
            refused += reply.status != 204
            return reply.status == 204

        wait_until(acknowledged, "an acknowledgement", SECONDS)
        for one in batch:
            self._want.setdefault(frozenset(one.labels.items()), []).extend(one.samples)
        return refused

    def _batch(self, request: int) -> list[Series]:
        times = [DAY + window * WINDOW_MS + (request * SAMPLES + i) * 1000 for window in (1, 2) for i in range(SAMPLES)]
        return [series("kept", [(t, t / 1000 + n) for t in times], number=str(n)) for n in range(SERIES)]

    @property
    def samples(self) -> int:
        return sum(len(points) for points in self._want.values())

    def complete(self) -> bool:
        """Reports whether all samples are in the answer. Each must be correct and unique."""
        got = self._door.samples("kept", DAY, DAY + DAY_MS)
        for labels, points in got.items():
            assert len({t for t, _ in points}) == len(points), f"{labels} has doubles"
            assert set(points) <= set(self._want[labels]), f"{labels} has samples that nobody wrote"
        return {labels: sorted(points) for labels, points in got.items()} == {k: sorted(v) for k, v in self._want.items()}

    def check(self) -> None:
        assert self.complete()
        counted = self._door.ask("query", query=f"sum(count_over_time(kept[{DAY_MS}ms]))", time=repr((DAY + DAY_MS) / 1000))
        assert int(counted["result"][0]["value"][1]) == self.samples

    def wait_until_complete(self) -> None:
        wait_until(lambda: self._stack.waiting("WriteQueueUrl") == 0 and self.complete(), "all samples", SECONDS)
        self.check()

    def compacted(self) -> bool:
        return self._stack.levels(self.tenant) == {"24h": (1, self.samples)}

    def compact(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Runs the schedule until the whole day is one block with exactly its samples."""

        def done() -> bool:
            meanwhile()
            if self._stack.waiting("JobQueueUrl") == 0:
                if self.compacted():
                    return True
                self._stack.end("plan")  # a planner looks for new tenants at its start and every few minutes
                self._stack.tick()
            return False

        wait_until(done, "the day to be one block", 4 * SECONDS, lambda: str(self._stack.levels(self.tenant)))
        self.check()


def check_at_each(deaths: Deaths, book: Book) -> Callable[[], None]:
    """Returns a function that checks all samples after each new kill."""
    seen = 0

    def look() -> None:
        nonlocal seen
        if len(deaths.list) > seen:
            seen = len(deaths.list)
            book.check()

    return look


def kinds(deaths: Deaths) -> list[str]:
    return [str(death) for death in deaths.list]


def both(*operations: str) -> list[str]:
    """Returns the deaths of a function with these changes."""
    return [f"{when} {operation}" for operation in operations for when in (BEFORE, AFTER)]


def test_buffered_ingest(quiet: Stack) -> None:
    """A message may be on the queue although its sender got no answer and retries."""
    book = Book(quiet, "kill-ingest")
    with quiet.proxy.killing(quiet.name("ingest")) as deaths:
        assert book.write() == 2
    assert kinds(deaths) == both("SendMessage")
    book.wait_until_complete()
    book.compact()


def test_direct_ingest(quiet: Stack) -> None:
    """A request of two windows is two objects; the store may hold one of them when the request is repeated."""
    book = Book(quiet, "kill-direct")
    quiet.set("ingest", PROMLAKE_INGEST_MODE="direct")
    try:
        with quiet.proxy.killing(quiet.name("ingest")) as deaths:
            book.write()
    finally:
        quiet.set("ingest", PROMLAKE_INGEST_MODE="buffered")
    assert kinds(deaths) == both("PutObject", "PutObject")
    assert quiet.waiting("WriteQueueUrl") == 0
    book.check()
    book.compact()


def test_flush(quiet: Stack) -> None:
    """The queue redelivers a batch, a part of which may be in the bucket."""
    book = Book(quiet, "kill-flush")
    expected = both("PutObject", "PutObject")
    with quiet.proxy.killing(quiet.name("flush")) as deaths:
        book.write()
        # All kills come before the queue is empty. But LocalStack counts a message that it moves
        # between its lists in neither, so the queue may look empty before the last kill.
        wait_until(lambda: len(deaths.list) == len(expected), "all kills", SECONDS)
        book.wait_until_complete()
    assert kinds(deaths) == expected
    book.compact()
    assert quiet.waiting("DeadLetterQueueUrl") == 0


def test_compact(quiet: Stack) -> None:
    """A job has no effect until its commit of the manifest, and its whole effect after it."""
    book = Book(quiet, "kill-compact")
    book.write()
    book.wait_until_complete()
    book.compact()  # the first commit of a tenant creates one more object, which would shift the kills
    for _ in range(2):
        book.write()
        book.wait_until_complete()
    with quiet.proxy.killing(quiet.name("compact")) as deaths:
        book.compact(check_at_each(deaths, book))
    keys = {(death.request.key.rpartition("/")[2], death.when) for death in deaths.list}
    assert keys >= {(file, when) for file in ("series.parquet", "meta.json", "manifest.json") for when in (BEFORE, AFTER)}


def test_plan_and_collect(quiet: Stack) -> None:
    """Jobs may be sent twice, and garbage may be partly deleted."""
    book = Book(quiet, "kill-plan")
    quiet.set("plan", PROMLAKE_COMPACTOR_DELETION_DELAY="1ms")
    try:
        for _ in range(2):
            book.write()
            book.wait_until_complete()
        # The planner plans for the tenants of other tests too.
        with quiet.proxy.killing(quiet.name("plan"), book.tenant) as planning:
            book.compact(check_at_each(planning, book))
        with quiet.proxy.killing(quiet.name("plan"), book.tenant) as collecting:
            look = check_at_each(collecting, book)

            def collected() -> bool:
                quiet.end("plan")  # as in Book.compact: a planner looks for garbage that became old enough only every few minutes
                quiet.tick()
                look()
                return quiet.inspect(book.tenant)["garbage"]["consumed"]["objects"] == 0

            wait_until(collected, "the garbage to be collected", 4 * SECONDS)
    finally:
        quiet.set("plan", PROMLAKE_COMPACTOR_DELETION_DELAY=None)
    sent = [kind for kind in kinds(planning) if "SendMessage" in kind]
    assert sent[:2] in (both("SendMessageBatch"), both("SendMessage"))
    assert any(death.request.operation.startswith("Delete") for death in collecting.list)
    assert quiet.keys(f"v1/{book.tenant}/segments/") == []
    book.check()


def test_delivered_again(quiet: Stack) -> None:
    """A processed message is redelivered before its block is created, and again after that."""
    book = Book(quiet, "kill-again")
    book.write()
    book.wait_until_complete()
    message = quiet.sent()[-1]
    for _ in range(2):
        quiet.sqs.send_message(QueueUrl=quiet.queue("WriteQueueUrl"), MessageBody=message)
        book.wait_until_complete()
        book.compact()
