"""A sender of remote_write 2.0, written from the specification and independent of the server's decoder."""

import struct
from collections.abc import Iterable

from support.remote_write import VERSION_2, Series, compress, varint

HEADERS = {"Content_Type": VERSION_2, "X_Prometheus_Remote_Write_Version": "2.0.0"}


def encode(all_series: Iterable[Series]) -> bytes:
    """Returns a compressed io.prometheus.write.v2.Request."""
    symbols: dict[str, int] = {"": 0}
    encoded = b"".join(_message(5, _series(s, symbols)) for s in all_series)
    return compress(b"".join(_message(4, text.encode()) for text in symbols) + encoded)


def _series(s: Series, symbols: dict[str, int]) -> bytes:
    references = b"".join(varint(symbols.setdefault(text, len(symbols))) for pair in sorted(s.labels.items()) for text in pair)
    points = (_message(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(ms)) for ms, value in s.samples)
    return _message(1, references) + b"".join(points)


def _message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body
