"""A deployment starts from the parameters of the stack, shows what changes, and names what it would delete."""

import json
import subprocess
from typing import Any

import pytest
from conftest import CERTIFICATE, KEY, Package
from support.programs import ROOT, Programs

# Calls changes.js with the template of a stack that was deployed with parameters.
CALL = """
const {deployed, plan} = require('./changes.js');
const {values} = require('./check.js');
const [stage, was, given] = JSON.parse(process.argv[1]);
(async () => {
  const template = async () => ({Resources: {Bucket: {}}, Metadata: {Promlake: {given: was, values: await values(stage, 'arm64', was)}}});
  const old = was && deployed('Resources' in was ? was : await template());
  console.log(JSON.stringify(await plan(stage, 'arm64', old, given)));
})().catch((e) => { console.error(e.message); process.exit(1); });
"""
OLD_VERSION = {
    "Resources": {
        "Bucket": {},
        "RulesLambdaFunction": {},
        "PlanLambdaFunction": {
            "Properties": {
                "Environment": {
                    "Variables": {
                        "PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD": "90d",
                        "PROMLAKE_COMPACTOR_TENANT_RETENTION": {"Ref": "AWS::NoValue"},
                    }
                }
            }
        },
    }
}


def run(was: dict[str, Any] | None, given: dict[str, str], stage: str = "dev") -> subprocess.CompletedProcess[str]:
    line = ["node", "-e", CALL, json.dumps([stage, was, given])]
    return subprocess.run(line, cwd=ROOT / "infra", capture_output=True, text=True, timeout=300, check=False)


def plan(was: dict[str, Any] | None, given: dict[str, str], stage: str = "dev") -> dict[str, Any]:
    done = run(was, given, stage)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "was", [None, {"Resources": {"ServerlessDeploymentBucket": {}}}], ids=["no stack", "a first deployment that failed"]
)
def test_a_first_deployment_asks_nothing(was: dict[str, Any] | None, programs: Programs) -> None:  # noqa: ARG001 (Node's packages come with them)
    assert plan(was, {"rules": "on"}) == {"given": {"rules": "on"}, "notes": [], "lost": [], "ask": False}


@pytest.mark.parametrize(
    ("was", "given", "expected", "asks"),
    [
        ({"rules": "on", "retention": "90d"}, {}, {"rules": "on", "retention": "90d"}, False),
        ({"rules": "on"}, {"rules": "on"}, {"rules": "on"}, False),
        ({"rules": "on"}, {"batch-seconds": "20"}, {"rules": "on", "batch-seconds": "20"}, True),
        ({"rules": "on"}, {"rules-external-labels": "a=b"}, {"rules": "on", "rules-external-labels": "a=b"}, True),
        ({"batch-seconds": "20"}, {"batch-seconds": ""}, {}, True),
        ({}, {"batch-seconds": "10"}, {"batch-seconds": "10"}, False),  # the default
        ({"gone-since": "1"}, {"gone-since": ""}, {}, False),
    ],
)
def test_parameters_are_kept(was: dict[str, str], given: dict[str, str], expected: dict[str, str], asks: bool, programs: Programs) -> None:  # noqa: ARG001
    if "gone-since" in was:  # a parameter of the former version only
        was = {"Resources": {"Bucket": {}}, "Metadata": {"Promlake": {"given": was, "values": was}}}
    found = plan(was, given)
    assert (found["given"], found["lost"], found["ask"]) == (expected, [], asks)


def test_changes_are_shown_without_secrets(programs: Programs) -> None:  # noqa: ARG001
    found = plan({"rules": "on"}, {"webhook-url": "https://secret.example/", "flush-timeout": "50"})
    assert [note.split() for note in found["notes"]] == [
        ["webhook-url", "another", "text", "->", "another", "text"],
        ["flush-timeout", '"45"', "->", '"50"'],
    ]


@pytest.mark.parametrize(
    ("was", "given", "lost"),
    [
        ({"retention": "90d"}, {"retention": "30d"}, ["samples are deleted after 30d, not 90d"]),
        ({}, {"retention": "1y"}, ["samples are deleted after 1y, and were kept for ever"]),
        ({"retention": "30d"}, {"retention": "1y"}, []),
        ({"retention": "30d"}, {"retention": ""}, []),
        ({"retention": "1w"}, {"retention": "7d"}, []),
        (
            {"retention": "30d", "tenant-retention": "a=1y,b=0"},
            {"tenant-retention": "b=0"},
            ["samples of tenant a are deleted after 30d, not 1y"],
        ),
        ({"tenant-retention": "a=1y"}, {"tenant-retention": ""}, []),
        ({}, {"tenant-retention": "a=1y"}, ["samples of tenant a are deleted after 1y, and were kept for ever"]),
        ({"rules": "on"}, {"rules": ""}, ["rules=off deletes the function and the queue of rules"]),
        ({"versioning": "on"}, {"versioning": "off"}, ["versioning=off keeps no versions of objects that are deleted from now on"]),
        ({"kms-key": KEY}, {"kms-key": ""}, [f"kms-key= deletes the right to use {KEY}, which encrypts objects and messages"]),
        ({}, {"kms-key": KEY}, []),
        (
            {"domain": "a.example", "certificate": CERTIFICATE},
            {"domain": "b.example"},
            ["domain=b.example deletes a.example: senders and readers of this address fail"],
        ),
        ({"log-retention-days": "30"}, {"log-retention-days": ""}, ["logs are deleted after 14 days, not 30"]),
        (
            {},
            {"mode": "grouped", "capacity-provider": "arn:aws:lambda:us-east-1:123456789012:capacity-provider:x"},
            ["mode=grouped deletes the ingest function's URL, whose address never returns"],
        ),
        ({"canary": "AllAtOnce"}, {"canary": "Canary10Percent5Minutes"}, []),
        (
            {"canary": "AllAtOnce"},
            {"canary": ""},
            ["canary= gives the functions' URLs new addresses: senders and readers of the former ones fail"],
        ),
        (
            OLD_VERSION,
            {"canary": "AllAtOnce"},
            ["canary=AllAtOnce gives the functions' URLs new addresses: senders and readers of the former ones fail"],
        ),
        (OLD_VERSION, {}, []),
        (OLD_VERSION, {"rules": "off"}, ["rules=off deletes the function and the queue of rules"]),
    ],
    ids=str,
)
def test_deletions_are_named(was: dict[str, Any], given: dict[str, str], lost: list[str], programs: Programs) -> None:  # noqa: ARG001
    assert plan(was, given)["lost"] == lost


def test_a_stack_of_a_version_that_kept_nothing(programs: Programs) -> None:  # noqa: ARG001
    found = plan(OLD_VERSION, {})
    assert found["given"] == {"rules": "on", "retention": "90d"}
    assert found["ask"]
    assert "PARAMS must have all" in found["notes"][0]


@pytest.mark.parametrize("given", [{"retentoin": ""}, {"retentoin": "90d"}])
def test_an_unknown_parameter(given: dict[str, str], programs: Programs) -> None:  # noqa: ARG001
    assert "parameter retentoin: not known" in run({}, given).stderr


def test_the_template_has_them(package: Package) -> None:
    package("test-kept", "arm64", "retention=90d", "tenant-retention=team-a=30d", "versioning=on")
    template = json.loads((ROOT / "dist/test-kept/serverless/cloudformation-template-update-stack.json").read_text())
    kept = template["Metadata"]["Promlake"]
    assert kept["given"] == {"retention": "90d", "tenant-retention": "team-a=30d", "versioning": "on"}
    assert kept["values"]["tokens"] == "/promlake/test-kept/tokens"
    bucket = template["Resources"]["Bucket"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert {"NoncurrentDays": 7} in [r.get("NoncurrentVersionExpiration") for r in bucket["LifecycleConfiguration"]["Rules"]]
