"""Estimates of conversations."""

from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Operation, Params, TextPrompt, TokenPrompt, UnifiedRequest
from proxy.gateway.estimate_prompt import PER_MEDIUM, PER_MESSAGE, estimate_prompt, request_size


def estimate(*messages: JsonObject, params: Params | None = None) -> int:
    return estimate_prompt(UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(messages), params or {}))


def test_texts_are_rounded_up() -> None:
    assert estimate({"role": "user", "content": "x"}) == PER_MESSAGE + 1
    assert estimate({"role": "user", "content": "xxxx"}) == PER_MESSAGE + 2
    assert estimate({"role": "user", "content": "é"}) == PER_MESSAGE + 1
    assert estimate({"role": "user", "content": [{"type": "text", "text": "xxxx"}, 1]}) == PER_MESSAGE + 2
    assert estimate({"role": "assistant", "content": None}) == PER_MESSAGE


def test_a_request_takes_its_prompt_and_all_its_answers() -> None:
    chat = ChatPrompt(({"role": "user", "content": "x" * 300},))
    params: Params = {"max_tokens": 7, "n": 2, "best_of": 5}
    sizes = [
        request_size(UnifiedRequest(Operation.CHAT, "v/m", chat, {})),
        request_size(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("xx", "yyy")), params)),
        request_size(UnifiedRequest(Operation.COMPLETIONS, "v/m", TokenPrompt(((1, 2, 3), (4,))), {"n": 2})),
    ]
    assert sizes == [(318, None, 1), (5, 7, 10), (16, None, 4)]


@given(
    st.lists(st.text(), max_size=4), st.booleans(), st.sampled_from([{}, {"tools": [{"type": "function"}]}, {"n": 3}])
)
def test_messages_that_are_known_to_be_plain_have_the_same_size(
    texts: list[str], surrogate: bool, params: Params
) -> None:
    messages: list[JsonObject] = [{"role": "user", "content": f"{text}\udc00" if surrogate else text} for text in texts]
    known, looked_at = (ChatPrompt(tuple(messages), plain) for plain in (True, False))
    sizes = [request_size(UnifiedRequest(Operation.CHAT, "v/m", each, params)) for each in (known, looked_at)]
    assert sizes[0] == sizes[1]


def test_more_text_is_never_fewer_tokens() -> None:
    sizes = [estimate({"role": "user", "content": "word " * size}) for size in range(0, 500, 7)]
    assert sizes == sorted(sizes)


def test_media_do_not_count_as_text() -> None:
    image: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    assert estimate({"role": "user", "content": [image]}) == PER_MESSAGE + PER_MEDIUM
    file: JsonObject = {"type": "file", "file": {"file_data": "A" * 100_000}}
    assert estimate({"role": "user", "content": [file]}) == PER_MESSAGE + 20_000
    address: JsonObject = {"type": "file", "file": {"file_url": "https://x.example"}}
    assert estimate({"role": "user", "content": [address]}) == PER_MESSAGE + PER_MEDIUM


def test_tools_calls_and_thoughts_count() -> None:
    plain = estimate({"role": "assistant", "content": "x"})
    call: JsonObject = {"id": "a", "function": {"name": "f", "arguments": '{"x":"' + "y" * 300 + '"}'}}
    assert estimate({"role": "assistant", "content": "x", "tool_calls": [call]}) > plain + 100
    thought: JsonObject = {"type": "reasoning.text", "text": "y" * 300, "signature": "z" * 9000}
    assert estimate({"role": "assistant", "content": "x", "reasoning_details": [thought, 1]}) == plain + 100
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert estimate({"role": "user", "content": "x"}, params={"tools": [tool]}) > 30


def test_other_prompts_have_no_messages_to_count() -> None:
    assert estimate_prompt(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("x",)), {})) == 0
