#!/usr/bin/env python3
"""A function that does what its events say, and speaks the Runtime API with nothing but the standard library."""

import http.client
import json
import os
import signal
import sys
import threading
import time

API = os.environ["AWS_LAMBDA_RUNTIME_API"]
RUNTIME = "/2018-06-01/runtime/invocation"
EXTENSION = "/2020-01-01/extension"
STREAM = {"Content-Type": "application/vnd.awslambda.http-integration-response", "Lambda-Runtime-Function-Response-Mode": "streaming"}


def register() -> None:
    """Asks for SIGTERM, as aws-lambda-go does, with a request that waits for ever for events that it did not register for."""
    client = http.client.HTTPConnection(API)
    client.request("POST", EXTENSION + "/register", b'{"events":[]}', {"Lambda-Extension-Name": "test"})
    response = client.getresponse()
    response.read()
    client.request(
        "GET", EXTENSION + "/event/next", headers={"Lambda-Extension-Identifier": response.headers["Lambda-Extension-Identifier"]}
    )
    threading.Thread(target=lambda: client.getresponse(), daemon=True).start()


def on_sigterm(*_: object) -> None:
    print("told to end", flush=True)
    os._exit(0)


def work(event: dict[str, object], deadline_ms: int) -> bytes:
    match event.get("do"):
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(int(str(event["code"])))
        case "sleep":
            time.sleep(float(str(event["seconds"])))
        case "large":
            return b"x" * int(str(event["bytes"]))
        case "print":
            print(event["text"], flush=True)
        case "env":
            return json.dumps(dict(os.environ)).encode()
    left = deadline_ms / 1000 - time.time()
    return json.dumps({"pid": os.getpid(), "seconds_left": left, "event": event}).encode()


def main() -> None:
    if os.environ.get("FAIL_INIT"):
        sys.exit("no way")
    if os.environ.get("WITH_SIGTERM"):
        register()
        signal.signal(signal.SIGTERM, on_sigterm)
    client = http.client.HTTPConnection(API)
    while True:
        client.request("GET", RUNTIME + "/next")
        response = client.getresponse()
        event, request_id = json.loads(response.read()), response.headers["Lambda-Runtime-Aws-Request-Id"]
        path, headers, trailer = f"{RUNTIME}/{request_id}/response", {}, b""
        if event.get("do") == "fail":
            path, body = f"{RUNTIME}/{request_id}/error", b'{"errorType":"Mine","errorMessage":"as told"}'
        elif event.get("do") == "stream":
            body = json.dumps({"statusCode": 201, "headers": {"X-Its": "streamed"}}).encode() + b"\0" * 8 + bytes(range(256))
            headers = STREAM
            trailer = b"Lambda-Runtime-Function-Error-Type: Broken\r\n" if event.get("break") else b""
        else:
            body = work(event, int(response.headers["Lambda-Runtime-Deadline-Ms"]))
        client.putrequest("POST", path)
        for name, value in headers.items():
            client.putheader(name, value)
        client.putheader("Transfer-Encoding", "chunked")
        client.endheaders()
        for chunk in (body[:5], body[5:]):
            if chunk:
                client.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        client.send(b"0\r\n" + trailer + b"\r\n")
        client.getresponse().read()


main()
