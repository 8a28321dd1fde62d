"""The quirks of responses, errors and limits, one by one, each under its heading in the family's reference.

The bytes are in openai/fixtures; `test_vendor_answers` tests that they are read the same however they are cut.
"""

import orjson
import pytest

from providers.completion import ContentLogprobs, LegacyLogprobs, TokenLogprob, Usage
from providers.dialects.shared.errors import classify
from providers.dialects.shared.thought_signatures import unpack_call_id
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from tests.providers.dialects.kit import chunks, usage_in
from tests.providers.dialects.openai.kit import DIALECT, broken, chat, fixture, pieces, played, sent, target, unbroken
from tests.providers.dialects.openai.test_vendor_answers import asked, row, stream
from tests.support.looped import looped


def case(section: str, *values: object) -> object:
    """Return a parameter set whose id is its section and its first value."""
    return pytest.param(*values, id=f"{section} {values[0]}")


# Reasoning: 3.2 -------------------------------------------------------------------------------------------------------


@looped(
    ("name", "thought"),
    [
        case("3.2 thinking in parts", "mistral/thinking", "Let me see."),
        case("3.2 reasoning_content", "deepseek/chat", "Hmm"),
        case("3.2 reasoning_content", "vllm/chat", "why"),
        case("3.2 reasoning", "openrouter/chat", "first"),
        case("3.2 reasoning_content", "xai/chat", "Weigh it. "),
        case("3.2 reasoning_content", "moonshot/chat", "Moon. "),
        case("3.2 reasoning_content", "zai/chat", "Hm. "),
        case("3.2 reasoning_content", "dashscope/qwq", "Warum? "),
        case("3.2 reasoning_content", "nebius/chat", "Count. "),
        case("3.2 reasoning", "cerebras/chat", "Short. "),
        case("3.2 parts with a summary", "databricks/chat", "Look at both."),
        case("3.2 tags in the text", "huggingface/chat", ""),
    ],
)
def test_reasoning_is_found_where_each_vendor_puts_it(name: str, thought: str) -> None:
    events = unbroken(asked(name), stream(name))
    assert "".join(chunk.reasoning or "" for chunk in chunks(events)) == thought


def test_reasoning_in_parts_of_a_whole_answer_is_told_apart() -> None:
    (choice,) = DIALECT.decode(sent("databricks"), fixture("openai/databricks/reasoning.json")).choices
    assert (choice.reasoning, choice.text) == ("One. Two.", "Three")


# Ends: 3.3 ------------------------------------------------------------------------------------------------------------


@looped(
    ("name", "reason", "native"),
    [
        case("3.3 model_context_window_exceeded", "zai/overflow", "length", "model_context_window_exceeded"),
        case("3.3 eos_token", "huggingface/whole", "stop", "eos_token"),
        case("3.3 model_length", "mistral/length", "length", "model_length"),
    ],
)
def test_the_end_of_a_whole_answer_has_our_word_and_the_vendor_s(name: str, reason: str, native: str) -> None:
    (choice,) = DIALECT.decode(sent(row(name)), fixture(f"openai/{name}.json")).choices
    assert (choice.finish_reason, choice.native_finish_reason) == (reason, native)


def test_an_empty_reason_after_calls_is_one_for_them() -> None:
    last = chunks(played(sent("xai"), stream("xai/tools"))[0])[-1]
    assert (last.finish_reason, last.native_finish_reason) == ("tool_calls", None)


def test_what_ended_a_text_is_told() -> None:
    last = chunks(played(sent("hyperbolic"), stream("hyperbolic/chat"))[0])[-1]
    assert last.matched_stop == "END"


# Usage: 3.4 -----------------------------------------------------------------------------------------------------------


@looped(
    ("name", "expected"),
    [
        case(
            "3.4 reasoning in the total alone",
            "xai/chat",
            Usage(
                32,
                103,
                {"text_tokens": 32, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 6},
                {
                    "reasoning_tokens": 94,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
                extra={"num_sources_used": 0},
            ),
        ),
        case("3.4 in every chunk", "perplexity/chat", Usage(5, 4, extra={"search_context_size": "low"})),
        case("3.4 in every chunk", "databricks/chat", Usage(20, 6)),
        case("3.4 in every chunk", "localai/chat", Usage(3, 3)),
        case("3.4 in a choice", "moonshot/chat", Usage(19, 13, {"cached_tokens": 16})),
        case("3.4 null before", "dashscope/qwq", Usage(14, 21, None, {"reasoning_tokens": 17})),
        case(
            "3.4 timing beside it",
            "sambanova/chat",
            Usage(
                11,
                4,
                extra={
                    "acceptance_rate": 1.0,
                    "completion_tokens_after_first_per_sec": 412.5,
                    "end_time": 1795246124.1,
                    "is_last_response": True,
                    "start_time": 1795246123.2,
                    "time_to_first_token": 0.08,
                    "total_latency": 0.2,
                    "total_tokens_per_sec": 75,
                },
            ),
        ),
        case("3.4 timing beside it", "cerebras/chat", Usage(70, 12, {"cached_tokens": 64}, {"reasoning_tokens": 7})),
        case("3.4 null details", "hyperbolic/chat", Usage(5, 2)),
        case("3.4 cost within", "deepinfra/chat", Usage(7, 3, extra={"estimated_cost": 1.2e-06})),
    ],
)
def test_usage_is_read_wherever_a_vendor_puts_it(name: str, expected: Usage) -> None:
    assert usage_in(played(asked(name), stream(name))[0]) == expected


def test_reasoning_tokens_may_stand_beside_the_counts() -> None:
    whole = DIALECT.decode(sent("databricks"), fixture("openai/databricks/reasoning.json"))
    assert whole.usage == Usage(11, 9, None, {"reasoning_tokens": 5})


# Log probabilities: 3.5 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        case(
            "3.5 four arrays",
            "cerebras/completion",
            LegacyLogprobs((" blue",), (-0.25,), ({" blue": -0.25, " red": -2.5},), (7,)),
        ),
        case(
            "3.5 a content list",
            "xai/logprobs",
            ContentLogprobs((TokenLogprob("Hi", -0.5, (72, 105), (TokenLogprob("Hi", -0.5, (72, 105)),)),)),
        ),
    ],
)
def test_log_probabilities_are_read_in_the_shape_they_come_in(name: str, expected: object) -> None:
    assert DIALECT.decode(sent(row(name)), fixture(f"openai/{name}.json")).choices[0].logprobs == expected


def test_streamed_arrays_are_read_as_they_come() -> None:
    first = chunks(played(sent("novita", chats=False), stream("novita/completion"))[0])[0]
    assert first.logprobs == LegacyLogprobs((" sea",), (-0.5,), ({" sea": -0.5},), (4,))


# Streams: 3.6 ---------------------------------------------------------------------------------------------------------


@looped(
    ("name", "mark"),
    [
        case("3.6 comments", "openrouter/chat", b": OPENROUTER PROCESSING\n"),
        case("3.6 comments", "deepseek/chat", b": keep-alive\n"),
        case("3.6 comments", "vllm/keepalive", b": keep-alive\n"),
        case("3.6 comments", "llamacpp/completion", b":\n\n"),
        case("3.6 line ends", "perplexity/chat", b"}\r\n\r\ndata: "),
        case("3.6 line ends", "sambanova/chat", b"}\ndata: "),
        case("3.6 line ends", "deepinfra/chat", b"}\ndata: "),
        case("3.6 no space", "tgi/completion", b"data:{"),
        case("3.6 event and id lines", "openai_compatible/crlf", b"event: message\r\nid: 1\r\n"),
        case("3.6 lines of one event", "openai_compatible/multiline", b',\ndata: "choices"'),
        case("3.6 no choices first", "azure/chat", b'"prompt_filter_results":[{"prompt_index":0'),
        case("3.6 no choices first", "github_models/chat", b'data: {"choices":[],"created":0,"id":"","model":""'),
        case("3.6 no delta, after the end", "azure/chat", b'"content_filter_offsets"'),
        case("3.6 usage after the end", "openrouter/chat", b'"usage":{"prompt_to'),
        case("3.6 role in every chunk", "zai/chat", b'"role":"assistant","content":"en"'),
        case("3.6 whole calls, index 0, no ids", "gemini_compat/tools", b'"index":0,"id":"","type":"function"'),
        case("3.6 no object, no id", "tgi/completion", b'"id":"","object":"text_completion"'),
        case("3.6 no object, no id", "openai_compatible/empty_head", b'"id":"","object":"","created":0'),
        case("3.6 another object", "together/completion", b'"object":"completion.chunk"'),
        case("3.6 a null content first", "nim/chat", b'"role":"assistant","content":null'),
        case("3.6 an empty content first", "openai/chat", b'"content":""'),
        case("3.6 other members", "openai_compatible/extras", b'"kv_transfer_params":null'),
        case("3.6 other members", "perplexity/chat", b'"citations":["https://example.com/a"]'),
    ],
)
def test_the_streams_whose_answers_are_tested_have_their_vendors_habits(name: str, mark: bytes) -> None:
    assert mark in stream(name)
    assert played(asked(name), stream(name))[1] is None


@pytest.mark.parametrize("name", ["perplexity/chat", "tgi/completion"])
def test_a_stream_without_a_terminator_ends_with_its_choices(name: str) -> None:
    assert b"[DONE]" not in stream(name)
    assert played(asked(name), stream(name))[1] is None


@pytest.mark.parametrize("name", ["sambanova/chat", "deepinfra/chat"])
def test_a_frame_without_a_blank_line_is_heard_at_once(name: str) -> None:
    decoder = DIALECT.stream(asked(name))
    lines = stream(name).splitlines(keepends=True)
    texts = [chunk.text for line in lines[:3] for chunk in chunks(list(decoder.feed(line)))]
    assert "".join(texts) in ("Zwei Äpfel", "Deep in")


def test_empty_lines_before_a_body_are_no_answer_yet() -> None:
    body = fixture("openai/deepseek/slow.json")
    assert body.startswith(b"\n")
    assert DIALECT.decode(sent("deepseek"), body).choices[0].text == "late"


@looped(
    ("name", "kind", "status"),
    [
        case("3.6 an error in a 200", "openrouter/error_200", FailureKind.CONTEXT_LENGTH, 400),
        case("3.6 an error in a 200", "sglang/error_200", FailureKind.CONTEXT_LENGTH, 400),
        case("3.6 an array in a 200", "openai_compatible/array_error", FailureKind.RATE_LIMITED, 429),
        case("3.6 an error in a 200", "xai/error_200", FailureKind.SERVER, None),
        case("3.6 an error in a 200", "cloudflare/error_200", FailureKind.OVERLOADED, None),
        case("3.6 an array in a 200", "gemini_compat/error_200", FailureKind.OVERLOADED, 503),
    ],
)
def test_an_error_within_a_200_is_none_the_less_an_error(name: str, kind: FailureKind, status: int | None) -> None:
    body = fixture(f"openai/{name}.json")
    failure = broken(sent(row(name)), body)
    assert (failure.kind, failure.status) == (kind, status)
    assert played(sent(row(name)), *pieces(body, 7)) == ([], failure)


def test_calls_that_share_index_and_lack_of_id_are_two_and_carry_their_signatures() -> None:
    events = unbroken(sent("gemini_compat"), stream("gemini_compat/tools"))
    calls = [call for chunk in chunks(events) for call in chunk.tool_calls]
    assert [(call.index, call.name, call.arguments) for call in calls] == [
        (0, "look", '{"at":"a"}'),
        (1, "look", '{"at":"b"}'),
    ]
    first, second = (unpack_call_id(str(call.id)) for call in calls)
    assert (first[1], second[1]) == ("QUJD+/8=", None)
    assert first[0] != second[0]


def test_a_model_that_only_streams_answers_whole_requests_too() -> None:
    call = DIALECT.encode(chat(), target("dashscope", "qwq-plus"))
    assert orjson.loads(call.body)["stream"] is True
    assert not call.stream
    whole = DIALECT.decode(call, stream("dashscope/qwq"))
    (choice,) = whole.choices
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Darum", "Warum? ", "stop")
    assert whole.usage == Usage(14, 21, None, {"reasoning_tokens": 17})
    assert broken(call, stream("dashscope/qwq")[:400]).kind is FailureKind.TRUNCATED
    assert broken(call, fixture("openai/dashscope/error_400_arrearage.json")).kind is FailureKind.QUOTA


# Errors: 4.1, 4.2 -----------------------------------------------------------------------------------------------------


@looped(
    ("name", "message"),
    [
        case("4.1 error with a request id", "sambanova/error_410", ""),
        case("4.1 flat", "cerebras/error_429", "Requests per minute limit exceeded - too many requests sent."),
        case("4.1 code and text", "xai/error_400_context", "This model's maximum prompt length is 131072"),
        case("4.1 text", "huggingface/error_402", ""),
        case("4.1 detail list", "deepinfra/error_422", "body.messages.1.content: Input should be a valid string"),
        case("4.1 detail text", "nebius/error_400_context", "This model's maximum context length is 32768 tokens."),
        case("4.1 array", "gemini_compat/error_400_unknown", "Invalid JSON payload received."),
        case("4.1 business code", "zai/error_400_1210", "Invalid API parameter"),
        case("4.1 error_code", "databricks/error_400", "text content blocks must be non-empty"),
        case("4.1 errors", "cloudflare/error_400", "AiError: AiError: Bad input"),
        case("4.1 details", "github_models/error_413_tokens", "Request body too large for gpt-4o-mini model."),
        case("4.1 message", "cohere_compat/error_400", "presence_penalty must be between 0 and 1"),
        case("4.2 the word json", "dashscope/error_400_json", "must contain the word 'json'"),
    ],
)
def test_the_message_is_shown_where_it_is_the_client_s_business(name: str, message: str) -> None:
    failure = classify(load_profiles()[row(name)], _status(name), {}, fixture(f"openai/{name}.json"))
    assert message in failure.message
    assert failure.message


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        case("4.1 a page", "perplexity/error_401.html", 401, FailureKind.AUTH),
        case("4.1 a page", "cloudflare/error_524.html", 524, FailureKind.TIMEOUT),
    ],
)
def test_a_page_before_the_vendor_is_not_quoted(name: str, status: int, kind: FailureKind) -> None:
    failure = classify(load_profiles()[row(name)], status, {}, fixture(f"openai/{name}"))
    assert failure.kind is kind
    assert "<" not in failure.message


def test_a_limit_on_answers_lowers_the_next_call() -> None:
    caps: JsonObject = {"databricks/error_400_cap": 25000, "dashscope/error_400_cap": 8192}
    for name, cap in caps.items():
        failure = classify(load_profiles()[row(name)], 400, {}, fixture(f"openai/{name}.json"))
        assert failure.overflow is not None
        assert (failure.overflow.output_cap, failure.param) == (cap, "max_tokens")


# Limits: 4.3 ----------------------------------------------------------------------------------------------------------


@looped(
    ("name", "seconds"),
    [
        case("4.3 Go's durations", "openai/limits_429", 360),
        case("4.3 milliseconds first", "azure/limits_429", 26.4),
        case("4.3 retry-after first", "groq/limits_429", 2),
        case("4.3 fractions", "groq/limits_498", 179.56),
        case("4.3 no reset", "mistral/limits_429", None),
        case("4.3 float seconds", "cerebras/limits_429", 11.382867),
        case("4.3 epoch seconds", "sambanova/limits_429", 17),
        case("4.3 no reset", "fireworks/limits_429", None),
        case("4.3 per second", "together/limits_429", 1),
        case("4.3 retry-after", "nebius/limits_429", 12),
        case("4.3 epoch milliseconds", "openrouter/limits_429", 12),
        case("4.3 plain", "moonshot/limits_429", 5),
        case("4.3 epoch seconds", "openai_compatible/limits_429", 60),
        case("4.3 none", "vllm/limits_503", None),
    ],
)
def test_a_wait_is_read_from_every_vendor_s_headers(name: str, seconds: float | None) -> None:
    lines = fixture(f"openai/{name}.headers").decode().splitlines()
    headers = {field.strip(): value.strip() for field, _, value in (line.partition(":") for line in lines)}
    failure = classify(load_profiles()[row(name)], _status(name), headers, b"{}")
    assert failure.kind in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED)
    assert failure.retry_after == (None if seconds is None else pytest.approx(seconds))


DATE = {"date": "Sat, 21 Nov 2026 10:00:00 GMT"}


@looped(
    ("name", "seconds"),
    [
        case("4.3 retryDelay", "gemini_compat/error_429", 34),
        case("4.3 in words", "github_models/error_429", 52),
        case("4.3 in words", "databricks/error_429", 7),
        case("4.3 in words", "moonshot/error_429_rate", 1),
        case("4.3 in words", "azure/error_429", 26),
        case("4.3 quoted headers", "openrouter/error_429", 12),
        case("4.3 not where nothing is limited", "moonshot/error_429_quota", None),
        case("4.3 not in the body", "zai/error_429_1302", None),
    ],
)
def test_a_wait_is_read_from_every_vendor_s_words(name: str, seconds: float | None) -> None:
    body = fixture(f"openai/{name}.json")
    assert classify(load_profiles()[row(name)], 429, DATE, body).retry_after == seconds


def _status(name: str) -> int:
    return int(name.rpartition("/")[2].split("_")[1])
