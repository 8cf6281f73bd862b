"""Requests to LocalStack's AWS while the stack starts."""

from typing import Any

import boto3

REGION = "us-east-1"
ACCOUNT_KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
FUNCTIONS = ("ingest", "flush", "plan", "compact", "query", "rules")


class Cloud:
    """A stage of the stack in one account and region."""

    def __init__(self, endpoint: str, stage: str) -> None:
        self._session = boto3.Session(*ACCOUNT_KEYS.values(), region_name=REGION)
        self._endpoint, self._stage = endpoint, stage
        self._name = f"promlake-{stage}"

    def _client(self, service: str) -> Any:  # noqa: ANN401 (boto3 makes its classes at run time)
        return self._session.client(service, endpoint_url=self._endpoint)

    def function(self, name: str) -> str:
        """Returns the full name of a function."""
        return f"{self._name}-{name}"

    def function_url(self, name: str) -> str:
        """Returns the Function URL of a function."""
        return self._client("lambda").get_function_url_config(FunctionName=self.function(name))["FunctionUrl"]

    def outputs(self) -> dict[str, str]:
        """Returns the outputs of the stack."""
        (stack,) = self._client("cloudformation").describe_stacks(StackName=self._name)["Stacks"]
        return {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}

    def put_secret(self, name: str, value: str) -> None:
        """Stores what the functions read as ssm:/promlake/STAGE/NAME."""
        self._client("ssm").put_parameter(Name=f"/promlake/{self._stage}/{name}", Value=value, Type="SecureString", Overwrite=True)
