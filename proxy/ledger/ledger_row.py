"""One request as a row of the ledger, and as the journal line from which the row is loaded. A line is a JSON array. It
begins with the version of its form, so that a loader knows whether it can read the line. Its text is bounded and
contains no NUL, which PostgreSQL refuses. Its numbers fit in signed 64 bits. The id is made here, because clients may
send the same `x-request-id` twice. It begins with the time, so that new ids are added at the end of indexes.
"""

import os
import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from proxy.limits.limit import MOST_COST, MOST_TOKENS, NANO

if TYPE_CHECKING:  # Imported for type checking only, because a process that only reads lines needs no requests.
    from proxy.request_record import RequestRecord

VERSION: Final = 1
"""The version of the line's form. Another order or meaning of its fields needs another version."""

MAX_TEXT_BYTES: Final = 256
"""The most bytes of a text in a row, in UTF-8."""

ESTIMATED: Final = 1
"""The bit of a row whose token counts are estimates."""

INCOMPLETE: Final = 2
"""The bit of a row whose cost is incomplete, because some price is not known. Earlier versions of the gateway read the
value 2 as 1."""

MAX_TAGS: Final = 16

MAX_INTEGER: Final = (1 << 63) - 1
"""The largest integer of both databases."""

MAX_MS: Final = 1 << 40
"""The most ms in a row: about 35 years, longer than any request. The sums of all rows must fit in the integers of the
database."""

MAX_STATUS: Final = 999

MAX_ATTEMPTS: Final = 1 << 15

ID_BYTES: Final = 16

LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999. After it, the dates of PostgreSQL and Python differ."""

TagsJson: TypeAlias = "orjson.Fragment | None"


class LedgerRow(NamedTuple):
    """A request, with its fields in the order of the columns.

    `time` is its end in ms UTC. `cost` is in billionths of a USD, `None` without a price. Token counts are `None` if
    they are unknown. `estimated` is ESTIMATED, INCOMPLETE, both or 0. `deployment` and `model` are labels of the
    configuration. `asked` is the model name that the client sent. `tags` is a JSON object or `None`.
    """

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


class JournalRow(NamedTuple):
    """A row with its number among the rows of its process, which begin with 1."""

    sequence: int
    row: LedgerRow


class UnreadableLineError(ValueError):
    """A line that no version of the gateway wrote, or half of one."""


class OtherVersionError(ValueError):
    """A line of another version of the gateway. The message names the version."""


_random = random.Random()  # noqa: S311 - tells rows apart, guards nothing
_bits = _random.getrandbits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)  # Otherwise all workers would draw the same ids.


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
        asked = storable_text(asked)
    if user is not None and (len(user) > 64 or "\0" in user):
        user = storable_text(user)
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
    except TypeError:  # A text has half of a surrogate pair, or a number is beyond 64 bits.
        return _repaired_line(values)


def _repaired_line(values: Sequence[object]) -> bytes:
    """Return the line with every value that a database cannot store replaced by a similar one."""
    repaired = [
        storable_text(value)
        if isinstance(value, str)
        else max(0, min(value, MAX_INTEGER))
        if isinstance(value, int)
        else value
        for value in values
    ]
    return orjson.dumps(repaired, option=orjson.OPT_APPEND_NEWLINE)


def storable_text(text: str) -> str:
    """Return bounded text that every database can store, without NUL and halves of surrogate pairs."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return truncate_text(text)


def truncate_text(text: str) -> str:
    """Return the text, cut to whole characters of at most MAX_TEXT_BYTES."""
    data = text[: MAX_TEXT_BYTES + 1].encode("utf-8", "replace")
    return data[:MAX_TEXT_BYTES].decode("utf-8", "ignore")


def tags_fragment(tags: Mapping[str, str]) -> TagsJson:
    """Return tags in the form for lines. Called once for each team, and for each request with its own tags."""
    text = tags_text(tags)
    return None if text is None else orjson.Fragment(text)


def tags_text(tags: Mapping[str, str]) -> str | None:
    """Return bounded tags as a JSON object, `None` if there are no tags. The names are sorted, so equal tags are equal
    texts."""
    bounded_tags = {storable_text(name): storable_text(tags[name]) for name in sorted(tags)[:MAX_TAGS]}
    return orjson.dumps(bounded_tags, option=orjson.OPT_SORT_KEYS).decode() if bounded_tags else None


# Reading -------------------------------------------------------------------------------------------------------------

_FIELD_COUNT: Final = 23

_NONE: Final = type(None)

_KINDS: Final = frozenset(
    product(
        *((int,), (int,), (str,), (int,), (str,), (str,), (str,), (str, _NONE), (_NONE,), (str,), (str,), (str,)),
        *((str, _NONE), (int, _NONE), (int, _NONE), (int, _NONE), (int, _NONE), (int,), (int, _NONE), (int,)),
        *((str,), (int,), (int,)),
    )
)
"""The types of the fields of the lines that `_plain_row` can read. These lines have no tags."""

_SHORT_TEXT: Final = 64
"""The most characters of a text that are certain to fit in MAX_TEXT_BYTES."""


def read_line(line: bytes, gateway: str) -> JournalRow:
    """Return the row of a line that the process `gateway` wrote. Raises UnreadableLineError or OtherVersionError.

    All values that a database would refuse are checked, because one bad row must not stop the others.
    """
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise UnreadableLineError("no JSON") from None
    if not isinstance(values, list) or not values or type(values[0]) is not int:
        raise UnreadableLineError("no row")
    if values[0] != VERSION:
        raise OtherVersionError(f"version {values[0]}")
    if len(values) != _FIELD_COUNT:
        raise UnreadableLineError("another number of members")
    if tuple(map(type, values)) in _KINDS and b"\\u0000" not in line:
        row = _plain_row(values, gateway)
        if row is not None and values[1] >= 0:
            return JournalRow(values[1], row)
    return JournalRow(_number(values[1]), _checked_row(values, gateway))


def _plain_row(values: Sequence[Any], gateway: str) -> LedgerRow | None:
    """Return the row of fields that have the right types and no NUL, as in nearly all lines; `None` if a field is out
    of bounds. The result equals the result of `_checked_row`, and takes a third of the time."""
    key, time, request_id, team, key_name, user, _, surface, asked, model, deployment = values[2:13]
    tokens_in, cached, tokens_out, reasoning, estimated, cost, status, outcome, ms, attempts = values[13:]
    # The bitwise OR of the token counts is negative if one count is negative, and below a power of two if all counts
    # are.
    counts = (tokens_in or 0) | (cached or 0) | (tokens_out or 0) | (reasoning or 0)
    if (
        not 0 <= counts < MOST_TOKENS
        or not 0 <= ms < MAX_MS
        or not 0 <= (cost or 0) < MOST_COST
        or not 0 <= time <= LATEST_MS
        or not 0 <= estimated <= ESTIMATED | INCOMPLETE
        or not 0 <= status <= MAX_STATUS
        or not 0 <= attempts < MAX_ATTEMPTS
        or len(key) != 2 * ID_BYTES
        or max(map(len, (request_id, team, key_name, surface, asked, model, outcome))) > _SHORT_TEXT
        or (user is not None and len(user) > _SHORT_TEXT)
        or (deployment is not None and len(deployment) > _SHORT_TEXT)
    ):
        return None
    return LedgerRow(
        *(_id(key), time, request_id, team, key_name, user, None, surface, asked, model, deployment),
        *(tokens_in, cached, tokens_out, reasoning, estimated, cost, status, outcome, ms, attempts, gateway),
    )


def _checked_row(values: Sequence[Any], gateway: str) -> LedgerRow:
    """Return the row of any fields. Raises UnreadableLineError."""
    user, tags, deployment = values[7], values[8], values[12]
    return LedgerRow(
        _id(values[2]),
        _number(values[3], LATEST_MS),
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
        _number(values[19], MAX_STATUS),
        _text(values[20]),
        _number(values[21], MAX_MS),
        _number(values[22], MAX_ATTEMPTS),
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
    return value if len(value) <= _SHORT_TEXT and "\0" not in value else storable_text(value)


def _number(value: object, most: int = MAX_INTEGER) -> int:
    """Return a number limited to its bounds, because vendors may report counts beyond the bounds."""
    if type(value) is not int:
        raise UnreadableLineError("no number")
    return 0 if value < 0 else min(value, most)


def _count(value: object) -> int | None:
    return None if value is None else _number(value, MOST_TOKENS)


def _tags(value: object) -> str | None:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise UnreadableLineError("no tags")
    return tags_text(value)
