"""Functions without a cloud: the Lambda Runtime API for one program, and an SQS queue that keeps what it is sent.

They carry just enough to run the programs as functions do; tests/localstack has the real event sources.
"""

import base64
import hashlib
import itertools
import json
import queue
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from support.programs import Process

ACCOUNT = "000000000000"
SECONDS = 30.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(chunks)

    def answer(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def _serve(handler: type[_Handler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Queue:
    """An SQS queue, FIFO if its name says so. Its messages are kept until they are taken."""

    def __init__(self, name: str) -> None:
        self.name, self.url = name, ""
        self._waiting: list[dict[str, str]] = []
        self._numbers = itertools.count(1)

    def _keep(self, message: dict[str, str]) -> dict[str, str]:
        self._waiting.append(message)
        body = message["MessageBody"]
        return {
            "MessageId": f"message-{next(self._numbers)}",
            "MD5OfMessageBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
        }

    def send(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        if action == "SendMessage":
            return self._keep(request)
        assert action == "SendMessageBatch", action
        return {"Successful": [{"Id": e["Id"], **self._keep(e)} for e in request["Entries"]], "Failed": []}

    def take(self, most: int = 10_000) -> list[dict[str, Any]]:
        """Returns waiting messages as records of an event."""
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        return [self._record(message) for message in taken]

    def _record(self, message: dict[str, str]) -> dict[str, Any]:
        attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000))}
        if "MessageGroupId" in message:
            attributes["MessageGroupId"] = message["MessageGroupId"]
        return {
            "messageId": f"delivery-{next(self._numbers)}",
            "receiptHandle": "handle",
            "body": message["MessageBody"],
            "attributes": attributes,
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}",
            "awsRegion": "us-east-1",
        }


@contextmanager
def serve_queue(name: str) -> Iterator[Queue]:
    kept = Queue(name)

    class Handler(_Handler):
        def do_POST(self) -> None:
            action = self.headers["X-Amz-Target"].removeprefix("AmazonSQS.")
            self.answer(kept.send(action, json.loads(self.body())))

    with _serve(Handler) as address:
        kept.url = f"http://{address}/{ACCOUNT}/{name}"
        yield kept


class Function:
    """A program that runs as a Lambda function, one invocation at a time."""

    def __init__(self) -> None:
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.answers: queue.Queue[tuple[bool, Any]] = queue.Queue()
        self.ended = Event()
        self._numbers = itertools.count(1)

    def invoke(self, event: Any) -> Any:
        """Returns the answer to an event. An error of the function fails the test."""
        self.events.put((f"request-{next(self._numbers)}", event))
        ok, answer = self.answers.get(timeout=SECONDS)
        assert ok, answer
        return answer

    def consume(self, records: list[dict[str, Any]]) -> None:
        """Hands messages over. A failed one fails the test."""
        if records:
            answer = self.invoke({"Records": records})
            assert not (answer and answer["batchItemFailures"]), answer

    def tick(self) -> None:
        """Tells the time, as a rule of EventBridge does."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"version": "0", "id": "tick", "source": "aws.events", "detail-type": "Scheduled Event", "time": at, "detail": {}}
        self.invoke(event | {"account": ACCOUNT, "region": "us-east-1", "resources": ["rule"]})

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Returns the status of a request that comes through an HTTP API."""
        http = {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"}
        request = {"http": http, "requestId": "r", "stage": "$default"}
        event = {"version": "2.0", "routeKey": f"POST {path}", "rawPath": path, "rawQueryString": "", "headers": dict(headers)}
        event |= {"requestContext": request, "body": base64.b64encode(body).decode(), "isBase64Encoded": True}
        return self.invoke(event)["statusCode"]


@contextmanager
def run_function(program: Path, directory: Path, name: str, env: Mapping[str, str]) -> Iterator[Function]:
    function = Function()
    with _serve(_runtime_api(function)) as address:
        lambda_env = {
            "AWS_LAMBDA_RUNTIME_API": address,
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_LAMBDA_LOG_STREAM_NAME": f"{name}/1",
        }
        process = Process([program], directory / name, lambda_env | dict(env))
        try:
            yield function
        finally:
            function.ended.set()
            process.cleanup()


def _runtime_api(function: Function) -> type[_Handler]:
    """Returns what a program finds at AWS_LAMBDA_RUNTIME_API: the next event, places for answers, and its registration for SIGTERM."""

    class Handler(_Handler):
        def do_GET(self) -> None:
            if self.path.endswith("/extension/event/next"):
                function.ended.wait()
                self.close_connection = True
                return
            while not function.ended.is_set():
                try:
                    request, event = function.events.get(timeout=0.2)
                except queue.Empty:
                    continue
                deadline = str(int((time.time() + SECONDS) * 1000))
                arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f"
                runtime = {"Request-Id": request, "Deadline-Ms": deadline, "Invoked-Function-Arn": arn}
                self.answer(event, headers={f"Lambda-Runtime-{'Aws-' if k == 'Request-Id' else ''}{k}": v for k, v in runtime.items()})
                return
            self.close_connection = True

        def do_POST(self) -> None:
            body = self.body()
            if self.path.endswith("/extension/register"):
                self.answer({}, headers={"Lambda-Extension-Identifier": "internal"})
                return
            kind = self.path.rsplit("/", 1)[-1]
            function.answers.put((kind == "response", json.loads(body) if body else None))
            self.answer({"status": "OK"}, 202)

    return Handler
