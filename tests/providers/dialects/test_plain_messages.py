"""The fast path for plain messages sends the same as the complete reader, in each dialect that has one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from providers.dialect import Dialect
from providers.dialects.anthropic.dialect import AnthropicDialect
from providers.dialects.gemini.dialect import GeminiDialect
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.anthropic import kit as anthropic
from tests.providers.dialects.gemini import kit as gemini
from tests.providers.dialects.kit import chat_request
from tests.providers.dialects.random_messages import complete_reader, messages
from tests.support.cpu_growth import TIMES, growth
from tests.support.looped import looped

CLAUDE = AnthropicDialect()
GEMINI = GeminiDialect()
THINKING: JsonObject = {"type": "enabled", "budget_tokens": 2048}
TARGETS: dict[str, tuple[Dialect, Target, dict[str, object]]] = {
    "claude": (CLAUDE, anthropic.TARGET, {}),
    "claude that thinks": (CLAUDE, anthropic.TARGET, {"thinking": THINKING}),
    "unknown model of Anthropic's API": (CLAUDE, replace(anthropic.TARGET, model="x", upstream_model="x"), {}),
    "claude with a tool of its own": (CLAUDE, anthropic.TARGET, {"tools": [{"type": "web_search_20250305"}]}),
    "gemini": (GEMINI, gemini.TARGET, {}),
    "gemini before ids of calls": (GEMINI, gemini.OLD, {}),
    "gemini of the other service": (GEMINI, gemini.VERTEX, {}),
}


def sent(dialect: Dialect, target: Target, params: dict[str, object], conversation: list[JsonObject]) -> object:
    """Return the body and the reported fields of a call, or its refusal."""
    try:
        call = dialect.encode(chat_request(*conversation, **params), target)
    except Refusal as refusal:
        return refusal.param, refusal.message, refusal.code
    return call.body, call.emulated, call.dropped, call.tool_names


@given(st.sampled_from(sorted(TARGETS)), st.lists(messages, max_size=5))
def test_a_conversation_is_sent_as_the_complete_reader_reads_it(name: str, conversation: list[JsonObject]) -> None:
    dialect, target, params = TARGETS[name]
    quickly = sent(dialect, target, params, conversation)
    with complete_reader():
        assert sent(dialect, target, params, conversation) == quickly


def conversation_of(turns: int) -> list[JsonObject]:
    """Return a conversation with tool calls, many of them in one turn, and with their results."""
    listed: list[JsonObject] = []
    for number in range(turns):
        called = [f"{number}_{each}" for each in range(turns if number == 0 else 1)]
        function: JsonObject = {"name": "f", "arguments": '{"a": "words"}'}
        calls: list[JsonValue] = [{"id": each, "type": "function", "function": function} for each in called]
        listed.append({"role": "assistant", "content": "words", "tool_calls": calls, "reasoning_content": "Hm."})
        listed += [{"role": "tool", "tool_call_id": each, "content": "words"} for each in called]
    return listed


@looped("name", TARGETS)
def test_the_time_of_a_conversation_grows_with_its_length_alone(name: str) -> None:
    dialect, target, params = TARGETS[name]
    small, large = chat_request(*conversation_of(200), **params), chat_request(*conversation_of(200 * TIMES), **params)
    assert not growth(lambda: dialect.encode(small, target), lambda: dialect.encode(large, target))
