"""A running Promlake."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

from promlake import Client

from support.programs import Process
from support.remote_write import Sender
from support.stores import Store

# Tests query samples that they have just written, so no query may reuse the listing of an earlier
# one.
FRESH = {"PROMLAKE_QUERY_MAX_STALENESS": "0s"}


class Server:
    """A Promlake process over a store. It can be killed and started again; its URL changes then."""

    def __init__(self, command: list[str | Path], store: Store, directory: Path, flags: tuple[str, ...] = ()) -> None:
        self.store = store
        self._command = [*command, "--listen", "127.0.0.1:0", "--store", store.url, "--log.format", "json", *flags]
        self._directory = directory
        self._lives = itertools.count(1)
        self._senders: list[Sender] = []
        self.start()

    def start(self) -> None:
        self.process = Process(self._command, self._directory / f"life-{next(self._lives)}", FRESH | self.store.env)
        self.process.wait_until(lambda: self._serving() is not None, "promlake to serve")
        self.url = self._serving() or ""

    def _serving(self) -> str | None:
        for line in self.process.log().splitlines(keepends=True):
            if '"msg":"serving"' in line and line.endswith("\n"):
                return json.loads(line)["url"]
        return None

    def client(self, tenant: str | None = None) -> Client:
        return Client(self.url, tenant, timeout=300)

    def sender(self, tenant: str | None = None) -> Sender:
        """Returns a connection that the server's end closes."""
        sender = Sender(self.url, tenant)
        self._senders.append(sender)
        return sender

    def stop(self) -> None:
        """Ends the server with SIGTERM, and checks that it ends with status 0."""
        self._hang_up()
        code = self.process.terminate()
        assert code == 0, f"promlake ended with {code}:\n{self.process.log()}"
        assert "panic" not in self.process.log()

    def cleanup(self) -> None:
        self._hang_up()
        self.process.cleanup()

    def _hang_up(self) -> None:
        for sender in self._senders:
            sender.close()
        self._senders.clear()

    def memory(self, field: str) -> int:
        """Returns the kernel's figure of the process's memory in bytes: VmRSS is the current one, VmHWM the peak."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (x for x in status.splitlines() if x.startswith(field + ":"))
        return int(line.split()[1]) * 1024


# Starts a server over a store with further flags: the fixture `start`.
Start = Callable[..., Server]
