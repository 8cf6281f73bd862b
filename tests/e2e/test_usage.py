"""What queries asked for is known to all servers over a store, also after they stopped."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest
from support.programs import wait_until
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store


def stats(server: Server, what: str, **params: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{server.url}/api/v1/status/{what}_names_stats?{urllib.parse.urlencode(params)}", timeout=300) as answer:
        return json.load(answer)


def counts(server: Server, what: str) -> dict[str, int]:
    return {r[f"{what}Name"]: r["queryRequestsCount"] for r in stats(server, what)["records"]}


def test_counts_are_kept(start: Start, store: Store) -> None:
    begin = int(time.time())
    a = start(store)
    assert a.sender().write(series("up", [(1000 * begin, 1.0)], job="api", zone="b")).status == 204
    assert a.sender().write(series("unasked", [(1000 * begin, 1.0)], pod="x")).status == 204
    for expr in ("up", 'sum by (job) ({__name__=~"u.+"})'):
        a.client().query(expr, begin)
    assert counts(a, "metric") == {"unasked": 1, "up": 2}
    assert counts(a, "label") == {"pod": 0, "zone": 0, "job": 1}
    a.stop()

    b = start(store, "--query.usage-interval=100ms")
    c = start(store, "--query.usage-interval=100ms")
    first = stats(b, "metric")
    assert begin <= first["statsCollectedSince"] <= time.time()
    assert counts(b, "metric") == {"unasked": 1, "up": 2}
    b.client().query("up", begin)
    wait_until(lambda: counts(c, "metric") == {"unasked": 1, "up": 3}, "the counts of another server")
    with urllib.request.urlopen(f"{c.url}/api/v1/label/zone/values", timeout=300):
        pass
    wait_until(lambda: counts(b, "label") == {"pod": 0, "job": 1, "zone": 1}, "the counts of labels of another server")
    assert stats(b, "metric")["statsCollectedSince"] == first["statsCollectedSince"]

    assert [r["metricName"] for r in stats(b, "metric", le="1")["records"]] == ["unasked"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        stats(b, "metric", not_asked_for="30d")
    assert refused.value.code == 422
    assert "what was not asked for in 30d is known from" in json.load(refused.value)["error"]
    assert stats(b, "metric", not_asked_for="1ms")["statsCollectedRecordsTotal"] == 2
