"""The functions' zips: Lambda can start them, and equal programs give equal bytes."""

import importlib.util
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from support.programs import ROOT, Programs

PACK = ROOT / "infra/pack.py"
LARGEST_CODE = 250 << 20  # bytes: Lambda's limit of unpacked code


@pytest.fixture(scope="module")
def pack() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pack", PACK)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
@pytest.mark.parametrize("program", ["ingest-fn", "compact-fn", "query-fn"])
def test_zip(program: str, arch: str, programs: Programs, pack: ModuleType) -> None:  # noqa: ARG001 (they are made together)
    with zipfile.ZipFile(ROOT / "dist" / arch / f"{program}.zip") as z:
        (entry,) = z.infolist()
        bootstrap = z.read(entry)
    assert entry.filename == "bootstrap"
    assert entry.date_time == (1980, 1, 1, 0, 0, 0)
    assert stat.S_IMODE(entry.external_attr >> 16) == 0o755
    assert len(bootstrap) < LARGEST_CODE
    pack.check(bootstrap, arch)


def test_pack_is_reproducible_and_leaves_equal_zips_alone(pack: ModuleType, tmp_path: Path) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    pack.pack(b"program" * 1000, one)
    pack.pack(b"program" * 1000, two)
    assert one.read_bytes() == two.read_bytes()
    assert pack.holds(one, b"program" * 1000)
    assert not pack.holds(one, b"another program")
    assert not pack.holds(tmp_path / "none.zip", b"program")
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == []


@pytest.mark.parametrize(
    ("arch", "program", "error"),
    [
        ("other", "ingest-fn", "built for ELF machine"),
        ("same", "dynamic", "not static: it names a dynamic linker"),
        ("same", "script", "not a 64-bit ELF program"),
    ],
)
def test_pack_rejects_programs_that_lambda_cannot_start(arch: str, program: str, error: str, programs: Programs, tmp_path: Path) -> None:
    same = {"aarch64": "arm64"}.get(machine(), machine())
    other = {"arm64": "x86_64", "x86_64": "arm64"}[same]
    path = {"ingest-fn": ROOT / "dist" / same / "programs/ingest-fn/bootstrap", "dynamic": programs.query_fn, "script": PACK}[program]
    args = [sys.executable, PACK, path, same if arch == "same" else other, tmp_path / "x.zip"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert error in done.stderr
    assert not (tmp_path / "x.zip").exists()


def machine() -> str:
    return subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
