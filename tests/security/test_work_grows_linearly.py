"""If a client or a vendor makes anything large, the cost of the work grows no faster, and stays bounded."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import orjson
import pytest

from providers import context_overflow_patterns as context_signatures
from providers.adaptation.drop_unsupported import MAX_NAMED
from providers.context_overflow import MAX_TEXT, read_overflow
from providers.dialects.anthropic import errors as anthropic_errors
from providers.dialects.openai import stream as openai_stream
from providers.dialects.platforms import aws_errors
from providers.dialects.platforms import google_errors as gemini_errors
from providers.emulation.echo import MAX_ECHO
from providers.emulation.plan_calls import MAX_BYTES, MAX_CHOICES, plan_calls
from providers.failure import Failure, Refusal, UpstreamError
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from providers.vendor_text import read_retry_after as rate_limits
from proxy.errors import GatewayError
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.request import parse_json as body_of_request
from tests.bench.dialects import STREAMS
from tests.providers.dialects.kit import chat_request, sent_for, text_request
from tests.security.scaling import AXES, Axis, body_of, parsed, prepared, targets
from tests.security.scaling_answers import FLOODS, Flood, stream_work
from tests.support.cpu_growth import TIMES, growth
from tests.support.looped import looped
from tests.support.nightly import some

TARGETS = targets()
COMMON = frozenset(
    {"openai", "perplexity", "anthropic", "gemini", "bedrock", "cohere", "ollama_native", "sglang_native"}
)
"""Rows that every run checks. The others share their translation of conversations with one of these."""


def _name(one: Axis | Flood) -> str:
    return one.name


@cache
def bodies(axis: Axis) -> tuple[bytes, bytes]:
    """Return a body and one that is larger along one axis."""
    return body_of(axis, axis.size), body_of(axis, TIMES * axis.size)


@cache
def requests(axis: Axis) -> tuple[UnifiedRequest, UnifiedRequest]:
    """Return the same, parsed."""
    small, large = bodies(axis)
    return parsed(axis, small), parsed(axis, large)


# Requests ------------------------------------------------------------------------------------------------------------


@looped("axis", AXES, ids=_name)
def test_threat_05_parsing_grows_with_the_body(axis: Axis) -> None:
    small, large = bodies(axis)
    assert growth(partial(parsed, axis, small), partial(parsed, axis, large)) == ""


@pytest.mark.thorough
@pytest.mark.parametrize("axis", AXES, ids=_name)
@pytest.mark.parametrize(
    "name", [name if name in COMMON else pytest.param(name, marks=pytest.mark.nightly) for name in TARGETS]
)
def test_threat_05_preparing_grows_with_the_request(name: str, axis: Axis) -> None:
    small, large = requests(axis)
    assert growth(partial(prepared, small, TARGETS[name]), partial(prepared, large, TARGETS[name])) == ""


def test_threat_05_fields_are_left_out_together_and_named_within_a_header() -> None:
    fields = {f"field_{number}": 1 for number in range(50_000)}
    request = OPENAI.parse(Operation.CHAT, orjson.dumps({**chat_body(), **fields}), None)
    made = plan_calls(request, TARGETS["cohere"], "drop")
    assert made.dropped == (*[*fields][:MAX_NAMED], "unknown")
    assert made.request.unknown is None


def test_threat_05_candidates_of_one_prompt_share_their_bytes() -> None:
    made = plan_calls(replace(chat_request(max_tokens=8), params={"max_tokens": 8, "n": 100}), TARGETS["anthropic"])
    assert len(made.calls) == 100
    assert len({id(call.sent) for call in made.calls}) == 1


@pytest.mark.parametrize("seed", [{}, {"seed": 1}], ids=["alike", "each with a seed"])
def test_threat_05_calls_are_not_larger_together_than_a_request_may_be(seed: JsonObject) -> None:
    size = MAX_BYTES // 20
    request = text_request("x" * size, max_tokens=8, n=16, **seed)
    target = TARGETS["llamacpp_native"]
    assert len(plan_calls(request, target).calls) == 16
    with pytest.raises(Refusal, match="together") as caught:
        plan_calls(replace(request, params={**request.params, "n": 24}), target)
    assert caught.value.param == "n"


def test_threat_05_an_echo_is_not_larger_than_a_request_may_be() -> None:
    request = text_request("x" * (MAX_ECHO // 4), max_tokens=0, echo=True, n=4)
    target = TARGETS["llamacpp_native"]
    assert plan_calls(request, target).finishing is not None
    for more, param in (
        (replace(request, params={**request.params, "n": 5}), "echo"),
        (replace(request, prompt=TextPrompt(("x",) * MAX_CHOICES)), "n"),
    ):
        with pytest.raises(Refusal) as caught:
            plan_calls(more, target)
        assert (caught.value.param, caught.value.code) == (param, "invalid_value")


def test_threat_05_too_many_choices_are_refused_before_they_are_listed() -> None:
    request = text_request(n=128, max_tokens=8)
    with pytest.raises(Refusal, match="12800000 choices"):
        plan_calls(replace(request, prompt=TextPrompt(("x",) * 100_000)), TARGETS["llamacpp_native"])


def chat_body(arguments: str = "{}") -> JsonObject:
    """Return a conversation with a call."""
    call: JsonObject = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {
        "model": "v/m",
        "max_tokens": 8,
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
        ],
    }


@looped("name", TARGETS)
def test_threat_05_nested_arguments_of_a_call_are_passed_on_or_refused(name: str) -> None:
    for levels in (60, 300, 1000):
        body = orjson.dumps(chat_body('{"a":' + "[" * levels + "]" * levels + "}"))
        prepared(OPENAI.parse(Operation.CHAT, body, None), TARGETS[name])


def test_threat_05_arguments_of_calls_hold_no_more_elements_than_a_body() -> None:
    assert OPENAI.parse(Operation.CHAT, orjson.dumps(chat_body('{"a":[' + "1," * 100_000 + "1]}")), None)
    with pytest.raises(GatewayError, match="invalid_value"):
        OPENAI.parse(Operation.CHAT, orjson.dumps(chat_body('{"a":[' + "[]," * 200_000 + "1]}")), None)


# Responses -----------------------------------------------------------------------------------------------------------


@looped("flood", FLOODS, ids=_name)
def test_threat_05_reading_a_flood_grows_with_its_bytes(flood: Flood) -> None:
    assert growth(flood.work(flood.size), flood.work(TIMES * flood.size)) == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("form", "size"),
    [
        ("events", 200),
        pytest.param("at once", 300, marks=pytest.mark.nightly),
        pytest.param("in bytes", 40, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "sglang"])  # SGLang's repeats all text so far
def test_threat_05_decoding_grows_with_the_stream(name: str, form: str, size: int) -> None:
    assert growth(stream_work(name, form, size), stream_work(name, form, TIMES * size)) == ""


NESTED = (
    b"[" * 1000 + b"]" * 1000,
    b'{"detail":[' + b"[" * 900 + b"]" * 900 + b"]}",
    b'{"error":{"message":' + b"[" * 900 + b"]" * 900 + b"}}",
    b'{"choices":[{"text":"x","finish_reason":"stop","logprobs":{"tokens":[' + b"[" * 900 + b"]" * 900 + b"]}}]}",
    b'{"choices":[{"text":"x","finish_reason":"stop","logprobs":{"content":['
    + b'{"token":"x","top_logprobs":[' * 400
    + b"]}" * 400
    + b"]}}]}",
)


@looped("name", TARGETS)
@looped("body", NESTED, ids=["lists", "details", "message", "tokens", "alternatives"])
def test_threat_05_nested_answers_are_failures_of_the_vendor(name: str, body: bytes) -> None:
    target = TARGETS[name]
    sent = sent_for(_asked(target), target)
    assert isinstance(target.dialect.classify(sent, 500, {}, body), Failure)
    for stream in (False, True):
        try:
            if stream:
                decoder = target.dialect.stream(sent)
                list(decoder.feed(b"data: " + body + b"\n\n"))
                list(decoder.finish())
            else:
                target.dialect.decode(sent, body)
        except UpstreamError:
            continue


def _asked(target: Target) -> UnifiedRequest:
    try:
        target.dialect.encode(chat_request(max_tokens=8), target)
    except Refusal:
        return text_request("x", max_tokens=8)
    return chat_request(max_tokens=8)


@looped("name", TARGETS)
def test_threat_05_classifying_grows_with_the_error(name: str) -> None:
    target = TARGETS[name]
    sent = sent_for(_asked(target), target)
    for unit in some(["a.", "1,", "doesn't support a.", "a b ", "x" * 40 + " "], 2):
        small, large = (
            orjson.dumps({"error": {"message": said}, "message": said, "Message": said, "detail": said})
            for said in (f"doesn't support {unit * count} field" for count in (2000, 2000 * TIMES))
        )
        classify = partial(target.dialect.classify, sent, 400, {})
        assert growth(partial(classify, small), partial(classify, large)) == "", unit


# Patterns ------------------------------------------------------------------------------------------------------------


def searched() -> Iterator[re.Pattern[str]]:
    """Yield every pattern that searches a vendor's text."""
    for signature in (*context_signatures.SIGNATURES, *context_signatures.CATCH_ALL):
        yield signature.pattern
    for module in (context_signatures, rate_limits, anthropic_errors, aws_errors, gemini_errors, openai_stream):
        for value in vars(module).values():
            for each in value if isinstance(value, tuple) else (value,):
                yield from (
                    one for one in (each if isinstance(each, tuple) else (each,)) if isinstance(one, re.Pattern)
                )
    for profile in load_profiles().values():
        yield from (pattern for pattern, _ in profile.errors.patterns)
        if profile.errors.text is not None:
            yield profile.errors.text


UNITS = ("a", "A1", "1", "1,", "1 ", "a.", "a-", "a_", "a:", "a/", "/a", "::", "1.", "1.1.1.1 ", " ", "\n", "<", "(1")


def hostile(pattern: re.Pattern[str], size: int) -> Sequence[str]:
    """Return texts of words that the pattern searches, and of characters that its repetitions match."""
    words = re.findall(r"[A-Za-z][A-Za-z ]{2,}", pattern.pattern)[:8]
    units = (*UNITS, *words, *(f"{word}{unit}" for word in words[:3] for unit in ("a", "1", " ", "1,")))
    return [(unit * size)[:size] for unit in units]


def test_threat_05_patterns_take_linear_time_over_hostile_words() -> None:
    patterns = {pattern.pattern: pattern for pattern in searched()}
    assert len(patterns) > 80
    for pattern in patterns.values():
        for small, large in zip(hostile(pattern, MAX_TEXT // TIMES), hostile(pattern, MAX_TEXT), strict=True):
            grown = growth(partial(pattern.search, small), partial(pattern.search, large))
            assert grown == "", f"{pattern.pattern} over {small[:40]!r}"


@looped("unit", [*UNITS, "maximum context length is 1", "exceeds ", "try again 1m"])
def test_threat_05_what_is_said_of_sizes_is_read_in_bounded_time(unit: str) -> None:
    """Only the beginning of any text is searched."""
    for text in (unit * (MAX_TEXT // len(unit)), unit * (4 * MAX_TEXT)):
        assert growth(partial(read_overflow, text[:MAX_TEXT], {}), partial(read_overflow, text, {})) == ""


@looped("value", [b"1" * 300, b"9" * 22, b"0.5", b"1e300", b'{"a":1,"a":1}', b'{"a":"\\u0061\\""}'])
def test_threat_05_a_body_in_any_form_is_read_in_linear_time(value: bytes) -> None:
    def read(count: int) -> None:
        with suppress(GatewayError):  # for integers beyond 64 bits
            body_of_request.load(b'{ "x" : [ %b ] }' % b" , ".join([value] * count), frozenset())

    assert growth(partial(read, 2_000), partial(read, 2_000 * TIMES)) == ""


def test_a_target_stands_for_every_dialect() -> None:
    assert {target.profile.dialect for target in TARGETS.values()} == {
        profile.dialect for profile in load_profiles().values()
    } - {"mock"}
