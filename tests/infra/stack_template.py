"""The packaged template as the tests read it: intrinsic functions resolved to names that a real stack could have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REGION, ACCOUNT = "us-east-1", "123456789012"
PSEUDO = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}
FUNCTIONS = ("ingest", "flush", "plan", "compact", "query")

Resource = dict[str, Any]


class Template:
    """A CloudFormation template."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.resources: dict[str, Resource] = document["Resources"]

    def of_type(self, kind: str) -> Iterator[tuple[str, Resource]]:
        for name, resource in self.resources.items():
            if resource["Type"] == kind:
                yield name, self.resolve(resource["Properties"])

    def properties(self, name: str) -> Resource:
        return self.resolve(self.resources[name]["Properties"])

    def function(self, name: str) -> Resource:
        return self.properties(f"{name.title()}LambdaFunction")

    def arn(self, name: str) -> str:
        """Returns the ARN that a resource of this template could have."""
        resource = self.resources[name]
        properties = resource["Properties"]
        match resource["Type"]:
            case "AWS::S3::Bucket":
                return f"arn:aws:s3:::{self.ref(name)}"
            case "AWS::SQS::Queue":
                return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.queue_name(name)}"
            case "AWS::Lambda::Function":
                return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{properties['FunctionName']}"
            case "AWS::Logs::LogGroup":
                return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{properties['LogGroupName']}:*"
            case "AWS::Events::Rule":
                return f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{name}"
            case "AWS::IAM::Role":
                return f"arn:aws:iam::{ACCOUNT}:role/{name}"
            case kind:
                raise AssertionError(f"{name}: no ARN is known for {kind}")

    def queue_name(self, name: str) -> str:
        """Returns the name of a queue; CloudFormation makes one where the template has none."""
        return self.resources[name]["Properties"].get("QueueName", f"promlake-stack-{name}")

    def ref(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.document.get("Parameters", {}):
            return f"parameter-{name}"
        resource = self.resources[name]  # KeyError: the template refers to a missing resource
        properties = resource["Properties"]
        if resource["Type"] == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self.queue_name(name)}"
        return properties.get("FunctionName") or properties.get("LogGroupName") or f"promlake-{name.lower()}"

    def attribute(self, name: str, attribute: str) -> str:
        if attribute == "Arn":
            return self.arn(name)
        if attribute == "QueueName":
            return self.queue_name(name)
        return f"{name}-{attribute}"

    def resolve(self, value: Any) -> Any:
        match value:
            case {"Ref": name}:
                return self.ref(name)
            case {"Fn::GetAtt": [name, attribute]}:
                return self.attribute(name, attribute)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([^}]+)\}", self._substituted, text)
            case {"Fn::Join": [str(glue), list(parts)]}:
                return glue.join(self.resolve(parts))
            case {"Fn::If": ["RolledBack", _, otherwise]}:
                return self.resolve(otherwise)
            case dict():
                assert not any(key.startswith("Fn::") for key in value), f"not resolved: {value}"
                return {key: self.resolve(v) for key, v in value.items()}
            case list():
                return [self.resolve(v) for v in value]
        return value

    def _substituted(self, match: re.Match[str]) -> str:
        name, _, attribute = match[1].partition(".")
        return self.attribute(name, attribute) if attribute else self.ref(name)

    def changed(self) -> "Template":
        """Returns a copy that may be changed."""
        return Template(json.loads(json.dumps(self.document)))


def read(path: Path) -> Template:
    return Template(json.loads(path.read_text()))


def seconds(duration: str) -> int:
    """Returns the seconds of a duration flag."""
    assert duration.endswith("s")
    return int(duration[:-1])
