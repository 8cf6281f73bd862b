"""A stage keeps its parameters, and `make deploy` deletes nothing that it was not told to delete."""

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from stack.running import KEYS, Stack
from support.programs import ROOT

STAGE = "kept"
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def make(stack: Stack) -> Iterator[Make]:
    """Runs make for another stage of the running LocalStack, without a terminal, and removes the stage in the end."""
    env = os.environ | KEYS | {"AWS_REGION": stack.description["region"]}

    def make(target: str, *variables: str) -> subprocess.CompletedProcess[str]:
        line = ["make", target, f"STAGE={STAGE}", f"AWS_ENDPOINT_URL={stack.description['endpoint']}", *variables]
        return subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, check=False)

    yield make
    done = make("remove")
    assert done.returncode == 0, done.stdout + done.stderr


def test_parameters_are_kept(stack: Stack, make: Make) -> None:
    done = make("deploy", "PARAMS=rules=on retention=90d batch-seconds=1")
    assert done.returncode == 0, done.stdout + done.stderr
    done = make("deploy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'deploy: parameters of promlake-kept: rules="on" retention="90d" batch-seconds="1"' in done.stdout
    assert "deploy: changes" not in done.stdout

    def variable(function: str, name: str) -> str:
        return stack.functions.get_function_configuration(FunctionName=f"promlake-{STAGE}-{function}")["Environment"]["Variables"][name]

    assert variable("plan", "PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD") == "90d"
    assert variable("rules", "PROMLAKE_RULER_SCHEDULED") == "true"

    refused = make("deploy", "PARAMS=retention=1d rules=off", "YES=1")
    assert refused.returncode != 0
    assert "samples are deleted after 1d, not 90d" in refused.stderr
    assert "rules=off deletes the function and the queue of rules" in refused.stderr
    assert "ALLOW_DELETION=1" in refused.stderr
    refused = make("deploy", "PARAMS=batch-seconds=2")
    assert refused.returncode != 0
    assert "YES=1" in refused.stderr
    assert variable("plan", "PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD") == "90d"
