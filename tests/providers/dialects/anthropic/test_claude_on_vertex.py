"""Claude on Vertex AI: Anthropic's body at Google's address, and errors of either."""

from dataclasses import replace

import anthropic
import httpx2
import orjson
import pytest
from anthropic.types import MessageParam
from pydantic import SecretStr

from providers.completion import StreamEvent
from providers.dialect import encode_native
from providers.dialects.anthropic.claude_on_vertex import AnthropicVertexDialect
from providers.dialects.anthropic.dialect import AnthropicDialect
from providers.failure import FailureKind, Refusal
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from providers.vendor_credential import Credential
from tests.providers.dialects.anthropic import kit as anthropic_kit
from tests.providers.dialects.anthropic.kit import answer, sdk_check, stream
from tests.providers.dialects.anthropic.native_kit import own_body, own_call, own_request
from tests.providers.dialects.gemini import kit as gemini_kit
from tests.providers.dialects.kit import chat_request, streamed, text_of, text_request, user
from tests.providers.kit import failure_of
from tests.support.looped import looped

DIALECT = AnthropicVertexDialect()
BASE = "https://us-east5-aiplatform.googleapis.com/v1/projects/acme/locations/us-east5"
TARGET = replace(
    anthropic_kit.TARGET,
    vendor="vertex_anthropic",
    upstream_model="claude-haiku-4-5@20251001",
    profile=load_profiles()["vertex_anthropic"],
    dialect=DIALECT,
    base_url=BASE,
    credential=Credential("bearer", key=SecretStr("ya29.secret")),
)
SENT = DIALECT.encode(chat_request(), TARGET)
FIRST_PARTY = replace(SENT, target=anthropic_kit.TARGET)
MODEL = f"{BASE}/publishers/anthropic/models/claude-haiku-4-5@20251001"


def made_by_the_sdk() -> httpx2.Request:
    """The call that the vendor's own client makes for the smallest request."""
    seen: list[httpx2.Request] = []

    def note(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=answer("text"), headers={"content-type": "application/json"})

    question: list[MessageParam] = [{"role": "user", "content": "hi"}]
    with (
        httpx2.Client(transport=httpx2.MockTransport(note)) as http,
        anthropic.AnthropicVertex(region="us-east5", project_id="acme", access_token="t", http_client=http) as client,
    ):
        client.messages.create(
            model="claude-haiku-4-5@20251001",
            max_tokens=8192,
            messages=question,
            extra_body={"anthropic_version": "vertex-2023-10-16"},
        )
    return seen[0]


def test_the_call_is_the_vendors_own_clients() -> None:
    theirs = made_by_the_sdk()
    assert SENT.url == str(theirs.url)
    assert orjson.loads(SENT.body) == orjson.loads(theirs.content)
    assert SENT.headers == {}


def test_a_stream_has_a_verb_and_keeps_its_member() -> None:
    sent = DIALECT.encode(replace(text_request(), stream=True), TARGET)
    assert (sent.url, sent.stream, sent.operation) == (f"{MODEL}:streamRawPredict", True, Operation.CHAT)
    assert orjson.loads(sent.body)["stream"] is True
    assert sent.emulated == ("prompt",)


def test_the_rest_of_the_body_is_the_first_partys() -> None:
    tools = [{"type": "function", "function": {"name": "get weather", "parameters": {}}}]
    request = chat_request({"role": "system", "content": "Be kind."}, user("hi"), tools=tools, stop=("x",))
    own, first = DIALECT.encode(request, TARGET), AnthropicDialect().encode(request, TARGET)
    ours, theirs = orjson.loads(own.body), orjson.loads(first.body)
    assert ours.pop("anthropic_version") == "vertex-2023-10-16"
    assert theirs.pop("model") == "claude-haiku-4-5@20251001"
    assert ours == theirs
    assert own.tool_names == first.tool_names == {"get_weather": "get weather"}


def test_the_version_of_the_table_decides_the_fields() -> None:
    sdk_check({"model": "m", **_body(chat_request(temperature=0.5))}, "2023-06-01")
    newer = replace(TARGET, api_version="2026-10-21")
    assert orjson.loads(DIALECT.encode(chat_request(), newer).body)["anthropic_version"] == "2026-10-21"
    with pytest.raises(Refusal, match="temperature"):
        DIALECT.encode(chat_request(temperature=0.5), newer)


def _body(request: object) -> JsonObject:
    body: JsonObject = orjson.loads(DIALECT.encode(request, TARGET).body)  # type: ignore[arg-type]  # a request
    del body["anthropic_version"]
    return body


def test_a_version_in_the_clients_headers_goes_into_the_body() -> None:
    for given, wire in (("2023-06-01", "vertex-2023-10-16"), ("2026-10-21", "2026-10-21")):
        sent = DIALECT.encode(replace(chat_request(), extra_headers={"Anthropic-Version": given}), TARGET)
        assert (orjson.loads(sent.body)["anthropic_version"], sent.headers) == (wire, {})


def test_the_clients_betas_are_headers() -> None:
    request = replace(chat_request(), extra_headers={"anthropic-beta": "a", "Anthropic-Beta": "b"})
    assert DIALECT.encode(request, TARGET).headers == {"anthropic-beta": "a,b"}


def test_the_location_decides_the_host() -> None:
    placed = replace(TARGET, base_url="https://eu-aiplatform.googleapis.com/v1/projects/acme/locations/eu")
    assert DIALECT.encode(chat_request(), placed).url.startswith(
        "https://aiplatform.eu.rep.googleapis.com/v1/projects/"
    )


def test_answers_are_anthropics() -> None:
    first = AnthropicDialect()
    assert DIALECT.decode(SENT, answer("text")) == first.decode(SENT, answer("text"))
    for size in (1, 7, 4096):
        assert _events(stream("tools"), size) == streamed(FIRST_PARTY, stream("tools"))


def _events(data: bytes, size: int) -> list[StreamEvent]:
    decoder = DIALECT.stream(SENT)
    events = [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]
    events += decoder.finish()
    assert decoder.complete
    return events


def test_an_unknown_event_of_the_platform_is_passed_over() -> None:
    data = b'event: vertex_event\ndata: {"progress": 1}\n\n' + stream("text")
    assert text_of(_events(data, 4096)) == text_of(_events(stream("text"), 4096))


@looped("size", [1, 7, 4096])
@looped("framed", [False, True], ids=["bare", "framed"])
def test_googles_error_ends_a_stream_too(framed: bool, size: int) -> None:
    beginning = stream("text").partition(b"event: content_block_stop")[0]
    said = b'{"error": {"code": 429, "message": "Resource exhausted.", "status": "RESOURCE_EXHAUSTED"}}'
    data = beginning + (b"data: " + said + b"\n\n" if framed else said + b"\n")
    assert failure_of(_events, data, size).kind is FailureKind.RATE_LIMITED


def test_anthropics_error_event_is_still_one() -> None:
    assert failure_of(_events, stream("error_after_text"), 4096).kind is FailureKind.OVERLOADED


def test_a_broken_stream_is_no_success() -> None:
    assert failure_of(_events, stream("text")[:-40], 4096).kind is FailureKind.TRUNCATED


@looped(
    ("status", "body", "kind"),
    [
        (429, gemini_kit.error("rate_limit_shared.json"), FailureKind.RATE_LIMITED),
        (403, gemini_kit.error("permission.json"), FailureKind.AUTH),
        (503, gemini_kit.error("listed.json"), FailureKind.OVERLOADED),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', FailureKind.OVERLOADED),
        (
            400,
            b'{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}',
            FailureKind.CONTEXT_LENGTH,
        ),
        (502, gemini_kit.error("proxy.html"), FailureKind.SERVER),
        (500, b'"error"', FailureKind.SERVER),
        (500, b'{"error"', FailureKind.SERVER),
    ],
)
def test_errors_are_anthropics_or_googles(status: int, body: bytes, kind: FailureKind) -> None:
    assert DIALECT.classify(SENT, status, {}, body).kind is kind


# A client's own body -----------------------------------------------------------------------------------------------


def test_a_client_s_own_body_goes_as_it_came_but_for_model_and_version() -> None:
    headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "claude-code-20250219,context-1m-2025-08-07"}
    request = own_request(headers=headers, stream=True, temperature=0.5, unheard_of={"a": 1})
    sent, body = own_call(request, TARGET)
    assert sent.url == f"{MODEL}:streamRawPredict"
    assert request.native is not None
    own = {name: value for name, value in request.native.body.items() if name != "model"}
    assert body == {**own, "anthropic_version": "vertex-2023-10-16"}
    assert sent.headers == {"anthropic-beta": "context-1m-2025-08-07"}
    assert sent.dropped == ("anthropic-beta",)


def test_the_table_s_version_of_a_client_s_own_body_decides_on_sampling() -> None:
    newer = replace(TARGET, api_version="2026-10-21")
    assert own_body(own_request(temperature=1), newer)["anthropic_version"] == "2026-10-21"
    with pytest.raises(Refusal, match="temperature"):
        encode_native(own_request(temperature=0.5), newer)


def test_what_the_platform_lacks_is_mended_in_a_client_s_own_body_or_refused() -> None:
    system: JsonObject = {"role": "system", "content": "Be brief."}
    sent, body = own_call(own_request(user("hi"), system), TARGET)
    assert (body["messages"], sent.emulated) == ([user("hi"), {"role": "user", "content": "Be brief."}], ("messages",))
    with pytest.raises(Refusal, match="web_fetch_20250910"):
        encode_native(own_request(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]), TARGET)
    picture: JsonObject = {"type": "image", "source": {"type": "url", "url": "https://h/x.png"}}
    with pytest.raises(Refusal, match="base64"):
        encode_native(own_request(user([picture])), TARGET)


def test_a_request_of_another_api_is_none_of_the_platform_s() -> None:
    assert encode_native(chat_request(), TARGET) is None
