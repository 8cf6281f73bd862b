"""Packs a static Linux program as the bootstrap of a Lambda function: the same program gives the same bytes.

usage: pack.py PROGRAM ARCH ZIP, with ARCH arm64 or x86_64. A program that Lambda could not start is refused. A zip that holds the program
already is left alone, so that nothing is uploaded again.
"""

import struct
import sys
import zipfile
from pathlib import Path

MACHINES = {"x86_64": 62, "arm64": 183}  # e_machine of the ELF header
INTERPRETER = 3  # p_type of the program header that names a dynamic linker
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip


def check(program: bytes, arch: str) -> None:
    """Raises ValueError unless the program is a 64-bit little-endian ELF file for the architecture without a dynamic linker."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit ELF program")
    (machine,) = struct.unpack_from("<H", program, 18)
    if machine != MACHINES[arch]:
        raise ValueError(f"built for ELF machine {machine}, {arch} is {MACHINES[arch]}")
    (headers,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    for i in range(count):
        (kind,) = struct.unpack_from("<I", program, headers + i * size)
        if kind == INTERPRETER:
            raise ValueError("not static: it names a dynamic linker")


def holds(archive: Path, program: bytes) -> bool:
    """Reports whether the zip equals the one that pack would write."""
    if not archive.exists():
        return False
    with zipfile.ZipFile(archive) as z:
        return z.namelist() == ["bootstrap"] and z.getinfo("bootstrap").file_size == len(program) and z.read("bootstrap") == program


def pack(program: bytes, archive: Path) -> None:
    """Writes the zip, at once or not at all."""
    entry = zipfile.ZipInfo("bootstrap", EPOCH)
    entry.create_system = 3  # Unix, or the mode means nothing
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    part = archive.with_suffix(".part")
    with zipfile.ZipFile(part, "w") as z:
        z.writestr(entry, program, compresslevel=9)
    part.replace(archive)


def main() -> None:
    """Packs and prints the sizes in MiB."""
    name, arch, archive = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    program = name.read_bytes()
    try:
        check(program, arch)
    except ValueError as e:
        sys.exit(f"pack: {name}: {e}")
    old = holds(archive, program)
    if not old:
        pack(program, archive)
    sizes = f"{len(program) / 2**20:6.1f} MiB, zipped {archive.stat().st_size / 2**20:5.1f} MiB"
    print(f"  {archive}  {sizes}{'  (unchanged)' if old else ''}")


if __name__ == "__main__":
    main()
