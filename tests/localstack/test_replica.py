"""A function keeps a replica of the bucket in another one, from which a server answers."""

import json
import secrets
from datetime import UTC, datetime

from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

START = 1_760_000_400_000
SECONDS = 300.0


def test_replica(quiet: Stack) -> None:
    """After each tick the replica answers as the bucket, and its recovery point is later than all that was stored before.

    The plan function stands for the function replicate, which is compact-fn, too.
    """
    tenant = replica = f"replica-{secrets.token_hex(4)}"
    store = f"s3://{replica}?region={quiet.description['region']}"
    quiet.s3.create_bucket(Bucket=replica)
    door = quiet.doors(tenant)["gateway"]
    quiet.set("plan", PROMLAKE_REPLICA_STORE=store)
    try:
        for n in range(3):
            at = START + n * 15_000
            assert door.write([series("m", [(at, float(n))], job="api")]).status == 204
            wait_until(lambda at=at: door.samples("m", at - 1, at) != {}, "the sample", SECONDS)
            stored = datetime.now(UTC).replace(microsecond=0)
            assert quiet.tick()["error"] is None
            query = ("--tenant", tenant, "--time", str(at // 1000), "m[10m]")
            answer = quiet.promlake("query", "--store", store, *query)
            assert answer == quiet.promlake("query", "--store", quiet.store(), *query)
            assert "m{" in answer
            point = json.loads(quiet.s3.get_object(Bucket=replica, Key="promlake-follow.json")["Body"].read())
            assert datetime.fromisoformat(point["recovery_point"]) >= stored
        quiet.promlake("inspect", "--store", store)  # it opens every live object
        quiet.s3.put_object(Bucket=replica, Key="store.json", Body=b"{}")  # as a server does that runs over the replica
        failed = quiet.tick()
        assert b"somebody else writes to the destination" in failed["payload"]
    finally:
        quiet.set("plan", PROMLAKE_REPLICA_STORE=None)
