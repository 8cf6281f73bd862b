"""Rules of a tenant: set through the gateway, evaluated by the function's schedule, with results in the store and at a receiver."""

import json
import secrets
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

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
def by_hand(stack: Stack) -> Iterator[None]:
    """The function evaluates only what a test lets it, and at once."""
    events = stack.client("events")
    arn = stack.functions.get_function_configuration(FunctionName=stack.name("rules"))["FunctionArn"]
    schedules = events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
    assert schedules, "the schedule that evaluates rules"
    for name in schedules:
        events.disable_rule(Name=name)
    delay = stack.variables("rules")["PROMLAKE_RULER_SAMPLE_DELAY"]
    stack.set("rules", PROMLAKE_RULER_SAMPLE_DELAY="0s")
    try:
        yield
    finally:
        stack.set("rules", PROMLAKE_RULER_SAMPLE_DELAY=delay)
        for name in schedules:
            events.enable_rule(Name=name)


@pytest.fixture
def alertmanager(stack: Stack, by_hand: None) -> Iterator[Alertmanager]:  # noqa: ARG001
    """Gets the notifications of the stack."""
    receiver = Alertmanager()
    stack.set("rules", PROMLAKE_RULER_ALERTMANAGER_URL=receiver.url)
    try:
        yield receiver
    finally:
        stack.set("rules", PROMLAKE_RULER_ALERTMANAGER_URL=None)
        receiver.close()


Messages = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def messages(stack: Stack, by_hand: None) -> Iterator[Messages]:  # noqa: ARG001
    """Takes the documents that a queue gets from an SNS topic, which has the notifications of the stack."""
    sns, name = stack.client("sns"), f"alerts-{secrets.token_hex(4)}"
    topic = sns.create_topic(Name=name)["TopicArn"]
    url = stack.sqs.create_queue(QueueName=name)["QueueUrl"]
    queue = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, Attributes={"RawMessageDelivery": "true"})
    stack.set("rules", PROMLAKE_RULER_SNS_TOPIC_ARN=topic)

    def take() -> list[dict[str, Any]]:
        got = stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in got:
            stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in got]

    try:
        yield take
    finally:
        stack.set("rules", PROMLAKE_RULER_SNS_TOPIC_ARN=None)
        sns.delete_topic(TopicArn=topic)
        stack.sqs.delete_queue(QueueUrl=url)


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


def test_topic(stack: Stack, door: Door, messages: Messages) -> None:
    """A topic gets that an alert fires and that it has ended, each once, whichever process evaluates."""
    group = b'name: g\nrules: [{alert: Up, expr: "up_since > 0", labels: {severity: page}}]'
    reply = door.send("POST", f"{RULES}/web", group)
    assert reply.status == 202, reply
    now = datetime.now(UTC)
    before = int((now - timedelta(minutes=10)).timestamp() * 1000)
    assert door.write([series("up_since", [(before, 1.0)])]).status == 204
    written = lambda: door.ask("query", query="last_over_time(up_since[1h])")["result"] != []  # noqa: E731
    wait_until(written, "the sample", SECONDS, lambda: stack.log("flush"))
    got: list[dict[str, Any]] = []

    def until(n: int) -> bool:
        got.extend(messages())
        return len(got) >= n

    for minutes in (9, 8, 3):  # in the end, the series has ended by the lookback
        stack.end("rules")
        answer = stack.tick("rules", now - timedelta(minutes=minutes))
        assert answer == {"error": None, "payload": b"null"}, stack.log("rules")
    wait_until(lambda: until(2), "the messages", SECONDS, lambda: stack.log("rules"))
    assert [m["status"] for m in sorted(got, key=lambda m: m["alerts"][0]["endsAt"])] == ["firing", "resolved"]
    assert [m["version"] for m in got] == ["4", "4"]
    labels = {"alertname": "Up", "severity": "page", "tenant": door.tenant}
    assert all(m["groupLabels"] == m["alerts"][0]["labels"] == labels for m in got)
    reply = door.send("DELETE", f"{RULES}/web/g")
    assert reply.status == 202, reply
