"""The environment for machines with Docker, as far as it can be checked without."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.programs import ROOT, Programs

COMPOSE = ROOT / "infra/localstack/compose.yaml"
FOLDER = COMPOSE.parent
# Created by `make localstack-compose`, and files of the machine.
MADE = {".cache/localstack/lambda"}


def services() -> dict[str, dict[str, Any]]:
    return YAML(typ="safe").load(COMPOSE)["services"]


def test_schema() -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", services())
def test_image_is_pinned(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+[a-z-]*", services()[name]["image"])


def test_localstack_versions_agree() -> None:
    (pinned,) = re.findall(r"^localstack-core==(\S+)", (FOLDER / "requirements.txt").read_text(), re.MULTILINE)
    assert services()["localstack"]["image"] == f"localstack/localstack:{pinned}"


@pytest.mark.parametrize("name", services())
def test_mounted_paths_exist(name: str) -> None:
    for volume in services()[name].get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            path = (FOLDER / source).resolve()
            assert path.exists() or str(path.relative_to(ROOT)) in MADE, source


@pytest.mark.parametrize("name", services())
def test_ports_are_of_this_machine_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in services()[name].get("ports", []))


@pytest.mark.parametrize("name", services())
def test_dependencies_exist(name: str) -> None:
    assert set(services()[name].get("depends_on", {})) <= set(services())


def test_scripts_can_be_run() -> None:
    for script in (FOLDER / "compose").glob("*.sh"):
        assert script.stat().st_mode & 0o111


def test_prometheus_configuration(programs: Programs) -> None:
    """Prometheus writes to the address of the gateway."""
    config = FOLDER / "compose/prometheus.yml"
    done = subprocess.run([programs.promtool, "check", "config", config], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (target,) = YAML(typ="safe").load(config)["remote_write"]
    (port,) = (port.split(":")[-1] for port in services()["gateway"]["ports"])
    assert target["url"] == f"http://gateway:{port}/api/v1/write"
