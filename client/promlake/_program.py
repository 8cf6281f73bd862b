"""The program promlake, which the wheel contains, and a child process of it that reads a store."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path

from promlake.errors import PromlakeError

_VARIABLE = "PROMLAKE_BINARY"
_END_SECONDS = 30.0
_LONGEST = 90  # bytes of the directory of a socket, whose path has at most 103 on every system


def binary() -> Path:
    """Returns the path of the program promlake.

    It is the one that the variable PROMLAKE_BINARY names, that of the installed wheel, or
    `bin/promlake` of a checkout, in this order.

    Raises:
        FileNotFoundError: There is none of them.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    package = Path(__file__).parent
    for path in (package / "bin/promlake", package.parents[1] / "bin/promlake"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"this installation has no program promlake: install a wheel of your platform, or set {_VARIABLE} to its path")


def main() -> None:
    """Runs the program in the place of this process: the command `promlake` of the wheel."""
    try:
        path = os.fspath(binary())
        os.execv(path, [path, *sys.argv[1:]])  # noqa: S606
    except OSError as e:
        sys.exit(f"promlake: {e}")


class Reader:
    """A child process that answers queries of a store on a Unix socket that only this user reaches.

    It ends with `close`, with the last reference to this object, or with this process, however that
    ends: the child waits for the end of its standard input.

    Raises:
        PromlakeError: The child could not open the store.
    """

    def __init__(self, store: str) -> None:
        directory = tempfile.mkdtemp(prefix="promlake-")  # of mode 0700
        if len(directory) > _LONGEST:
            os.rmdir(directory)  # noqa: PTH106
            directory = tempfile.mkdtemp(prefix="promlake-", dir="/tmp")
        self.socket = os.path.join(directory, "socket")  # noqa: PTH118
        log = Path(directory, "log")
        try:
            with log.open("wb") as errors:
                args = [os.fspath(binary()), "read", "--store", store, "--socket", self.socket]
                # In a session of its own, so that Ctrl-C cancels a statement and not the child.
                child = subprocess.Popen(  # noqa: S603
                    args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
                )
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        self._end = weakref.finalize(self, _end, child, directory, os.getpid(), threading.Lock())
        try:
            ready = child.stdout.readline() if child.stdout else b""
        except BaseException:
            self._end()
            raise
        if ready != b"ready\n":
            child.wait()
            reason = log.read_text(errors="replace").strip().removeprefix("promlake: error: ")
            self._end()
            raise PromlakeError("unavailable", reason or f"the program that reads {store.partition('?')[0]} ended without a reason")

    def close(self) -> None:
        """Ends the child. Requests that are under way fail."""
        self._end()


def _end(child: "subprocess.Popen[bytes]", directory: str, owner: int, lock: threading.Lock) -> None:
    if os.getpid() != owner:  # a fork: the child is the parent's
        return
    with lock:
        for pipe in (child.stdin, child.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        shutil.rmtree(directory, ignore_errors=True)
