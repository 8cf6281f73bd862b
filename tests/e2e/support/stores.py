"""Object stores: a directory, and a bucket of a versitygw server."""

import itertools
import os
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.programs import Process, Programs, free_port

BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "e2e-access", "AWS_SECRET_ACCESS_KEY": "e2e-secret", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True)
class Store:
    """The URL of a store and its variables. Its objects are files below directory."""

    url: str
    directory: Path
    env: Mapping[str, str] = field(default_factory=dict)


def directory_store(directory: Path) -> Store:
    return Store(f"file://{directory}", directory)


class Gateway:
    """A running S3 server."""

    def __init__(self, endpoint: str, buckets: Path) -> None:
        self.endpoint, self._buckets = endpoint, buckets
        self._numbers = itertools.count(1)

    def store(self) -> Store:
        """Returns a new, empty store under its own prefix."""
        prefix = f"test-{next(self._numbers)}"
        url = f"s3://{BUCKET}/{prefix}?endpoint={urllib.parse.quote(self.endpoint, safe='')}"
        return Store(url, self._buckets / BUCKET / prefix, KEYS)

    def bucket(self, name: str) -> Path:
        """Makes an empty bucket, which s3://name is with the variables of `env`."""
        directory = self._buckets / name
        directory.mkdir()
        return directory

    def env(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL_S3": self.endpoint}


@contextmanager
def serve_gateway(programs: Programs, directory: Path) -> Iterator[Gateway]:
    buckets = directory / "buckets"
    (buckets / BUCKET).mkdir(parents=True)
    endpoint = f"127.0.0.1:{free_port()}"
    args = [programs.versitygw, "--port", endpoint, "--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]]
    args += ["--health", "/health", "--quiet", "posix", *_metadata(buckets, directory / "metadata"), buckets]
    process = Process(args, directory / "versitygw")
    try:
        process.wait_until(lambda: _answers(f"http://{endpoint}/health"), "versitygw's health")
        yield Gateway(f"http://{endpoint}", buckets)
    finally:
        process.cleanup()


def _metadata(buckets: Path, sidecar: Path) -> list[str | Path]:
    """Returns the flags for objects' metadata: a folder beside the buckets, if the file system has no extended attributes."""
    with tempfile.NamedTemporaryFile(dir=buckets.parent) as probe:
        try:
            os.setxattr(probe.name, "user.probe", b"x")
        except OSError:
            sidecar.mkdir()
            return ["--sidecar", sidecar]
    return []


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False
