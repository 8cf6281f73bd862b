"""The running stack, its functions and its queues."""

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from support.programs import ROOT, wait_until

from stack.doors import Door
from stack.proxy import Proxy

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@dataclass(frozen=True)
class Stack:
    """The stack of infra/localstack/up.py, with a proxy between the functions and AWS."""

    description: dict[str, Any]
    proxy: Proxy

    @cached_property
    def session(self) -> boto3.Session:
        return boto3.Session(*KEYS.values(), region_name=self.description["region"])

    def client(self, service: str) -> Any:
        return self.session.client(service, endpoint_url=self.description["endpoint"])

    @cached_property
    def functions(self) -> Any:
        return self.client("lambda")

    @cached_property
    def sqs(self) -> Any:
        return self.client("sqs")

    @cached_property
    def s3(self) -> Any:
        return self.client("s3")

    def doors(self, tenant: str) -> dict[str, Door]:
        """Returns the gateway and the query function's own URL, with a token for all tenants and the header of one."""
        token = self.description["tokens"]["*"]
        return {
            "gateway": Door(self.description["gateway"], token, tenant),
            "function URL": Door(self.description["query_url"], token, tenant),
        }

    def name(self, function: str) -> str:
        """Returns the full name of a function."""
        return self.description["functions"][function]

    def pids(self, function: str) -> list[int]:
        """Returns the ids of the living processes of a function."""
        folder = Path(self.description["state"]) / "functions" / self.name(function)
        return [int(file.stem) for file in folder.glob("*.pid")]

    def log(self, function: str) -> str:
        path = Path(self.description["state"]) / "functions" / f"{self.name(function)}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def variables(self, function: str) -> dict[str, str]:
        """Returns the variables of a function."""
        return self.functions.get_function_configuration(FunctionName=self.name(function))["Environment"]["Variables"]

    def set(self, function: str, **variables: str | None) -> None:
        """Changes variables of a function, None removes one. Its processes end, as on AWS."""
        name, now = self.name(function), self.variables(function)
        new = {name: value for name, value in {**now, **variables}.items() if value is not None}
        if new == now:
            return
        self.functions.update_function_configuration(FunctionName=name, Environment={"Variables": new})
        wait_until(lambda: self._updated(name), f"{name} to be updated")

    def _updated(self, name: str) -> bool:
        return self.functions.get_function_configuration(FunctionName=name)["LastUpdateStatus"] == "Successful"

    def end(self, function: str) -> None:
        """Kills the processes of an idle function, so that the next one starts without caches."""
        for pid in self.pids(function):
            with contextlib.suppress(ProcessLookupError):  # it ended by itself, after a change of its variables
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.pids(function), f"the processes of {function} to be gone")

    def tick(self, function: str = "plan", at: datetime | None = None) -> dict[str, Any]:
        """Runs a function as its schedule does, now or as at another time, and returns its answer."""
        time = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {"version": "0", "id": "1", "source": "aws.events", "detail-type": "Scheduled Event", "account": "000000000000"}
        event |= {"time": time, "region": self.description["region"], "resources": [], "detail": {}}
        return self.invoke(function, event)

    def invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        """Invokes a function with an event, and returns its answer."""
        answer = self.functions.invoke(FunctionName=self.name(function), Payload=json.dumps(event))
        return {"error": answer.get("FunctionError"), "payload": answer["Payload"].read()}

    def queue(self, output: str) -> str:
        """Returns the URL of a queue by the name of the stack's output: WriteQueueUrl, DeadLetterQueueUrl or JobQueueUrl."""
        return self.description["outputs"][output]

    def waiting(self, output: str) -> int:
        """Returns the number of messages of a queue, including those in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.queue(output), AttributeNames=names)["Attributes"]
        return sum(int(attributes[name]) for name in names)

    def sent(self) -> list[str]:
        """Returns the bodies of the messages that the ingest function has sent."""
        requests = [r for r in self.proxy.seen() if r.operation.startswith("SendMessage") and r.function == self.name("ingest")]
        documents = [json.loads(r.body) for r in requests]
        return [entry["MessageBody"] for document in documents for entry in document.get("Entries", [document])]

    def keys(self, prefix: str) -> list[str]:
        """Returns the keys of the bucket's objects with a prefix, sorted."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.description["outputs"]["BucketName"], Prefix=prefix)
        return [o["Key"] for page in pages for o in page.get("Contents", [])]

    def promlake(self, *args: str) -> str:
        """Runs a command of promlake, which must succeed, against this AWS."""
        env = {**os.environ, **KEYS, "AWS_REGION": self.description["region"], "AWS_ENDPOINT_URL": self.description["endpoint"]}
        done = subprocess.run([ROOT / "bin/promlake", *args], env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"promlake {args}: {done.stdout}{done.stderr}"
        return done.stdout

    def store(self) -> str:
        """Returns the URL of the store."""
        return f"s3://{self.description['outputs']['BucketName']}?region={self.description['region']}"

    def inspect(self, tenant: str) -> dict[str, Any]:
        """Returns `promlake inspect` of a tenant."""
        (found,) = json.loads(self.promlake("inspect", "--json", "--store", self.store(), "--tenant", tenant))["tenants"]
        return found

    def levels(self, tenant: str) -> dict[str, tuple[int, int]]:
        """Returns the number of live objects and their samples by level."""
        return {x["level"]: (x["objects"], x["samples"]) for x in self.inspect(tenant)["levels"] if x["objects"]}
