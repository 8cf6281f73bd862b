"""The documentation's request to OpenTSDB's API is stored as it says."""

import re
import subprocess

from support.programs import ROOT
from support.questions import vector
from support.server import Server


def test_the_documentations_request(server: Server) -> None:
    page = (ROOT / "docs/opentsdb.md").read_text()
    (command,) = re.findall(r"```\n(curl .*?)```", page, re.DOTALL)
    (selector,) = re.findall(r"PromQL reads it as `(.*?)`", page)
    command = command.replace("curl ", "curl --fail-with-body --silent --show-error ", 1).replace("http://127.0.0.1:9009", server.url)
    subprocess.run(["sh", "-ec", command], check=True, timeout=300, capture_output=True)
    (sample,) = vector(server.client(), selector, 1_700_000_000).samples
    assert sample.value == 18
