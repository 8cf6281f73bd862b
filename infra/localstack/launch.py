"""LocalStack in host mode: `launch.py PORT`, with the interpreter of LocalStack's own environment.

LocalStack ignores settings of the interface and listens on all, so this sets the interface where LocalStack opens its port.
"""

import ctypes
import functools
import os
import signal
import sys

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


def main() -> None:
    """Runs LocalStack until SIGTERM."""
    port = int(sys.argv[1])
    for name, value in {**SETTINGS, "GATEWAY_LISTEN": f"{LOOPBACK}:{port}"}.items():
        os.environ.setdefault(name, value)

    end_with_parent()
    from twisted.internet import endpoints

    endpoints.TCP4ServerEndpoint = functools.partial(endpoints.TCP4ServerEndpoint, interface=LOOPBACK)
    from localstack.runtime.main import main as run

    run()


if __name__ == "__main__":
    main()
