"""The answer to garbage is a 4xx. Garbage costs little memory and does not disturb other requests."""

import random
import threading
import time
from collections.abc import Iterator

import pytest
from promlake import PromlakeError
from support.questions import vector
from support.remote_write import VERSION_2, Answer, Sender, compress, encode, encode_as_given, series, varint
from support.server import Server, Start
from support.stores import directory_store

NOW_MS = int(time.time() * 1000)
MIB = 1 << 20
GOOD = compress(encode([series("good", [(NOW_MS, 1)])]))
# The limits of requests in flight, and as much again for uncollected garbage, DuckDB and the
# programs themselves.
MEMORY_BYTES = 500 * MIB


@pytest.fixture(scope="module")
def target(start_for_module: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, which must work without limits at the end."""
    server = start_for_module(directory_store(tmp_path_factory.mktemp("bad") / "store"), "--ingest.flush-interval", "5ms")
    yield server
    assert server.sender().post(GOOD).status == 204
    assert [s.value for s in vector(server.client(), "good", NOW_MS / 1000).samples] == [1]
    assert server.memory("VmHWM") < MEMORY_BYTES
    server.stop()


def labelled(*labels: tuple[str, str]) -> bytes:
    return compress(encode_as_given(labels, [(NOW_MS, 1)]))


BROKEN = {
    "nothing": b"",
    "no snappy": b"\xff" * 100,
    "plain protobuf": encode([series("up", [(NOW_MS, 1)])]),
    "truncated snappy": GOOD[:-3],
    "snappy that claims 64 bits": varint((1 << 63) + 1) + b"abc",
    "snappy that cannot hold what it claims": varint(60 * MIB) + b"\x00abc",
    "snappy that refers to nothing": varint(8) + b"\x01\xff\xff",
    "zeros that expand twentyfold": compress(bytes(60 * MIB)),
    "truncated protobuf": compress(encode([series("up", [(NOW_MS, 1)])])[:-1]),
    "protobuf of another message": compress(b"\x0a\x03\x08\x96\x01"),
    "label without end": compress(b"\x0a\x7f\x0a\x10"),
}

TOO_LARGE = {
    "snappy that claims 4 GB": varint((1 << 32) - 1) + b"\x00abc",
    "snappy that holds 100 MB": compress(bytes(100 * MIB)),
}

REJECTED = {
    "label value of 10 MB": (labelled(("__name__", "up"), ("big", "x" * 10_000_000)), "big"),
    "label name of 10 MB": (labelled(("__name__", "up"), ("x" * 10_000_000, "v")), "10000000 bytes"),
    "metric name of 10 MB": (labelled(("__name__", "x" * 10_000_000)), "10000000 bytes"),
    "duplicate labels apart": (labelled(("b", "1"), ("__name__", "up"), ("b", "2")), '"b"'),
    "duplicate labels": (labelled(("__name__", "up"), ("a", "1"), ("a", "1")), '"a"'),
    "no metric name": (labelled(("a", "1")), "__name__"),
    "empty metric name": (labelled(("__name__", "")), "__name__"),
    "empty label name": (labelled(("", "1"), ("__name__", "up")), '""'),
    "1000 labels": (labelled(("__name__", "up"), *((f"l{i:04}", "v") for i in range(1000))), "limit of 100"),
    "far future": (compress(encode([series("up", [(NOW_MS + 86_400_000, 1)])])), "future"),
    "time beyond reason": (compress(encode([series("up", [((1 << 63) - 1, 1)])])), "timestamp"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_body(target: Server, name: str) -> None:
    answer = target.sender().post(BROKEN[name])
    assert answer.status == 400, answer
    assert answer.text


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large(target: Server, name: str) -> None:
    answer = target.sender().post(TOO_LARGE[name])
    assert answer.status == 413, answer
    assert "67108864" in answer.text, "the limit must be named"


def test_body_over_the_limit(target: Server) -> None:
    answer = target.sender().announce(17 * MIB)
    assert answer.status == 413, answer
    assert "16777216" in answer.text, "the limit must be named"


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_series(target: Server, name: str) -> None:
    body, offender = REJECTED[name]
    answer = target.sender().post(body)
    assert answer.status == 400, answer
    assert offender in answer.text
    assert len(answer.text) < 2000, "an error must not repeat what is too long"


def test_the_valid_rest_is_stored(target: Server) -> None:
    good = encode([series("kept", [(NOW_MS, 7)]), series("kept", [(NOW_MS, 8)], other="1")])
    bad = encode_as_given([("a", "1"), ("__name__", "refused"), ("a", "2")], [(NOW_MS, 1)])
    answer = target.sender().post(compress(good + bad))
    assert answer.status == 400
    assert '"a"' in answer.text
    assert sorted(s.value or 0 for s in vector(target.client(), '{__name__=~"kept|refused"}', NOW_MS / 1000).samples) == [7, 8]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Type": "application/json"}, 415),
        ({"Content_Type": "application/x-protobuf;proto=other.Message"}, 415),
        ({"Content_Encoding": "gzip"}, 415),
        ({"Content_Encoding": "zstd"}, 415),
    ],
)
def test_headers(target: Server, headers: dict[str, str], status: int) -> None:
    assert target.sender().post(GOOD, **headers).status == status


@pytest.mark.parametrize("content_type", ["application/x-protobuf", VERSION_2])
def test_random_bytes(target: Server, content_type: str) -> None:
    """Random messages, and messages with random faults; by chance, a fault may leave a valid message."""
    chance = random.Random(7)
    sender = target.sender()
    good = encode([series("flipped", [(NOW_MS, 1)], a="1", b="2")])
    for _ in range(300):
        noise = compress(chance.randbytes(chance.randrange(64, 400)))
        assert sender.post(noise, Content_Type=content_type).status in range(400, 500)
        flipped = bytearray(good)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        assert sender.post(compress(bytes(flipped)), Content_Type=content_type).status in (204, *range(400, 500))
        packed = bytearray(GOOD)
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        assert sender.post(bytes(packed), Content_Type=content_type).status in (204, *range(400, 500))


def test_bombs_at_once(target: Server) -> None:
    """Concurrent bombs use at most the memory of requests in flight."""
    bodies = [BROKEN["zeros that expand twentyfold"], TOO_LARGE["snappy that holds 100 MB"], REJECTED["label value of 10 MB"][0]]
    answers: list[Answer] = []

    def bomb() -> None:
        sender = Sender(target.url)
        for body in bodies * 5:
            answers.append(sender.post(body))  # noqa: PERF401 - what was answered counts, even if the next one is not
        sender.close()

    threads = [threading.Thread(target=bomb, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(answers) == 8 * 5 * len(bodies)
    assert {a.status for a in answers} <= {400, 413, 503}
    assert target.memory("VmHWM") < MEMORY_BYTES


@pytest.mark.parametrize(
    ("expr", "status", "error_type"),
    [
        ("sum(", 400, "bad_data"),
        ("up{a=~'('}", 400, "bad_data"),
        ("rate(up)", 400, "bad_data"),
        ("(" * 100_000, 400, "bad_data"),
    ],
    ids=["syntax", "regular expression", "type", "depth"],
)
def test_bad_queries(target: Server, expr: str, status: int, error_type: str) -> None:
    with pytest.raises(PromlakeError) as e:
        target.client().query(expr)
    assert (e.value.status, e.value.error_type) == (status, error_type)


def test_query_over_the_limit(target: Server) -> None:
    answer = target.sender().announce(11 * MIB, "/api/v1/query")
    assert answer.status == 413, answer
    assert "10485760" in answer.text, "the limit must be named"
