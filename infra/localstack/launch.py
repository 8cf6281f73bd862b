"""LocalStack in host mode: `launch.py PORT`, with the interpreter of LocalStack's own environment.

LocalStack listens on every interface whatever it is told, so the interface is pinned where it opens its port.
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
    # It is no container, changes no name server, fetches no certificate and reports nothing.
    "OVERRIDE_IN_DOCKER": "0",
    "DNS_ADDRESS": "0",
    "SKIP_SSL_CERT_DOWNLOAD": "1",
    "DISABLE_EVENTS": "1",
    # Event sources are polled often, so that nobody waits for a message that is there.
    "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC": "0.05",
    "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC": "0.3",
    "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_ERROR_SEC": "1",
    "LS_LOG": "info",
}


def end_with_parent() -> None:
    """Asks the kernel for SIGTERM when the process that started this one is gone, however it went. Linux alone knows that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """Runs LocalStack until it is told to end."""
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
