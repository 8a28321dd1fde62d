"""Walk over each string of a client's JSON and replace it.

These are not shown: words of the APIs, media, ids and signatures at their places, numbers, and keys that every client
sends.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast

from providers.json_types import JsonValue
from proxy.errors import FieldProblem, GatewayError, invalid_request
from proxy.plugins.request_strings.known_words import KNOWN_KEYS, WORD_KEYS, WORDS
from proxy.plugins.request_strings.media_texts import MEDIA_KEYS, NotReadable, is_data_uri, with_base64, with_uri
from proxy.plugins.request_strings.places import FREE, PLACES, Place

_NOTHING: Final[Mapping[str, object]] = {}


class StringWalk(Protocol):
    """A walk over strings in their order."""

    def take(self, text: str, key: str, place: str) -> str:
        """Take the text under a key and return its replacement."""

    def take_name(self, name: str, place: str) -> str:
        """Take a key of an object and return its replacement."""


def changed(value: object, key: str, at: str, walk: StringWalk, kind: str = FREE) -> JsonValue:
    """Return a JSON value with each shown string changed. `kind` is the kind of its objects, as in PLACES. Raises
    GatewayError if a string cannot be shown. The depth of a client's JSON is limited when it is read."""
    if isinstance(value, Mapping):
        return _object(value, at, walk, PLACES[kind])
    return _changed(value, key, at, walk, PLACES[kind], _NOTHING)


def _changed(
    value: object, key: str, at: str, walk: StringWalk, place: Place, holder: Mapping[str, object]
) -> JsonValue:
    if isinstance(value, str):
        return _string(value, key, at, walk, place, holder)
    if isinstance(value, Mapping):
        return _object(value, at, walk, PLACES[place.below.get(key, FREE)])
    if isinstance(value, list | tuple):
        made = [_changed(each, key, f"{at}[{number}]", walk, place, holder) for number, each in enumerate(value)]
        return cast(JsonValue, tuple(made)) if isinstance(value, tuple) else made
    return cast(JsonValue, value)


def _object(value: Mapping[str, object], at: str, walk: StringWalk, place: Place) -> JsonValue:
    made: dict[str, JsonValue] = {}
    for name, each in value.items():
        here = f"{at}.{name}"
        named = name if name in KNOWN_KEYS else walk.take_name(name, f"{here}, key")
        if named in made:
            raise _unreadable(here, "would have the same key as another field")
        made[named] = _changed(each, name, here, walk, place, value)
    return made


def _string(value: str, key: str, at: str, walk: StringWalk, place: Place, holder: Mapping[str, object]) -> str:
    if is_unseen(value, key, place, holder):
        return value
    try:
        return with_text(value, key, place, holder, lambda text: walk.take(text, key, at))
    except NotReadable as error:
        raise _unreadable(at, str(error)) from None


def is_unseen(value: str, key: str, place: Place, holder: Mapping[str, object]) -> bool:
    """Return whether a string is hidden from guards, by its key, place and form."""
    if key in WORD_KEYS and value in WORDS:
        return True
    judge = place.unseen.get(key)
    return judge is not None and judge(value, holder)


def with_text(value: str, key: str, place: Place, holder: Mapping[str, object], change: Callable[[str], str]) -> str:
    """Return a shown string with its text changed. Text in media is decoded and encoded again. Raises NotReadable."""
    if key in MEDIA_KEYS and is_data_uri(value):
        return with_uri(value, change)
    type_of = place.encoded.get(key)
    kind = None if type_of is None else type_of(holder)
    return change(value) if kind is None else with_base64(value, kind, change)


def _unreadable(place: str, why: str) -> GatewayError:
    message = f"'{place[:256]}' cannot be read by the plugins that check your team's requests: it {why}."
    return invalid_request((FieldProblem((place[:256],), message, "unsupported_parameter"),))
