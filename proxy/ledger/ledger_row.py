"""One request as a row of the ledger, and the line of the journal that carries it there.

A line is a JSON array that begins with the version of its form, so that a loader tells what it can read. Its text is
bounded and has no NUL, which PostgreSQL refuses; its numbers fit 64 bits with sign. The id is the ledger's own: clients
may send one `x-request-id` twice. It begins with the time, so that indexes grow at their end.
"""

import os
import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from proxy.limits.limit import MOST_COST, MOST_TOKENS, NANO

if TYPE_CHECKING:  # who only reads lines has no requests
    from proxy.request_record import RequestRecord

VERSION: Final = 1
"""The form of a line. Another order or meaning of its members is another version."""

MOST_BYTES: Final = 256
"""Of a text in a row, in UTF-8."""

ESTIMATED: Final = 1
"""The bit of a row whose token counts are estimates."""

INCOMPLETE: Final = 2
"""The bit of a row whose cost lacks what was used at a price that is not known. Earlier versions read 2 as 1."""

MOST_TAGS: Final = 16

MOST: Final = (1 << 63) - 1
"""The largest integer of either database."""

MOST_MS: Final = 1 << 40
"""Some 35 years, which nobody waits for; sums of all rows have to fit the database's integers."""

MOST_STATUS: Final = 999

MOST_ATTEMPTS: Final = 1 << 15

ID_BYTES: Final = 16

LATEST: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which PostgreSQL's and Python's dates differ."""

TagsJson: TypeAlias = "orjson.Fragment | None"


class LedgerRow(NamedTuple):
    """A request in the order of the columns. `time` is its end, ms UTC; `cost` billionths of a USD, None without a
    price; token counts are None where nobody knows them. `estimated` is ESTIMATED,
    INCOMPLETE, both or 0. `deployment` and `model` are labels of the table; `asked` is
    the client's own string. `tags` is a JSON object or None."""

    id: bytes
    time: int
    request_id: str
    team: str
    key_name: str
    user_name: str | None
    tags: str | None
    surface: str
    asked: str
    model: str
    deployment: str | None
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    estimated: int
    cost: int | None
    status: int
    outcome: str
    ms: int
    attempts: int
    gateway: str


class Journaled(NamedTuple):
    """A row with its number among those of its process, which begins with 1."""

    sequence: int
    row: LedgerRow


class UnreadableLineError(ValueError):
    """A line that no version of the gateway wrote, or half of one."""


class OtherVersionError(ValueError):
    """A line of another version of the gateway; its text names it."""


_random = random.Random()  # noqa: S311 - tells rows apart, guards nothing
_bits = _random.getrandbits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)  # else all workers would draw the same ids


def row_line(record: "RequestRecord", sequence: int, now: int, user: str | None = None, tags: TagsJson = None) -> bytes:
    """Return the line of a request that ended at `now`, in ms since 1970. Called once for each request."""
    usage = record.counted
    tokens_in = cached = tokens_out = reasoning = cost = None
    estimated = 0
    if usage is not None:
        tokens_in, tokens_out = usage.prompt_tokens, usage.completion_tokens
        cached = details.get("cached_tokens") if (details := usage.prompt_details) else None
        reasoning = details.get("reasoning_tokens") if (details := usage.completion_details) else None
        estimated = ESTIMATED if usage.estimated else 0
        if (usd := record.cost) is not None:
            cost = round(usd * NANO)
            if record.unpriced:
                estimated |= INCOMPLETE
    asked = record.asked
    if len(asked) > 64 or "\0" in asked:
        asked = clean(asked)
    if user is not None and (len(user) > 64 or "\0" in user):
        user = clean(user)
    attempts = record.attempts
    values = (
        VERSION,
        sequence,
        "%032x" % (now << 80 | _bits(80)),
        now,
        record.request_id,
        record.team,
        record.key or record.key_label,
        user,
        tags,
        record.surface,
        asked,
        record.model,
        attempts[-1].deployment if attempts else None,
        tokens_in,
        cached,
        tokens_out,
        reasoning,
        estimated,
        cost,
        record.status,
        record.outcome,
        int((record.finished - record.started) * 1000),
        len(attempts),
    )
    try:
        return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return _mended(values)


def _mended(values: Sequence[object]) -> bytes:
    """Return the line with what a database can hold in place of what it cannot."""
    mended = [
        clean(value) if isinstance(value, str) else max(0, min(value, MOST)) if isinstance(value, int) else value
        for value in values
    ]
    return orjson.dumps(mended, option=orjson.OPT_APPEND_NEWLINE)


def clean(text: str) -> str:
    """Return text that every database takes: without NUL and halves of surrogate pairs, and bounded."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return bounded(text)


def bounded(text: str) -> str:
    """Return the text, or as much of it as MOST_BYTES hold, in whole characters."""
    data = text[: MOST_BYTES + 1].encode("utf-8", "replace")
    return data[:MOST_BYTES].decode("utf-8", "ignore")


def written_tags(tags: Mapping[str, str]) -> TagsJson:
    """Return tags as they go into lines: once for each team, or for each request that brings some of its own."""
    text = tags_text(tags)
    return None if text is None else orjson.Fragment(text)


def tags_text(tags: Mapping[str, str]) -> str | None:
    """Return bounded tags as a JSON object in one order, so that equal tags are equal texts; None without any."""
    kept = {clean(name): clean(tags[name]) for name in sorted(tags)[:MOST_TAGS]}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode() if kept else None


# Reading -------------------------------------------------------------------------------------------------------------

_MEMBERS: Final = 23

_NONE: Final = type(None)

_KINDS: Final = frozenset(
    product(
        *((int,), (int,), (str,), (int,), (str,), (str,), (str,), (str, _NONE), (_NONE,), (str,), (str,), (str,)),
        *((str, _NONE), (int, _NONE), (int, _NONE), (int, _NONE), (int, _NONE), (int,), (int, _NONE), (int,)),
        *((str,), (int,), (int,)),
    )
)
"""The types of the members of lines that `_plain_row` can read: those without tags."""

_LONGEST: Final = 64
"""Characters of a text that fits MOST_BYTES whatever it holds."""


def read_line(line: bytes, gateway: str) -> Journaled:
    """Return the row of a line that the process `gateway` wrote. Raises UnreadableLineError or OtherVersionError.

    Checks all that a database would refuse: one bad row must not keep the others out.
    """
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise UnreadableLineError("no JSON") from None
    if not isinstance(values, list) or not values or type(values[0]) is not int:
        raise UnreadableLineError("no row")
    if values[0] != VERSION:
        raise OtherVersionError(f"version {values[0]}")
    if len(values) != _MEMBERS:
        raise UnreadableLineError("another number of members")
    if tuple(map(type, values)) in _KINDS and b"\\u0000" not in line:
        row = _plain_row(values, gateway)
        if row is not None and values[1] >= 0:
            return Journaled(values[1], row)
    return Journaled(_number(values[1]), _checked_row(values, gateway))


def _plain_row(values: Sequence[Any], gateway: str) -> LedgerRow | None:
    """Return the row of members of the right types without a NUL, as nearly all lines have them; None where one is
    beyond its bounds. Equal to `_checked_row`, for a third of its time."""
    key, time, request_id, team, key_name, user, _, surface, asked, model, deployment = values[2:13]
    tokens_in, cached, tokens_out, reasoning, estimated, cost, status, outcome, ms, attempts = values[13:]
    # The bits of all numbers together: negative where one is, and below a power of two where all are.
    counts = (tokens_in or 0) | (cached or 0) | (tokens_out or 0) | (reasoning or 0)
    if (
        not 0 <= counts < MOST_TOKENS
        or not 0 <= ms < MOST_MS
        or not 0 <= (cost or 0) < MOST_COST
        or not 0 <= time <= LATEST
        or not 0 <= estimated <= ESTIMATED | INCOMPLETE
        or not 0 <= status <= MOST_STATUS
        or not 0 <= attempts < MOST_ATTEMPTS
        or len(key) != 2 * ID_BYTES
        or max(map(len, (request_id, team, key_name, surface, asked, model, outcome))) > _LONGEST
        or (user is not None and len(user) > _LONGEST)
        or (deployment is not None and len(deployment) > _LONGEST)
    ):
        return None
    return LedgerRow(
        *(_id(key), time, request_id, team, key_name, user, None, surface, asked, model, deployment),
        *(tokens_in, cached, tokens_out, reasoning, estimated, cost, status, outcome, ms, attempts, gateway),
    )


def _checked_row(values: Sequence[Any], gateway: str) -> LedgerRow:
    """Return the row of any members. Raises UnreadableLineError."""
    user, tags, deployment = values[7], values[8], values[12]
    return LedgerRow(
        _id(values[2]),
        _number(values[3], LATEST),
        _text(values[4]),
        _text(values[5]),
        _text(values[6]),
        None if user is None else _text(user),
        None if tags is None else _tags(tags),
        _text(values[9]),
        _text(values[10]),
        _text(values[11]),
        None if deployment is None else _text(deployment),
        _count(values[13]),
        _count(values[14]),
        _count(values[15]),
        _count(values[16]),
        _number(values[17], ESTIMATED | INCOMPLETE),
        None if values[18] is None else _number(values[18], MOST_COST),
        _number(values[19], MOST_STATUS),
        _text(values[20]),
        _number(values[21], MOST_MS),
        _number(values[22], MOST_ATTEMPTS),
        gateway,
    )


def _id(value: object) -> bytes:
    if not isinstance(value, str) or len(value) != 2 * ID_BYTES:
        raise UnreadableLineError("no id")
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise UnreadableLineError("no id") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise UnreadableLineError("no text")
    return value if len(value) <= _LONGEST and "\0" not in value else clean(value)


def _number(value: object, most: int = MOST) -> int:
    """Return a number within its bounds: vendors may report counts below and beyond them."""
    if type(value) is not int:
        raise UnreadableLineError("no number")
    return 0 if value < 0 else min(value, most)


def _count(value: object) -> int | None:
    return None if value is None else _number(value, MOST_TOKENS)


def _tags(value: object) -> str | None:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise UnreadableLineError("no tags")
    return tags_text(value)
