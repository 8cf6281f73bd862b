"""The HTTP client."""

import datetime as dt
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any

from promlake import decode
from promlake.errors import PromlakeError
from promlake.results import Matrix, Metadata, Result

Time = dt.datetime | float | str
Duration = dt.timedelta | float | str
Form = list[tuple[str, str]]

TENANT_HEADER = "X-Scope-OrgID"


class Client:
    """A client of a Promlake server, or of any server with the Prometheus HTTP API.

    It is safe for concurrent use. Times are timezone-aware datetimes, seconds since the Unix epoch,
    or text in the API's format (RFC 3339). Durations are timedeltas, seconds, or text such as `5m`.
    Every method raises PromlakeError.

    Args:
        url: The server's base URL, such as `http://127.0.0.1:9009`.
        tenant: The tenant to query; None sends no tenant header.
        timeout: Longest wait for data from the server, in seconds.
        token: Bearer token for a server with authentication; in clear text over `http://`.
    """

    def __init__(self, url: str, tenant: str | None = None, timeout: float = 30.0, *, token: str | None = None) -> None:
        scheme = urllib.parse.urlsplit(url).scheme
        if scheme not in {"http", "https"}:
            raise ValueError(f"server URL {url!r}: want http:// or https://")
        self._base = url.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if tenant is not None:
            self._headers[TENANT_HEADER] = tenant
        if token is not None and not (token and token.isascii() and token.isprintable()):
            raise ValueError("token: want printable ASCII, and at least one character")
        self._token = token
        self._timeout = timeout

    def query(self, expr: str, time: Time | None = None, *, limit: int = 0) -> Result:
        """Evaluates an expression at one time (default: the server's current time).

        Returns:
            A Vector, Matrix, Scalar or String, depending on the expression. A limit cuts the number
            of series and adds a warning.
        """
        form = [("query", expr), *_optional("time", time, _time), *_limit(limit)]
        return self._result("/api/v1/query", form)

    def query_range(self, expr: str, start: Time, end: Time, step: Duration, *, limit: int = 0) -> Matrix:
        """Evaluates an expression at each step from start to end, both included."""
        form = [
            ("query", expr),
            ("start", _time(start)),
            ("end", _time(end)),
            ("step", _duration(step)),
            *_limit(limit),
        ]
        answer = self._result("/api/v1/query_range", form)
        if not isinstance(answer, Matrix):
            raise PromlakeError("bad_response", f"a range query was answered with a {type(answer).__name__.lower()}")
        return answer

    def series(
        self, match: str | Iterable[str], start: Time | None = None, end: Time | None = None, *, limit: int = 0
    ) -> list[dict[str, str]]:
        """Lists the label sets of the series that at least one selector matches."""
        form = [*_matches(match), *_optional("start", start, _time), *_optional("end", end, _time), *_limit(limit)]
        return self._list("POST", "/api/v1/series", form)

    def labels(self, match: str | Iterable[str] = (), start: Time | None = None, end: Time | None = None, *, limit: int = 0) -> list[str]:
        """Lists label names, sorted; with selectors, those of series that at least one matches."""
        form = [*_matches(match), *_optional("start", start, _time), *_optional("end", end, _time), *_limit(limit)]
        return self._list("POST", "/api/v1/labels", form)

    def label_values(
        self,
        name: str,
        match: str | Iterable[str] = (),
        start: Time | None = None,
        end: Time | None = None,
        *,
        limit: int = 0,
    ) -> list[str]:
        """Lists a label's values, sorted; with selectors, those of series that at least one matches."""
        form = [*_matches(match), *_optional("start", start, _time), *_optional("end", end, _time), *_limit(limit)]
        return self._list("GET", f"/api/v1/label/{_escape(name)}/values", form)

    def metadata(self, metric: str | None = None, *, limit: int = 0) -> dict[str, tuple[Metadata, ...]]:
        """Returns metadata by name of the metric family, of all families or of one."""
        form = [*_optional("metric", metric, str), *_limit(limit)]
        body = self._ask("GET", "/api/v1/metadata", form)
        try:
            return decode.metadata(body["data"])
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise _misshapen(e) from e

    def _result(self, path: str, form: Form) -> Result:
        body = self._ask("POST", path, form)
        try:
            return decode.result(body)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
            raise _misshapen(e) from e

    def _list(self, method: str, path: str, form: Form) -> list[Any]:
        data = self._ask(method, path, form).get("data")
        if not isinstance(data, list):
            raise PromlakeError("bad_response", "the answer's data is not a list")
        return data

    def _ask(self, method: str, path: str, form: Form) -> dict[str, Any]:
        """Returns the answer's JSON object. Raises PromlakeError unless its status is success."""
        url, body = self._base + path, None
        if method == "POST":
            body = urllib.parse.urlencode(form).encode()
        elif form:
            url += "?" + urllib.parse.urlencode(form)
        # The scheme was checked by the constructor.
        request = urllib.request.Request(url, data=body, headers=self._headers, method=method)  # noqa: S310
        if self._token is not None:
            # The token does not go to the target of a redirect.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310
                status, text = response.status, response.read()
        except urllib.error.HTTPError as e:
            with e:
                status, text = e.code, _read(e)
        except (OSError, http.client.HTTPException) as e:
            raise PromlakeError("unavailable", f"{method} {url}: {e}") from e
        return _success(status, text)


def _read(response: urllib.error.HTTPError) -> bytes:
    try:
        return response.read()
    except (OSError, http.client.HTTPException) as e:
        raise PromlakeError("unavailable", f"read answer of status {response.code}: {e}", response.code) from e


def _success(status: int, text: bytes) -> dict[str, Any]:
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


def _misshapen(e: Exception) -> PromlakeError:
    return PromlakeError("bad_response", f"the answer is not of the API's shape: {type(e).__name__}: {e}")


def _escape(label: str) -> str:
    """Escapes a label name for a path.

    Names that are not identifiers, or look escaped, are written in Prometheus' U__ notation.
    """
    if label.isascii() and label.isidentifier() and not label.startswith("U__"):
        return label
    return "U__" + "".join(c if c.isascii() and c.isalnum() else "__" if c == "_" else f"_{ord(c):x}_" for c in label)


def _matches(match: str | Iterable[str]) -> Form:
    return [("match[]", m) for m in ([match] if isinstance(match, str) else match)]


def _optional(name: str, value: Any, text: Any) -> Form:  # noqa: ANN401
    return [] if value is None else [(name, text(value))]


def _limit(limit: int) -> Form:
    return [("limit", str(limit))] if limit else []


def _time(t: Time) -> str:
    if isinstance(t, dt.datetime):
        if t.tzinfo is None:
            raise ValueError(f"time {t}: want a datetime with a time zone")
        return repr(t.timestamp())
    return t if isinstance(t, str) else repr(t)


def _duration(d: Duration) -> str:
    if isinstance(d, dt.timedelta):
        return repr(d.total_seconds())
    return d if isinstance(d, str) else repr(d)
