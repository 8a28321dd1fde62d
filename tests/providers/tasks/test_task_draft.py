"""The common parts of a task request's calls: fields, passed-on fields, headers, addresses."""

import pytest

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.target import Permits
from providers.tasks import task_draft
from providers.tasks.forms.prepare_task import embeddings_calls
from providers.tasks.task_draft import base_of, path_with_model, profile_of
from tests.providers.tasks.kit import at, bodies, body_of, embed, refusal_of
from tests.support.looped import looped


def test_a_field_goes_under_the_vendor_s_name_and_with_its_word() -> None:
    body = body_of(embed(input_type="search_query", truncate="end", dimensions=8), at("voyage"))
    assert (body["input_type"], body["truncation"], body["output_dimension"]) == ("query", True, 8)


def test_a_word_of_the_vendor_s_own_goes_as_it_is() -> None:
    assert body_of(embed(input_type="odd"), at("voyage"))["input_type"] == "odd"


def test_a_permitted_cut_that_the_vendor_has_no_word_for_is_left_out_and_no_other_is_made() -> None:
    calls = embeddings_calls(embed(truncate="start"), at("voyage"))
    assert (calls.dropped, bodies(calls)[0]["truncation"]) == (("truncate",), False)
    for profile in ("openai", "vllm"):
        calls = embeddings_calls(embed(truncate="start"), at(profile))
        assert calls.dropped == ("truncate",)
        assert not any("trunc" in name for name in bodies(calls)[0])


def test_nothing_is_cut_unless_it_is_asked_for() -> None:
    for profile, member, value in (
        ("voyage", "truncation", False),
        ("jina", "truncate", False),
        ("ollama", "truncate", False),
        ("nim", "truncate", "NONE"),
    ):
        assert body_of(embed(), at(profile))[member] == value
    assert "truncate_prompt_tokens" not in body_of(embed(), at("vllm"))
    assert body_of(embed(truncate="end"), at("vllm"))["truncate_prompt_tokens"] == -1


def test_a_steering_field_may_be_left_out_where_the_table_says_so_and_a_binding_one_never() -> None:
    calls = embeddings_calls(embed(input_type="search_query"), at("openai"), "drop")
    assert calls.dropped == ("input_type",)
    assert refusal_of(embed(dimensions=8), at("together"), "drop").param == "dimensions"


def test_unknown_members_go_where_the_vendor_answers_for_them() -> None:
    assert body_of(embed(unknown={"odd": 1}), at("openai"))["odd"] == 1
    assert body_of(embed(unknown={"normalized": True}), at("jina"))["normalized"] is True
    assert refusal_of(embed(unknown={"odd": 1}), at("jina")).param == "odd"
    assert embeddings_calls(embed(unknown={"odd": 1}), at("jina"), "drop").dropped == ("odd",)


@looped("name", ["inputs", "Texts", "messages", "encoding_format", "images"])
def test_no_member_may_take_the_place_of_the_inputs(name: str) -> None:
    assert refusal_of(embed(unknown={name: "a"}), at("openai")).code == "conflicting_parameters"
    assert refusal_of(embed(extra_params={name: "a"}), at("openai")).param == "inference_extra_params"


def test_extra_members_are_merged_last() -> None:
    body = body_of(embed(dimensions=8, extra_params={"dimensions": 9, "x": {"y": 1}}), at("openai"))
    assert (body["dimensions"], body["x"]) == (9, {"y": 1})


def test_an_engine_gets_no_member_that_names_a_path_unless_the_table_allows_it() -> None:
    member: JsonObject = {"lora_path": "/etc/passwd"}
    assert "lora_path" in refusal_of(embed(unknown=member), at("vllm")).message
    assert "lora_path" in refusal_of(embed(extra_params=member), at("vllm")).message
    allowed = at("vllm", permits=Permits(frozenset({"lora_path"})))
    assert body_of(embed(unknown=member), allowed)["lora_path"] == "/etc/passwd"
    assert body_of(embed(unknown=member), at("openai"))["lora_path"] == "/etc/passwd"


def test_headers_of_the_client_are_checked() -> None:
    calls = embeddings_calls(embed(extra_headers={"traceparent": "00"}), at("openai"))
    assert calls.calls[0].headers == {"traceparent": "00"}
    with pytest.raises(Refusal):
        embeddings_calls(embed(extra_headers={"x-odd": "1"}), at("openai"))


def test_a_vendor_without_the_task_says_so() -> None:
    refusal = refusal_of(embed(), at("anthropic"))
    assert refusal.param == "model"
    assert "does not support embeddings" in refusal.message


def test_members_that_repeat_in_every_call_may_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_draft, "MAX_BYTES", 10_000)
    many = embed(*map(str, range(300)), unknown={"odd": "x" * 1000})
    assert refusal_of(many, at("dashscope")).code == "invalid_value"


def test_a_draft_leaves_the_profile_as_it_is() -> None:
    target = at("vertex", "text-embedding-005")
    first = embeddings_calls(embed(dimensions=8), target).calls[0].body
    assert b"outputDimensionality" in first
    assert b"outputDimensionality" not in embeddings_calls(embed(), target).calls[0].body


def test_a_profile_holds_for_the_model_and_the_version() -> None:
    assert profile_of(at("openai", "text-embedding-ada-002")) is not profile_of(at("openai", "text-embedding-3-small"))
    assert "dimensions" in refusal_of(embed(dimensions=8), at("azure", "text-embedding-ada-002")).message


def test_addresses() -> None:
    assert path_with_model("/m/{model}/x", "a/b:1@2") == "/m/a%2Fb%3A1@2/x"
    eu = at("vertex", base_url="https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu")
    assert base_of(eu).startswith("https://aiplatform.eu.rep.googleapis.com/")


def test_a_header_holds_no_name_that_a_client_made_up_for_it() -> None:
    members: JsonObject = {"a\r\nx-evil: 1": 1, "é": 1, **{f"odd{number}": 1 for number in range(100)}}
    dropped = embeddings_calls(embed(unknown=members), at("jina"), "drop").dropped
    assert dropped[:2] == ("unknown", "odd0")
    assert len(dropped) == 20
