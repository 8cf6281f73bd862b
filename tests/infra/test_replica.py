"""The stack with replica-bucket: a function that keeps a replica in a bucket of another region."""

import itertools
import re
from pathlib import Path

import pytest
from conftest import Package
from policies import allows
from stack_template import FUNCTIONS, Template, read
from support.programs import Programs
from test_iam import ACTIONS, statements
from test_template import lint, variables

STAGE = "test-replica"
THERE = "arn:aws:s3:::my-replica"


@pytest.fixture(scope="module")
def replica(package: Package) -> Template:
    return read(package(STAGE, "arm64", "replica-bucket=my-replica", "replica-region=eu-west-1") / "cloudformation.json")


def test_it_is_well_formed(replica: Template, tmp_path: Path) -> None:
    done = lint(tmp_path, replica=replica)
    assert done.returncode == 0, done.stdout


def test_nothing_is_there_by_default(default: Template) -> None:
    assert not [name for name in default.resources if name.startswith("Repli")]


def test_the_function(replica: Template, programs: Programs) -> None:
    p = replica.function("replicate")
    env = p["Environment"]["Variables"]
    assert re.fullmatch(r"parameter-CodePrefixcompact-fn-[0-9a-f]{16}\.zip", p["Code"]["S3Key"])
    assert set(env) <= variables(programs.compact_fn)
    assert env["PROMLAKE_REPLICA_STORE"] == "s3://my-replica?region=eu-west-1"
    assert env["PROMLAKE_STORE"] == replica.function("plan")["Environment"]["Variables"]["PROMLAKE_STORE"]
    assert p["Timeout"] < 60, "passes overlap"
    (rule,) = (r for _, r in replica.of_type("AWS::Events::Rule") if r["Targets"][0]["Arn"] == replica.arn("ReplicateLambdaFunction"))
    assert rule["ScheduleExpression"] == "rate(1 minute)"


def test_rights(replica: Template) -> None:
    """It reads this bucket and writes the other one, and no other function may do anything there."""
    here = replica.arn("Bucket")
    copied = ("v1/team-a/manifest.json", "rules/team-a.json")
    own = ("promlake-copy/team-a", "promlake-follow.json")
    keys = (*copied, *own, "store.json", "v2/x", "config/runtime.yaml", "rules-state/team-a/0.json", "quarantine/v1/team-a/x")
    want = {("s3:GetObject", f"{here}/{key}") for key in copied} | {("s3:GetObject", f"{THERE}/store.json")}
    want |= {
        (f"s3:{action}", f"{THERE}/{key}")
        for action in ("GetObject", "PutObject", "AbortMultipartUpload", "DeleteObject")
        for key in (*copied, *own)
    }
    policy = statements(replica, "replicate")
    buckets = (here, THERE, f"{THERE}x")
    arns = [*buckets, *(f"{bucket}/{key}" for bucket in buckets for key in keys), replica.arn("WriteQueue"), "*"]
    assert {(action, arn) for action, arn in itertools.product(ACTIONS, arns) if allows(policy, action, arn)} == want
    prefixes = ("v1/", "v1/team-a/", "rules/", "promlake-copy/team-a", "promlake-follow.json", "store.json", "", "config/")
    listed = {(b, p) for b, p in itertools.product(buckets, prefixes) if allows(policy, "s3:ListBucket", b, {"s3:prefix": p})}
    assert listed == {(here, p) for p in prefixes[:3]} | {(THERE, p) for p in prefixes[:6]}
    for name in FUNCTIONS:
        assert not [a for a in ACTIONS for arn in arns if arn.startswith(THERE) and allows(statements(replica, name), a, arn)], name


def test_alarm(replica: Template) -> None:
    lag = replica.properties("ReplicaFilter")
    assert lag["LogGroupName"] == replica.properties("ReplicateLogGroup")["LogGroupName"]
    assert lag["FilterPattern"] == '{ $.msg = "replicated" }', "what internal/app/copyapp logs"
    (metric,) = lag["MetricTransformations"]
    assert metric["MetricValue"] == "$.lag_seconds"
    alarm = replica.properties("ReplicaAlarm")
    assert (alarm["Namespace"], alarm["MetricName"]) == (metric["MetricNamespace"], metric["MetricName"])
    assert (alarm["TreatMissingData"], alarm["Period"] * alarm["EvaluationPeriods"], alarm["Threshold"]) == ("breaching", 600, 300)
