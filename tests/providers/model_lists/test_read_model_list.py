"""The models in vendors' lists, from real responses and from hostile ones."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from providers.failure import FailureKind
from providers.model_lists.read_model_list import (
    MAX_CURSOR,
    MAX_ENTRIES,
    MAX_NAME,
    MAX_VALUES,
    STYLES,
    ListedModel,
    ListPage,
    ask_for_page,
    read_page,
)
from providers.profile import ModelListStyle
from providers.profiles.load_profiles import load_profiles
from tests.providers.kit import failure_of
from tests.proxy.kit.transport_calls import TARGET
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


FIXTURES = Path(__file__).parent / "fixtures"
OPENAI = STYLES["openai"]
MODELS = (ListedModel("m"),)


def page(*names: object, **members: object) -> bytes:
    return orjson.dumps({"data": [{"id": name} for name in names], **members})


def malformed(style: ModelListStyle, data: bytes) -> str:
    failure = failure_of(read_page, STYLES[style], data)
    assert failure.kind is FailureKind.MALFORMED
    return failure.message


@looped(
    ("name", "style", "expected"),
    [
        ("openai", "openai", [ListedModel("gpt-4o-mini"), ListedModel("ft:gpt-4o-2024-08-06:acme::AbC123")]),
        (
            "openrouter",
            "openai",
            [
                ListedModel("deepseek/deepseek-r1:free", 163840, 65536),
                ListedModel("~anthropic/claude-sonnet-latest", 1_000_000),
            ],
        ),
        ("vllm", "openai", [ListedModel("Qwen/Qwen3-8B", 40960)]),
        ("groq", "openai", [ListedModel("llama-3.3-70b-versatile", 131072, 32768)]),
        ("mistral", "openai", [ListedModel("mistral-large-latest", 262144)]),
        ("together", "openai", [ListedModel("meta-llama/Llama-3.3-70B-Instruct-Turbo", 131072)]),
        (
            "anthropic",
            "anthropic",
            [ListedModel("claude-haiku-4-5-20251001", 200000, 64000), ListedModel("claude-3-haiku-20240307")],
        ),
        (
            "gemini",
            "gemini",
            [ListedModel("gemini-2.5-flash", 1048576, 65536), ListedModel("gemini-embedding-001", 2048, 1)],
        ),
        ("cohere", "cohere", [ListedModel("command-a-03-2025", 256000)]),
        (
            "ollama",
            "ollama",
            [ListedModel("gemma3:4b"), ListedModel("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M")],
        ),
    ],
)
def test_each_vendor_s_list_is_read_with_the_sizes_that_it_tells(
    name: str, style: ModelListStyle, expected: list[ListedModel]
) -> None:
    found = read_page(STYLES[style], (FIXTURES / f"{name}.json").read_bytes())
    assert [*found.models] == expected
    assert found.left_out == 0


@looped(
    ("style", "cursor"),
    [("anthropic", "claude-3-haiku-20240307"), ("gemini", "Ch9tb2RlbHM="), ("cohere", "dG9rZW4/"), ("ollama", None)],
)
def test_the_next_page_is_asked_for_by_the_vendor_s_cursor_in_our_own_query(
    style: ModelListStyle, cursor: str | None
) -> None:
    found = read_page(STYLES[style], (FIXTURES / f"{style}.json").read_bytes())
    assert found.next == cursor
    if cursor is not None:
        query = parse_qs(urlsplit(ask_for_page(STYLES[style], TARGET, cursor).url).query)
        assert query[STYLES[style].cursor_query] == [cursor]


def test_a_last_page_leads_nowhere() -> None:
    assert read_page(STYLES["anthropic"], page("m", has_more=False, last_id="m")).next is None
    assert read_page(STYLES["gemini"], b'{"models": [], "nextPageToken": ""}').next is None
    assert read_page(STYLES["cohere"], b'{"models": []}').next is None


def test_a_list_without_models_is_empty_in_every_spelling() -> None:
    for data in (b'{"data": []}', b'{"data": null}', b"[]"):
        assert read_page(OPENAI, data) == ListPage((), 0, None)


@looped(
    ("style", "base", "url"),
    [
        ("openai", "https://api.openai.com/v1", "https://api.openai.com/v1/models"),
        ("anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1/models?limit=1000"),
        ("anthropic", "https://proxy.example/v1", "https://proxy.example/v1/models?limit=1000"),
        ("gemini", "https://g.example/v1beta", "https://g.example/v1beta/models?pageSize=1000"),
        ("cohere", "https://api.cohere.com", "https://api.cohere.com/v1/models?page_size=1000"),
        ("ollama", "http://localhost:11434", "http://localhost:11434/api/tags"),
    ],
)
def test_the_first_page_is_a_get_at_the_vendor_s_address(style: ModelListStyle, base: str, url: str) -> None:
    call = ask_for_page(STYLES[style], replace(TARGET, base_url=base), None)
    assert (call.method, call.url, call.body) == ("GET", url, b"")


def test_anthropic_is_told_the_operator_s_version_or_its_own() -> None:
    style = STYLES["anthropic"]
    assert ask_for_page(style, TARGET, None).headers == {"anthropic-version": "2023-06-01"}
    written = replace(TARGET, api_version="2026-10-21")
    assert ask_for_page(style, written, None).headers == {"anthropic-version": "2026-10-21"}


def test_every_profile_s_list_is_of_a_known_kind() -> None:
    kinds = {profile.model_list for profile in load_profiles().values()}
    assert kinds - {None} == set(STYLES)
    assert load_profiles()["vertex"].model_list is None
    assert load_profiles()["azure_v1"].model_list is None


@looped(
    "name",
    [
        *("", ".", "..", "../admin", "a/../b", "a//b", "/a", "a/", "a b", "a\nb", "a\x00b", "é", "a?b", "a#b", "a%2fb"),
        *("a\\b", '"', "<script>", "x" * (MAX_NAME + 1), 7, None, True, ["m"], {"id": "m"}),
    ],
)
def test_a_name_that_could_be_no_name_of_the_table_is_left_out_and_counted(name: object) -> None:
    assert read_page(OPENAI, page(name, "m")) == ListPage(MODELS, 1, None)


def test_entries_that_are_no_objects_are_left_out_and_counted() -> None:
    assert read_page(OPENAI, b'{"data": ["m", 1, null, [], {}, {"id": "m"}]}') == ListPage(MODELS, 5, None)


def test_of_a_page_of_very_many_entries_a_bounded_number_is_read_and_the_rest_counted() -> None:
    found = read_page(OPENAI, page(*(f"m{number}" for number in range(MAX_ENTRIES + 7))))
    assert (len(found.models), found.left_out) == (MAX_ENTRIES, 7)


@looped("size", [0, -1, 10**9 + 1, 10**30, True, "8192", 8192.0, None, [8192]])
def test_a_size_that_is_none_is_not_told(size: object) -> None:
    data = b'{"data": [{"id": "m", "max_model_len": %s}]}'
    text = str(size).encode() if isinstance(size, int) and size > 2**64 else orjson.dumps(size)
    assert read_page(OPENAI, data % text).models == MODELS


@looped(
    "data",
    [b"", b"<html>", b'{"data": [{"id": "\xff"}]}', b"7", b'"m"', b"null", b"{}", b'{"data": {}}', b'{"data": "m"}'],
)
def test_what_is_no_list_is_malformed(data: bytes) -> None:
    malformed("openai", data)


@looped("cursor", [7, True, ["x"], {}, "x" * (MAX_CURSOR + 1)])
def test_a_cursor_in_no_known_form_is_malformed(cursor: object) -> None:
    malformed("gemini", orjson.dumps({"models": [], "nextPageToken": cursor}))


@looped("mark", [b"{},", b"[],", b"1,", b'{"a":1},'])
def test_a_page_of_very_many_values_is_refused_before_it_is_parsed(mark: bytes) -> None:
    data = b'{"data": [' + mark * (MAX_VALUES // (mark.count(b"{") + mark.count(b"[") + 1)) + b"{}]}"
    assert "more values than are read" in malformed("openai", data)


def test_deep_nesting_ends_in_an_error_and_not_in_the_stack() -> None:
    malformed("openai", b'{"data": ' + b"[" * 90_000 + b"]" * 90_000 + b"}")
