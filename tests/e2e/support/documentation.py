"""What readers copy from the documentation, and the tests execute."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.programs import ROOT

# The server of the examples.
ADDRESS = "http://127.0.0.1:9009"


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text()


def block(name: str, begin: str, replacements: Mapping[str, str] | None = None) -> str:
    """Returns the one fenced block of a page that begins with a text. Each text that is replaced must be in the block."""
    (text,) = (b for b in re.findall(r"^```\w*\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL) if b.startswith(begin))
    for old, new in (replacements or {}).items():
        assert old in text, f"docs/{name}.md has no {old!r} in:\n{text}"
        text = text.replace(old, new)
    return text


def run_shell(script: str, directory: Path | None = None) -> str:
    """Runs lines for a shell, and returns what they print. A line that fails, or an answer other than 2xx, fails the test."""
    quiet = re.sub(r"\bcurl ", "curl --fail-with-body --silent --show-error ", script)
    command = ["bash", "-euo", "pipefail", "-c", quiet]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout
