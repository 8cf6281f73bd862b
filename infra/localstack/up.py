"""Runs the stack on this machine: LocalStack, the stack that `make deploy` deploys, and the gateway in place of the HTTP API.

usage: python infra/localstack/up.py [--port 4566] [--gateway-port 9019] [--state FOLDER] [--once]

It requires the interpreter of LocalStack's own environment, which `make localstack` installs. It empties the state folder at the start.
All processes end with this one. When the stack is ready, FOLDER/stack.json holds its addresses.
"""

import argparse
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from cloud import ACCOUNT_KEYS, FUNCTIONS, REGION, Cloud
from processes import Child, StackError, free_port, port_is_free, run, wait_until

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LOOPBACK = "127.0.0.1"
TENANTS = ("anonymous", "team-a")
OWN_TENANT = "promlake"
ANY_TENANT = "*"
RULES_DELAY_SECONDS = 3  # above batch-seconds
PROMLAKE = ROOT / "bin/promlake"
LAMBDA = ROOT / ".cache/bin/lambda"


@dataclasses.dataclass(frozen=True)
class Running:
    """The content of stack.json: the addresses and names of the stack."""

    endpoint: str  # LocalStack's
    region: str
    stage: str
    outputs: dict[str, str]  # of the CloudFormation stack
    functions: dict[str, str]  # full names by short ones
    gateway: str  # URL
    query_url: str  # Function URL of the query function
    tokens: dict[str, str]  # by tenant
    state: str  # folder


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Runs the AWS stack on LocalStack, without Docker.")
    parser.add_argument("--port", type=int, default=4566, help="LocalStack's; a free one if it is taken, or 0 (default 4566)")
    parser.add_argument("--gateway-port", type=int, default=9019, help="the gateway's; likewise (default 9019)")
    parser.add_argument("--state", type=Path, default=ROOT / ".cache/localstack/state", help="folder of logs and of everything that runs")
    parser.add_argument("--stage", default="local", help="stage to deploy (default local)")
    parser.add_argument("--once", action="store_true", help="end as soon as the stack has answered a question")
    return parser.parse_args()


def free(port: int) -> int:
    """Returns the port if it is free, else another one."""
    return port if port and port_is_free(port) else free_port()


class Stack:
    """The processes of the stack. As a context manager, it ends them."""

    def __init__(self, stage: str, port: int, gateway_port: int, state: Path) -> None:
        self._stage, self._state = stage, state.resolve()
        self._port, self._gateway_port = free(port), free(gateway_port)
        self._endpoint = f"http://{LOOPBACK}:{self._port}"
        self._gateway = f"http://{LOOPBACK}:{self._gateway_port}"
        self._cloud = Cloud(self._endpoint, stage)
        self._children: list[Child] = []

    def __enter__(self) -> "Stack":
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            child.stop()

    def start(self) -> Running:
        """Starts everything and returns the addresses."""
        shutil.rmtree(self._state, ignore_errors=True)
        for folder in ("tmp", "functions"):
            (self._state / folder).mkdir(parents=True)
        say("starting LocalStack")
        self._start_localstack()
        tokens = self._make_tokens()
        say(f"building and deploying, which takes a minute or two: {self._state}/deploy.log")
        self._deploy()
        self._start_gateway()
        running = Running(
            endpoint=self._endpoint,
            region=REGION,
            stage=self._stage,
            outputs=self._cloud.outputs(),
            functions={name: self._cloud.function(name) for name in FUNCTIONS},
            gateway=self._gateway,
            query_url=self._cloud.function_url("query"),
            tokens=tokens,
            state=str(self._state),
        )
        wait_until(lambda: answers(f"{self._gateway}/api/v1/query?query=vector(1)", tokens[TENANTS[0]]), "an answer through the gateway")
        self._write(running)
        return running

    def _start_localstack(self) -> None:
        env = {
            "TMPDIR": str(self._state / "tmp"),
            "FILESYSTEM_ROOT": str(self._state / "localstack"),
            "PROMLAKE_EXECUTOR_EMULATOR": str(LAMBDA),
            "PROMLAKE_EXECUTOR_DIR": str(self._state / "functions"),
        }
        child = Child([sys.executable, HERE / "launch.py", str(self._port)], self._state / "localstack.log", env)
        self._children.append(child)
        child.wait_until(lambda: answers(f"{self._endpoint}/_localstack/health"), "LocalStack to be ready")

    def _make_tokens(self) -> dict[str, str]:
        """Makes tokens, and stores the hashes of all and the token for the functions' own metrics as parameters."""
        document = self._state / "tokens.json"
        tokens = {}
        for tenant in (*TENANTS, OWN_TENANT, ANY_TENANT):
            command = [str(PROMLAKE), "token", "--tenant", tenant, "--access", "write,read,admin", "--tokens", str(document)]
            tokens[tenant] = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        self._cloud.put_secret("tokens", document.read_text())
        self._cloud.put_secret("self-token", tokens[OWN_TENANT])
        return tokens

    def _deploy(self) -> None:
        """Deploys as to AWS, with another endpoint and another URL for the functions' own metrics."""
        env = {**ACCOUNT_KEYS, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self._endpoint}
        parameters = f"self-metrics={self._gateway}/api/v1/write batch-seconds=1 rules=on rules-delay={RULES_DELAY_SECONDS}"
        command = ["make", "-C", ROOT, "deploy", f"STAGE={self._stage}", f"AWS_ENDPOINT_URL={self._endpoint}", f"PARAMS={parameters}"]
        run(command, self._state / "deploy.log", env)

    def _start_gateway(self) -> None:
        """Starts the gateway in place of the HTTP API, which LocalStack does not have."""
        command = [LAMBDA, "gateway", "--listen", f"{LOOPBACK}:{self._gateway_port}", "--endpoint", self._endpoint]
        command += ["--region", REGION, *(x for name in ("ingest", "query", "rules") for x in (f"--{name}", self._cloud.function(name)))]
        child = Child(command, self._state / "gateway.log", ACCOUNT_KEYS)
        self._children.append(child)
        child.wait_for_line("listening on ")

    def _write(self, running: Running) -> None:
        """Writes stack.json atomically."""
        new = self._state / "stack.json.new"
        new.write_text(json.dumps(dataclasses.asdict(running), indent=2) + "\n")
        new.rename(self._state / "stack.json")

    def wait(self) -> None:
        """Waits until a process ends, which is an error."""
        wait_until(lambda: not all(child.running for child in self._children), "", seconds=None)
        ended = next(child for child in self._children if not child.running)
        raise StackError(f"{ended.name} has ended; its log is {ended.log}")


def say(text: str) -> None:
    """Prints the progress."""
    print(f"localstack: {text}", file=sys.stderr, flush=True)


def answers(url: str, token: str = "") -> bool:
    """Reports whether a URL answers with status 200."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status == 200
    except OSError:
        return False


def describe(running: Running) -> str:
    """Returns the instructions for a running stack."""
    return f"""
The stack runs; Ctrl-C ends it.

  remote_write  {running.gateway}/api/v1/write
  query         {running.gateway}/api/v1/query?query=up
  Function URL  {running.query_url}
  token         {running.tokens[TENANTS[0]]}   of tenant {TENANTS[0]}; all are in {running.state}/stack.json
  Grafana       data source Prometheus, URL {running.gateway}, method POST, header Authorization: Bearer TOKEN
  AWS           export AWS_ENDPOINT_URL={running.endpoint} AWS_DEFAULT_REGION={REGION} AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
  logs          {running.state}/functions/*.log
"""


def main() -> int:
    """Runs until a signal or until a process ends."""
    args = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with Stack(args.stage, args.port, args.gateway_port, args.state) as stack:
            running = stack.start()
            if args.once:
                say("the stack stands and answers")
                return 0
            print(describe(running), flush=True)
            stack.wait()
    except StackError as e:
        say(str(e))
        return 1
    return 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
