"""Every fenced block of the pages for senders is executed by a test, or listed here with the reason why not."""

import ast
from collections.abc import Iterator
from functools import cache

import pytest
from support.documentation import blocks, commands, local_commands
from support.programs import ROOT

PAGES = (
    "remote-write", "otlp", "influxdb", "lines", "listeners", "opentsdb", "datadog", "text", "pushgateway", "ha",
    "import", "export", "admission", "cardinality",
)  # fmt: skip
# By page and beginning.
NOT_EXECUTED = {
    (
        "import",
        "mimirtool backfill ",
    ): "mimirtool's module replaces others, so no proxy serves it whole; test_block_upload uses the API",
}


@cache
def taken() -> set[tuple[str, str]]:
    """Returns the pages and beginnings of the blocks that tests take: the literal arguments of calls of `block`."""
    files = sorted((ROOT / "tests/e2e").glob("test_*.py"))
    calls = (n for file in files for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call))
    literals = ([a.value for a in c.args[:2] if isinstance(a, ast.Constant)] for c in calls if getattr(c.func, "id", "") == "block")
    return {(page, begin) for page, begin in (x for x in literals if len(x) == 2)}


def every_block() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for text in blocks(page):
            yield page, text


@pytest.mark.parametrize(("page", "text"), list(every_block()), ids=lambda x: x.split("\n")[0][:40])
def test_block_is_executed(page: str, text: str) -> None:
    """By a test that takes the block, or by test_commands, which runs commands over a local store."""
    local = list(local_commands())
    by_commands = all(line.startswith("promlake ") for line in text.replace("\\\n", " ").splitlines()) and all(
        args in local for args in commands(text)
    )
    listed = any(p == page and text.startswith(begin) for p, begin in NOT_EXECUTED)
    executed = by_commands or any(p == page and text.startswith(begin) for p, begin in taken())
    assert executed != listed, f"docs/{page}.md: {'listed, but executed' if listed else 'no test executes'}:\n{text}"


def test_list_names_blocks() -> None:
    every = list(every_block())
    assert len(every) >= 40
    for page, begin in NOT_EXECUTED:
        assert any(p == page and text.startswith(begin) for p, text in every), f"docs/{page}.md has no block {begin!r}"
