"""Debian's Alertmanager, and what receives notifications."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.programs import Process, Programs, free_port


class Receiver:
    """An HTTP server that keeps the JSON of each POST. It answers while it is open, and may pass requests on before it does."""

    def __init__(self, url: str, forward: str | None) -> None:
        self.url = url
        self.arrived = 0
        """The number of requests, also of those that have no answer yet."""
        self._forward, self._documents = forward, list[Any]()
        self._open, self._lock = threading.Event(), threading.Lock()
        self._open.set()

    def close(self) -> None:
        """Lets requests wait for their answers until open."""
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def documents(self) -> list[Any]:
        """Returns what was posted and answered, in the order of the answers."""
        with self._lock:
            return list(self._documents)

    def post(self, path: str, body: bytes) -> None:
        with self._lock:
            self.arrived += 1
        self._open.wait()
        if self._forward:
            request = urllib.request.Request(self._forward + path, body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=300).close()
        with self._lock:
            self._documents.append(json.loads(body))


@contextmanager
def receiving(forward: str | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.post(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is inherited
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}", forward)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.open()
        server.shutdown()
        thread.join()
        server.server_close()


# The folder of templates in Debian's program, which is not there if the package is only unpacked, and
# one in the working directory that is as long.
_PACKAGED = b"/usr/share/prometheus/alertmanager"
_HERE = b"./" * 16 + b"am"
assert len(_PACKAGED) == len(_HERE)


def _unpacked(program: Path, directory: Path) -> Path:
    """Returns a copy of the program that finds its templates in the directory, which is its working directory."""
    (directory / "am").symlink_to(program.parents[1] / "share/prometheus/alertmanager")
    copy = directory / program.name
    content = program.read_bytes()
    assert _PACKAGED in content
    copy.write_bytes(content.replace(_PACKAGED, _HERE))
    copy.chmod(0o755)
    return copy


class Alertmanager:
    """An Alertmanager that sends each alert to a webhook as soon as it changes."""

    def __init__(self, programs: Programs, directory: Path, webhook: str) -> None:
        directory.mkdir(parents=True)
        port, config = free_port(), directory / "alertmanager.yml"
        self.url = f"http://127.0.0.1:{port}"
        route = {"receiver": "hook", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s", "repeat_interval": "4h"}
        config.write_text(
            json.dumps({"route": route, "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}]})
        )
        self.process = Process(
            [
                _unpacked(programs.alertmanager, directory), f"--config.file={config}", f"--storage.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=", "--log.level=debug",
            ],
            directory,
        )  # fmt: skip
        self.process.wait_until(self._ready, "Alertmanager")

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=300) as response:
                return response.status == 200
        except OSError:
            return False

    def alerts(self) -> list[dict[str, Any]]:
        """Returns the alerts that are active."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=300) as response:
            return json.load(response)
