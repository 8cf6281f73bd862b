"""A stage keeps its parameters, and `make deploy` deletes nothing that it was not told to delete."""

import os
import subprocess

from stack.running import KEYS, Stack
from support.programs import ROOT

STAGE = "test"


def make(stack: Stack, target: str, *variables: str) -> subprocess.CompletedProcess[str]:
    """Runs make for the stage of the running stack, without a terminal."""
    env = os.environ | KEYS | {"AWS_REGION": stack.description["region"]}
    line = ["make", target, f"STAGE={STAGE}", f"AWS_ENDPOINT_URL={stack.description['endpoint']}", *variables]
    return subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, check=False)


def test_parameters_are_kept(stack: Stack) -> None:
    """The stack was deployed by `make deploy` with PARAMS, for instance rules=on."""
    done = make(stack, "deploy-check")
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"deploy: parameters of promlake-{STAGE}: "))
    assert 'batch-seconds="1" rules="on"' in line
    assert "deploy: changes" not in done.stdout
    kept = (ROOT / "dist" / STAGE / "parameters").read_text().split("\0")
    assert {"batch-seconds=1", "rules=on"} <= set(kept)
    steps = make(stack, "deploy", "--dry-run").stdout
    for script in ("package", "deploy"):
        assert f"xargs -0 -a dist/{STAGE}/parameters infra/{script}.sh {STAGE} " in steps

    refused = make(stack, "deploy", "PARAMS=retention=1d rules=off", "YES=1")
    assert refused.returncode != 0
    assert "samples are deleted after 1d, and were kept for ever" in refused.stderr
    assert "rules=off deletes the function and the queue of rules" in refused.stderr
    assert "ALLOW_DELETION=1" in refused.stderr
    refused = make(stack, "deploy", "PARAMS=batch-seconds=2")
    assert refused.returncode != 0
    assert 'batch-seconds                "1" -> "2"' in refused.stdout
    assert "YES=1" in refused.stderr
    assert stack.functions.get_function_configuration(FunctionName=stack.name("rules"))["State"] == "Active"
