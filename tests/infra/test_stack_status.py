"""`make deploy` and `make remove` report the state of a stack from CloudFormation, not from the tool that deployed it."""

import os
import re
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
ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/promlake-test/1"
TYPES = {
    "QueryLambdaFunction": "AWS::Lambda::Function",
    "Bucket": "AWS::S3::Bucket",
    "BucketPolicy": "AWS::S3::BucketPolicy",
    "WriteQueue": "AWS::SQS::Queue",
    "DeadLetterQueue": "AWS::SQS::Queue",
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
        self.asked: list[str] = []

    def answer(self, action: str, stack: str) -> tuple[int, str]:
        self.asked.append(stack)
        if self.status is None:
            message = "<Code>ValidationError</Code><Message>Stack with id promlake-test does not exist</Message>"
            return 400, f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type>{message}</Error></ErrorResponse>'
        body = {"DescribeStacks": self._stack, "ListStackResources": self._resources}[action]()
        return 200, f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{body}</{action}Result></{action}Response>'

    def _stack(self) -> str:
        outputs = "".join(f"<member><OutputKey>{k}</OutputKey><OutputValue>{v}</OutputValue></member>" for k, v in self.outputs.items())
        status = f"<StackName>promlake-test</StackName><StackId>{ID}</StackId><StackStatus>{self.status}</StackStatus>"
        return f"<Stacks><member>{status}<Outputs>{outputs}</Outputs></member></Stacks>"

    def _resources(self) -> str:
        members = "".join(
            f"<member><LogicalResourceId>{name}</LogicalResourceId><ResourceStatus>{status}</ResourceStatus>"
            f"<ResourceType>{TYPES[name]}</ResourceType><PhysicalResourceId>physical-{name}</PhysicalResourceId></member>"
            for name, status in self.resources.items()
        )
        return f"<StackResourceSummaries>{members}</StackResourceSummaries>"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        assert isinstance(self.server, CloudFormation)
        code, body = self.server.answer(form["Action"][0], form["StackName"][0])
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
    def ask(command: str, stack: str = "promlake-test") -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{cloud.server_port}"
        env = os.environ | {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
        line = ["node", ROOT / "infra/stack.js", command, stack, "us-east-1"]
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


def test_a_stack_with_a_domain(cloud: CloudFormation, ask: Ask) -> None:
    cloud.outputs["DomainTarget"] = "d-a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
    assert f"DNS record of your domain, which points to {cloud.outputs['DomainTarget']}." in ask("whole").stdout


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
    cloud.status = None
    done = ask("whole")
    assert done.returncode == 1
    assert "there is no stack promlake-test" in done.stderr
    assert ask("id").returncode == 1


def test_a_stack_that_was_not_removed(ask: Ask) -> None:
    assert ask("id").stdout == f"{ID}\n"
    done = ask("gone", stack=ID)
    assert done.returncode == 1
    assert "promlake-test is still there: UPDATE_COMPLETE" in done.stderr


@pytest.mark.parametrize("left", [{"Bucket", "BucketPolicy", "WriteQueue", "DeadLetterQueue"}, {"WriteQueue"}, set()])
def test_a_removed_stack(left: set[str], cloud: CloudFormation, ask: Ask) -> None:
    """Only what CloudFormation has left is named: LocalStack deletes all."""
    cloud.status = "DELETE_COMPLETE"
    cloud.resources = {name: "DELETE_SKIPPED" if name in left else "DELETE_COMPLETE" for name in TYPES}
    done = ask("gone", stack=ID)
    assert done.returncode == 0, done.stderr
    assert set(cloud.asked) == {ID}, "CloudFormation finds no removed stack by its name"
    named = {name for name in TYPES if re.search(rf"physical-{name}\b", done.stdout)}
    assert named == left - {"BucketPolicy"}
