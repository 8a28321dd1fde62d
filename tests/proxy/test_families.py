"""What several processes have counted, as if one had."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.families import OWN, Family, lasting, merged
from proxy.metrics import Metrics, exposition
from proxy.worker import FAMILIES
from tests.proxy.test_metrics import finished


def counter(value: float, **labels: str) -> Family:
    """A counter with one series."""
    return Family(
        "dragoman_requests", "counter", "Requests.", ((("dragoman_requests_total", tuple(labels.items())), value),)
    )


def gauge(name: str, value: float, **labels: str) -> Family:
    """A gauge with one series."""
    return Family(name, "gauge", "A gauge.", (((name, tuple(labels.items())), value),))


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
}


@pytest.mark.parametrize(("name", "whole"), WHOLES.items())
def test_of_what_was_measured_there_are_parts_or_the_worst(name: str, whole: float) -> None:
    (found,) = merged([], [[gauge(name, 3)], [gauge(name, 2)]])
    assert found.samples == (((name, ()), whole),)


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_the_loading_process_knows_is_not_asked_of_the_others(name: str) -> None:
    (found,) = merged([gauge(name, 1)], [[gauge(name, 5)]])
    assert found.samples == (((name, ()), 1),)


def test_only_counts_outlive_their_process() -> None:
    assert lasting([counter(1), gauge("dragoman_inflight_requests", 4)]) == [counter(1)]


def test_families_say_what_the_exposition_says() -> None:
    metrics = Metrics()
    metrics.config("0123456789abcdef")
    for status in (200, 200, 503):
        metrics.observe(finished(status=status))
    metrics.inflight("v/m/d", 1)
    travelled = FAMILIES.validate_json(FAMILIES.dump_json(metrics.families()))
    assert exposition(travelled) == metrics.render()


def test_histograms_of_several_processes_are_one_histogram() -> None:
    one, other = Metrics(), Metrics()
    for metrics in (one, one, other):
        metrics.observe(finished())
    text = exposition(merged(Metrics().families(), [one.families(), other.families()])).decode()
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("dragoman_request_duration_seconds")
    }
    assert samples["dragoman_request_duration_seconds_count", None] == 3
    assert samples["dragoman_request_duration_seconds_bucket", "+Inf"] == 3
