"""A stage with the parameter canary: all triggers invoke an alias, and `make rollback` moves it to the version before.

LocalStack has no CodeDeploy: its CloudFormation ignores what is for it, and the test moves the aliases in its place.
"""

import math
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from stack.doors import Door
from stack.running import KEYS, Stack
from support.programs import ROOT, wait_until
from support.remote_write import series

STAGE = f"v{secrets.token_hex(3)}"
NAME = f"promlake-{STAGE}"
FUNCTIONS = ("ingest", "flush", "plan", "compact", "query")
START = 1_760_000_400_000
TIMES = [START + n * 15_000 for n in range(240)]
SECONDS = 300.0
DIVIDED = {"PROMLAKE_QUERY_DIVIDE_BYTES": "1", "PROMLAKE_QUERY_DIVIDE_WINDOWS": "-1"}


@dataclass(frozen=True)
class Stage:
    """The stage, on LocalStack."""

    stack: Stack

    @property
    def functions(self) -> Any:
        return self.stack.functions

    def door(self, function: str) -> Door:
        """Returns the URL of a function's alias."""
        return Door(self.functions.get_function_url_config(FunctionName=f"{NAME}-{function}", Qualifier="live")["FunctionUrl"])

    def aliases(self) -> list[str]:
        return [self.functions.get_alias(FunctionName=f"{NAME}-{f}", Name="live")["FunctionVersion"] for f in FUNCTIONS]

    def publish(self, function: str, **variables: str) -> str:
        """Publishes a version with other variables, and returns it."""
        name = f"{NAME}-{function}"
        known = self.functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        self.functions.update_function_configuration(FunctionName=name, Environment={"Variables": known | variables})
        self.functions.get_waiter("function_updated_v2").wait(FunctionName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
        return self.functions.publish_version(FunctionName=name)["Version"]

    def move(self, versions: str) -> None:
        """Lets CloudFormation move the aliases."""
        cloud = self.stack.client("cloudformation")
        given = [{"ParameterKey": "Versions", "ParameterValue": versions}]
        given += [{"ParameterKey": name, "UsePreviousValue": True} for name in ("CodeBucket", "CodePrefix")]
        cloud.update_stack(StackName=NAME, UsePreviousTemplate=True, Parameters=given, Capabilities=["CAPABILITY_IAM"])
        cloud.get_waiter("stack_update_complete").wait(StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 300})

    def rollback(self) -> subprocess.CompletedProcess[str]:
        env = os.environ | KEYS
        line = ["make", "rollback", f"STAGE={STAGE}", f"REGION={self.stack.description['region']}"]
        line.append(f"AWS_ENDPOINT_URL={self.stack.description['endpoint']}")
        return subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def stage(quiet: Stack) -> Iterator[Stage]:
    """The stage, deployed with CloudFormation as the documentation says."""
    arch = os.uname().machine.replace("aarch64", "arm64")
    parameters = ("canary=Canary10Percent30Minutes", "auth=none", "batch-size=10", "batch-seconds=0", "query-divide=3")
    line = [ROOT / "infra/package.sh", STAGE, quiet.description["region"], arch, *parameters]
    subprocess.run(line, check=True, capture_output=True, timeout=600)
    quiet.s3.create_bucket(Bucket=STAGE)
    for file in (ROOT / "dist" / STAGE).glob("*.*"):
        quiet.s3.upload_file(str(file), STAGE, f"promlake/{file.name}")
    cloud = quiet.client("cloudformation")
    url = f"{quiet.description['endpoint']}/{STAGE}/promlake/cloudformation.json"
    code = [{"ParameterKey": "CodeBucket", "ParameterValue": STAGE}]
    cloud.create_stack(StackName=NAME, TemplateURL=url, Parameters=code, Capabilities=["CAPABILITY_IAM"])
    cloud.get_waiter("stack_create_complete").wait(StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    yield Stage(quiet)
    shutil.rmtree(ROOT / "dist" / STAGE)


def test_versions(stage: Stage) -> None:
    """Triggers invoke the alias, a divided query stays within its version, and a rollback goes back one version, not two."""
    write, query = stage.door("ingest"), stage.door("query")
    assert stage.aliases() == ["1"] * 5
    sources = [m["FunctionArn"] for m in stage.functions.list_event_source_mappings()["EventSourceMappings"]]
    assert {arn.split(":function:")[1] for arn in sources if NAME in arn} == {f"{NAME}-flush:live", f"{NAME}-compact:live"}
    events = stage.stack.client("events")
    rules = [rule["Name"] for rule in events.list_rules()["Rules"] if rule["Name"].startswith(NAME)]
    for rule in rules:
        events.disable_rule(Name=rule)  # other tests expect a quiet machine
    assert [t["Arn"].split(":function:")[1] for r in rules for t in events.list_targets_by_rule(Rule=r)["Targets"]] == [f"{NAME}-plan:live"]

    def sent(name: str) -> int:
        return write.write([series(name, [(t, math.sin(t)) for t in TIMES], i="1")]).status

    def stored(name: str) -> bool:
        return query.samples(name, START - 1, TIMES[-1]) != {}

    assert sent("first") == 204
    wait_until(lambda: stored("first"), "the samples of version 1", SECONDS)

    # Version 2: ingest does not start, query divides queries over invocations of itself.
    others: dict[str, dict[str, str]] = {"ingest": {"PROMLAKE_INGEST_MODE": "none"}, "query": DIVIDED}
    versions = [stage.publish(f, **others.get(f, {"PROMLAKE_LOG_LEVEL": "debug"})) for f in FUNCTIONS]
    assert versions == ["2"] * 5
    assert sent("first") == 204, "an alias leads to a version that is not deployed"
    stage.move("2,2,2,2,2")
    assert stage.aliases() == versions
    assert sent("second") >= 500
    form = {"query": "rate(first[5m])", "start": str(START / 1000), "end": str(TIMES[-1] / 1000), "step": "15"}
    assert query.ask("query_range", **form)["result"]
    pieces = [r.key for r in stage.stack.proxy.seen() if r.function == f"{NAME}-query" and r.key.endswith("/invocations")]
    assert len(pieces) == 3
    assert all(re.search(f"{NAME}-query(:|%3A)2/", key) for key in pieces), pieces

    done = stage.rollback()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^rollback: {NAME}-ingest +runs 2 of .*, before it 1 of ", done.stdout, re.MULTILINE)
    assert stage.aliases() == ["1"] * 5
    assert sent("third") == 204
    wait_until(lambda: stored("third"), "the samples after the rollback", SECONDS)
    again = stage.rollback()
    assert again.returncode != 0
    assert f"refused: {NAME}-ingest has no version before 1" in again.stderr
    assert stage.aliases() == ["1"] * 5
    name = f"{NAME}-flush"
    newest = stage.functions.list_versions_by_function(FunctionName=name)["Versions"]
    assert {v["Version"] for v in newest} == {"$LATEST", "1", "2"}, "a version was lost"
