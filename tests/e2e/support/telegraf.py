"""Telegraf, built with the plugins that the documentation configures."""

import subprocess
from pathlib import Path

from support.programs import Programs

# One metric, cpu, with the field usage_idle.
INPUT = """
[agent]
  hostname = "web01"
[[inputs.mock]]
  metric_name = "cpu"
  [[inputs.mock.constant]]
    name = "usage_idle"
    value = 97.5
"""


def report(programs: Programs, outputs: str, directory: Path) -> None:
    """Lets Telegraf take one reading, and write it with the section of a configuration. A write that fails fails the test."""
    file = directory / "telegraf.conf"
    file.write_text(INPUT + outputs)
    args = [programs.telegraf, "--once", "--config", file]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
