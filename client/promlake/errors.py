"""Errors of requests to a server."""


class PromlakeError(Exception):
    """A request that a server refused, or that it did not answer.

    Attributes:
        error_type: The API's error type, such as `bad_data`, `execution`, `timeout` or `too_many_requests`. `unavailable` if the
            server could not be reached, `bad_response` if what it sent is not an answer of the Prometheus API.
        message: What went wrong, in the server's words where it said something.
        status: The HTTP status, 0 without one.
    """

    def __init__(self, error_type: str, message: str, status: int = 0) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message
        self.status = status

    def __reduce__(self) -> tuple[type["PromlakeError"], tuple[str, str, int]]:
        """Keeps the fields when the error is pickled, as between processes."""
        return type(self), (self.error_type, self.message, self.status)
