"""Rules of a tenant: set through the gateway, evaluated by the function's schedule, with results in the store and at Alertmanager."""

import secrets
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from stack.alertmanager import Alertmanager
from stack.doors import Door
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

RULES = "/prometheus/config/v1/rules"
GROUP = b"""
name: load
rules:
- {record: "load:sum", expr: "sum(load)"}
- {alert: High, expr: "load:sum > 2", labels: {severity: page}, annotations: {summary: "{{ $value }} in all"}}
"""
SECONDS = 120.0


@pytest.fixture
def alertmanager(stack: Stack) -> Iterator[Alertmanager]:
    """Gets the notifications of the stack. The function evaluates only what a test lets it, and at once."""
    events, receiver = stack.client("events"), Alertmanager()
    arn = stack.functions.get_function_configuration(FunctionName=stack.name("rules"))["FunctionArn"]
    schedules = events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
    assert schedules, "the schedule that evaluates rules"
    for name in schedules:
        events.disable_rule(Name=name)
    delay = stack.variables("rules")["PROMLAKE_RULER_SAMPLE_DELAY"]
    stack.set("rules", PROMLAKE_RULER_ALERTMANAGER_URL=receiver.url, PROMLAKE_RULER_SAMPLE_DELAY="0s")
    try:
        yield receiver
    finally:
        stack.set("rules", PROMLAKE_RULER_ALERTMANAGER_URL=None, PROMLAKE_RULER_SAMPLE_DELAY=delay)
        for name in schedules:
            events.enable_rule(Name=name)
        receiver.close()


@pytest.fixture
def door(stack: Stack) -> Door:
    return stack.doors(f"rules-{secrets.token_hex(4)}")["gateway"]


def test_rules(stack: Stack, door: Door, alertmanager: Alertmanager) -> None:
    reply = door.send("POST", f"{RULES}/web", b"name: wrong\nrules: [{record: x, expr: 'sum('}]")
    assert reply.status == 400, reply
    reply = door.send("POST", f"{RULES}/web", GROUP)
    assert reply.status == 202, reply
    reply = door.send("GET", f"{RULES}/web/load")
    assert reply.status == 200, reply
    assert b"record: load:sum" in reply.body

    # The group is evaluated once a minute, at a time of its own. Samples of the minutes before
    # count.
    now = datetime.now(UTC)
    before = int((now - timedelta(minutes=2)).timestamp() * 1000)
    assert door.write([series("load", [(before, n)], n=str(n)) for n in (1.0, 3.0)]).status == 204
    wait_until(lambda: door.ask("query", query="count(load) == 2")["result"] != [], "the samples", SECONDS, lambda: stack.log("flush"))
    answer = stack.tick("rules", now)
    assert answer == {"error": None, "payload": b"null"}, stack.log("rules")

    ((metric, value),) = [(s["metric"], s["value"][1]) for s in door.ask("query", query="load:sum")["result"]]
    assert (metric, value) == ({"__name__": "load:sum"}, "4")
    (firing,) = door.ask("query", query="ALERTS")["result"]
    assert firing["metric"] == {"__name__": "ALERTS", "alertname": "High", "alertstate": "firing", "severity": "page"}

    (alert,) = alertmanager.alerts()
    assert alert["labels"] == {"alertname": "High", "severity": "page", "tenant": door.tenant}
    assert alert["annotations"] == {"summary": "4 in all"}
    assert door.send("GET", urllib.parse.urlsplit(alert["generatorURL"]).path).status == 200, "the page"

    (group,) = door.ask("rules", "GET")["groups"]
    assert (group["file"], group["name"]) == ("web", "load")
    assert [(r["name"], r["health"], r.get("state")) for r in group["rules"]] == [("load:sum", "ok", None), ("High", "ok", "firing")]
    assert [a["labels"] for a in door.ask("alerts", "GET")["alerts"]] == [{"alertname": "High", "severity": "page"}]

    # A process that knows nothing goes on, and ends what the tenant has removed.
    reply = door.send("DELETE", f"{RULES}/web/load")
    assert reply.status == 202, reply
    stack.end("rules")
    answer = stack.tick("rules", now + timedelta(minutes=1))
    assert answer == {"error": None, "payload": b"null"}, stack.log("rules")
    later = f"{(now + timedelta(minutes=1)).timestamp():.3f}"
    assert door.ask("query", query="load:sum or ALERTS", time=later)["result"] == []
    assert door.send("GET", RULES).body.strip() == b"{}"
