"""Write the output file of a command. An existing file is replaced only on request."""

import os
from collections.abc import Callable
from pathlib import Path

from proxy.cli.terminal import CommandError

Write = Callable[[Path, str], None]


def write_new(path: Path, text: str) -> None:
    """Write a new file. Raises FileExistsError if it exists."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def write_over(path: Path, text: str) -> None:
    """Replace a file atomically, because a gateway may be reading it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def put_file(path: Path, text: str, write: Write) -> None:
    """Write the file by `write`. Raises CommandError if it exists and must not be replaced, or cannot be written."""
    try:
        write(path, text)
    except FileExistsError:
        raise CommandError(f"{path} already exists; --force overwrites it") from None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
