"""Made-up messages in and near the forms that agents send most, and values that no test of an exact type accepts.

Code that decides such a form at once, by exact types, has to do the same as the code for any form. `of_subtypes` makes
the latter do the work.
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
    """Return an equal value, each text, list and object of it of a subclass of its type."""
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, list):
        return _List([of_subtypes(each) for each in value])
    return _Object({name: of_subtypes(each) for name, each in value.items()}) if isinstance(value, dict) else value


def _objects(
    required: dict[str, st.SearchStrategy[JsonValue]], optional: dict[str, st.SearchStrategy[JsonValue]]
) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(required, optional=optional)


_odd: st.SearchStrategy[JsonValue] = st.sampled_from([None, "", 1, [], {}, ["x"]])
_texts: st.SearchStrategy[JsonValue] = st.one_of(st.sampled_from(["a", "é\udc00", ""]), _odd)
_marker: st.SearchStrategy[JsonValue] = st.sampled_from([None, {"type": "ephemeral"}])


def _mostly(*usual: JsonValue) -> st.SearchStrategy[JsonValue]:
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), _odd)


_functions = _objects({}, {"name": _mostly("f"), "arguments": _mostly("{}"), "parsed_arguments": _odd})
_calls = _objects(
    {},
    {
        "id": _mostly("c1", "c2", "c" * 50),
        "type": _mostly("function", "custom"),
        "function": st.one_of(_functions, st.just({"name": "f", "arguments": "{}"}), _odd),
        "custom": st.just({"name": "x", "input": "y"}),
        "index": st.just(0),
        "cache_control": _marker,
    },
)
_sound_calls: st.SearchStrategy[JsonValue] = st.sampled_from(
    [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in ("c1", "c" * 50)]
)
_parts = _objects(
    {"type": _mostly("text", "text", "image_url", "refusal", "thinking")},
    {"text": _texts, "image_url": st.just({"url": "data:image/png;base64,QQ=="}), "cache_control": _marker},
)
_sound_parts: st.SearchStrategy[JsonValue] = st.sampled_from([{"type": "text", "text": text} for text in ("a", "")])

USUAL_MESSAGES: st.SearchStrategy[JsonObject] = _objects(
    {"role": st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool", "developer", "function"])},
    {
        "content": st.one_of(_texts, st.lists(_sound_parts, max_size=2), st.lists(_parts, max_size=2)),
        "tool_call_id": _mostly("c1", "c" * 50),
        "tool_calls": st.one_of(
            st.lists(_sound_calls, max_size=2), st.lists(st.one_of(_calls, _odd), max_size=2), _odd
        ),
        "name": _mostly("ann"),
        "reasoning_content": _mostly("hm"),
    },
)
"""Messages that are nearly what agents send."""
