"""Writes a made-up quarter of three services to a server, for the notebook metrics.ipynb.

    python docs/notebooks/history.py http://localhost:9009

The samples are the same in each run. They have what the notebook looks for: an outage of three
hours, a deployment that makes a service slower, a queue that is long at night, and a label with
many values.
"""

import csv
import json
import math
import random
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2026, 4, 1, tzinfo=UTC)
STEP = timedelta(minutes=15)
# Mean requests of an instance in a step, mean seconds of a request, share of the requests that fail.
SERVICES = {"checkout": (1200, 0.120, 0.0004), "search": (3000, 0.050, 0.0002), "catalog": (2000, 0.030, 0.0006)}
INSTANCES = ("0", "1")
OUTAGE = ("checkout", datetime(2026, 2, 11, 13, tzinfo=UTC), datetime(2026, 2, 11, 16, tzinfo=UTC), 0.4)
SLOWER = {"v43": 1.4}  # factor of the time of a request
WORKERS = 6
STUCK = ("4", datetime(2026, 3, 19, 2, tzinfo=UTC), datetime(2026, 3, 19, 5, tzinfo=UTC), 78)
CUSTOMERS = 400
CUSTOMER_STEP, CUSTOMER_DAYS = timedelta(hours=1), 30

Sample = tuple[datetime, float]


class Deployment(NamedTuple):
    """The start of a version of a service."""

    service: str
    version: str
    at: datetime


class Interval(NamedTuple):
    """What an instance of a service did in the step that ends at a time."""

    service: str
    instance: str
    end: datetime
    version: str
    requests: int
    errors: int
    seconds: float


def deployments() -> list[Deployment]:
    """Returns the rows of deployments.csv, by time."""
    with Path(__file__).with_name("deployments.csv").open() as file:
        return [Deployment(r["service"], r["version"], datetime.fromisoformat(r["deployed_at"])) for r in csv.DictReader(file)]


def times(begin: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yields the times after begin, through end."""
    while (begin := begin + step) <= end:
        yield begin


def daytime(at: datetime) -> float:
    """Returns a factor from 0.4 at night to 1.6 at noon."""
    return 1 - 0.6 * math.cos((at - BEGIN) / timedelta(days=1) * 2 * math.pi)


def intervals() -> Iterator[Interval]:
    """Yields what the services did, by service, instance and time."""
    chance = random.Random(1)
    for service, (mean, seconds, failing) in SERVICES.items():
        starts = [d for d in deployments() if d.service == service]
        for instance in INSTANCES:
            for end in times(BEGIN, END, STEP):
                version = next((d.version for d in reversed(starts) if d.at < end), "")
                requests = round(mean * daytime(end) * chance.uniform(0.9, 1.1))
                share = failing
                if service == OUTAGE[0] and OUTAGE[1] < end <= OUTAGE[2]:
                    share = OUTAGE[3]
                errors = int(requests * share * chance.uniform(0.5, 1.5) + chance.random())
                spent = requests * seconds * SLOWER.get(version, 1) * chance.uniform(0.95, 1.05)
                yield Interval(service, instance, end, version, requests, errors, round(spent, 3))


def series() -> Iterator[tuple[dict[str, str], list[Sample]]]:
    """Yields the labels and samples of all series. Counters begin anew with each version of a service."""
    counters: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    versions: dict[tuple[str, str], str] = {}
    for i in intervals():
        target = (("service", i.service), ("instance", f"{i.service}-{i.instance}"))
        began_anew = versions.get(target) != i.version
        versions[target] = i.version
        for name, more, increase in (
            ("http_requests_total", (("code", "200"),), i.requests - i.errors),
            ("http_requests_total", (("code", "500"),), i.errors),
            ("http_request_duration_seconds_count", (), i.requests),
            ("http_request_duration_seconds_sum", (), i.seconds),
        ):
            counter = counters[(("__name__", name), *target, *more)]
            if not counter:
                counter.append((BEGIN, 0))
            counter.append((i.end, round((0 if began_anew else counter[-1][1]) + increase, 3)))
    for labels, samples in counters.items():
        yield dict(labels), samples
    chance = random.Random(2)
    for worker in map(str, range(WORKERS)):
        lengths = []
        for at in times(BEGIN, END, STEP):
            length = round(50 * daytime(at) * chance.uniform(0.85, 1.15))
            if worker == STUCK[0] and STUCK[1] < at <= STUCK[2]:
                length = STUCK[3]
            lengths.append((at, length))
        yield {"__name__": "worker_queue_length", "worker": worker}, lengths
    days = (END - BEGIN).days - CUSTOMER_DAYS
    for customer in range(CUSTOMERS):
        begin = BEGIN + timedelta(days=customer * days // CUSTOMERS)
        total, samples = 0, []
        for at in times(begin, begin + timedelta(days=CUSTOMER_DAYS), CUSTOMER_STEP):
            total += chance.randrange(100)
            samples.append((at, total))
        yield {"__name__": "customer_requests_total", "service": "checkout", "customer": f"c-{customer:04d}"}, samples


def lines() -> dict[datetime, list[str]]:
    """Returns the samples as lines of JSON, by the day on which they are."""
    days = defaultdict(list)
    for labels, samples in series():
        by_day: dict[datetime, list[Sample]] = defaultdict(list)
        for at, value in samples:
            by_day[at.replace(hour=0, minute=0)].append((at, value))
        for day, some in by_day.items():
            row = {"metric": labels, "timestamps": [round(at.timestamp() * 1000) for at, _ in some], "values": [v for _, v in some]}
            days[day].append(json.dumps(row, separators=(",", ":")))
    return days


def main(server: str) -> None:
    """Writes all days, in their order."""
    for _, day in sorted(lines().items()):
        body = "\n".join(day).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{server}/api/v1/import", body), timeout=300):  # noqa: S310
            pass


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:9009")
