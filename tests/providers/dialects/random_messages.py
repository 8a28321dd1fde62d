"""Random messages in OpenAI's chat shape: usual messages of agents, and messages that are almost like them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from hypothesis import strategies as st

from providers.dialects.shared import read_conversation
from providers.json_types import JsonObject, JsonValue

IDS = ("a", "b", "toolu_01", "x y", "a__thought__QUJD", "b__said__QUJD", "vertex__vertex__thought__QUJD", "c__d")
CACHE: JsonObject = {"type": "ephemeral"}
DEEP = '{"a":' + "[" * 70 + "]" * 70 + "}"

texts = st.sampled_from(["", " ", "\n", "word", "two words ", "ü"])


def fields(**choices: Sequence[JsonValue]) -> st.SearchStrategy[JsonObject]:
    """Return a strategy for objects with some of these fields, each with one of its values."""
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


def _together(*parts: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.tuples(*parts).map(lambda found: {name: value for part in found for name, value in part.items()})


parts = _together(
    texts.map(lambda text: {"type": "text", "text": text}),
    st.sampled_from(
        [{}, {}, {}, {"cache_control": CACHE}, {"type": "refusal", "refusal": "no"}, {"type": "input_text"}]
    ),
)
contents = st.one_of(st.none(), texts, texts, st.lists(parts, max_size=2))
functions = fields(
    name=["f", "f", "g.h", None],
    arguments=['{"a": 1}', '{"a": {"b": [1]}}', "", " ", "[1]", "{bad", None, {"a": 1}, DEEP],
    strict=[True],
)
calls = _together(
    st.builds(lambda given: {"id": given, "type": "function"}, st.sampled_from(IDS)),
    st.builds(lambda function: {"function": function}, functions),
    st.sampled_from([{}, {}, {}, {"index": 0}, {"cache_control": CACHE}, {"custom": {"name": "f", "input": "x"}}]),
    fields(extra_content=[None, {"google": {"thought_signature": "QUJD"}}]),
)
_AFTER: list[JsonValue] = [None, [0, 0], [2, 0], [0, 1]]
details = _together(
    st.sampled_from(["reasoning.text", "reasoning.text", "reasoning.encrypted", "reasoning.summary", "other"]).map(
        lambda kind: {"type": kind, "text": "Hm.", "data": "QUJD", "summary": "Well."}
    ),
    st.sampled_from(["anthropic-claude-v1", "anthropic-claude-v1", "google-gemini-v1", "unknown", None]).map(
        lambda form: {"format": form}
    ),
    st.sampled_from(_AFTER).map(lambda after: {"after": after}),
    fields(signature=[None, "QUJD"], id=["a", "b"], index=[0, 1]),
)
thinking = st.one_of(
    st.builds(lambda listed: {"reasoning_details": listed}, st.lists(details, min_size=1, max_size=3)),
    fields(reasoning_content=[None, "", "Hm."], reasoning=[None, "Hm.", {"a": 1}], reasoning_signature=["QUJD"]),
    st.just({"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "QUJD"}]}),
)
empty = fields(refusal=[None], annotations=[None, []], audio=[None], function_call=[None], name=[None])
repeated = fields(
    refusal=["", "no"],
    annotations=[[{"type": "url_citation"}]],
    audio=[{"transcript": "Hi."}],
    function_call=[{"name": "f", "arguments": "{}"}],
    name=["", "Anna"],
    content_blocks=[[], [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]],
    google_parts=[[], [{"executableCode": {"code": "1"}}]],
    cache_control=[None, CACHE],
    prefix=[False, True],
    unheard_of=[None, [], 0, 1],
)
turns = _together(
    st.just({"role": "assistant"}),
    st.one_of(st.just({}), st.builds(lambda content: {"content": content}, contents)),
    st.one_of(st.just({}), st.builds(lambda made: {"tool_calls": made}, st.lists(calls, max_size=3))),
    st.one_of(st.just({}), thinking, thinking, empty, _together(thinking, repeated)),
)
results = _together(
    st.builds(lambda given: {"role": "tool", "tool_call_id": given}, st.sampled_from(IDS)),
    st.builds(lambda content: {"content": content}, contents),
    st.one_of(st.just({}), st.just({}), fields(name=["f"], is_error=[True], cache_control=[CACHE])),
)
others = _together(
    st.builds(lambda role: {"role": role}, st.sampled_from(["system", "developer", "user", "user", "function"])),
    st.builds(lambda content: {"content": content}, contents),
    st.one_of(st.just({}), st.just({}), fields(name=["Anna"], cache_control=[CACHE], tool_calls=[[]])),
)
messages = st.one_of(turns, turns, results, others)


@contextmanager
def complete_reader() -> Iterator[None]:
    """Treat no message as plain, so that the complete reader reads every message."""
    none = mock.Mock(return_value=None)
    with (
        mock.patch.object(read_conversation, "_plain", none),
        mock.patch.object(read_conversation, "_plain_call", none),
    ):
        yield
