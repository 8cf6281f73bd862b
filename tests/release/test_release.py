"""Are the files of a release what docs/install.md says, and do they install, run, upgrade and go?"""

import hashlib
import json
import platform
import re
import subprocess
import tarfile
import time
from pathlib import Path

import cramjam
import pytest
from conftest import HOST, Serve, System, only, run
from support.questions import vector
from support.remote_write import series
from support.server import Server

ARCHITECTURES = ("amd64", "arm64")


def emulator(arch: str) -> list[str | Path]:
    """Returns the command before a program for the architecture."""
    return [] if arch == HOST else ["qemu-aarch64-static" if arch == "arm64" else "qemu-x86_64-static"]


def write_and_query(server: Server) -> None:
    now = int(time.time() * 1000)
    assert server.sender().write(series("up", [(now, 7)], job="api")).status == 204
    (sample,) = vector(server.client(), "up", now / 1000).samples
    assert sample.value == 7


def test_files(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert sums.keys() == {p.name for p in release.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest, name
    kinds = {re.sub(r"\d+\.\d+\.\d+[0-9a-zA-Z.+~-]*?(?=[-_](?:linux|py3|amd64|arm64|1\.))", "V", name) for name in sums}
    assert kinds == {
        *(f"promlake-V-linux-{arch}.{end}" for arch in ARCHITECTURES for end in ("tar.gz", "image.tar", "cdx.json")),
        *(f"{fn}-V-{arch}.zip" for arch in ARCHITECTURES for fn in ("ingest-fn", "compact-fn", "query-fn")),
        *(f"promlake_V_{arch}.deb" for arch in ARCHITECTURES),
        *(f"promlake-V-1.{machine}.rpm" for machine in ("x86_64", "aarch64")),
        *(f"promlake-V-py3-none-manylinux_2_17_{m}.musllinux_1_1_{m}.whl" for m in ("x86_64", "aarch64")),
    }


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_archive(release: Path, tmp_path: Path, arch: str, serve: Serve) -> None:  # noqa: ARG001
    with tarfile.open(only(f"*-linux-{arch}.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("promlake-*")
    assert {p.name for p in folder.iterdir()} == {"promlake", "promlake.service", "LICENSE", "LICENSES.txt", "README.md", "CHANGELOG.md"}
    version = run(*emulator(arch), folder / "promlake", "--version")
    assert version.split()[1] == folder.name.removeprefix("promlake-").removesuffix(f"-linux-{arch}")
    check = tmp_path / "kubernetes.yml"
    check.write_text("scrape_configs: [{job_name: pods, kubernetes_sd_configs: [{role: pod}]}]\n")
    run(*emulator(arch), folder / "promlake", "check", "config", check)
    server = serve([*emulator(arch), folder / "promlake"], f"file://{tmp_path}/store")
    write_and_query(server)
    server.stop()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bill_of_materials(release: Path, arch: str) -> None:  # noqa: ARG001
    bill = json.loads(only(f"*-linux-{arch}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    components = {c["name"]: c for c in bill["components"]}
    for name in ("github.com/prometheus/prometheus", "github.com/duckdb/duckdb-go/v2", "k8s.io/client-go", "duckdb", "glibc", "uplot"):
        assert components[name]["licenses"], name
    assert len({c["bom-ref"] for c in bill["components"]}) == len(bill["components"])


def test_deb(system: System, serve: Serve) -> None:
    package = system.root / "tmp/promlake.deb"
    package.write_bytes(only(f"*_{HOST}.deb").read_bytes())
    system.run("dpkg", "--install", "/tmp/promlake.deb")  # noqa: S108 (in the copy)
    for completion in ("bash-completion/completions/promlake", "zsh/site-functions/_promlake", "fish/vendor_completions.d/promlake.fish"):
        assert "_promlake" in (system.root / "usr/share" / completion).read_text()
    check_installed(system, serve)
    settings = system.root / "etc/promlake/promlake.yaml"
    settings.write_text(settings.read_text() + "query.timeout: 1m\n")
    system.run("dpkg", "--install", "/tmp/promlake.deb")  # noqa: S108 (an upgrade)
    assert settings.read_text().endswith("query.timeout: 1m\n"), "an upgrade keeps the settings"
    system.run("dpkg", "--remove", "promlake")
    assert settings.exists()
    assert not (system.root / "usr/bin/promlake").exists()
    system.run("dpkg", "--purge", "promlake")
    assert not settings.exists()
    assert list((system.root / "var/lib/promlake/data/v1").iterdir()), "the data stays"


def test_rpm(system: System, serve: Serve) -> None:
    package = system.root / "tmp/promlake.rpm"
    package.write_bytes(only(f"promlake-*-1.{platform.machine()}.rpm").read_bytes())
    install = ("rpm", "--force-debian", "--nodeps", "--upgrade", "--replacepkgs", "/tmp/promlake.rpm")  # noqa: S108 (in the copy)
    system.run(*install)
    check_installed(system, serve)
    system.run(*install)
    system.run("rpm", "--force-debian", "--erase", "promlake")
    assert not (system.root / "usr/bin/promlake").exists()
    assert list((system.root / "var/lib/promlake/data/v1").iterdir()), "the data stays"


def check_installed(system: System, serve: Serve) -> None:
    """The unit is sound and hardened, the user exists, and the program serves as this user with the package's settings."""
    unit = "/usr/lib/systemd/system/promlake.service"
    assert "promlake.service" not in system.run("systemd-analyze", "verify", "--recursive-errors=no", unit)
    system.run("systemd-analyze", "security", "--offline=true", "--threshold=25", unit)
    settings = system.run("promlake", "config", "--settings.file", "/etc/promlake/promlake.yaml")
    assert "file:///var/lib/promlake/data" in settings
    for directory in ("var/lib/promlake", "var/cache/promlake"):  # systemd makes them
        (system.root / directory).mkdir()
    system.run("chown", "promlake:promlake", "/var/lib/promlake", "/var/cache/promlake")
    command = ["chroot", "--userspec=promlake:promlake", system.root, "env", "TMPDIR=/var/cache/promlake", "/usr/bin/promlake"]
    server = serve(command, "file:///var/lib/promlake/data")
    write_and_query(server)
    assert "ready" in system.run("promlake", "check", "ready", server.url).lower()
    server.stop()


# Runs a program in a root that is read only, as a user without rights: the arguments are the root,
# the volume, and the command.
CONTAINER = """
set -e
root=$1 data=$2
shift 2
mount --bind "$root" "$root"
mount --bind "$data" "$root/data"
mount --bind /proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec chroot --userspec=65532:65532 "$root" "$@"
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_image(release: Path, tmp_path: Path, arch: str, serve: Serve) -> None:  # noqa: ARG001
    tar = only(f"*-linux-{arch}.image.tar")
    assert tar.stat().st_size <= 45_000_000
    layout, root, data = tmp_path / "layout", tmp_path / "root", tmp_path / "data"
    with tarfile.open(tar) as archive:
        archive.extractall(layout, filter="data")
    (docker,) = json.loads((layout / "manifest.json").read_text())
    for layer in docker["Layers"]:
        path = tmp_path / "layer.tar"
        path.write_bytes(bytes(cramjam.zstd.decompress((layout / layer).read_bytes())))
        with tarfile.open(path) as files:
            files.extractall(root, filter="tar", numeric_owner=True)
    config = json.loads((layout / docker["Config"]).read_text())
    assert config["architecture"] == arch
    assert config["config"]["Healthcheck"]["Test"] == ["CMD", "/usr/bin/promlake", "check", "ready"]
    assert config["config"]["Labels"]["org.opencontainers.image.version"]
    data.mkdir()
    (root / "proc").mkdir()  # as container runtimes do
    subprocess.run(["chown", "65532:65532", data], check=True)
    command: list[str | Path] = ["unshare", "--mount", "sh", "-c", CONTAINER, "sh", root, data]
    if arch != HOST:
        emulated = root / "usr/bin/emulator"
        emulated.write_bytes(Path(run("which", str(emulator(arch)[0])).strip()).read_bytes())
        emulated.chmod(0o755)
        command.append("/usr/bin/emulator")
    server = serve([*command, *config["config"]["Entrypoint"]], "file:///data/store")
    write_and_query(server)
    assert "ready" in run(*command, "/usr/bin/promlake", "check", "ready", server.url).lower()
    server.stop()
    assert list((data / "store/v1").iterdir())
