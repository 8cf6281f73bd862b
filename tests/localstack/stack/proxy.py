"""A proxy between the functions and AWS that records their requests, and kills their processes at requests that a test names."""

import contextlib
import http.client
import http.server
import json
import os
import signal
import sys
import threading
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection", "expect"}
TIMEOUT = 60.0

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Request:
    """A request of a function."""

    function: str  # full name, "" for other clients
    operation: str  # as AWS names it
    key: str  # of an object in its bucket; of a queue, its name
    body: bytes = field(repr=False)

    @property
    def changes(self) -> bool:
        """Reports whether the request changes state that another request could read."""
        return self.operation.startswith(("Put", "Send", "Delete", "Create", "Complete", "Upload", "Copy"))

    def names(self, word: str) -> bool:
        """Reports whether the request's key or body has a word, such as a tenant."""
        return word in self.key or word.encode() in self.body


@dataclass(frozen=True)
class Death:
    """A process was killed at a request: before it was passed on, or before its answer was."""

    request: Request
    when: str

    def __str__(self) -> str:
        return f"{self.when} {self.request.operation}"


class Deaths:
    """Kills a function at each of its changes in turn: its first process before its first change, its second one after that, and so on.

    Between two deaths the function tries again in a new process. Once a process has fewer changes to make than are due, it lives. On a busy
    machine a queue may deliver again while a process is at work, so there may be two at once: the changes of each count by themselves.

    Only changes that name a word count, all of them if the word is empty.
    """

    def __init__(self, function: str, word: str) -> None:
        self.function, self.word = function, word
        self.list: list[Death] = []
        self._changes = Counter[int]()  # by process

    def strikes(self, request: Request, pid: int) -> str | None:
        """Returns when to kill the process for this request, if at all."""
        if request.function != self.function or not request.changes or not request.names(self.word):
            return None
        self._changes[pid] += 1
        nth, after = divmod(len(self.list), 2)
        if self._changes[pid] != nth + 1:
            return None
        when = AFTER if after else BEFORE
        self.list.append(Death(request, when))
        return when


class _Server(http.server.ThreadingHTTPServer):
    """Ignores connections that end because a process was killed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Proxy:
    """Listens from its construction. It finds the process of a connection through the pid files in the functions' folder."""

    def __init__(self, upstream_port: int, functions: Path) -> None:
        self.upstream_port, self.functions = upstream_port, functions
        self._lock = threading.Lock()
        self._deaths: Deaths | None = None
        self._seen: list[Request] = []
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextlib.contextmanager
    def killing(self, function: str, word: str = "") -> Iterator[Deaths]:
        """Kills a function repeatedly, at changes that name a word, while the context is active."""
        deaths = Deaths(function, word)
        with self._lock:
            self._deaths = deaths
        try:
            yield deaths
        finally:
            with self._lock:
                self._deaths = None

    def seen(self) -> list[Request]:
        """Returns the requests so far, in the order of their arrival."""
        with self._lock:
            return list(self._seen)

    def note(self, request: Request, pid: int) -> str | None:
        """Records a request, and returns when to kill its process: before, after or never."""
        with self._lock:
            self._seen.append(request)
            return self._deaths.strikes(request, pid) if self._deaths else None

    def owner(self, port: int) -> tuple[str, int]:
        """Returns the function and the process that a connection from a port belongs to."""
        socket = f"socket:[{_inode(port, self.port)}]"
        for file in self.functions.glob("*/*.pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(file.read_text())
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        if os.readlink(descriptor) == socket:  # noqa: PTH115 (not a path)
                            return file.parent.name, pid
        return "", 0


def _inode(local: int, remote: int) -> str:
    """Returns the inode of an established connection of this machine from one port to another, "" if there is none."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if [int(a.rpartition(":")[2], 16) for a in fields[1:3]] == [local, remote]:
            return fields[9]
    return ""


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a function."""

    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.function, self.pid = self.proxy.owner(self.client_address[1])

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # it was killed
            super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        raw = self._body()
        if raw is None:  # the sender was killed within the body: AWS ignores an incomplete body
            self.close_connection = True
            return
        request = Request(self.function, *describe(self.command, self.path, self.headers.get("X-Amz-Target", ""), raw), raw)
        death = self.proxy.note(request, self.pid)
        if death == BEFORE:
            self._kill()
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP | {"content-length"}}
        if raw or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(raw))
        # A new connection for each request, because LocalStack may close an idle one just when it
        # is reused.
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.upstream_port, timeout=TIMEOUT)
        with contextlib.closing(upstream):
            upstream.request(self.command, self.path, raw or None, headers)
            response = upstream.getresponse()
            body = response.read()
        if death == AFTER:
            self._kill()
            return
        self._reply(response, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # another request killed it first
            os.kill(self.pid, signal.SIGKILL)
        self.close_connection = True

    def _body(self) -> bytes | None:
        """Returns the body, None if it is incomplete."""
        if "100-continue" in self.headers.get("Expect", ""):
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            size = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(size)
            return raw if len(raw) == size else None
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0] or b"-1", 16):
            chunk = self.rfile.read(size) if size > 0 else b""
            if len(chunk) != size:
                return None
            body += chunk
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return bytes(body)

    def _reply(self, response: http.client.HTTPResponse, body: bytes) -> None:
        length = response.headers.get("Content-Length") if self.command == "HEAD" else str(len(body))
        self.send_response_only(response.status, response.reason)
        for name, value in response.headers.items():
            if name.lower() not in HOP_BY_HOP | {"content-length"}:
                self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


OBJECTS = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject", "POST": "PostObject"}


def describe(method: str, path: str, target: str, body: bytes) -> tuple[str, str]:
    """Returns the operation of a request and its object or queue."""
    if target:
        _, _, operation = target.rpartition(".")
        return operation, _queue(body)
    url = urllib.parse.urlsplit(path)
    query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
    _, _, key = urllib.parse.unquote(url.path).lstrip("/").partition("/")
    if "list-type" in query:
        return "ListObjectsV2", query.get("prefix", [""])[0]
    if "uploads" in query:
        return "CreateMultipartUpload", key
    if "uploadId" in query:
        return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}.get(method, "ListParts"), key
    if "delete" in query:
        return "DeleteObjects", key
    return OBJECTS[method], key


def _queue(body: bytes) -> str:
    """Returns the name of the queue that a JSON document names, "" if there is none."""
    return json.loads(body or b"{}").get("QueueUrl", "").rpartition("/")[2]
