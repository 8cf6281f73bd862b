"""`make deploy` and `make remove` report the state of a stack from CloudFormation, not from the tool that deployed it."""

import os
import subprocess
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.programs import ROOT, Programs

OUTPUTS = {
    "WriteUrl": "https://api.example/api/v1/write",
    "WriteFunctionUrl": "https://ingest.example/api/v1/write",
    "PrometheusUrl": "https://api.example",
    "QueryLambdaFunctionUrl": "https://url.example/",
    "BucketName": "promlake-test-bucket",
    "DeadLetterQueueUrl": "https://sqs.example/dead-letter",
}
NAMESPACE = "http://cloudformation.amazonaws.com/doc/2010-05-15/"

Ask = Callable[..., subprocess.CompletedProcess[str]]


class CloudFormation(ThreadingHTTPServer):
    """A CloudFormation with one stack, or none."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status: str | None = "UPDATE_COMPLETE"
        self.outputs = dict(OUTPUTS)
        self.resources = {"QueryLambdaFunction": "CREATE_COMPLETE", "Bucket": "UPDATE_COMPLETE"}

    def answer(self, action: str) -> tuple[int, str]:
        if self.status is None:
            message = "<Code>ValidationError</Code><Message>Stack with id promlake-test does not exist</Message>"
            return 400, f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type>{message}</Error></ErrorResponse>'
        body = {"DescribeStacks": self._stack, "ListStackResources": self._resources}[action]()
        return 200, f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{body}</{action}Result></{action}Response>'

    def _stack(self) -> str:
        outputs = "".join(f"<member><OutputKey>{k}</OutputKey><OutputValue>{v}</OutputValue></member>" for k, v in self.outputs.items())
        status = f"<StackName>promlake-test</StackName><StackStatus>{self.status}</StackStatus>"
        return f"<Stacks><member>{status}<Outputs>{outputs}</Outputs></member></Stacks>"

    def _resources(self) -> str:
        members = "".join(
            f"<member><LogicalResourceId>{name}</LogicalResourceId><ResourceStatus>{status}</ResourceStatus></member>"
            for name, status in self.resources.items()
        )
        return f"<StackResourceSummaries>{members}</StackResourceSummaries>"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        assert isinstance(self.server, CloudFormation)
        code, body = self.server.answer(form["Action"][0])
        self.send_response(code)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
        """Logs nothing."""


@pytest.fixture
def cloud() -> Iterator[CloudFormation]:
    with CloudFormation() as cloud:
        thread = threading.Thread(target=cloud.serve_forever)
        thread.start()
        yield cloud
        cloud.shutdown()
        thread.join()


@pytest.fixture
def ask(cloud: CloudFormation, programs: Programs) -> Ask:  # noqa: ARG001 (Node's packages come with them)
    def ask(command: str, *args: str) -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{cloud.server_port}"
        env = os.environ | {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
        line = ["node", ROOT / "infra/stack.js", command, "promlake-test", "us-east-1", *args]
        return subprocess.run(line, env=env, capture_output=True, text=True, timeout=300, check=False)

    return ask


def test_a_complete_stack(ask: Ask) -> None:
    done = ask("whole")
    assert done.returncode == 0, done.stderr
    for value in OUTPUTS.values():
        assert value in done.stdout


def test_a_stack_without_a_url_for_writing(cloud: CloudFormation, ask: Ask) -> None:
    """Mode grouped has none, and the output does not mention it."""
    del cloud.outputs["WriteFunctionUrl"]
    done = ask("whole")
    assert done.returncode == 0, done.stderr
    assert "free of API charges" not in done.stdout
    assert "undefined" not in done.stdout


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_COMPLETE", "ROLLBACK_COMPLETE", "CREATE_FAILED", "UPDATE_IN_PROGRESS"])
def test_an_incomplete_stack(status: str, cloud: CloudFormation, ask: Ask) -> None:
    cloud.status = status
    done = ask("whole")
    assert done.returncode == 1
    assert f"the stack is {status}" in done.stderr


def test_a_function_that_failed(cloud: CloudFormation, ask: Ask) -> None:
    cloud.resources["QueryLambdaFunction"] = "CREATE_FAILED"
    done = ask("whole")
    assert done.returncode == 1
    assert "QueryLambdaFunction is CREATE_FAILED" in done.stderr


def test_no_stack(cloud: CloudFormation, ask: Ask) -> None:
    assert ask("gone").returncode == 1, "it is still there"
    cloud.status = None
    assert ask("gone").returncode == 0
    done = ask("whole")
    assert done.returncode == 1
    assert "there is no stack promlake-test" in done.stderr


def test_an_output(ask: Ask) -> None:
    assert ask("output", "BucketName").stdout == f"{OUTPUTS['BucketName']}\n"
    assert ask("output", "Other").returncode == 1
