"""`dragoman prices import`: windows and prices of the table's models, written down for a person to review.

Never what the table says itself, and never a fact that the data does not have.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from config.settings import effective
from providers.dialect import Target
from proxy.prices import Known, PriceList, price_list
from proxy.reload import Source, Table
from proxy.snapshot import Model
from proxy.terminal import CommandError

Write = Callable[[Path, str], None]

_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_ANY: Final = "it stands for any model: write a row for each that is used"


@dataclass(frozen=True, slots=True)
class Row:
    """One model of the table: the keys to write for it, or why there are none, and what a person should know."""

    model: str
    keys: Mapping[str, str]
    notes: tuple[str, ...]


def import_to_output(source: Source) -> int:
    """Print the file."""
    table = source.load()
    print(file_text(source, table, None), end="")
    return 0


def import_to_file(source: Source, path: Path, write: Write) -> int:
    """Write the file by `write`, and say what to do with it. Raises CommandError when it cannot be written."""
    text = file_text(source, source.load(), path)
    try:
        write(path, text)
    except FileExistsError:
        raise CommandError(f"{path} is there already; --force writes over it") from None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
    print(f"Review {path}, then name it in the table: `include: [{path.name}]`")
    return 0


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def write_over(path: Path, text: str) -> None:
    """Write a file whole, for a gateway that reads it meanwhile."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def file_text(source: Source, table: Table, path: Path | None) -> str:
    """The include file's text. What an older one at `path` says counts as not said."""
    moment = datetime.now(UTC)
    listed = price_list(moment)
    found = [row(table, path, listed, model) for model in table.snapshot.models.values()]
    found += [Row(model.name, {}, (_ANY,)) for model in table.snapshot.wildcards.values()]
    return "".join(f"{line}\n" for line in lines(found, source.path, listed, moment))


def lines(found: Sequence[Row], table: Path | None, listed: PriceList, moment: datetime) -> Iterator[str]:
    """The lines of the file: what is known, and as comments what is not."""
    yield f"# What is known of the models of {table.name if table else 'the default table'}, for a person to review."
    yield f"# From the data of genai-prices {listed.version}, {moment:%Y-%m-%d}: list prices in USD per million tokens."
    yield "version: 1"
    written = [row for row in found if row.keys]
    yield "models:" if written else "models: {}"
    for row in written:
        yield from (f"  # {note}" for note in row.notes)
        yield f"  {_key(row.model)}:"
        yield from (f"    {key}: {value}" for key, value in row.keys.items())
    if left := [row for row in found if not row.keys]:
        yield "# Nothing to write for:"
        yield from (f"#   {row.model}: {'; '.join(row.notes)}" for row in left)


def row(table: Table, path: Path | None, listed: PriceList, model: Model) -> Row:
    """What there is to write of one model."""
    known = {target.deployment: listed.known(target.base_url, _names(target)) for target in model.targets}
    first, *others = known.values()
    if any(other != first for other in others):
        told = (f"{name}: {_shown(each)}" for name, each in known.items())
        return Row(model.name, {}, (f"its deployments differ, {', '.join(told)}",))
    if first is None:
        return Row(model.name, {}, (_unknown(listed, model.targets[0]),))
    said = _said(table, path, model)
    keys = {key: value for key, value in _facts(first).items() if key not in said}
    notes = [f"genai-prices: {first.listed_as}.", *first.notes]
    if said:
        notes.append(f"The table says itself: {', '.join(sorted(said))}.")
    return Row(model.name, keys, tuple(notes))


def _names(target: Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys((target.model, target.upstream_model)))


def _facts(known: Known) -> dict[str, str]:
    facts = {}
    if known.context_window is not None:
        facts["context_window"] = str(known.context_window)
    if known.price is not None:
        facts["price"] = f"{{{known.price}}}"
    return facts


def _shown(known: Known | None) -> str:
    return "unknown" if known is None else f"{{{', '.join(f'{key}: {value}' for key, value in _facts(known).items())}}}"


def _unknown(listed: PriceList, target: Target) -> str:
    vendor = listed.vendor(target.base_url)
    if vendor is None:
        return f"no prices are known at {urlsplit(target.base_url).netloc}"
    return f"{vendor} has no model {' or '.join(_names(target))} in the data"


def _said(table: Table, path: Path | None, model: Model) -> set[str]:
    """The facts that are written somewhere else than in the file at `path`, at any level."""
    own = None if path is None else os.path.realpath(path)
    said = set()
    for target in model.targets:
        origins = effective(table.loaded.config, target.vendor, model.name, target.deployment).origins
        for key in ("context_window", "price"):
            if key in origins and os.path.realpath(table.loaded.locate(origins[key]).file) != own:
                said.add(key)
    return said


def _key(model: str) -> str:
    return model if _PLAIN_KEY.fullmatch(model) else json.dumps(model)
