"""The statements of docs/deploy.md are true."""

import json
import re
import subprocess

import pytest
from conftest import Package
from policies import allows
from stack_template import FUNCTIONS, Template
from support.programs import ROOT, Programs

PAGE = (ROOT / "docs/deploy.md").read_text()
VARIABLES = {"STAGE", "PARAMS", "ARCH", "REGION", "YES", "ALLOW_DELETION"}  # of make


def defaults() -> dict[str, str]:
    """Returns the parameters of serverless.yml by name."""
    code = "console.log(JSON.stringify(require('js-yaml').load(require('fs').readFileSync('serverless.yml', 'utf8')).params.default))"
    done = subprocess.run(["node", "-e", code], cwd=ROOT / "infra", capture_output=True, text=True, timeout=300, check=True)
    return {name: str(value) for name, value in json.loads(done.stdout).items()}


def documented() -> dict[str, str]:
    """Returns the parameters of the page's table by name."""
    table = PAGE.split("| parameter | default | |\n")[1].split("\n\n")[0]
    found = {}
    for line in table.splitlines()[1:]:
        names, values = (re.findall(r"`([^`]*)`", cell) for cell in line.split("|")[1:3])
        found.update(zip(names, values or [""] * len(names), strict=True))
    return found


def test_parameters(programs: Programs) -> None:  # noqa: ARG001 (Node's packages come with them)
    assert documented() == {name: value.replace("${sls:stage}", "STAGE") for name, value in defaults().items()}


def test_make_targets() -> None:
    commands = re.findall(r"^make ([a-z-]+)(.*)$", PAGE, re.MULTILINE)
    assert {target for target, _ in commands} >= {"build", "deploy", "package", "remove"}
    text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True).stdout
    for target, arguments in commands:
        assert f"make {target} " in text
        assert set(re.findall(r"\b([A-Z_]+)=", re.sub(r"'[^']*'", "", arguments))) <= VARIABLES


@pytest.mark.parametrize("given", re.findall(r"PARAMS='([^']*)'", PAGE))
def test_examples_of_parameters(given: str, package: Package) -> None:
    package("test-page", "arm64", *given.split())


def test_outputs(default: Template) -> None:
    """The labels that make deploy prints are those of the page."""
    labels = re.findall(r"^    \['([^']+)', '(\w+)'\],$", (ROOT / "infra/stack.js").read_text(), re.MULTILINE)
    assert len(labels) == 6
    for label, output in labels:
        assert output in default.document["Outputs"]
        assert re.search(rf"^  {label} +https?://|^  {label} +promlake-", PAGE, re.MULTILINE), label


def test_alarms(default: Template) -> None:
    """The runbook has every alarm in its table, and again in the section to which the table leads."""
    runbook = (ROOT / "docs/operations-aws.md").read_text()
    alarms = {name for name, _ in default.of_type("AWS::CloudWatch::Alarm")}
    sections = {part.split("\n")[0].lower().replace(" ", "-"): part for part in runbook.split("\n## ")[1:]}
    named = set()
    for names, section in re.findall(r"^\| \[([\w, ]+Alarm)\]\(#([\w-]+)\) \|", runbook, re.MULTILINE):
        assert all(name in sections[section] for name in names.split(", ")), section
        named.update(names.split(", "))
    assert named == alarms | {"ReplicaAlarm"} | {f"Rules{kind}Alarm" for kind in ("Failures", "Errors", "Throttles")}
    seen = re.findall(r'"(\w+Alarm)"\}', (ROOT / "tests/functions/outages_test.go").read_text())
    assert len(seen) >= 10
    assert set(seen) <= alarms


def test_the_table_of_rights(default: Template) -> None:
    table = PAGE.split("| function | queue |")[1].split("\n\n")[0]
    rows = {cells[1].strip(): cells for cells in (line.split("|") for line in table.splitlines()[2:])}
    assert set(rows) == set(FUNCTIONS)
    things = {of: f"{default.arn('Bucket')}/v1/team-a/{key}" for of, key in (
        ("", "manifest.json"), ("/pushes/", "pushes/x.json"), ("/usage/", "usage/queries.json"), ("/dashboards/", "dashboards/x.json"),
        ("/answers/", "answers/x/x.arrow"),
    )}  # fmt: skip
    words = {"get": "s3:GetObject", "put": "s3:PutObject", "delete": "s3:DeleteObject"}
    for function, cells in rows.items():
        role = default.properties(f"{function.title()}Role")
        policy = [s for p in role["Policies"] for s in p["PolicyDocument"]["Statement"]]
        rights = [part for part in cells[3].split(";") if "in modes" not in part]
        for word, action in words.items():
            told = [part for part in rights if word in re.findall(r"\w+", part)]
            for of, thing in things.items():
                # A part names what it is below, or is about all objects.
                expected = any("below" not in part or (of and of in part) for part in told)
                assert allows(policy, action, thing) == expected, (function, word, thing)


def test_parameters_of_the_plain_template(default: Template) -> None:
    commands = re.findall(r"^aws cloudformation deploy .*$", PAGE, re.MULTILINE)
    assert commands
    assert all("--s3-bucket" in command for command in commands), "the template has more bytes than a request may have"
    given = re.findall(r"--parameter-overrides (\w+)=", PAGE)
    assert given == ["CodeBucket"]
    assert "Default" not in default.document["Parameters"]["CodeBucket"]
    assert f"s3://MY-CODE/{default.document['Parameters']['CodePrefix']['Default']}" in PAGE
