"""`make rollback`: when it refuses, and how it ends a canary. tests/localstack/test_versions.py has the way back."""

import json
import os
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from stack_template import REGION
from support.programs import ROOT, Programs


def version(number: int, deployment: str = "a", formats: str = "segment 2, job 1") -> dict[str, str]:
    return {"Version": str(number), "Description": f"deployment {deployment}{number}; {formats}"}


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ([(version(5), version(4)), (version(5), version(4))], None),
        ([(version(5), version(4)), (version(1), None)], "f1 has no version before 1"),
        (
            [(version(5), version(4)), (version(5), version(4, "b"))],
            "the versions before are not of one deployment: deployment a4, deployment b4",
        ),
        (
            [(version(5, formats="segment 3, job 1"), version(4))],
            "the formats of objects and messages differ: segment 3, job 1 now, segment 2",
        ),
        ([({"Version": "2"}, {"Version": "1"})], None),
    ],
)
def test_refusals(functions: list[tuple[dict[str, str], dict[str, str] | None]], reason: str | None, programs: Programs) -> None:  # noqa: ARG001 (Node's packages come with them)
    given = [{"name": f"f{i}", "now": now, "before": before} for i, (now, before) in enumerate(functions)]
    script = "console.log(require('./rollback.js').refusal(JSON.parse(process.argv[1])) ?? '')"
    done = subprocess.run(
        ["node", "-e", script, json.dumps(given)], cwd=ROOT / "infra", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.startswith(reason or "\n"), done.stderr


class Handler(BaseHTTPRequestHandler):
    """CloudFormation with a stack that is being updated, and CodeDeploy with a deployment that runs."""

    running = ["d-1"]  # noqa: RUF012 (tests replace it)
    asked: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if target:
            self.asked.append((target, json.loads(body)))
            groups = {"deploymentGroups": ["ingest", "query"]}
            assert self.asked[-1][1].get("applicationName", "promlake-test-canary") == "promlake-test-canary"
            here = self.running if self.asked[-1][1].get("deploymentGroupName") == "ingest" else []
            self._answer(json.dumps({"ListDeploymentGroups": groups, "ListDeployments": {"deployments": here}}.get(target, {})))
            return
        action = urllib.parse.parse_qs(body)["Action"][0]
        stack = "<Stacks><member><StackName>x</StackName><StackStatus>UPDATE_IN_PROGRESS</StackStatus></member></Stacks>"
        result = f"<{action}Result>{stack}</{action}Result>"
        self._answer(f'<{action}Response xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">{result}</{action}Response>')

    def _answer(self, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
        """Logs nothing."""


@pytest.mark.parametrize(
    ("running", "code", "said"), [(["d-1"], 0, "stopped d-1; CloudFormation restores"), ([], 1, "no canary runs: wait")]
)
def test_it_stops_a_canary(running: list[str], code: int, said: str, programs: Programs) -> None:  # noqa: ARG001
    Handler.running, Handler.asked = running, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = os.environ | {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
        line = ["node", ROOT / "infra/rollback.js", "test", REGION]
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=300, check=False)
        server.shutdown()
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    stopped = [form for action, form in Handler.asked if action == "StopDeployment"]
    assert stopped == [{"deploymentId": d, "autoRollbackEnabled": True} for d in running]
