"""What is exported as lines of JSON or CSV is what was imported, and can be imported again."""

import csv
import gzip
import io
import json
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from support.documentation import ADDRESS, block, run_shell
from support.questions import vector
from support.server import Server

HOUR = 3_600_000
NOW = int(time.time()) // 7200 * HOUR * 2


def send(server: Server, path: str, body: bytes, tenant: str, **headers: str) -> int:
    request = urllib.request.Request(f"{server.url}{path}", data=body, headers={"X-Scope-OrgID": tenant, **headers})
    with urllib.request.urlopen(request, timeout=300) as response:
        return response.status


def export(server: Server, path: str, tenant: str, packed: bool = False, **parameters: str) -> bytes:
    query = urllib.parse.urlencode({"match[]": '{__name__=~".+"}', **parameters})
    headers = {"X-Scope-OrgID": tenant, **({"Accept-Encoding": "gzip"} if packed else {})}
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}{path}?{query}", headers=headers), timeout=300) as response:
        body = response.read()
        assert (response.headers["Content-Encoding"] == "gzip") == packed
        return gzip.decompress(body) if packed else body


def gathered(lines: bytes) -> dict[str, list[tuple[int, object]]]:
    """Returns the samples of each series, from any number of lines."""
    series: dict[str, list[tuple[int, object]]] = {}
    for line in lines.decode().splitlines():
        one = json.loads(line)
        series.setdefault(json.dumps(one["metric"], sort_keys=True), []).extend(zip(one["timestamps"], one["values"], strict=True))
    return series


@pytest.mark.parametrize("series", [3, 26])
def test_round_trip(server: Server, series: int) -> None:
    """More than a million samples are read in several pieces."""
    samples = 50_000
    times = [NOW - 10_000 * i for i in range(samples - 1, -1, -1)]
    odd = {3: None, 4: "NaN", 5: "Infinity", 6: "-Infinity", 7: 1e300, 8: 0.1}
    lines = [
        json.dumps(
            {
                "metric": {"__name__": "m", "n": str(n), "city": 'kö"ln'},
                "values": [odd.get(i, i * (n + 1)) for i in range(samples)],
                "timestamps": times,
            }
        )
        for n in range(series)
    ]
    for at in range(0, len(lines), 6):
        assert (
            send(server, "/api/v1/import", gzip.compress("\n".join(lines[at : at + 6]).encode(), 1), "a", **{"Content-Encoding": "gzip"})
            == 204
        )
    want = gathered("\n".join(lines).encode())
    first = export(server, "/api/v1/export", "a", packed=True)
    assert gathered(first) == want
    if series > 3:
        return
    assert send(server, "/api/v1/import?extra_label=copy=yes", first, "b") == 204
    again = gathered(export(server, "/api/v1/export", "b"))
    assert {k.replace('"copy": "yes", ', ""): v for k, v in again.items()} == want
    part = gathered(export(server, "/api/v1/export", "a", start=str((NOW - 20_000) / 1000), end=str(NOW / 1000)))
    assert {k: v[-3:] for k, v in want.items()} == part


def test_csv(server: Server) -> None:
    rows = [["Köln, West", str(i / 4), str(NOW // 1000 - i)] for i in range(99, -1, -1)]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    assert send(server, "/api/v1/import/csv?format=1:label:city,2:metric:temperature,3:time:unix_s", text.getvalue().encode(), "a") == 204
    answer = export(server, "/api/v1/export/csv", "a", format="city,__value__,__timestamp__:unix_s").decode()
    assert [[r[0], float(r[1]), r[2]] for r in csv.reader(io.StringIO(answer))] == [[r[0], float(r[1]), r[2]] for r in rows]


def test_the_documentations_json(server: Server, tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text(block("lines", '{"metric":'))
    run_shell(block("lines", "curl --data-binary @samples.jsonl", {ADDRESS: server.url}), tmp_path)
    (sample,) = vector(server.client(), 'up{job="a"}', 1_700_000_000).samples
    assert sample.value == 1
    printed = run_shell(block("lines", "curl 'http://127.0.0.1:9009/api/v1/export'", {ADDRESS: server.url}), tmp_path)
    assert printed == "a,1,1700000000\na,0,1700000015\n"


def test_the_documentations_csv(server: Server) -> None:
    run_shell(block("lines", "echo ", {ADDRESS: server.url}))
    (sample,) = vector(server.client(), "temperature_celsius", 1_700_000_000).samples
    assert (sample.value, sample.labels["city"]) == (20.5, "Berlin")
