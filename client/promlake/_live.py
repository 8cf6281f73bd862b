"""The live objects of a local store, as schemas/manifest.md defines them."""

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HOURS = {"part": 2, "2h": 2, "12h": 12, "24h": 24}
_SEGMENT_HOURS = 2
_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's
_QUEUED = "-q"  # after the ULID of a segment that was made of messages of the write queue


@dataclass(frozen=True)
class Object:
    """A live segment or block.

    Of samples with equal series and timestamp, the one in the object with the higher rank counts.
    """

    path: Path  # the segment's file, or the block's directory
    rank: str
    start: dt.datetime  # of the window that holds all of its samples
    end: dt.datetime

    @property
    def is_block(self) -> bool:
        return self.path.is_dir()

    def overlaps(self, other: "Object") -> bool:
        return self.start < other.end and other.start < self.end


def live_objects(store: Path, tenant: str) -> list[Object]:
    """Returns the live objects of a tenant, ascending by rank.

    The segments are listed before the manifest is read: a segment that is compacted in between is
    then in a block of the manifest.

    Raises:
        FileNotFoundError: The tenant has no live objects.
    """
    if tenant in {"", ".", ".."} or "/" in tenant:
        raise ValueError(f"tenant {tenant!r}: not a tenant's name")
    root = (store / "v1" / tenant).absolute()
    # Not rglob with the tenant in the pattern: tenants' names may hold *.
    segments = [_object(f, segment_rank(f), f.parent.name, _SEGMENT_HOURS) for f in (root / "segments").glob("*/*.parquet")]
    manifest = _manifest(root / "manifest.json")
    consumed = {(c["window"], c["id"] + (_QUEUED if c.get("queued") else "")) for c in manifest.get("consumed", [])}
    found = [s for s in segments if (s.path.parent.name, s.path.stem) not in consumed]
    for b in manifest.get("blocks", []):
        path = root / "blocks" / b["level"] / b["window"] / b["id"]
        found.append(_object(path, b["rank"], b["window"], _HOURS[b["level"]]))
    if not found:
        raise FileNotFoundError(f"no data of tenant {tenant} in {root}")
    return sorted(found, key=lambda o: o.rank)


def segment_rank(path: Path) -> str:
    """Returns a segment's rank, as schemas/manifest.md defines it.

    It is the time at which the store or the queue received the segment, then its ULID.
    """
    name, queued = path.stem.removesuffix(_QUEUED), path.stem.endswith(_QUEUED)
    own = 0
    for c in name:
        own = own * 32 + _BASE32.index(c)
    own_ms, entropy = own >> 80, own >> 50 & (1 << 30) - 1
    ms, rest = (own_ms, 0) if queued else divmod(path.stat().st_mtime_ns, 1_000_000)
    rank = ms << 80 | rest << 60 | (own_ms & (1 << 30) - 1) << 30 | entropy
    return "".join(_BASE32[rank >> 5 * i & 31] for i in reversed(range(26)))


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if manifest["version"] not in (1, 2):
        raise ValueError(f"{path}: manifest of version {manifest['version']}, this package reads 1 and 2")
    return manifest


def _object(path: Path, rank: str, window: str, hours: int) -> Object:
    start = dt.datetime.strptime(window, "%Y%m%dT%H%M%z")
    return Object(path, rank, start, start + dt.timedelta(hours=hours))
