"""What each function may do: everything that it needs, and nothing else, by evaluating the policies of the packaged template."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from policies import allows, denies
from stack_template import ACCOUNT, FUNCTIONS, REGION, Template
from support.programs import ROOT

# Actions that a part of the stack could misuse, and one of each other service of an account.
ACTIONS = (
    "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListBucket", "s3:DeleteBucket", "s3:PutBucketPolicy",
    "s3:PutObjectAcl", "s3:GetObjectVersion", "s3:DeleteObjectVersion",
    "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:PurgeQueue", "sqs:DeleteQueue",
    "sqs:ChangeMessageVisibility",
    "ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:PutParameter",
    "logs:CreateLogStream", "logs:PutLogEvents", "logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:FilterLogEvents",
    "lambda:InvokeFunction", "lambda:UpdateFunctionCode", "iam:PassRole", "sts:AssumeRole", "kms:Decrypt", "ec2:RunInstances",
    "dynamodb:PutItem", "sns:Publish", "sns:Subscribe",
)  # fmt: skip

Rights = set[tuple[str, str]]

# The prefixes of listings: of objects, of the states of pushes, and of none of both.
OBJECTS_LISTED = ("v1/", "v1/team-a/", "v1/pushes/", "v1/pushes/blocks/")
STATES_LISTED = ("v1/team-a/pushes/", "v1/pushes/pushes/0123456789abcdef0123456789abcdef.json")
NOT_LISTED = ("", "v2/", "config/", "team-a/pushes/", "quarantine/v1/team-a/pushes/")


def listed(*prefixes: str) -> Rights:
    return {("s3:ListBucket", f"bucket {prefix}") for prefix in prefixes}


def each(actions: str, *whats: str) -> Rights:
    return {(f"s3:{action}", what) for action in actions.split() for what in whats}


HASH = "0123456789abcdef0123456789abcdef"
OBJECTS = ("object", "push state", "usage", "dashboard", "kept answer")
OBJECTS_READ = listed(*OBJECTS_LISTED, *STATES_LISTED) | each("GetObject", *OBJECTS)
OBJECTS_WRITTEN = each("PutObject AbortMultipartUpload", *OBJECTS)
OBJECTS_DELETED = each("DeleteObject", *OBJECTS)
QUERY_WRITTEN = each("PutObject AbortMultipartUpload", "usage", "dashboard", "kept answer") | each("DeleteObject", "dashboard")
STATES_CHANGED = listed(*STATES_LISTED) | each("GetObject PutObject AbortMultipartUpload DeleteObject", "push state")
ITSELF_INVOKED = {name: {("lambda:InvokeFunction", "query function")} if name == "query" else set[tuple[str, str]]() for name in FUNCTIONS}
TOKENS_READ = {("ssm:GetParameter", "tokens")}


def received(queue: str) -> Rights:
    return {(f"sqs:{action}", queue) for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")}


def released(queue: str) -> Rights:
    return received(queue) | {("sqs:ChangeMessageVisibility", queue)}


BUFFERED: dict[str, Rights] = {
    "ingest": {("sqs:SendMessage", "write queue")} | STATES_CHANGED | TOKENS_READ,
    "flush": released("write queue") | released("dead-letter queue") | {("sqs:SendMessage", "write queue")} | OBJECTS_WRITTEN,
    "plan": {("sqs:SendMessage", "job queue")} | OBJECTS_READ | OBJECTS_WRITTEN | OBJECTS_DELETED,
    "compact": received("job queue") | OBJECTS_READ | OBJECTS_WRITTEN | OBJECTS_DELETED,
    "query": OBJECTS_READ | QUERY_WRITTEN | TOKENS_READ,
}
OWN_TOKEN = {name: {("ssm:GetParameter", "self-token")} for name in FUNCTIONS}
# The ingest function of a stack with its own metrics writes them to itself.
OWN_TOKEN_ELSEWHERE = OWN_TOKEN | {"ingest": set[tuple[str, str]]()}
RUNTIME_CONFIG_READ = {
    name: {("s3:GetObject", "runtime config")} if name in ("ingest", "flush", "query") else set[tuple[str, str]]() for name in FUNCTIONS
}
DIRECT = BUFFERED | {
    "ingest": {("sqs:SendMessage", "write queue")} | STATES_CHANGED | OBJECTS_WRITTEN,
    "query": OBJECTS_READ | QUERY_WRITTEN,
}
GROUPED = BUFFERED | {"ingest": BUFFERED["ingest"] | OBJECTS_WRITTEN}


def resources(t: Template, stage: str) -> dict[str, str]:
    bucket = t.arn("Bucket")
    parameter = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter"
    named = {
        "bucket": bucket, "object": f"{bucket}/v1/team-a/manifest.json", "foreign object": f"{bucket}/v2/x",
        "push state": f"{bucket}/v1/team-a/pushes/{HASH}.json",
        "usage": f"{bucket}/v1/team-a/usage/queries.json", "dashboard": f"{bucket}/v1/team-a/dashboards/a%20b.json",
        "kept answer": f"{bucket}/v1/team-a/answers/{HASH}/{HASH}.arrow",
        "runtime config": f"{bucket}/config/runtime.yaml", "other config": f"{bucket}/config/other.yaml",
        "other bucket": "arn:aws:s3:::other", "other object": "arn:aws:s3:::other/v1/x", "bucket alike": f"{bucket}x",
        "object alike": f"{bucket}x/v1/x",
        "write queue": t.arn("WriteQueue"), "job queue": t.arn("JobQueue"), "dead-letter queue": t.arn("DeadLetterQueue"),
        "other queue": f"{t.arn('WriteQueue')}x",
        "tokens": f"{parameter}/promlake/{stage}/tokens", "self-token": f"{parameter}/promlake/{stage}/self-token",
        "other parameter": f"{parameter}/promlake/other/tokens",
        "key": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/x", "role": f"arn:aws:iam::{ACCOUNT}:role/admin", "anything": "*",
    }  # fmt: skip
    for name in FUNCTIONS:
        named[f"{name} log"] = t.arn(f"{name.title()}LogGroup").removesuffix("*") + "log-stream:2036"
        named[f"{name} function"] = t.arn(f"{name.title()}LambdaFunction")
    return named


def statements(t: Template, function: str) -> list[dict[str, Any]]:
    arn = t.function(function)["Role"]
    (name,) = (n for n, _ in t.of_type("AWS::IAM::Role") if t.arn(n) == arn)
    role = t.properties(name)
    assert set(role) == {"AssumeRolePolicyDocument", "Policies", "Tags"}, "managed policies are not evaluated here"
    assert [s["Principal"] for s in role["AssumeRolePolicyDocument"]["Statement"]] == [{"Service": "lambda.amazonaws.com"}]
    return [s for p in role["Policies"] for s in p["PolicyDocument"]["Statement"]]


def check_rights(t: Template, stage: str, want: dict[str, Rights]) -> None:
    named = resources(t, stage)
    assert len({t.function(name)["Role"] for name in FUNCTIONS}) == len(FUNCTIONS), "functions share a role"
    for name in FUNCTIONS:
        logs = {("logs:CreateLogStream", f"{name} log"), ("logs:PutLogEvents", f"{name} log")}
        policy = statements(t, name)
        have = {(action, what) for action, (what, arn) in itertools.product(ACTIONS, named.items()) if allows(policy, action, arn)} | {
            ("s3:ListBucket", f"{what} {prefix}")
            for prefix, (what, arn) in itertools.product((*OBJECTS_LISTED, *STATES_LISTED, *NOT_LISTED), named.items())
            if allows(policy, "s3:ListBucket", arn, {"s3:prefix": prefix})
        }
        assert have == want[name] | logs, name
        for s in policy:
            assert not any("*" in action for action in s["Action"]), f"{name}: {s}"


def plus(rights: dict[str, Rights], more: dict[str, Rights]) -> dict[str, Rights]:
    return {name: rights[name] | more[name] for name in FUNCTIONS}


def test_default(default: Template) -> None:
    check_rights(default, "test-default", BUFFERED)


def test_own_metrics_need_a_token_limits_an_object_and_divided_queries_the_function(x86: Template) -> None:
    check_rights(x86, "test-x86", plus(plus(plus(BUFFERED, OWN_TOKEN_ELSEWHERE), RUNTIME_CONFIG_READ), ITSELF_INVOKED))


def test_direct_with_iam(direct: Template) -> None:
    check_rights(direct, "test-direct", DIRECT)


def test_grouped(grouped: Template) -> None:
    check_rights(grouped, "test-grouped", plus(GROUPED, OWN_TOKEN))


def keys() -> list[str]:
    """Returns a key of each kind that internal/format/key documents, of tenants with misleading names."""
    text = (ROOT / "internal/format/key/key.go").read_text()
    ulid = "01K1GZ8V6D8Q7N0XJ5W3C2B1A9"
    parts = {
        "<window>": "20250731T1400Z", "<ulid>": ulid, "<level>": "12h", "<file>": "chunks/000001", "<table>": "samples", "<name>": "a%20b",
        "<id>": HASH, "<hash>": HASH, "…": "metadata/v1.metadata.json",
    }  # fmt: skip
    found = []
    for kind in re.findall(r"^//\t((?:v1|rules)/\S+)", text, re.MULTILINE):
        for tenant in ("team-a", "pushes", "usage", "dashboards", "answers", "v1", "a!-_.*'()"):
            key = kind.replace("<tenant>", tenant)
            for part, value in parts.items():
                key = key.replace(part, value)
            assert "<" not in key, f"{kind}: what stands for its parts?"
            found.append(key)
    return [*found, "config/runtime.yaml", "rules-state/pushes/0.json", *(f"quarantine/{key}" for key in found)]


def test_pushes_reach_their_states_only(default: Template) -> None:
    """A * in a resource matches slashes, too, but no other key of any tenant looks like the state of a group of pushed metrics."""
    policy, bucket = statements(default, "ingest"), default.arn("Bucket")
    states = [key for key in keys() if re.fullmatch(r"v1/[^/]+/pushes/[^/]+", key)]
    assert len(states) == 7
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
        assert [key for key in keys() if allows(policy, action, f"{bucket}/{key}")] == states, action


def test_queries_write_their_counts_answers_and_dashboards_only(default: Template) -> None:
    """No other key of any tenant looks like the counts of its queries, their kept answers, or its dashboards."""
    policy, bucket = statements(default, "query"), default.arn("Bucket")
    for action, folders in (
        ("s3:PutObject", r"(usage/queries\.json|dashboards/[^/]+\.json|answers/[^/]+/[^/]+\.arrow)"),
        ("s3:DeleteObject", r"dashboards/[^/]+\.json"),
    ):  # fmt: skip
        own = [key for key in keys() if re.fullmatch(rf"v1/[^/]+/{folders}", key)]
        assert len(own) == (21 if "usage" in folders else 7)
        assert [key for key in keys() if allows(policy, action, f"{bucket}/{key}")] == own, action


def test_the_bucket_refuses_plain_http(default: Template) -> None:
    policy = default.properties("BucketPolicy")["PolicyDocument"]["Statement"]
    bucket = default.arn("Bucket")
    for action, arn in (("s3:GetObject", f"{bucket}/v1/x"), ("s3:PutObject", f"{bucket}/v1/x"), ("s3:ListBucket", bucket)):
        assert denies(policy, action, arn, {"aws:SecureTransport": "false"}), action
        assert not denies(policy, action, arn, {"aws:SecureTransport": "true"}), action


def statement(t: Template, role: str, of: int = -1) -> dict[str, Any]:
    return t.resources[role]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][of]


def role(t: Template, name: str) -> dict[str, Any]:
    return t.resources[name]["Properties"]


def trust(t: Template, name: str) -> dict[str, Any]:
    return role(t, name)["AssumeRolePolicyDocument"]["Statement"][0]


PLAN_ROLE = {"Fn::GetAtt": ["PlanRole", "Arn"]}
EVERY_PARAMETER = "arn:aws:ssm:us-east-1:123456789012:parameter/promlake/*"
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"

MUTATIONS: dict[str, Callable[[Template], Any]] = {
    "ingest deletes": lambda t: statement(t, "IngestRole", 1)["Action"].append("sqs:PurgeQueue"),
    "ingest reads": lambda t: statement(t, "IngestRole", 1).update(statement(t, "QueryRole", 2)),
    "ingest reads samples": lambda t: statement(t, "IngestRole", 3).update(Resource=[{"Fn::Sub": "${Bucket.Arn}/v1/*"}]),
    "ingest lists samples": lambda t: statement(t, "IngestRole", 2).update(Condition={"StringLike": {"s3:prefix": "v1/*"}}),
    "ingest cannot ask for a state": lambda t: statement(t, "IngestRole", 2).update(Action=["s3:GetObject"]),
    "flush has all of S3": lambda t: statement(t, "FlushRole").update(Action=["s3:*"]),
    "query writes": lambda t: statement(t, "QueryRole", 2)["Action"].append("s3:PutObject"),
    "plan reaches below v2": lambda t: statement(t, "PlanRole").update(Resource=[{"Fn::Sub": "${Bucket.Arn}/*"}]),
    "compact works on everything": lambda t: statement(t, "CompactRole").update(Resource=["*"]),
    "query lists everything": lambda t: statement(t, "QueryRole", 1).pop("Condition"),
    "all tokens": lambda t: statement(t, "QueryRole").update(Resource=[EVERY_PARAMETER]),
    "query borrows plan's role": lambda t: t.resources["QueryLambdaFunction"]["Properties"].update(Role=PLAN_ROLE),
    "managed policy": lambda t: role(t, "QueryRole").update(ManagedPolicyArns=[ADMINISTRATOR]),
    "anybody's role": lambda t: trust(t, "QueryRole").update(Principal={"AWS": "*"}),
    "query cannot read": lambda t: statement(t, "QueryRole", 2).update(Effect="Deny"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_policy_is_noticed(default: Template, mutation: str) -> None:
    changed = default.changed()
    MUTATIONS[mutation](changed)
    with pytest.raises(AssertionError):
        check_rights(changed, "test-default", BUFFERED)
