"""Pods that Kubernetes names are scraped. A stand-in for its API server names them here."""

import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from support.programs import wait_until
from support.questions import vector
from support.server import Start
from support.stores import Store
from support.targets import Target, serving

ACCOUNT = "account"
END_OF_LIST = {"k8s.io/initial-events-end": "true"}


@contextmanager
def api_server(events: "queue.Queue[tuple[str, dict[str, Any]] | None]") -> Iterator[str]:
    """Serves a watch of pods: the events, until None. A client without the token gets none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that BaseHTTPRequestHandler calls
            allowed = self.headers.get("Authorization") == f"Bearer {ACCOUNT}"
            watches = self.path.startswith("/api/v1/namespaces/metrics/pods?") and "sendInitialEvents=true" in self.path
            self.send_response(200 if allowed and watches else 403)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            while allowed and watches and (event := events.get()):
                kind, pod = event
                self.wfile.write(json.dumps({"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **pod}}).encode() + b"\n")
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is inherited
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            events.put(None)
            server.shutdown()
            thread.join()


def pod(name: str, address: str, version: int) -> dict[str, Any]:
    host, port = address.split(":")
    return {
        "metadata": {"name": name, "namespace": "metrics", "uid": name, "resourceVersion": str(version), "labels": {"app": "web"}},
        "spec": {"nodeName": "node", "containers": [{"name": "web", "ports": [{"name": "http", "containerPort": int(port)}]}]},
        "status": {"phase": "Running", "podIP": host},
    }


def test_pods_of_kubernetes(start: Start, file_store: Store, tmp_path: Path) -> None:
    events: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()
    with serving(Target("m 1\n")) as target, api_server(events) as url:
        (tmp_path / "token").write_text(ACCOUNT)
        discovery = {
            "role": "pod",
            "api_server": url,
            "namespaces": {"names": ["metrics"]},
            "authorization": {"credentials_file": str(tmp_path / "token")},
        }
        relabel = [
            {"source_labels": [f"__meta_kubernetes_pod_{source}"], "target_label": label}
            for source, label in (("name", "pod"), ("label_app", "app"), ("container_port_name", "port"))
        ]
        job = {"job_name": "pods", "scrape_interval": "100ms", "kubernetes_sd_configs": [discovery], "relabel_configs": relabel}
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
        server = start(file_store, "--config.file", str(tmp_path / "prometheus.yml"))

        def up() -> list[dict[str, str]]:
            return [dict(s.labels) for s in vector(server.client(), 'up{job="pods"} == 1').samples]

        events.put(("ADDED", pod("web-0", target.address, 1)))
        events.put(("BOOKMARK", {"metadata": {"resourceVersion": "1", "annotations": END_OF_LIST}}))
        labels = {"app": "web", "pod": "web-0", "port": "http", "instance": target.address}
        wait_until(lambda: [labels] == [{k: m[k] for k in labels} for m in up()], "the pod to be scraped", context=server.process.log)
        events.put(("DELETED", pod("web-0", target.address, 2)))
        wait_until(lambda: up() == [], "the pod to be forgotten", context=server.process.log)
        server.stop()
