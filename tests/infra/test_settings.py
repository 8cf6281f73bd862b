"""An invalid parameter of the stack stops packaging with an error that names valid values."""

import json
import re
import subprocess

import pytest
from support.programs import ROOT, Programs

# Calls settings.js as osls does, with the defaults of serverless.yml as its parameters.
CALL = """
const yaml = require('js-yaml');
const fs = require('node:fs');
const defaults = yaml.load(fs.readFileSync('serverless.yml', 'utf8')).params.default;
const given = JSON.parse(process.argv[1]);
const params = {...defaults, ...given, 'sls:stage': 'dev'};
const options = {param: Object.entries(given).map(([k, v]) => `${k}=${v}`)};
const resolveVariable = async (name) => String(params[name.replace('param:', '')]).replace('${sls:stage}', 'dev');
require('./settings.js')({options, resolveVariable})
  .then((s) => console.log(JSON.stringify(s)), (e) => { console.error(e.message); process.exit(1); });
"""


def settings(**given: str) -> tuple[int, str]:
    parameters = {name.replace("_", "-"): value for name, value in given.items()}
    done = subprocess.run(
        ["node", "-e", CALL, json.dumps(parameters)], cwd=ROOT / "infra", capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_defaults(programs: Programs) -> None:  # noqa: ARG001 (Node's packages come with them)
    code, text = settings()
    assert code == 0, text
    s = json.loads(text)
    assert (s["mode"], s["architecture"], s["queryTimeout"], s["queryLimit"]) == ("buffered", "arm64", 120, "115s")
    assert s["alarmActions"] == []
    assert s["logging"] == {"LogFormat": "JSON", "ApplicationLogLevel": "TRACE", "SystemLogLevel": "WARN"}


@pytest.mark.parametrize(
    ("given", "source", "api", "url"),
    [
        ({}, "ssm:/promlake/dev/tokens", "", None),
        ({"tokens": "/a"}, "ssm:/a", "", None),
        ({"auth": "iam"}, {"Ref": "AWS::NoValue"}, {"type": "aws_iam"}, "aws_iam"),
        ({"auth": "iam", "tokens": "/a"}, "ssm:/a", {"type": "aws_iam"}, "aws_iam"),
        ({"auth": "iam", "url_auth": "tokens"}, "ssm:/promlake/dev/tokens", {"type": "aws_iam"}, None),
        ({"auth": "tokens", "url_auth": "iam"}, "ssm:/promlake/dev/tokens", "", "aws_iam"),
        ({"auth": "none"}, {"Ref": "AWS::NoValue"}, "", None),
        ({"auth": "none", "tokens": "/a"}, {"Ref": "AWS::NoValue"}, "", None),
    ],
    ids=str,
)
def test_access(given: dict[str, str], source: object, api: object, url: object) -> None:
    """Who may send requests to the API and to the URLs, and whether a document says for which tenants."""
    code, text = settings(**given)
    assert code == 0, text
    s = json.loads(text)
    assert (s["tokensSource"], s["authorizer"]) == (source, api)
    assert (s["queryUrl"].get("authorizer"), s["ingestUrl"].get("authorizer")) == (url, url)


def test_parameters_of_the_composed_environment() -> None:
    text = (ROOT / "infra/localstack/compose/parameters.env").read_text()
    (given,) = re.findall(r"^PARAMS='(.*)'$", text, re.MULTILINE)
    code, text = settings(**dict(p.split("=", 1) for p in given.split()))
    assert code == 0, text


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"retentoin": "90d"}, "parameter retentoin: not known; there are architecture, mode,"),
        ({"architecture": "amd64"}, 'parameter architecture: want one of arm64, x86_64, got "amd64"'),
        ({"mode": "fast"}, 'parameter mode: want one of buffered, direct, grouped, got "fast"'),
        ({"mode": "grouped"}, "parameter capacity-provider: want one with mode=grouped"),
        ({"capacity_provider": "arn:aws:lambda:us-east-1:123456789012:capacity-provider:x"}, "with mode=buffered"),
        ({"query_memory": "10241"}, 'parameter query-memory: want a whole number from 512 to 10240, got "10241"'),
        ({"query_memory": "2 GB"}, "parameter query-memory: want a whole number"),
        ({"ingest_timeout": "30"}, "parameter ingest-timeout: want a whole number from 5 to 29"),
        ({"compact_timeout": "901"}, "parameter compact-timeout"),
        ({"query_timeout": "900"}, "parameter query-timeout"),
        ({"query_divide": "1"}, 'parameter query-divide: want a whole number from 2 to 100, or nothing, got "1"'),
        ({"query_divide": "8", "query_concurrency": "8"}, "parameter query-divide: want less than query-concurrency, of which the query"),
        ({"query_max_dollars": "1e-3"}, 'parameter query-max-dollars: want dollars such as 0.01, got "1e-3"'),
        ({"flush_concurrency": "1"}, "parameter flush-concurrency: want a whole number from 2"),
        ({"retention": "90"}, 'parameter retention: want a period such as 90d, 0 for ever, got "90"'),
        ({"retention": ""}, "parameter retention"),
        ({"iceberg": "glue"}, 'parameter iceberg: want one of on, off, got "glue"'),
        ({"deletion_delay_minutes": "14"}, 'parameter deletion-delay-minutes: want a whole number from 15 to 10080, got "14"'),
        ({"tenant_retention": "team-a"}, "parameter tenant-retention: want TENANT=PERIOD"),
        ({"tenant_retention": "team-a=30d,team-b="}, "parameter tenant-retention"),
        ({"rules_alert_relabel_configs": "[{action: drop}]"}, "parameter rules-alert-relabel-configs: want rules=on, too"),
        ({"alertmanager_url": "http://a/secret"}, "parameter alertmanager-url: want rules=on, too, got another text"),
        ({"webhook_url": "http://a/secret"}, "parameter webhook-url: want rules=on, too, got another text"),
        ({"sns_topic": "arn:aws:sns:us-east-1:123456789012:a"}, "parameter sns-topic: want rules=on, too"),
        ({"rules": "on", "webhook_url": "secret"}, "parameter webhook-url: want a URL, or the name of an SSM parameter that begins with /"),
        ({"rules": "on", "alertmanager_url": "secret"}, "parameter alertmanager-url: want URLs, separated by commas, or nothing, got"),
        ({"rules": "on", "sns_topic": "arn:aws:sqs:us-east-1:123456789012:a"}, "parameter sns-topic: want the ARN of an SNS topic"),
        ({"rules": "on", "webhook_url": "http://a/secret", "alertmanager_url": "http://b/secret"}, "want one of them"),
        ({"rules": "on", "rules_repeat_hours": "0"}, "parameter rules-repeat-hours: want a whole number from 1 to 168"),
        ({"rules": "on", "rules_alert_relabel_configs": "action: drop"}, "want a YAML list of Prometheus' alert_relabel_configs"),
        ({"rules": "on", "rules_alert_relabel_configs": "[{source_label: [a]}]"}, "with the keys source_labels, separator, regex,"),
        ({"rules": "on", "rules_alert_relabel_configs": "[null]"}, "parameter rules-alert-relabel-configs"),
        ({"rules": "on", "rules_alert_relabel_configs": "[{"}, "parameter rules-alert-relabel-configs"),
        ({"rules": "on", "rules_alert_relabel_configs": f"[{{regex: {'a' * 2048}}}]"}, "of at most 2048 bytes"),
        ({"tokens": "promlake/tokens"}, "parameter tokens: want the name of an SSM parameter that begins with /"),
        ({"self_metrics": "yes"}, "parameter self-metrics: want on, off or a URL"),
        ({"auth": "off"}, "parameter auth: want one of tokens, iam, none"),
        ({"auth": "iam", "tokens": "tokens"}, "parameter tokens: want the name of an SSM parameter that begins with /, or nothing"),
        ({"url_auth": "none"}, "parameter url-auth: want one of tokens, iam, or nothing"),
        ({"auth": "none", "url_auth": "iam"}, 'parameter url-auth: want nothing with auth=none, got "iam"'),
        ({"auth": "iam", "self_metrics": "on"}, "parameter self-metrics: want off or a URL with auth=iam"),
        ({"system_log_level": "error"}, 'parameter system-log-level: want one of debug, info, warn, got "error"'),
        ({"log_retention_days": "15"}, "parameter log-retention-days: want one of 1, 3, 5,"),
        ({"tags": "team"}, "parameter tags: want at most 40 of NAME=VALUE,... other than service and stage, such as team=x, or nothing"),
        ({"tags": "a=b,stage=x"}, "parameter tags"),
        ({"tags": "aws:a=b"}, "parameter tags"),
        ({"tags": ",".join(f"t{i}=x" for i in range(41))}, "parameter tags"),
        ({"kms_key": "alias/data"}, 'parameter kms-key: want the ARN of a key of KMS, or nothing, got "alias/data"'),
        ({"permissions_boundary": "bounds"}, "parameter permissions-boundary: want the ARN of a policy of IAM, or nothing"),
        ({"vpc_subnets": "a,b"}, "parameter vpc-subnets: want at most 16 subnets such as subnet-0a1b2c3d,subnet-2c3d4e5f, or nothing"),
        ({"vpc_subnets": "subnet-0a1b2c3d"}, "parameters vpc-subnets, vpc-security-groups: want both or none"),
        ({"api_rate": "0", "api_burst": "5"}, "parameter api-rate: want a whole number from 1 to 10000, or nothing"),
        ({"api_burst": "5"}, "parameters api-rate, api-burst: want both or none"),
        ({"access_logs": "yes"}, "parameter access-logs: want one of on, off"),
        ({"domain": "https://a.example"}, "parameter domain: want a domain such as metrics.example.com, or nothing, got"),
        ({"domain": "a.example"}, "parameters domain, certificate: want both or none"),
        ({"domain": "a.example", "certificate": "a"}, "parameter certificate: want the ARN of a certificate of ACM, or nothing"),
        ({"tracing": "Active"}, 'parameter tracing: want one of on, off, got "Active"'),
        ({"budget_dollars": "0"}, 'parameter budget-dollars: want dollars a month such as 50, or nothing, got "0"'),
        ({"budget_dollars": "50"}, "parameter budget-dollars: want budget-email or alarm-topic, too"),
        ({"budget_email": "a@example.com"}, "parameter budget-email: want budget-dollars, too"),
        ({"budget_dollars": "50", "budget_email": "a@example.com b@example.com"}, "parameter budget-email: want at most 10 addresses"),
        (
            {"canary": "LambdaCanary10Percent5Minutes"},
            "parameter canary: want AllAtOnce, Canary10Percent30Minutes or another",
        ),
        (
            {"canary": "AllAtOnce", "mode": "grouped", "capacity_provider": "arn:aws:lambda:us-east-1:123456789012:capacity-provider:x"},
            "parameter canary: want nothing with mode=grouped",
        ),
        ({"alarm_topic": "pager"}, "parameter alarm-topic: want the ARN of an SNS topic, or nothing"),
    ],
    ids=str,
)
def test_wrong_parameters(given: dict[str, str], error: str, programs: Programs) -> None:  # noqa: ARG001
    code, text = settings(**given)
    assert code == 1
    assert error in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["Prod", "us-east-1", "arm64"], 'stage "Prod": want a lower-case name'),
        (["test-no", "us-east-1", "arm64", "architecture=x86_64"], "parameter architecture: set ARCH= instead"),
        (["test-no", "us-east-1", "sparc"], 'parameter architecture: want one of arm64, x86_64, got "sparc"'),
        (["test-no", "us-east-1", "arm64", "retention"], "parameter retention: want NAME=VALUE"),
        (["test-no", "us-east-1", "arm64", "retentoin=90d"], "parameter retentoin: not known; there are architecture, mode,"),
        (["test-no", "us-east-1", "arm64", "query-memory=10241"], "parameter query-memory: want a whole number from 512 to 10240"),
        (["test-no", "us-east-1", "arm64", "mode=grouped"], "parameter capacity-provider: want one with mode=grouped"),
    ],
)
def test_package_refuses(args: list[str], error: str, programs: Programs) -> None:  # noqa: ARG001
    """It does so in one line, before anything is packaged."""
    done = subprocess.run([ROOT / "infra/package.sh", *args], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"package: {error}")
    assert done.stderr.count("\n") == 1
    assert not (ROOT / "dist/test-no").exists()
