"""The merged metrics of several processes."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.telemetry.merged_metrics import SINGLE_SOURCE, MetricFamily, WorkerCounts, lasting, merged, of_worker
from proxy.telemetry.metrics import Metrics, exposition
from proxy.workers.worker_main import FAMILIES
from tests.proxy.telemetry.test_metrics import finished, observe
from tests.support.looped import looped


def counter(value: float, **labels: str) -> MetricFamily:
    return MetricFamily(
        "dragoman_requests", "counter", "Requests.", ((("dragoman_requests_total", tuple(labels.items())), value),)
    )


def gauge(name: str, value: float, **labels: str) -> MetricFamily:
    return MetricFamily(name, "gauge", "A gauge.", (((name, tuple(labels.items())), value),))


def test_what_was_counted_is_added_series_by_series() -> None:
    (found,) = merged([], [[counter(2, team="a")], [counter(3, team="a")], [counter(7, team="b")]])
    name = "dragoman_requests_total"
    assert dict(found.samples) == {(name, (("team", "a"),)): 5, (name, (("team", "b"),)): 7}


WHOLES = {
    "dragoman_inflight_requests": 5,
    "dragoman_concurrency_limit": 5,
    "dragoman_deployment_state": 3,
    "dragoman_event_loop_lag_seconds": 3,
    "dragoman_shared_state_up": 2,
    "dragoman_targets_available": 2,
    "dragoman_memory_used_ratio": 3,
    "dragoman_ledger_trouble": 3,
}


@looped(("name", "whole"), WHOLES.items())
def test_of_what_was_measured_there_are_parts_or_the_worst(name: str, whole: float) -> None:
    (found,) = merged([], [[gauge(name, 3)], [gauge(name, 2)]])
    assert found.samples == (((name, ()), whole),)


@looped("name", sorted(SINGLE_SOURCE))
def test_what_the_loading_process_knows_is_not_asked_of_the_others(name: str) -> None:
    (found,) = merged([gauge(name, 1)], [[gauge(name, 5)]])
    assert found.samples == (((name, ()), 1),)


def test_only_counts_outlive_their_process() -> None:
    assert lasting([counter(1), gauge("dragoman_inflight_requests", 4)]) == [counter(1)]


def test_the_figures_of_one_process_are_not_kept_and_say_which_worker_s_they_are() -> None:
    cpu = MetricFamily("process_cpu_seconds", "counter", "CPU.", ((("process_cpu_seconds_total", ()), 3.0),))
    assert lasting([cpu]) == []
    (own, requests) = of_worker(2, [cpu, counter(1, team="a")])
    assert own.samples == ((("process_cpu_seconds_total", (("worker", "2"),)), 3.0),)
    assert requests == counter(1, team="a")
    (found,) = merged([cpu], [of_worker(1, [cpu]), of_worker(2, [cpu])])
    assert len(found.samples) == 3


def test_of_counts_the_larger_one_is_the_later_one_whatever_order_they_come_in() -> None:
    counts = WorkerCounts()
    for value in (2, 5, 4):
        counts.update([counter(value, team="a")])
    counts.update([counter(1, team="b")])
    (found,) = counts.families()
    name = "dragoman_requests_total"
    assert dict(found.samples) == {(name, (("team", "a"),)): 5, (name, (("team", "b"),)): 1}


def test_what_was_measured_is_as_it_was_said_last() -> None:
    counts = WorkerCounts()
    counts.update([gauge("dragoman_deployment_state", 2, deployment="a"), counter(1)])
    counts.update([gauge("dragoman_deployment_state", 0, deployment="b")])
    assert counts.families() == [gauge("dragoman_deployment_state", 0, deployment="b"), counter(1)]


def test_changes_are_what_the_whole_says_of_the_series_that_were_touched() -> None:
    metrics, counts = Metrics(), WorkerCounts()
    observe(metrics, finished())
    counts.update(metrics.changes(metrics.touched()))
    observe(metrics, finished(team="other"))
    metrics.abort("client", "disconnect", "vendor/model")
    changes = metrics.changes(metrics.touched())
    (requests,) = (family for family in changes if family.name == "dragoman_requests")
    assert [dict(labels)["team"] for (_, labels), _ in requests.samples] == ["other"]
    counts.update(FAMILIES.validate_json(FAMILIES.dump_json(changes)))
    whole = {family.name: dict(family.samples) for family in metrics.families()}
    assert {family.name for family in counts.families()} > {"dragoman_request_duration_seconds", "dragoman_tokens"}
    for family in counts.families():
        assert dict(family.samples) == whole[family.name]
    assert metrics.changes(metrics.touched()) == []


def test_what_counts_as_other_changes_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.telemetry.metrics.MAX_LABEL_SETS", 3)
    metrics = Metrics()
    for number in range(20):
        metrics.abort("client", "disconnect", f"v/m{number}")
    (aborts,) = metrics.changes(metrics.touched())
    assert {dict(labels)["model"]: value for (_, labels), value in aborts.samples} == {
        "v/m0": 1,
        "v/m1": 1,
        "v/m2": 1,
        "other": 17,
    }


def test_families_say_what_the_exposition_says() -> None:
    metrics = Metrics()
    metrics.config("0123456789abcdef")
    for status in (200, 200, 503):
        observe(metrics, finished(status=status))
    metrics.inflight("v/m/d", 1)
    travelled = FAMILIES.validate_json(FAMILIES.dump_json(metrics.families()))
    shown, said = (set(text.splitlines()) for text in (metrics.render(), exposition(travelled)))
    # The process's own metrics change while they are read.
    assert {line for line in shown ^ said if not line.startswith(b"process_")} == set()


def test_histograms_of_several_processes_are_one_histogram() -> None:
    one, other = Metrics(), Metrics()
    for metrics in (one, one, other):
        observe(metrics, finished())
    text = exposition(merged(Metrics().families(), [one.families(), other.families()])).decode()
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("dragoman_request_duration_seconds")
    }
    assert samples["dragoman_request_duration_seconds_count", None] == 3
    assert samples["dragoman_request_duration_seconds_bucket", "+Inf"] == 3
