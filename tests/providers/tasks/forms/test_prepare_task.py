"""Requests for tasks as calls on one target."""

from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.unified_request import Task
from tests.providers.tasks.kit import answered, at, bodies, embed, numbers, openai_answer, rank


def test_a_long_batch_becomes_calls_of_what_the_vendor_takes() -> None:
    calls = embeddings_calls(embed(*"abcdefghijklmnopqrstuvwxy"), at("dashscope"))
    assert [len(body["input"]) for body in bodies(calls)] == [10, 10, 5]  # type: ignore[arg-type]
    assert {call.operation for call in calls.calls} == {Task.EMBEDDINGS}
    assert not any(call.stream for call in calls.calls)


def test_vectors_that_come_as_numbers_are_asked_for_in_smaller_parts() -> None:
    many = embed(*"a" * 300)
    assert [len(body["input"]) for body in bodies(embeddings_calls(many, at("openai")))] == [128, 128, 44]  # type: ignore[arg-type]
    compact = embed(*"a" * 300, base64=True)
    assert len(embeddings_calls(compact, at("openai")).calls) == 1
    assert len(embeddings_calls(compact, at("together")).calls) == 3


def test_the_parts_are_joined_in_order() -> None:
    request = embed(*"abcdefghijkl")
    first = openai_answer([[float(number)] for number in range(10)], 10)
    joined = answered(request, at("dashscope"), first, openai_answer([[10.0], [11.0]], 2))
    assert numbers(joined) == [[float(number)] for number in range(12)]
    assert joined.usage is not None
    assert joined.usage.prompt_tokens == 12


def test_a_ranking_is_one_call() -> None:
    (call,) = rerank_calls(rank(*"x" * 900), at("jina")).calls
    assert call.operation is Task.RERANK
