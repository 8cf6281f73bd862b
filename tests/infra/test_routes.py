"""The HTTP API: every address of the programs is reachable, at the function that has it, and nothing else is."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from stack_template import FUNCTIONS, Template
from support.programs import ROOT, Programs
from support.server import Server
from support.stores import directory_store

WRITES = ("/api/v1/write", "/api/v1/push", "/api/v1/import/prometheus", "/api/v1/import", "/api/v1/import/csv", "/api/v1/otlp/v1/metrics")
DATADOG = (
    "/datadog/api/v1/series", "/datadog/api/v2/series", "/api/v2/series", "/datadog/api/v1/check_run", "/datadog/api/v1/metadata",
    "/datadog/intake/", "/datadog/api/beta/sketches",
)  # fmt: skip
PUSHES = ("/metrics/job/x", "/metrics/job/x/instance/i", "/metrics/job@base64/eA", "/api/v1/import/prometheus/metrics/job/x")
# Prefixes with one route for each method.
PREFIXES = ("/influx/", "/datadog/", "/metrics/", "/api/v1/import/prometheus/metrics/")
LINES = (*(
    (method, prefix + path)
    for prefix in ("", "/influx")
    for method, path in (
        ("POST", "/write"), ("POST", "/api/v2/write"), ("POST", "/api/v3/write_lp"),
        ("GET", "/query"), ("POST", "/query"), ("GET", "/ping"),
    )
), ("GET", "/datadog/api/v1/validate"), ("GET", "/api/v1/validate"), *(("POST", path) for path in (
    *DATADOG, "/api/put", "/opentsdb/api/put", "/otlp/v1/metrics", "/opentelemetry/v1/metrics", "/v1/metrics",
)), *((method, path) for path in PUSHES for method in ("PUT", "POST", "DELETE")))  # fmt: skip
# The paths of Amazon Managed Service for Prometheus that change or show samples.
WORKSPACE = "/workspaces/ws-1/api/v1"
REMOTE_WRITES = ("/api/v1/remote_write", f"{WORKSPACE}/remote_write")
WORKSPACE_QUERIES = ("/query", "/query_range", "/series", "/labels", "/label/job/values", "/metadata", "/rules", "/alerts")
QUERIES = (
    "/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/explain", "/api/v1/sql", "/api/v1/series", "/api/v1/labels",
    "/api/v1/query_cost", "/api/v1/query_range_cost", "/api/v1/slices",
    "/api/v1/label/job/values", "/api/v1/metadata", "/api/v1/format_query", "/api/v1/parse_query", "/api/v1/read",
    "/api/v1/status/buildinfo", "/api/v1/status/runtimeinfo", "/api/v1/status/flags", "/api/v1/status/config", "/api/v1/status/tsdb",
    "/api/v1/status/lake", "/api/v1/status/metric_names_stats", "/api/v1/status/label_names_stats", "/api/v1/cardinality/label_names",
    "/api/v1/cardinality/label_values", "/api/v1/cardinality/active_series",
    "/api/v1/targets", "/api/v1/rules", "/api/v1/alerts", "/api/v1/alertmanagers", "/api/v1/export", "/api/v1/export/csv", "/federate",
)  # fmt: skip
POSTED = {
    "/api/v1/query",
    "/api/v1/query_range",
    "/api/v1/query_exemplars",
    "/api/v1/series",
    "/api/v1/sql",
    "/api/v1/labels",
    "/api/v1/read",
}
PAGE = ("/", "/dashboards", "/assets/page.js", "/assets/worker.js", "/assets/page.css", "/assets/licenses.txt")
DASHBOARD = "/api/v1/dashboards/a%20b"
HEALTH = ("/-/healthy", "/-/ready")
NOWHERE = (
    "/assets/x", "/metrics", "/-/compact", "/-/reload", "/-/quit", "/debug/pprof/", "/api/v2/query", "/api/v1", "/prometheus/metrics",
    "/graph", "/config/v1/rules", "/prometheus/config/v1/rules",
    "/federate/x", "/-/healthy/x", "/prometheus/metrics/job/x",
    "/workspaces/ws-1/alertmanager/api/v2/alerts", "/workspaces/ws-1/metrics", "/workspaces/a/b/api/v1/query",
)  # fmt: skip

Table = dict[tuple[str, str], str]


def test_the_gateway_for_localstack_has_the_same(default: Template) -> None:
    assert gateway("ingest", "query") == table(default)


def gateway(*functions: str) -> Table:
    """Returns the routes to functions of the gateway that replaces the HTTP API on LocalStack."""
    text = (ROOT / "infra/localstack/lambda/gateway.go").read_text()
    found: Table = {}
    for function in functions:
        (routes,) = re.findall(rf"{function}Routes = \[\]string{{(.*?)\n\t}}", text, re.DOTALL)
        for key in re.findall(r'"(.*?)"', routes):
            method, path = key.split(" ")
            found[method, path] = function
    return found


def table(t: Template, *more: str) -> Table:
    """Returns the function of each method and path of the HTTP API. More are functions that not every stack has."""
    functions = {t.arn(f"{f.title()}LambdaFunction"): f for f in (*FUNCTIONS, *more)}
    integrations = {
        f"integrations/{t.ref(name)}": functions[i["IntegrationUri"]] for name, i in t.of_type("AWS::ApiGatewayV2::Integration")
    }
    routes = {}
    for _, route in t.of_type("AWS::ApiGatewayV2::Route"):
        method, path = route["RouteKey"].split(" ")
        routes[method, path] = integrations[route["Target"]]
    return routes


def route(routes: Table, method: str, path: str) -> str | None:
    """Returns where API Gateway sends a request: to the route of this path, or else of the longest prefix."""

    def matches(pattern: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace(r"\{proxy\+\}", ".+").replace(r"\{id\}", "[^/]+"), path) is not None

    found = [p for m, p in routes if m == method and matches(p)]
    full = [p for p in found if "{proxy+}" not in p]
    return routes[method, max(full or found, key=len)] if found else None


@pytest.fixture(scope="module")
def servers(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    directory = tmp_path_factory.mktemp("routes")
    servers = {}
    try:
        for name, program in (("ingest", programs.ingest_fn), ("query", programs.query_fn)):
            servers[name] = Server([program], directory_store(directory / "store"), directory / name)
        yield servers
    finally:
        for server in servers.values():
            server.cleanup()


def status(server: Server, method: str, path: str) -> int:
    data = b"" if method == "POST" else None
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{server.url}{path}", data=data, method=method), timeout=300) as response:
            return response.status
    except urllib.error.HTTPError as e:
        return e.code


def wanted() -> Iterator[tuple[str, str, str]]:
    for prefix in ("", "/prometheus"):
        yield from (("ingest", "POST", prefix + path) for path in WRITES)
        yield from (("query", "GET", prefix + path) for path in QUERIES if path != "/api/v1/read")
        yield from (("query", "POST", prefix + path) for path in QUERIES if path in POSTED)
        yield ("query", "OPTIONS", f"{prefix}/api/v1/query")
    yield from (("query", "GET", path) for path in HEALTH + PAGE)
    yield from (("query", method, DASHBOARD) for method in ("PUT", "DELETE"))
    yield from (("ingest", "POST", path) for path in REMOTE_WRITES)
    yield from (("query", "GET", WORKSPACE + path) for path in WORKSPACE_QUERIES)
    yield from (("query", "POST", WORKSPACE + path) for path in ("/query", "/query_range", "/series", "/labels"))
    yield from (("ingest", method, path) for method, path in LINES)


@pytest.mark.parametrize(("function", "method", "path"), list(wanted()), ids=lambda x: x)
def test_reachable(function: str, method: str, path: str, default: Template, servers: dict[str, Server]) -> None:
    """The API leads to a function whose program serves the address; the answer to an empty request does not matter."""
    assert route(table(default), method, path) == function
    assert status(servers[function], method, path) not in (404, 405)


def test_nothing_else(default: Template) -> None:
    routes = table(default)
    for path in NOWHERE:
        for method in ("GET", "POST", "PUT", "DELETE"):
            assert route(routes, method, path) is None, (method, path)
    for method in ("PUT", "DELETE", "PATCH", "HEAD"):
        assert route(routes, method, "/api/v1/query") is None
    assert {path for function, _, path in ((f, m, p) for (m, p), f in routes.items()) if function == "ingest"} == {
        prefix + path for prefix in ("", "/prometheus") for path in WRITES
    } | {"/api/v1/remote_write", "/workspaces/{id}/api/v1/remote_write"} | {
        next((f"{p}{{proxy+}}" for p in PREFIXES if path.startswith(p)), path) for _, path in LINES
    }


def test_the_url_of_the_ingest_function(servers: dict[str, Server]) -> None:
    """Without an API in front, the program serves only the paths of writing and of health."""
    server = servers["ingest"]
    for prefix in ("", "/prometheus"):
        for path in WRITES:
            assert status(server, "POST", prefix + path) not in (404, 405), path
            assert status(server, "GET", prefix + path) == 405, path
        for path in QUERIES:
            assert {status(server, method, prefix + path) for method in ("GET", "POST")} == {404}, path
    for path in REMOTE_WRITES:
        assert status(server, "POST", path) not in (404, 405), path
    for path in (*PAGE, f"{WORKSPACE}/query"):
        assert status(server, "GET", path) == 404, path
    for method, path in LINES:
        assert status(server, method, path) not in (404, 405), path
    for path in HEALTH:
        assert status(server, "GET", path) == 200, path
    for path in NOWHERE:
        if path != "/metrics":  # behind the guard: a token for operators
            assert {status(server, method, path) for method in ("GET", "POST")} == {404}, path


def test_every_route_is_served(default: Template, servers: dict[str, Server]) -> None:
    """Each route leads to an address that its program serves."""
    for (method, path), function in table(default).items():
        if path.startswith("/datadog/"):
            below = {"GET": "api/v1/validate", "POST": "api/v2/series"}[method]
        else:
            below = "job/x" if "/metrics/" in path else "query"
        sample = path.replace("{proxy+}", below).replace("{id}", "ws-1")
        assert status(servers[function], method, sample) not in (404, 405), (method, path)


def test_paths_of_the_documentation(default: Template) -> None:
    """Every path of docs/querying.md and docs/remote-write.md that begins a cell of a table or an example is routed."""
    routes = table(default)
    text = (Path(__file__).parents[2] / "docs/querying.md").read_text()
    named = [cell for line in text.splitlines() if line.startswith("| `/") for cell in line.split("|")[1].split("`")[1::2]]
    assert len(named) > 10
    for path in named:
        if not path.startswith("…"):
            assert route(routes, "GET", path.replace("<name>", "job")) == "query", path
