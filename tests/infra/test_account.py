"""What an account may require of the stack: a key, a network, limits, traces, a domain and a budget."""

import json
import re

from conftest import BOUNDARY, CERTIFICATE, DOMAIN, KEY, TOPIC
from stack_template import Template


def test_a_guarded_account(guarded: Template) -> None:
    """A key, a boundary, a network, limits, traces and access logs reach every resource that can have them."""
    t = guarded
    assert t.properties("Bucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"] == [
        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, "BucketKeyEnabled": True}
    ]
    for name, queue in t.of_type("AWS::SQS::Queue"):
        assert (queue["KmsMasterKeyId"], queue.get("SqsManagedSseEnabled")) == (KEY, None), name
    groups = dict(t.of_type("AWS::Logs::LogGroup"))
    assert {g["KmsKeyId"] for g in groups.values()} == {KEY}
    functions = dict(t.of_type("AWS::Lambda::Function"))
    assert len(functions) == len(groups) - 1 == 6
    for name, function in functions.items():
        assert function["VpcConfig"] == {"SubnetIds": ["subnet-11111111", "subnet-22222222"], "SecurityGroupIds": ["sg-33333333"]}, name
        assert (function["KmsKeyArn"], function["LoggingConfig"]["LogFormat"]) == (KEY, "JSON"), name
        assert function["TracingConfig"] == {"Mode": "Active"}, name
    for name, role in t.of_type("AWS::IAM::Role"):
        assert role["PermissionsBoundary"] == BOUNDARY, name
        rights = role["Policies"][0]["PolicyDocument"]["Statement"]
        assert {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": [KEY]} in rights, name
        writing = [a for r in rights if r["Resource"] == ["*"] for a in r["Action"] if re.search("Create|Put", a)]
        assert writing == ["ec2:CreateNetworkInterface", "xray:PutTraceSegments", "xray:PutTelemetryRecords"], name
    stage = t.properties("HttpApiStage")
    assert stage["DefaultRouteSettings"] == {"DetailedMetricsEnabled": False, "ThrottlingRateLimit": 500, "ThrottlingBurstLimit": 200}
    line = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"ip", "route", "status", "ms"} < set(line)


def test_a_domain(guarded: Template, default: Template) -> None:
    """The API has it, outputs and links name it, and DNS gets its target."""
    p = guarded.properties("Domain")
    assert (p["DomainName"], p["DomainNameConfigurations"][0]["CertificateArn"]) == (DOMAIN, CERTIFICATE)
    mapping = guarded.properties("DomainMapping")
    assert mapping == {"DomainName": guarded.ref("Domain"), "ApiId": guarded.ref("HttpApi"), "Stage": guarded.ref("HttpApiStage")}
    outputs = {name: guarded.resolve(o["Value"]) for name, o in guarded.document["Outputs"].items()}
    assert (outputs["WriteUrl"], outputs["PrometheusUrl"]) == (f"https://{DOMAIN}/api/v1/write", f"https://{DOMAIN}")
    assert (outputs["DomainTarget"], outputs["DomainTargetZone"]) == ("Domain-RegionalDomainName", "Domain-RegionalHostedZoneId")
    env = {f: guarded.function(f)["Environment"]["Variables"] for f in ("rules", "query")}
    assert env["rules"]["PROMLAKE_RULER_EXTERNAL_URL"] == f"https://{DOMAIN}"
    assert "execute-api" in env["query"]["PROMLAKE_RULER_API_URL"], "functions would depend on the record in DNS"
    assert not {"Domain", "DomainMapping"} & set(default.resources)
    assert default.resolve(default.document["Outputs"]["WriteUrl"]["Value"]).endswith(".amazonaws.com/api/v1/write")


def test_a_budget(guarded: Template, default: Template) -> None:
    """It counts what has both tags of the stack, and tells the topic and the addresses."""
    p = guarded.properties("Budget")
    assert re.fullmatch(r"promlake-test-guarded-us-east-1-[0-9a-f]{8}", p["Budget"]["BudgetName"])
    assert p["Budget"]["BudgetLimit"] == {"Amount": 50, "Unit": "USD"}
    filters = [f["Tags"] for f in p["Budget"]["FilterExpression"]["And"]]
    assert filters == [{"Key": t["Key"], "Values": [t["Value"]]} for t in guarded.properties("WriteQueue")["Tags"]]
    told = [(n["Notification"]["NotificationType"], n["Notification"]["Threshold"]) for n in p["NotificationsWithSubscribers"]]
    assert told == [("FORECASTED", 100), ("ACTUAL", 80)]
    for n in p["NotificationsWithSubscribers"]:
        assert [s["Address"] for s in n["Subscribers"]] == [TOPIC, "a@example.com", "b@example.com"]
    assert "Budget" not in default.resources
