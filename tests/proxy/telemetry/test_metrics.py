"""The contents of a scrape, parsed as Prometheus parses it."""

import re
import resource
import time
from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from providers.completion import Usage
from providers.pricing import Price
from proxy.conversations.stored_entries import StoredEntries
from proxy.deployment_health.concurrency_limit import Limited
from proxy.errors import OverloadReason
from proxy.request_record import Attempt, Outcome, RequestRecord
from proxy.telemetry.merged_metrics import merged
from proxy.telemetry.metrics import Metrics, exposition
from proxy.telemetry.request_counts import DURATION_BUCKETS
from proxy.version import VERSION

CACHE = {"cache_hits", "cache_stale", "cache_misses", "cache_stored"}
COUNTERS = CACHE | {
    "requests",
    "attempts",
    "tokens",
    "cost_usd",
    "unpriced_tokens",
    "unpriced_searches",
    "stream_aborts",
    "shed",
    "config_reloads",
    "label_overflows",
}
COUNTERS |= {"fallbacks", "retry_budget_denied", "rate_limited", "keys_refused", "observer_failures"}
COUNTERS |= {
    "fallbacks",
    "retry_budget_denied",
    "rate_limited",
    "keys_refused",
    "affinity",
    "hedges",
    "prompt_tokens",
    "cached_tokens",
}
COUNTERS |= {"cache_hits", "cache_stale", "cache_misses", "cache_stored"}
HISTOGRAMS = {"request_duration_seconds", "time_to_first_token_seconds", "overhead_seconds"}
GAUGES = {
    "deployment_state",
    "inflight_requests",
    "concurrency_limit",
    "event_loop_lag_seconds",
    "config_last_reload_successful",
    "config_info",
    "build_info",
}


def finished(team: str = "search", status: int = 200, outcome: Outcome = "ok") -> RequestRecord:
    """Return a streamed request of 5 s, of which 4 were the upstream's, with its first content after 2."""
    return RequestRecord(
        "id",
        100.0,
        "scale",
        "/v5/completions",
        team=team,
        asked="a name that the client made up",
        model="vendor/model",
        stream=True,
        status=status,
        outcome=outcome,
        attempts=[Attempt("vendor/model/eu", 100.5, 104.9)],
        usage=Usage(30, 12),
        waited=4.0,
        first_content=102.0,
        finished=105.0,
    )


def observe(metrics: Metrics, record: RequestRecord) -> None:
    metrics.observe(record, record.cost)


def series(metrics: Metrics) -> Mapping[str, float]:
    """Return the samples of a scrape: name with sorted labels to value."""
    return {
        f"{sample.name}{{{','.join(f'{key}={value}' for key, value in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def everything() -> Metrics:
    """Return all instruments with a value."""
    metrics = Metrics()
    record = finished()
    record.price = Price(1, 2)
    observe(metrics, record)
    metrics.inflight("vendor/model/eu", 1)
    metrics.abort("client", "disconnect", "vendor/model")
    metrics.shed(OverloadReason.MEMORY)
    metrics.fallback("vendor/model", "server")
    metrics.retry_denied("vendor/model")
    metrics.rate_limited("search", "requests per minute")
    metrics.key_refused("expired")
    metrics.observer_failed("log")
    metrics.watch(lambda: [("vendor/model/eu", 2)])
    metrics.watch_limits(lambda: [("vendor/model/eu", Limited(8, "operator", 1, 0))])
    metrics.reloaded("0" * 64)
    return metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_every_family_has_its_name_type_and_help() -> None:
    metrics = everything()
    shown = text_string_to_metric_families(metrics.render().decode())
    families = {family.name: family for family in shown if not family.name.startswith("process_")}
    kinds = {name.removeprefix("dragoman_"): family.type for name, family in families.items()}
    expected = {**dict.fromkeys(COUNTERS, "counter"), **dict.fromkeys(HISTOGRAMS, "histogram")}
    assert kinds == {**expected, **dict.fromkeys(GAUGES, "gauge")}
    assert all(name.startswith("dragoman_") and family.documentation for name, family in families.items())


def test_no_series_says_when_it_was_created(metrics: Metrics) -> None:
    observe(metrics, finished())
    assert "_created" not in metrics.render().decode()


def test_a_request_is_counted_by_names_of_the_table(metrics: Metrics) -> None:
    observe(metrics, finished())
    observe(metrics, finished())
    observe(metrics, finished(status=504, outcome="timeout"))
    found = series(metrics)
    labels = "stream=true,surface=scale,team=search"
    assert found[f"dragoman_requests_total{{code=200,model=vendor/model,outcome=ok,{labels}}}"] == 2
    assert found[f"dragoman_requests_total{{code=504,model=vendor/model,outcome=timeout,{labels}}}"] == 1
    assert found["dragoman_attempts_total{deployment=vendor/model/eu,outcome=ok}"] == 3
    assert "made up" not in metrics.render().decode()


def test_refusals_at_the_door_are_counted_together(metrics: Metrics) -> None:
    metrics.shed_before_parsing("scale", 503, OverloadReason.QUEUE, 300)
    metrics.shed_before_parsing("scale", 503, OverloadReason.QUEUE, 7)
    found = series(metrics)
    assert found["dragoman_shed_total{reason=queue}"] == 307
    assert (
        found["dragoman_requests_total{code=503,model=other,outcome=shed,stream=false,surface=scale,team=unknown}"]
        == 307
    )


def test_tokens_are_counted_by_direction(metrics: Metrics) -> None:
    observe(metrics, finished())
    found = series(metrics)
    assert found["dragoman_tokens_total{direction=input,model=vendor/model,team=search}"] == 30
    assert found["dragoman_tokens_total{direction=output,model=vendor/model,team=search}"] == 12


def test_what_tokens_cost_is_summed_where_their_price_is_known(metrics: Metrics) -> None:
    record = finished()
    observe(metrics, record)
    assert not [name for name in series(metrics) if name.startswith("dragoman_cost")]
    record.price = Price(100_000, 500_000)
    observe(metrics, record)
    observe(metrics, record)
    assert series(metrics)["dragoman_cost_usd_total{model=vendor/model,team=search}"] == 18


def test_costs_of_several_processes_are_shown_in_billionths_of_a_usd_and_never_fall() -> None:
    record = finished()
    record.usage, workers, before = Usage(1, 0), [Metrics(), Metrics(), Metrics()], 0.0
    for number in range(60):
        workers[number % 3].observe(record, 0.1 + number * 3e-10)
        text = exposition(merged([], [worker.families() for worker in workers])).decode()
        (shown,) = re.findall(r"^dragoman_cost_usd_total{.*} (.*)$", text, re.MULTILINE)
        assert len(shown.partition(".")[2]) <= 9
        assert float(shown) > before
        before = float(shown)
    assert before == pytest.approx(60 * 0.1 + 3e-10 * sum(range(60)), abs=2e-9)


def test_the_gateway_s_own_time_leaves_out_the_upstream_s(metrics: Metrics) -> None:
    observe(metrics, finished())
    found = series(metrics)
    assert (
        found["dragoman_request_duration_seconds_sum{deployment=vendor/model/eu,model=vendor/model,surface=scale}"]
        == 5.0
    )
    assert found["dragoman_overhead_seconds_sum{surface=scale}"] == 1.0
    assert found["dragoman_time_to_first_token_seconds_sum{deployment=vendor/model/eu,model=vendor/model}"] == 2.0


def test_waiting_for_a_client_is_no_overhead() -> None:
    metrics, slow = Metrics(), finished()
    slow.client_waited = 0.75
    observe(metrics, slow)
    assert series(metrics)["dragoman_overhead_seconds_sum{surface=scale}"] == 0.25


def test_clocks_that_disagree_never_make_a_negative_overhead(metrics: Metrics) -> None:
    record = finished()
    record.waited = 5.000001
    observe(metrics, record)
    assert series(metrics)["dragoman_overhead_seconds_sum{surface=scale}"] == 0.0


def test_a_request_that_got_nowhere_counts_without_attempt_tokens_or_first_token(metrics: Metrics) -> None:
    observe(metrics, RequestRecord("id", 1.0, "openai", "/nowhere", status=404, outcome="client_error", finished=1.1))
    found = series(metrics)
    assert (
        found[
            "dragoman_requests_total{code=404,model=other,outcome=client_error,stream=false,surface=openai,team=unknown}"
        ]
        == 1
    )
    assert not [name for name in found if name.startswith(("dragoman_tokens", "dragoman_att", "dragoman_time_to"))]


def test_what_is_in_flight_goes_up_and_down(metrics: Metrics) -> None:
    for change in (1, 1, -1):
        metrics.inflight("vendor/model/eu", change)
    assert series(metrics)["dragoman_inflight_requests{deployment=vendor/model/eu}"] == 1


def test_aborts_are_counted_by_side_and_reason(metrics: Metrics) -> None:
    metrics.abort("upstream", "truncated", "v/m")
    assert series(metrics)["dragoman_stream_aborts_total{model=v/m,reason=truncated,side=upstream}"] == 1


def test_a_shed_request_is_counted_with_its_reason_and_does_not_count_as_quick(metrics: Metrics) -> None:
    shed = RequestRecord("id", 1.0, "scale", "/v5/completions", status=503, outcome="shed", finished=1.00002)
    observe(metrics, shed)
    metrics.shed(OverloadReason.LOOP_LAG)
    shown = series(metrics)
    name = "dragoman_requests_total{code=503,model=other,outcome=shed,stream=false,surface=scale,team=unknown}"
    assert shown[name] == 1
    assert shown["dragoman_shed_total{reason=loop_lag}"] == 1
    assert not any("seconds_count" in name for name in shown)


def test_the_loop_s_lag_is_the_last_one_told(metrics: Metrics) -> None:
    assert series(metrics)["dragoman_event_loop_lag_seconds{}"] == 0
    metrics.lag(0.3)
    metrics.lag(0.25)
    assert series(metrics)["dragoman_event_loop_lag_seconds{}"] == 0.25


def test_only_the_table_in_force_is_named(metrics: Metrics) -> None:
    metrics.config("a" * 64)
    metrics.reloaded("b" * 64)
    found = series(metrics)
    assert [name for name in found if "config_info" in name] == [f"dragoman_config_info{{digest={'b' * 12}}}"]
    assert found["dragoman_config_reloads_total{result=success}"] == 1
    assert found["dragoman_config_last_reload_successful{}"] == 1


def test_a_refused_table_shows_until_the_next_good_one(metrics: Metrics) -> None:
    assert series(metrics)["dragoman_config_last_reload_successful{}"] == 1
    metrics.reload_failed()
    found = series(metrics)
    assert found["dragoman_config_last_reload_successful{}"] == 0
    assert found["dragoman_config_reloads_total{result=failure}"] == 1
    metrics.reloaded("c" * 64)
    assert series(metrics)["dragoman_config_last_reload_successful{}"] == 1


def test_the_version_is_there_from_the_start() -> None:
    assert series(Metrics())[f"dragoman_build_info{{version={VERSION}}}"] == 1


def renamed(number: int) -> RequestRecord:
    record = finished(team=f"team{number}")
    record.model = f"vendor/m{number}"
    record.attempts[0].deployment = f"vendor/m{number}/eu"
    return record


def test_past_the_limit_new_label_values_are_counted_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.telemetry.metrics.MAX_LABEL_SETS", 50)
    metrics = Metrics()
    for number in range(200):
        observe(metrics, renamed(number))
        metrics.inflight(f"vendor/m{number}/eu", 1)
        metrics.inflight(f"vendor/m{number}/eu", -1)
    found = series(metrics)
    requests = {name: value for name, value in found.items() if name.startswith("dragoman_requests_total")}
    assert sum(requests.values()) == 200
    other = "dragoman_requests_total{code=other,model=other,outcome=other,stream=other,surface=other,team=other}"
    assert 150 < requests[other] < 200
    overflows = {name: value for name, value in found.items() if name.startswith("dragoman_label_overflows_total")}
    assert overflows["dragoman_label_overflows_total{metric=dragoman_requests}"] == requests[other]
    for number in range(200, 300):
        observe(metrics, renamed(number))
    assert series(metrics).keys() == found.keys()
    observe(metrics, renamed(0))
    name = "dragoman_requests_total{code=200,model=vendor/m0,outcome=ok,stream=true,surface=scale,team=team0}"
    assert series(metrics)[name] == found[name] + 1
    assert {value for name, value in found.items() if name.startswith("dragoman_inflight")} == {0}


def test_two_gateways_in_one_process_do_not_share_a_registry() -> None:
    one, other = Metrics(), Metrics()
    observe(one, finished())
    assert not [name for name in series(other) if "requests_total" in name]


@pytest.mark.parametrize("seconds", [0.01, 300.0])
def test_durations_from_a_mock_s_to_a_long_answer_s_fall_into_a_bucket(seconds: float) -> None:
    assert DURATION_BUCKETS[0] <= seconds <= DURATION_BUCKETS[-1]


def test_the_state_of_a_deployment_is_what_it_is_when_it_is_shown(metrics: Metrics) -> None:
    states = [("v/m/a", 2), ("v/m/b", 0)]
    metrics.watch(lambda: states)
    assert series(metrics)["dragoman_deployment_state{deployment=v/m/a}"] == 2
    states[:] = [("v/m/b", 1)]
    shown = {name: value for name, value in series(metrics).items() if "deployment_state" in name}
    assert shown == {"dragoman_deployment_state{deployment=v/m/b}": 1}


def test_what_goes_elsewhere_and_what_is_not_tried_again_are_counted_by_names_of_the_table(metrics: Metrics) -> None:
    metrics.fallback("v/m", "timeout")
    metrics.retry_denied("v/m")
    found = series(metrics)
    assert found["dragoman_fallbacks_total{model=v/m,reason=timeout}"] == 1
    assert found["dragoman_retry_budget_denied_total{model=v/m}"] == 1


def test_what_processes_share_is_shown_where_they_share_as_it_is_when_it_is_shown() -> None:
    metrics, up = Metrics(), [True]
    assert b"shared_state" not in metrics.render()
    metrics.shared(lambda: up[0])
    assert b"dragoman_shared_state_up 1.0" in metrics.render()
    up[0] = False
    assert b"dragoman_shared_state_up 0.0" in metrics.render()


def test_the_use_of_memory_is_what_it_is_when_it_is_shown() -> None:
    metrics, used = Metrics(), [0.25]
    metrics.watch_memory(lambda: used[0])
    assert series(metrics)["dragoman_memory_used_ratio{}"] == 0.25
    used[0] = 0.5
    assert series(metrics)["dragoman_memory_used_ratio{}"] == 0.5


def test_what_is_kept_of_turns_has_gauges() -> None:
    metrics, kept = Metrics(), StoredEntries(1_000_000, 3600.0)
    metrics.watch_stored_turns(kept)
    kept.put("a", "k", b"x" * 88, 0.0)
    assert (series(metrics)["dragoman_kept_turns{}"], series(metrics)["dragoman_kept_turns_bytes{}"]) == (1.0, 600.0)


def test_stored_responses_have_gauges() -> None:
    metrics, kept = Metrics(), StoredEntries(1_000_000, 3600.0)
    metrics.watch_stored_responses(kept)
    kept.put("a", "k", b"x" * 88, 0.0)
    found = series(metrics)
    assert (found["dragoman_kept_responses{}"], found["dragoman_kept_responses_bytes{}"]) == (1.0, 600.0)


def test_a_stream_that_broke_is_told_from_one_that_did_not_though_both_began_with_200(metrics: Metrics) -> None:
    for outcome in ("ok", "truncated"):
        observe(metrics, finished(outcome=outcome))
    found = {name: value for name, value in series(metrics).items() if name.startswith("dragoman_requests_total")}
    assert [name.partition("outcome=")[2].partition(",")[0] for name in found] == ["ok", "truncated"]
    assert set(found.values()) == {1}


def test_how_long_answers_take_is_told_by_deployment_and_by_none_where_none_was_asked(metrics: Metrics) -> None:
    observe(metrics, finished())
    observe(metrics, RequestRecord("id", 1.0, "openai", "/nowhere", status=404, outcome="client_error", finished=1.5))
    found = series(metrics)
    assert found["dragoman_request_duration_seconds_count{deployment=vendor/model/eu,model=vendor/model,surface=scale}"]
    assert found["dragoman_request_duration_seconds_sum{deployment=none,model=other,surface=openai}"] == 0.5


def test_what_the_process_takes_is_shown_under_the_names_that_everybody_uses() -> None:
    found = series(Metrics())
    assert found["process_resident_memory_bytes{}"] > 2**20
    assert found["process_open_fds{}"] > 0
    assert found["process_cpu_seconds_total{}"] > 0
    assert 0 < found["process_start_time_seconds{}"] <= time.time() + 1
    assert found["process_max_fds{}"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
