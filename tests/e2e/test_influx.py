"""InfluxDB's own client writes, and PromQL reads the same values."""

import gzip
import re
import time
import tomllib
import urllib.parse
import urllib.request

import pytest
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
from support.documentation import ADDRESS, block, page
from support.questions import vector
from support.server import Server

NOW = int(time.time())
UNUSED = "no-token-is-required"


@pytest.mark.parametrize("packed", [False, True])
def test_influxdb_client(server: Server, packed: bool) -> None:
    points = [
        Point("room climate")
        .tag("floor", "1st, left")
        .tag("city", "köln")
        .field("temp=c", 20.5 + i)
        .field("open", True)
        .field("n", 7)
        .time((NOW - i) * 1000, WritePrecision.MS)
        for i in range(100)
    ]
    with InfluxDBClient(server.url, token=UNUSED, org="acme", enable_gzip=packed) as client:
        client.write_api(write_options=SYNCHRONOUS).write("building", record=points, write_precision=WritePrecision.MS)
    promlake = server.client()
    for i in (0, 50, 99):
        (temp,) = vector(promlake, '{"room climate_temp=c", db="building", floor="1st, left", city="köln"}', NOW - i).samples
        assert temp.value == 20.5 + i
    assert [s.value for s in vector(promlake, '{"room climate_open"}', NOW).samples] == [1]
    assert [s.value for s in vector(promlake, '{"room climate_n"}', NOW).samples] == [7]


def test_mistakes_reach_the_client(server: Server) -> None:
    with InfluxDBClient(server.url, token=UNUSED, org="acme") as client, pytest.raises(ApiException) as refused:
        client.write_api(write_options=SYNCHRONOUS).write("building", record="good v=1\nbad\n")
    assert refused.value.status == 400
    assert "line 2: missing fields" in refused.value.body
    assert len(vector(server.client(), "good_v", time.time() + 1).samples) == 1


def test_the_documentations_program(server: Server) -> None:
    exec(block("influxdb", "from influxdb_client", {ADDRESS: server.url}), {})  # noqa: S102
    (selector,) = re.findall(r"PromQL reads it as `(.*?)`", page("influxdb"))
    (sample,) = vector(server.client(), selector, time.time() + 1).samples
    assert sample.value == 20.5


def test_the_documentations_telegraf(server: Server) -> None:
    """Stands for Telegraf, which no package registry has: the request that its plugin influxdb_v2 makes of the settings."""
    text = block("influxdb", "[[outputs.influxdb_v2]]", {ADDRESS: server.url, "# http_headers": "http_headers"})
    (plugin,) = tomllib.loads(text)["outputs"]["influxdb_v2"]
    assert set(plugin) == {"urls", "token", "organization", "bucket", "content_encoding", "http_headers"}
    assert plugin["content_encoding"] == "gzip"
    parameters = urllib.parse.urlencode({"org": plugin["organization"], "bucket": plugin["bucket"]})
    headers = {
        "Authorization": f"Token {plugin['token']}", "Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8",
        "User-Agent": "Telegraf", **plugin["http_headers"],
    }  # fmt: skip
    lines = f"cpu,cpu=cpu0,host=web01 usage_idle=97.5,usage_user=1i {NOW * 10**9}\n".encode()
    request = urllib.request.Request(f"{plugin['urls'][0]}/api/v2/write?{parameters}", gzip.compress(lines), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        assert answer.status == 204
    (sample,) = vector(server.client(plugin["http_headers"]["X-Scope-OrgID"]), "cpu_usage_idle", NOW).samples
    assert (sample.value, sample.labels["db"]) == (97.5, plugin["bucket"])
