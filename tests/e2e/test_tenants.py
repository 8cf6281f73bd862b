import time

import pytest
from promlake import PromlakeError
from support.questions import vector
from support.remote_write import series
from support.server import Server

NOW_MS = int(time.time() * 1000)


def write(server: Server, tenant: str | None, name: str, value: float) -> None:
    assert server.sender(tenant).write(series(name, [(NOW_MS, value)], owner=str(tenant))).status == 204


def test_tenants_see_their_own(server: Server) -> None:
    write(server, "a", "shared", 1)
    write(server, "b", "shared", 2)
    write(server, "b", "only_b", 3)
    write(server, None, "shared", 4)

    for tenant, value, names in (("a", 1, ["shared"]), ("b", 2, ["only_b", "shared"]), (None, 4, ["shared"]), ("anonymous", 4, ["shared"])):
        client = server.client(tenant)
        assert [s.value for s in vector(client, "shared", NOW_MS / 1000).samples] == [value]
        assert client.label_values("__name__") == names
        assert [s["__name__"] for s in client.series('{__name__=~".+"}')] == names
        assert len(client.label_values("owner")) == 1
    assert vector(server.client("c"), "shared", NOW_MS / 1000).samples == ()


def test_tenants_are_apart_in_the_store(server: Server) -> None:
    write(server, "a", "shared", 1)
    write(server, None, "shared", 1)
    assert sorted(p.name for p in (server.store.directory / "v1").iterdir()) == ["a", "anonymous"]


@pytest.mark.parametrize("tenant", ["..", "a/b", "x" * 151])
def test_invalid_tenants(server: Server, tenant: str) -> None:
    answer = server.sender(tenant).write(series("shared", [(NOW_MS, 1)]))
    assert answer.status == 400
    assert "tenant" in answer.text
    with pytest.raises(PromlakeError) as e:
        server.client(tenant).query("shared")
    assert (e.value.status, e.value.error_type) == (400, "bad_data")
