"""The outgoing request of Anthropic's dialect, held against the vendor's own types, and the incoming response."""

from dataclasses import replace

import orjson
import pydantic
import pytest

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Operation
from tests.providers.dialects.anthropic.kit import DIALECT, NEW_VERSION, TARGET, body_of, encode, sdk_check
from tests.providers.dialects.kit import chat_request, refusal_for, text_request, user
from tests.support.looped import looped


def test_a_prompt_becomes_one_message_of_the_user() -> None:
    sent = encode(text_request("Say hi"))
    assert (sent.method, sent.url, sent.operation) == ("POST", "https://api.anthropic.com/v1/messages", Operation.CHAT)
    assert orjson.loads(sent.body) == {
        "model": "claude-haiku-4-5-20251001",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "Say hi"}],
    }
    assert sent.emulated == ("prompt",)
    assert not sent.stream


def test_a_chat_is_not_emulated() -> None:
    assert encode(chat_request()).emulated == ()


def test_a_stream_is_asked_for_by_its_member() -> None:
    sent = encode(replace(chat_request(), stream=True))
    assert sent.stream
    assert orjson.loads(sent.body)["stream"] is True


def test_the_clients_limit_beats_the_models() -> None:
    assert body_of(text_request(max_tokens=5))["max_tokens"] == 5


@looped(
    ("model", "given", "table", "sent"),
    [
        ("claude-haiku-4-5", None, None, 64_000),
        ("claude-opus-4-1", None, None, 4_096),
        ("claude-opus-5-5", None, None, 128_000),
        ("operators-own", None, None, 16_384),
        ("claude-haiku-4-5", None, 900, 900),
        ("claude-haiku-4-5", 70_000, None, 64_000),
        ("claude-haiku-4-5", 70_000, 80_000, 70_000),
        ("operators-own", 900_000, None, 900_000),
    ],
)
def test_a_limit_is_always_sent_and_never_above_the_models(
    model: str, given: int | None, table: int | None, sent: int
) -> None:
    target = replace(TARGET, model=model, upstream_model=model, max_output_tokens=table)
    request = text_request() if given is None else text_request(max_tokens=given)
    assert body_of(request, target)["max_tokens"] == sent


def test_the_tables_name_tells_the_model_where_the_wires_hides_it() -> None:
    target = replace(TARGET, model="claude-opus-4-7", upstream_model="profile-1", max_output_tokens=None)
    assert body_of(text_request(), target)["max_tokens"] == 128_000


def test_a_limit_of_zero_is_refused_because_it_means_something_else_there() -> None:
    with pytest.raises(Refusal, match="at least 1"):
        DIALECT.encode(text_request(max_tokens=0), TARGET)


def test_images_of_a_prompt_stand_where_their_markers_were() -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    body = body_of(text_request("Compare <image> and <image>\n", images=((png, png),)))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    text = [{"type": "text", "text": "Compare "}, {"type": "text", "text": " and "}]
    assert body["messages"] == [{"role": "user", "content": [text[0], image, text[1], image]}]


def test_an_image_of_a_prompt_that_cannot_be_sent_is_refused_under_its_own_name() -> None:
    assert refusal_for(text_request("<image>", images=(("data:image/tiff;base64,AA==",),)), TARGET).param == "images"


@pytest.mark.parametrize("base_url", ["https://api.example.com/claude", "https://api.example.com/claude/v1"])
def test_an_address_may_end_in_the_version_or_before_it(base_url: str) -> None:
    call = DIALECT.encode(chat_request(user("hi")), replace(TARGET, base_url=base_url))
    assert call.url == "https://api.example.com/claude/v1/messages"


def test_instructions_go_to_the_system_text() -> None:
    body = body_of(chat_request({"role": "system", "content": "Be kind."}, user("hi")))
    assert body["system"] == "Be kind."
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_an_instruction_from_the_middle_is_named_as_moved() -> None:
    sent = encode(chat_request(user("hi"), {"role": "developer", "content": "Be brief."}))
    assert sent.emulated == ("messages",)
    assert orjson.loads(sent.body)["system"] == "Be brief."


def test_fields_that_are_not_known_here_go_to_the_vendor() -> None:
    mark: JsonObject = {"type": "ephemeral"}
    sent = encode(replace(chat_request(), unknown={"cache_control": mark}))
    assert orjson.loads(sent.body)["cache_control"] == mark


@looped("name", ["model", "system", "anthropic_beta"])
def test_a_field_that_is_written_from_another_is_refused_by_name(name: str) -> None:
    refusal = refusal_for(replace(chat_request(), unknown={name: "x"}), TARGET)
    assert (refusal.param, refusal.code) == (name, "conflicting_parameters")


def test_the_beta_of_block_binding_comes_with_the_setting() -> None:
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    request = replace(chat_request(thinking=binding), extra_headers={"anthropic-beta": "a"})
    sent = DIALECT.encode(request, replace(TARGET, upstream_model="claude-opus-5-5"))
    assert sent.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01,a"


@pytest.mark.parametrize(("target", "expected"), [(TARGET, "2023-06-01"), (NEW_VERSION, "2026-10-21")])
def test_the_version_is_the_deployments_or_the_oldest(target: Target, expected: str) -> None:
    assert encode(chat_request(), target).headers == {"anthropic-version": expected}


def test_the_clients_headers_are_added_and_its_betas_joined() -> None:
    request = replace(chat_request(), extra_headers={"anthropic-beta": "a,b", "Anthropic-Beta": "c", "X-Trace": "1"})
    assert encode(request).headers == {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b,c", "x-trace": "1"}


def test_a_version_in_the_clients_headers_decides_the_fields() -> None:
    request = replace(chat_request(temperature=0.5), extra_headers={"Anthropic-Version": "2026-10-21"})
    with pytest.raises(Refusal, match="temperature"):
        DIALECT.encode(request, TARGET)


def test_extra_params_are_merged_last_and_deep() -> None:
    request = replace(
        chat_request(reasoning_effort="low", max_tokens=5),
        extra_params={"max_tokens": 9, "output_config": {"effort": "high"}, "speed": "fast"},
    )
    body = body_of(request)
    assert (body["max_tokens"], body["output_config"], body["speed"]) == (9, {"effort": "high"}, "fast")


@looped(
    "body",
    [
        {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
        {"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "content": "hi"}]},
        {"model": "m", "max_tokens": 1, "messages": [], "stop": ["a"]},
        {"model": "m", "max_tokens": 1, "messages": [], "temperature": 0.5},
    ],
)
def test_the_judge_of_these_tests_refuses_what_the_vendor_refuses(body: JsonObject) -> None:
    with pytest.raises(pydantic.ValidationError):
        sdk_check(body, "2026-10-21")
