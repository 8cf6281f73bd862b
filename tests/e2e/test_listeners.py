"""Lines, pickles and events without HTTP: the documentation's senders, and what Python writes in all protocols of pickle."""

import json
import pickle
import re
import shlex
import socket
import struct
import time
from pathlib import Path

from support.documentation import block, page, run_shell
from support.programs import Process, Programs
from support.questions import vector
from support.server import Server, Start
from support.stores import Store
from support.telegraf import report

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
    exec(block("listeners", "import pickle", {"2004": str(port)}), {})  # noqa: S102
    wait_for(server, '{"disk.used", host="web01", path="/"}', 12.5, time.time() + 1)


def test_statsd(start: Start, file_store: Store) -> None:
    server = start(file_store, "--statsd.listen=127.0.0.1:0", "--statsd.flush-interval=50ms")
    with socket.create_connection(address(server, "statsd")) as sender:
        sender.sendall(block("listeners", "jobs.done:1|c").encode())
    wait_for(server, 'jobs_done{queue="mail"}', 3, time.time() + 60)
    wait_for(server, 'request_duration_count{path="/"}', 2, time.time() + 60)


def test_collectd(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> None:
    """Debian's collectd writes with the documentation's lines, which follow those that say where it finds its own files."""
    server = start(file_store, "--graphite.listen=127.0.0.1:0", "--graphite.flush-interval=10ms")
    _, port = address(server, "graphite")
    (host, selector) = re.findall(r"PromQL reads the load of the host `(.*?)` as `(.*?)`", page("listeners"))[0]
    usr = programs.collectd.parents[1]
    own = {
        "BaseDir": tmp_path, "PIDFile": tmp_path / "collectd.pid",
        "PluginDir": usr / "lib/collectd", "TypesDB": usr / "share/collectd/types.db", "Hostname": host,
    }  # fmt: skip
    lines = [f'{name} "{value}"' for name, value in own.items()]
    # The plugin sends when it has 1428 bytes, so there are several readings in a second.
    lines += ["FQDNLookup false", "Interval 0.1", "LoadPlugin load", block("listeners", "LoadPlugin write_graphite", {"2003": str(port)})]
    configuration = tmp_path / "collectd.conf"
    configuration.write_text("\n".join(lines))
    collectd = Process([programs.collectd, "-f", "-C", configuration], tmp_path / "collectd")
    try:
        collectd.wait_until(lambda: len(vector(server.client(), selector).samples) == 1, "collectd's samples")
        assert collectd.terminate() == 0
    finally:
        collectd.cleanup()


def test_the_documentations_lines(start: Start, file_store: Store) -> None:
    """The command of the page takes the lines of the page; the port of each protocol is a free one."""
    command = shlex.split(block("listeners", "promlake serve ").replace("\\\n", " "))
    server = start(file_store, *(re.sub(r":\d+$", ":0", flag) for flag in command[2:]), "--graphite.flush-interval=10ms")
    _, graphite = address(server, "graphite")
    lines = {
        "graphite": block("listeners", "servers.web01.load"),
        "influx": block("listeners", "climate,room=kitchen"),
        "opentsdb": block("listeners", "put sys.cpu.nice"),
    }
    for protocol, text in lines.items():
        with socket.create_connection(address(server, protocol)) as sender:
            sender.sendall(text.encode())
    run_shell(block("listeners", "echo ", {"2003": str(graphite)}))
    values = iter((0.7, 12.5, 20.5, 1, 18))
    for selectors in re.findall(r"PromQL reads (?:it|them) as (`.*?)\.\s", page("listeners"), re.DOTALL):
        for selector in re.findall(r"`(.*?)`", selectors, re.DOTALL):
            wait_for(server, selector, next(values), 1_700_000_000)
    assert next(values, None) is None
    wait_for(server, '{"backup.seconds", host="web01"}', 42, time.time() + 60)


def test_telegraf(programs: Programs, start: Start, file_store: Store, tmp_path: Path) -> None:
    server = start(file_store, "--influx.listen=127.0.0.1:0", "--influx.flush-interval=10ms")
    _, port = address(server, "influx")
    report(programs, block("listeners", "[[outputs.socket_writer]]", {"8089": str(port)}), tmp_path)
    wait_for(server, 'cpu_usage_idle{host="web01"}', 97.5, time.time() + 60)
