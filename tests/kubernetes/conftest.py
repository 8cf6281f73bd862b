"""A control plane without nodes: Kubernetes' API server over Debian's etcd."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from chart import TOOLS
from cluster import ADMIN, Cluster
from support.programs import ROOT, Process, Programs, find_programs, free_port


@pytest.fixture(scope="session")
def programs() -> Programs:
    return find_programs("chart-programs")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    find_programs("kubernetes-programs")
    home = tmp_path_factory.mktemp("cluster")
    key, certificate, tokens = home / "key.pem", home / "certificate.pem", home / "tokens.csv"
    client, peer, port = free_port(), free_port(), free_port()
    self_signed = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=kubernetes",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run([*self_signed, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tokens.write_text(f"{ADMIN},admin,admin,system:masters\n")
    etcd = Process([
        ROOT / ".cache/etcd/usr/bin/etcd", "--data-dir", home / "etcd", "--unsafe-no-fsync",
        "--listen-client-urls", f"http://127.0.0.1:{client}", "--advertise-client-urls", f"http://127.0.0.1:{client}",
        "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
        "--initial-cluster", f"default=http://127.0.0.1:{peer}",
    ], home / "etcd-log")  # fmt: skip
    server = Process([
        TOOLS / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1", f"--secure-port={port}",
        f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",  # no controller makes the accounts of namespaces
    ], home / "server")  # fmt: skip
    url = f"https://127.0.0.1:{port}"
    kubeconfig = home / "kubeconfig"
    kubeconfig.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(certificate)}}],
        "users": [{"name": "admin", "user": {"token": ADMIN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
    }))  # fmt: skip
    cluster = Cluster(url, certificate, kubeconfig)
    try:
        server.wait_until(cluster.ready, "the API server")
        yield cluster
    finally:
        server.cleanup()
        etcd.cleanup()
