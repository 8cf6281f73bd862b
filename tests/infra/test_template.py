"""The packaged template: well-formed, complete, and with limits that fit each other."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from conftest import TOPIC, Package
from stack_template import FUNCTIONS, Template, read, seconds
from support.programs import ROOT, Programs

REGIONS = ("us-east-1", "eu-central-1", "ap-southeast-2")
PROGRAM = {"ingest": "ingest-fn", "flush": "ingest-fn", "plan": "compact-fn", "compact": "compact-fn", "query": "query-fn"}
MAX_JOB_SECONDS = 15 * 60  # catalog.MaxJobAge
DAY = 86400


# CloudFormation has no tags for these.
WITHOUT_TAGS = {
    "AWS::ApiGatewayV2::ApiMapping",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Url",
    "AWS::Lambda::Version",
    "AWS::Logs::MetricFilter",
    "AWS::S3::BucketPolicy",
}


def test_everything_is_tagged(default: Template, x86: Template, grouped: Template, canary: Template, guarded: Template) -> None:
    more = {"team": "x", "cost-center": "y"}
    plain: dict[str, str] = {}
    for template, stage, added in (
        (default, "test-default", plain),
        (x86, "test-x86", more),
        (grouped, "test-grouped", plain),
        (canary, "test-canary", plain),
        (guarded, "test-guarded", plain),
    ):
        for name, resource in template.resources.items():
            properties = resource["Properties"]
            tags = properties.get("ResourceTags" if resource["Type"] == "AWS::Budgets::Budget" else "Tags", {})
            found = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
            kind = resource["Type"]
            assert found == ({} if kind in WITHOUT_TAGS else {"service": "promlake", "stage": stage, **added}), name
    for kind in WITHOUT_TAGS:
        assert "Tags" not in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["properties"], kind


def test_cfn_lint(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    names = ("default", "x86", "direct", "grouped", "canary", "guarded")
    done = lint(tmp_path, **{name: request.getfixturevalue(name) for name in names})
    assert done.returncode == 0, done.stdout


def test_cfn_lint_notices(default: Template, tmp_path: Path) -> None:
    changed = default.changed()
    changed.resources["WriteQueue"]["Properties"]["VisibilityTimeout"] = "long"
    assert "'long' is not of type 'integer'" in lint(tmp_path, changed=changed).stdout


def lint(directory: Path, **templates: Template) -> subprocess.CompletedProcess[str]:
    paths = []
    for name, template in templates.items():
        paths.append(directory / f"{name}.json")
        paths[-1].write_text(json.dumps(template.document))
    args = [Path(sys.executable).with_name("cfn-lint"), *paths, "--regions", *REGIONS]
    return subprocess.run(args, capture_output=True, text=True, timeout=300, check=False)


def check_functions(t: Template, arch: str) -> None:
    names = {t.function(f)["FunctionName"].rsplit("-", 1)[-1] for f in FUNCTIONS}
    assert names == set(FUNCTIONS)
    assert len(list(t.of_type("AWS::Lambda::Function"))) == len(FUNCTIONS)
    for f in FUNCTIONS:
        p = t.function(f)
        assert p["Architectures"] == [arch]
        assert (p["Runtime"], p["Handler"]) == ("provided.al2023", "bootstrap")
        assert re.fullmatch(rf"parameter-CodePrefix{PROGRAM[f]}-[0-9a-f]{{16}}\.zip", p["Code"]["S3Key"])
        assert {tag["Key"] for tag in p["Tags"]} >= {"service", "stage"}
        assert "TracingConfig" not in p
        assert 512 <= p.get("EphemeralStorage", {"Size": 512})["Size"] <= 10240


def check_logs(t: Template) -> None:
    groups = {g["LogGroupName"]: g.get("RetentionInDays", 0) for _, g in t.of_type("AWS::Logs::LogGroup")}
    assert set(groups) == {f"/aws/lambda/{t.function(f)['FunctionName']}" for f in FUNCTIONS}
    assert all(days > 0 for days in groups.values()), "logs are kept for ever"
    levels = set()
    for f in FUNCTIONS:
        p = t.function(f)
        # Lambda passes on JSON lines unchanged, which the metric filter relies on.
        assert p["Environment"]["Variables"]["PROMLAKE_LOG_FORMAT"] == "json"
        assert p["LoggingConfig"]["LogFormat"] == "JSON"
        # The lines of a panic have no level, and count as INFO.
        assert p["LoggingConfig"]["ApplicationLogLevel"] == "TRACE", "Lambda drops lines that the program chose to write"
        levels.add(p["LoggingConfig"]["SystemLogLevel"])
    assert len(levels) == 1
    assert levels <= {"DEBUG", "INFO", "WARN"}


def check_times(t: Template) -> None:
    """Each time limit is shorter than the one of its caller."""
    timeout = {f: t.function(f)["Timeout"] for f in FUNCTIONS}
    env = {f: t.function(f)["Environment"]["Variables"] for f in FUNCTIONS}
    write, jobs = t.properties("WriteQueue"), t.properties("JobQueue")
    integrations = [i["TimeoutInMillis"] / 1000 for _, i in t.of_type("AWS::ApiGatewayV2::Integration")]
    assert integrations == [30, 30]
    assert timeout["ingest"] < 30
    (window,) = (m["MaximumBatchingWindowInSeconds"] for _, m in t.of_type("AWS::Lambda::EventSourceMapping") if m["BatchSize"] > 1)
    # No message of a running flush is delivered again, and those of a killed one soon are.
    assert write["VisibilityTimeout"] == timeout["flush"] + window
    # Lambda rejects a mapping whose queue redelivers a message before the function's timeout.
    assert jobs["VisibilityTimeout"] >= timeout["compact"]
    assert jobs["MessageRetentionPeriod"] == MAX_JOB_SECONDS
    assert timeout["compact"] <= MAX_JOB_SECONDS
    assert 60 <= seconds(env["compact"]["PROMLAKE_COMPACTOR_JOB_TIMEOUT"]) < timeout["compact"]
    # A worker can run every job of the planner.
    for limit in ("PROMLAKE_COMPACTOR_JOB_TIMEOUT", "PROMLAKE_COMPACTOR_MEMORY"):
        assert env["plan"][limit] == env["compact"][limit]
    assert int(env["compact"]["PROMLAKE_COMPACTOR_MEMORY"].removesuffix("MiB")) <= t.function("compact")["MemorySize"] / 3
    deletion = 60 * int(env["plan"]["PROMLAKE_COMPACTOR_DELETION_DELAY"].removesuffix("m"))
    assert deletion == (720 if "PROMLAKE_PUBLISH_ICEBERG" in env["plan"] else 15) * 60
    assert 1 <= seconds(env["query"]["PROMLAKE_QUERY_TIMEOUT"]) < timeout["query"] < deletion
    cache = int(env["query"]["PROMLAKE_QUERY_CACHE_BYTES"].removesuffix("MiB"))
    assert 0 < cache < t.function("query")["EphemeralStorage"]["Size"], "the cache fills all of /tmp"


def check_queues(t: Template) -> None:
    queues = dict(t.of_type("AWS::SQS::Queue"))
    assert set(queues) == {"WriteQueue", "DeadLetterQueue", "JobQueue"}
    assert all(q["SqsManagedSseEnabled"] for q in queues.values())
    assert all(q["MaximumMessageSize"] == 1 << 20 for q in queues.values())
    redrive = queues["WriteQueue"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == t.arn("DeadLetterQueue")
    assert redrive["maxReceiveCount"] >= 3
    assert queues["WriteQueue"]["MessageRetentionPeriod"] == queues["DeadLetterQueue"]["MessageRetentionPeriod"] == 14 * DAY
    assert queues["JobQueue"]["FifoQueue"] is True
    mappings = {m["EventSourceArn"]: m for _, m in t.of_type("AWS::Lambda::EventSourceMapping")}
    assert set(mappings) == {t.arn("WriteQueue"), t.arn("JobQueue")}
    for m in mappings.values():
        assert m["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert m["ScalingConfig"]["MaximumConcurrency"] >= 2
        assert m["Enabled"] is True
    assert mappings[t.arn("JobQueue")]["BatchSize"] == 1
    assert mappings[t.arn("JobQueue")]["FunctionName"] == t.arn("CompactLambdaFunction")
    batches = mappings[t.arn("WriteQueue")]
    assert batches["FunctionName"] == t.arn("FlushLambdaFunction")
    assert batches["BatchSize"] <= 10 or batches["MaximumBatchingWindowInSeconds"] >= 1


def check_schedule(t: Template) -> None:
    ((_, rule),) = t.of_type("AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert rule["State"] == "ENABLED"
    assert [x["Arn"] for x in rule["Targets"]] == [t.arn("PlanLambdaFunction")]
    invoke = t.properties("PlanLambdaEvConf")
    assert (invoke["MaximumRetryAttempts"], invoke["MaximumEventAgeInSeconds"]) == (0, 60)


def check_what_stays(t: Template) -> None:
    """Resources that may hold acknowledged data outlive the stack, without a fixed name that would block the next stack."""
    stays = {name for name, r in t.resources.items() if r.get("DeletionPolicy") == "Retain"}
    assert stays == {"Bucket", "BucketPolicy", "WriteQueue", "DeadLetterQueue"}
    assert stays == {name for name, r in t.resources.items() if r.get("UpdateReplacePolicy") == "Retain"}
    for name in stays:
        assert not {"BucketName", "QueueName"} & set(t.resources[name]["Properties"]), name
    told = json.dumps([o["Value"] for o in t.document["Outputs"].values()])
    for name in stays - {"BucketPolicy"}:
        assert json.dumps({"Ref": name}) in told, f"nobody learns where {name} is"


def check_bucket(t: Template) -> None:
    bucket = t.resources["Bucket"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    policy = t.resources["BucketPolicy"]
    assert policy["DeletionPolicy"] == policy["UpdateReplacePolicy"] == "Retain"
    p = t.properties("Bucket")
    assert set(p["PublicAccessBlockConfiguration"].items()) == {
        (name, True) for name in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    }
    assert p["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert p["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    rules = p["LifecycleConfiguration"]["Rules"]
    assert all(r["Status"] == "Enabled" for r in rules)
    assert {"DaysAfterInitiation": 1} in [r.get("AbortIncompleteMultipartUpload") for r in rules]
    assert {"NoncurrentDays": 1} in [r.get("NoncurrentVersionExpiration") for r in rules]
    # Only manifests determine which objects are garbage.
    assert not any(key.startswith(("Expiration", "Transition")) for r in rules for key in r)


def check_alarms(t: Template) -> None:
    alarms = dict(t.of_type("AWS::CloudWatch::Alarm"))
    watched = {
        (d["Value"], a["MetricName"]) for a in alarms.values() for d in a.get("Dimensions", [])
    }  # fmt: skip
    # Failures of ingest and query are 5xx at their entrances. Throttled consumers and planners are
    # late.
    functions = {(t.function(f)["FunctionName"], "Errors") for f in ("flush", "plan", "compact")}
    functions |= {(t.function(f)["FunctionName"], "Throttles") for f in ("ingest", "query")}
    queues = {
        (t.queue_name("DeadLetterQueue"), "ApproximateNumberOfMessagesVisible"),
        (t.queue_name("WriteQueue"), "ApproximateAgeOfOldestMessage"),
    }
    entrances = {("Api", t.resolve({"Ref": "HttpApi"}), "5xx", "4xx", "Count")}
    for name, function in (("QueryUrl", "query"), ("IngestUrl", "ingest")):
        if f"{function.title()}LambdaFunctionUrl" in t.resources:
            entrances.add((name, t.function(function)["FunctionName"], "Url5xxCount", "Url4xxCount", "UrlRequestCount"))
    assert watched == functions | queues | {(entrance, failed) for _, entrance, failed, _, _ in entrances}
    writing = [e for e in entrances if e[0] != "QueryUrl"]
    for name, entrance, _, refused, every in writing:
        metrics = {m["Id"]: m for m in alarms[f"{name}RefusalsAlarm"]["Metrics"]}
        of = {i: metrics[i]["MetricStat"]["Metric"] for i in ("refused", "all")}
        assert {i: (m["MetricName"], [d["Value"] for d in m["Dimensions"]]) for i, m in of.items()} == {
            "refused": (refused, [entrance]),
            "all": (every, [entrance]),
        }
    assert len([name for name in alarms if name.endswith("RefusalsAlarm")]) == len(writing)
    filters = dict(t.of_type("AWS::Logs::MetricFilter"))
    assert set(filters) == {"LagFilter", "SilenceFilter"}
    for name, field in (("Lag", "lag_seconds"), ("Silence", "silent_seconds")):
        line = filters[f"{name}Filter"]
        assert line["LogGroupName"] == f"/aws/lambda/{t.function('plan')['FunctionName']}"
        assert line["FilterPattern"] == '{ $.msg = "planned" }'
        (metric,) = line["MetricTransformations"]
        assert metric["MetricValue"] == f"$.{field}"
        alarm = alarms[f"{name}Alarm"]
        assert (alarm["Namespace"], alarm["MetricName"]) == (metric["MetricNamespace"], metric["MetricName"])
    assert alarms["LagAlarm"]["TreatMissingData"] == "breaching", "a planner that does not run would not be noticed"
    silence = alarms["SilenceAlarm"]
    assert silence["TreatMissingData"] == "notBreaching", "LagAlarm rings if nothing plans"
    assert silence["Threshold"] + silence["Period"] * silence["EvaluationPeriods"] == 3600
    assert silence["Threshold"] <= MAX_JOB_SECONDS, "the planner knows no longer when a sender last wrote"
    mode = t.function("ingest")["Environment"]["Variables"]["PROMLAKE_INGEST_MODE"]
    queued = t.function("plan")["Environment"]["Variables"]["PROMLAKE_COMPACTOR_QUEUED_WRITES"]
    assert queued == str(mode == "buffered").lower()
    if "IngestLambdaFunctionUrl" in t.resources:
        forecast = json.loads((ROOT / "internal/aws/cost/measured.json").read_text())
        billed = sum(len([m for m in a.get("Metrics", [{"MetricStat": {}}]) if "MetricStat" in m]) for a in alarms.values())
        assert billed == forecast["alarms"]["value"]
        assert len(filters) == forecast["metrics"]["value"]
    for name, a in alarms.items():
        assert a["AlarmActions"] == a["OKActions"], name
        assert a["AlarmDescription"], name


def check_address(t: Template) -> None:
    """Public access requires tokens; with IAM, AWS checks every entry point of the API, of the URLs, or of both."""
    urls = dict(t.of_type("AWS::Lambda::Url"))
    assert urls["QueryLambdaFunctionUrl"]["InvokeMode"] == "RESPONSE_STREAM"
    functions = ["query"]
    # A URL invokes an unpublished version, which Managed Instances do not run.
    if "CapacityProviderConfig" not in t.function("ingest"):
        assert urls["IngestLambdaFunctionUrl"].get("InvokeMode", "BUFFERED") == "BUFFERED"
        assert t.resolve(t.document["Outputs"]["WriteFunctionUrl"]["Value"]) == "IngestLambdaFunctionUrl-FunctionUrlapi/v1/write"
        functions.append("ingest")
    else:
        assert "WriteFunctionUrl" not in t.document["Outputs"]
    assert {url["TargetFunctionArn"] for url in urls.values()} == {t.arn(f"{f.title()}LambdaFunction") for f in functions}
    assert len(urls) == len(functions)
    public = [p for _, p in t.of_type("AWS::Lambda::Permission") if p["Principal"] == "*"]
    assert all(p.get("FunctionUrlAuthType") == "NONE" or p.get("InvokedViaFunctionUrl") is True for p in public)
    auth = {url["AuthType"] for url in urls.values()}
    tokens = {"PROMLAKE_AUTH_TOKENS" in t.function(f)["Environment"]["Variables"] for f in ("ingest", "query")}
    doors = {r.get("AuthorizationType", "NONE") for _, r in t.of_type("AWS::ApiGatewayV2::Route") if "/-/" not in r["RouteKey"]}
    assert len(auth) == len(doors) == len(tokens) == 1
    assert tokens == {True} or (auth, doors) == ({"AWS_IAM"}, {"AWS_IAM"})
    if auth == {"NONE"}:
        assert sorted((p["FunctionName"], p["Action"]) for p in public) == sorted(
            (t.arn(f"{f.title()}LambdaFunction"), action)
            for f in functions
            for action in ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction")
        )
    else:
        assert (auth, public) == ({"AWS_IAM"}, [])
        assert doors <= {"AWS_IAM", "NONE"}


CHECKS: tuple[Callable[[Template], None], ...] = (
    check_logs, check_times, check_queues, check_schedule, check_what_stays, check_bucket, check_alarms, check_address,
)  # fmt: skip


@pytest.mark.parametrize(("stage", "arch"), [("default", "arm64"), ("x86", "x86_64"), ("direct", "arm64"), ("grouped", "arm64")])
def test_stack(stage: str, arch: str, request: pytest.FixtureRequest) -> None:
    template: Template = request.getfixturevalue(stage)
    check_functions(template, arch)
    check_all(template)


def check_all(template: Template) -> None:
    for check in CHECKS:
        check(template)


def test_parameters_arrive(default: Template, x86: Template, direct: Template, grouped: Template) -> None:
    """Each parameter has its effect on the template; parameters that are not set have none."""

    def env(t: Template, f: str) -> dict[str, str]:
        return t.function(f)["Environment"]["Variables"]

    assert env(default, "query")["PROMLAKE_AUTH_TOKENS"] == "ssm:/promlake/test-default/tokens"
    assert "PROMLAKE_AUTH_TOKENS" not in env(direct, "ingest") | env(direct, "query")
    assert env(x86, "query")["PROMLAKE_AUTH_TOKENS"] == "ssm:/promlake/test-x86/tokens"
    assert env(grouped, "query")["PROMLAKE_AUTH_TOKENS"] == "ssm:/promlake/test-grouped/tokens"
    assert [env(t, "query")["PROMLAKE_QUERY_MAX_DOLLARS"] for t in (default, x86)] == ["0", "0.05"]
    divided = ("PROMLAKE_QUERY_WORKERS", "PROMLAKE_QUERY_DIVIDE_INVOCATIONS")
    assert [[env(t, "query").get(name) for name in divided] for t in (default, x86)] == [[None, None], ["lambda:self", "8"]]
    signed = "AWS_IAM"
    for t, api, url in ((default, "NONE", "NONE"), (x86, "NONE", signed), (direct, signed, signed), (grouped, signed, signed)):
        assert t.properties("QueryLambdaFunctionUrl")["AuthType"] == url
        routes = [r for _, r in t.of_type("AWS::ApiGatewayV2::Route") if r["RouteKey"] == "GET /federate"]
        assert [r.get("AuthorizationType", "NONE") for r in routes] == [api]
    assert [env(t, "ingest")["PROMLAKE_INGEST_MODE"] for t in (default, direct, grouped)] == ["buffered", "direct", "grouped"]
    for t in (default, x86, direct, grouped):
        assert env(t, "ingest")["PROMLAKE_INGEST_QUEUE_URL"] == t.ref("WriteQueue")
        assert env(t, "plan")["PROMLAKE_COMPACTOR_QUEUE_URL"] == t.ref("JobQueue")
        assert {env(t, f)["PROMLAKE_STORE"] for f in FUNCTIONS} == {"s3://promlake-bucket?region=us-east-1"}
    for f in ("plan", "compact"):
        assert env(default, f)["PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD"] == "0"
        assert "PROMLAKE_COMPACTOR_TENANT_RETENTION" not in env(default, f)
        assert env(x86, f)["PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD"] == "90d"
        assert env(x86, f)["PROMLAKE_COMPACTOR_TENANT_RETENTION"] == "team-a=30d,team-b=0"
    for f in FUNCTIONS:
        here = f == "ingest"
        assert not {"PROMLAKE_SELF_URL", "PROMLAKE_SELF_TOKEN"} & set(env(default, f))
        assert env(x86, f)["PROMLAKE_SELF_URL"] == ("here" if here else "https://promlake-httpapi.execute-api.us-east-1.amazonaws.com")
        assert env(x86, f).get("PROMLAKE_SELF_TOKEN") == (None if here else "ssm:/promlake/test-x86/self-token")
        assert env(grouped, f)["PROMLAKE_SELF_URL"] == "https://example.com/api/v1/write"
        assert env(grouped, f).get("PROMLAKE_SELF_TOKEN") == "ssm:/promlake/test-grouped/self-token"
    assert {t.function(f)["LoggingConfig"]["SystemLogLevel"] for t in (default, direct, grouped) for f in FUNCTIONS} == {"WARN"}
    assert {x86.function(f)["LoggingConfig"]["SystemLogLevel"] for f in FUNCTIONS} == {"INFO"}
    assert default.properties("FlushEventSourceMappingSQSWriteQueue")["MaximumBatchingWindowInSeconds"] == 10
    assert x86.properties("FlushEventSourceMappingSQSWriteQueue")["MaximumBatchingWindowInSeconds"] == 300
    assert "ReservedConcurrentExecutions" not in default.function("ingest") | default.function("query")
    assert x86.function("ingest")["ReservedConcurrentExecutions"] == 50
    assert x86.function("query")["ReservedConcurrentExecutions"] == 20
    assert "CapacityProviderConfig" not in default.function("ingest")
    capacity = grouped.function("ingest")["CapacityProviderConfig"]["LambdaManagedInstancesCapacityProviderConfig"]
    assert capacity["PerExecutionEnvironmentMaxConcurrency"] == 32
    assert default.properties("DeadLetterAlarm")["AlarmActions"] == []
    assert x86.properties("DeadLetterAlarm")["AlarmActions"] == [TOPIC]


@pytest.mark.parametrize("stage", ["x86", "grouped"])
def test_variables_are_flags(stage: str, request: pytest.FixtureRequest, programs: Programs) -> None:
    """Every variable of a function is a flag of its program, with a valid value."""
    template: Template = request.getfixturevalue(stage)
    paths = {"ingest-fn": programs.ingest_fn, "compact-fn": programs.compact_fn, "query-fn": programs.query_fn}
    flags = {name: variables(path) for name, path in paths.items()}
    for f in FUNCTIONS:
        assert set(template.function(f)["Environment"]["Variables"]) <= flags[PROGRAM[f]], f


def variables(program: Path) -> set[str]:
    text = subprocess.run([program, "--help-all"], capture_output=True, text=True, timeout=300, check=True).stdout
    return set(re.findall(r"\$(PROMLAKE_[A-Z0-9_]+)", text))


def test_plain_template(default: Template) -> None:
    """It can be deployed with aws cloudformation."""
    assert set(default.document["Parameters"]) == {"CodeBucket", "CodePrefix"}
    assert not [n for n in default.resources if n.startswith("Serverless")]
    told = {"WriteUrl", "WriteFunctionUrl", "PrometheusUrl", "QueryLambdaFunctionUrl", "BucketName", "DeadLetterQueueUrl"}
    assert told <= set(default.document["Outputs"])
    assert "NoValue" not in json.dumps(default.document)


def test_same_sources_same_bytes(package: Package, default: Template) -> None:
    again = package("test-default", "arm64")
    assert read(again / "cloudformation.json").document == default.document
    keys = {default.function(f)["Code"]["S3Key"].removeprefix("parameter-CodePrefix") for f in FUNCTIONS}
    assert {p.name for p in again.glob("*.zip")} == keys


def properties(t: Template, name: str) -> dict[str, Any]:
    return t.resources[name]["Properties"]


MUTATIONS: dict[str, Callable[[Template], Any]] = {
    "no log retention": lambda t: properties(t, "PlanLogGroup").pop("RetentionInDays"),
    "a write queue that goes with the stack": lambda t: t.resources["WriteQueue"].pop("DeletionPolicy"),
    "dead letters that go with a replaced queue": lambda t: t.resources["DeadLetterQueue"].pop("UpdateReplacePolicy"),
    "a name that stays": lambda t: properties(t, "WriteQueue").update(QueueName="promlake-dev-write"),
    "no log group": lambda t: t.resources.pop("PlanLogGroup"),
    "text around the filter's lines": lambda t: properties(t, "PlanLambdaFunction")["LoggingConfig"].update(LogFormat="Text"),
    "lines that are no JSON": lambda t: properties(t, "PlanLambdaFunction")["Environment"]["Variables"].update(PROMLAKE_LOG_FORMAT="text"),
    "panics are dropped": lambda t: properties(t, "QueryLambdaFunction")["LoggingConfig"].update(ApplicationLogLevel="WARN"),
    "every invocation reports": lambda t: properties(t, "FlushLambdaFunction")["LoggingConfig"].update(SystemLogLevel="INFO"),
    "message shown while its batch is awaited": lambda t: properties(t, "FlushEventSourceMappingSQSWriteQueue").update(
        MaximumBatchingWindowInSeconds=60
    ),
    "message shown while it is flushed": lambda t: properties(t, "FlushLambdaFunction").update(Timeout=300),
    "job shown while it runs": lambda t: properties(t, "JobQueue").update(VisibilityTimeout=600),
    "ingest outlives the API": lambda t: properties(t, "IngestLambdaFunction").update(Timeout=30),
    "query outlives its function": lambda t: properties(t, "QueryLambdaFunction").update(Timeout=60),
    "jobs too large for a worker": lambda t: properties(t, "CompactLambdaFunction").update(MemorySize=1024),
    "planner of other jobs": lambda t: properties(t, "PlanLambdaFunction")["Environment"]["Variables"].pop("PROMLAKE_COMPACTOR_MEMORY"),
    "job outlives its function": lambda t: properties(t, "CompactLambdaFunction").update(Timeout=300),
    "cache larger than /tmp": lambda t: properties(t, "QueryLambdaFunction")["Environment"]["Variables"].update(
        PROMLAKE_QUERY_CACHE_BYTES="1024MiB"
    ),
    "messages are lost": lambda t: properties(t, "WriteQueue").pop("RedrivePolicy"),
    "dead letters end early": lambda t: properties(t, "DeadLetterQueue").update(MessageRetentionPeriod=345600),
    "queue in the clear": lambda t: properties(t, "JobQueue").pop("SqsManagedSseEnabled"),
    "a batch fails as a whole": lambda t: properties(t, "FlushEventSourceMappingSQSWriteQueue").pop("FunctionResponseTypes"),
    "flush is unbounded": lambda t: properties(t, "FlushEventSourceMappingSQSWriteQueue").pop("ScalingConfig"),
    "two jobs at once": lambda t: properties(t, "CompactEventSourceMappingSQSJobQueue").update(BatchSize=2),
    "no clock": lambda t: properties(t, "PlanEventsRuleSchedule1").update(State="DISABLED"),
    "data goes with the stack": lambda t: t.resources["Bucket"].pop("DeletionPolicy"),
    "public bucket": lambda t: properties(t, "Bucket")["PublicAccessBlockConfiguration"].update(BlockPublicPolicy=False),
    "blocks expire": lambda t: properties(t, "Bucket")["LifecycleConfiguration"]["Rules"][0].update(ExpirationInDays=30),
    "uploads pile up": lambda t: properties(t, "Bucket")["LifecycleConfiguration"]["Rules"].pop(0),
    "nobody watches the dead letters": lambda t: t.resources.pop("DeadLetterAlarm"),
    "nobody watches the answers": lambda t: t.resources.pop("ApiFailuresAlarm"),
    "nobody watches the refusals": lambda t: t.resources.pop("IngestUrlRefusalsAlarm"),
    "nobody watches a function": lambda t: t.resources.pop("CompactErrorsAlarm"),
    "a stopped planner is fine": lambda t: properties(t, "LagAlarm").update(TreatMissingData="notBreaching"),
    "lag of another stage": lambda t: properties(t, "LagAlarm").update(Namespace="Promlake/other"),
    "answers are held back": lambda t: properties(t, "QueryLambdaFunctionUrl").pop("InvokeMode"),
    "no tokens": lambda t: [
        properties(t, f"{f}LambdaFunction")["Environment"]["Variables"].pop("PROMLAKE_AUTH_TOKENS") for f in ("Ingest", "Query")
    ],
    "no tokens to ask": lambda t: properties(t, "QueryLambdaFunction")["Environment"]["Variables"].pop("PROMLAKE_AUTH_TOKENS"),
    "anybody invokes ingest": lambda t: properties(t, "IngestLambdaPermissionFn").pop("InvokedViaFunctionUrl"),
    "nobody can write to the URL": lambda t: t.resources.pop("IngestLambdaPermissionFn"),
    "nobody knows the URL": lambda t: t.document["Outputs"].pop("WriteFunctionUrl"),
    "tokens at one door, signatures at the other": lambda t: properties(t, "IngestLambdaFunctionUrl").update(AuthType="AWS_IAM"),
    "a URL of the plan function": lambda t: properties(t, "IngestLambdaFunctionUrl").update(
        TargetFunctionArn={"Fn::GetAtt": ["PlanLambdaFunction", "Arn"]}
    ),
    "writes are streamed": lambda t: properties(t, "IngestLambdaFunctionUrl").update(InvokeMode="RESPONSE_STREAM"),
    "anybody invokes": lambda t: properties(t, "QueryLambdaPermissionFn").pop("InvokedViaFunctionUrl"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_template_is_noticed(default: Template, mutation: str) -> None:
    changed = default.changed()
    MUTATIONS[mutation](changed)
    with pytest.raises((AssertionError, KeyError)):
        check_all(changed)
