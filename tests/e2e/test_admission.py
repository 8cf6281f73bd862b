"""Limits and relabeling of a tenant in a real server: what is refused, how, and where it can be looked up."""

import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from support.documentation import ADDRESS, block, run_shell
from support.programs import wait_until
from support.questions import vector
from support.remote_write import CONTENT_TYPE, WRITE_PATH, compress, encode, series
from support.server import Server, Start
from support.stores import Store

NOW = int(time.time() * 1000)


def refused(server: Server, path: str, body: bytes, **headers: str) -> tuple[int, str | None, str]:
    """Returns the status, Retry-After and the text of an answer that refuses a request of team-a."""
    given = {"X-Scope-OrgID": "team-a", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(urllib.request.Request(server.url + path, body, given), timeout=300)
    with answer.value as a:
        return a.status, a.headers["Retry-After"], a.read().decode()


def refusals(server: Server, tenant: str) -> list[dict]:
    request = urllib.request.Request(f"{server.url}/api/v1/status/refused", headers={"X-Scope-OrgID": tenant})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)["data"]


def test_the_documentations_limits(start: Start, file_store: Store, tmp_path: Path) -> None:
    """A server with the page's document refuses as its table says, and shows it as the page does."""
    document = tmp_path / "runtime.yaml"
    document.write_text(block("admission", "overrides:"))
    server = start(file_store, f"--runtime-config.file={document}")
    limits = yaml.safe_load(document.read_text())["overrides"]["team-a"]
    sender, client = server.sender("team-a"), server.client("team-a")
    dropped = [series("go_gc_cycles_total", [(NOW, 1.0)]), series("kept", [(NOW, 1.0)], pod_template_hash="abc")]
    assert sender.write(*dropped).status == 204
    (kept,) = vector(client, '{__name__=~".+"}', NOW / 1000).samples
    assert kept.labels == {"__name__": "kept"}
    rules = {
        "max_label_names_per_series": series("m", [(NOW, 1.0)], **{f"l{i}": "x" for i in range(limits["max_label_names_per_series"])}),
        "label_name_too_long": series("m", [(NOW, 1.0)], **{"l" * (limits["max_label_name_length"] + 1): "x"}),
        "label_value_too_long": series("m", [(NOW, 1.0)], l="x" * (limits["max_label_value_length"] + 1)),
        "too_far_in_future": series("m", [(NOW + 3_600_000, 1.0)]),
        "too_far_in_past": series("m", [(NOW - 8 * 86_400_000, 1.0)]),
    }
    for reason, bad in rules.items():
        answer = sender.write(bad, series("good", [(NOW, 1.0)], of=reason))
        assert (answer.status, reason in answer.text) == (400, True), answer
        assert len(vector(client, f'good{{of="{reason}"}}', NOW / 1000).samples) == 1
        assert server.sender("team-b").write(bad).status == (400 if "future" in reason else 204), "the limits are team-a's"
    printed = run_shell(block("admission", "curl -H 'X-Scope-OrgID", {ADDRESS: server.url}))
    assert [entry["reason"] for entry in json.loads(printed)["data"]] == list(rules)[::-1]
    (shown,) = json.loads(block("admission", '{"status": "success"'))["data"]
    newest = json.loads(printed)["data"][0]
    assert newest.keys() == shown.keys()
    form = {name: re.sub(r"\d+", "0", str(shown[name])).split("; ")[0] for name in shown}
    assert {name: re.sub(r"\d+", "0", re.sub(r"\.\d+Z", "Z", str(newest[name]))).split("; ")[0] for name in newest} == form


def test_rates(start: Start, file_store: Store, tmp_path: Path) -> None:
    """A request over a rate is refused as a whole, on every protocol, and a changed document lets it pass."""
    document = tmp_path / "runtime.yaml"

    def allow(rate: float) -> None:
        document.write_text(f"overrides: {{team-a: {{ingestion_rate: {rate}, ingestion_burst_size: 20}}}}")

    allow(0.01)
    server = start(file_store, f"--runtime-config.file={document}", "--runtime-config.reload-period=10ms")
    sender, client = server.sender("team-a"), server.client("team-a")
    batch = [series("m", [(NOW - 1000 * i, 1.0) for i in range(20)], n=str(n)) for n in range(3)]
    assert sender.write(batch[0]).status == 204
    # The bucket is empty: 20 samples fit it 2000 s later.
    remote_write = {"Content_Type": CONTENT_TYPE, "Content_Encoding": "snappy"}
    lines = "\n".join(f"cpu v={i} {NOW - 1000 * i}000000" for i in range(20)).encode()
    points = json.dumps([{"metric": "m", "timestamp": NOW - i, "value": i, "tags": {"a": "b"}} for i in range(20)]).encode()
    text = "\n".join(f"m {i} {NOW - 1000 * i}" for i in range(20)).encode()
    for path, body, headers in (
        (WRITE_PATH, compress(encode(batch[1:2])), remote_write),
        ("/write", lines, {}),
        ("/api/put", points, {"Content_Type": "application/json"}),
        ("/api/v1/import/prometheus", text, {}),
    ):
        status, after, message = refused(server, path, body, **headers)
        assert status == 429, path
        assert 1000 < int(after or 0) <= 2000, path
        assert "ingestion_rate" in message, path
    status, after, message = refused(server, WRITE_PATH, compress(encode(batch)), **remote_write)
    assert (status, after) == (400, None), "it can never succeed"
    assert "ingestion_burst_size" in message
    assert {(r["reason"], r["samples"]) for r in refusals(server, "team-a")} == {("rate_limited", 20), ("rate_limited", 60)}
    assert refusals(server, "team-b") == []
    assert len(vector(client, '{__name__=~".+"}', NOW / 1000).samples) == 1
    allow(1_000_000)
    wait_until(lambda: sender.write(batch[1]).status == 204, "the new document")
    assert len(vector(client, "m", NOW / 1000).samples) == 2


def test_series_of_an_hour(start: Start, file_store: Store, tmp_path: Path) -> None:
    """Of the series beyond the limit a small part passes by mistake; no accepted one is refused.

    An hour that ends meanwhile admits more, so the same is asked of another tenant then.
    """
    document, tenants = tmp_path / "runtime.yaml", ("a", "b", "c")
    document.write_text(json.dumps({"overrides": {t: {"max_hourly_series": 1000, "max_daily_series": 1500} for t in tenants}}))
    server = start(file_store, f"--runtime-config.file={document}")

    def write(tenant: str, first: int, last: int, at: int) -> int:
        return server.sender(tenant).write(*(series("m", [(at, 1.0)], n=str(n)) for n in range(first, last))).status

    def count(tenant: str, at: int) -> float:
        (sample,) = vector(server.client(tenant), "count(m)", at / 1000).samples
        return sample.value

    for tenant in tenants:
        now = int(time.time() * 1000)
        assert write(tenant, 0, 1000, now) == 204
        assert count(tenant, now) == 1000
        assert write(tenant, 0, 1000, now + 1) == 204
        status = write(tenant, 1000, 2000, now + 2)
        if time.time() // 3600 == now // 3_600_000:
            assert status == 400
            assert 1000 <= count(tenant, now + 2) <= 1050
            assert {r["reason"] for r in refusals(server, tenant)} == {"max_hourly_series"}
            return
    pytest.fail("three hours ended")
