"""The environments for machines with Docker, as far as they can be checked without."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.programs import ROOT, Process, Programs, free_port
from support.remote_write import series
from support.server import Server
from support.stores import Store, answers, metadata

EXAMPLE, LOCALSTACK = ROOT / "deploy/compose.yaml", ROOT / "infra/localstack/compose.yaml"
# Created by `make localstack-compose`.
MADE = {".cache/localstack/lambda"}


def services(file: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load(file.read_text())["services"]


SERVICES = [pytest.param(file, s, id=f"{file.parent.name}-{name}") for file in (EXAMPLE, LOCALSTACK) for name, s in services(file).items()]


@pytest.mark.parametrize("file", [EXAMPLE, LOCALSTACK])
def test_schema(file: Path) -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("file", "service"), SERVICES)
def test_service(file: Path, service: dict[str, Any]) -> None:
    """Its image is pinned, its ports are of this machine alone, and what it mounts and depends on exists."""
    document = yaml.safe_load(file.read_text())
    assert re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+[a-z-]*", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        path = (file.parent / source).resolve()
        if source.startswith("."):
            assert path.exists() or str(path.relative_to(ROOT)) in MADE, source
        else:
            assert source in document.get("volumes", {}) or path.is_absolute(), source
    assert {c["source"] for c in service.get("configs", [])} <= set(document.get("configs", {}))
    assert set(service.get("depends_on", {})) <= set(document["services"])


def test_localstack_versions_agree() -> None:
    (pinned,) = re.findall(r"^localstack-core==(\S+)", (LOCALSTACK.parent / "requirements.txt").read_text(), re.MULTILINE)
    assert services(LOCALSTACK)["localstack"]["image"] == f"localstack/localstack:{pinned}"


def test_scripts_can_be_run() -> None:
    for script in (LOCALSTACK.parent / "compose").glob("*.sh"):
        assert script.stat().st_mode & 0o111


@pytest.mark.parametrize(("file", "server"), [(EXAMPLE, "promlake:9009"), (LOCALSTACK, "gateway:9019")])
def test_prometheus_configuration(file: Path, server: str, programs: Programs, tmp_path: Path) -> None:
    """It is valid, and Prometheus writes to the address that Grafana asks."""
    path = LOCALSTACK.parent / "compose/prometheus.yml"
    if file == EXAMPLE:
        path = tmp_path / "prometheus.yml"
        path.write_text(yaml.safe_load(file.read_text())["configs"]["prometheus"]["content"])
    done = subprocess.run([programs.promlake, "check", "config", path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (target,) = yaml.safe_load(path.read_text())["remote_write"]
    assert target["url"] == f"http://{server}/api/v1/write"
    assert services(file)["grafana"]["environment"]["PROMLAKE_URL"] == f"http://{server}"
    name, port = server.split(":")
    assert f"127.0.0.1:{port}:{port}" in services(file)[name]["ports"]


def test_example_stores_samples(programs: Programs, tmp_path: Path) -> None:
    """The commands of the store and of Promlake, with addresses and folders of this machine."""
    bucket, store, promlake = (services(EXAMPLE)[name] for name in ("bucket", "store", "promlake"))
    endpoint = f"127.0.0.1:{free_port()}"

    def here(words: list[str]) -> list[str]:
        for name, local in {"/buckets": f"{tmp_path}/buckets", "store:7070": endpoint, "=:7070": f"={endpoint}"}.items():
            words = [word.replace(name, local) for word in words]
        return words

    subprocess.run(here(bucket["entrypoint"]), check=True)
    *options, backend, buckets = here(store["command"])
    sidecar = metadata(tmp_path / "buckets", tmp_path / "metadata")  # this file system may have no extended attributes
    gateway = Process([programs.versitygw, *options, backend, *sidecar, buckets], tmp_path / "store")
    command, listen, url, *flags = here(promlake["command"])
    assert (command, listen) == ("serve", "--listen=:9009")
    try:
        (health,) = (word for word in store["healthcheck"]["test"] if word.startswith("http://"))
        gateway.wait_until(lambda: answers(health.replace("127.0.0.1:7070", endpoint)), "the store's health")
        bucket_store = Store(url.removeprefix("--store="), tmp_path, promlake["environment"])
        server = Server([programs.promlake, command], bucket_store, tmp_path, tuple(flags))
        assert server.sender().write(series("m", [(1_000, 1.0)])).status < 300
        server.stop()
        assert list((tmp_path / "buckets/metrics/v1/anonymous/segments").glob("*/*"))
    finally:
        gateway.cleanup()
