"""Lines, pickles and events without HTTP: the documentation's program, and what Python writes in all protocols of pickle."""

import json
import pickle
import re
import socket
import struct
import time

from support.programs import ROOT
from support.questions import vector
from support.server import Server, Start
from support.stores import Store

PATIENCE = 120  # seconds


def address(server: Server, protocol: str) -> tuple[str, int]:
    """Returns where the server listens, from its log."""
    entries = [json.loads(line) for line in server.process.log().splitlines()]
    (at,) = (e["address"] for e in entries if e["msg"] == "accepting lines" and e["protocol"] == protocol)
    host, port = at.rsplit(":", 1)
    return host, int(port)


def wait_for(server: Server, expr: str, value: float, at: float) -> None:
    end = time.monotonic() + PATIENCE
    while (found := [s.value for s in vector(server.client(), expr, at).samples]) != [value]:
        assert time.monotonic() < end, f"{expr} is {found}"
        time.sleep(0.05)


def test_pickles(start: Start, file_store: Store) -> None:
    server = start(file_store, "--graphite.pickle-listen=127.0.0.1:0", "--graphite.flush-interval=10ms")
    host, port = address(server, "graphite-pickle")
    now = int(time.time())
    points = [(f"a.{kind.__name__}", (kind(now), kind(7))) for kind in (int, float, str)]
    with socket.create_connection((host, port)) as carbon:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            message = pickle.dumps([(f"p{protocol}.{path}", point) for path, point in points], protocol)
            carbon.sendall(struct.pack("!L", len(message)) + message)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        wait_for(server, f'sum({{__name__=~"p{protocol}.a.(int|float|str)"}})', 21, now)
    page = (ROOT / "docs/listeners.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(program.replace("127.0.0.1", host).replace("2004", str(port)), {})  # noqa: S102
    wait_for(server, '{"disk.used", host="web01", path="/"}', 12.5, time.time() + 1)


def test_statsd(start: Start, file_store: Store) -> None:
    server = start(file_store, "--statsd.listen=127.0.0.1:0", "--statsd.flush-interval=50ms")
    page = (ROOT / "docs/listeners.md").read_text().split("\n## StatsD\n")[1]
    with socket.create_connection(address(server, "statsd")) as sender:
        sender.sendall(page.split("```\n")[1].encode())
    wait_for(server, 'jobs_done{queue="mail"}', 3, time.time() + 60)
    wait_for(server, 'request_duration_count{path="/"}', 2, time.time() + 60)
