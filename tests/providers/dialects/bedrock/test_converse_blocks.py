"""The parts of Converse responses besides text and tool calls."""

import orjson
import pytest

from providers.completion import Extras
from providers.dialects.bedrock.converse_answer import decode_converse
from providers.dialects.bedrock.converse_blocks import (
    ResponseExtras,
    cited_text,
    joined_base64,
    other_response_fields,
    reasoning_detail,
    reasoning_format,
    redacted_detail,
)
from providers.json_types import JsonObject
from proxy.surfaces.anthropic.answer_members import citations_of
from tests.providers.dialects.bedrock.kit import target
from tests.providers.dialects.kit import chat_request, sent_for
from tests.support.looped import looped


@pytest.mark.parametrize(
    ("model", "form"), [("us.anthropic.claude-opus-4-7", "anthropic-claude-v1"), ("openai.gpt-oss-120b-1:0", "unknown")]
)
def test_thinking_is_said_to_be_whose_it_is(model: str, form: str) -> None:
    assert reasoning_format(sent_for(chat_request(), target(model))) == form


def test_details_have_openrouter_s_form() -> None:
    detail: JsonObject = {"type": "reasoning.text", "format": "f", "index": 2}
    assert reasoning_detail("f", 2, None, "s") == {**detail, "signature": "s"}
    assert reasoning_detail("f", 2, "t", None) == {**detail, "text": "t"}
    assert redacted_detail("f", 2, "d") == {"type": "reasoning.encrypted", "format": "f", "index": 2, "data": "d"}


def test_a_citation_with_a_web_address_is_an_annotation_and_any_other_is_passed_on() -> None:
    extras = ResponseExtras()
    assert extras.whole() is None
    page: JsonObject = {"source": "https://example.com/a", "location": {"searchResultLocation": {}}}
    other: JsonObject = {"title": "b", "location": {"documentPage": {"start": 1}}}
    extras.add_citations([page, other, "no citation"], 3, 5)
    cited: JsonObject = {"url": "https://example.com/a", "title": "https://example.com/a"}
    span: JsonObject = {"start_index": 3, "end_index": 5}
    assert extras.whole() == Extras(
        annotations=({"type": "url_citation", "url_citation": {**cited, **span}},), message={"citations": [other]}
    )


def test_what_a_citation_cites_is_the_content_of_its_annotation() -> None:
    made = ResponseExtras()
    web: JsonObject = {"location": {"web": {"url": "https://x"}}, "sourceContent": [{"text": "sun"}, {"text": "ny"}]}
    made.add_citations([web], 0, 2)
    whole = made.whole()
    assert whole is not None
    (annotation,) = whole.annotations
    cited = annotation["url_citation"]
    assert isinstance(cited, dict)
    assert cited["content"] == "sunny"
    (shown,) = citations_of(whole)
    assert shown["cited_text"] == "sunny"


@looped(
    ("blocks", "places"),
    [(["i", "a"], (0,)), (["a", "i", "b"], (1,)), (["a", "i"], ()), (["i", "a", "i"], (0,)), (["i"], ())],
)
def test_images_keep_their_place_in_the_text(blocks: list[str], places: tuple[int, ...]) -> None:
    image: JsonObject = {"image": {"format": "png", "source": {"bytes": "AA=="}}}
    content = [image if block == "i" else {"text": block} for block in blocks]
    body = {"output": {"message": {"content": content}}, "stopReason": "end_turn"}
    (choice,) = decode_converse(sent_for(chat_request(), target()), orjson.dumps(body)).choices
    assert choice.extras is not None
    assert choice.extras.image_places == places


def test_cited_text_is_that_of_all_its_pieces() -> None:
    assert cited_text({"content": [{"text": "a"}, {"video": {}}, {"text": "b"}, 3]}) == "ab"
    assert cited_text({}) == ""


def test_an_image_in_s3_is_named_by_its_place() -> None:
    extras = ResponseExtras()
    extras.add_image({"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a"}}})
    assert extras.whole() == Extras(images=({"type": "image_url", "image_url": {"url": "s3://bucket/a"}},))


def test_the_stop_string_that_the_gateway_asked_for_is_no_member_of_the_answer() -> None:
    assert other_response_fields({"additionalModelResponseFields": {"delta": {"stop_sequence": None}}, "p": "ab"}) == {}
    mine: JsonObject = {"additionalModelResponseFields": {"stop_sequence": None, "seed": 3}, "trace": {}}
    assert other_response_fields(mine) == {"additionalModelResponseFields": mine["additionalModelResponseFields"]}


@looped(("pieces", "whole"), [(["AA=="], "AA=="), (["AA==", "AQ=="], "AAE="), (["A", "B"], "AB")])
def test_base64_in_pieces_is_one_text(pieces: list[str], whole: str) -> None:
    assert joined_base64(pieces) == whole
