"""Fixtures: programs, stores and servers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.programs import Programs, find_programs
from support.server import Server, Start
from support.stores import Cloud, Gateway, Store, directory_store, serve_azure, serve_gateway, serve_google

PROMETHEUS_BIN = os.environ.get("PROMETHEUS_BIN", "")
FAKE_GCS_SERVER = os.environ.get("PROMLAKE_FAKE_GCS_SERVER", "")
# Spark is large, and only `make test-spark` provides it.
collect_ignore = [] if "PROMLAKE_IVY" in os.environ else ["test_spark.py"]


@pytest.fixture(scope="session")
def programs() -> Programs:
    return find_programs()


@pytest.fixture(params=["debian", *(["given"] if PROMETHEUS_BIN else [])])
def prometheus(request: pytest.FixtureRequest, programs: Programs) -> Path:
    """Debian's Prometheus, and the one that PROMETHEUS_BIN names."""
    return programs.prometheus if request.param == "debian" else Path(PROMETHEUS_BIN)


@pytest.fixture(scope="session")
def gateway(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serve_gateway(programs, tmp_path_factory.mktemp("s3")) as gateway:
        yield gateway


@pytest.fixture
def file_store(tmp_path: Path) -> Store:
    return directory_store(tmp_path / "store")


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with serve_google(Path(FAKE_GCS_SERVER), tmp_path_factory.mktemp("gs")) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with serve_azure(Path(os.environ["PROMLAKE_AZURITE"]), tmp_path_factory.mktemp("azblob")) as cloud:
        yield cloud


@pytest.fixture(params=["file", "s3", *(["gs", "azblob"] if FAKE_GCS_SERVER else [])])
def store(request: pytest.FixtureRequest) -> Store:
    """Each kind of store in turn, empty. `make test-stores` provides those of other clouds than AWS."""
    if request.param == "file":
        return request.getfixturevalue("file_store")
    return request.getfixturevalue({"s3": "gateway", "gs": "google", "azblob": "azure"}[request.param]).store()


@pytest.fixture
def start(programs: Programs, tmp_path: Path) -> Iterator[Start]:
    """Starts servers over a store with flags. Servers that still run at the end are killed."""
    with starting(programs, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_for_module(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """As start, for the servers of a module."""
    with starting(programs, tmp_path_factory.mktemp("servers")) as start:
        yield start


@contextmanager
def starting(programs: Programs, directory: Path) -> Iterator[Start]:
    servers: list[Server] = []

    def start(store: Store, *flags: str, command: list[str | Path] | None = None) -> Server:
        server = Server(command or [programs.promlake, "serve"], store, directory / f"server-{len(servers)}", flags)
        servers.append(server)
        return server

    try:
        yield start
    finally:
        for server in servers:
            server.cleanup()


@pytest.fixture
def server(start: Start, file_store: Store) -> Iterator[Server]:
    """A server over a directory, which must end with status 0."""
    server = start(file_store)
    yield server
    server.stop()
