"""A fault in a metric that counts while requests run is counted and logged, and has no other effect."""

from collections.abc import Callable

import pytest

from proxy.errors import OverloadReason
from proxy.telemetry.instruments import Instrument, Series
from proxy.telemetry.metrics import Metrics

COUNTED_WHILE_RUNNING: dict[str, Callable[[Metrics], object]] = {
    "fallback": lambda metrics: metrics.fallback("v/m", "timeout"),
    "retry_denied": lambda metrics: metrics.retry_denied("v/m"),
    "abort": lambda metrics: metrics.abort("client", "disconnect", "v/m"),
    "shed": lambda metrics: metrics.shed(OverloadReason.QUEUE),
    "cache_used": lambda metrics: metrics.cache_used("hit", "v/m"),
    "key_refused": lambda metrics: metrics.key_refused("wrong"),
    "rate_limited": lambda metrics: metrics.rate_limited("search", "requests"),
    "inflight": lambda metrics: metrics.inflight("v/m/a", 1),
    "observer_failed": lambda metrics: metrics.observer_failed("tracing"),
}


@pytest.mark.parametrize("name", COUNTED_WHILE_RUNNING)
def test_a_fault_in_a_metric_that_counts_while_requests_run_goes_no_further(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    metrics, whole = Metrics(), Instrument.series

    def series(instrument: Instrument, *values: str) -> Series:
        if instrument.name == "dragoman_observer_failures" and values == ("metrics",):
            return whole(instrument, *values)
        raise TypeError("a metric's own fault")

    with monkeypatch.context() as patch:
        patch.setattr(Instrument, "series", series)
        COUNTED_WHILE_RUNNING[name](metrics)
    assert 'dragoman_observer_failures_total{observer="metrics"} 1.0' in metrics.render().decode()
    assert caplog.messages == ["request -: a fault in metrics; the response is not affected"]
    with monkeypatch.context() as patch:
        patch.setattr(Instrument, "series", lambda *given: 1 / 0)
        COUNTED_WHILE_RUNNING[name](metrics)
