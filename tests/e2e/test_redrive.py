"""The documentation's lines for dead letters, over queues in this process; tests/localstack has a stack's."""

from pathlib import Path

from support.documentation import block, page, run_shell
from support.functions import run_function, serve_queue
from support.programs import Programs
from support.questions import vector
from support.remote_write import CONTENT_TYPE, compress, encode, series
from support.server import Start
from support.stores import KEYS, Store

DOCUMENTED = "https://sqs.eu-central-1.amazonaws.com/123456789012/promlake-prod-{}"
AT = 1_760_000_400


def operator(directory: Path) -> dict[str, str]:
    """Returns the variables of a shell whose files for AWS have the profile of the documentation's lines."""
    profile = directory / "config"
    keys = {name.lower(): value for name, value in KEYS.items() if name != "AWS_REGION"}
    profile.write_text("\n".join(["[profile operator]", "region = us-east-1", *(f"{k} = {v}" for k, v in keys.items())]))
    return {"AWS_CONFIG_FILE": str(profile), "AWS_SHARED_CREDENTIALS_FILE": str(directory / "none")}


def test_redrive(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> None:
    """A message that a function wrote goes back to its queue, once; one that nobody can read stays until it is discarded."""
    env = {**KEYS, "PROMLAKE_STORE": file_store.url}
    with serve_queue("dead-letter") as dead, serve_queue("write") as write:
        front = env | {"PROMLAKE_INGEST_MODE": "buffered", "PROMLAKE_INGEST_QUEUE_URL": dead.url}
        with run_function(programs, programs.ingest_fn, tmp_path, "ingest", front) as ingest:
            body = compress(encode([series("revived", [(AT * 1000, 2.0)])]))
            assert ingest.post("/api/v1/write", body, {"content-type": CONTENT_TYPE, "content-encoding": "snappy"}) == 204
        dead.act("SendMessage", {"MessageBody": "this is no request"})
        addresses = {DOCUMENTED.format("dead-letter"): dead.url, DOCUMENTED.format("write"): write.url}
        lines = block("remote-write", "AWS_PROFILE=operator promlake redrive", addresses)
        first, second = run_shell(lines, tmp_path, operator(tmp_path)).split("MESSAGE ")[1:]
        assert "moved" not in first
        assert "moved" in second
        assert (len(dead), len(write)) == (1, 1)
        assert "`promlake redrive … --discard-unreadable`" in page("remote-write")
        run_shell(f"{lines.splitlines()[1]} --discard-unreadable", tmp_path, operator(tmp_path))
        assert (len(dead), len(write)) == (0, 1)
        with run_function(programs, programs.ingest_fn, tmp_path, "flush", env | {"PROMLAKE_INGEST_MODE": "direct"}) as flush:
            flush.consume(write.take())
    assert [s.value for s in vector(start(file_store).client(), "revived", AT).samples] == [2]
