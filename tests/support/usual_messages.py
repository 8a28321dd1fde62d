"""Made-up messages in and near the forms that agents send most, and values that fail every check for an exact type.

Code that has a fast path for such a form, by exact types, must give the same result as the code for any form.
`of_subtypes` forces the latter.
"""

from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue


class _Text(str):
    __slots__ = ()


class _List(list[JsonValue]):
    pass


class _Object(dict[str, JsonValue]):
    pass


def of_subtypes(value: JsonValue) -> JsonValue:
    """Return an equal value in which each text, list and object has a subclass of its type."""
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, list):
        return _List([of_subtypes(each) for each in value])
    return _Object({name: of_subtypes(each) for name, each in value.items()}) if isinstance(value, dict) else value


_FUNCTION: JsonObject = {"name": "f", "arguments": "{}"}
_CALL: JsonObject = {"id": "c1", "type": "function", "function": _FUNCTION}
_LONG: JsonObject = {**_CALL, "id": "c" * 50}
_TEXT: JsonObject = {"type": "text", "text": "a"}

_USUAL: tuple[JsonObject, ...] = (
    {"role": "user", "content": "a"},
    {"role": "user", "content": [_TEXT, _TEXT]},
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": "a", "tool_calls": [_CALL]},
    {"role": "assistant", "content": None, "tool_calls": [_CALL, _LONG]},
    {"role": "assistant", "tool_calls": [_CALL]},
    {"role": "tool", "content": "a", "tool_call_id": "c1"},
    {"role": "tool", "content": [_TEXT], "tool_call_id": "c1"},
)

_ODD: tuple[JsonValue, ...] = (None, 1, "", {})
_CONTENTS: tuple[JsonValue, ...] = (*_ODD, [], "\u00e9")
_NO_CALLS: tuple[JsonValue, ...] = (None, [], "", {})
_IDS: tuple[JsonValue, ...] = ("c1", "c" * 50, "", None, 1)
_ROLES: tuple[JsonValue, ...] = ("system", "developer", "user", "assistant", "tool", "function")
_CALLS: tuple[JsonValue, ...] = (
    *({name: value for name, value in _CALL.items() if name != dropped} for dropped in _CALL),
    *({**_CALL, name: odd} for name in (*_CALL, "index", "cache_control") for odd in _ODD),
    *({**_CALL, "function": {**_FUNCTION, name: odd}} for name in (*_FUNCTION, "parsed") for odd in _ODD),
    {"id": "c1", "type": "custom", "custom": {"name": "x", "input": "y"}},
    {**_CALL, "type": "custom"},
    None,
)
_PARTS: tuple[JsonValue, ...] = (
    {"type": "text"},
    {"text": "a"},
    *({**_TEXT, "text": odd} for odd in _CONTENTS),
    *({**_TEXT, "type": kind} for kind in (None, "image_url", "refusal", "thinking", "output_text")),
    {**_TEXT, "cache_control": {"type": "ephemeral"}},
    {"type": "refusal", "refusal": "No."},
    "a",
)
_CHANGES: st.SearchStrategy[JsonObject] = st.one_of(
    st.sampled_from([{"role": role} for role in _ROLES]),
    st.sampled_from([{"content": content} for content in _CONTENTS]),
    st.sampled_from([{"content": [part]} for part in _PARTS]),
    st.sampled_from([{"tool_calls": calls} for calls in _NO_CALLS]),
    st.sampled_from([{"tool_calls": [call]} for call in _CALLS]),
    st.sampled_from([{"tool_call_id": identity} for identity in _IDS]),
    st.sampled_from([{"name": "ann"}, {"name": None}, {"reasoning_content": "hm"}]),
)
_DROPPED: tuple[str, ...] = ("", "content", "tool_calls", "tool_call_id")


def _changed(message: JsonObject, first: JsonObject, second: JsonObject, dropped: str) -> JsonObject:
    return {name: value for name, value in {**message, **first, **second}.items() if name != dropped}


USUAL_MESSAGES: st.SearchStrategy[JsonObject] = st.builds(
    _changed,
    st.sampled_from(_USUAL),
    _CHANGES,
    st.one_of(st.just({}), _CHANGES),
    st.sampled_from(_DROPPED),
)
"""The messages that agents send most, with one or two changes."""
