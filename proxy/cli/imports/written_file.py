"""Write a file that a command made, and never over another unless that is asked for."""

import os
from collections.abc import Callable
from pathlib import Path

from proxy.cli.terminal import CommandError

Write = Callable[[Path, str], None]


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist. Raises FileExistsError."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def write_over(path: Path, text: str) -> None:
    """Replace a file at once, since a gateway may be reading it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def put_file(path: Path, text: str, write: Write) -> None:
    """Write the file by `write`. Raises CommandError when it is there already or cannot be written."""
    try:
        write(path, text)
    except FileExistsError:
        raise CommandError(f"{path} is there already; --force writes over it") from None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
