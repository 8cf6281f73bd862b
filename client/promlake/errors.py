"""Errors of requests to a server."""


class PromlakeError(Exception):
    """A request that the server refused or did not answer.

    Attributes:
        error_type: The API's error type, such as `bad_data`, `execution`, `timeout` or
            `too_many_requests`. `unavailable` if the server could not be reached, `bad_response` if
            its response is not one of the Prometheus API.
        message: The server's message if it sent one, otherwise the cause.
        status: The HTTP status, or 0 if there was no response.
    """

    def __init__(self, error_type: str, message: str, status: int = 0) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message
        self.status = status

    def __reduce__(self) -> tuple[type["PromlakeError"], tuple[str, str, int]]:
        """Keeps the fields when the error is pickled, as between processes."""
        return type(self), (self.error_type, self.message, self.status)
