"""The files of upstream's tests, which come with its Go module: checked as promtool does, unit-tested, and served."""

import functools
import json
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.programs import ROOT, Programs, wait_until
from support.server import Start
from support.stores import Store


@functools.cache
def upstream(folder: str) -> Path:
    """Returns a folder of the Go module prometheus/prometheus, in the version that Promlake uses."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus"]
    return Path(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout.strip()) / folder


TESTDATA, FIXTURES = "cmd/promtool/testdata", "rules/fixtures"

Answer = tuple[int, str]


def answer(program: Path, folder: str, *args: str) -> Answer:
    done = subprocess.run([program, *args], cwd=upstream(folder), capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


# What Debian's promtool, of version 2.42, does not know yet, or says otherwise than the current one.
NEWER = {
    ("rules", "features.yml"): "names in UTF-8, and PromQL that came later",
    ("config", "prometheus-aws-sd-empty-region.good.yml"): "the region may be missing",
    ("rules", "invalid_rules.yaml"): "the error names a type of Go that has another name now",
    ("rules", "rules_multi_doc.yaml"): "a warning that further documents are ignored",
}


@pytest.mark.parametrize("what", ["config", "rules"])
def test_check(what: str, programs: Programs) -> None:
    """The exit code and the text are promtool's."""
    seen = set()
    for folder in (TESTDATA, FIXTURES):
        for file in sorted(upstream(folder).glob("*.y*ml")):
            want, got = (answer(p, folder, "check", what, file.name) for p in (programs.promtool, programs.promlake))
            if (what, file.name) in NEWER:
                assert got != want, f"{file.name} is no exception any more"
                seen.add(file.name)
                continue
            assert got == _current(want), file.name
    assert seen == {name for kind, name in NEWER if kind == what}


def _current(old: Answer) -> Answer:
    """Returns an answer of promtool 2.42 as the current one has it."""
    return old[0], old[1].replace("     lint error ", "lint error ")


def test_newer_than_promtool(programs: Programs) -> None:
    """What upstream's own tests expect of promtool's current version."""
    assert answer(programs.promlake, TESTDATA, "check", "rules", "features.yml")[0] == 0
    code, text = answer(programs.promlake, TESTDATA, "check", "config", "prometheus-aws-sd-empty-region.good.yml")
    assert (code, "this program has no ec2_sd_configs, ecs_sd_configs" in text) == (1, True)
    code, text = answer(programs.promlake, FIXTURES, "check", "rules", "invalid_rules.yaml")
    assert (code, "field unexpected_field not found" in text) == (1, True)
    assert answer(programs.promlake, FIXTURES, "check", "rules", "rules_multi_doc.yaml")[0] == 0


# The exit codes in unittest_test.go, by files and further arguments.
UNIT_TESTS = {
    ("unittest.yml",): 0, ("long-period.yml",): 0, ("bad-input-series.yml",): 1, ("bad-promql.yml",): 1, ("bad-rules-syntax-test.yml",): 1,
    ("bad-rules-error-test.yml",): 1, ("failing.yml",): 1, ("at-modifier-test.yml",): 0, ("negative-offset-test.yml",): 0,
    ("no-test-group-interval.yml",): 0, ("start-time-test.yml",): 0, ("rules_run.yml",): 1,
    ("rules_run.yml", "--run=correct", "--run=wrong"): 1, ("rules_run.yml", "--run=correct"): 0, ("rules_run.yml", "--run=wrong"): 1,
    ("rules_run_extrafields.yml", "--ignore-unknown-fields"): 0, ("rules_run_no_fuzzy.yml",): 1,
    ("rules_run_fuzzy.yml", "--run=correct"): 0, ("rules_run_fuzzy.yml", "--run=wrong"): 1,
}  # fmt: skip


def test_unit_tests(programs: Programs) -> None:
    files = {f.name for f in upstream(TESTDATA).glob("*.yml") if "\ntests:" in "\n" + f.read_text()}
    assert files == {args[0] for args in UNIT_TESTS}, "upstream has other files"
    for args, code in UNIT_TESTS.items():
        got, text = answer(programs.promlake, TESTDATA, "rules", "test", *args)
        assert got == code, f"{args}: {text}"
        assert ("FAILED" in text) == bool(code), f"{args}: {text}"


def serve(directory: Path, config: dict[str, Any]) -> tuple[str, ...]:
    """Returns the flags of a server with a configuration."""
    (directory / "prometheus.yml").write_text(json.dumps(config))
    return ("--config.file", str(directory / "prometheus.yml"), "--scrape.queue-dir", str(directory / "queue"))


def data(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=300) as response:
        return json.load(response)["data"]


# Files of rules without errors: of fixtures all but one, and these.
VALID = ("at-modifier.yml", "negative-offset.yml", "rules.yml", "rules_duplicates.yml", "features.yml")


def test_rules_are_evaluated(start: Start, file_store: Store, tmp_path: Path) -> None:
    """A server evaluates every rule of upstream's files that are valid."""
    files = [str(f) for f in upstream(FIXTURES).glob("*.yaml") if f.name != "invalid_rules.yaml"]
    files += [str(upstream(TESTDATA) / name) for name in VALID]
    assert len(files) > 15
    server = start(file_store, *serve(tmp_path, {"global": {"evaluation_interval": "1s"}, "rule_files": files}))

    def others() -> list[Any]:
        """Returns what is not evaluated without an error."""
        return [(g["file"], r) for g in data(server.url, "rules")["groups"] for r in g["rules"] if r["health"] != "ok"]

    wait_until(lambda: others() == [], "the rules to be evaluated", context=lambda: str(others()))
    assert {g["file"] for g in data(server.url, "rules")["groups"]} == set(files)
    server.stop()


@contextmanager
def guarded(certificates: Path, token: str) -> Iterator[str]:
    """A target that wants a certificate of upstream's authority, and a token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("Authorization") == f"Bearer {token}"
            body = b"guarded 1\n"
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is inherited
            pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.cer"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificates / "server.cer", certificates / "server.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_certificates_and_tokens(start: Start, file_store: Store, tmp_path: Path) -> None:
    """Upstream's certificates and token, as files beside the configuration, open a target; without them it stays closed."""
    files = tmp_path / "files"
    shutil.copytree(upstream("scrape/testdata"), files)
    tls = {"ca_file": "files/ca.cer", "cert_file": "files/client.cer", "key_file": "files/client.key"}
    token = {"credentials_file": "files/bearertoken.txt"}
    with guarded(files, (files / "bearertoken.txt").read_text().strip()) as address:
        jobs = {
            "open": {"tls_config": tls, "authorization": token},
            "no-token": {"tls_config": tls},
            "no-certificate": {"tls_config": {"ca_file": "files/ca.cer"}, "authorization": token},
            "unknown-authority": {"tls_config": {k: v for k, v in tls.items() if k != "ca_file"}, "authorization": token},
        }
        every = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        scrapes = [{"job_name": name, "scheme": "https", "static_configs": [{"targets": [address]}], **job} for name, job in jobs.items()]
        server = start(file_store, *serve(tmp_path, {"global": every, "scrape_configs": scrapes}))

        def scraped() -> bool:
            return len(server.client().query("up").samples) == len(jobs) and server.client().query("guarded").samples != []

        def errors() -> dict[str, str]:
            return {t["scrapePool"]: t["lastError"] for t in data(server.url, "targets")["activeTargets"]}

        def refused() -> bool:
            """A busy machine may let a scrape take too long, which then is its error."""
            found = errors()
            tls = "certificate required" in found["no-certificate"] or "reset" in found["no-certificate"]
            return tls and "401" in found["no-token"] and "unknown authority" in found["unknown-authority"]

        wait_until(scraped, "the scrapes", context=server.process.log)
        wait_until(refused, "the reasons", context=lambda: str(errors()))
        ever = server.client().query("max_over_time(up[1h]) == 1")
        assert [s.labels["job"] for s in ever.samples] == ["open"]
        assert {(s.labels["job"], s.value) for s in server.client().query("last_over_time(guarded[1h])").samples} == {("open", 1)}
        server.stop()
