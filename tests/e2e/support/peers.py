"""Debian's Prometheus scraping Debian's node_exporter, and writing to Promlake."""

import json
from pathlib import Path

from promlake import Client, PromlakeError

from support.programs import Process, Programs, free_port

NODE, SELF = "node", "prometheus"


class Prometheus:
    """A Prometheus that scrapes a node_exporter and itself every second, and sends all samples to servers."""

    def __init__(self, programs: Programs, directory: Path, write_to: list[str]) -> None:
        directory.mkdir(parents=True)
        node, own = free_port(), free_port()
        config = directory / "prometheus.yml"
        config.write_text(_config(node, own, write_to))
        self.url = f"http://127.0.0.1:{own}"
        self.client = Client(self.url)
        self._exporter = Process(
            [programs.node_exporter, f"--web.listen-address=127.0.0.1:{node}", "--log.level=warn"], directory / "node_exporter"
        )
        self._prometheus = Process(
            [
                programs.prometheus,
                f"--config.file={config}",
                f"--web.listen-address=127.0.0.1:{own}",
                f"--storage.tsdb.path={directory / 'data'}",
                "--log.level=warn",
            ],
            directory / "prometheus",
        )

    def wait_until_scraping(self) -> None:
        self._prometheus.wait_until(lambda: all_up(self.client), "Prometheus to scrape both of its targets")

    def cleanup(self) -> None:
        self._prometheus.cleanup()
        self._exporter.cleanup()


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


def _config(node: int, own: int, write_to: list[str]) -> str:
    """JSON is YAML. One shard sends the samples in the order of the commits, so that a job's newest scrape means all before it."""
    queue = {"min_shards": 1, "max_shards": 1, "max_samples_per_send": 10_000, "capacity": 30_000, "batch_send_deadline": "200ms"}
    targets = [{"url": f"{url}/api/v1/write", "queue_config": queue, "metadata_config": {"send_interval": "2s"}} for url in write_to]
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                {"job_name": NODE, "static_configs": [{"targets": [f"127.0.0.1:{node}"]}]},
                {"job_name": SELF, "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]},
            ],
            "remote_write": [{"name": f"to-{i}", **target} for i, target in enumerate(targets)],
        }
    )
