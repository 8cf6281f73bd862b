"""infra/deployer.json allows what it takes to deploy and remove the stack, for resources of the stage, and nothing else.

AWS's resource schemas, which cfn-lint has, list what CloudFormation does for a resource of each type, in the name of the deployer.
"""

import fnmatch
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cfnlint
import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from conftest import DOMAIN
from policies import Statement, allows
from stack_template import ACCOUNT, REGION, Template
from support.programs import ROOT
from test_template import lint

LONGEST = 6144  # characters of a managed policy, white space not counted
STAGE = "test-guarded"
OURS = f"promlake-{STAGE}-"
PLACEHOLDERS = {"STAGE": STAGE, "REGION": REGION, "ACCOUNT": ACCOUNT, "CODE-BUCKET": "my-code", "KMS-KEY": "x", "DOMAIN": DOMAIN}

CODE = f"arn:aws:s3:::{OURS}serverlessdeploymentbucket-1q2w3e4r5t6y/promlake/x.zip"
DATA = f"arn:aws:s3:::{OURS}bucket-1q2w3e4r5t6y"
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{OURS}ingest"
CONTEXT = {"lambda:FunctionArn": FUNCTION, "iam:PassedToService": "lambda.amazonaws.com"}

# What a request is about: by its action, else by its service and the type of the resource, else by
# its service.
RESOURCES = {
    "codedeploy:GetDeploymentConfig": f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentconfig:CodeDeployDefault.LambdaAllAtOnce",
    "iam:PassRole": f"arn:aws:iam::{ACCOUNT}:role/{OURS}IngestRole-1Q2W3E4R5T6Y",
    "lambda:PassCapacityProvider": f"arn:aws:lambda:{REGION}:{ACCOUNT}:capacity-provider:x",
    "s3:GetObject": CODE,
    "s3:GetObjectVersion": CODE,
    "lambda AWS::Lambda::EventSourceMapping": f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:0a1b2c3d",
    "apigateway AWS::ApiGatewayV2::DomainName": f"arn:aws:apigateway:{REGION}::/domainnames/{DOMAIN}",
    "apigateway AWS::ApiGatewayV2::ApiMapping": f"arn:aws:apigateway:{REGION}::/domainnames/{DOMAIN}/apimappings",
    "apigateway": f"arn:aws:apigateway:{REGION}::/apis/a1b2c3d4e5",
    "billing": f"arn:aws:billing::{ACCOUNT}:billingview/primary",
    "budgets": f"arn:aws:budgets::{ACCOUNT}:budget/{OURS}{REGION}-0a1b2c3d",
    "cloudwatch": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{OURS}LagAlarm-1Q2W3E4R5T6Y",
    "codedeploy AWS::CodeDeploy::Application": f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:application:{OURS}canary",
    "codedeploy": f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentgroup:{OURS}canary/{OURS}IngestCanary-1Q2W3E4R5T6Y",
    "ec2": "*",
    "events": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{OURS}PlanEventsRuleSchedule1-1Q2W3E4R5T6Y",
    "iam": f"arn:aws:iam::{ACCOUNT}:role/{OURS}IngestRole-1Q2W3E4R5T6Y",
    "kms": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/x",
    "lambda": FUNCTION,
    "logs": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/{OURS}ingest",
    "s3": DATA,
    "sqs": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{OURS}WriteQueue-1Q2W3E4R5T6Y",
}

# What the tools ask for themselves: osls, infra/stack.js, infra/rollback.js and the aws command.
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/promlake-{STAGE}/0a1b2c3d"
TOOLS = {
    **{f"cloudformation:{action}": STACK for action in (
        "CreateChangeSet", "CreateStack", "DeleteChangeSet", "DeleteStack", "DescribeChangeSet", "DescribeStackEvents",
        "DescribeStackResource", "DescribeStacks", "ExecuteChangeSet", "GetTemplate", "ListStackResources",
        "TagResource", "UntagResource", "UpdateStack",
    )},
    "cloudformation:ValidateTemplate": "*",
    **{f"s3:{action}": CODE for action in ("DeleteObject", "DeleteObjectVersion", "GetObject", "PutObject")},
    "s3:ListBucketVersions": CODE.split("/")[0],
    # "Configure logging for HTTP APIs" in API Gateway's developer guide
    **{f"logs:{action}LogDelivery": "*" for action in ("Create", "Update", "Get", "Delete")},
    "logs:ListLogDeliveries": "*",
    "codedeploy:ListDeploymentGroups": RESOURCES["codedeploy AWS::CodeDeploy::Application"],
    **{f"codedeploy:{action}": RESOURCES["codedeploy"] for action in ("ListDeployments", "StopDeployment")},
    **{f"codedeploy:{action}ApplicationRevision": RESOURCES["codedeploy AWS::CodeDeploy::Application"] for action in ("Get", "Register")},
    **{f"lambda:{action}": FUNCTION for action in ("GetAlias", "ListVersionsByFunction")},
}  # fmt: skip

# These have no resource that a policy could name, or read only what names tell.
EVERYWHERE = re.compile(r"\w+:(Get|Describe|List)|logs:(CreateLogDelivery|PutResourcePolicy)")

# Actions of CloudFormation for properties that no resource of the stack has. Of API Gateway, IAM
# knows no TagResource: tags take PUT.
UNUSED = (
    "apigateway:*Certificate*", "apigateway:*agResource", "codedeploy:*ApplicationRevision",
    "codedeploy:RegisterOnPremisesInstance", "elasticfilesystem:*", "firehose:*", "iam:AttachRolePolicy",
    "iam:DetachRolePolicy", "iam:UpdateRoleDescription", "lambda:*CodeSigning*", "lambda:*LayerVersion",
    "lambda:*ProvisionedConcurrency*", "lambda:*RecursionConfig", "lambda:*ScalingConfig", "lambda:AssociateRuntimeAlias",
    "lambda:PutRuntimeManagementConfig", "logs:*IndexPolicy", "logs:DeleteDataProtectionPolicy", "logs:DeleteResourcePolicy",
    "logs:PutBearerTokenAuthentication", "logs:PutDataProtectionPolicy", "logs:PutLogGroupDeletionProtection", "s3:*Abac",
    "s3:*Accelerate*", "s3:*Acl", "s3:*Analytics*", "s3:*CORS", "s3:*Cors", "s3:*IntelligentTiering*", "s3:*Inventory*", "s3:*Logging",
    "s3:*Metadata*", "s3:*Metrics*", "s3:*Notification", "s3:*ObjectLock*", "s3:*Replication*", "s3:*Website",
    "s3:DeleteBucketEncryption", "s3:DeleteBucketLifecycle", "s3:DeleteBucketTagging", "s3:DeleteObject", "s3:REST.PUT.OBJECT",
    "s3:getObject", "s3files:*", "s3tables:*",
)  # fmt: skip


def policy() -> list[Statement]:
    """Returns the statements of the policy for the stage."""
    text = (ROOT / "infra/deployer.json").read_text()
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value)
    return json.loads(text)["Statement"]


def patterns(statement: Statement) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else actions


def handled(kind: str) -> set[str]:
    """Returns the actions with which CloudFormation manages a resource of a type."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
    actions = {action for name, handler in schema["handlers"].items() if name != "list" for action in handler["permissions"]}
    return actions | set(schema.get("tagging", {}).get("permissions", ()))


Requests = list[tuple[str, str]]  # actions, and the resources that they are about


def needed(*templates: Template) -> Iterator[tuple[str, str]]:
    """Yields the requests that deploy and remove stacks of the templates."""
    yield from TOOLS.items()
    for kind in sorted({r["Type"] for t in templates for r in t.resources.values()}):
        for action in sorted(handled(kind)):
            if not any(fnmatch.fnmatchcase(action, unused) for unused in UNUSED):
                service = action.split(":")[0]
                yield action, RESOURCES.get(action) or RESOURCES.get(f"{service} {kind}") or RESOURCES[service]


def check(statements: list[Statement], requests: Requests) -> None:
    """Checks that the statements allow the requests, and none for another stage."""
    for action, resource in requests:
        assert allows(statements, action, resource, CONTEXT), (action, resource)
        foreign = resource.replace(OURS, "promlake-other-")
        if foreign != resource and not EVERYWHERE.match(action):
            theirs = {key: value.replace(OURS, "promlake-other-") for key, value in CONTEXT.items()}
            assert not allows(statements, action, foreign, theirs), action


@pytest.fixture(scope="module")
def requests(default: Template, x86: Template, direct: Template, grouped: Template, canary: Template, guarded: Template) -> Requests:
    return list(dict.fromkeys(needed(default, x86, direct, grouped, canary, guarded)))


def test_it_suffices(requests: Requests) -> None:
    check(policy(), requests)
    assert allows(policy(), "iam:PassRole", RESOURCES["iam"], {"iam:PassedToService": "codedeploy.amazonaws.com"})


def test_names_of_the_template(guarded: Template) -> None:
    for kind, action, name in (
        ("AWS::Lambda::Function", "lambda:CreateFunction", "FunctionName"),
        ("AWS::Logs::LogGroup", "logs:CreateLogGroup", "LogGroupName"),
        ("AWS::SQS::Queue", "sqs:CreateQueue", "QueueName"),
    ):
        named = [n for n, p in guarded.of_type(kind) if name in p]
        assert named, kind
        for n in named:
            assert allows(policy(), action, guarded.arn(n)), n


def test_nothing_more(requests: Requests) -> None:
    """Each action is one that something needs, or reads what belongs to a resource of the stack."""
    spec = json.loads((Path(cfnlint.__file__).parent / "data/AdditionalSpecs/Policies.json").read_text())
    used = {action.lower() for action, _ in requests}
    for statement in policy():
        for pattern in patterns(statement):
            service, action = pattern.lower().split(":")
            known = {f"{service}:{a}" for a in spec[service]["Actions"]} | used
            meant = {a for a in known if fnmatch.fnmatchcase(a, f"{service}:{action}")}
            assert meant, pattern
            assert not {a for a in meant - used if not re.match(r"\w+:(get|describe|list)", a)}, pattern
            assert meant & used, pattern
    for action, resource in (
        ("s3:GetObject", f"{DATA}/v1/x"), ("s3:PutObject", f"{DATA}/v1/x"),
        ("lambda:InvokeFunction", FUNCTION), ("sqs:ReceiveMessage", RESOURCES["sqs"]), ("sqs:PurgeQueue", RESOURCES["sqs"]),
        ("iam:AttachRolePolicy", RESOURCES["iam"]), ("ssm:GetParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/promlake/{STAGE}/x"),
    ):  # fmt: skip
        assert not allows(policy(), action, resource, CONTEXT), action
    assert not allows(policy(), "iam:PassRole", RESOURCES["iam"], {"iam:PassedToService": "ec2.amazonaws.com"})


def test_iam_takes_it(tmp_path: Path) -> None:
    document = {"Version": "2012-10-17", "Statement": policy()}
    assert len(re.sub(r"\s", "", json.dumps(document))) < LONGEST - 200, "longer names of stages and buckets need room"
    page = (ROOT / "docs/aws-account.md").read_text()
    assert set(re.findall(r"s/([A-Z-]+)/", page)) == set(PLACEHOLDERS) - {"KMS-KEY", "DOMAIN"}
    resource = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document}}
    done = lint(tmp_path, deployer=Template({"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Deployer": resource}}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("sid", [s["Sid"] for s in policy()])
def test_a_missing_statement_is_noticed(sid: str, requests: Requests) -> None:
    with pytest.raises(AssertionError):
        check([s for s in policy() if s["Sid"] != sid], requests)


def test_a_new_type_is_noticed(default: Template) -> None:
    changed = default.changed()
    changed.resources["Table"] = {"Type": "AWS::DynamoDB::Table", "Properties": {}}
    with pytest.raises((AssertionError, KeyError)):
        check(policy(), list(needed(changed)))


def test_a_wider_statement_is_noticed(requests: Requests) -> None:
    wide: list[dict[str, Any]] = [dict(s) for s in policy()]
    next(s for s in wide if s["Sid"] == "Queues")["Resource"] = "*"
    with pytest.raises(AssertionError):
        check(wide, requests)
