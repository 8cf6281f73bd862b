"""The values of a real node_exporter: the recording that the benchmarks send."""

import re
from collections.abc import Iterator
from functools import cache

import cramjam

from support.programs import ROOT
from support.remote_write import Series

CAPTURE = ROOT / "tests/bench/capture/testdata/node_exporter.txt.zst"

SCRAPE = "@@ "


@cache
def recording() -> dict[str, tuple[float, ...]]:
    """Returns each series' values by its text in the exposition format; only series that every scrape has."""
    text = bytes(cramjam.zstd.decompress(CAPTURE.read_bytes())).decode()
    scrapes = [dict(samples(scrape)) for scrape in text.split(SCRAPE)[1:]]
    return {name: tuple(s[name] for s in scrapes) for name in scrapes[0] if all(name in s for s in scrapes)}


def samples(scrape: str) -> Iterator[tuple[str, float]]:
    for line in scrape.splitlines()[1:]:
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            yield name, float(value)


def labels(name: str) -> dict[str, str]:
    """Returns the labels of a series by its text. Values in the recording hold no escapes."""
    metric, _, inside = name.partition("{")
    return {"__name__": metric, **dict(re.findall(r'(\w+)="([^"]*)"', inside))}


def replay(times: list[int], every: int = 1, **more: str) -> list[Series]:
    """Returns every n-th series of the recording with samples at the times (ms). Counters reset where the recording starts again."""
    out = []
    for name, values in list(recording().items())[::every]:
        points = [(t, values[i % len(values)]) for i, t in enumerate(times)]
        out.append(Series({**labels(name), **more}, points))
    return out
