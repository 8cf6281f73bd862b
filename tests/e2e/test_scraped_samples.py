"""A Prometheus and Promlake store the same samples of targets that flap, change and break, stale markers included."""

import json
import struct
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.beside import Beside
from support.programs import Process, Programs, free_port, wait_until
from support.remote_read import EQUAL, MATCHES, NOT_EQUAL, STALE, read
from support.targets import Script, Target, serving

WHO = ("prometheus", "promlake")
SECONDS = 300.0
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Step = tuple[str, int]


def ok(*lines: str) -> Step:
    return "".join(line + "\n" for line in lines), 200


HISTOGRAM = ("# TYPE h histogram", 'h_bucket{le="1.5"} 1', 'h_bucket{le="+Inf"} 2', "h_sum 3.5", "h_count 2")
DOWN = ("", 500)

# What each target answers, scrape by scrape. AT stands for a time in ms.
SCRIPTS: dict[str, list[Step]] = {
    "flapping": [step for n in range(4) for step in (ok(f"a {n}", 'b{x="1"} NaN', *HISTOGRAM), DOWN, *([DOWN] if n == 2 else []))],
    "labels": [
        ok('a{path="/1"} 1'), ok('a{path="/2"} 1'), ok('a{path="/1"} 2', 'a{path="/2"} 2'), ok('a{path="/1",new="é"} 3'), ok("a 4"),
        ok('a{path=""} 5'), ok(), ok('a{path="/1"} +Inf', "b -0"), ok('a{path="/1"} -Inf'), ok("# TYPE a counter", 'a{path="/1"} 7'),
    ],
    "broken": [
        ok("a 1", "b 1"), ok("this is no metric", "a 2", "b 2"), ok("a 3", "b 3"), ok("a 4", "this is no metric", "b 4"),
        ok("a 5", "b 5", 'c{x="'), ok("a 6", "a 7", "b 6"), ok("a 8", "b"), ("<html>", 200), DOWN, ok("a 9", "b 9"),
    ],
    "openmetrics": [
        ok("# TYPE a counter", 'a_total{x="1"} 1 # {id="e"} 1', "# EOF"), ok('a_total{x="1"} 2'), ok('a_total{x="1"} 3', "# EOF"),
        ok("# TYPE b gauge", "b 1", "# EOF", "b 2"), ok("# EOF"), ok("# TYPE c info", 'c_info{v="1"} 1', "# EOF"),
    ],
    "limited": [ok("a 1", "b 1"), ok("a 2", "b 2", "c 2"), ok("a 3", "b 3"), ok("a 4"), ok("a 5", "b 5", "c 5", "d 5"), ok("a 6", "b 6")],
    "timed": [
        ok("a 1 AT0", "b 1"), ok("a 2 AT1000", "b 2 AT0"), ok("a 3 AT1000", "b 3 AT2000"), ok("a 4 AT500", "b 4"), ok("b 5 AT2000"),
        ok("a 6 AT3000", "a 7 AT4000"), DOWN, ok("a 8 AT5000", "b 8"),
    ],
    "ignored": [ok("a 1 AT0"), ok("a 2 AT0"), ok(), ok("a 3 AT1000")],
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {"limited": {"sample_limit": 2}, "ignored": {"honor_timestamps": False}}
UP = {
    "flapping": [1, 0, 1, 0, 1, 0, 0, 1, 0], "labels": [1] * 10, "broken": [1, 0, 1, 0, 0, 1, 0, 0, 0, 1],
    "openmetrics": [1, 0, 1, 0, 1, 1], "limited": [1, 0, 1, 1, 0, 1], "timed": [1, 1, 1, 1, 1, 1, 0, 1], "ignored": [1, 1, 1, 1],
}  # fmt: skip


def test_each_sample(programs: Programs, prometheus: Path, tmp_path: Path) -> None:
    """The raw values of each series, scrape by scrape: those of targets, and what the scraper adds. Exposed times are equal, too."""
    base = int(time.time() * 1000) - 30_000
    with ExitStack() as stack:
        targets: dict[str, dict[str, Script]] = {who: {} for who in WHO}
        for who in WHO:
            for name, steps in SCRIPTS.items():
                kind = {"kind": OPENMETRICS} if name == "openmetrics" else {}
                given = [(_at(text, base), status) for text, status in steps]
                targets[who][name] = stack.enter_context(serving(Script(*given, **kind)))

        def jobs(who: str) -> list[dict[str, Any]]:
            return [
                {"job_name": name, "static_configs": [{"targets": [t.address], "labels": {"instance": "i"}}]} | SETTINGS.get(name, {})
                for name, t in targets[who].items()
            ]

        pair = Beside(programs, prometheus, tmp_path / "pair", [], jobs, every="3s")
        stack.callback(pair.cleanup)
        all_done = lambda: all(t.scrapes > len(t.steps) for each in targets.values() for t in each.values())  # noqa: E731
        wait_until(all_done, "the scripts to end", SECONDS, pair.promlake.process.log)
        for name, steps in SCRIPTS.items():
            scrapes = {who: _scrapes(url, name, len(steps)) for who, url in pair.urls.items()}
            wait_until(lambda: len(_scrapes(pair.urls["promlake"], name, len(steps))) == len(steps), f"the samples of {name}", SECONDS)  # noqa: B023
            scrapes = {who: _scrapes(url, name, len(steps)) for who, url in pair.urls.items()}
            for samples in scrapes.values():
                assert [_value(v) for _, v in samples] == [str(float(up)) for up in UP[name]], name
            stored = {who: _stored(pair.urls[who], name, scrapes[who], base) for who in WHO}
            if name == "limited":  # Prometheus 2 also ends series that it refused, beyond the limit
                stored = {who: {k: v for k, v in each.items() if {s for _, s in v} != {"stale"}} for who, each in stored.items()}
            assert stored["promlake"] == stored["prometheus"], name
            assert len(stored["promlake"]) >= 5
        _check_what_is_tested(pair.urls["promlake"])
        pair.promlake.stop()


def _at(text: str, base: int) -> str:
    """Returns a text with the times of its samples."""
    words = [str(base + int(w.removeprefix("AT"))) if w.startswith("AT") else w for w in text.replace("\n", " \n ").split(" ")]
    return " ".join(words).replace(" \n ", "\n")


def _scrapes(url: str, job: str, count: int) -> list[tuple[int, int]]:
    """Returns the times and results of the first scrapes of a job."""
    now = int(time.time() * 1000)
    series = read(url, now - 3_600_000, now + 60_000, (EQUAL, "__name__", "up"), (EQUAL, "job", job))
    return sorted(sample for samples in series.values() for sample in samples)[:count]


def _stored(url: str, job: str, scrapes: list[tuple[int, int]], base: int) -> dict[str, list[tuple[str, str]]]:
    """Returns the samples of a job by series: the number of the scrape, or the time that the target exposed, and the value."""
    numbers = {time: f"scrape {n}" for n, (time, _) in enumerate(scrapes)}
    out = {}
    matchers = ((EQUAL, "job", job), (NOT_EQUAL, "__name__", "scrape_duration_seconds"))
    for labels, samples in read(url, base - 600_000, scrapes[-1][0], *matchers).items():
        out[_key(labels)] = [(numbers.get(at, f"exposed {at - base}"), _value(v)) for at, v in samples]
    return out


def _value(bits: int) -> str:
    return "stale" if bits == STALE else str(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _check_what_is_tested(url: str) -> None:
    """The targets lead to stale markers of each kind, so that equal answers say something."""
    now = int(time.time() * 1000)
    for job, name, least in (
        ("flapping", "a", 4),
        ("labels", "a", 5),
        ("broken", "b", 3),
        ("openmetrics", "a_total", 1),
        ("limited", "b", 1),
    ):
        series = read(url, now - 3_600_000, now, (EQUAL, "job", job), (EQUAL, "__name__", name))
        assert sum(v == STALE for samples in series.values() for _, v in samples) >= least, job


# A scrape that fails, because the machine is busy, ends no alert of one of the servers.
SWITCH = "last_over_time(switch[1h])"
ALERTS = [
    {
        "name": "alerts",
        "rules": [
            {"alert": "Held", "expr": f"{SWITCH} > 5", "for": "3s", "labels": {"value": "{{ $value }}"}},
            {"alert": "Kept", "expr": f"{SWITCH} > 5", "keep_firing_for": "3s"},
            {"alert": "Named", "expr": f"sum by (job) ({SWITCH}) > 5", "annotations": {"summary": "{{ $labels.job }}"}},
        ],
    }
]


def test_alerts(programs: Programs, prometheus: Path, tmp_path: Path) -> None:
    """ALERTS and ALERTS_FOR_STATE begin, change and end alike, twice, and have the same times of activity in between."""
    with serving(Target("switch 1\n")) as target:
        jobs = [{"job_name": "j", "static_configs": [{"targets": [target.address]}]}]
        pair = Beside(programs, prometheus, tmp_path / "pair", ALERTS, lambda _: jobs)
        try:
            pair.agree("switch", lambda answer: list(answer.values()) == [1])
            for value in (7, 8):
                target.change(f"switch {value}\n")
                pair.agree('ALERTS{alertstate="firing"}', lambda answer: len(answer) == 3)
                pair.agree('ALERTS{alertstate="pending"}', lambda answer: len(answer) == 0)
                target.change("switch 1\n")
                pair.agree("ALERTS", lambda answer: len(answer) == 0)
            got = {who: _phases(url) for who, url in pair.urls.items()}
            assert got["promlake"] == got["prometheus"]
            # Held with two values, pending and firing; Kept and Named; and the times of these.
            assert len(got["promlake"]) == 4 + 2 + 2 + 2
            assert (
                got["promlake"][
                    _key({"__name__": "ALERTS", "alertname": "Named", "alertstate": "firing", "job": "j", "replica": "a"}.items())
                ]
                == ["value", "stale"] * 2
            )
            assert _seen(pair.urls["promlake"]) == _seen(pair.urls["prometheus"])
            pair.promlake.stop()
        finally:
            pair.cleanup()


def _key(labels: Iterable[tuple[str, str]]) -> str:
    """Returns labels as text, with the external ones, which both servers add to what they are asked by remote_read."""
    return json.dumps(sorted(labels))


def _phases(url: str) -> dict[str, list[str]]:
    """Returns by series of alerts whether it has values or ends, without repetitions."""
    now = int(time.time() * 1000)
    out = {}
    for labels, samples in read(url, now - 3_600_000, now + 60_000, (MATCHES, "__name__", "ALERTS.*")).items():
        phases = ["stale" if v == STALE else "value" for _, v in samples]
        out[_key(labels)] = [b for a, b in pairwise([None, *phases]) if a != b]
        if ("__name__", "ALERTS_FOR_STATE") in labels:
            times = [struct.unpack("<d", struct.pack("<Q", v))[0] for _, v in samples if v != STALE]
            assert len(set(times)) == out[_key(labels)].count("value"), "the time of activity changes only when an alert ends"
    return out


def _seen(url: str) -> list[object]:
    """Returns the series switch as other servers see it: how many match by its external label, and as text for federation."""
    now = int(time.time() * 1000)
    matchers = [(kind, "replica", value) for kind in (EQUAL, NOT_EQUAL, MATCHES) for value in ("a", "b")]
    found = [len(read(url, now - 3_600_000, now, (EQUAL, "__name__", "switch"), m)) for m in matchers]
    assert {0, 1} == set(found)
    with urllib.request.urlopen(f"{url}/federate?match[]=switch", timeout=300) as response:
        text = response.read().decode()
    assert 'replica="a"' in text
    return [found, text.rsplit(" ", 1)[0]]  # without the time


@pytest.fixture
def exporter(programs: Programs, tmp_path: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    process = Process([programs.node_exporter, f"--web.listen-address={address}", "--log.level=warn"], tmp_path / "node_exporter")
    yield address
    process.cleanup()


def test_real_targets(programs: Programs, prometheus: Path, tmp_path: Path, exporter: str) -> None:
    """Of node_exporter and of both servers themselves, both have the same series."""
    addresses = {"node": exporter}
    file = tmp_path / "targets.json"
    file.write_text("[]")
    jobs = [{"job_name": "real", "file_sd_configs": [{"files": [str(file)], "refresh_interval": "1s"}]}]
    pair = Beside(programs, prometheus, tmp_path / "pair", [], lambda _: jobs)
    try:
        addresses |= {who: url.removeprefix("http://") for who, url in pair.urls.items()}
        written = tmp_path / "new.json"
        written.write_text(json.dumps([{"targets": [address], "labels": {"instance": name}} for name, address in addresses.items()]))
        written.rename(file)
        for name in addresses:
            pair.agree(f'up{{instance="{name}"}} == 1', lambda answer: len(answer) == 1)
            # Values differ, because the scrapes have other times.
            pair.agree(f'{{instance="{name}"}}', lambda answer: len(answer) > 100, values=False)
        pair.agree('{__name__=~"node_boot_time_seconds|node_uname_info|node_memory_MemTotal_bytes"}', lambda answer: len(answer) == 3)
        pair.promlake.stop()
    finally:
        pair.cleanup()
