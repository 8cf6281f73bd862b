"""The parameter canary: what it adds to the template, and which triggers invoke the alias."""

import json
import re
from typing import Any

import pytest
from conftest import BOUNDARY, Package
from policies import allows
from stack_template import ACCOUNT, FUNCTIONS, REGION, Template, read

ALL = (*FUNCTIONS, "rules", "replicate")
ADDED = re.compile(r"[A-Z]\w+(Version[0-9a-f]{16}|Alias|Canary)|Canary\w+")


def versions(t: Template) -> dict[str, str]:
    """Returns the logical ids of the versions by functions."""
    return {p["FunctionName"].rsplit("-", 1)[1]: name for name, p in t.of_type("AWS::Lambda::Version")}


def without(value: Any) -> Any:
    """Returns a part of a template without the alias."""
    match value:
        case {"Fn::Join": [":", [function, "live"]]}:
            return function
        case {"DependsOn": [*names], **rest}:
            left = [n for n in names if not n.endswith("Alias")]
            return without(rest) | ({"DependsOn": left} if left else {})
        case dict():
            return {k: "$LATEST" if (k, v) == ("Qualifier", "live") else without(v) for k, v in value.items()}
        case list():
            return [without(v) for v in value]
    return value


@pytest.fixture(scope="module")
def linear(default: Template, package: Package) -> Template:  # noqa: ARG001 (it is read before)
    """The stack with its usual parameters, and this one."""
    return read(package("test-default", "arm64", "canary=Linear10PercentEvery1Minute") / "cloudformation.json")


def test_nothing_without_it(default: Template, linear: Template) -> None:
    """The template is that without the parameter, plus versions, aliases and what moves them."""
    plain = json.dumps(default.document)
    assert not re.search(r"CodeDeploy|AWS::Lambda::(Alias|Version)|:live|RolledBack", plain)
    with_it = linear.changed().document
    with_it["Resources"] = {name: r for name, r in with_it["Resources"].items() if not ADDED.fullmatch(name)}
    for resource in with_it["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            assert resource["Properties"].pop("Description").startswith("deployment ")
    del with_it["Parameters"]["Versions"], with_it["Conditions"]
    assert json.dumps(without(with_it)) == plain


def test_all_triggers_invoke_the_alias(canary: Template) -> None:
    t = canary
    aliases = {f: f"{t.arn(f'{f.title()}LambdaFunction')}:live" for f in ALL}
    invoked = [
        *((p["FunctionName"], name) for name, p in t.of_type("AWS::Lambda::EventSourceMapping")),
        *((p["FunctionName"], name) for name, p in t.of_type("AWS::Lambda::Permission")),
        *((p["TargetFunctionArn"], name) for name, p in t.of_type("AWS::Lambda::Url")),
        *((p["IntegrationUri"], name) for name, p in t.of_type("AWS::ApiGatewayV2::Integration")),
        *((target["Arn"], name) for name, p in t.of_type("AWS::Events::Rule") for target in p["Targets"]),
    ]
    assert len(invoked) == 21
    for arn, name in invoked:
        assert arn == aliases[next(f for f in ALL if f.title() in name)], name
        assert any(n.endswith("Alias") for n in t.resources[name]["DependsOn"]), f"{name} may come before the alias"
    assert {p["Qualifier"] for _, p in t.of_type("AWS::Lambda::EventInvokeConfig")} == {"live"}
    # A query that is divided stays within its version.
    rights = t.properties("QueryRole")["Policies"][0]["PolicyDocument"]["Statement"]
    query = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:promlake-test-canary-query"
    assert allows(rights, "lambda:InvokeFunction", f"{query}:7")
    assert not allows(rights, "lambda:InvokeFunction", f"{query}-other:7")


def test_versions(canary: Template, linear: Template, package: Package) -> None:
    """A change of code or settings publishes a version of each function; another one publishes none."""
    ids = versions(canary)
    assert set(ids) == set(ALL)
    assert len({name[-16:] for name in ids.values()}) == 1
    for name in ids.values():
        assert canary.resources[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    texts = {canary.function(f)["Description"] for f in ALL}
    assert len(texts) == 1
    text = texts.pop()
    assert re.fullmatch(r"deployment [0-9a-f]{16}; segment \d+, block \d+, rollup \d+, manifest \d+, job \d+, .*", text)
    assert {"message 2", "rules-state 1"} <= set(text.split("; ")[1].split(", "))
    assert len(text) <= 256, "Lambda takes no more"
    other = ("canary=AllAtOnce", "api-rate=5", "api-burst=5", "tags=a=b")
    same = read(package("test-default", "arm64", *other) / "cloudformation.json")
    assert not re.search("CodeDeploy|UpdatePolicy|Canary", json.dumps(same.resources))
    assert versions(same) == versions(linear)
    changed = read(package("test-default", "arm64", "canary=AllAtOnce", "tracing=on") / "cloudformation.json")
    assert not set(versions(changed).values()) & set(versions(linear).values())


def test_aliases_and_alarms(canary: Template) -> None:
    """CodeDeploy moves each alias, unless it is moved back, and alarms that ring within three minutes stop it."""
    t = canary
    default = t.document["Parameters"]["Versions"]["Default"]
    assert default == "," * 6
    role = t.properties("CanaryRole")
    assert role["PermissionsBoundary"] == BOUNDARY
    rights = role["Policies"][0]["PolicyDocument"]["Statement"]
    alarms = dict(t.of_type("AWS::CloudWatch::Alarm"))
    watched = set()
    for i, f in enumerate(ALL):
        alias = t.resources[f"{f.title()}Alias"]
        former = {"Fn::Select": [i, {"Fn::Split": [",", {"Ref": "Versions"}]}]}
        assert alias["Properties"]["FunctionVersion"] == {"Fn::If": ["RolledBack", former, {"Fn::GetAtt": [versions(t)[f], "Version"]}]}
        if f == "replicate":
            assert "UpdatePolicy" not in alias
            continue
        update = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["Fn::If"]
        group = t.properties(update[2]["DeploymentGroupName"]["Ref"])
        assert update[:2] == ["RolledBack", {"Ref": "AWS::NoValue"}]
        assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent30Minutes"
        assert set(group["AutoRollbackConfiguration"]["Events"]) >= {"DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"}
        names = [a["Name"].removeprefix("promlake-") for a in group["AlarmConfiguration"]["Alarms"]]
        watched.update(names)
        arn = t.arn(f"{f.title()}LambdaFunction")
        for action in ("lambda:GetAlias", "lambda:UpdateAlias"):
            assert allows(rights, action, arn)
            assert allows(rights, action, f"{arn}:live")
    stopping = {name.lower(): a for name, a in alarms.items() if name.startswith("Canary")}
    assert watched == set(stopping)
    assert {name.removeprefix("canary") for name in watched} == {
        "apifailuresalarm", "ingesturlfailuresalarm", "queryurlfailuresalarm", "writeagealarm", "flusherrorsalarm", "planerrorsalarm",
        "compacterrorsalarm", "ruleserrorsalarm", "rulesfailuresalarm",
    }  # fmt: skip
    for name, a in stopping.items():
        assert a["Period"] * a["EvaluationPeriods"] <= 180, name
        assert a["AlarmActions"] == [], "nobody is called twice"
