"""Fixtures: what make release made, and a copy of this system in which packages are installed."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.programs import ROOT
from support.server import Server
from support.stores import Store

RELEASE = ROOT / "dist/release"
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

Serve = Callable[..., Server]


@pytest.fixture(scope="session")
def release() -> Path:
    assert os.geteuid() == 0, "installing packages and changing the root need root"
    return RELEASE


def only(pattern: str) -> Path:
    """Returns the one file of the release that matches."""
    (path,) = RELEASE.glob(pattern)
    return path


class System:
    """This system's files with a layer above them, which takes what is installed."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        upper = directory / "upper"
        self.root.mkdir()
        upper.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", upper)
        (upper / "files").mkdir()
        (upper / "work").mkdir()
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper}/files,workdir={upper}/work", self.root)
        run("mount", "--bind", "/proc", self.root / "proc")
        run("mount", "--bind", "/dev", self.root / "dev")
        self._mounts = [self.root / "dev", self.root / "proc", self.root, upper]

    def run(self, *args: str | Path) -> str:
        return run("chroot", self.root, *args)

    def close(self) -> None:
        for m in self._mounts:
            run("umount", "--lazy", m)


def run(*args: str | Path) -> str:
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{args}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def system(release: Path, tmp_path: Path) -> Iterator[System]:  # noqa: ARG001 (it must be there)
    system = System(tmp_path)
    yield system
    system.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a program that serves a store. It is ended with the test."""
    with ExitStack() as servers:

        def serve(command: list[str | Path], store: str) -> Server:
            server = Server([*command, "serve"], Store(store, tmp_path), tmp_path / "server")
            servers.callback(server.cleanup)
            return server

        yield serve
