"""The committed record of what goes out for each cell: golden/<profile>.json, one line a cell.

`python -m tests.conformance.golden [PROFILE ...]` writes files anew; the difference is then for a person to read. Never
decides whether what goes out is right.

A line holds what the cell is and, for each request that the vendor got, the members by which its body differs from that
of the smallest request, which the line `smallest` has. `without` lists members that it lacks. A request to another path
stands there whole. A refused cell has the error instead.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from providers.profiles import load_profiles
from providers.unified import JsonObject, JsonValue
from tests.conformance.evidence import changed
from tests.conformance.shown import named
from tests.conformance.walk import Exchange, Sent, Walked, walked
from tests.proxy.raw_client import Answer

FOLDER: Final = Path(__file__).parent / "golden"

_AT_ONCE = frozenset({"n", "best_of", "prompt.batch", "prompt.token_batch"})
"""Calls that may arrive in any order."""

_VARYING = frozenset({"host", "x-request-id", "content-length", "content-type", "connection"})


def text(profile: str) -> str:
    """The file of a profile."""
    blocks = groupby(walked(profile), _place)
    return "{\n" + ",\n".join(_block(place, list(cells)) for place, cells in blocks) + "\n}\n"


def _place(cell: Walked) -> str:
    return f"{cell.row.model} {cell.row.operation}{', context_window in the table' if cell.window else ''}"


def _block(place: str, cells: Sequence[Walked]) -> str:
    base = cells[0].base
    first: JsonValue = [_whole(base.sent[-1])] if base.sent else _error(base.answer)
    lines = [("smallest", first), *((cell.feature, _entry(cell)) for cell in cells)]
    body = ",\n".join(f"  {_json(name)}: {_json(entry)}" for name, entry in lines)
    return f"{_json(place)}: {{\n{body}\n}}"


def _entry(cell: Walked) -> JsonObject:
    kind, answer = str(cell.cell.support), cell.whole.answer
    if cell.cell.refused:
        return {kind: _error(answer)}
    calls: list[JsonValue] = [_call(sent, cell.base) for sent in cell.whole.sent]
    if cell.feature in _AT_ONCE:
        calls.sort(key=_json)
    entry: JsonObject = {kind: calls}
    if names := named(answer):
        entry["named"] = list(names)
    if answer.status != 200:
        entry["error"] = _error(answer)
    return entry


def _call(sent: Sent, base: Exchange) -> JsonObject:
    before = base.sent[-1]
    if sent.path != before.path:
        return _whole(sent)
    call = changed(sent, base)
    if missing := sorted(set(before.body or ()) - set(sent.body or ())):
        call["without"] = [*missing]
    if headers := {name: value for name, value in sent.headers.items() if before.headers.get(name) != value}:
        own: JsonObject = {name: value for name, value in headers.items() if name not in _VARYING}
        call |= {"headers": own} if own else {}
    return call


def _whole(sent: Sent) -> JsonObject:
    return {"path": sent.path} if sent.body is None else {"path": sent.path, "body": sent.body}


def _error(answer: Answer) -> str:
    error = answer.error()
    return f"{answer.status} {error['code']} {error['param']}: {error['message']}"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def write(profiles: Iterable[str]) -> None:
    """Write the files of these profiles."""
    FOLDER.mkdir(exist_ok=True)
    for profile in profiles:
        (FOLDER / f"{profile}.json").write_text(text(profile), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:] or load_profiles())
