"""A table on disk: one file per kind, compressed, with a checksum over every byte that matters.

    selfplay table 1 <sha256 of all that follows this line>
    {"game": "chess", "kind": "KQK", "version": 1, "counts": {...}, "arrays": [...], "blocks": [...]}
    the blocks, compressed by zlib, one after the other

A file is written aside, synced and renamed: there is a whole table or none. Whatever was flipped on the way, the
checksum refuses it.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError

MAGIC = b"selfplay table 1 "
SUFFIX = ".table"
_BLOCK = 1 << 20  # bytes before compression
_FIRST_LINE = len(MAGIC) + 64 + 1


@dataclass(frozen=True)
class Table:
    """What a file holds: its header, and its arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def default_folder() -> Path:
    """`$SELFPLAY_TABLES`, else `tables` in the working folder."""
    return Path(os.environ.get("SELFPLAY_TABLES") or "tables")


def path_of(folder: Path, game: str, kind: str) -> Path:
    return folder / game / f"{kind}{SUFFIX}"


def prepare_folder(folder: Path, game: str) -> None:
    """Makes the folder and removes what a killed run left behind; one sentence if tables can't be written there."""
    place = folder / game
    try:
        place.mkdir(parents=True, exist_ok=True)
        for rest in place.glob(f"*{SUFFIX}.part"):
            rest.unlink()
        probe = place / f"probe{SUFFIX}.part"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InputError(f"tables can't be written to the folder {str(place)!r}: {error.strerror}") from None


def write_table(path: Path, game: str, kind: str, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
    """Writes a table aside, syncs and renames it. `facts` go into the header as they are."""
    blocks, layout = [], []
    for name, array in arrays.items():
        whole = np.ascontiguousarray(array)
        raw = whole.view(np.uint8).reshape(-1)
        pieces = [zlib.compress(raw[i : i + _BLOCK].tobytes(), 6) for i in range(0, len(raw), _BLOCK)]
        layout.append({"name": name, "dtype": whole.dtype.str, "shape": list(whole.shape), "blocks": len(pieces)})
        blocks += pieces
    header = {"game": game, "kind": kind, "version": 1, **facts, "arrays": layout, "blocks": [len(b) for b in blocks]}
    line = json.dumps(header).encode() + b"\n"
    digest = hashlib.sha256(line)
    for block in blocks:
        digest.update(block)
    aside = path.with_name(path.name + ".part")
    try:
        with aside.open("wb") as file:
            file.write(MAGIC + digest.hexdigest().encode() + b"\n" + line)
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"table {str(path)!r} can't be written: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_table(path: Path) -> Table:
    """The table of a file, its checksum proven; one sentence where that fails."""
    header, rest = _read(path)
    arrays, number, place = {}, 0, 0
    try:
        for entry in header["arrays"]:
            raw = bytearray()
            for _ in range(entry["blocks"]):
                size = header["blocks"][number]
                raw += zlib.decompress(rest[place : place + size])
                number, place = number + 1, place + size
            arrays[entry["name"]] = np.frombuffer(bytes(raw), entry["dtype"]).reshape(entry["shape"])
    except (KeyError, ValueError, TypeError, IndexError, zlib.error):
        raise InputError(f"table {str(path)!r} is not one that this version can read; build it again") from None
    return Table(header, arrays)


def read_header(path: Path) -> dict[str, Any]:
    """What a table says about itself, its checksum proven."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Any], memoryview]:
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise InputError(f"table {str(path)!r} can't be read: {error.strerror}") from None
    if not whole.startswith(MAGIC) or whole[_FIRST_LINE - 1 : _FIRST_LINE] != b"\n":
        raise InputError(f"table {str(path)!r} does not begin as a table does; delete it and build it again")
    body = memoryview(whole)[_FIRST_LINE:]
    if hashlib.sha256(body).hexdigest().encode() != whole[len(MAGIC) : _FIRST_LINE - 1]:
        raise InputError(f"table {str(path)!r} is damaged: its checksum is wrong; delete it and build it again")
    line, _, _ = whole[_FIRST_LINE:].partition(b"\n")
    header = json.loads(line)
    place = path_of(path.parent.parent, header["game"], header["kind"])
    if place.name != path.name or place.parent.name != path.parent.name:
        raise InputError(
            f"table {str(path)!r} is the one of {header['game']}, {header['kind']}: its place is {str(place)!r}"
        )
    return header, body[len(line) + 1 :]


def found(folder: Path, game: str) -> Iterator[Path]:
    """The files of a game's tables, in the order of their names."""
    yield from sorted((folder / game).glob(f"*{SUFFIX}"))
