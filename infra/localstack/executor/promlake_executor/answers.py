"""What an invocation answers, and the forms that it can have."""

import base64
import json
from typing import Any, NamedTuple

# Of a request, and of an answer that is not streamed, as AWS has it.
MAX_PAYLOAD_BYTES = 6 * 1024 * 1024 + 100
# Of a streamed answer.
MAX_STREAM_BYTES = 200 * 1024 * 1024

# The body is a JSON prelude of status and headers, eight zero bytes, and the body of the HTTP answer.
HTTP_INTEGRATION = "application/vnd.awslambda.http-integration-response"
PRELUDE_END = b"\0" * 8


class Answer(NamedTuple):
    """The payload of an answer. Errors are JSON objects with errorType and errorMessage."""

    payload: bytes
    is_error: bool


def failed(kind: str, message: str) -> Answer:
    """Returns the answer of an invocation that AWS, not the function, calls a failure."""
    return Answer(json.dumps({"errorType": kind, "errorMessage": message}).encode(), is_error=True)


def too_large(length: int) -> Answer:
    """Returns what AWS says of an answer above MAX_PAYLOAD_BYTES."""
    message = f"Response payload size ({length} bytes) exceeded maximum allowed payload size ({MAX_PAYLOAD_BYTES} bytes)."
    return failed("Function.ResponseSizeTooLarge", message)


def gathered(stream: bytes) -> Answer:
    """Turns a streamed HTTP answer into the object that a function which does not stream returns.

    LocalStack knows that object only as JSON, so the body goes as base64.
    """
    prelude, end, body = stream.partition(PRELUDE_END)
    if not end:
        return failed("Runtime.InvalidStream", f"A streamed answer of {len(stream)} bytes has no prelude.")
    try:
        answer: dict[str, Any] = json.loads(prelude)
    except ValueError as e:
        return failed("Runtime.InvalidStream", f"The prelude of a streamed answer is no JSON: {e}.")
    answer |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    return Answer(json.dumps(answer).encode(), is_error=False)
