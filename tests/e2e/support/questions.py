"""Queries that several tests use."""

from promlake import Client, Matrix, Vector


def matrix(client: Client, expr: str, time: float) -> Matrix:
    """Sends an instant query whose answer is a range."""
    answer = client.query(expr, time)
    assert isinstance(answer, Matrix)
    return answer


def vector(client: Client, expr: str, time: float | None = None) -> Vector:
    answer = client.query(expr, time)
    assert isinstance(answer, Vector)
    return answer


def samples(client: Client, selector: str, end_ms: int, span_ms: int) -> dict[frozenset[tuple[str, str]], list[tuple[int, float]]]:
    """Returns every stored sample of (end_ms - span_ms, end_ms] by series, the metric's name included: (ms, value)."""
    answer = matrix(client, f"{selector}[{span_ms}ms]", end_ms / 1000)
    return {frozenset(s.labels.items()): [(round(p.time * 1000), p.value) for p in s.points] for s in answer.series}
