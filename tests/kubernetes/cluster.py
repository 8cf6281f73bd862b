"""An API server as tests use it."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADMIN = "token-of-the-administrator"


@dataclass(frozen=True)
class Cluster:
    """An API server. Requests and helm act as an administrator."""

    url: str
    certificate: Path
    kubeconfig: Path

    def request(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """Sends JSON, and refuses fields that the server does not know. Raises HTTPError with the server's reason."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": content}
        query = "" if method == "GET" else "?fieldValidation=Strict"
        request = urllib.request.Request(self.url + path + query, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300, context=ssl.create_default_context(cafile=self.certificate)) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            e.add_note(e.read().decode())
            raise

    def ready(self) -> bool:
        try:
            return self.request("GET", "/api/v1/namespaces/kube-system")["status"]["phase"] == "Active"
        except OSError:
            return False
