"""A double of the server: it gives the answers that a test sets, and records the requests."""

import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    form: list[tuple[str, str]]
    tenant: str | None
    authorization: str | None


@dataclass
class Api:
    """Answers every request in the same way."""

    url: str = ""
    status: int = 200
    body: bytes = b""
    location: str | None = None
    asked: list[Asked] = field(default_factory=list)

    def answers(self, data: Any, **more: Any) -> None:
        self.body = json.dumps({"status": "success", "data": data, **more}).encode()

    def fails(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body


@contextmanager
def serve() -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            self._answer(path, query)

        def do_POST(self) -> None:
            self._answer(self.path, self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, path: str, form: str) -> None:
            asked = Asked(self.command, path, urllib.parse.parse_qsl(form), self.headers["X-Scope-OrgID"], self.headers["Authorization"])
            api.asked.append(asked)
            self.send_response(api.status)
            if api.location is not None:
                self.send_header("Location", api.location)
            self.send_header("Content-Length", str(len(api.body)))
            self.end_headers()
            self.wfile.write(api.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
