"""The query function divides a range query over invocations of itself, which give the answer of the undivided query."""

import math
import secrets

from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

START = 1_760_000_400_000
DIVIDED = {
    "PROMLAKE_QUERY_WORKERS": "lambda:self",
    "PROMLAKE_QUERY_DIVIDE_INVOCATIONS": "3",
    "PROMLAKE_QUERY_DIVIDE_BYTES": "1",
    "PROMLAKE_QUERY_DIVIDE_WINDOWS": "-1",
}


def test_a_query_divided_over_invocations(quiet: Stack) -> None:
    doors = quiet.doors(f"divided-{secrets.token_hex(4)}")
    times = [START + n * 15_000 for n in range(240)]
    assert doors["gateway"].write([series("m", [(t, math.sin(t + i)) for t in times], i=str(i)) for i in range(3)]).status == 204
    asked = {"query": "sum by (i) (rate(m[5m]))", "start": str(START / 1000), "end": str(times[-1] / 1000), "step": "15"}

    def pieces() -> int:
        return sum(r.function == quiet.name("query") and r.key.endswith("/invocations") for r in quiet.proxy.seen())

    wait_until(lambda: doors["gateway"].samples("m", START - 1, times[-1]) != {}, "the samples")
    want = doors["gateway"].ask("query_range", **asked)
    assert sum(len(s["values"]) for s in want["result"]) > 2 * len(times)
    assert pieces() == 0
    said = len(quiet.log("query"))
    quiet.set("query", **DIVIDED)
    try:
        assert doors["gateway"].ask("explain", **asked)["division"] == "3 slices of its steps, for 3 workers"
        for n, door in enumerate(doors.values()):
            assert door.ask("query_range", **asked) == want
            assert pieces() == 3 * (n + 1)
        assert len(quiet.pids("query")) > 1
        assert "a worker did not answer" not in quiet.log("query")[said:]
    finally:
        quiet.set("query", **dict.fromkeys(DIVIDED))
