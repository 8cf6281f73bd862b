"""A Prometheus and Promlake scrape the same targets and evaluate the same rules by the same file."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.beside import Beside
from support.programs import Programs, wait_until
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

RULES = [
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


@dataclass(frozen=True)
class Steady:
    """The two servers, and targets that a test changes."""

    pair: Beside
    targets: dict[str, Target]

    def agree(self, expr: str, shown: Callable[[dict[str, float]], bool]) -> None:
        self.pair.agree(expr, shown)


@pytest.fixture
def beside(programs: Programs, prometheus: Path, tmp_path: Path) -> Iterator[Steady]:
    with ExitStack() as stack:
        targets = {name: stack.enter_context(serving(Target(STEADY))) for name in ("steady", "dying", "changing", "broken")}
        jobs = [
            {
                "job_name": name,
                "static_configs": [{"targets": [target.address], "labels": {"zone": "z"}}],
                "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": "dropped", "action": "drop"}],
            }
            for name, target in targets.items()
        ]
        pair = Beside(programs, prometheus, tmp_path / "pair", RULES, lambda _: jobs)
        stack.callback(pair.cleanup)
        yield Steady(pair, targets)
        pair.promlake.stop()


def size(n: int) -> Callable[[dict[str, float]], bool]:
    return lambda answer: len(answer) == n


# What the two scrapers measure themselves differs.
SERIES = '{__name__=~".+",__name__!~"scrape_duration_seconds|ALERTS_FOR_STATE"}'


def test_same_series(beside: Steady) -> None:
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


def test_same_rules_in_the_api(beside: Steady) -> None:
    beside.agree("up == 1", size(4))
    beside.agree('path:steady:double{path="/a"} == 8', size(1))
    beside.targets["dying"].change("", 500)
    beside.agree('ALERTS{alertname="Down"}', size(1))
    rules: dict[str, list[dict[str, object]]] = {}

    def same() -> bool:
        rules.update({who: _described(url) for who, url in beside.pair.urls.items()})
        return rules["prometheus"] == rules["promlake"] and [r["state"] for r in rules["promlake"]] == [None, None, "firing", "pending"]

    wait_until(same, "the same rules", context=lambda: json.dumps(rules, indent=1))


def _described(url: str) -> list[dict[str, object]]:
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=300) as response:
        data = json.load(response)["data"]
    (group,) = data["groups"]
    keep = ("name", "query", "type", "health", "labels", "duration", "state")
    return [{k: rule.get(k) or None for k in keep} for rule in group["rules"]]
