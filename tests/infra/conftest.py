"""Fixtures: the stack, packaged as `make package` does, offline."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stack_template import Template, read
from support.programs import ROOT, Programs, find_programs

Package = Callable[..., Path]
KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-0000-0000-000000000000"
DOMAIN = "metrics.example.com"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/0a1b2c3d-0000-0000-0000-000000000000"
TOPIC = "arn:aws:sns:us-east-1:123456789012:pager"
BOUNDARY = "arn:aws:iam::123456789012:policy/bounds"


@pytest.fixture(scope="session")
def programs() -> Programs:
    return find_programs("infra-programs")


@pytest.fixture(scope="session")
def package(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:  # noqa: ARG001 (they are made together)
    """Packages a stage with parameters and returns its folder, which the end of the tests removes."""
    stages: set[Path] = set()
    home = tmp_path_factory.mktemp("home")  # osls makes a folder there

    def package(stage: str, arch: str, *parameters: str) -> Path:
        folder = ROOT / "dist" / stage
        stages.add(folder)
        # No credentials and no network: packaging needs neither.
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "HOME": str(home),
        }
        args = [ROOT / "infra/package.sh", stage, "us-east-1", arch, *parameters]
        done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    yield package
    for folder in stages:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def default(package: Package) -> Template:
    """The stack with its usual parameters."""
    return read(package("test-default", "arm64") / "cloudformation.json")


@pytest.fixture(scope="session")
def x86(package: Package) -> Template:
    """For x86_64, with every other parameter set."""
    parameters = ("retention=90d", "tenant-retention=team-a=30d,team-b=0", "query-timeout=840", "flush-timeout=900", "compact-timeout=900",
                  "ingest-concurrency=50", "query-concurrency=20", "query-tmp=10240", "query-max-dollars=0.05", "self-metrics=on",
                  "system-log-level=info", "query-divide=8", "batch-seconds=300", "runtime-config=on", "tags=team=x,cost-center=y",
                  "url-auth=iam", f"alarm-topic={TOPIC}", "iceberg=on", "deletion-delay-minutes=720")  # fmt: skip
    return read(package("test-x86", "x86_64", *parameters) / "cloudformation.json")


@pytest.fixture(scope="session")
def direct(package: Package) -> Template:
    return read(package("test-direct", "arm64", "mode=direct", "auth=iam") / "cloudformation.json")


@pytest.fixture(scope="session")
def grouped(package: Package) -> Template:
    provider = "arn:aws:lambda:us-east-1:123456789012:capacity-provider:promlake"
    parameters = ("mode=grouped", f"capacity-provider={provider}", "ingest-memory=4096", "self-metrics=https://example.com/api/v1/write",
                  "auth=iam", "tokens=/promlake/test-grouped/tokens")  # fmt: skip
    return read(package("test-grouped", "arm64", *parameters) / "cloudformation.json")


@pytest.fixture(scope="session")
def canary(package: Package) -> Template:
    """With versions and aliases, every function, and a boundary."""
    parameters = ("canary=Canary10Percent30Minutes", "query-divide=4", "rules=on", f"permissions-boundary={BOUNDARY}",
                  "replica-bucket=other", "replica-region=eu-west-1")  # fmt: skip
    return read(package("test-canary", "arm64", *parameters) / "cloudformation.json")


@pytest.fixture(scope="session")
def guarded(package: Package) -> Template:
    """With all that an account may require, and with rules."""
    parameters = (f"kms-key={KEY}", f"permissions-boundary={BOUNDARY}",
                  "vpc-subnets=subnet-11111111,subnet-22222222", "vpc-security-groups=sg-33333333",
                  "api-rate=500", "api-burst=200", "access-logs=on", "tracing=on",
                  f"domain={DOMAIN}", f"certificate={CERTIFICATE}", "rules=on",
                  "budget-dollars=50", "budget-email=a@example.com,b@example.com", f"alarm-topic={TOPIC}")  # fmt: skip
    return read(package("test-guarded", "arm64", *parameters) / "cloudformation.json")
