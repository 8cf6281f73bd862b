"""The examples that users copy."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs import ROOT, Programs

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_prometheus_configuration(programs: Programs) -> None:
    """It is checked with the rules that it names."""
    done = subprocess.run(
        [programs.promtool, "check", "config", ROOT / "infra/prometheus/prometheus.yml"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def links() -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if "://" not in target:
                yield document, target


@pytest.mark.parametrize(("document", "target"), list(links()), ids=lambda x: x if isinstance(x, str) else x.name)
def test_links_lead_somewhere(document: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = document.parent / path if path else document
    assert file.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def test_flags_in_the_documentation_exist(programs: Programs) -> None:
    known = {"help"}
    for args in ([programs.promlake, "serve"], [programs.promlake, "query", "up"], [programs.ingest_fn], [programs.query_fn]):
        text = subprocess.run([*args, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
        known.update(re.findall(r"--([a-z][a-z0-9.-]*)", text))
    for name in ("getting-started", "remote-write", "querying", "operations", "architecture"):
        text = (ROOT / f"docs/{name}.md").read_text()
        used = set(re.findall(r"`--([a-z][a-z0-9.-]*)", text))
        assert used <= known, f"docs/{name}.md"
