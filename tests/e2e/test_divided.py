"""Range queries that one process divides over others, while these are killed and started again."""

import json
import math
import re
import time
import urllib.parse
import urllib.request

from support.programs import Programs
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store

END = int(time.time()) // 60 * 60
HOURS = 12
QUERIES = (
    "m",
    "sum by (job) (rate(m[5m]))",
    "histogram_quantile(0.5, sum by (le) (rate(m_bucket[10m])))",
    "topk(3, m)",
    "m offset 1h - m @ start()",
    "max_over_time(sum(m)[30m:1m])",
    "absent(m{i='1'})",
    "sort(m)",
)


def ask(server: Server, path: str, **params: str) -> dict:
    with urllib.request.urlopen(f"{server.url}/api/v1/{path}?{urllib.parse.urlencode(params)}", timeout=300) as response:
        return json.load(response)


def ranged(server: Server, query: str) -> dict:
    answer = ask(server, "query_range", query=query, start=str(END - HOURS * 3600), end=str(END), step="60")
    return {"infos": [], "warnings": []} | answer


def pieces(server: Server) -> dict[str, int]:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=300) as response:
        found = re.findall(r'^promlake_query_pieces_total\{result="(\w+)"\} (\d+)$', response.read().decode(), re.MULTILINE)
    return {result: int(n) for result, n in found if n != "0"}


def test_workers_answer(start: Start, store: Store, programs: Programs) -> None:
    workers = [start(store, command=[programs.query_fn]) for _ in range(2)]
    addresses = ",".join(["dns+127.0.0.1:" + workers[0].url.rpartition(":")[2], workers[1].url.removeprefix("http://")])
    server = start(store, "--query.workers", addresses, "--query.divide-bytes", "1", "--query.divide-windows", "1")
    sender = server.sender()
    for i in range(8):
        begin, end = (END - HOURS * 3600) * 1000, END * 1000
        if i % 2:  # for a part of the time
            begin, end = begin + i * 3_600_000, begin + (i + 3) * 3_600_000
        points = [(t, math.sin(t / 1e6 + i) + 0.1 * i) for t in range(begin, end, 30_000)]
        assert sender.write(series("m", points, job=str(i % 3), i=str(i))).status == 204
        for k, le in enumerate(("0.1", "1", "+Inf")):
            buckets = [(t, (t - begin) / 1000 * (k + 1)) for t, _ in points]
            assert sender.write(series("m_bucket", buckets, le=le, i=str(i))).status == 204
    undivided = start(store)
    want = {q: ranged(undivided, q) for q in QUERIES}
    for q in QUERIES:
        assert ranged(server, q) == want[q], q
    alive = pieces(server)
    assert alive["ok"] >= 3 * len(QUERIES), alive
    assert "failed" not in alive, alive
    plan = ask(server, "explain", query="m", start=str(END - HOURS * 3600), end=str(END), step="60")["data"]
    assert re.fullmatch(r"\d+ slices of its steps, for \d workers", plan["division"])

    workers[0].process.kill()
    for q in QUERIES:
        assert ranged(server, q) == want[q], q
    half = pieces(server)
    assert half["failed"] > 0, half
    assert half["ok"] > alive["ok"], half
    workers[1].process.kill()
    for q in QUERIES:
        assert ranged(server, q) == want[q], q
    assert pieces(server)["local"] > 0
