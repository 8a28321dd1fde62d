"""The committed record of the requests that each cell of the matrix sends: golden/<profile>.json, one line per cell.

`python -m tests.conformance.golden [PROFILE ...]` rewrites the files; review the difference before committing it.

A line holds the cell's support and, for each request that the vendor received, the fields by which its body differs
from the body of the smallest request. The line `smallest` holds that body. `without` lists fields that the body lacks.
A request to another path is recorded completely. A refused cell has the error instead.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.conformance.read_answer import emulated_fields
from tests.conformance.run_matrix import CellRun, Exchange, Sent, run_profile
from tests.conformance.sent_values import changed
from tests.proxy.kit.raw_client import Answer

FOLDER: Final = Path(__file__).parent / "golden"

_AT_ONCE = frozenset({"n", "best_of", "prompt.batch", "prompt.token_batch"})
"""Features whose calls may arrive in any order."""

_VARYING = frozenset({"host", "x-request-id", "content-length", "content-type", "connection"})


def text(profile: str) -> str:
    """Return the text of a profile's file."""
    blocks = groupby(run_profile(profile), _place)
    return "{\n" + ",\n".join(_block(place, list(cells)) for place, cells in blocks) + "\n}\n"


def _place(cell: CellRun) -> str:
    return f"{cell.row.model} {cell.row.operation}{', context_window in the table' if cell.window else ''}"


def _block(place: str, cells: Sequence[CellRun]) -> str:
    base = cells[0].base
    first: JsonValue = [_whole(base.sent[-1])] if base.sent else _error(base.answer)
    lines = [("smallest", first), *((cell.feature, _entry(cell)) for cell in cells)]
    body = ",\n".join(f"  {_json(name)}: {_json(entry)}" for name, entry in lines)
    return f"{_json(place)}: {{\n{body}\n}}"


def _entry(cell: CellRun) -> JsonObject:
    kind, answer = str(cell.cell.support), cell.whole.answer
    if cell.cell.refused:
        return {kind: _error(answer)}
    calls: list[JsonValue] = [_call(sent, cell.base) for sent in cell.whole.sent]
    if cell.feature in _AT_ONCE:
        calls.sort(key=_json)
    entry: JsonObject = {kind: calls}
    if names := emulated_fields(answer):
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
    """Write the files of `profiles`."""
    FOLDER.mkdir(exist_ok=True)
    for profile in profiles:
        (FOLDER / f"{profile}.json").write_text(text(profile), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:] or load_profiles())
