"""The executor as LocalStack loads it. Its settings are variables of LocalStack's process.

PROMLAKE_EXECUTOR_EMULATOR: the program of infra/localstack/lambda; required.
PROMLAKE_EXECUTOR_DIR: folder of logs, pid files and /tmp directories of all functions; required.
PROMLAKE_EXECUTOR_ENDPOINT: AWS_ENDPOINT_URL of the functions; default LocalStack itself. Tests set a proxy.
"""

import os
from pathlib import Path

from localstack import config
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from .environment import Environment, Function

LOOPBACK = "127.0.0.1"


class ProcessExecutor(RuntimeExecutor):
    """One of LocalStack's execution environments, as a process of this machine."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:  # noqa: A002 (LocalStack's name)
        super().__init__(id, function_version)
        settings = function_version.config
        folder = Path(os.environ["PROMLAKE_EXECUTOR_DIR"])
        code = Path(str(settings.code.get_unzipped_code_location()))
        function = Function(function_version.id.function_name, code / "bootstrap", float(settings.timeout or 3), folder)
        self._environment = Environment(Path(os.environ["PROMLAKE_EXECUTOR_EMULATOR"]), id, function)

    def start(self, env_vars: dict[str, str]) -> None:
        """Starts the environment. LocalStack reports an exception to the caller of the invocation."""
        endpoint = os.environ.get("PROMLAKE_EXECUTOR_ENDPOINT") or f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}"
        root = self.function_version.config.code.get_unzipped_code_location()
        env = {name: str(value) for name, value in env_vars.items()}
        env |= {"PATH": os.environ.get("PATH", os.defpath), "LAMBDA_TASK_ROOT": str(root), "AWS_ENDPOINT_URL": endpoint}
        self._environment.start(env)

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        """Runs one invocation. Errors of the function are in the result."""
        request_id = payload["invoke-id"]
        answer = self._environment.invoke(payload["payload"].encode())
        # LocalStack warns of invocations without any output.
        logs = self._environment.take_output() or f"END RequestId: {request_id}\n"
        return InvocationResult(request_id, answer.payload, answer.is_error, logs)

    def stop(self) -> None:
        """Ends the environment."""
        self._environment.stop()

    def get_logs(self) -> str:
        """Returns the function's output since the last invocation."""
        return self._environment.take_output()

    def get_address(self) -> str:
        """Returns the host of the process."""
        return LOOPBACK

    def get_endpoint_from_executor(self) -> str:
        """Returns the host of LocalStack as the process sees it."""
        return LOOPBACK

    def get_runtime_endpoint(self) -> str:
        """Returns an address that only LocalStack's own runtime interface client uses."""
        return f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        """Unpacks the code."""
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Does nothing: LocalStack removes the code itself."""


class ExecutorPlugin(RuntimeExecutorPlugin):
    """The entry point of this package."""

    name = "promlake"

    def load(self, *_: object, **__: object) -> type[RuntimeExecutor]:
        """Returns the class; LocalStack creates one object for each execution environment."""
        return ProcessExecutor
