"""Whatever a function needs and does not find, its answer is 5xx at each entrance, which the alarms of the stack watch."""

from collections.abc import Iterator

import pytest
from stack.doors import Door
from stack.running import Stack
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
