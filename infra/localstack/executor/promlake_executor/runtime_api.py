"""The API that AWS Lambda offers to the process of a function, as an HTTP server for one process.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
Extensions API, of which a process registers itself to be sent SIGTERM: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
"""

import contextlib
import http.server
import json
import queue
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from .answers import HTTP_INTEGRATION, MAX_PAYLOAD_BYTES, MAX_STREAM_BYTES, Answer, failed, gathered, too_large

RUNTIME = "/2018-06-01/runtime"
EXTENSION = "/2020-01-01/extension"


@dataclass(frozen=True)
class Invocation:
    """One event on its way through a process. The answer is set exactly once."""

    request_id: str
    payload: bytes
    function_arn: str
    trace_id: str
    timeout: float  # seconds from the moment at which the process takes it
    answer: "Future[Answer]" = field(default_factory=Future)

    def settle(self, answer: Answer) -> None:
        """Sets the answer, unless there is one."""
        with contextlib.suppress(InvalidStateError):
            self.answer.set_result(answer)


class RuntimeAPI:
    """Hands invocations to one process and takes its answers. It never outlives the process, so no event can reach a dead one.

    Attributes:
        ready: set when the process asked for its first event, or failed with what is wrong as an exception.
        wants_sigterm: whether the process registered an extension, without which AWS ends it by SIGKILL.
    """

    def __init__(self) -> None:
        self.ready: Future[None] = Future()
        self.wants_sigterm = False
        self._events: queue.Queue[Invocation | None] = queue.Queue()
        self._running: dict[str, Invocation] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._reason = ""
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """The value of AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def invoke(self, invocation: Invocation) -> None:
        """Queues an invocation for the process."""
        with self._lock:
            self._running[invocation.request_id] = invocation
            over, reason = self._over.is_set(), self._reason
        if over:
            invocation.settle(failed("Runtime.ExitError", f"RequestId: {invocation.request_id} Error: {reason}"))
            return
        self._events.put(invocation)

    def next(self) -> Invocation | None:
        """Waits for an invocation; None when there will be none."""
        if not self.ready.done():
            self.ready.set_result(None)
        return None if self._over.is_set() else self._events.get()

    def finish(self, request_id: str, answer: Answer) -> bool:
        """Answers an invocation. Says whether it was waited for."""
        with self._lock:
            invocation = self._running.pop(request_id, None)
        if invocation is None:
            return False
        invocation.settle(answer)
        return True

    def forget(self, request_id: str) -> None:
        """Gives up an invocation: its answer may come, but nobody will want it."""
        with self._lock:
            self._running.pop(request_id, None)

    def close(self, reason: str) -> None:
        """Ends everything, when the process is gone. What it was asked and has not answered fails with the reason."""
        with self._lock:
            self._reason = self._reason or reason
            self._over.set()
            left, self._running = self._running, {}
        if not self.ready.done():
            self.ready.set_exception(RuntimeError(self._reason))
        for request_id, invocation in left.items():
            invocation.settle(failed("Runtime.ExitError", f"RequestId: {request_id} Error: {self._reason}"))
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()

    def fail_init(self, error: bytes) -> None:
        """Takes the error with which a process gave up before its first event."""
        with self._lock:
            self._reason = error.decode(errors="replace")

    def wait_until_over(self) -> None:
        """Blocks until close."""
        self._over.wait()


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the process."""

    api: RuntimeAPI
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one write for the header and the body

    def log_message(self, *_: object) -> None:
        """Says nothing of requests."""

    def do_GET(self) -> None:
        if self.path == RUNTIME + "/invocation/next":
            self._next()
        elif self.path == EXTENSION + "/event/next":
            self.api.wait_until_over()  # it registered for no events
            self.close_connection = True
        else:
            self._reply(404)

    def do_POST(self) -> None:
        try:
            body = self._body()
        except ValueError as e:
            self.close_connection = True
            self._reply(413, json.dumps({"errorMessage": str(e)}).encode())
            return
        if self.path == EXTENSION + "/register":
            self.api.wants_sigterm = True
            self._reply(200, b"{}", {"Lambda-Extension-Identifier": str(uuid.uuid4())})
        elif self.path == RUNTIME + "/init/error":
            self.api.fail_init(body)
            self._reply(202, b"{}")
        else:
            self._invocation(body)

    def _next(self) -> None:
        invocation = self.api.next()
        if invocation is None:
            self.close_connection = True
            return
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + invocation.timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Lambda-Runtime-Trace-Id": invocation.trace_id,
        }
        self._reply(200, invocation.payload, headers)

    def _invocation(self, body: bytes) -> None:
        prefix, _, rest = self.path.partition("/invocation/")
        request_id, _, what = rest.partition("/")
        if prefix != RUNTIME or what not in ("response", "error"):
            self._reply(404)
            return
        answer = Answer(body, is_error=True) if what == "error" else self._answer(body)
        if not self.api.finish(request_id, answer):
            self._reply(400, b'{"errorType":"InvalidRequestID"}')
        elif answer.is_error and what == "response":
            self._reply(413, answer.payload)
        else:
            self._reply(202, b'{"status":"OK"}')

    def _answer(self, body: bytes) -> Answer:
        if kind := self.trailers.get("lambda-runtime-function-error-type"):
            return failed(kind, "The function failed while it streamed its answer.")
        if self.headers.get("Content-Type") == HTTP_INTEGRATION:
            return gathered(body)
        if self.headers.get("Lambda-Runtime-Function-Response-Mode", "").lower() != "streaming" and len(body) > MAX_PAYLOAD_BYTES:
            return too_large(len(body))
        return Answer(body, is_error=False)

    def _body(self) -> bytes:
        """Reads the body and the trailers. Raises ValueError above MAX_STREAM_BYTES."""
        self.trailers: dict[str, str] = {}
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            _check_stream(length)
            return self.rfile.read(length)
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            _check_stream(len(body) + size)
            body += self.rfile.read(size)
            self.rfile.readline()
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            if value.strip():
                self.trailers[name.strip().lower()] = value.strip()
        return bytes(body)

    def _reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        with contextlib.suppress(ConnectionError):  # it was killed meanwhile
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()


def _check_stream(length: int) -> None:
    if length > MAX_STREAM_BYTES:
        raise ValueError(f"an answer above {MAX_STREAM_BYTES} bytes, the most that can be streamed")
