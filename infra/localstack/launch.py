"""LocalStack in host mode: `launch.py PORT`, with the interpreter of LocalStack's own environment.

LocalStack ignores settings of the interface and listens on all, so this sets the interface where LocalStack opens its port.
"""

import ctypes
import functools
import os
import signal
import sys
from typing import Any

LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1
SETTINGS = {
    "LAMBDA_RUNTIME_EXECUTOR": "promlake",
    # No container, no name server, no certificate from the internet, no telemetry.
    "OVERRIDE_IN_DOCKER": "0",
    "DNS_ADDRESS": "0",
    "SKIP_SSL_CERT_DOWNLOAD": "1",
    "DISABLE_EVENTS": "1",
    # Short polling intervals of event sources, so that messages do not wait.
    "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC": "0.05",
    "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC": "0.3",
    "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_ERROR_SEC": "1",
    "LS_LOG": "info",
}


def end_with_parent() -> None:
    """Requests SIGTERM from the kernel at the end of the parent process, whatever the cause. Only Linux supports this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def complete_cloudformation() -> None:
    """Adds what LocalStack's CloudFormation lacks for `make rollback`: updates of aliases, and updates with the previous template."""
    from localstack.services.cloudformation.resource_provider import OperationStatus, ProgressEvent
    from localstack.services.cloudformation.v2.provider import CloudformationProviderV2 as Provider
    from localstack.services.cloudformation.v2.provider import find_stack_v2, get_cloudformation_store
    from localstack.services.lambda_.resource_providers.lambda_alias import LambdaAliasProvider

    def update_alias(_: object, request: Any) -> Any:  # noqa: ANN401 (LocalStack's types are not here)
        model = request.desired_state
        request.aws_client_factory.lambda_.update_alias(**{name: model[name] for name in ("FunctionName", "Name", "FunctionVersion")})
        return ProgressEvent(OperationStatus.SUCCESS, {**request.previous_state, **model})

    update_stack = Provider.update_stack

    @functools.wraps(update_stack)
    def with_previous_template(self: Any, context: Any, request: Any) -> Any:  # noqa: ANN401
        if request.pop("UsePreviousTemplate", False):
            store = get_cloudformation_store(context.account_id, context.region)
            request["TemplateBody"] = find_stack_v2(store, request["StackName"]).template_body
        return update_stack(self, context, request)

    LambdaAliasProvider.update, Provider.update_stack = update_alias, with_previous_template


def main() -> None:
    """Runs LocalStack until SIGTERM."""
    port = int(sys.argv[1])
    for name, value in {**SETTINGS, "GATEWAY_LISTEN": f"{LOOPBACK}:{port}"}.items():
        os.environ.setdefault(name, value)

    end_with_parent()
    from twisted.internet import endpoints

    endpoints.TCP4ServerEndpoint = functools.partial(endpoints.TCP4ServerEndpoint, interface=LOOPBACK)
    complete_cloudformation()
    from localstack.runtime.main import main as run

    run()


if __name__ == "__main__":
    main()
