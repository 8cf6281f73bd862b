"""Fixtures: the stack on LocalStack, once for all tests."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator

import pytest
from stack.proxy import Proxy
from stack.running import Stack
from support.programs import ROOT, Process, Programs, free_port, wait_until

# No wait for late data, no delay of merges, no cached listings.
AT_ONCE = {
    "PROMLAKE_COMPACTOR_SETTLE_DELAY": "1ms",
    "PROMLAKE_COMPACTOR_WINDOW_DELAY": "1ms",
    "PROMLAKE_COMPACTOR_LATE_DELAY": "1ms",
    "PROMLAKE_COMPACTOR_MIN_PART_SEGMENTS": "2",
}
FRESH = {"PROMLAKE_QUERY_MAX_STALENESS": "0s"}

# Packaging may build the programs.
START_SECONDS = 600.0


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Builds the programs, unless PROMLAKE_E2E_PROGRAMS=ready."""
    if os.environ.get("PROMLAKE_E2E_PROGRAMS") != "ready":
        subprocess.run(["make", "localstack-ready", "peers"], cwd=ROOT, check=True)
    return Programs()


@pytest.fixture(scope="session")
def stack(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:  # noqa: ARG001 (it must be built)
    """What `make localstack` brings up, but with the functions behind a proxy."""
    directory = tmp_path_factory.mktemp("localstack")
    state, port = directory / "state", free_port()
    proxy = Proxy(port, state / "functions")
    command = [ROOT / ".cache/localstack/venv/bin/python", ROOT / "infra/localstack/up.py", "--state", state]
    # A stage of its own, because `make localstack` may run from the same checkout.
    command += ["--stage", "test", "--port", str(port), "--gateway-port", "0"]
    process = Process(command, directory / "up", {"PROMLAKE_EXECUTOR_ENDPOINT": proxy.url})
    ready = state / "stack.json"
    try:
        wait_until(lambda: ready.exists() or not process.running, "the stack", START_SECONDS, process.log)
        assert process.running, process.log()
        yield tuned(Stack(json.loads(ready.read_text()), proxy))
        assert process.terminate() == 0, process.log()
    finally:
        if process.running:
            process.terminate()  # it ends its children
        process.cleanup()
        proxy.close()
        # pytest keeps the folder; remove all but the logs.
        for name in ("tmp", "localstack"):
            shutil.rmtree(state / name, ignore_errors=True)


def tuned(stack: Stack) -> Stack:
    """Removes delays: windows close at once, and failed messages are redelivered at once.

    So is a message that a busy machine flushes for longer than a second, which therefore is never given up.
    """
    settings = {"ingest": {}, "flush": {}, "plan": AT_ONCE, "compact": AT_ONCE, "query": FRESH}
    for function, variables in settings.items():
        stack.set(function, **variables, PROMLAKE_SELF_INTERVAL="5s")
    for queue in ("WriteQueueUrl", "JobQueueUrl"):
        stack.sqs.set_queue_attributes(QueueUrl=stack.queue(queue), Attributes={"VisibilityTimeout": "1"})
    write = stack.queue("WriteQueueUrl")
    policy = stack.sqs.get_queue_attributes(QueueUrl=write, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    patient = json.dumps(json.loads(policy) | {"maxReceiveCount": "1000"})
    stack.sqs.set_queue_attributes(QueueUrl=write, Attributes={"RedrivePolicy": patient})
    return stack


def running(stack: Stack, functions: Iterable[str]) -> set[int]:
    return {pid for function in functions for pid in stack.pids(function)}


@pytest.fixture(scope="session")
def quiet(stack: Stack) -> Iterator[Stack]:
    """The stack without background activity: no schedule, no own metrics of functions, no batch windows.

    It stays so until the end. So files with its tests must come after test_flow.py, which needs all of that.
    """
    events, functions = stack.client("events"), ("ingest", "flush", "plan", "compact", "query")
    rules = [rule["Name"] for rule in events.list_rules()["Rules"]]
    for rule in rules:
        events.disable_rule(Name=rule)
    urls = {function: stack.variables(function).get("PROMLAKE_SELF_URL") for function in functions}
    before = running(stack, functions)
    for function in functions:
        stack.set(function, PROMLAKE_SELF_URL=None)
    # At their end, functions write their own metrics once more.
    wait_until(lambda: not before & running(stack, functions), "the functions' processes to end")
    for mapping in stack.functions.list_event_source_mappings()["EventSourceMappings"]:
        # Only batches this small may have no batch window.
        size = min(mapping["BatchSize"], 10)
        stack.functions.update_event_source_mapping(UUID=mapping["UUID"], BatchSize=size, MaximumBatchingWindowInSeconds=0)
    wait_until(lambda: stack.waiting("WriteQueueUrl") + stack.waiting("JobQueueUrl") == 0, "the queues to be empty")
    yield stack
    for function in functions:
        stack.set(function, PROMLAKE_SELF_URL=urls[function])
    for rule in rules:
        events.enable_rule(Name=rule)
