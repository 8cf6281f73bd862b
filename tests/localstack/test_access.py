"""Tokens grant exactly their access, through the gateway and through the function's own URL."""

import pytest
from stack.doors import Door, Reply
from stack.running import Stack
from support.remote_write import series

DOORS = ("gateway", "query_url")
NOBODY = "pl_" + "A" * 43


def query(stack: Stack, door: str, token: str | None, tenant: str | None = None) -> Reply:
    return Door(stack.description[door], token, tenant).send("GET", "/api/v1/query?query=vector(1)")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("token", [None, NOBODY])
def test_without_a_token_nobody_reads(stack: Stack, door: str, token: str | None) -> None:
    reply = query(stack, door, token)
    assert reply.status == 401
    assert "www-authenticate" in reply.headers


@pytest.mark.parametrize("door", DOORS)
def test_a_token_reads_its_own_tenant(stack: Stack, door: str) -> None:
    token = stack.description["tokens"]["team-a"]
    assert query(stack, door, token).status == 200
    assert query(stack, door, token, "team-a").status == 200
    assert query(stack, door, token, "anonymous").status == 403


@pytest.mark.parametrize("door", DOORS)
def test_a_token_for_any_tenant(stack: Stack, door: str) -> None:
    assert query(stack, door, stack.description["tokens"]["*"], "anybody").status == 200


@pytest.mark.parametrize(
    ("token", "tenant", "status"), [(None, None, 401), (NOBODY, None, 401), ("team-a", "anonymous", 403), ("team-a", "team-a", 204)]
)
def test_write_access(stack: Stack, token: str | None, tenant: str | None, status: int) -> None:
    door = Door(stack.description["gateway"], stack.description["tokens"].get(token, token), tenant)
    assert door.write([series("allowed", [(1_760_000_000_000, 1.0)])]).status == status


@pytest.mark.parametrize("door", DOORS)
def test_health_is_for_everybody(stack: Stack, door: str) -> None:
    assert Door(stack.description[door]).send("GET", "/-/healthy").status == 200
