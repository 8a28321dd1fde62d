"""Blocks of text and media as parts of a chat."""

from typing import cast

import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.blocks import content_blocks, parts_of
from proxy.surfaces.anthropic.translation import Translation
from proxy.surfaces.request.rule_kinds import Invalid
from tests.proxy.surfaces.anthropic.kit import refused as refused_body
from tests.support.looped import looped

MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
PNG: JsonObject = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PDF: JsonObject = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}


def parts(**block: JsonValue) -> list[JsonObject]:
    made = Translation()
    found = parts_of(made, block)
    assert not made.binding
    return found


def binding(**block: JsonValue) -> tuple[list[JsonObject], str]:
    made = Translation()
    found = parts_of(made, block)
    return found, made.binding["messages"]


def test_a_text_keeps_its_marker_and_an_empty_one_is_left_out() -> None:
    assert parts(type="text", text="a", **MARK) == [{"type": "text", "text": "a", **MARK}]
    assert parts(type="text", text="", **MARK) == []


def test_an_image_becomes_a_data_uri_or_stays_an_address() -> None:
    assert parts(type="image", source=PNG, **MARK) == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, **MARK}
    ]
    url: JsonObject = {"type": "url", "url": "https://x.example/a.png"}
    assert parts(type="image", source=url) == [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]


def test_a_pdf_becomes_a_file_with_its_title_and_what_is_said_about_it() -> None:
    assert parts(type="document", source=PDF, title="T", context="C", **MARK) == [
        {"type": "text", "text": "C"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "T"}, **MARK},
    ]
    url: JsonObject = {"type": "url", "url": "https://x.example/a.pdf"}
    assert parts(type="document", source=url) == [{"type": "file", "file": {"file_url": "https://x.example/a.pdf"}}]


def test_a_document_of_text_is_a_text_for_every_vendor() -> None:
    plain: JsonObject = {"type": "text", "media_type": "text/plain", "data": "body"}
    assert parts(type="document", source=plain, title="T", context="C", **MARK) == [
        {"type": "text", "text": "T\n\nC\n\nbody", **MARK}
    ]
    held: JsonObject = {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": PNG}]}
    assert [p["type"] for p in parts(type="document", source=held, title="T", **MARK)] == ["text", "text", "image_url"]
    assert parts(type="document", source={"type": "content", "content": "a"}) == [{"type": "text", "text": "a"}]


def test_a_search_result_is_a_text() -> None:
    content: JsonValue = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert parts(type="search_result", title="T", source="https://x.example", content=content) == [
        {"type": "text", "text": "T\nhttps://x.example\none\ntwo"}
    ]


@looped(
    ("block", "subject"),
    [
        ({"type": "container_upload", "file_id": "f"}, "'messages' with a block of type 'container_upload'"),
        ({"type": "of_tomorrow"}, "'messages' with a block of type 'of_tomorrow'"),
        (
            {"type": "image", "source": {"type": "file", "file_id": "f"}},
            "'messages' with an image from the source 'file'",
        ),
        (
            {"type": "document", "source": {"type": "file", "file_id": "f"}},
            "'messages' with a document from the source 'file'",
        ),
    ],
)
def test_what_only_anthropic_has_is_binding(block: JsonObject, subject: str) -> None:
    assert binding(**block) == ([], subject)


@looped(
    ("kind", "instead"),
    [
        *((kind, "type 'text' here") for kind in ("input_text", "output_text")),
        *((kind, "type 'image' with a 'source' here") for kind in ("image_url", "input_image")),
        *((kind, "type 'document' with a 'source' here") for kind in ("file", "input_file")),
        *((kind, "the Messages API accepts no") for kind in ("input_audio", "video_url")),
    ],
)
def test_a_part_of_openai_s_apis_is_refused_with_what_to_send(kind: str, instead: str) -> None:
    block: JsonObject = {"type": kind, kind: {"url": "https://x.example/a.png"}}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    for turn, param in ((block, "messages.0.content.0.type"), (result, "messages.0.content.0.content.0.type")):
        facts = refused_body(messages=[{"role": "user", "content": [turn]}])
        assert (facts.param, facts.code) == (param, "invalid_value")
        assert facts.message.startswith(f"'{param}' is '{kind}', as in OpenAI's APIs; ")
        assert instead in facts.message


def test_a_document_to_cite_is_binding_and_its_address_stays_for_the_table_s_rules() -> None:
    url: JsonObject = {"type": "url", "url": "http://169.254.169.254/a.pdf"}
    found, subject = binding(type="document", source=url, citations={"enabled": True})
    assert subject == "'messages' with a document to cite"
    assert found == [{"type": "file", "file": {"file_url": "http://169.254.169.254/a.pdf"}}]
    assert parts(type="document", source=url, citations={"enabled": False})


@looped(
    ("value", "loc"),
    [
        (1, ()),
        ([1], (0,)),
        ([{}], (0, "type")),
        ([{"type": "text"}, {"type": ""}], (1, "type")),
        ([{"type": "text", "cache_control": 1}], (0, "cache_control")),
    ],
)
def test_blocks_without_a_form_are_refused_at_their_place(value: JsonValue, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        content_blocks(value)
    assert caught.value.loc == loc


@looped(
    ("block", "loc"),
    [
        ({"type": "text"}, ("text",)),
        ({"type": "image"}, ("source",)),
        ({"type": "image", "source": {}}, ("source", "type")),
        ({"type": "image", "source": {"type": "base64", "data": "A"}}, ("source",)),
        ({"type": "document", "source": {"type": "text"}}, ("source",)),
        ({"type": "search_result", "content": 1}, ("content",)),
    ],
)
def test_a_block_without_what_its_type_promises_is_refused(block: JsonObject, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        parts_of(Translation(), block)
    assert caught.value.loc[: len(loc)] == loc


def test_a_string_is_one_block() -> None:
    assert content_blocks("a") == [{"type": "text", "text": "a"}]
    assert cast(object, content_blocks([])) == []
