"""Promlake's commands as operators run them, until they end."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.programs import Programs
from support.stores import Store

SECONDS = 300.0


class Commands:
    """Runs commands over a store."""

    def __init__(self, programs: Programs, store: Store) -> None:
        self._program, self._store = programs.promlake, store

    def args(self, command: str, *args: str) -> list[str | Path]:
        return [self._program, *command.split(), "--store", self._store.url, *args]

    def env(self) -> dict[str, str]:
        return {**os.environ, **self._store.env}

    def run(self, command: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Runs a command that must succeed."""
        done = subprocess.run(
            self.args(command, *args),
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{command} {args} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    def compact(self, now: float, *args: str) -> str:
        """Compacts until no job is ready at a time (seconds since 1970), and returns the summary."""
        return self.run("compact", "--until-idle", "--now", repr(now), *args).stdout

    def import_tsdb(self, source: Path) -> str:
        """Imports the blocks of a Prometheus, and returns the summary."""
        return self.run("import tsdb", str(source)).stdout

    def collect(self, now: float) -> None:
        """Advances the clock by hours until all garbage is deleted.

        Orphans are given up, history ends, objects are deleted, their entries are forgotten: each step waits for the deletion delay after
        the one before it.
        """
        for hours in range(1, 7):
            self.compact(now + hours * 3600)

    def inspect(self, tenant: str = "anonymous", *args: str) -> dict[str, Any]:
        """Returns `promlake inspect` of a tenant."""
        (found,) = json.loads(self.run("inspect", "--json", "--tenant", tenant, *args).stdout)["tenants"]
        assert found["tenant"] == tenant
        return found

    def levels(self, tenant: str = "anonymous") -> dict[str, int]:
        """Returns the number of live objects by level."""
        return {level["level"]: level["objects"] for level in self.inspect(tenant)["levels"] if level["objects"]}


def no_garbage(commands: Commands, tenant: str = "anonymous") -> bool:
    return all(pile == {"objects": 0, "bytes": 0} for pile in commands.inspect(tenant)["garbage"].values())
