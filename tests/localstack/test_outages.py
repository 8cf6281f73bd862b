"""Whatever a function needs and does not find, its answer is 5xx at each entrance, which the alarms of the stack watch."""

from collections.abc import Iterator

import pytest
from stack.doors import Door
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

MISSING = {
    "tokens": {"PROMLAKE_AUTH_TOKENS": "ssm:/promlake/missing"},
    "queue": {"PROMLAKE_INGEST_QUEUE_URL": "http://sqs.us-east-1.localhost.localstack.cloud/000000000000/missing"},
    "bucket": {"PROMLAKE_STORE": "s3://promlake-missing?region=us-east-1"},
    "bucket of direct writes": {"PROMLAKE_STORE": "s3://promlake-missing?region=us-east-1", "PROMLAKE_INGEST_MODE": "direct"},
}


@pytest.fixture(
    params=[("ingest", "tokens"), ("ingest", "queue"), ("ingest", "bucket of direct writes"), ("query", "tokens"), ("query", "bucket")]
)
def broken(request: pytest.FixtureRequest, quiet: Stack) -> Iterator[str]:
    """A function without something that it needs."""
    function, missing = request.param
    before = quiet.variables(function)
    quiet.set(function, **MISSING[missing])
    yield function
    quiet.set(function, **{name: before.get(name) for name in MISSING[missing]})


def test_an_outage_is_a_server_error(quiet: Stack, broken: str) -> None:
    token = quiet.description["tokens"]["team-a"]
    gateway = Door(quiet.description["gateway"], token)
    if broken == "ingest":
        replies = [gateway.write([series("lost", [(1_760_000_000_000, 1.0)])])]
    else:
        replies = [door.send("GET", "/api/v1/query?query=up") for door in (gateway, Door(quiet.description["query_url"], token))]
    for reply in replies:
        assert 500 <= reply.status < 600, reply


@pytest.fixture
def patient(quiet: Stack) -> Iterator[Stack]:
    """The stack with a visibility timeout that no test waits for."""
    write = quiet.queue("WriteQueueUrl")
    before = quiet.sqs.get_queue_attributes(QueueUrl=write, AttributeNames=["VisibilityTimeout"])["Attributes"]
    quiet.sqs.set_queue_attributes(QueueUrl=write, Attributes={"VisibilityTimeout": "3600"})
    yield quiet
    quiet.sqs.set_queue_attributes(QueueUrl=write, Attributes=before)


def test_a_failed_flush_gives_its_messages_back(patient: Stack) -> None:
    """They do not wait for the visibility timeout."""
    store = patient.variables("flush")["PROMLAKE_STORE"]
    patient.set("flush", **MISSING["bucket"])
    door = Door(patient.description["gateway"], patient.description["tokens"]["team-a"])
    failures = patient.log("flush").count("messages failed")
    assert door.write([series("returned", [(1_760_000_000_000, 1.0)])]).status == 204
    wait_until(lambda: patient.log("flush").count("messages failed") > failures + 1, "the message to fail twice")
    patient.set("flush", PROMLAKE_STORE=store)
    wait_until(lambda: patient.waiting("WriteQueueUrl") == 0, "the message to be stored")
    assert patient.waiting("DeadLetterQueueUrl") == 0
