"""The values that requests add to the histograms under the conventions' names."""

from providers.completion import Usage
from proxy.request_record import RequestRecord
from proxy.tracing import gen_ai_metrics
from proxy.tracing.gen_ai_metrics import GenAiMetrics
from proxy.tracing.metric_names import (
    BY_SETTING,
    CHUNK,
    DURATION,
    FIRST_CHUNK,
    FIRST_TOKEN,
    SHAPES,
    TOKENS,
    Quantity,
)
from proxy.tracing.semantic_conventions import CalledDeployment, CalledDeployments
from tests.proxy.tracing.kit.finished import CALLED, LABEL, record

LABELS = (
    ("gen_ai.operation.name", "chat"),
    ("gen_ai.provider.name", "openai"),
    ("gen_ai.request.model", "v/m"),
    ("server.address", "api.openai.com"),
)


def counted(*records: RequestRecord, names: str = "operation") -> dict[tuple[str, str], gen_ai_metrics.HistogramValues]:
    metrics = GenAiMetrics(CALLED, BY_SETTING[names])
    for each in records:
        metrics.add(each, "POST")
    return {(each.name, each.labels[-1][1]): each for each in metrics.values()}


def test_duration_tokens_and_the_first_token() -> None:
    ended = counted(record(first_content=1.5), record(finished=1.005, usage=None))
    duration, first = ended[DURATION, "api.openai.com"], ended[FIRST_TOKEN, "api.openai.com"]
    assert duration.labels == LABELS
    assert (duration.sum, duration.counts[0], duration.counts[8], sum(duration.counts)) == (2.005, 1, 1, 2)
    assert (round(duration.least, 6), duration.most) == (0.005, 2.0)
    assert (first.sum, sum(first.counts)) == (0.5, 1)
    tokens = ended[TOKENS, "input"], ended[TOKENS, "output"]
    assert [(each.sum, each.counts[2:4]) for each in tokens] == [(10, (1, 0)), (20, (0, 1))]


def test_every_series_has_a_bucket_beyond_the_last_bound() -> None:
    for each in counted(record(first_content=1.5, finished=1000.0)).values():
        assert len(each.counts) == len(SHAPES[each.name].bounds) + 1
    assert counted(record(finished=1000.0))[DURATION, "api.openai.com"].counts[-1] == 1


def test_what_was_billed_counts_and_a_failure_is_told_by_its_outcome() -> None:
    assert counted(record(billed=Usage(100, 200)))[TOKENS, "input"].sum == 100
    assert (DURATION, "timeout") in counted(record(outcome="timeout"))


def test_what_asked_no_model_is_not_counted() -> None:
    assert counted(record(attempts=[]), record(path="/v1/models")) == {}


def test_a_new_table_names_its_deployments() -> None:
    called = CalledDeployments(CALLED.by_label)
    metrics = GenAiMetrics(called)
    metrics.add(record(), "POST")
    called.by_label = {LABEL: CalledDeployment("x_ai", "grok", "api.x.ai", 443)}
    metrics.add(record(), "POST")
    assert {dict(each.labels)["gen_ai.provider.name"] for each in metrics.values()} == {"openai", "x_ai"}


def test_series_are_bounded() -> None:
    metrics = GenAiMetrics(CALLED)
    for number in range(gen_ai_metrics.MOST_SERIES):
        metrics.add(record(model=f"v/{number}"), "POST")
    assert len([*metrics.values()]) == gen_ai_metrics.MOST_SERIES


def test_each_chunk_after_the_first_is_counted_with_the_mean_of_its_stream() -> None:
    ended = counted(record(first_content=1.5, chunks=5), record(first_content=2.0, chunks=1), record(chunks=9))
    first, chunk = ended[FIRST_CHUNK, "api.openai.com"], ended[CHUNK, "api.openai.com"]
    assert (first.sum, sum(first.counts)) == (1.5, 2)
    assert (chunk.sum, sum(chunk.counts), chunk.least, chunk.most) == (1.5, 4, 0.375, 0.375)


def test_the_names_that_are_to_follow() -> None:
    usage = Usage(100, 20, {"cached_tokens": 60, "cache_write_tokens": 0}, {"reasoning_tokens": 7})
    made = record(first_content=1.5, chunks=5, usage=usage)
    ended = counted(made, made, record(path="/v1/embeddings", usage=None), names="inference")
    prefix = "gen_ai.client.inference."
    sums = {name.removeprefix(prefix): each.sum for (name, _), each in ended.items() if name.startswith(prefix)}
    assert sums == {
        "duration": 4.0,
        "time_to_first_chunk": 1.0,
        "time_per_output_chunk": 3.0,
        "usage.input_tokens": 200,
        "usage.output_tokens": 40,
        "usage.cache_read.input_tokens": 120,
        "usage.reasoning.output_tokens": 14,
        "operation.input_tokens": 200,
        "operation.output_tokens": 40,
    }
    assert {name for name, _ in ended} - {f"{prefix}{name}" for name in sums} == {DURATION, FIRST_TOKEN}
    assert ended[DURATION, "api.openai.com"].labels[0] == ("gen_ai.operation.name", "embeddings")


def test_both_are_sent_for_the_time_between_and_none_twice() -> None:
    made = record(first_content=1.5, chunks=5)
    both, old, new = (counted(made, names=names) for names in ("both", "operation", "inference"))
    assert both.keys() == old.keys() | new.keys()
    assert both[FIRST_TOKEN, "api.openai.com"] == old[FIRST_TOKEN, "api.openai.com"]


def test_each_name_has_a_shape_and_each_quantity_a_name() -> None:
    named = {each.name for names in BY_SETTING.values() for series in names.values() for each in series}
    assert named == SHAPES.keys()
    assert BY_SETTING["inference"].keys() == set(Quantity)
