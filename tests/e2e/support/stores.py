"""Object stores: a directory, and a bucket of a versitygw server."""

import hmac
import itertools
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
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
    args += ["--health", "/health", "--quiet", "posix", *metadata(buckets, directory / "metadata"), buckets]
    process = Process(args, directory / "versitygw")
    try:
        process.wait_until(lambda: answers(f"http://{endpoint}/health"), "versitygw's health")
        yield Gateway(f"http://{endpoint}", buckets)
    finally:
        process.cleanup()


class Cloud:
    """A running server of another cloud, with one bucket in memory."""

    def __init__(self, url: str, query: str, env: Mapping[str, str], directory: Path) -> None:
        self._url, self._query, self._env, self._directory = url, query, env, directory
        self._numbers = itertools.count(1)

    def store(self) -> Store:
        """Returns a new, empty store under its own prefix. No files are below its directory."""
        return Store(f"{self._url}/test-{next(self._numbers)}{self._query}", self._directory, self._env)


@contextmanager
def serve_google(program: Path, directory: Path) -> Iterator[Cloud]:
    address = f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    args = [program, "-scheme", "http", "-host", host, "-port", port, "-public-host", address, "-external-url", f"http://{address}"]
    process = Process([*args, "-backend", "memory", "-log-level", "error"], directory / "fake-gcs-server")
    try:
        process.wait_until(lambda: answers(f"http://{address}/storage/v1/b?project=p"), "fake-gcs-server")
        bucket, headers = f'{{"name":"{BUCKET}"}}'.encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{address}/storage/v1/b", bucket, headers)
        urllib.request.urlopen(request, timeout=60).close()
        yield Cloud(f"gs://{BUCKET}", "", {"STORAGE_EMULATOR_HOST": address}, directory)
    finally:
        process.cleanup()


# Azurite's only account, and the key that its documentation names.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def serve_azure(program: Path, directory: Path) -> Iterator[Cloud]:
    port = str(free_port())
    args = [program, "--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence", "--silent"]
    process = Process([*args, "--disableTelemetry", "--skipApiVersionCheck"], directory / "azurite")
    endpoint = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
    try:
        process.wait_until(lambda: _creates_container(endpoint), "azurite")
        env = {"AZURE_STORAGE_ACCOUNT": AZURITE_ACCOUNT, "AZURE_STORAGE_KEY": AZURITE_KEY}
        yield Cloud(f"azblob://{BUCKET}", f"?endpoint={urllib.parse.quote(endpoint, safe='')}", env, directory)
    finally:
        process.cleanup()


def _creates_container(endpoint: str) -> bool:
    """Reports whether azurite has created the container, by a request with a Shared Key signature."""
    kind, headers = "application/octet-stream", {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = f"PUT\n\n\n\n\n{kind}\n\n\n\n\n\n\n" + "".join(f"{k}:{v}\n" for k, v in headers.items())
    signed += f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{BUCKET}\nrestype:container"
    signature = b64encode(hmac.digest(b64decode(AZURITE_KEY), signed.encode(), "sha256")).decode()
    headers["Authorization"] = f"SharedKey {AZURITE_ACCOUNT}:{signature}"
    request = urllib.request.Request(f"{endpoint}/{BUCKET}?restype=container", b"", headers | {"Content-Type": kind}, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=60):
            return True
    except urllib.error.HTTPError as e:
        raise AssertionError(e.read()) from e
    except OSError:
        return False


def metadata(buckets: Path, sidecar: Path) -> list[str | Path]:
    """Returns the flags for objects' metadata: a folder beside the buckets, if the file system has no extended attributes."""
    with tempfile.NamedTemporaryFile(dir=buckets.parent) as probe:
        try:
            os.setxattr(probe.name, "user.probe", b"x")
        except OSError:
            sidecar.mkdir()
            return ["--sidecar", sidecar]
    return []


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False
