"""A real API server takes what the chart renders, and Promlake discovers and scrapes the pods that it names."""

import copy
import json
import urllib.error
from pathlib import Path

import pytest
import yaml
from chart import CHART, Object, helm, module_directory, mounted, of_kind, render
from cluster import Cluster
from promlake import Client, PromlakeError
from support.programs import Process, Programs, free_port, wait_until
from support.questions import vector
from test_chart import CASES

PODS = "/api/v1/namespaces/metrics/pods"
DISCOVERY = {
    "global": {"scrape_interval": "100ms"},
    "scrape_configs": [
        {
            "job_name": "pods",
            "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"own_namespace": False, "names": ["metrics"]}}],
            "relabel_configs": [{"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"}],
        }
    ],
}


@pytest.fixture(scope="module", autouse=True)
def routes(cluster: Cluster) -> None:
    """The cluster knows the Gateway API."""
    file = module_directory("sigs.k8s.io/gateway-api") / "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"
    definition = yaml.safe_load(file.read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.request("POST", path, definition)

    def established() -> bool:
        status = cluster.request("GET", f"{path}/{definition['metadata']['name']}").get("status", {})
        return any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions", []))

    wait_until(established, "the definition of HTTPRoute")


@pytest.mark.parametrize("case", CASES)
def test_install_and_uninstall(case: str, cluster: Cluster, tmp_path: Path) -> None:
    values = copy.deepcopy(CASES[case])
    values.setdefault("serviceMonitor", {})["enabled"] = False  # whose definition no package registry has
    values["serviceAccount"] = values.get("serviceAccount", {}) | {"name": "lake"}
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    namespace = case.replace(" ", "-")
    common = ("--namespace", namespace, "--kubeconfig", cluster.kubeconfig)
    for command in (("install", "--create-namespace"), ("upgrade", "--set", "image.tag=0.2.0")):
        done = helm(command[0], "lake", CHART, *command[1:], *common, "--values", tmp_path / "values.yaml")
        assert done.returncode == 0, done.stderr
    deployments = {d["metadata"]["name"] for d in cluster.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]}
    assert deployments == set(of_kind(render(values, tmp_path), "Deployment"))
    done = helm("uninstall", "lake", *common)
    assert done.returncode == 0, done.stderr
    left = cluster.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")["items"]
    assert len(left) == (0 if values.get("persistence") else 1 if values.get("mode") != "roles" else 0)


def test_unknown_fields_are_refused(cluster: Cluster) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}, "specs": {}})


def test_pods_are_scraped(cluster: Cluster, programs: Programs, tmp_path: Path) -> None:
    """The process runs with the chart's arguments, files and account. Its pod is an object whose address is this machine's."""
    config: Object = copy.deepcopy(DISCOVERY)
    (discovery,) = config["scrape_configs"][0]["kubernetes_sd_configs"]
    discovery["api_server"] = cluster.url
    discovery["tls_config"] = {"ca_file": str(cluster.certificate)}
    discovery["authorization"] = {"credentials_file": str(tmp_path / "token")}  # in a pod, these three are found by themselves
    values = {"configFiles": {"prometheus.yml": config}}
    (tmp_path / "release.yaml").write_text(json.dumps(values))
    done = helm("install", "lake", CHART, "--namespace", "metrics", "--create-namespace", "--kubeconfig", cluster.kubeconfig,
                "--values", tmp_path / "release.yaml")  # fmt: skip
    assert done.returncode == 0, done.stderr
    account = "/api/v1/namespaces/metrics/serviceaccounts/lake-promlake"
    (tmp_path / "token").write_text(cluster.request("POST", f"{account}/token", {"spec": {}})["status"]["token"])

    objects = render(values, tmp_path)
    (deployment,) = of_kind(objects, "Deployment").values()
    port = free_port()
    arguments = mounted(objects, deployment, tmp_path / "root")
    assert arguments[1] == "--listen=:9009"
    arguments[1] = f"--listen=127.0.0.1:{port}"
    server = Process([programs.promlake, *arguments], tmp_path / "server")
    client = Client(f"http://127.0.0.1:{port}", timeout=300)

    def scraped() -> list[str]:
        try:
            return [s.labels["pod"] for s in vector(client, 'up{job="pods"} == 1').samples]
        except PromlakeError:
            return []

    try:
        template = deployment["spec"]["template"]
        container = template["spec"]["containers"][0]
        own = {"name": "promlake-0", "labels": template["metadata"]["labels"]}
        spec = {"containers": [{"name": "promlake", "image": container["image"], "ports": [{"name": "http", "containerPort": port}]}]}
        cluster.request("POST", PODS, {"metadata": own, "spec": spec})
        status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        cluster.request("PATCH", f"{PODS}/promlake-0/status", {"status": status}, "application/merge-patch+json")
        server.wait_until(lambda: scraped() == ["promlake-0"], "the pod to be scraped")
        cluster.request("DELETE", f"{PODS}/promlake-0", {"gracePeriodSeconds": 0})
        server.wait_until(lambda: scraped() == [], "the pod to be forgotten")
        assert server.terminate() == 0, server.log()
    finally:
        server.cleanup()
