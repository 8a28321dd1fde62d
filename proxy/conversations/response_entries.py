"""Stored responses as entries of an owner's memory, and back. Pure.

Keys: `r:` and a response's id; `i:` and an item's id, whose data is the id of the latest response that holds the item.
A response's data has three lines. The first line has the ids of its ancestors, which are needed before anything else is
read. The second line has the number of its conversation, if there is one, and its input and output, with which the
conversation continues. The third line has the object that the client got, without its output. Other programs may write
to a shared memory: data that no gateway wrote counts as absent.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

import orjson

from providers.json_types import JsonObject, JsonValue
from proxy.errors import previous_response_not_found
from proxy.surfaces.request.heavy_body import INLINE_PARSE_BYTES, is_heavy
from proxy.surfaces.request.parse_json import InvalidJson, decode
from proxy.surfaces.surface import RequestContext, StoredResponse

MOST_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of one stored response with its input; a longer one is not stored."""

MOST_TURNS: Final = 512
"""The most responses in one conversation that is continued by id."""

MOST_ITEMS: Final = 1024
"""The most items of one response that can be found by their own ids: the items of the output, then the latest of the
input."""

LONGEST_ID: Final = 128

_SESSION: Final = re.compile(rb'\{"session":"([0-9a-f]{16})"')


@dataclass(frozen=True, slots=True)
class StoredData:
    """The stored responses that a request continues: the chain's responses by id, oldest first, and the responses that
    hold the items that it names. `holders` has the id of the response that holds an item."""

    chain: dict[str, bytes] = field(default_factory=dict)
    holders: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def session(self) -> int | None:
        """The number of the chain's conversation, as stored in its last response; `None` if it has no number."""
        last = next(reversed(self.chain), None)
        return None if last is None else session_in(self.chain[last])

    @property
    def size(self) -> int:
        """The bytes of the stored responses."""
        return sum(map(len, self.chain.values())) + sum(map(len, self.held.values()))

    @property
    def heavy(self) -> bool:
        """Whether reading it may block the event loop for more than a few ms."""
        return self.size > INLINE_PARSE_BYTES or any(map(is_heavy, (*self.chain.values(), *self.held.values())))

    def completed(self, context: RequestContext) -> RequestContext:
        """Return a context with the responses and items. Raises GatewayError if a response of the chain cannot be
        read."""
        return replace(context, chain=read_chain(self), items=read_items(self), recalled=True)


NOTHING_STORED = StoredData()


def response_key(response_id: str) -> str:
    """Return the key of a response."""
    return f"r:{response_id}"


def item_key(item_id: str) -> str:
    """Return the key that leads from an item to its response."""
    return f"i:{item_id}"


def entries_of(stored: StoredResponse, session: int | None = None) -> dict[str, bytes]:
    """Return the entries of a response of a conversation; no entries if it is too long, is not valid JSON, or has a
    vendor's id that no client could send."""
    if not _is_id(stored.id):
        return {}
    items: dict[str, object] = {} if session is None else {"session": f"{session:016x}"}
    items |= {"input": stored.input, "output": stored.response.get("output")}
    try:
        data = b"\n".join(map(orjson.dumps, (stored.ancestors, items, {**stored.response, "output": None})))
    except orjson.JSONEncodeError:
        return {}
    if len(data) > MOST_BYTES:
        return {}
    leads_to = stored.id.encode()
    newest_first = chain(_items(stored.response.get("output")), reversed(stored.input))
    names = [name for item in newest_first if (name := _id_of(item)) is not None]
    leads = {item_key(name): leads_to for name in islice(dict.fromkeys(names), MOST_ITEMS)}
    return {**leads, response_key(stored.id): data}


def ancestors_in(data: bytes) -> tuple[str, ...] | None:
    """Return the ids of a stored response's ancestors, oldest first; `None` if the data is no response."""
    try:
        listed: JsonValue = orjson.loads(data[: max(0, data.find(b"\n"))])
    except orjson.JSONDecodeError:
        return None
    if not isinstance(listed, list) or len(listed) > MOST_TURNS:
        return None
    names = tuple([name for name in listed if isinstance(name, str) and _is_id(name)])
    return names if len(names) == len(listed) else None


def session_in(data: bytes) -> int | None:
    """Return the number of a stored response's conversation, without reading the rest; `None` if it has no number."""
    begin = data.find(b"\n") + 1
    found = _SESSION.match(data, begin) if begin else None
    return None if found is None else int(found[1], 16)


def read_turn(response_id: str, data: bytes) -> StoredResponse | None:
    """Return the part of a stored response with which a conversation continues; its object has only the id and the
    output. Return `None` if the data is no response."""
    ancestors = ancestors_in(data)
    return None if ancestors is None else _turn(response_id, ancestors, data)


def _turn(response_id: str, ancestors: tuple[str, ...], data: bytes) -> StoredResponse | None:
    lines = data.split(b"\n", 2)
    try:
        items = decode(lines[1]) if len(lines) == 3 else {}
    except InvalidJson:
        return None
    said, output = items.get("input"), items.get("output")
    if not isinstance(said, list) or not isinstance(output, list):
        return None
    return StoredResponse(response_id, ancestors, tuple(_items(said)), {"id": response_id, "output": output})


def answer_in(response_id: str, data: bytes) -> bytes | None:
    """Return the JSON of the object that the client got; `None` if the data is no response."""
    turn = read_turn(response_id, data)
    try:
        rest = None if turn is None else decode(data.split(b"\n", 2)[2])
    except InvalidJson:
        return None
    if turn is None or rest is None or rest.get("id") != response_id:
        return None
    return orjson.dumps({**rest, "output": turn.response["output"]})


def read_chain(stored: StoredData) -> tuple[StoredResponse, ...]:
    """Return the responses of a chain. Raises GatewayError if one of them cannot be read."""
    found: list[StoredResponse] = []
    names = tuple(stored.chain)
    for response_id, data in stored.chain.items():
        response = _turn(response_id, names[: len(found)], data)
        if response is None:
            raise previous_response_not_found(response_id)
        found.append(response)
    return tuple(found)


def read_items(stored: StoredData) -> Mapping[str, JsonObject]:
    """Return the items that a request names, by id; items that are not found are absent."""
    items: dict[str, JsonObject] = {}
    for response_id, data in stored.held.items():
        response = read_turn(response_id, data)
        if response is None:
            continue
        for item in items_of(response):
            name = _id_of(item)
            if name is not None and stored.holders.get(name) == response_id:
                items[name] = item
    return items


def items_of(response: StoredResponse) -> Sequence[JsonObject]:
    """Return the items of a response's own input and of its output."""
    return [*response.input, *_items(response.response.get("output"))]


def _items(listed: JsonValue) -> Iterator[JsonObject]:
    values: Iterable[JsonValue] = listed if isinstance(listed, list) else ()
    return (item for item in values if isinstance(item, dict))


def _id_of(item: JsonObject) -> str | None:
    name = item.get("id")
    return name if isinstance(name, str) and _is_id(name) else None


def _is_id(name: str) -> bool:
    return 0 < len(name) <= LONGEST_ID
