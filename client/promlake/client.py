"""The HTTP client."""

from collections.abc import Iterable
from typing import Any, Self

from promlake import decode
from promlake._http import Duration, Form, Time, Transport, duration_text, time_text
from promlake.errors import PromlakeError
from promlake.results import Matrix, Metadata, Result


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
        self._transport = Transport(url, tenant, token, timeout)

    @classmethod
    def over(cls, transport: Transport) -> Self:
        """Returns a client that sends its requests through a transport: that of a connection."""
        client = cls.__new__(cls)
        client._transport = transport
        return client

    def query(self, expr: str, time: Time | None = None, *, limit: int = 0) -> Result:
        """Evaluates an expression at one time (default: the server's current time).

        Returns:
            A Vector, Matrix, Scalar or String, depending on the expression. A limit cuts the number
            of series and adds a warning.
        """
        form = [("query", expr), *_optional("time", time, time_text), *_limit(limit)]
        return self._result("/api/v1/query", form)

    def query_range(self, expr: str, start: Time, end: Time, step: Duration, *, limit: int = 0) -> Matrix:
        """Evaluates an expression at each step from start to end, both included."""
        form = [
            ("query", expr),
            ("start", time_text(start)),
            ("end", time_text(end)),
            ("step", duration_text(step)),
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
        form = [*_matches(match), *_optional("start", start, time_text), *_optional("end", end, time_text), *_limit(limit)]
        return self._list("POST", "/api/v1/series", form)

    def labels(self, match: str | Iterable[str] = (), start: Time | None = None, end: Time | None = None, *, limit: int = 0) -> list[str]:
        """Lists label names, sorted; with selectors, those of series that at least one matches."""
        form = [*_matches(match), *_optional("start", start, time_text), *_optional("end", end, time_text), *_limit(limit)]
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
        form = [*_matches(match), *_optional("start", start, time_text), *_optional("end", end, time_text), *_limit(limit)]
        return self._list("GET", f"/api/v1/label/{_escape(name)}/values", form)

    def metadata(self, metric: str | None = None, *, limit: int = 0) -> dict[str, tuple[Metadata, ...]]:
        """Returns metadata by name of the metric family, of all families or of one."""
        form = [*_optional("metric", metric, str), *_limit(limit)]
        body = self._transport.json("GET", "/api/v1/metadata", form)
        try:
            return decode.metadata(body["data"])
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise _misshapen(e) from e

    def _result(self, path: str, form: Form) -> Result:
        body = self._transport.json("POST", path, form)
        try:
            return decode.result(body)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
            raise _misshapen(e) from e

    def _list(self, method: str, path: str, form: Form) -> list[Any]:
        data = self._transport.json(method, path, form).get("data")
        if not isinstance(data, list):
            raise PromlakeError("bad_response", "the answer's data is not a list")
        return data


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
