"""Every query of the dashboards and alerts parses, and finds data in a Promlake that watches itself."""

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.functions import Function, Queue, run_function, serve_queue
from support.programs import ROOT, Process, Programs, free_port, wait_until
from support.remote_write import CONTENT_TYPE, Sender, compress, encode, series
from support.server import Server, Start
from support.stores import Gateway

GRAFANA, ALERTS = ROOT / "infra/grafana", ROOT / "infra/prometheus/alerts.yml"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))

# Values for Grafana's variables: all jobs, because there are no other programs' metrics, and an
# interval of at least four scrapes.
VARIABLES = {"$__rate_interval": "10s", "$job": "(promlake|ingest-fn|compact-fn)", "$instance": ".*"}

# Series that exist only after a failure. The metric of each expression is checked nevertheless; the
# list may only shrink.
MISFORTUNES = {
    "PromlakeFlushesFail": "a store that refuses writes",
    "PromlakeWritesFail": "the same, or too many requests",
    "PromlakeMessagesFail": "messages that cannot be read, or a store that refuses writes",
    "PromlakeStoreErrors": "a store that fails",
    "PromlakeCompactionFails": "a block that cannot be read",
    "PromlakeQueriesFail": "a server error",
    "PromlakeTokensRefused": "requests with a wrong token",
    "PromlakeOwnMetricsFail": "a server that takes no metrics",
    "Failed reads A": "a store that fails",
    "Own metrics and tokens B": "a server with tokens",
}


@dataclass(frozen=True)
class Query:
    """A query of a panel or an alert; its name is the panel's title and the query's letter, or the alert's name."""

    name: str
    expr: str

    @property
    def metrics(self) -> set[str]:
        return set(re.findall(r"\b((?:promlake|process|go)_[a-z0-9_]+)\b", self.expr))


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def substitute(expr: str) -> str:
    for name in sorted(VARIABLES, key=len, reverse=True):
        expr = expr.replace(name, VARIABLES[name])
    assert "$" not in expr, f"a variable without a value: {expr}"
    return expr


def panel_queries() -> list[Query]:
    return [
        Query(f"{panel['title']} {target['refId']}", substitute(target["expr"]))
        for file in DASHBOARDS
        for panel in panels(json.loads(file.read_text()))
        for target in panel.get("targets", [])
    ]


def alert_queries() -> list[Query]:
    """Returns the alerts' expressions without their thresholds, so that they have a value when all is well."""
    out = []
    for name, inline, block in re.findall(r"- alert: (\w+)\n(?:\s*#.*\n)*\s+expr: (?:\|\n((?:\s{10,}.*\n)+)|(.*)\n)", ALERTS.read_text()):
        expr, found = re.subn(r" > [0-9.]+\s*$", "", (inline or block).strip())
        assert found == 1, f"{name} has no threshold at its end"
        out.append(Query(name, re.sub(r"\s+", " ", expr)))
    assert len(out) == ALERTS.read_text().count("- alert: ")
    return out


PANELS, RULES = panel_queries(), alert_queries()


@dataclass(frozen=True)
class Run:
    """A server in a bucket, a Prometheus that scrapes it and writes to it, and functions that write their own metrics to it."""

    server: Server
    sender: Sender
    functions: dict[str, Function]
    writes: Queue
    jobs: Queue

    def step(self, number: int) -> None:
        """Uses every feature that has metrics."""
        now = int(time.time() * 1000)
        for job in ("api", "web"):
            self.sender.write(series("requests_total", [(now, number)], job=job))
        self.sender.write(series("from_the_future", [(now + 3_600_000, 1)]))
        times = {"start": repr(now / 1000 - 3 * 86_400), "end": repr(now / 1000)}
        for expr in ("sum(rate(requests_total[1h]))", "old", "topk(1, requests_total)"):
            ask(self.server.url, "query_range", {"query": expr, "step": "3600", **times})
        ask(self.server.url, "series", {"match[]": "old", **times})
        with pytest.raises(urllib.error.HTTPError, match="422"):
            ask(self.server.url, "query", {"query": "requests_total + on () requests_total"})
        headers = {"content-type": CONTENT_TYPE, "content-encoding": "snappy"}
        body = compress(encode([series("from_a_function", [(now, number)])]))
        assert self.functions["ingest"].post("/api/v1/write", body, headers) == 204
        self.functions["flush"].consume(self.writes.take())
        self.functions["plan"].tick()
        self.functions["compact"].consume(self.jobs.take(1))


@pytest.fixture(scope="module")
def run(programs: Programs, gateway: Gateway, start_for_module: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The functions compact; the server does so too, but later."""
    directory, store = tmp_path_factory.mktemp("dashboards"), gateway.store()
    server = start_for_module(
        store,
        QUERIES,
        "--query.min-pushed-samples=-1",
        "--ingest.flush-interval=50ms",
        "--ingest.flush-timeout=9s",
        *(f"--compactor.{k}={v}" for k, v in DELAYS.items()),
    )
    self = {"PROMLAKE_SELF_URL": server.url, "PROMLAKE_SELF_TENANT": "anonymous", "PROMLAKE_SELF_INTERVAL": "1s"}
    delays = {f"PROMLAKE_COMPACTOR_{k.upper().replace('-', '_')}": v for k, v in DELAYS.items()}
    common = {**store.env, "PROMLAKE_STORE": store.url, **self}
    with ExitStack() as stack:
        writes, jobs = stack.enter_context(serve_queue("writes")), stack.enter_context(serve_queue("jobs.fifo"))
        functions = {
            name: stack.enter_context(run_function(programs, program, directory, name, common | env))
            for name, program, env in (
                ("ingest", programs.ingest_fn, {"PROMLAKE_INGEST_MODE": "buffered", "PROMLAKE_INGEST_QUEUE_URL": writes.url}),
                ("flush", programs.ingest_fn, {"PROMLAKE_INGEST_MODE": "direct"}),
                ("plan", programs.compact_fn, {**delays, "PROMLAKE_COMPACTOR_QUEUE_URL": jobs.url}),
                ("compact", programs.compact_fn, delays),
            )
        }
        stack.callback(start_prometheus(programs, directory / "prometheus", server.url).cleanup)
        sender = server.sender()
        midnight = int(time.time()) // 86_400 * 86_400_000 - 2 * 86_400_000
        for minute in range(20):
            sender.write(series("old", [(midnight + minute * 60_000, minute)], job="api"))
        yield Run(server, sender, functions, writes, jobs)
    server.stop()


# Nothing waits for late data. Segments settle after the longest flush.
DELAYS = {"settle-delay": "10s", "window-delay": "1ms", "late-delay": "1ms", "deletion-delay": "1m", "compaction-interval": "5s"}
QUERIES = "--query.timeout=50s"  # less than the deletion delay


def start_prometheus(programs: Programs, directory: Path, promlake: str) -> Process:
    directory.mkdir()
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "promlake", "static_configs": [{"targets": [promlake.removeprefix("http://")]}]}],
        "remote_write": [
            {
                "url": f"{promlake}/api/v1/write",
                "queue_config": {"max_samples_per_send": 10_000, "batch_send_deadline": "500ms"},
            }
        ],
    }
    file = directory / "prometheus.yml"
    file.write_text(json.dumps(config))
    args = [programs.prometheus, f"--config.file={file}", f"--web.listen-address=127.0.0.1:{free_port()}"]
    return Process([*args, f"--storage.tsdb.path={directory / 'data'}", "--log.level=warn"], directory)


def ask(url: str, path: str, form: dict[str, str]) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}", data=urllib.parse.urlencode(form).encode(), timeout=300) as response:
        body = json.load(response)
    assert body["status"] == "success", body
    return body["data"]


def test_every_query_finds_data(run: Run) -> None:
    """Exactly the queries of the list find nothing."""
    wanted = {q.name: q for q in PANELS + RULES}
    assert len(wanted) == len(PANELS + RULES), "names must differ"
    missing, steps = dict(wanted), 0

    def all_found() -> bool:
        nonlocal steps
        steps += 1
        run.step(steps)
        for name, q in list(missing.items()):
            if ask(run.server.url, "query", {"query": q.expr})["result"]:
                del missing[name]
        return missing.keys() <= MISFORTUNES.keys() and steps > 15

    wait_until(
        all_found,
        "every query to find data",
        600,
        lambda: f"nothing for {sorted(missing.keys() - MISFORTUNES.keys())}",
    )
    assert missing.keys() == MISFORTUNES.keys(), "take what finds data from the list"


@pytest.mark.parametrize("query", PANELS + RULES, ids=lambda q: q.name)
def test_query_parses(run: Run, query: Query) -> None:
    assert ask(run.server.url, "parse_query", {"query": query.expr})["type"]


def test_every_metric_exists(run: Run) -> None:
    """Each metric has a series, or is in the sources: a vector without a series is not in /metrics."""
    known = set(ask_values(run.server.url, "__name__", "{__name__=~'.+'}"))
    sources = "".join(f.read_text() for f in (ROOT / "internal").rglob("*.go"))
    for q in PANELS + RULES:
        for metric in q.metrics - known:
            assert q.name in MISFORTUNES, f"{q.name}: no metric {metric}"
            _, subsystem, name = metric.split("_", 2)
            assert any(all(f'"{part}"' in sources for part in parts) for parts in ([metric], [subsystem, name])), f"{q.name}: {metric}"


def variable_queries() -> list[str]:
    return [v["query"]["query"] for f in DASHBOARDS for v in json.loads(f.read_text())["templating"]["list"] if v["type"] == "query"]


@pytest.mark.parametrize("query", variable_queries())
def test_variables_have_values(run: Run, query: str) -> None:
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
    assert match, "Grafana asks for label_values(selector, label)"
    selector, label = substitute(match[1]), match[2]
    wait_until(lambda: bool(ask_values(run.server.url, label, selector)), query)


def ask_values(url: str, label: str, selector: str) -> list[str]:
    query = urllib.parse.urlencode({"match[]": selector, "start": repr(time.time() - 600)})
    with urllib.request.urlopen(f"{url}/api/v1/label/{label}/values?{query}", timeout=300) as response:
        return json.load(response)["data"]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda f: f.stem)
def test_dashboard_is_complete(file: Path) -> None:
    dashboard = json.loads(file.read_text())
    assert dashboard["uid"] == file.stem
    assert dashboard["schemaVersion"] >= 39
    assert dashboard.get("id") is None
    every = list(panels(dashboard))
    assert len({p["id"] for p in every}) == len(every)
    assert len({p["title"] for p in every if p["type"] != "row"} - {""}) > 0
    taken: set[tuple[int, int]] = set()
    for panel in every:
        pos = panel["gridPos"]
        cells = {(x, y) for x in range(pos["x"], pos["x"] + pos["w"]) for y in range(pos["y"], pos["y"] + pos["h"])}
        assert pos["x"] + pos["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        if panel["type"] != "row":
            check_panel(panel)
    names = [v["name"] for v in dashboard["templating"]["list"]]
    assert names == ["datasource", "job", "instance"]


def check_panel(panel: dict[str, Any]) -> None:
    title = panel["title"]
    assert panel["description"].endswith("."), f"{title} needs a description"
    assert panel["fieldConfig"]["defaults"]["unit"], f"{title} needs a unit"
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, title
    assert panel["targets"], title
    refs = [t["refId"] for t in panel["targets"]]
    assert len(set(refs)) == len(refs), title
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"], title
        if "promlake_price_dollars" not in target["expr"]:
            assert target["expr"].count("$job") == len(re.findall(r"\{", target["expr"])), f"{title}: each selector has the job"


def test_provisioning_names_existing_files() -> None:
    datasource, provider = (GRAFANA / "datasource.yml").read_text(), (GRAFANA / "dashboards.yml").read_text()
    for setting in ("uid: promlake", "type: prometheus", "httpMethod: POST", "prometheusType: Prometheus", "url: ${PROMLAKE_URL}"):
        assert setting in datasource
    for number, header in enumerate(("X-Scope-OrgID", "Authorization"), 1):
        assert f"httpHeaderName{number}: {header}" in datasource
        assert re.search(rf"^      httpHeaderValue{number}: \S", datasource, re.MULTILINE)
    assert "path: /var/lib/grafana/dashboards/promlake" in provider
    assert DASHBOARDS


def test_alert_rules_are_valid(programs: Programs, tmp_path: Path) -> None:
    process = Process([programs.promtool, "check", "rules", ALERTS], tmp_path)
    assert process.wait() == 0, process.log() + process.out.read_text()
