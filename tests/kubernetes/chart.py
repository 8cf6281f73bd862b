"""The Helm chart, as helm renders it."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from support.programs import ROOT

CHART = ROOT / "deploy/helm/promlake"
MODULE = ROOT / "tests/kubernetes"
TOOLS = ROOT / ".cache/bin"

Object = dict[str, Any]


def module_directory(name: str) -> Path:
    """Returns the folder of a module that the module of the tools requires."""
    done = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", name], cwd=MODULE, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def helm(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs helm without a cluster and without files of the user."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HELM_", "KUBE"))} | {
        f"HELM_{kind}_HOME": "/nonexistent" for kind in ("CACHE", "CONFIG", "DATA")
    }
    env["KUBECACHEDIR"] = str(TOOLS.parent / "kube")
    return subprocess.run([TOOLS / "helm", *args], env=env, capture_output=True, text=True, timeout=300, check=False)


def render(values: Object, directory: Path) -> list[Object]:
    """Returns the objects of the release `lake` in the namespace `metrics`."""
    file = directory / "values.yaml"
    file.write_text(json.dumps(values))
    done = helm("template", "lake", CHART, "--namespace", "metrics", "--values", file)
    assert done.returncode == 0, done.stderr
    return [o for o in yaml.safe_load_all(done.stdout) if o]


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    return {o["metadata"]["name"]: o for o in objects if o["kind"] == kind}


def pod(deployment: Object) -> Object:
    return deployment["spec"]["template"]["spec"]


def mounted(objects: list[Object], deployment: Object, root: Path) -> list[str]:
    """Writes the config maps of a deployment's pod below root, and returns the container's arguments with paths there."""
    (container,) = pod(deployment)["containers"]
    maps = of_kind(objects, "ConfigMap")
    volumes = {v["name"]: v for v in pod(deployment)["volumes"]}
    paths = []
    for mount in container["volumeMounts"]:
        paths.append(mount["mountPath"])
        directory = root / mount["mountPath"].removeprefix("/")
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in maps.get(volumes[mount["name"]].get("configMap", {}).get("name"), {}).get("data", {}).items():
            (directory / name).write_text(content)
    pattern = re.compile(rf"(?<![\w.])(?=(?:{'|'.join(paths)})/)")
    return [pattern.sub(str(root), argument) for argument in container["args"]]
