"""The values that PromQL queries return.

Times are seconds since the Unix epoch, as the API writes them. Values are floats; NaN and the infinities are Python's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

Labels = Mapping[str, str]


class Point(NamedTuple):
    """A float at a time."""

    time: float
    value: float


class HistogramBucket(NamedTuple):
    """One bucket of a native histogram."""

    lower: float
    upper: float
    lower_inclusive: bool
    upper_inclusive: bool
    count: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """A native histogram: how many observations, their sum, and the buckets that are not empty."""

    count: float
    sum: float
    buckets: tuple[HistogramBucket, ...] = ()


class HistogramPoint(NamedTuple):
    """A native histogram at a time."""

    time: float
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one time: either a float value or a native histogram, the other one is None."""

    labels: Labels
    time: float
    value: float | None = None
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One series over time, each list ascending in time."""

    labels: Labels
    points: tuple[Point, ...] = ()
    histograms: tuple[HistogramPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What every result carries besides its value.

    Attributes:
        warnings: What may make the result wrong or incomplete.
        infos: What the query's author should know.
    """

    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector(Result):
    """Series at one time."""

    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Matrix(Result):
    """Series over time."""

    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Scalar(Result):
    """One number at one time."""

    time: float
    value: float


@dataclass(frozen=True, slots=True)
class String(Result):
    """One string at one time."""

    time: float
    value: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a metric family: its type (`counter`, `gauge`, ...), help text and unit."""

    type: str
    help: str
    unit: str
