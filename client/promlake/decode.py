"""Decodes the API's JSON into results. Every function raises KeyError, TypeError or ValueError on JSON of another shape."""

from collections.abc import Callable, Mapping
from typing import Any

from promlake.results import (
    Histogram,
    HistogramBucket,
    HistogramPoint,
    Matrix,
    Metadata,
    Point,
    Result,
    Sample,
    Scalar,
    Series,
    String,
    Vector,
)

# The API's boundary rule of a histogram's bucket → are the lower and the upper boundary inside the
# bucket?
_BOUNDARIES = {0: (False, True), 1: (True, False), 2: (False, False), 3: (True, True)}


def result(body: Mapping[str, Any]) -> Result:
    """Decodes a whole answer to `query` or `query_range`."""
    data = body["data"]
    notes = {"warnings": tuple(body.get("warnings") or ()), "infos": tuple(body.get("infos") or ())}
    decode = _TYPES.get(data["resultType"])
    if decode is None:
        raise ValueError(f"unknown result type {data['resultType']!r}")
    return decode(data["result"], notes)


def metadata(data: Mapping[str, Any]) -> dict[str, tuple[Metadata, ...]]:
    """Decodes the data of an answer to `metadata`."""
    return {metric: tuple(Metadata(type=m["type"], help=m["help"], unit=m["unit"]) for m in entries) for metric, entries in data.items()}


def _vector(raw: list[Any], notes: dict[str, Any]) -> Vector:
    return Vector(tuple(_sample(s) for s in raw), **notes)


def _matrix(raw: list[Any], notes: dict[str, Any]) -> Matrix:
    return Matrix(
        tuple(
            Series(
                labels=s["metric"],
                points=tuple(Point(float(t), float(v)) for t, v in s.get("values", ())),
                histograms=tuple(HistogramPoint(float(t), _histogram(h)) for t, h in s.get("histograms", ())),
            )
            for s in raw
        ),
        **notes,
    )


def _scalar(raw: list[Any], notes: dict[str, Any]) -> Scalar:
    return Scalar(float(raw[0]), float(raw[1]), **notes)


def _string(raw: list[Any], notes: dict[str, Any]) -> String:
    return String(float(raw[0]), str(raw[1]), **notes)


def _sample(raw: Mapping[str, Any]) -> Sample:
    if "histogram" in raw:
        time, histogram = raw["histogram"]
        return Sample(raw["metric"], float(time), histogram=_histogram(histogram))
    time, value = raw["value"]
    return Sample(raw["metric"], float(time), value=float(value))


def _histogram(raw: Mapping[str, Any]) -> Histogram:
    buckets = []
    for rule, lower, upper, count in raw.get("buckets") or ():
        lower_inclusive, upper_inclusive = _BOUNDARIES[rule]
        buckets.append(HistogramBucket(float(lower), float(upper), lower_inclusive, upper_inclusive, float(count)))
    return Histogram(float(raw["count"]), float(raw["sum"]), tuple(buckets))


_TYPES: dict[str, Callable[[list[Any], dict[str, Any]], Result]] = {
    "vector": _vector,
    "matrix": _matrix,
    "scalar": _scalar,
    "string": _string,
}
