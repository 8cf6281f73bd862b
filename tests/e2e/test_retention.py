"""Samples that are deleted or past their retention disappear: from queries at once, from the store after compaction."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from promlake import Client
from support.commands import Commands, no_garbage
from support.programs import Programs
from support.questions import samples
from support.remote_write import series
from support.server import Server, Start
from support.stores import Store

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
FIRST_MS = (int(time.time() * 1000) // DAY_MS - 2) * DAY_MS
HOURS = list(range(0, 24, 3))
OLD_DAYS = 20


def write_day(server: Server, tenant: str | None = None, first_ms: int = FIRST_MS) -> None:
    sender = server.sender(tenant)
    for hour in HOURS:
        t = first_ms + hour * HOUR_MS
        batch = [series("requests_total", [(t, hour), (t + 1000, hour + 0.5)], job=job) for job in ("api", "db")]
        assert sender.write(*batch).status == 204


def hours(client: Client, selector: str, first_ms: int = FIRST_MS) -> list[int]:
    """Returns the hours of the day at which there are samples."""
    found = samples(client, selector, first_ms + DAY_MS, DAY_MS)
    return sorted({(t - first_ms) // HOUR_MS for points in found.values() for t, _ in points})


def delete(server: Server, tenant: str | None = None, **form: str) -> tuple[int, Any]:
    """Requests a deletion. Returns the status and the body, if any."""
    headers = {} if tenant is None else {"X-Scope-OrgID": tenant}
    body = urllib.parse.urlencode({"match[]" if name == "match" else name: value for name, value in form.items()}).encode()
    request = urllib.request.Request(f"{server.url}/api/v1/admin/tsdb/delete_series", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


def at(hour: int) -> str:
    return f"{(FIRST_MS + hour * HOUR_MS) / 1000}"


def test_deletion_is_off_by_default(server: Server) -> None:
    write_day(server)
    status, body = delete(server, match="requests_total")
    assert (status, body["errorType"]) == (503, "unavailable")
    assert hours(server.client(), "requests_total") == HOURS


def test_deletion(programs: Programs, start: Start, store: Store) -> None:
    """Deletion before and after the samples are in a block, for one tenant only."""
    flags = ("--no-compactor.enabled", "--web.enable-admin-api", "--ingest.flush-interval=5ms")
    server, commands = start(store, *flags), Commands(programs, store)
    for tenant in (None, "b"):
        write_day(server, tenant)
    client = server.client()
    form = {"match": 'requests_total{job="api"}', "start": at(6), "end": at(12)}

    status, body = delete(server, dry_run="true", **form)
    assert (status, body["data"]["series"], body["data"]["samples"]) == (200, 1, 5), body
    assert body["data"]["bytes"] > 0
    assert hours(client, 'requests_total{job="api"}') == HOURS, "a dry run deletes nothing"

    check_deletion(server, form, [0, 3, 12, 15, 18, 21])
    (tombstone,) = commands.inspect()["tombstones"]
    assert tombstone["match"] == '{job="api", __name__="requests_total"}'
    assert delete(server, dry_run="true", **form)[1]["data"]["samples"] == 0

    now = time.time() + 3600
    commands.compact(now)
    assert commands.levels() == {"24h": 1}
    assert commands.inspect()["blocks"][0]["samples"] == 4 * len(HOURS) - 5
    check_deletion(server, {"match": 'requests_total{job="api"}', "start": at(18)}, [0, 3, 12, 15])
    commands.compact(now + 3600)
    (block,) = commands.inspect()["blocks"]
    assert (block["samples"], block["series"]) == (4 * len(HOURS) - 5 - 4, 2)
    # In a bucket, a message from before the deletion may still be delivered by a queue.
    assert len(commands.inspect()["tombstones"]) == (0 if store.url.startswith("file://") else 2)

    check_deletion(server, {"match": '{job=~".+"}'}, [])
    commands.compact(now + 2 * 3600)
    assert commands.levels() == {}
    commands.collect(now + 31 * 24 * 3600)
    assert no_garbage(commands)
    assert commands.inspect()["tombstones"] == []
    assert hours(server.client("b"), "requests_total") == HOURS
    write_day(server)
    assert hours(client, "requests_total") == HOURS, "what is written after a deletion stays"
    server.stop()


def check_deletion(server: Server, form: dict[str, str], left: list[int]) -> None:
    """A deletion takes effect at once. It includes the last sample of the range, but not the one a second later."""
    assert delete(server, **form) == (204, None)
    assert hours(server.client(), 'requests_total{job="api"}') == left
    assert hours(server.client(), 'requests_total{job="db"}') == (HOURS if left else [])


def test_bad_deletions(start: Start, file_store: Store) -> None:
    server = start(file_store, "--web.enable-admin-api")
    for form in ({}, {"match": "{"}, {"match": "up", "start": "soon"}, {"match": "up", "start": "2", "end": "1"}):
        status, body = delete(server, **form)
        assert (status, body["errorType"]) == (400, "bad_data"), form
    server.stop()


def test_retention(programs: Programs, start: Start, file_store: Store) -> None:
    """Old days are deleted by tenant, whether they are compacted or not."""
    server, commands = start(file_store, "--no-compactor.enabled"), Commands(programs, file_store)
    old_ms = FIRST_MS - OLD_DAYS * DAY_MS
    for tenant in ("compacted", "fresh", "kept"):
        write_day(server, tenant, old_ms)
        write_day(server, tenant)
    now = time.time() + 3600
    commands.compact(now, "--tenant", "compacted")
    assert commands.levels("compacted") == {"24h": 2}
    assert commands.levels("fresh") == {"segment": 2 * len(HOURS)}, "of another tenant"

    keep = ["--compactor.blocks-retention-period", "10d", "--compactor.tenant-retention", "kept=60d"]
    for later in range(4):
        commands.compact(now + later * 3600, *keep)
    for tenant, left in (("compacted", []), ("fresh", []), ("kept", HOURS)):
        assert hours(server.client(tenant), "requests_total", old_ms) == left
        assert hours(server.client(tenant), "requests_total") == HOURS
        assert commands.levels(tenant) == {"24h": 2 if left else 1}
        assert no_garbage(commands, tenant)
    server.stop()
