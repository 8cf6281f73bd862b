"""Debian's Prometheus and Promlake scrape the same targets and evaluate the same rules by the same file."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from promlake import Client, PromlakeError
from support.programs import Process, Programs, free_port, wait_until
from support.server import Server
from support.stores import directory_store
from support.targets import Target, serving

STEADY = """\
# HELP steady_total A counter.
# TYPE steady_total counter
steady_total{path="/a"} 1
steady_total{path="/b"} 2
# HELP latency_seconds A histogram.
# TYPE latency_seconds histogram
latency_seconds_bucket{le="1.5"} 3
latency_seconds_bucket{le="+Inf"} 5
latency_seconds_sum 4.5
latency_seconds_count 5
"""

RULES = {
    "groups": [
        {
            "name": "example",
            "rules": [
                {"record": "path:steady:sum", "expr": "sum by (path) (steady_total)", "labels": {"team": "a"}},
                {"record": "path:steady:double", "expr": "2 * path:steady:sum"},
                {"alert": "Down", "expr": "up == 0", "labels": {"severity": "page"}},
                {"alert": "Pending", "expr": "up == 0", "for": "1h"},
            ],
        }
    ]
}


class Beside:
    """A Prometheus and a Promlake with the same configuration."""

    def __init__(self, programs: Programs, directory: Path, targets: dict[str, Target]) -> None:
        directory.mkdir(parents=True)
        config, rules = directory / "prometheus.yml", directory / "rules.yml"
        rules.write_text(json.dumps(RULES))
        config.write_text(
            json.dumps(
                {
                    "global": {
                        "scrape_interval": "1s",
                        "scrape_timeout": "1s",
                        "evaluation_interval": "1s",
                        "external_labels": {"replica": "a"},
                    },
                    "rule_files": ["rules.yml"],
                    "scrape_configs": [
                        {
                            "job_name": name,
                            "static_configs": [{"targets": [target.address], "labels": {"zone": "z"}}],
                            "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": "dropped", "action": "drop"}],
                        }
                        for name, target in targets.items()
                    ],
                }
            )
        )
        own = free_port()
        self.targets = targets
        self.prometheus = Process(
            [
                programs.prometheus,
                f"--config.file={config}",
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
            ("--config.file", str(config), "--scrape.queue-dir", str(directory / "queue")),
        )
        self.urls = {"prometheus": f"http://127.0.0.1:{own}", "promlake": self.promlake.url}
        self.clients = {who: Client(url) for who, url in self.urls.items()}

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
            out[who] = {json.dumps(s.labels, sort_keys=True): s.value for s in answer.samples}
        return out

    def agree(self, expr: str, shown: Callable[[dict[str, float]], bool]) -> None:
        """Waits until both give the same answer, and one that is shown."""
        last: dict[str, dict[str, float]] = {}

        def same() -> bool:
            last.update(self.answers(expr))
            return last["prometheus"] == last["promlake"] and shown(last["promlake"])

        wait_until(same, f"the same answer to {expr}", 60, lambda: f"{json.dumps(last, indent=1)}\n{self.promlake.process.log()}")


@pytest.fixture
def beside(programs: Programs, tmp_path: Path) -> Iterator[Beside]:
    with ExitStack() as stack:
        targets = {name: stack.enter_context(serving(Target(STEADY))) for name in ("steady", "dying", "changing", "broken")}
        pair = Beside(programs, tmp_path / "pair", targets)
        stack.callback(pair.cleanup)
        yield pair
        pair.promlake.stop()


def size(n: int) -> Callable[[dict[str, float]], bool]:
    return lambda answer: len(answer) == n


# What the two scrapers measure themselves differs.
SERIES = '{__name__=~".+",__name__!~"scrape_duration_seconds|ALERTS_FOR_STATE"}'


def test_same_series(beside: Beside) -> None:
    """Names, labels and values are the same, when targets die, change and come back too."""
    beside.agree("up == 1", size(4))
    beside.agree('{job="steady",__name__!="scrape_duration_seconds",__name__!="scrape_series_added"}', size(6 + 3))
    beside.agree('{__name__=~"path:.*"}', size(4))
    beside.agree('scrape_series_added{job="steady"} == 0', size(1))

    beside.targets["dying"].change("", 500)
    beside.targets["changing"].change(STEADY.replace('path="/a"', 'path="/new"') + "dropped 1\n")
    beside.targets["broken"].change("this is no metric\n" + STEADY)
    beside.agree("up == 0", size(2))
    beside.agree('{job=~"dying|broken",__name__!~"up|ALERTS.*|scrape_.*|path:.*"}', size(0))
    beside.agree('steady_total{job="changing"}', size(2))
    beside.agree('steady_total{path="/new"}', size(1))
    beside.agree("dropped", size(0))
    beside.agree('ALERTS{alertname="Down",alertstate="firing"}', size(2))
    beside.agree('ALERTS{alertname="Pending",alertstate="pending"}', size(2))
    beside.agree('{__name__=~"path:.*"}', size(6))
    beside.agree(SERIES, lambda answer: len(answer) > 20)

    # The series before the first broken line: both treat them alike.
    beside.targets["broken"].change(STEADY)
    beside.agree("up == 0", size(1))
    beside.targets["broken"].change(STEADY + "this is no metric\n")
    beside.agree("up == 0", size(2))
    beside.agree(SERIES, lambda answer: len(answer) > 20)

    beside.targets["dying"].change(STEADY)
    beside.targets["broken"].change(STEADY)
    beside.targets["changing"].change(STEADY)
    beside.agree("up == 1", size(4))
    beside.agree("ALERTS", size(0))
    beside.agree('steady_total{path="/new"}', size(0))
    beside.agree('{__name__=~"path:.*"}', size(4))
    beside.agree(SERIES, lambda answer: len(answer) > 40)


def test_same_rules_in_the_api(beside: Beside) -> None:
    beside.agree("up == 1", size(4))
    beside.agree('path:steady:double{path="/a"} == 8', size(1))
    beside.targets["dying"].change("", 500)
    beside.agree('ALERTS{alertname="Down"}', size(1))
    rules: dict[str, list[dict[str, object]]] = {}

    def same() -> bool:
        rules.update({who: _described(url) for who, url in beside.urls.items()})
        return rules["prometheus"] == rules["promlake"]

    wait_until(same, "the same rules", 60, lambda: json.dumps(rules, indent=1))
    assert [r["state"] for r in rules["promlake"]] == [None, None, "firing", "pending"]


def _described(url: str) -> list[dict[str, object]]:
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=300) as response:
        data = json.load(response)["data"]
    (group,) = data["groups"]
    keep = ("name", "query", "type", "health", "labels", "duration", "state")
    return [{k: rule.get(k) or None for k in keep} for rule in group["rules"]]
