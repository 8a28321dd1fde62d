"""`dragoman prices import`: write an include file with context windows and list prices of the table's models, for a
person to review. What the table sets itself is left out."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from config.table.inheritance import effective
from providers.target import Target
from proxy.cli.imports.price_data import KnownModel, PriceList, price_list
from proxy.cli.imports.written_file import Write, put_file
from proxy.process.load_table import LoadedTable, Source
from proxy.routing.snapshot import Model

_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_ANY: Final = "it stands for any model: write a row for each that is used"


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """One model of the table: the keys to write for it, and notes for the person who reviews it."""

    model: str
    keys: Mapping[str, str]
    notes: tuple[str, ...]


def import_to_output(source: Source) -> int:
    """Print the file's text."""
    table = source.load()
    print(file_text(source, table, None), end="")
    return 0


def import_to_file(source: Source, path: Path, write: Write) -> int:
    """Write the file by `write`, and print what to do with it. Raises CommandError when it cannot be written."""
    put_file(path, file_text(source, source.load(), path), write)
    print(f"Review {path}, then name it in the table: `include: [{path.name}]`")
    return 0


def file_text(source: Source, table: LoadedTable, path: Path | None) -> str:
    """Return the include file's text. Settings of an older file at `path` are ignored."""
    moment = datetime.now(UTC)
    listed = price_list(moment)
    entries = [price_entry(table, path, listed, model) for model in table.snapshot.models.values()]
    entries += [PriceEntry(model.name, {}, (_ANY,)) for model in table.snapshot.wildcards.values()]
    return "".join(f"{line}\n" for line in lines(entries, source.path, listed, moment))


def lines(entries: Sequence[PriceEntry], table: Path | None, listed: PriceList, moment: datetime) -> Iterator[str]:
    """Yield the lines of the file: the entries, and as comments the models without data."""
    yield f"# What is known of the models of {table.name if table else 'the default table'}, for a person to review."
    yield f"# From the data of genai-prices {listed.version}, {moment:%Y-%m-%d}: list prices in USD per million tokens."
    yield "version: 1"
    written = [entry for entry in entries if entry.keys]
    yield "models:" if written else "models: {}"
    for entry in written:
        yield from (f"  # {note}" for note in entry.notes)
        yield f"  {_key(entry.model)}:"
        yield from (f"    {key}: {value}" for key, value in entry.keys.items())
    if left := [entry for entry in entries if not entry.keys]:
        yield "# Nothing to write for:"
        yield from (f"#   {entry.model}: {'; '.join(entry.notes)}" for entry in left)


def price_entry(table: LoadedTable, path: Path | None, listed: PriceList, model: Model) -> PriceEntry:
    """Return the entry of one model."""
    known = {target.deployment: listed.known(target.base_url, _names(target)) for target in model.targets}
    first, *others = known.values()
    if any(other != first for other in others):
        differing = (f"{name}: {_shown(each)}" for name, each in known.items())
        return PriceEntry(model.name, {}, (f"its deployments differ, {', '.join(differing)}",))
    if first is None:
        return PriceEntry(model.name, {}, (_unknown(listed, model.targets[0]),))
    present = _present(table, path, model)
    keys = {key: value for key, value in _facts(first).items() if key not in present}
    notes = [f"genai-prices: {first.listed_as}.", *first.notes]
    if present:
        notes.append(f"The table says itself: {', '.join(sorted(present))}.")
    return PriceEntry(model.name, keys, tuple(notes))


def _names(target: Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys((target.model, target.upstream_model)))


def _facts(known: KnownModel) -> dict[str, str]:
    facts = {}
    if known.context_window is not None:
        facts["context_window"] = str(known.context_window)
    if known.price is not None:
        facts["price"] = f"{{{known.price}}}"
    return facts


def _shown(known: KnownModel | None) -> str:
    return "unknown" if known is None else f"{{{', '.join(f'{key}: {value}' for key, value in _facts(known).items())}}}"


def _unknown(listed: PriceList, target: Target) -> str:
    vendor = listed.vendor(target.base_url)
    if vendor is None:
        return f"no prices are known at {urlsplit(target.base_url).netloc}"
    return f"{vendor} has no model {' or '.join(_names(target))} in the data"


def _present(table: LoadedTable, path: Path | None, model: Model) -> set[str]:
    """Return the keys that the table sets elsewhere than in the file at `path`, at any level."""
    own = None if path is None else os.path.realpath(path)
    present = set()
    for target in model.targets:
        origins = effective(table.loaded.config, target.vendor, model.name, target.deployment).origins
        for key in ("context_window", "price"):
            if key in origins and os.path.realpath(table.loaded.locate(origins[key]).file) != own:
                present.add(key)
    return present


def _key(model: str) -> str:
    return model if _PLAIN_KEY.fullmatch(model) else json.dumps(model)
