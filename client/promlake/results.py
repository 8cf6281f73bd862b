"""The values that PromQL queries return.

Times are seconds since the Unix epoch. Values are floats, including NaN and the infinities.
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
    """A native histogram: number of observations, their sum, and the non-empty buckets."""

    count: float
    sum: float
    buckets: tuple[HistogramBucket, ...] = ()


class HistogramPoint(NamedTuple):
    """A native histogram at a time."""

    time: float
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one time: either a float value or a native histogram; the other is None."""

    labels: Labels
    time: float
    value: float | None = None
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One series over time; both tuples ascend in time."""

    labels: Labels
    points: tuple[Point, ...] = ()
    histograms: tuple[HistogramPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The fields that all results share.

    Attributes:
        warnings: Reasons why the result may be wrong or incomplete.
        infos: Hints for the author of the query.
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
    """Metadata of a metric family: type (`counter`, `gauge`, ...), help text and unit."""

    type: str
    help: str
    unit: str
