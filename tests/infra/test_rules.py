"""The stack with rules=on: a function that evaluates the rules of tenants, and serves the API that changes them."""

import json
import re
from pathlib import Path

import pytest
from conftest import Package
from policies import allows
from stack_template import ACCOUNT, FUNCTIONS, REGION, Template, read, seconds
from support.programs import Programs
from test_iam import ACTIONS, check_rights, each, plus, resources, statements
from test_iam import BUFFERED as RIGHTS
from test_routes import gateway, route, table
from test_template import lint, variables

STAGE = "test-rules"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:alerts"
ALERTMANAGERS = "https://user:secret@am-1.example.com,http://am-2.example.com:9093/am"
RELABELING = "[{source_labels: [severity], regex: 'info|none', replacement: 'a=$1', target_label: b}, {regex: a, action: labeldrop}]"
SCHEDULE_SECONDS = 60


@pytest.fixture(scope="module")
def folder(package: Package) -> Path:
    return package(
        STAGE,
        "arm64",
        "rules=on",
        f"alertmanager-url={ALERTMANAGERS}",
        "rules-external-labels=cluster=prod,region=eu",
        f"rules-alert-relabel-configs={RELABELING}",
        "rules-delay=20",
        "rules-concurrency=7",
        "runtime-config=on",
    )


@pytest.fixture(scope="module")
def rules(folder: Path) -> Template:
    return read(folder / "cloudformation.json")


def test_it_is_well_formed(rules: Template, folder: Path, tmp_path: Path) -> None:
    done = lint(tmp_path, rules=rules)
    assert done.returncode == 0, done.stdout
    # CloudFormation takes 1 MB from a bucket, and docs/deploy.md passes one to each tool.
    assert (folder / "cloudformation.json").stat().st_size < 1_000_000


def test_nothing_is_there_by_default(default: Template) -> None:
    assert not [name for name in default.resources if name.startswith("Rules")]
    assert "PROMLAKE_RULER_APPLICATION" not in default.function("query")["Environment"]["Variables"]


def test_the_function(rules: Template, programs: Programs) -> None:
    p = rules.function("rules")
    env = p["Environment"]["Variables"]
    assert re.fullmatch(r"parameter-CodePrefixquery-fn-[0-9a-f]{16}\.zip", p["Code"]["S3Key"])
    assert set(env) <= variables(programs.query_fn)
    assert env["PROMLAKE_RULER_SCHEDULED"] == env["PROMLAKE_RULER_ENABLE_API"] == "true"
    assert env["PROMLAKE_RULER_ALERTMANAGER_URL"] == ALERTMANAGERS
    assert env["PROMLAKE_RULER_EXTERNAL_LABELS"] == "cluster=prod,region=eu"
    assert env["PROMLAKE_RULER_ALERT_RELABEL_CONFIGS"] == RELABELING
    assert env["PROMLAKE_AUTH_TOKENS"] == f"ssm:/promlake/{STAGE}/tokens", "the API is public"
    assert seconds(env["PROMLAKE_RULER_SAMPLE_DELAY"]) == 20
    assert env["PROMLAKE_RULER_QUEUE_URL"] == rules.ref("RulesQueue")
    assert p["LoggingConfig"] == rules.function("query")["LoggingConfig"]
    query = rules.function("query")["Environment"]["Variables"]
    assert env["PROMLAKE_RULER_APPLICATION"] == "Grafana Mimir"
    assert "PROMLAKE_RULER_APPLICATION" not in query, "Grafana would change rules at its own URL, which has none"
    assert query["PROMLAKE_RULER_API_URL"] == env["PROMLAKE_RULER_EXTERNAL_URL"], "its own URL does not lead to the rules"


def test_evaluations_never_overlap(rules: Template) -> None:
    assert rules.function("rules")["Timeout"] < SCHEDULE_SECONDS
    (clock,) = [r for _, r in rules.of_type("AWS::Events::Rule") if r["Targets"][0]["Arn"] == rules.arn("RulesLambdaFunction")]
    assert (clock["ScheduleExpression"], clock["State"]) == ("rate(1 minute)", "ENABLED")
    assert rules.properties("RulesLambdaEvConf")["MaximumRetryAttempts"] == 0
    queue = rules.properties("RulesQueue")
    assert queue["FifoQueue"], "two invocations would evaluate the same groups"
    assert queue["VisibilityTimeout"] >= rules.function("rules")["Timeout"]
    assert queue["MessageRetentionPeriod"] <= 2 * SCHEDULE_SECONDS, "the next minute repeats them"
    source = rules.properties("RulesEventSourceMappingSQSRulesQueue")
    assert (source["BatchSize"], source["ScalingConfig"]) == (1, {"MaximumConcurrency": 7})


def test_a_query_leaves_time_to_others(rules: Template) -> None:
    """Evaluations have three fifths of the function's time, a group three quarters of that, in which two of its queries may time out."""
    timeout = rules.function("rules")["Timeout"]
    query = seconds(rules.function("rules")["Environment"]["Variables"]["PROMLAKE_QUERY_TIMEOUT"])
    assert query >= 1
    assert 2 * query < timeout * 3 / 5 * 3 / 4


def test_routes(rules: Template, default: Template) -> None:
    """The function serves the API for rules, also behind the gateway for LocalStack, and takes nothing else from the others."""
    routes = table(rules, "rules")
    changed = [(method, "/config/v1/{proxy+}") for method in ("GET", "POST", "DELETE")]
    shown = [("GET", f"/api/v1/{path}") for path in ("rules", "alerts", "status/buildinfo")]
    assert {key for key, function in routes.items() if function == "rules"} == {
        (method, prefix + path) for method, path in changed + shown for prefix in ("", "/prometheus")
    } | {(method, "/workspaces/{id}" + path) for method, path in shown}
    assert all(route(routes, method, path) == "rules" for method, path in shown), "not the query function's longer prefix"
    assert {key: function for key, function in routes.items() if function != "rules"} == table(default)
    assert gateway("ingest", "query", "rules") == routes


def test_rights(rules: Template) -> None:
    """It reads samples and rules and writes samples, states and rules; the other functions have no more rights than without it."""
    config = {
        name: {("s3:GetObject", "runtime config")} if name in ("ingest", "flush", "query") else set[tuple[str, str]]() for name in FUNCTIONS
    }
    check_rights(rules, STAGE, plus(RIGHTS, config))
    bucket, policy = rules.arn("Bucket"), statements(rules, "rules")
    named = resources(rules, STAGE) | {
        "rules": f"{bucket}/rules/team-a.json", "state": f"{bucket}/rules-state/team-a/0.json", "rules queue": rules.arn("RulesQueue"),
    }  # fmt: skip
    have = {
        (action, what) for action in ACTIONS for what, arn in named.items() if action != "s3:ListBucket" and allows(policy, action, arn)
    }
    assert have == {
        *each("GetObject PutObject AbortMultipartUpload", "object", "push state", "usage", "dashboard", "kept answer", "rules", "state"),
        *((f"sqs:{action}", "rules queue") for action in ("SendMessage", "ReceiveMessage", "DeleteMessage", "GetQueueAttributes")),
        ("s3:GetObject", "runtime config"), ("ssm:GetParameter", "tokens"),
    }  # fmt: skip
    for prefix, allowed in (("v1/", True), ("rules/", True), ("rules-state/team-a/", True), ("", False), ("config/", False)):
        assert allows(policy, "s3:ListBucket", bucket, {"s3:prefix": prefix}) == allowed, prefix


@pytest.mark.parametrize("receiver", ["sns-topic", "webhook-url"])
def test_without_an_alertmanager(receiver: str, package: Package, programs: Programs) -> None:
    """The function may publish to the topic, or read the parameter with the URL, and no other."""
    value = {"sns-topic": TOPIC, "webhook-url": "/promlake/webhook"}[receiver]
    folder = package("test-notify", "arm64", "rules=on", f"{receiver}={value}", "rules-repeat-hours=6")
    t = read(folder / "cloudformation.json")
    # CloudFormation takes 1 MB from a bucket, and docs/deploy.md passes one to each tool.
    assert (folder / "cloudformation.json").stat().st_size < 1_000_000
    env = t.function("rules")["Environment"]["Variables"]
    assert set(env) <= variables(programs.query_fn)
    assert env["PROMLAKE_RULER_REPEAT_INTERVAL"] == "6h"
    assert "PROMLAKE_RULER_ALERTMANAGER_URL" not in env
    names = {"sns-topic": "PROMLAKE_RULER_SNS_TOPIC_ARN", "webhook-url": "PROMLAKE_RULER_WEBHOOK_URL"}
    assert {name: env.get(name) for name in names.values()} == {
        name: {"sns-topic": TOPIC, "webhook-url": "ssm:/promlake/webhook"}[receiver] if name == names[receiver] else None
        for name in names.values()
    }
    parameter = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/promlake/webhook"
    policy = statements(t, "rules")
    named = (TOPIC, TOPIC + "x", "arn:aws:sns:us-east-1:123456789012:other", parameter, parameter + "x")
    have = {(action, arn) for action in ACTIONS for arn in named if allows(policy, action, arn)}
    assert have == {{"sns-topic": ("sns:Publish", TOPIC), "webhook-url": ("ssm:GetParameter", parameter)}[receiver]}
    for name in FUNCTIONS:
        assert not any(allows(statements(t, name), action, arn) for action, arn in have), name


def test_alarms(rules: Template) -> None:
    alarms = dict(rules.of_type("AWS::CloudWatch::Alarm"))
    for name, metric in (("RulesErrorsAlarm", "Errors"), ("RulesThrottlesAlarm", "Throttles")):
        assert alarms[name]["MetricName"] == metric
        assert alarms[name]["Dimensions"][0]["Value"] == rules.function("rules")["FunctionName"]
    failures = rules.properties("RulesFailuresFilter")
    assert failures["LogGroupName"] == rules.properties("RulesLogGroup")["LogGroupName"]
    assert failures["FilterPattern"] == '{ $.msg = "evaluating rules failed" }'
    (metric,) = failures["MetricTransformations"]
    assert metric["MetricValue"] == "1"
    alarm = alarms["RulesFailuresAlarm"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == (metric["MetricNamespace"], metric["MetricName"], "Sum")
    assert alarm["AlarmActions"] == alarms["RulesErrorsAlarm"]["AlarmActions"]


def test_logs(rules: Template) -> None:
    assert rules.properties("RulesLogGroup")["RetentionInDays"] == 14
    assert "NoValue" not in json.dumps(rules.document)
