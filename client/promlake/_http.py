"""Requests to the HTTP API, of a server or on the Unix socket of a child process."""

import datetime as dt
import http.client
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from promlake._program import Reader
from promlake.errors import PromlakeError

Time = dt.datetime | float | str
Duration = dt.timedelta | float | str
Form = list[tuple[str, str]]

TENANT_HEADER = "X-Scope-OrgID"


@dataclass(frozen=True)
class Transport:
    """Sends requests; safe for concurrent use. Each request has a connection of its own.

    Attributes:
        base: URL without the path of a request.
        tenant: The tenant of all requests; None sends no header.
        token: Bearer token; None sends no header.
        timeout: Longest wait for data, in seconds.
        as_of: Time of the state of the data that all requests read, as text; None is the present.
        opener: Opens URLs; None is urllib's default, which knows proxies.
        reader: The child process that answers, kept alive by whatever holds the transport.
    """

    base: str
    tenant: str | None = None
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    as_of: str | None = None
    opener: urllib.request.OpenerDirector | None = None
    reader: Reader | None = None

    def __post_init__(self) -> None:
        scheme = urllib.parse.urlsplit(self.base).scheme
        if scheme not in {"http", "https"}:
            raise ValueError(f"server URL {self.base!r}: want http:// or https://")
        if self.token is not None and not (self.token and self.token.isascii() and self.token.isprintable()):
            raise ValueError("token: want printable ASCII, and at least one character")

    def open(self, method: str, path: str, form: Form) -> http.client.HTTPResponse:
        """Sends a request and returns the answer of status 200, whose body is not yet read.

        Raises:
            PromlakeError: There is no answer, or one of another status.
        """
        url, body = self.base.rstrip("/") + path, None
        if self.as_of is not None:
            form = [*form, ("as_of", self.as_of)]
        if method == "POST":
            body = urllib.parse.urlencode(form).encode()
        elif form:
            url += "?" + urllib.parse.urlencode(form)
        # The scheme was checked by the constructor.
        request = urllib.request.Request(url, data=body, headers={"Accept": "application/json"}, method=method)  # noqa: S310
        if self.tenant is not None:
            request.add_header(TENANT_HEADER, self.tenant)
        if self.token is not None:
            # The token does not go to the target of a redirect.
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        opened: Callable[..., http.client.HTTPResponse] = self.opener.open if self.opener else urllib.request.urlopen
        try:
            return opened(request, timeout=self.timeout)
        except urllib.error.HTTPError as e:
            with e:
                success(e.code, _read_refusal(e))
            raise PromlakeError("bad_response", f"status {e.code} with an answer of success", e.code) from e
        except (OSError, http.client.HTTPException) as e:
            raise PromlakeError("unavailable", f"{method} {url}: {e}") from e

    def json(self, method: str, path: str, form: Form) -> dict[str, Any]:
        """Returns the answer's JSON object. Raises PromlakeError unless its status is success."""
        try:
            with self.open(method, path, form) as response:
                status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as e:
            raise PromlakeError("unavailable", f"{method} {self.base}{path}: {e}") from e
        return success(status, text)


def success(status: int, text: bytes) -> dict[str, Any]:
    """Returns the JSON object of an answer. Raises PromlakeError unless its status is success."""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict) or "status" not in body:
        shown = text[:200].decode(errors="replace").strip()
        raise PromlakeError("bad_response", f"status {status}: {shown}", status)
    if body["status"] != "success":
        raise PromlakeError(str(body.get("errorType", "")), str(body.get("error", "")), status)
    return body


def time_text(t: Time) -> str:
    """Returns a time as the API reads it. Raises ValueError for a datetime without a time zone."""
    if isinstance(t, dt.datetime):
        if t.tzinfo is None:
            raise ValueError(f"time {t}: want a datetime with a time zone")
        return repr(t.timestamp())
    return t if isinstance(t, str) else repr(t)


def duration_text(d: Duration) -> str:
    """Returns a duration as the API reads it."""
    if isinstance(d, dt.timedelta):
        return repr(d.total_seconds())
    return d if isinstance(d, str) else repr(d)


def store_transport(store: str, tenant: str | None, timeout: float, as_of: str | None) -> Transport:
    """Returns a transport to a child process that reads a store. Raises PromlakeError if it cannot."""
    reader = Reader(store)
    return Transport("http://store", tenant, None, timeout, as_of, _unix_opener(reader.socket), reader)


def _unix_opener(path: str) -> urllib.request.OpenerDirector:
    """Returns an opener that reaches a Unix socket, whatever the host of a URL, and uses no proxy."""

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(path)

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    return urllib.request.build_opener(urllib.request.ProxyHandler({}), Handler)


def _read_refusal(response: urllib.error.HTTPError) -> bytes:
    try:
        return response.read()
    except (OSError, http.client.HTTPException) as e:
        raise PromlakeError("unavailable", f"read answer of status {response.code}: {e}", response.code) from e
