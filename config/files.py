"""Reading the files a table is made of, with a limit, and remembering what was read. Never what is in them.

Paths stay as the operator wrote them, links included: Kubernetes swaps a mounted table by moving a link.
"""

import hashlib
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

MAX_TABLE_BYTES: Final = 2**20
MAX_SECRET_BYTES: Final = 2**16
_ABSENT: Final = "absent"


class UnreadableError(Exception):
    """A file that cannot be used; the message says why and holds nothing of its content."""


class SourceFiles:
    """The files one load has read, or tried to, in reading order, each with the hash of its content."""

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self._hashes)

    @property
    def hashes(self) -> Mapping[Path, str]:
        return self._hashes

    def read_table(self, path: Path) -> str:
        """The text of a YAML file, at most 1 MiB of UTF-8."""
        return self._read(path, MAX_TABLE_BYTES)

    def read_secret(self, path: Path) -> str:
        """The text of a secret file, at most 64 KiB of UTF-8, without the line breaks at its end."""
        return self._read(path, MAX_SECRET_BYTES).rstrip("\r\n")

    def _read(self, path: Path, limit: int) -> str:
        try:
            content = _content(path, limit)
        except UnreadableError:
            self._hashes[path] = _current_hash(path)
            raise
        self._hashes[path] = hashlib.sha256(content).hexdigest()
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableError(f"not UTF-8: bad byte at offset {error.start}") from None


def others_may_write(path: Path) -> bool:
    """Whether any user of the machine could replace this file's content."""
    try:
        return bool(path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def digest(hashes: Mapping[Path, str]) -> str:
    """One SHA-256 over the names and contents of files, whatever order they were read in."""
    lines = sorted(f"{path}\0{value}" for path, value in hashes.items())
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def current_hashes(paths: Iterable[Path]) -> dict[Path, str]:
    """The hashes the files have now; one that is gone or cannot be read counts as absent."""
    return {path: _current_hash(path) for path in paths}


def _current_hash(path: Path) -> str:
    try:
        return hashlib.sha256(_content(path, MAX_TABLE_BYTES)).hexdigest()
    except UnreadableError:
        return _ABSENT


def _content(path: Path, limit: int) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnreadableError("not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise UnreadableError(error.strerror or type(error).__name__) from None
    except ValueError:
        raise UnreadableError("its name holds a NUL character") from None
    if len(content) > limit:
        raise UnreadableError(f"larger than {limit // 1024} KiB")
    return content
