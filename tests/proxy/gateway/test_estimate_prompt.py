"""Estimates of the tokens in conversations."""

from dataclasses import replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import (
    ChatPrompt,
    NativeApi,
    NativeRequest,
    Operation,
    Params,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from proxy.gateway.estimate_prompt import PER_MEDIUM, PER_MESSAGE, estimate_prompt, request_size
from proxy.limits.limit import MOST_TOKENS
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped
from tests.support.usual_messages import USUAL_MESSAGES, of_subtypes


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


@looped(
    ("members", "most", "answers"),
    [
        ({"max_tokens": 4000}, 4000, 1),
        ({"max_completion_tokens": "4000"}, 4000, 1),
        ({"max_tokens": None}, DEFAULT_OUTPUT_TOKENS, 1),
        ({"max_new_tokens": -1}, DEFAULT_OUTPUT_TOKENS, 1),
        ({"best_of": 16}, 1, 16),
        ({"candidateCount": 16, "num_return_sequences": 3}, 1, 16),
        ({"thinking_budget": 500}, 501, 1),
        ({"max_tokens": 1e300, "n": 1e300}, MOST_TOKENS, MOST_TOKENS),
        ({"max_output_tokens": 4000}, 4000, 1),
        ({"reasoning": {"max_tokens": 4000}}, 4000, 1),
    ],
)
@looped("target", [target_of("openai_compatible"), target_of("openai", "gpt-5.1-codex")], ids=["chats", "responses"])
def test_what_goes_to_vendors_as_the_client_wrote_it_is_reserved(
    target: Target, members: JsonObject, most: int, answers: int
) -> None:
    chat, targets = ChatPrompt(({"role": "user", "content": "hi"},)), [target]
    plain = UnifiedRequest(Operation.CHAT, "v/m", chat, {"max_tokens": 1})
    native, size = NativeRequest(NativeApi.RESPONSES, members), request_size(plain)[0]
    assert size is not None
    for request in (replace(plain, extra_params=members), replace(plain, unknown=members)):
        assert request_size(request, targets) == (size + len(orjson.dumps(members)), most, answers)
    assert request_size(replace(plain, native=native), targets) == (size, most, answers)


def test_members_never_lower_what_is_reserved() -> None:
    chat, targets = ChatPrompt(({"role": "user", "content": "hi"},)), [target_of("openai", max_output_tokens=9000)]
    plain = UnifiedRequest(Operation.CHAT, "v/m", chat, {})
    assert request_size(replace(plain, extra_params={"n_predict": 1}), targets)[1] == 9000
    assert request_size(replace(plain, extra_params={"seed": 1}), targets)[1] is None


@looped(
    ("limits", "most"), [((9000,), 9000), ((9000, 20_000), 20_000), ((9000, 50_000), 32_000), ((9000, None), 32_000)]
)
def test_a_limit_above_the_targets_own_is_reserved_as_it_is_sent(limits: tuple[int | None, ...], most: int) -> None:
    targets = [target_of("openai", max_output_tokens=each) for each in limits]
    asked: JsonObject = {"max_tokens": 32_000}
    added: JsonObject = {"num_predict": 32_000}
    ways: list[tuple[JsonObject, JsonObject]] = [
        (asked, {}),
        (asked, {"unknown": {"seed_": 1}}),
        ({}, {"unknown": added}),
        ({"max_tokens": 1}, {"extra_params": added}),
    ]
    for params, more in ways:
        chat = ChatPrompt(({"role": "user", "content": "hi"},))
        request = UnifiedRequest(Operation.CHAT, "v/m", chat, params, **more)  # type: ignore[arg-type]
        assert request_size(request, targets)[1] == most


def test_a_prompt_counts_for_each_call_that_reads_it() -> None:
    chat = ChatPrompt(({"role": "user", "content": "x" * 300},))
    request = UnifiedRequest(Operation.CHAT, "v/m", chat, {"n": 3})
    alone = request_size(request)[0]
    # The last model is called through the Responses API, which has no `n`.
    at = [target_of("openai", "gpt-4o"), target_of("anthropic"), target_of("openai", "gpt-5.1-codex")]
    assert alone is not None
    assert [request_size(request, [each])[0] for each in at] == [alone, 3 * alone, 3 * alone]


@given(
    st.lists(st.text(), max_size=4), st.booleans(), st.sampled_from([{}, {"tools": [{"type": "function"}]}, {"n": 3}])
)
def test_messages_known_to_be_plain_have_the_same_size(texts: list[str], surrogate: bool, params: Params) -> None:
    messages: list[JsonObject] = [{"role": "user", "content": f"{text}\udc00" if surrogate else text} for text in texts]
    known, looked_at = (ChatPrompt(tuple(messages), plain) for plain in (True, False))
    sizes = [request_size(UnifiedRequest(Operation.CHAT, "v/m", each, params)) for each in (known, looked_at)]
    assert sizes[0] == sizes[1]


@given(st.lists(USUAL_MESSAGES, max_size=3))
def test_messages_that_are_estimated_at_once_have_the_same_size(talk: list[JsonObject]) -> None:
    # An instance of a `str` subclass does not take the fast path.
    full: list[JsonObject] = [{**message, "content": of_subtypes(message.get("content"))} for message in talk]
    sizes = [outcome(ChatPrompt(tuple(each))) for each in (talk, full)]
    assert sizes[0] == sizes[1]


def outcome(prompt: ChatPrompt) -> object:
    try:
        return request_size(UnifiedRequest(Operation.CHAT, "v/m", prompt, {}))
    except TypeError as unwritable:
        return str(unwritable)


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
