"""The documentation's request to OpenTSDB's API is stored as it says."""

import re

from support.documentation import ADDRESS, block, page, run_shell
from support.questions import vector
from support.server import Server


def test_the_documentations_request(server: Server) -> None:
    run_shell(block("opentsdb", "curl ", {ADDRESS: server.url}))
    (selector,) = re.findall(r"PromQL reads it as `(.*?)`", page("opentsdb"))
    (sample,) = vector(server.client(), selector, 1_700_000_000).samples
    assert sample.value == 18
