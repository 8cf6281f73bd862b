"""A scrape target whose metrics follow a script, the same for everybody who scrapes it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "text/plain; version=0.0.4"


@dataclass
class Target:
    """An HTTP server that answers scrapes with a text and a status."""

    text: str
    status: int = 200
    kind: str = TEXT
    address: str = ""
    scrapers: set[str] = field(default_factory=set)
    """The user agents that scraped since the last change."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, text: str, status: int = 200) -> None:
        with self._lock:
            self.text, self.status = text, status
            self.scrapers.clear()

    def answer(self, user_agent: str) -> tuple[int, str, bytes]:
        with self._lock:
            self.scrapers.add(user_agent.split("/")[0])
            return self.status, self.kind, self.text.encode()


class Script(Target):
    """A target that gives one answer after another to its only scraper, and then the last one again."""

    def __init__(self, *steps: tuple[str, int], kind: str = TEXT) -> None:
        super().__init__("", kind=kind)
        self.steps, self.scrapes = steps, 0

    def answer(self, user_agent: str) -> tuple[int, str, bytes]:  # noqa: ARG002 the name is inherited
        with self._lock:
            text, status = self.steps[min(self.scrapes, len(self.steps) - 1)]
            self.scrapes += 1
            return status, self.kind, text.encode()


@contextmanager
def serving(target: Target) -> Iterator[Target]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that BaseHTTPRequestHandler calls
            status, kind, body = target.answer(self.headers.get("User-Agent", ""))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is inherited
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    target.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield target
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
