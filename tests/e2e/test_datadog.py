"""The documentation's requests to Datadog's API are stored as it says."""

import re
import urllib.request

from support.documentation import ADDRESS, block, page, run_shell
from support.questions import vector
from support.server import Server


def test_the_documentations_requests(server: Server) -> None:
    run_shell(block("datadog", "curl ", {ADDRESS: server.url}))
    found = re.search(r"PromQL reads them as `(.*?)` and `(.*?)`", page("datadog"))
    assert found
    for selector, value in zip(found.groups(), (0.7, 3), strict=True):
        (sample,) = vector(server.client(), selector, 1_700_000_000).samples
        assert sample.value == value


# Of one series: values around -1, 0, 1 (three), 1.02 and 2 (two), as the agent's payload package
# writes them.
SKETCHES = bytes.fromhex(
    "0a5a0a076c6174656e6379120577656230312208656e763a70726f643a3e0880e2cfaa06100919000000000000f0bf210000"
    "00000000004029000000000000f03f310000000000001e403a09f31400f414f614ce1542050102030102"
)


def test_sketches_are_histograms(server: Server) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    request = urllib.request.Request(f"{server.url}/datadog/api/beta/sketches", data=SKETCHES, headers=headers)
    with urllib.request.urlopen(request, timeout=300) as response:
        assert response.status == 202
    for query, value in {
        "histogram_count(sum_over_time(latency[1m]))": 9,
        "histogram_sum(latency)": 7.5,
        'histogram_fraction(1.5, 3, latency{host="web01", env="prod"})': 2 / 9,
    }.items():
        (sample,) = vector(server.client(), query, 1_700_000_000).samples
        assert abs(sample.value - value) < 1e-9, query
