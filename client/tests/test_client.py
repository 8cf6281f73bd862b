import datetime as dt
import math
import pickle
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api import Api, serve
from promlake import (
    Client,
    Histogram,
    HistogramBucket,
    HistogramPoint,
    Matrix,
    Metadata,
    Point,
    PromlakeError,
    Result,
    Sample,
    Scalar,
    Series,
    String,
    Vector,
)

SENT = "pl_x"
UP = {"__name__": "up", "job": "node"}
HISTOGRAM = {"count": "3", "sum": "4.5", "buckets": [[0, "1", "2", "2"], [3, "-0.5", "0.5", "1"]]}
DECODED = Histogram(3.0, 4.5, (HistogramBucket(1, 2, False, True, 2), HistogramBucket(-0.5, 0.5, True, True, 1)))


@pytest.fixture
def api() -> Iterator[Api]:
    with serve() as api:
        yield api


@pytest.mark.parametrize(
    ("kind", "result", "want"),
    [
        ("vector", [], Vector(())),
        ("vector", [{"metric": UP, "value": [1.5, "1"]}], Vector((Sample(UP, 1.5, value=1.0),))),
        ("vector", [{"metric": UP, "value": [1, "+Inf"]}], Vector((Sample(UP, 1.0, value=math.inf),))),
        ("vector", [{"metric": {}, "histogram": [1, HISTOGRAM]}], Vector((Sample({}, 1.0, histogram=DECODED),))),
        (
            "matrix",
            [{"metric": UP, "values": [[1, "1"], [2, "-Inf"]], "histograms": [[3, HISTOGRAM]]}],
            Matrix((Series(UP, (Point(1, 1), Point(2, -math.inf)), (HistogramPoint(3, DECODED),)),)),
        ),
        ("scalar", [1, "2.5"], Scalar(1.0, 2.5)),
        ("string", [1, "text"], String(1.0, "text")),
    ],
)
def test_query_decodes(api: Api, kind: str, result: Any, want: Result) -> None:
    api.answers({"resultType": kind, "result": result})
    assert Client(api.url).query("x") == want


def test_query_decodes_nan(api: Api) -> None:
    api.answers({"resultType": "scalar", "result": [1, "NaN"]})
    answer = Client(api.url).query("x")
    assert isinstance(answer, Scalar)
    assert math.isnan(answer.value)


def test_notes(api: Api) -> None:
    api.answers({"resultType": "vector", "result": []}, warnings=["w"], infos=["i", "j"])
    answer = Client(api.url).query("x")
    assert (answer.warnings, answer.infos) == (("w",), ("i", "j"))


MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("ask", "data", "method", "path", "form"),
    [
        (
            lambda c: c.query('up{job="a b"}', MOMENT, limit=3),
            {"resultType": "vector", "result": []},
            "POST",
            "/api/v1/query",
            [("query", 'up{job="a b"}'), ("time", "1767323045.25"), ("limit", "3")],
        ),
        (
            lambda c: c.query("up"),
            {"resultType": "vector", "result": []},
            "POST",
            "/api/v1/query",
            [("query", "up")],
        ),
        (
            lambda c: c.query_range("up", 1.5, "2026-01-01T00:00:00Z", dt.timedelta(milliseconds=500)),
            {"resultType": "matrix", "result": []},
            "POST",
            "/api/v1/query_range",
            [("query", "up"), ("start", "1.5"), ("end", "2026-01-01T00:00:00Z"), ("step", "0.5")],
        ),
        (
            lambda c: c.series(["up", "down"], 1, 2),
            [UP],
            "POST",
            "/api/v1/series",
            [("match[]", "up"), ("match[]", "down"), ("start", "1"), ("end", "2")],
        ),
        (lambda c: c.labels(), ["a"], "POST", "/api/v1/labels", []),
        (lambda c: c.labels("up", limit=1), ["a"], "POST", "/api/v1/labels", [("match[]", "up"), ("limit", "1")]),
        (lambda c: c.label_values("job"), ["a"], "GET", "/api/v1/label/job/values", []),
        (
            lambda c: c.label_values("k8s.node_ä", "up"),
            ["a"],
            "GET",
            "/api/v1/label/U__k8s_2e_node___e4_/values",
            [("match[]", "up")],
        ),
        (lambda c: c.label_values("U__a"), ["a"], "GET", "/api/v1/label/U__U____a/values", []),
        (lambda c: c.metadata("up", limit=2), {}, "GET", "/api/v1/metadata", [("metric", "up"), ("limit", "2")]),
    ],
)
def test_requests(
    api: Api,
    ask: Callable[[Client], Any],
    data: Any,
    method: str,
    path: str,
    form: list[tuple[str, str]],
) -> None:
    api.answers(data)
    ask(Client(api.url + "/", tenant="team-a"))
    (asked,) = api.asked
    assert (asked.method, asked.path, asked.form, asked.tenant) == (method, path, form, "team-a")


def test_token(api: Api) -> None:
    api.answers([])
    Client(api.url, token=SENT).labels()
    Client(api.url).labels()
    assert [asked.authorization for asked in api.asked] == [f"Bearer {SENT}", None]


def test_token_does_not_follow_redirects(api: Api) -> None:
    api.answers([])
    with serve() as other:
        other.answers(["elsewhere"])
        api.status, api.location = 302, other.url + "/api/v1/labels"
        assert Client(api.url, token=SENT).label_values("job") == ["elsewhere"]
        assert other.asked[0].authorization is None


@pytest.mark.parametrize("token", ["", "pl_x\r\nX-Scope-OrgID: other", "pl_ä"])
def test_bad_token(token: str) -> None:
    with pytest.raises(ValueError, match="token: want printable ASCII"):
        Client("http://127.0.0.1:9009", token=token)


def test_refused_token(api: Api) -> None:
    api.fails(401, b'{"status":"error","errorType":"unauthorized","error":"the token is not known"}')
    with pytest.raises(PromlakeError, match="the token is not known") as e:
        Client(api.url, token=SENT).labels()
    assert (e.value.error_type, e.value.status) == ("unauthorized", 401)


def test_no_tenant(api: Api) -> None:
    api.answers([])
    Client(api.url).labels()
    assert api.asked[0].tenant is None


def test_lists(api: Api) -> None:
    api.answers([UP])
    assert Client(api.url).series("up") == [UP]
    api.answers(["a", "b"])
    assert Client(api.url).labels() == ["a", "b"]
    assert Client(api.url).label_values("x") == ["a", "b"]


def test_metadata(api: Api) -> None:
    api.answers({"up": [{"type": "gauge", "help": "h", "unit": ""}]})
    assert Client(api.url).metadata() == {"up": (Metadata("gauge", "h", ""),)}


@pytest.mark.parametrize(
    ("status", "body", "error_type", "message"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"no"}', "bad_data", "no"),
        (503, b'{"status":"error","errorType":"timeout","error":"slow"}', "timeout", "slow"),
        (502, b"<h1>bad gateway</h1>", "bad_response", "status 502: <h1>bad gateway</h1>"),
        (200, b"[]", "bad_response", "status 200: []"),
        (200, b'{"status":"success"}', "bad_response", "the answer is not of the API's shape: KeyError: 'data'"),
        (
            200,
            b'{"status":"success","data":{"resultType":"new","result":[]}}',
            "bad_response",
            "the answer is not of the API's shape: ValueError: unknown result type 'new'",
        ),
        (
            200,
            b'{"status":"success","data":{"resultType":"scalar","result":[]}}',
            "bad_response",
            "the answer is not of the API's shape: IndexError: list index out of range",
        ),
    ],
)
def test_errors(api: Api, status: int, body: bytes, error_type: str, message: str) -> None:
    api.fails(status, body)
    with pytest.raises(PromlakeError) as e:
        Client(api.url).query("x")
    assert (e.value.error_type, e.value.message) == (error_type, message)
    assert e.value.status in (status, 0)


def test_answers_of_other_kinds(api: Api) -> None:
    api.answers({"resultType": "scalar", "result": [1, "2"]})
    with pytest.raises(PromlakeError, match="answered with a scalar"):
        Client(api.url).query_range("1", 0, 1, 1)
    with pytest.raises(PromlakeError, match="not a list"):
        Client(api.url).labels()


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with pytest.raises(PromlakeError) as e:
        Client(f"http://127.0.0.1:{port}").query("x")
    assert (e.value.error_type, e.value.status) == ("unavailable", 0)


def test_silent_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as s, pytest.raises(PromlakeError) as e:
        Client(f"http://127.0.0.1:{s.getsockname()[1]}", timeout=0.05).query("x")
    assert e.value.error_type == "unavailable"


def test_error_survives_pickling() -> None:
    e = pickle.loads(pickle.dumps(PromlakeError("bad_data", "no", 400)))  # noqa: S301
    assert (e.error_type, e.message, e.status, str(e)) == ("bad_data", "no", 400, "bad_data: no")


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="want http"):
        Client("file:///etc/passwd")
    with pytest.raises(ValueError, match="time zone"):
        Client("http://localhost").query("x", MOMENT.replace(tzinfo=None))
