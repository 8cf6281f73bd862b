"""A sender of remote_write 1.0, written from the specification and independent of the server's decoder."""

import contextlib
import http.client
import struct
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import cramjam

WRITE_PATH = "/api/v1/write"
CONTENT_TYPE = "application/x-protobuf"
VERSION_2 = f"{CONTENT_TYPE};proto=io.prometheus.write.v2.Request"


@dataclass(frozen=True)
class Series:
    """A series with its samples: (ms since the Unix epoch, value)."""

    labels: Mapping[str, str]
    samples: Iterable[tuple[int, float]]
    exemplars: Iterable[tuple[int, float, str]] = ()  # with the value of the label trace_id
    histograms: Iterable[tuple[int, int]] = ()  # the number of observations, all of which were 1


def series(name: str, samples: Iterable[tuple[int, float]], **labels: str) -> Series:
    return Series({"__name__": name, **labels}, samples)


def encode(all_series: Iterable[Series]) -> bytes:
    """Returns a prometheus.WriteRequest, its labels in order of their names."""
    return b"".join(_message(1, _series(s)) for s in all_series)


def encode_as_given(labels: Iterable[tuple[str, str]], samples: Iterable[tuple[int, float]]) -> bytes:
    """Returns a prometheus.WriteRequest of one series whose labels may break the rules."""
    return _message(1, _timeseries(labels, samples))


def compress(message: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(message))


def varint(n: int) -> bytes:
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _series(s: Series) -> bytes:
    exemplars = (_message(3, _exemplar(*e)) for e in s.exemplars)
    histograms = (_message(4, _histogram(*h)) for h in s.histograms)
    return _timeseries(sorted(s.labels.items()), s.samples) + b"".join(exemplars) + b"".join(histograms)


def _exemplar(ms: int, value: float, trace_id: str) -> bytes:
    label = _message(1, b"trace_id") + _message(2, trace_id.encode())
    return _message(1, label) + b"\x11" + struct.pack("<d", value) + b"\x18" + varint(ms)


def _histogram(ms: int, count: int) -> bytes:
    """Schema 0: the bucket of index 0 holds (0.5, 1]."""
    span = b"\x10" + varint(1)
    delta = varint(count << 1)
    return b"\x08" + varint(count) + b"\x19" + struct.pack("<d", count) + _message(11, span) + _message(12, delta) + b"\x78" + varint(ms)


def _timeseries(labels: Iterable[tuple[str, str]], samples: Iterable[tuple[int, float]]) -> bytes:
    pairs = (_message(1, _message(1, name.encode()) + _message(2, value.encode())) for name, value in labels)
    points = (_message(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(ms)) for ms, value in samples)
    return b"".join(pairs) + b"".join(points)


def _message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


@dataclass(frozen=True)
class Answer:
    status: int
    text: str


class Sender:
    """One connection to a server. Every method raises OSError or HTTPException if the server is unreachable or ends."""

    def __init__(self, url: str, tenant: str | None = None, timeout: float = 300.0) -> None:
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=timeout)
        self._headers = {} if tenant is None else {"X-Scope-OrgID": tenant}

    def close(self) -> None:
        self._connection.close()

    def write(self, *all_series: Series) -> Answer:
        return self.post(compress(encode(all_series)))

    def post(self, body: bytes, **headers: str) -> Answer:
        """Sends a body as it is. Headers are named with _ for -; an empty one is left out."""
        standard = {"Content-Type": CONTENT_TYPE, "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        every = {name: value for name, value in {**standard, **self._headers, **given}.items() if value}
        # A server that rejects a large body may answer and close the connection while the body is
        # sent.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.request("POST", WRITE_PATH, body, every)
        return self._answer()

    def announce(self, length: int, path: str = WRITE_PATH) -> Answer:
        """Sends the header of a request with a body of so many bytes, and waits for the answer before any of them."""
        c = self._connection
        c.putrequest("POST", path)
        for name, value in {"Content-Type": CONTENT_TYPE, "Content-Encoding": "snappy", "Expect": "100-continue"}.items():
            c.putheader(name, value)
        c.putheader("Content-Length", str(length))
        c.endheaders()
        return self._answer()

    def begin(self, body: bytes) -> bytes:
        """Sends a request without the second half of its body, which it returns for finish."""
        c, half = self._connection, len(body) // 2
        c.putrequest("POST", WRITE_PATH)
        c.putheader("Content-Type", CONTENT_TYPE)
        c.putheader("Content-Encoding", "snappy")
        c.putheader("Content-Length", str(len(body)))
        c.endheaders(body[:half])
        return body[half:]

    def finish(self, rest: bytes) -> Answer:
        self._connection.send(rest)
        return self._answer()

    def _answer(self) -> Answer:
        response = self._connection.getresponse()
        return Answer(response.status, response.read().decode(errors="replace").strip())
