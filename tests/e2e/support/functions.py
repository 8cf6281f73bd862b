"""Functions without a cloud: a program in an emulated execution environment, and an SQS queue that keeps its messages.

tests/localstack has the real event sources.
"""

import base64
import hashlib
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from promlake_executor.environment import Environment
from promlake_executor.environment import Function as EmulatedFunction

from support.programs import Programs

ACCOUNT = "000000000000"
SECONDS = 300.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    queue: "Queue"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        action = self.headers["X-Amz-Target"].removeprefix("AmazonSQS.")
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(self.queue.act(action, request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Queue:
    """An SQS queue, standard or FIFO. It keeps its messages until `take`, or until somebody receives and deletes them."""

    def __init__(self, name: str) -> None:
        self.name, self.url = name, ""
        self._waiting: list[dict[str, str]] = []
        self._hidden: dict[str, dict[str, str]] = {}  # by the receipt handle
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._hidden)

    def _keep(self, message: dict[str, str]) -> dict[str, str]:
        self._waiting.append(message)
        body = message["MessageBody"]
        return {
            "MessageId": f"message-{next(self._numbers)}",
            "MD5OfMessageBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
        }

    def act(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        if action == "SendMessage":
            return self._keep(request)
        if action == "ReceiveMessage":
            return {"Messages": [self._hide(m) for m in self._remove(request["MaxNumberOfMessages"])]}
        entries = request["Entries"]
        if action == "SendMessageBatch":
            return {"Successful": [{"Id": e["Id"], **self._keep(e)} for e in entries], "Failed": []}
        assert action in {"DeleteMessageBatch", "ChangeMessageVisibilityBatch"}, action
        received = [self._hidden.pop(e["ReceiptHandle"]) for e in entries]
        if action == "ChangeMessageVisibilityBatch":
            assert all(e["VisibilityTimeout"] == 0 for e in entries)
            self._waiting += received
        return {"Successful": [{"Id": e["Id"]} for e in entries], "Failed": []}

    def _hide(self, message: dict[str, str]) -> dict[str, Any]:
        handle, body = f"handle-{next(self._numbers)}", message["MessageBody"]
        self._hidden[handle] = message
        digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
        return {
            "MessageId": f"id-{digest}",
            "ReceiptHandle": handle,
            "Body": body,
            "MD5OfBody": digest,
            "Attributes": self._attributes(message),
        }

    def take(self, most: int = 10_000) -> list[dict[str, Any]]:
        """Removes waiting messages and returns them as records of an event."""
        return [self._record(message) for message in self._remove(most)]

    def _remove(self, most: int) -> list[dict[str, str]]:
        removed, self._waiting = self._waiting[:most], self._waiting[most:]
        return removed

    def _attributes(self, message: dict[str, str]) -> dict[str, str]:
        attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000))}
        if "MessageGroupId" in message:
            attributes["MessageGroupId"] = message["MessageGroupId"]
        return attributes

    def _record(self, message: dict[str, str]) -> dict[str, Any]:
        return {
            "messageId": f"delivery-{next(self._numbers)}",
            "receiptHandle": "handle",
            "body": message["MessageBody"],
            "attributes": self._attributes(message),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}",
            "awsRegion": "us-east-1",
        }


@contextmanager
def serve_queue(name: str) -> Iterator[Queue]:
    kept = Queue(name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"queue": kept}))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    kept.url = f"http://127.0.0.1:{server.server_address[1]}/{ACCOUNT}/{name}"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()


class Function:
    """A program that runs as a Lambda function, one invocation at a time."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def invoke(self, event: Any) -> Any:
        """Returns the answer to an event. An error of the function fails the test."""
        answer = self._environment.invoke(json.dumps(event).encode())
        assert not answer.is_error, answer.payload
        return json.loads(answer.payload)

    def consume(self, records: list[dict[str, Any]]) -> None:
        """Delivers messages. A failed one fails the test."""
        if records:
            answer = self.invoke({"Records": records})
            assert not (answer and answer["batchItemFailures"]), answer

    def tick(self) -> None:
        """Delivers the event of a schedule."""
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
def run_function(programs: Programs, program: Path, directory: Path, name: str, env: Mapping[str, str]) -> Iterator[Function]:
    environment = Environment(programs.emulator, name, EmulatedFunction(name, program, SECONDS, directory))
    environment.start(env)
    try:
        yield Function(environment)
    finally:
        environment.stop()
