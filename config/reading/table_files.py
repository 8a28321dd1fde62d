"""Read the files of a configuration, with size limits, and record each file that was read.

Symlinks in paths are not resolved: Kubernetes updates a mounted configuration by replacing a symlink.
"""

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

MAX_YAML_BYTES: Final = 2**20
MAX_PEM_BYTES: Final = 2**20
MAX_SECRET_BYTES: Final = 2**16
_ABSENT: Final = "absent"


class UnreadableError(Exception):
    """A file that cannot be used. The message gives the reason, and no content of the file."""


class Store(Protocol):
    """The source of the files of a load."""

    def content(self, path: Path, limit: int) -> bytes:
        """Read a file of at most `limit` bytes. Raises UnreadableError."""

    def matching(self, pattern: str) -> tuple[Path, ...]:
        """Return the files that match a glob, sorted. A path without wildcards is returned whether it exists or not."""


class Disk:
    """The `Store` that reads files from the file system."""

    def content(self, path: Path, limit: int) -> bytes:
        return _content(path, limit)

    def matching(self, pattern: str) -> tuple[Path, ...]:
        if not glob.has_magic(pattern):
            return (Path(pattern),)
        return tuple(path for path in map(Path, sorted(glob.glob(pattern, recursive=True))) if os.path.isfile(path))


DISK: Final = Disk()


@dataclass(frozen=True, slots=True)
class Copies:
    """The files as one load read them, with which another process loads the same configuration. `contents` hold
    secrets."""

    contents: Mapping[Path, bytes] = field(repr=False)
    matches: Mapping[str, tuple[Path, ...]]

    def content(self, path: Path, limit: int) -> bytes:
        """Return the copy of a file. The limit was applied when the copy was made."""
        if path not in self.contents:
            raise UnreadableError("there is no copy of it")
        return self.contents[path]

    def matching(self, pattern: str) -> tuple[Path, ...]:
        return self.matches.get(pattern, ())


@dataclass(slots=True, eq=False)
class SourceFiles:
    """The files that one load read or tried to read, in order, each with the hash of its content."""

    _store: Store = DISK
    _hashes: dict[Path, str] = field(default_factory=dict)
    _contents: dict[Path, bytes] = field(default_factory=dict)
    _matches: dict[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self._hashes)

    @property
    def hashes(self) -> Mapping[Path, str]:
        return self._hashes

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(self._matches)

    def copies(self) -> Copies:
        """Return copies of all files that have been read so far."""
        return Copies(dict(self._contents), dict(self._matches))

    def matching(self, pattern: str) -> tuple[Path, ...]:
        """Return the files that match a pattern, as `Store.matching` does, and record them."""
        found = self._matches[pattern] = self._store.matching(pattern)
        return found

    def read_yaml(self, path: Path) -> str:
        """Read a YAML file: at most 1 MiB of UTF-8."""
        return self._text(path, MAX_YAML_BYTES)

    def read_pem(self, path: Path) -> str:
        """Read a PEM file: at most 1 MiB. Characters outside ASCII, which only comments may hold, are replaced."""
        return self._read(path, MAX_PEM_BYTES).decode("ascii", "replace")

    def read_secret(self, path: Path) -> str:
        """Read a secret file: at most 64 KiB of UTF-8, without trailing line breaks."""
        return self._text(path, MAX_SECRET_BYTES).rstrip("\r\n")

    def _text(self, path: Path, limit: int) -> str:
        try:
            return self._read(path, limit).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableError(f"not UTF-8: bad byte at offset {error.start}") from None

    def _read(self, path: Path, limit: int) -> bytes:
        try:
            content = self._store.content(path, limit)
        except UnreadableError:
            self._hashes[path] = _current_hash(path)
            raise
        self._contents[path] = content
        self._hashes[path] = hashlib.sha256(content).hexdigest()
        return content


def others_may_write(path: Path) -> bool:
    """Return whether the file is world-writable."""
    try:
        return bool(path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def digest(hashes: Mapping[Path, str]) -> str:
    """Return one SHA-256 over the names and content hashes of files, independent of their order."""
    lines = sorted(f"{path}\0{value}" for path, value in hashes.items())
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def current_hashes(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the current hashes of files. A file that is missing or cannot be read counts as absent."""
    return {path: _current_hash(path) for path in paths}


def _current_hash(path: Path) -> str:
    try:
        return hashlib.sha256(_content(path, MAX_YAML_BYTES)).hexdigest()
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
