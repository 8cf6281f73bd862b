"""The documentation's requests to Datadog's API are stored as it says."""

import re
import subprocess

from support.programs import ROOT
from support.questions import vector
from support.server import Server


def test_the_documentations_requests(server: Server) -> None:
    page = (ROOT / "docs/datadog.md").read_text()
    (commands,) = re.findall(r"```\n(curl .*?)```", page, re.DOTALL)
    commands = commands.replace("curl ", "curl --fail-with-body --silent --show-error ").replace("http://127.0.0.1:9009", server.url)
    subprocess.run(["sh", "-ec", commands], check=True, timeout=60, capture_output=True)
    found = re.search(r"PromQL reads them as `(.*?)` and `(.*?)`", page)
    assert found
    for selector, value in zip(found.groups(), (0.7, 3), strict=True):
        (sample,) = vector(server.client(), selector, 1_700_000_000).samples
        assert sample.value == value
