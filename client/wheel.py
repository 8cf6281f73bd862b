"""The wheel's version, and hatchling's hook that puts the program promlake into it and names the platforms on which it runs."""

import os
import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The architectures of ELF's e_machine.
_MACHINES = {62: "x86_64", 183: "aarch64"}
_INTERPRETER = 3  # of ELF's program headers: the program is linked with shared libraries


def version() -> str:
    """Returns PROMLAKE_WHEEL_VERSION, which make wheel sets, or else the release that the file VERSION names."""
    return os.environ.get("PROMLAKE_WHEEL_VERSION") or (Path(__file__).parents[1] / "VERSION").read_text().strip()


class ProgramHook(BuildHookInterface):
    """Adds the program that PROMLAKE_WHEEL_PROGRAM names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # it finds bin/promlake of the checkout
            return
        named = os.environ.get("PROMLAKE_WHEEL_PROGRAM")
        if not named:
            raise RuntimeError("PROMLAKE_WHEEL_PROGRAM is not set: a wheel contains the program promlake; make wheel builds both")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platforms(Path(named))}"
        build_data["force_include"][str(Path(named).absolute())] = "promlake/bin/promlake"


def platforms(program: Path) -> str:
    """Returns the platform tags of an ELF program.

    A static one runs on every Linux. One with shared libraries is for this machine, and no index of
    packages accepts its tag.
    """
    with program.open("rb") as f:
        head = f.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            raise RuntimeError(f"{program} is not a little-endian 64-bit ELF program")
        machine = _MACHINES[struct.unpack_from("<H", head, 18)[0]]
        (offset,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        f.seek(offset)
        headers = f.read(size * count)
    shared = any(struct.unpack_from("<I", headers, size * i)[0] == _INTERPRETER for i in range(count))
    return f"linux_{machine}" if shared else f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
