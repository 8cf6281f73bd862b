"""The Terraform module parses, and its parameters and outputs exist in the stack."""

import re
from typing import Any

import hcl2
import pytest
from stack_template import Template
from support.programs import ROOT

FOLDER = ROOT / "infra/terraform"


@pytest.fixture(scope="module")
def terraform() -> dict[str, list[Any]]:
    """Returns the blocks of all files together, by kind."""
    blocks: dict[str, list[Any]] = {}
    for path in sorted(FOLDER.glob("*.tf")):
        with path.open() as f:
            for kind, found in plain(hcl2.load(f)).items():
                if isinstance(found, list):
                    blocks.setdefault(kind, []).extend(found)
    return blocks


def plain(value: Any) -> Any:
    """Returns parsed HCL without the quotes that the parser leaves on strings and labels."""
    match value:
        case dict():
            return {plain(k): plain(v) for k, v in value.items() if not str(k).startswith("__")}
        case list():
            return [plain(v) for v in value]
        case str():
            return value.strip('"')
    return value


def named(blocks: list[Any]) -> dict[str, Any]:
    return {name: body for block in blocks for name, body in block.items()}


def stack(terraform: dict[str, list[Any]]) -> dict[str, Any]:
    (body,) = (b["aws_cloudformation_stack"]["promlake"] for b in terraform["resource"] if "aws_cloudformation_stack" in b)
    return body


def test_parameters_exist(terraform: dict[str, list[Any]], default: Template) -> None:
    parameters = stack(terraform)["parameters"]
    assert set(parameters) <= set(default.document["Parameters"])
    without_default = {name for name, p in default.document["Parameters"].items() if "Default" not in p}
    assert without_default <= set(parameters)


def test_capabilities_suffice(terraform: dict[str, list[Any]], default: Template) -> None:
    """Roles without names of their own need CAPABILITY_IAM alone."""
    assert stack(terraform)["capabilities"] == ["CAPABILITY_IAM"]
    assert all("RoleName" not in role for _, role in default.of_type("AWS::IAM::Role"))


def test_outputs_exist(terraform: dict[str, list[Any]], default: Template) -> None:
    outputs = named(terraform["output"])
    assert len(outputs) >= 4
    for name, output in outputs.items():
        (of,) = re.findall(r'aws_cloudformation_stack\.promlake\.outputs\["(\w+)"\]', output["value"])
        assert of in default.document["Outputs"], name
        assert output["description"]


def test_variables(terraform: dict[str, list[Any]]) -> None:
    """Each variable is described and used, and every used one exists."""
    variables = named(terraform["variable"])
    text = "".join(path.read_text() for path in FOLDER.glob("*.tf"))
    assert set(re.findall(r"\bvar\.(\w+)", text)) == set(variables)
    for name, variable in variables.items():
        assert variable["description"], name
        assert variable["type"], name


def test_the_provider_comes_from_outside(terraform: dict[str, list[Any]]) -> None:
    """Terraform allows no for_each, count or depends_on for a module with a provider of its own."""
    assert "provider" not in terraform
    (settings,) = terraform["terraform"]
    assert settings["required_providers"][0]["aws"]["source"] == "hashicorp/aws"


def test_the_example_of_the_page(terraform: dict[str, list[Any]]) -> None:
    (text,) = re.findall(r"```hcl\n(.*?)```", (ROOT / "docs/deploy.md").read_text(), re.DOTALL)
    example = plain(hcl2.loads(text))
    variables, outputs = named(terraform["variable"]), named(terraform["output"])
    required = {name for name, variable in variables.items() if "default" not in variable}
    aliases = {f"${{aws.{provider['aws']['alias']}}}" for provider in example["provider"] if "alias" in provider["aws"]}
    modules = named(example["module"])
    for name, module in modules.items():
        given = {key for key in module if not key.startswith("__")} - {"source", "for_each", "providers"}
        assert required <= given <= set(variables), name
        assert module["source"] == "./promlake/infra/terraform"
    assert any("for_each" in module for module in modules.values())
    assert {m["providers"]["aws"] for m in modules.values() if "providers" in m} == aliases
    assert set(re.findall(r"stack\.(\w+)", text)) <= set(outputs)


def test_stacks_share_no_code(terraform: dict[str, list[Any]]) -> None:
    """The end of one stack must not delete the zips of another one in the same bucket."""
    (local,) = terraform["locals"]
    assert local["prefix"] == '${coalesce(var.code_prefix, "promlake/${var.stage}/")}'
    assert stack(terraform)["parameters"]["CodePrefix"] == "${local.prefix}"


def test_keys_are_those_of_the_template(terraform: dict[str, list[Any]], default: Template) -> None:
    (code,) = (b["aws_s3_object"]["code"] for b in terraform["resource"] if "code" in b.get("aws_s3_object", {}))
    assert code["key"] == "${local.prefix}${each.value}"
    assert code["for_each"] == '${fileset(local.package, "*.zip")}'
    for _, function in default.of_type("AWS::Lambda::Function"):
        assert re.fullmatch(r"parameter-CodePrefix[\w-]+\.zip", function["Code"]["S3Key"])
        assert function["Code"]["S3Bucket"] == "parameter-CodeBucket"


def test_a_broken_file_is_noticed() -> None:
    with pytest.raises(Exception, match="Unexpected token"):
        hcl2.loads('resource "aws_s3_object" "x" {\n  bucket = \n}\n')
