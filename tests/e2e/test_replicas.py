"""Two real Prometheus scrape one target. Whichever is killed, queries over the pair go on, and nothing is doubled."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from promlake import Client, Vector
from support.documentation import block
from support.peers import prometheus_command
from support.programs import Process, Programs, free_port, wait_until
from support.server import Server, Start
from support.stores import Store

REPLICAS = ("prometheus-0", "prometheus-1")  # as the documentation calls them
SCRAPES = 8  # of the other replica, while one is dead
# Seconds. A busy machine delays scrapes, but a replica that is dead for SCRAPES seconds leaves more.
LONGEST_GAP = 4.0


class Replica:
    """One Prometheus of a pair, with the documentation's configuration.

    It scrapes a node_exporter every second, and can be killed and started again.
    """

    def __init__(self, programs: Programs, directory: Path, name: str, target: str, write_to: str) -> None:
        self.name = name
        self._directory = directory / name
        self._directory.mkdir()
        config = yaml.safe_load(block("ha", "global:", {"http://promlake:9009": write_to, f"{REPLICAS[0]} ": f"{name} "}))
        config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
        config["scrape_configs"] = [{"job_name": "node", "static_configs": [{"targets": [target]}]}]
        config["remote_write"][0]["queue_config"] = {"max_shards": 1, "batch_send_deadline": "200ms"}
        self._command = prometheus_command(programs, self._directory, free_port(), config)
        self.start()

    def start(self) -> None:
        self.process = Process(self._command, self._directory / "process")


@pytest.fixture
def replicas(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> Iterator[tuple[Server, Replica, Replica]]:
    server = start(file_store, "--query.ha-failover-timeout=2s")
    address = f"127.0.0.1:{free_port()}"
    exporter = Process([programs.node_exporter, f"--web.listen-address={address}", "--log.level=warn"], tmp_path / "node_exporter")
    pair = [Replica(programs, tmp_path, name, address, server.url) for name in REPLICAS]
    try:
        yield server, pair[0], pair[1]
    finally:
        for replica in pair:
            replica.process.cleanup()
        exporter.cleanup()
    server.stop()


def values(client: Client, selector: str) -> list[tuple[float, float]]:
    """Returns the samples of one series."""
    answer = client.query(f"{selector}[1d]")
    series = getattr(answer, "series", ())
    assert len(series) <= 1, series
    return [(p.time, p.value) for s in series for p in s.points]


def last(client: Client, replica: Replica) -> float:
    got = values(client, f'node_time_seconds{{__replica__="{replica.name}"}}')
    return got[-1][0] if got else 0.0


def test_either_replica_may_die(replicas: tuple[Server, Replica, Replica]) -> None:
    server, a, b = replicas
    client = server.client()

    def wait_for(replica: Replica, after: float) -> None:
        wait_until(lambda: last(client, replica) > after + SCRAPES, f"scrapes of {replica.name}", context=replica.process.log)

    def shown_until(end: float) -> None:
        wait_until(lambda: values(client, "node_time_seconds")[-1][0] > end, "the other replica to take over")

    for replica in (a, b):
        wait_until(lambda: last(client, replica) > 0, "the first scrape", context=replica.process.log)  # noqa: B023
    wait_for(a, last(client, a))
    for dead, alive in ((a, b), (b, a)):
        dead.process.kill()
        end = time.time()  # what the dead one has scraped before may still arrive
        wait_for(alive, end)
        shown_until(end + SCRAPES / 2)
        one = client.query("count(up)")
        assert isinstance(one, Vector)
        assert [s.value for s in one.samples] == [1.0]
        dead.start()
        wait_for(dead, last(client, alive))

    shown = values(client, "node_time_seconds")
    raw = {r.name: values(client, f'node_time_seconds{{__replica__="{r.name}"}}') for r in (a, b)}
    for samples in raw.values():
        assert max(y - x for (x, _), (y, _) in pairwise(samples)) > LONGEST_GAP, "each was dead for a while"
    both = sorted(t for samples in raw.values() for t, _ in samples)
    assert max(y - x for (x, _), (y, _) in pairwise(shown)) < max(LONGEST_GAP, 3 * max(y - x for x, y in pairwise(both)))
    assert set(shown) <= set(raw[a.name]) | set(raw[b.name]), "all samples were scraped"
    # One sample for each second, and one more for each change between the two.
    assert len(shown) < 1.5 * (shown[-1][0] - shown[0][0])
    slow = client.query('max(max_over_time(scrape_duration_seconds{__replica__=~".+"}[1d]))')
    assert isinstance(slow, Vector)
    if slow.samples[0].value < 0.3:  # of a second; slower scrapes may return in another order than they began
        assert [y for _, y in shown] == sorted(y for _, y in shown)
    labels = client.labels((), None, None)
    assert "cluster" in labels
    assert "__replica__" not in labels
