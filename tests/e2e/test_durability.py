"""Whatever happens to the process, the store holds each acknowledged sample, once."""

import http.client
import random
import threading
import time

import pytest
from support.programs import wait_until
from support.questions import samples
from support.remote_write import Sender, Series, compress, encode, series
from support.server import Server, Start
from support.stores import Store

KILLS = 6
SENDERS = 4
SERIES = 50
WINDOW_MS = 2 * 60 * 60 * 1000
# The samples are 10 ms apart. From the 30th on they belong to the next window.
FIRST_MS = int(time.time() * 1000) // WINDOW_MS * WINDOW_MS - 30 * 10


class Hammer(threading.Thread):
    """Sends one sample of each of its series, repeatedly, and records the acknowledged ones.

    A request without an answer is either sent again, so that samples may arrive twice, or given up, so that they may be there or not.
    """

    def __init__(self, number: int, server: Server) -> None:
        super().__init__(name=f"s{number}", daemon=True)
        self.stopping = threading.Event()
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.failures: list[str] = []
        self._server = server
        self._random = random.Random(number)

    def run(self) -> None:
        sender = Sender(self._server.url)
        while not self.stopping.is_set():
            try:
                answer = sender.write(*self._round(self.sent))
            except (OSError, http.client.HTTPException):
                sender.close()
                time.sleep(0.02)
                sender = Sender(self._server.url)
                if self._random.random() < 0.5:
                    continue
            else:
                if answer.status == 204:
                    self.acknowledged.add(self.sent)
                elif answer.status not in (500, 503):
                    self.failures.append(f"round {self.sent}: {answer}")
            self.sent += 1
        sender.close()

    def _round(self, number: int) -> list[Series]:
        return [series("hammered", [(ms(number), number * SERIES + i)], sender=self.name, number=str(i)) for i in range(SERIES)]


def ms(number: int) -> int:
    return FIRST_MS + 10 * number


def test_kill_loses_nothing_acknowledged(start: Start, store: Store) -> None:
    chance = random.Random(1)
    server = start(store, "--ingest.flush-interval", "30ms")
    hammers = [Hammer(i, server) for i in range(SENDERS)]
    for h in hammers:
        h.start()
    for _ in range(KILLS):
        before = [len(h.acknowledged) for h in hammers]
        wait_until(lambda: all(len(h.acknowledged) > n for h, n in zip(hammers, before, strict=True)), "acknowledgements")  # noqa: B023
        time.sleep(chance.uniform(0, 0.4))
        server.process.kill()
        server.start()
    for h in hammers:
        wait_until(lambda: ms(h.sent) > FIRST_MS + 40 * 10, "samples in the second window")  # noqa: B023
        h.stopping.set()
    for h in hammers:
        h.join()
        check(server, h)
    server.stop()


def check(server: Server, h: Hammer) -> None:
    assert h.failures == []
    span = 10 * (h.sent + 2)
    got = samples(server.client(), f'hammered{{sender="{h.name}"}}', FIRST_MS + span, span + 10)
    assert len(got) == SERIES
    for labels, points in got.items():
        number = int(dict(labels)["number"])
        rounds = [(t - FIRST_MS) // 10 for t, _ in points]
        assert len(rounds) == len(set(rounds)), "a sample was returned twice"
        missing = h.acknowledged.difference(rounds)
        assert not missing, f"acknowledged, and lost: rounds {sorted(missing)} of {h.sent}"
        assert points == [(ms(r), r * SERIES + number) for r in rounds]
        # A kill may have hit the round that was about to be sent again: stored, but not counted.
        assert max(rounds) <= h.sent


def test_terminate_answers_requests_that_wait_for_a_flush(start: Start, store: Store) -> None:
    server = start(store, "--ingest.flush-interval", "10m")
    warm_up(server)
    answers: list[int] = []

    def send() -> None:
        answers.append(server.sender().write(series("waiting", [(FIRST_MS, 1)])).status)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    wait_until(lambda: in_flight(server) == 1, "the request to arrive")
    assert server.process.terminate() == 0, "shutting down must not wait for the flush interval"
    thread.join()
    assert answers == [204]
    server.cleanup()

    server.start()
    assert list(samples(server.client(), "waiting", FIRST_MS + 1, 1000).values()) == [[(FIRST_MS, 1)]]
    server.stop()


def warm_up(server: Server) -> None:
    """Causes the first flush, which has no delay; the next one is an interval later."""
    assert server.sender().write(series("first", [(FIRST_MS, 1)])).status == 204


def in_flight(server: Server) -> int:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return sum(int(x.split()[1]) for x in lines if x.startswith('promlake_http_requests_in_flight{handler="/api/v1/write"}'))


def test_terminate_answers_a_request_that_is_being_received(start: Start, file_store: Store) -> None:
    server = start(file_store)
    sender = server.sender()
    rest = sender.begin(whole_request())
    wait_until(lambda: in_flight(server) == 1, "the request to arrive")
    server.process.signal(15)
    wait_until(lambda: "shutting down" in server.process.log(), "the server to shut down")
    answer = sender.finish(rest)
    assert server.process.wait() == 0
    server.cleanup()

    server.start()
    kept = samples(server.client(), "slow", FIRST_MS + 1, 1000)
    assert (answer.status, len(kept)) in ((204, 1), (503, 0)), answer
    server.stop()


def whole_request() -> bytes:
    return compress(encode([series("slow", [(FIRST_MS, 1)], filler="x" * 1000)]))


def test_terminate_when_idle(server: Server) -> None:
    """The server fixture checks the end."""
    warm_up(server)


@pytest.mark.parametrize("store_flag", ["file:///dev/null/x", "s3://lake?nonsense=1", "gopher://x"])
def test_a_store_that_cannot_be_opened(start: Start, file_store: Store, store_flag: str) -> None:
    with pytest.raises(AssertionError, match=r"ended with (1|2):"):
        start(Store(store_flag, file_store.directory))
