"""A Prometheus and a Promlake with the same configuration."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from promlake import Client, PromlakeError

from support.programs import Process, Programs, free_port, wait_until
from support.server import Server
from support.stores import directory_store


class Beside:
    """Two servers that scrape and evaluate by equal files. jobs returns the scrape_configs of "prometheus" and "promlake"."""

    def __init__(
        self,
        programs: Programs,
        prometheus: Path,
        directory: Path,
        rules: list[dict[str, Any]],
        jobs: Callable[[str], list[dict[str, Any]]],
        every: str = "1s",
    ) -> None:
        directory.mkdir(parents=True)
        own = free_port()
        every_second = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1s", "external_labels": {"replica": "a"}}
        files = {}
        for who in ("prometheus", "promlake"):
            (directory / who).mkdir()
            files[who] = directory / who / "prometheus.yml"
            (directory / who / "rules.yml").write_text(json.dumps({"groups": rules}))
            files[who].write_text(json.dumps({"global": every_second, "rule_files": ["rules.yml"], "scrape_configs": jobs(who)}))
        self.prometheus = Process(
            [
                prometheus,
                f"--config.file={files['prometheus']}",
                f"--web.listen-address=127.0.0.1:{own}",
                f"--storage.tsdb.path={directory / 'data'}",
                "--log.level=warn",
            ],
            directory / "prometheus",
        )
        self.promlake = Server(
            [programs.promlake, "serve"],
            directory_store(directory / "store"),
            directory / "promlake",
            ("--config.file", str(files["promlake"]), "--scrape.queue-dir", str(directory / "queue")),
        )
        self.urls = {"prometheus": f"http://127.0.0.1:{own}", "promlake": self.promlake.url}
        self.clients = {who: Client(url, timeout=300) for who, url in self.urls.items()}

    def cleanup(self) -> None:
        self.prometheus.cleanup()
        self.promlake.cleanup()

    def answers(self, expr: str) -> dict[str, dict[str, float]]:
        """Returns the values by labels of both."""
        out = {}
        for who, client in self.clients.items():
            try:
                answer = client.query(expr)
            except PromlakeError as e:
                if e.status not in (0, 503):  # not listening yet, or starting
                    raise
                out[who] = {"unavailable": 0.0}
                continue
            out[who] = {json.dumps(_as_in_3(s.labels), sort_keys=True): s.value for s in answer.samples}
        return out

    def agree(self, expr: str, shown: Callable[[dict[str, float]], bool], *, values: bool = True) -> None:
        """Waits until both give the same answer, or one with the same labels, and one that is shown."""
        last: dict[str, dict[str, float]] = {}

        def same() -> bool:
            for who, answer in self.answers(expr).items():
                last[who] = answer if values else dict.fromkeys(answer, 0.0)
            return last["prometheus"] == last["promlake"] and shown(last["promlake"])

        wait_until(same, f"the same answer to {expr}", 120, lambda: f"{_shown(last)}\n{self.promlake.process.log()}")


def _as_in_3(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns labels with bounds and quantiles such as 1.0, which Prometheus writes since version 3."""
    return {name: str(float(v)) if name in ("le", "quantile") and v.isdigit() else v for name, v in labels.items()}


def _shown(last: dict[str, dict[str, float]]) -> str:
    """Returns what only one of the answers has, or both if they are equal."""
    common = set.intersection(*(set(answer.items()) for answer in last.values())) if last else set()
    alone = {who: dict(set(answer.items()) - common) for who, answer in last.items()}
    return json.dumps(alone if any(alone.values()) else last, indent=1)
