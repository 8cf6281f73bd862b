"""What readers copy from the documentation, and the tests execute."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.programs import ROOT

# The server of the examples.
ADDRESS = "http://127.0.0.1:9009"
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text()


def blocks(name: str) -> list[str]:
    """Returns the fenced blocks of a page."""
    return re.findall(r"^```\w*\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)


def block(name: str, begin: str, replacements: Mapping[str, str] | None = None) -> str:
    """Returns the one fenced block of a page that begins with a text. Each text that is replaced must be in the block."""
    (text,) = (b for b in blocks(name) if b.startswith(begin))
    for old, new in (replacements or {}).items():
        assert old in text, f"docs/{name}.md has no {old!r} in:\n{text}"
        text = text.replace(old, new)
    return text


def commands(text: str) -> Iterator[list[str]]:
    """Returns the arguments of each command of promlake in a text."""
    for line in re.findall(r"^(?:bin/)?promlake (.*)$", text.replace("\\\n", " "), re.MULTILINE):
        yield shlex.split(line)


def local_commands() -> Iterator[list[str]]:
    """Returns the commands of the documentation that read or change the local store or server of its examples."""
    for document in DOCUMENTS:
        for args in commands(document.read_text()):
            if args[0] not in {"serve", "redrive"} and not any("s3://" in a for a in args):
                yield args


def run_shell(script: str, directory: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Runs lines for a shell, and returns what they print. A line that fails, or an answer other than 2xx, fails the test.

    The lines find bin/promlake as promlake.
    """
    quiet = re.sub(r"\bcurl ", "curl --fail-with-body --silent --show-error ", script)
    command = ["bash", "-euo", "pipefail", "-c", quiet]
    env = {**os.environ, "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}", **(env or {})}
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout
