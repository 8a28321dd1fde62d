"""The strings of a response's JSON that guards see. The rules of requests exclude strings by their place and form.
Pure.

A response is never refused because it cannot be read: a string that is not readable media is shown unchanged.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final

from proxy.plugins.request_strings.known_words import ENDS, KNOWN_KEYS, words
from proxy.plugins.request_strings.media_texts import MIN_BASE64, NotReadable, begins_as_media, is_encoded
from proxy.plugins.request_strings.places import OWN, PLACES, Place
from proxy.plugins.request_strings.walk_strings import is_unseen, with_text

END_KEYS: Final = frozenset({"finish_reason", "native_finish_reason", "stop_reason", "status", "reason"})
"""Keys whose strings are not shown if they are in ENDS."""

_KEYS: Final = (
    KNOWN_KEYS
    | END_KEYS
    | words(
        """
        cache_creation cache_creation_input_tokens cache_read_input_tokens completion_tokens
        completion_tokens_details container cost created created_at ephemeral_1h_input_tokens
        ephemeral_5m_input_tokens filtered incomplete_details inference_geo input_tokens input_tokens_details
        message output_tokens output_tokens_details output_text prompt_tokens prompt_tokens_details
        server_tool_use severity stop_details stop_sequence summary total_tokens transcript usage
        """
    )
)
"""Keys of requests and of responses."""

_NOTHING: Final[Mapping[str, object]] = {}


def strings_of(value: object, kind: str = OWN) -> Iterator[str]:
    """Yield each shown string of a value, and its keys that no API knows. `kind` is the kind of its objects, as in
    PLACES. The depth of a vendor's JSON is limited when it is read."""
    yield from _strings(value, "", PLACES[kind], _NOTHING, kind)


def _strings(value: object, key: str, place: Place, holder: Mapping[str, object], kind: str) -> Iterator[str]:
    if isinstance(value, str):
        yield from _string(value, key, place, holder)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, key, place, holder, kind)
    elif isinstance(value, Mapping):
        inner = kind if holder is _NOTHING else place.below.get(key, OWN)
        for name, each in value.items():
            if name not in _KEYS:
                yield name
            yield from _strings(each, name, PLACES[inner], value, inner)


def _string(value: str, key: str, place: Place, holder: Mapping[str, object]) -> Iterator[str]:
    if not value or (key in END_KEYS and value.lower() in ENDS):
        return
    if is_unseen(value, key, place, holder) or _is_media(value):
        return
    seen: list[str] = []

    def see(text: str) -> str:
        seen.append(text)
        return text

    try:
        with_text(value, key, place, holder, see)
    except NotReadable:
        seen = [value]
    yield from seen


def _is_media(value: str) -> bool:
    """Return whether a string is base64 throughout and begins like a media file, at any place."""
    head = value[: MIN_BASE64 - 4]
    return len(value) >= MIN_BASE64 and is_encoded(head) and begins_as_media(b64decode(head)) and is_encoded(value)
