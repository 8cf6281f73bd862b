"""Debian's Prometheus scraping Debian's node_exporter, and writing to Promlake."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from promlake import Client, Matrix, PromlakeError

from support.programs import Process, Programs, free_port, wait_until

NODE, SELF = "node", "prometheus"


class Prometheus:
    """A Prometheus that scrapes a node_exporter and itself every second, and sends all samples to servers."""

    def __init__(self, programs: Programs, directory: Path, write_to: list[str]) -> None:
        directory.mkdir(parents=True)
        node, own = free_port(), free_port()
        self.url = f"http://127.0.0.1:{own}"
        self.client = Client(self.url, timeout=300)
        self._exporter = Process(
            [programs.node_exporter, f"--web.listen-address=127.0.0.1:{node}", "--log.level=warn"], directory / "node_exporter"
        )
        self._prometheus = Process(prometheus_command(programs, directory, own, _config(node, own, write_to)), directory / "prometheus")

    def wait_until_scraping(self) -> None:
        self._prometheus.wait_until(lambda: all_up(self.client), "Prometheus to scrape both of its targets")

    def wait_for_scrapes(self, count: int) -> dict[str, float]:
        """Waits for so many scrapes of each job, and returns the time of the first one."""
        self.wait_until_scraping()
        first = newest_of_all(self.client)
        wait_until(lambda: min(newest_of_all(self.client).values()) > max(first.values()) + count, "scrapes")
        return first

    def cleanup(self) -> None:
        self._prometheus.cleanup()
        self._exporter.cleanup()


def prometheus_command(programs: Programs, directory: Path, port: int, config: dict[str, Any]) -> list[str | Path]:
    """Returns the command of a Prometheus that has its configuration and data in a directory."""
    file = directory / "prometheus.yml"
    file.write_text(json.dumps(config))  # JSON is YAML
    return [
        programs.prometheus, f"--config.file={file}", f"--web.listen-address=127.0.0.1:{port}",
        f"--storage.tsdb.path={directory / 'data'}", "--log.level=warn",
    ]  # fmt: skip


def all_up(client: Client) -> bool:
    return len(newest(client)) == 2


def newest(client: Client) -> dict[str, float]:
    """Returns the time of each job's newest complete scrape: `up` is the last sample of one, in the same commit."""
    try:
        answer = client.query("timestamp(up) and on (job) up == 1")
    except PromlakeError as e:
        if e.status not in (0, 503):  # not listening yet, or starting
            raise
        return {}
    return {s.labels["job"]: s.value for s in answer.samples}


def newest_of_all(client: Client) -> dict[str, float]:
    """Returns newest once it has both jobs: on a loaded machine the last scrape of one may have timed out."""
    times: dict[str, float] = {}

    def complete() -> bool:
        times.update(newest(client))
        return len(times) == 2

    wait_until(complete, "a complete scrape of both jobs")
    return times


def evaluation_times(client: Client, first: dict[str, float]) -> tuple[float, float]:
    """Returns a start and an end between the jobs' first scrapes and the last ones of a Prometheus, whole seconds apart.

    No scrape is whole seconds away from them: Prometheus 2 counts a sample at the very beginning of a range, Prometheus 3, and so Promlake,
    does not.
    """
    last = newest_of_all(client)
    answer = client.query("up[1d]")
    assert isinstance(answer, Matrix)
    taken = sorted({round(p.time * 1000) % 1000 for s in answer.series for p in s.points})
    gap, begin = max((b - a, a) for a, b in pairwise([*taken, taken[0] + 1000]))
    assert gap > 1, "scrapes at every millisecond of a second"
    phase = (begin + gap // 2) % 1000 / 1000
    return math.ceil(max(first.values())) + phase, math.floor(min(last.values())) - 1 + phase


def _config(node: int, own: int, write_to: list[str]) -> dict[str, Any]:
    """One shard sends the samples in the order of the commits, so that a job's newest scrape means all before it."""
    queue = {"min_shards": 1, "max_shards": 1, "max_samples_per_send": 10_000, "capacity": 30_000, "batch_send_deadline": "200ms"}
    targets = [{"url": f"{url}/api/v1/write", "queue_config": queue, "metadata_config": {"send_interval": "2s"}} for url in write_to]
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": NODE, "static_configs": [{"targets": [f"127.0.0.1:{node}"]}]},
            {"job_name": SELF, "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]},
        ],
        "remote_write": [{"name": f"to-{i}", **target} for i, target in enumerate(targets)],
    }
