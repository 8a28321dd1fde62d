"""Random turns of the Messages API: of the usual blocks, and of values that no client should send."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue

_Blocks = st.SearchStrategy[JsonObject]

_JUNK: Final[st.SearchStrategy[JsonValue]] = st.sampled_from([None, 0, True, False, "", "x", [], {}, ["a"], {"a": 1}])
_MARKERS: Final = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, None])
_TEXTS: Final = st.sampled_from(["", " \n", "Yes.", "é€ \u2028"])
_IDS: Final = st.sampled_from([*(f"toolu_{number}" for number in range(12)), "a.b", "call__sig", "é"])


def _block(kind: str, fields: Mapping[str, st.SearchStrategy[Any]], **more: st.SearchStrategy[Any]) -> _Blocks:
    optional = {"cache_control": _MARKERS, "unheard_of": _JUNK, **more}
    usual = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return usual | usual | st.fixed_dictionaries({"type": st.just(kind), **fields}, optional=optional)


_TEXT: Final = _block("text", {"text": _TEXTS}, citations=st.just([{"encrypted_index": ""}]), parsed_output=_JUNK)
_CALL: Final = _block(
    "tool_use",
    {"id": _IDS, "name": st.just("look"), "input": st.sampled_from([{}, {"a": "é"}])},
    caller=st.just({"type": "direct"}),
)
_SIGNATURES: Final = st.sampled_from(["EqQBCg==", "", "no base64", None])
_THINKING: Final = _block("thinking", {"thinking": _TEXTS, "signature": _SIGNATURES})
_REDACTED: Final = _block("redacted_thinking", {"data": st.sampled_from(["EmwKAhgB", "no base64"])})
_SOURCES: Final = st.sampled_from([{"type": "url", "url": "https://a.example"}, {"type": "url", "url": ""}])
_IMAGE: Final = _block("image", {"source": _SOURCES})
_FOUND: Final = _block("tool_reference", {"tool_name": st.just("look")})
_HELD: Final = _TEXTS | st.lists(_TEXT | _TEXT | _IMAGE | _FOUND, max_size=3)
_RESULT: Final = _block("tool_result", {"tool_use_id": _IDS, "content": _HELD}, is_error=st.booleans())


@st.composite
def _spoilt(draw: st.DrawFn, blocks: _Blocks) -> JsonObject:
    """A block without one of its fields, or with a random value for it."""
    block = {**draw(blocks)}
    name = draw(st.sampled_from([*block]))
    if draw(st.booleans()):
        return {**block, name: draw(_JUNK)}
    del block[name]
    return block


def _turns(role: JsonValue, blocks: st.SearchStrategy[JsonValue]) -> _Blocks:
    content: st.SearchStrategy[JsonValue] = st.lists(blocks, max_size=4) | _TEXTS
    return content.map(lambda held: {"role": role, "content": held})


_OF_USER: Final = _TEXT | _RESULT | _RESULT | _IMAGE
_OF_MODEL: Final = _TEXT | _CALL | _CALL | _THINKING | _REDACTED
USUAL: Final[_Blocks] = _turns("user", _OF_USER) | _turns("assistant", _OF_MODEL) | _turns("system", _TEXT)
"""Turns that the surface takes, but for a result that has an image without an address."""

_ANY_BLOCK: Final = _OF_USER | _OF_MODEL | _FOUND
ODD: Final[st.SearchStrategy[JsonValue]] = (
    _JUNK | _turns("user", _ANY_BLOCK | _spoilt(_ANY_BLOCK) | _JUNK) | _turns("assistant", _spoilt(_OF_MODEL) | _JUNK)
)
"""Random values, most of which are not turns."""
