"""Task requests as calls to one target."""

import pytest

from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.unified_request import Task
from tests.providers.tasks.kit import answered, at, bodies, embed, numbers, openai_answer, rank


def test_a_long_batch_becomes_calls_of_what_the_vendor_takes() -> None:
    calls = embeddings_calls(embed(*"abcdefghijklmnopqrstuvwxy"), at("dashscope"))
    assert [len(body["input"]) for body in bodies(calls)] == [10, 10, 5]  # type: ignore[arg-type]
    assert {call.operation for call in calls.calls} == {Task.EMBEDDINGS}
    assert not any(call.stream for call in calls.calls)


@pytest.mark.parametrize("base64", [False, True])
def test_base64_is_asked_for_whatever_the_client_wants_and_only_numbers_in_smaller_parts(base64: bool) -> None:
    many = embed(*"a" * 2048, base64=base64)
    (body,) = bodies(embeddings_calls(many, at("openai")))
    assert body["encoding_format"] == "base64"
    parts = bodies(embeddings_calls(many, at("together")))
    assert [len(body["input"]) for body in parts] == [128] * 16  # type: ignore[arg-type]
    assert "encoding_format" not in parts[0]


def test_a_server_that_may_answer_in_numbers_all_the_same_is_asked_for_few() -> None:
    calls = embeddings_calls(embed(*"a" * 300), at("openai_compatible"))
    assert [len(body["input"]) for body in bodies(calls)] == [128, 128, 44]  # type: ignore[arg-type]


def test_the_parts_are_joined_in_order() -> None:
    request = embed(*"abcdefghijkl")
    first = openai_answer([[float(number)] for number in range(10)], 10)
    joined = answered(request, at("dashscope"), first, openai_answer([[10.0], [11.0]], 2))
    assert numbers(joined) == [[float(number)] for number in range(12)]
    assert joined.usage is not None
    assert joined.usage.prompt_tokens == 12


def test_what_documents_have_beside_their_text_is_left_out_and_named() -> None:
    calls = rerank_calls(rank("a", objects={0: {"text": "a", "id": 5}}), at("jina"))
    assert (calls.dropped, bodies(calls)[0]["documents"]) == (("documents",), ["a"])


def test_a_ranking_is_one_call() -> None:
    (call,) = rerank_calls(rank(*"x" * 900), at("jina")).calls
    assert call.operation is Task.RERANK
