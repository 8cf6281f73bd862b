"""The Helm chart: each mode is valid for Kubernetes, and its processes start with settings that the program has."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart import CHART, TOOLS, Object, helm, module_directory, mounted, of_kind, pod, render
from support.programs import ROOT, Programs, wait_until
from support.questions import vector
from support.remote_write import series
from support.server import Server
from support.stores import serve_gateway
from test_routes import LINES, POSTED, QUERIES, WRITES

SCRAPING = {
    "prometheus.yml": {
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{"job_name": "promlake", "static_configs": [{"targets": ["127.0.0.1:9009"]}]}],
    },
    "alerts.yml": "groups:\n  - name: up\n    rules:\n      - {alert: Down, expr: up == 0}\n",
}
EVERYTHING = {
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "store": {"credentialsSecret": "s3-credentials", "url": "s3://metrics/prod?region=eu-central-1"},
    "settings": {"query.timeout": "1m", "compactor.tenant-retention": ["team-a=30d"]},
    "configFiles": SCRAPING,
    "tokens": {"secret": "tokens"},
    "extraEnv": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "extraVolumes": [{"name": "certificates", "configMap": {"name": "certificates"}}],
    "extraVolumeMounts": [{"name": "certificates", "mountPath": "/etc/ssl/extra"}],
    "podLabels": {"azure.workload.identity/use": "true"},
    "podAnnotations": {"example.com/team": "metrics"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/promlake"}},
    "ingress": {"enabled": True, "className": "nginx", "tls": [{"secretName": "tls", "hosts": ["promlake.example.com"]}]},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway", "namespace": "infrastructure"}]},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "endpoint": {"authorization": {"credentials": {"name": "operator-token", "key": "token"}}},
    },
    "networkPolicy": {
        "enabled": True,
        "from": [{"namespaceSelector": {}}],
        "ports": [{"port": 2003, "protocol": "TCP"}],
        "egress": [{"ports": [{"port": 443}]}],
    },
}
PLACED = {
    "nodeSelector": {"kubernetes.io/arch": "arm64"},
    "tolerations": [{"key": "metrics", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [],
    "priorityClassName": "system-cluster-critical",
    "extraArgs": ["--log.format=json"],
    "settings": {"query.timeout": "90s"},
    "podLabels": {"example.com/role": "x"},
}
BUCKET = {"store": {"url": "s3://metrics?region=eu-central-1"}}
CASES: dict[str, Object] = {
    "single": {},
    "single over a bucket": BUCKET | {"persistence": {"enabled": False}},
    "single with everything": EVERYTHING | {"single": PLACED},
    "roles": BUCKET | {"mode": "roles"},
    "roles without scaling": BUCKET
    | {"mode": "roles", "ingest": {"autoscaling": {"enabled": False}}, "query": {"autoscaling": {"enabled": False}, "replicas": 1}},
    "roles with everything": EVERYTHING | {"mode": "roles", **dict.fromkeys(("ingest", "query", "compact", "rules"), PLACED)},
}
ROLES = {"single": ["lake-promlake"], "roles": [f"lake-promlake-{r}" for r in ("compact", "ingest", "query", "rules")]}
# Types of their own modules; the others are in Kubernetes' schemas.
CUSTOM = ("HTTPRoute", "ServiceMonitor")


@pytest.fixture(scope="module")
def rendered(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Object]]:  # noqa: ARG001 (helm is made with them)
    return {name: render(values, tmp_path_factory.mktemp("values")) for name, values in CASES.items()}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def objects(case: str, rendered: dict[str, list[Object]]) -> list[Object]:
    return rendered[case]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kubeconform's schemas, made of the OpenAPI document of Kubernetes. They refuse unknown fields."""
    folder = tmp_path_factory.mktemp("schemas")
    definitions = json.loads((module_directory("k8s.io/kubernetes") / "api/openapi-spec/swagger.json").read_text())["definitions"]
    for name, definition in definitions.items():
        if "properties" in definition:
            definition["additionalProperties"] = False
        if name.endswith((".IntOrString", ".Quantity")):
            definition.update(type=["integer", "number", "string"], format=None)
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            file = "-".join(filter(None, (kind["kind"].lower(), kind["group"].split(".")[0], kind["version"])))
            (folder / f"{file}.json").write_text(json.dumps({"$ref": f"definitions.json#/definitions/{name}"}))
    text = json.dumps({"definitions": definitions}).replace("#/definitions/", "definitions.json#/definitions/")
    (folder / "definitions.json").write_text(text.replace(', "format": null', ""))
    return folder


def validate(objects: list[Object], schemas: Path) -> str:
    """Returns what kubeconform objects to."""
    args = [TOOLS / "kubeconform", "-strict", "-schema-location", f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"]
    done = subprocess.run(args, input=yaml.safe_dump_all(objects), capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def test_objects_are_valid(rendered: dict[str, list[Object]], schemas: Path) -> None:
    assert validate([o for objects in rendered.values() for o in objects if o["kind"] not in CUSTOM], schemas) == ""


def strict(objects: list[Object]) -> str:
    """Returns what the types of custom resources object to."""
    lines = "\n".join(map(json.dumps, objects))
    return subprocess.run([TOOLS / "customresources"], input=lines, capture_output=True, text=True, timeout=300, check=False).stderr


def test_custom_resources_are_valid(rendered: dict[str, list[Object]]) -> None:
    found = [o for objects in rendered.values() for o in objects if o["kind"] in CUSTOM]
    assert {o["kind"] for o in found} == set(CUSTOM)
    assert strict(found) == ""


def test_wrong_objects_are_noticed(rendered: dict[str, list[Object]], schemas: Path) -> None:
    (service,) = of_kind(rendered["single"], "Service").values()
    assert "targetport" in validate([service | {"spec": {"ports": [{"port": 1, "targetport": 2}]}}], schemas)
    assert "unknown field" in strict([{"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "spec": {"endpoint": 1}}])


def test_lint(case: str, tmp_path: Path, programs: Programs) -> None:  # noqa: ARG001
    (tmp_path / "values.yaml").write_text(json.dumps(CASES[case]))
    done = helm("lint", "--strict", CHART, "--values", tmp_path / "values.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("values", "reason"), [
    ({"mode": "roles"}, "needs the URL of a bucket"),
    ({"mode": "roles", "store": {"url": "file:///data"}}, "needs the URL of a bucket"),
    ({"persistence": {"enabled": False}}, "needs persistence.enabled or store.url"),
    ({"mode": "many"}, "mode"),
    ({"ingest": {"replica": 3}}, "replica"),
    ({"single": {"replicas": 3}}, "replicas"),
    ({"rules": {"autoscaling": {"enabled": True}}}, "autoscaling"),
    ({"settngs": {}}, "settngs"),
])  # fmt: skip
def test_refused(values: Object, reason: str, tmp_path: Path, programs: Programs) -> None:  # noqa: ARG001
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    done = helm("template", "lake", CHART, "--values", tmp_path / "values.yaml")
    assert done.returncode != 0
    assert reason in done.stderr


def settings_of(objects: list[Object], deployment: Object, root: Path, programs: Programs) -> dict[str, Any]:
    """Returns the settings that the program takes from a deployment's arguments and files. It refuses unknown ones."""
    command, *flags = mounted(objects, deployment, root)
    assert command == "serve"
    done = subprocess.run([programs.promlake, "config", *flags], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout)


def test_processes(case: str, objects: list[Object], tmp_path: Path, programs: Programs) -> None:
    """The program has all settings; one role compacts, and one process evaluates rules and scrapes."""
    deployments = of_kind(objects, "Deployment")
    assert sorted(deployments) == ROLES[CASES[case].get("mode", "single")]
    found = {name: settings_of(objects, d, tmp_path / name, programs) for name, d in deployments.items()}
    assert len([name for name, s in found.items() if s["compactor.enabled"]]) == 1
    (evaluates,) = [name for name, s in found.items() if s["ruler.evaluate"]]
    scrapes = [name for name, s in found.items() if s["config.file"]]
    assert scrapes == ([evaluates] if "configFiles" in CASES[case] else [])
    assert deployments[evaluates]["spec"]["replicas"] == 1
    for name, s in found.items():
        grace = pod(deployments[name])["terminationGracePeriodSeconds"]
        (container,) = pod(deployments[name])["containers"]
        assert f"--store={CASES[case].get('store', {}).get('url', 'file:///data/store')}" in container["args"]
        assert grace > int(s["shutdown-timeout"].removesuffix("s")) + container["lifecycle"]["preStop"]["sleep"]["seconds"]
        if "settings" in CASES[case]:
            assert (s["query.timeout"], s["log.format"]) == ("1m30s", "json")
            assert s["compactor.tenant-retention"] == "team-a=30d"
            assert s["auth.tokens"] == f"file:{tmp_path / name}/etc/promlake/tokens/tokens.json"
    for name in scrapes:
        check = [programs.promlake, "check", "config", found[name]["config.file"]]
        done = subprocess.run(check, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_roles_share_a_bucket(programs: Programs, tmp_path: Path) -> None:
    """What one process stores, the others answer and compute with."""
    with serve_gateway(programs, tmp_path / "s3") as gateway, ExitStack() as stack:
        store = gateway.store()
        quick = {"ruler.poll-interval": "1s", "query.max-staleness": "0s"}
        objects = render({"mode": "roles", "store": {"url": store.url}, "settings": quick}, tmp_path)
        servers = {}
        for name, deployment in of_kind(objects, "Deployment").items():
            command, *flags = mounted(objects, deployment, tmp_path / name)
            flags = [f for f in flags if not f.startswith(("--listen=", "--store="))]
            role = name.removeprefix("lake-promlake-")
            servers[role] = Server([programs.promlake, command], store, tmp_path / role, tuple(flags))
            stack.callback(servers[role].cleanup)
        group = {"name": "up", "interval": "1s", "rules": [{"record": "twice", "expr": "2 * m"}]}
        request = urllib.request.Request(f"{servers['query'].url}/prometheus/config/v1/rules/n", json.dumps(group).encode(), method="POST")
        urllib.request.urlopen(request, timeout=300).close()
        now = int(time.time() * 1000)
        assert servers["ingest"].sender().write(series("m", [(now, 1.0)])).status == 204

        def answered(role: str, expr: str) -> bool:
            return len(vector(servers[role].client(), expr).samples) == 1

        assert answered("query", "last_over_time(m[1h]) == 1")
        wait_until(lambda: answered("query", "last_over_time(twice[1h]) == 2"), "the rule's result")
        for server in servers.values():
            server.stop()


def test_pods_have_few_rights(objects: list[Object], tmp_path: Path, programs: Programs) -> None:
    for name, deployment in of_kind(objects, "Deployment").items():
        spec = pod(deployment)
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        s = settings_of(objects, deployment, tmp_path / name, programs)
        writable = [str(tmp_path / name) + m["mountPath"] + "/" for m in container["volumeMounts"] if not m.get("readOnly")]
        assert any(s["scrape.queue-dir"].startswith(path) for path in writable)
        assert s["query.cache-dir"] == s["compactor.data-dir"] == "", "the directory of temporary files, which is mounted"
        assert "/tmp" in [m["mountPath"] for m in container["volumeMounts"]]  # noqa: S108
        assert spec["automountServiceAccountToken"] == bool(s["config.file"])
        assert not spec["enableServiceLinks"]
        assert container["resources"]["limits"]["memory"]


def test_references(objects: list[Object]) -> None:
    """What an object names exists, and selectors match the pods of one deployment."""
    deployments = of_kind(objects, "Deployment")
    assert not of_kind(objects, "StatefulSet")
    pods = {name: d["spec"]["template"]["metadata"]["labels"] for name, d in deployments.items()}

    def selected(labels: dict[str, str]) -> list[str]:
        return [name for name, have in pods.items() if labels.items() <= have.items()]

    services = of_kind(objects, "Service")
    for name, service in services.items():
        assert selected(service["spec"]["selector"]) == [name]
        (container,) = pod(deployments[name])["containers"]
        assert len(service["spec"]["ports"]) == len(container["ports"])
    for name, deployment in deployments.items():
        assert selected(deployment["spec"]["selector"]["matchLabels"]) == [name]
        for constraint in pod(deployment).get("topologySpreadConstraints", []):
            assert selected(constraint["labelSelector"]["matchLabels"]) == [name]
    for name, budget in of_kind(objects, "PodDisruptionBudget").items():
        assert selected(budget["spec"]["selector"]["matchLabels"]) == [name]
    for name, scaler in of_kind(objects, "HorizontalPodAutoscaler").items():
        assert scaler["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in deployments[name]["spec"], "which the autoscaler sets"
    for policy in of_kind(objects, "NetworkPolicy").values():
        assert selected(policy["spec"]["podSelector"]["matchLabels"]) == list(pods)
    for monitor in of_kind(objects, "ServiceMonitor").values():
        labels = monitor["spec"]["selector"]["matchLabels"]
        assert all(labels.items() <= s["metadata"]["labels"].items() for s in services.values())
    made = {kind: of_kind(objects, kind) for kind in ("ConfigMap", "PersistentVolumeClaim")}
    for deployment in deployments.values():
        assert pod(deployment)["serviceAccountName"] in of_kind(objects, "ServiceAccount")
        for volume in pod(deployment)["volumes"]:
            if volume["name"] in ("settings", "config"):
                assert volume["configMap"]["name"] in made["ConfigMap"]
            if volume["name"] == "data":
                assert volume["persistentVolumeClaim"]["claimName"] in made["PersistentVolumeClaim"]


def test_scaling(rendered: dict[str, list[Object]]) -> None:
    scaled = ["lake-promlake-ingest", "lake-promlake-query"]
    assert sorted(of_kind(rendered["roles"], "HorizontalPodAutoscaler")) == scaled
    assert sorted(of_kind(rendered["roles"], "PodDisruptionBudget")) == scaled
    assert not of_kind(rendered["roles without scaling"], "HorizontalPodAutoscaler")
    assert sorted(of_kind(rendered["roles without scaling"], "PodDisruptionBudget")) == scaled[:1]
    assert not of_kind(rendered["single with everything"], "PodDisruptionBudget")


def routes(objects: list[Object]) -> Iterator[dict[str, str]]:
    """Returns the service of each prefix, as the ingress and the route have it."""
    (ingress,) = of_kind(objects, "Ingress").values()
    for rule in ingress["spec"]["rules"]:
        yield {p["path"]: p["backend"]["service"]["name"] for p in rule["http"]["paths"]}
    (route,) = of_kind(objects, "HTTPRoute").values()
    yield {m["path"]["value"]: r["backendRefs"][0]["name"] for r in route["spec"]["rules"] for m in r["matches"]}


def test_paths_lead_to_the_role(rendered: dict[str, list[Object]]) -> None:
    rules = ["/api/v1/rules", "/api/v1/alerts", "/api/v1/alertmanagers", "/api/v1/targets", "/config/v1/rules/x"]
    wanted = dict.fromkeys(("/", "/dashboards", "/assets/page.js", *QUERIES, *POSTED), "query")
    wanted |= dict.fromkeys((*WRITES, *(path for _, path in LINES)), "ingest") | dict.fromkeys(rules, "rules")
    for prefixes in routes(rendered["roles with everything"]):
        for path, role in wanted.items():
            for full in (path, f"/prometheus{path}") if path.startswith("/api/v1/") and path != "/api/v1/validate" else (path,):
                longest = max((p for p in prefixes if full == p or full.startswith(p.rstrip("/") + "/")), key=len)
                assert prefixes[longest] == f"lake-promlake-{role}", full
    for prefixes in routes(rendered["single with everything"]):
        assert prefixes == {"/": "lake-promlake"}


def test_notes(programs: Programs, tmp_path: Path, rendered: dict[str, list[Object]]) -> None:  # noqa: ARG001
    """They name the services to which the sender and Grafana connect."""
    for case in ("single", "roles with everything"):
        (tmp_path / "values.yaml").write_text(json.dumps(CASES[case]))
        done = helm("install", "lake", CHART, "--namespace", "metrics", "--dry-run=client", "--values", tmp_path / "values.yaml")
        assert done.returncode == 0, done.stderr
        notes = done.stdout.split("NOTES:")[1]
        services = of_kind(rendered[case], "Service")
        assert f"http://{min(s for s in services if 'compact' not in s)}.metrics.svc:9009/api/v1/write" in notes
        assert f"service/{'lake-promlake' if case == 'single' else 'lake-promlake-query'} 9009:9009" in notes
        assert ("set tokens.secret" in notes) == (case == "single")


def test_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == (ROOT / "VERSION").read_text().strip()
