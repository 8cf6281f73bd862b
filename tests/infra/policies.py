"""Evaluates IAM policies as IAM does, as far as this stack's policies go. An unsupported element is an error, never a permission."""

import fnmatch
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

Statement = Mapping[str, Any]


def _any(pattern: str | Sequence[str], value: str, *, fold: bool = False) -> bool:
    patterns = [pattern] if isinstance(pattern, str) else pattern
    if fold:
        patterns, value = [p.lower() for p in patterns], value.lower()
    return any(_like(p, value) for p in patterns)


def _like(pattern: str, value: str) -> bool:
    """Matches with IAM's wildcards * and ?; [ has no special meaning."""
    return _compiled(pattern).match(value) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


def _holds(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    for operator, wants in conditions.items():
        assert operator in ("StringLike", "ArnLike", "StringEquals", "Bool"), operator
        for key, want in wants.items():
            if key not in context:
                return False
            like = operator.endswith("Like")
            if like and not _any(want, context[key]):
                return False
            if not like and context[key] not in ([want] if isinstance(want, str) else want):
                return False
    return True


def _covers(statement: Statement, action: str, resource: str, context: Mapping[str, str]) -> bool:
    assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}, statement
    return (
        _any(statement["Action"], action, fold=True)
        and _any(statement["Resource"], resource)
        and _holds(statement.get("Condition", {}), context)
    )


def allows(statements: Sequence[Statement], action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
    """Reports whether the statements allow an action on a resource: one allows, none denies."""
    effects = {s["Effect"] for s in statements if _covers(s, action, resource, context or {})}
    return effects == {"Allow"}


def denies(statements: Sequence[Statement], action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
    """Reports whether a statement denies the request, which overrides every permission."""
    return any(s["Effect"] == "Deny" and _covers(s, action, resource, context or {}) for s in statements)
