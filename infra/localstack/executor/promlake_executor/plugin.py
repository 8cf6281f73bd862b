"""The executor as LocalStack loads it. Its settings are variables of LocalStack's process.

PROMLAKE_EXECUTOR_DIR: folder of logs, pid files and /tmp directories of all functions; required.
PROMLAKE_EXECUTOR_ENDPOINT: AWS_ENDPOINT_URL of the functions; default LocalStack itself. Tests put a proxy between.
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
    """One execution environment of LocalStack's, as a process of this machine."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:  # noqa: A002 (LocalStack's name)
        super().__init__(id, function_version)
        settings = function_version.config
        folder = Path(os.environ["PROMLAKE_EXECUTOR_DIR"])
        code = Path(str(settings.code.get_unzipped_code_location()))
        function = Function(function_version.id.function_name, code, float(settings.timeout or 3), folder)
        self._environment = Environment(id, function)

    def start(self, env_vars: dict[str, str]) -> None:
        """Starts the process; whatever it raises, LocalStack reports to the caller of the invocation."""
        endpoint = os.environ.get("PROMLAKE_EXECUTOR_ENDPOINT") or f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}"
        root = self.function_version.config.code.get_unzipped_code_location()
        env = {name: str(value) for name, value in env_vars.items()}
        env |= {"PATH": os.environ.get("PATH", os.defpath), "LAMBDA_TASK_ROOT": str(root), "AWS_ENDPOINT_URL": endpoint}
        self._environment.start(env)

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        """Runs one invocation; never raises for what a function does."""
        request_id = payload["invoke-id"]
        answer = self._environment.invoke(request_id, payload["payload"].encode(), payload["invoked-function-arn"], payload["trace-id"])
        # LocalStack warns of invocations without any output.
        logs = self._environment.take_output() or f"END RequestId: {request_id}\n"
        return InvocationResult(request_id, answer.payload, answer.is_error, logs)

    def stop(self) -> None:
        """Ends the process."""
        self._environment.stop()

    def get_logs(self) -> str:
        """Returns what the process has printed since the last invocation."""
        return self._environment.take_output()

    def get_address(self) -> str:
        """Returns where the process can be reached."""
        return LOOPBACK

    def get_endpoint_from_executor(self) -> str:
        """Returns the host of LocalStack as the process sees it."""
        return LOOPBACK

    def get_runtime_endpoint(self) -> str:
        """Returns an address of which only LocalStack's own runtime interface client would make use."""
        return f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        """Unpacks the code."""
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Leaves nothing behind: LocalStack removes the code itself."""


class ExecutorPlugin(RuntimeExecutorPlugin):
    """Found through the entry point of this package."""

    name = "promlake"

    def load(self, *_: object, **__: object) -> type[RuntimeExecutor]:
        """Returns the class that LocalStack makes one object of for each execution environment."""
        return ProcessExecutor
