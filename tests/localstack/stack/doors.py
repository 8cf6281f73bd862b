"""The entries of the stack: the gateway's URL and the query function's own."""

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from support.remote_write import CONTENT_TYPE, VERSION_2, WRITE_PATH, Series, compress
from support.remote_write import encode as encode_v1

from stack import remote_write2

Samples = dict[frozenset[tuple[str, str]], list[tuple[int, float]]]


@dataclass(frozen=True)
class Reply:
    """An HTTP answer; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Door:
    """A URL with a token. Names below localhost.localstack.cloud resolve to this machine without a lookup."""

    url: str
    token: str | None = None
    tenant: str | None = None

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Sends one request on its own connection. Headers are named with _ for -."""
        at = urllib.parse.urlsplit(self.url)
        given = {name.replace("_", "-"): value for name, value in headers.items()} | {"Host": at.netloc}
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        if self.tenant is not None:
            given["X-Scope-OrgID"] = self.tenant
        connection = HTTPConnection("127.0.0.1", at.port, timeout=300)
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        finally:
            connection.close()

    def write(self, all_series: Iterable[Series], version: int = 1) -> Reply:
        """Sends one remote_write request."""
        if version == 1:
            body, kind, named = compress(encode_v1(all_series)), CONTENT_TYPE, "0.1.0"
        else:
            body, kind, named = remote_write2.encode(all_series), VERSION_2, "2.0.0"
        return self.send("POST", WRITE_PATH, body, Content_Type=kind, Content_Encoding="snappy", X_Prometheus_Remote_Write_Version=named)

    def ask(self, path: str, method: str = "POST", **form: str | Iterable[str]) -> Any:
        """Returns the data of a request to the Prometheus API, which must succeed."""
        pairs = urllib.parse.urlencode({name.replace("match", "match[]"): value for name, value in form.items()}, doseq=True)
        if method == "POST":
            reply = self.send("POST", f"/api/v1/{path}", pairs.encode(), Content_Type="application/x-www-form-urlencoded")
        else:
            reply = self.send("GET", f"/api/v1/{path}?{pairs}")
        assert reply.status == 200, f"{path} {form}: {reply.status} {reply.body[:2000]!r}"
        answer = json.loads(reply.body)
        assert answer["status"] == "success"
        assert not answer.get("warnings")
        return answer["data"]

    def samples(self, selector: str, start_ms: int, end_ms: int) -> Samples:
        """Returns every stored sample of (start_ms, end_ms] by series: (ms, value)."""
        data = self.ask("query", query=f"{selector}[{end_ms - start_ms}ms]", time=f"{end_ms / 1000:.3f}")
        return {frozenset(s["metric"].items()): [(round(t * 1000), float(v)) for t, v in s["values"]] for s in data["result"]}
