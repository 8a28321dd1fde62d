"""Claude on InvokeModel: Anthropic's body in the service's address, and Anthropic's events in its frames."""

from dataclasses import replace

import orjson
import pytest

from providers.completion import Chunk, Extras, StreamEvent
from providers.dialect import encode_native
from providers.dialects.registry import DIALECTS
from providers.failure import FailureKind, Refusal
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject
from providers.unified_request import Guided
from tests.providers.dialects.anthropic import kit as anthropic_kit
from tests.providers.dialects.anthropic.native_kit import own_call, own_request
from tests.providers.dialects.bedrock.kit import HAIKU, chunk, event, frame, hold_cuts, target
from tests.providers.dialects.kit import (
    SIZES,
    chat_request,
    chunks,
    refusal_for,
    sent_for,
    streamed,
    text_of,
    text_request,
    usage_in,
    user,
)
from tests.providers.kit import failure_of
from tests.support.looped import looped

DIALECT, FIRST_PARTY = DIALECTS["bedrock_anthropic"], anthropic_kit.DIALECT
CLAUDE = target(HAIKU, "bedrock_anthropic")
SENT = sent_for(replace(chat_request(), stream=True), CLAUDE)
STREAMS = sorted(path.stem for path in (anthropic_kit.FIXTURES / "streams").iterdir())
WHOLE = [name for name in STREAMS if not name.startswith("error")]
METRICS: JsonObject = {"inputTokenCount": 21, "outputTokenCount": 9, "invocationLatency": 913, "firstByteLatency": 201}


def framed(name: str, **more: JsonObject | str) -> bytes:
    """A fixture of Anthropic's stream as the service sends it; `more` goes into its last event."""
    parser, data = SSEParser(), anthropic_kit.stream(name)
    events = [payload for _, payload in (*parser.feed(data), *parser.finish()) if payload.startswith(b"{")]
    ended = orjson.dumps({**orjson.loads(events[-1]), "amazon-bedrock-invocationMetrics": METRICS, **more})
    return b"".join(map(chunk, [*events[:-1], ended]))


def first_party(name: str, **more: JsonObject | str) -> list[StreamEvent]:
    """Return the chunks of the vendor's own stream, with the service's metrics before the last chunk."""
    events = streamed(replace(SENT, target=anthropic_kit.TARGET), anthropic_kit.stream(name))
    at = max(index for index, event in enumerate(events) if isinstance(event, Chunk))
    before = events[at - 1] if at else None
    held = before.extras.answer if isinstance(before, Chunk) and before.extras is not None else None
    told = Chunk(extras=Extras(answer={**(held or {}), "amazon-bedrock-invocationMetrics": METRICS, **more}))
    return [*events[: at - 1 if held is not None else at], told, *events[at:]]


def test_the_body_is_anthropic_s_but_for_model_version_and_stream() -> None:
    request = replace(
        chat_request(
            max_tokens=5, temperature=0.5, stop=("a",), tools=[{"type": "function", "function": {"name": "f"}}]
        ),
        stream=True,
    )
    own = orjson.loads(anthropic_kit.encode(request).body)
    assert own.pop("model")
    assert own.pop("stream") is True
    sent = sent_for(request, CLAUDE)
    assert orjson.loads(sent.body) == {"anthropic_version": "bedrock-2023-05-31", **own}


@pytest.mark.parametrize(("stream", "action"), [(False, "invoke"), (True, "invoke-with-response-stream")])
def test_the_path_says_the_model_and_whether_it_streams(stream: bool, action: str) -> None:
    sent = sent_for(replace(text_request(), stream=stream), CLAUDE)
    path = f"/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/{action}"
    assert sent.url == f"https://bedrock-runtime.us-east-1.amazonaws.com{path}"
    name = "x-amzn-bedrock-accept" if stream else "accept"
    assert sent.headers == {name: "application/json"}
    assert sent.emulated == ("prompt",)


@looped(
    ("given", "said"),
    [
        (None, "bedrock-2023-05-31"),
        ("bedrock-2023-05-31", "bedrock-2023-05-31"),
        ("2023-06-01", "bedrock-2023-05-31"),
        ("2026-10-21", "2026-10-21"),
    ],
)
def test_the_version_stands_in_the_body(given: str | None, said: str) -> None:
    to = replace(CLAUDE, api_version=given)
    assert orjson.loads(sent_for(chat_request(), to).body)["anthropic_version"] == said
    sampled = chat_request(temperature=0.5)
    if said == "2026-10-21":
        assert refusal_for(sampled, to).param == "temperature"
    else:
        assert sent_for(sampled, to)


def test_the_client_s_version_and_betas_move_into_the_body() -> None:
    given = {"Anthropic-Version": "2026-10-21", "anthropic-beta": "a, b", "Anthropic-Beta": "c", "X-Trace": "1"}
    sent = sent_for(replace(chat_request(), extra_headers=given), CLAUDE)
    body = orjson.loads(sent.body)
    assert (body["anthropic_version"], body["anthropic_beta"]) == ("2026-10-21", ["a", "b", "c"])
    assert sent.headers == {"accept": "application/json", "x-trace": "1"}


@pytest.mark.parametrize(("tier", "headers"), [("auto", {}), ("default", {"x-amzn-bedrock-service-tier": "default"})])
def test_the_tier_is_a_header(tier: str, headers: dict[str, str]) -> None:
    sent = sent_for(chat_request(service_tier=tier), CLAUDE)
    assert b"service_tier" not in sent.body
    assert sent.headers == {"accept": "application/json", **headers}


def test_extra_params_are_merged_last() -> None:
    sent = sent_for(replace(chat_request(max_tokens=5), extra_params={"max_tokens": 9}), CLAUDE)
    assert orjson.loads(sent.body)["max_tokens"] == 9


def test_images_are_data_and_no_addresses() -> None:
    png: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert b"iVBORw0KGgo=" in sent_for(chat_request(user([png])), CLAUDE).body
    refusal = refusal_for(
        chat_request(user([{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}])), CLAUDE
    )
    assert (refusal.param, refusal.code) == ("messages", "unsupported_parameter")
    assert CLAUDE.name in refusal.message


def test_the_table_is_anthropic_s_but_for_the_rules_of_schemas() -> None:
    request = chat_request()
    known = replace(CLAUDE, context_window=200000)
    own, first = DIALECT.capabilities(request, known), FIRST_PARTY.capabilities(request, known)
    assert (own.strict_tools, first.strict_tools) == ("bedrock", "anthropic")
    assert {name: own[name] for name in own} == {name: first[name] for name in first}
    assert (own.watched, own.counts) == (first.watched, first.counts)


@looped("name", [path.stem for path in (anthropic_kit.FIXTURES / "answers").iterdir()])
def test_whole_answers_are_anthropic_s(name: str) -> None:
    sent = sent_for(chat_request(guided=Guided("choice", ("yes", "no"))), CLAUDE) if name == "choice" else SENT
    body = anthropic_kit.answer(name)
    assert DIALECT.decode(sent, body) == FIRST_PARTY.decode(sent, body)


@looped("name", WHOLE)
def test_streams_say_what_anthropic_s_say_in_any_pieces(name: str) -> None:
    for size in SIZES:
        assert streamed(SENT, framed(name), size) == first_party(name)


@pytest.mark.parametrize("name", ["text", "tools"])
def test_a_stream_cut_at_any_byte_is_no_success(name: str) -> None:
    hold_cuts(DIALECT, framed(name), SENT)


@pytest.mark.parametrize(("name", "text"), [("error_first", ""), ("error_after_text", "Checking Oslo")])
def test_an_error_event_in_a_frame_is_anthropic_s(name: str, text: str) -> None:
    decoder, found = DIALECT.stream(SENT), list[StreamEvent]()
    failure = failure_of(lambda: found.extend(decoder.feed(framed(name))))
    assert failure.kind is FailureKind.OVERLOADED
    assert text_of(found) == text


def test_an_exception_frame_is_the_service_s() -> None:
    data = chunk(b'{"type":"message_start","message":{}}') + frame("error InternalFailure It is not well.")
    assert failure_of(lambda: list(DIALECT.stream(SENT).feed(data))).kind is FailureKind.SERVER


def test_what_a_guardrail_says_is_blocked() -> None:
    events = streamed(SENT, framed("text", **{"amazon-bedrock-guardrailAction": "INTERVENED"}))
    end = chunks(events)[-1]
    assert (end.finish_reason, end.native_finish_reason) == ("content_filter", "guardrail_intervened")
    assert usage_in(events) == usage_in(first_party("text"))
    body = {**orjson.loads(anthropic_kit.answer("text")), "amazon-bedrock-guardrailAction": "INTERVENED"}
    (choice,) = DIALECT.decode(SENT, orjson.dumps(body)).choices
    assert (choice.finish_reason, choice.native_finish_reason) == ("content_filter", "guardrail_intervened")
    passed = {**body, "amazon-bedrock-guardrailAction": "NONE"}
    assert DIALECT.decode(SENT, orjson.dumps(passed)).choices[0].finish_reason == "stop"


def test_json_over_several_lines_is_one_event() -> None:
    delta: JsonObject = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    spread = orjson.dumps(delta, option=orjson.OPT_INDENT_2)
    assert text_of(list(DIALECT.stream(SENT).feed(chunk(spread)))) == "a"


def test_events_of_other_kinds_and_empty_pieces_change_nothing() -> None:
    data = event("notice", b"no json") + event("chunk", b"{}") + framed("text")
    assert streamed(SENT, data) == first_party("text")


def test_nothing_is_read_after_the_end() -> None:
    decoder = DIALECT.stream(SENT)
    assert list(decoder.feed(framed("text") + b"nonsense that is no frame")) == first_party("text")
    assert list(decoder.feed(b"nonsense")) == []
    assert list(decoder.finish()) == []


def test_errors_are_the_service_s() -> None:
    failure = DIALECT.classify(SENT, 429, {"x-amzn-errortype": "ThrottlingException"}, b'{"message":"Slow down."}')
    assert (failure.kind, failure.message) == (FailureKind.RATE_LIMITED, "Slow down.")


# A client's own body ------------------------------------------------------------------------------------------------

NATIVE = own_call(own_request(stream=True), CLAUDE)[0]


def test_a_client_s_own_body_goes_as_it_came_but_for_model_version_betas_and_stream() -> None:
    headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "claude-code-20250219,context-1m-2025-08-07"}
    request = own_request(headers=headers, stream=True, unheard_of={"a": 1}, service_tier="standard_only")
    sent, body = own_call(request, CLAUDE)
    assert request.native is not None
    gone = ("model", "stream", "service_tier")
    own = {name: value for name, value in request.native.body.items() if name not in gone}
    opening = {"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["context-1m-2025-08-07"]}
    assert body == {**own, **opening}
    assert sent.url.endswith("/invoke-with-response-stream")
    assert sent.headers == {"x-amzn-bedrock-accept": "application/json", "x-amzn-bedrock-service-tier": "default"}
    assert sent.dropped == ("anthropic-beta",)
    assert own_call(replace(request, stream=False), CLAUDE)[0].url.endswith("/invoke")


def test_what_the_service_lacks_is_refused_in_a_client_s_own_body() -> None:
    with pytest.raises(Refusal, match="web_search_20250305"):
        encode_native(own_request(tools=[{"type": "web_search_20250305", "name": "web_search"}]), CLAUDE)
    with pytest.raises(Refusal, match="temperature"):
        encode_native(own_request(temperature=0.5), replace(CLAUDE, api_version="2026-10-21"))
    assert encode_native(chat_request(), CLAUDE) is None


@looped("name", WHOLE)
def test_a_native_stream_shows_every_event_in_the_frames(name: str) -> None:
    data = framed(name)
    events = streamed(NATIVE, data)
    parser, own = SSEParser(), anthropic_kit.stream(name)
    told = [payload for _, payload in (*parser.feed(own), *parser.finish()) if payload.startswith(b"{")]
    natives = [one.native for one in chunks(events) if one.native is not None]
    assert [native.data for native in natives[:-1]] == told[:-1]
    assert orjson.loads(natives[-1].data)["amazon-bedrock-invocationMetrics"] == METRICS
    assert [native.name for native in natives] == [orjson.loads(native.data)["type"] for native in natives]
    bare = [replace(one, native=None) if isinstance(one, Chunk) else one for one in events]
    assert [one for one in bare if one != Chunk()] == streamed(SENT, data)


def test_a_native_stream_is_the_same_at_every_cut_and_never_whole_without_its_end() -> None:
    data = framed("tools")
    for size in SIZES:
        assert streamed(NATIVE, data, size) == streamed(NATIVE, data)
    hold_cuts(DIALECT, data, NATIVE)


def test_a_native_answer_keeps_the_service_s_body_and_its_guardrail() -> None:
    body = orjson.dumps({**orjson.loads(anthropic_kit.answer("text")), "amazon-bedrock-guardrailAction": "INTERVENED"})
    completion = DIALECT.decode(NATIVE, body)
    assert completion.native == body
    assert completion.choices[0].finish_reason == "content_filter"
