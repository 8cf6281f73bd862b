"""A receiver of notifications, by Alertmanager's API version 2."""

import http.server
import json
import threading
from typing import Any


class Alertmanager:
    """Listens from its construction, and accepts all alerts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alerts: list[dict[str, Any]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"alertmanager": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, alerts: list[dict[str, Any]]) -> None:
        with self._lock:
            self._alerts += alerts

    def alerts(self) -> list[dict[str, Any]]:
        """Returns the alerts so far, in the order of their arrival."""
        with self._lock:
            return list(self._alerts)


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a sender."""

    alertmanager: Alertmanager

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        known = self.path == "/api/v2/alerts"
        if known:
            self.alertmanager.take(json.loads(body))
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()
