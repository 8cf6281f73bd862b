"""A reader of remote_read 1.0, written from the specification: it shows stale markers, which no query does."""

import struct
import urllib.request
from collections.abc import Iterator

import cramjam

from support.remote_write import varint

STALE = 0x7FF0000000000002
"""The bits of a stale marker."""

Samples = dict[frozenset[tuple[str, str]], list[tuple[int, int]]]
"""Times in ms and the bits of values, by labels."""

EQUAL, NOT_EQUAL, MATCHES = 0, 1, 2


def read(url: str, start: int, end: int, *matchers: tuple[int, str, str]) -> Samples:
    """Returns the samples between two times in ms of the series that match (type, label, value)."""
    query = _number(1, start) + _number(2, end)
    for kind, name, value in matchers:
        query += _bytes(3, _number(1, kind) + _bytes(2, name.encode()) + _bytes(3, value.encode()))
    body = bytes(cramjam.snappy.compress_raw(_bytes(1, query)))
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Read-Version": "0.1.0"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/read", body, headers), timeout=300) as response:
        answer = bytes(cramjam.snappy.decompress_raw(response.read()))
    out: Samples = {}
    for _, result in _fields(answer):
        for _, one in _fields(result):
            labels, samples = list[tuple[str, str]](), list[tuple[int, int]]()
            for field, value in _fields(one):
                if field == 1:
                    parts = dict(_fields(value))
                    labels.append((parts[1].decode(), parts.get(2, b"").decode()))
                elif field == 2:
                    parts = dict(_fields(value))
                    samples.append((int.from_bytes(parts[2], "little"), struct.unpack("<Q", parts.get(1, bytes(8)))[0]))
            out[frozenset(labels)] = samples
    return out


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the fields of a message: bytes as they are, numbers as 8 bytes, the lowest first."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            number, at = _varint(message, at)
            yield tag >> 3, number.to_bytes(10, "little")[:8]
            continue
        size = 8
        if tag & 7 == 2:
            size, at = _varint(message, at)
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    out = shift = 0
    while True:
        byte = message[at]
        out |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return out, at
