"""InfluxDB's own client writes, and PromQL reads the same values."""

import json
import re
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
from support.documentation import ADDRESS, block, page
from support.programs import Programs
from support.questions import vector
from support.server import Server
from support.telegraf import report

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


def test_the_documentations_errors(server: Server) -> None:
    """The path of InfluxDB 3 answers a mistake in the second line as the documentation shows."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/api/v3/write_lp?db=building", b"cpu v=1\ncpu\n", timeout=300)
    assert refused.value.code == 400
    assert json.load(refused.value) == json.loads(block("influxdb", '{"error": "partial write'))


def test_the_documentations_program(server: Server) -> None:
    exec(block("influxdb", "from influxdb_client", {ADDRESS: server.url}), {})  # noqa: S102
    (selector,) = re.findall(r"PromQL reads it as `(.*?)`", page("influxdb"))
    (sample,) = vector(server.client(), selector, time.time() + 1).samples
    assert sample.value == 20.5


def test_telegraf(programs: Programs, server: Server, tmp_path: Path) -> None:
    """Telegraf writes with the documentation's section, for the tenant of its last line."""
    section = block("influxdb", "[[outputs.influxdb_v2]]", {ADDRESS: server.url, "# http_headers": "http_headers"})
    report(programs, section, tmp_path)
    (plugin,) = tomllib.loads(section)["outputs"]["influxdb_v2"]
    (sample,) = vector(server.client(plugin["http_headers"]["X-Scope-OrgID"]), "cpu_usage_idle", time.time() + 1).samples
    assert (sample.value, sample.labels["db"]) == (97.5, plugin["bucket"])
    assert vector(server.client(), "cpu_usage_idle", time.time() + 1).samples == ()
