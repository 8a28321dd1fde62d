"""The reported facts of a request follow from the noted ones."""

from dataclasses import replace

import pytest

from providers.completion import Usage
from providers.pricing import Price
from proxy.request_outcomes import RefusingLimit
from proxy.request_record import Attempt, RequestRecord, fresh_id, request_id
from tests.support.looped import looped


def record() -> RequestRecord:
    return RequestRecord("id", 10.0, "openai", "/v1/completions")


def test_labels_are_bounded_before_anything_is_known() -> None:
    assert (record().team, record().model, record().outcome) == ("unknown", "other", "ok")


def test_the_deployment_is_that_of_the_last_attempt() -> None:
    made = record()
    assert made.deployment is None
    made.attempts += [Attempt("a/m/one", 11.0), Attempt("a/m/two", 12.0)]
    assert made.deployment == "a/m/two"


def test_the_duration_is_the_time_between_the_ends() -> None:
    made = record()
    made.finished = 12.5
    assert made.duration == 2.5


def test_the_cost_is_that_of_all_calls_and_unknown_without_a_price() -> None:
    unpriced, one, three = record(), record(), record()
    unpriced.usage = one.usage = three.usage = Usage(1_000_000, 0)
    one.price = three.price = Price(2, 8)
    three.billed = Usage(3_000_000, 1_000_000)
    assert (unpriced.cost, one.cost, three.cost) == (None, 2, 14)


@looped("given", ["abc", "A-1_b.c:d", "0" * 128])
def test_a_client_s_request_id_is_kept(given: str) -> None:
    assert request_id({"x-request-id": given}) == given


@looped("given", ["", " ", "a b", "0" * 129, "ü", "a\nb", "a\n", "<b>", "a;b"])
def test_a_request_id_that_may_not_be_echoed_is_replaced(given: str) -> None:
    made = request_id({"x-request-id": given})
    assert made != given
    assert request_id({"x-request-id": made}) == made


def test_an_id_is_24_hex_digits_however_small_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.request_record._bits", lambda bits: 10)
    assert fresh_id() == "00000000000000000000000a"


def test_requests_without_an_id_get_different_ones() -> None:
    assert request_id({}) != request_id({})


def test_a_limit_is_named_in_a_line() -> None:
    made = RefusingLimit("team t", "budget", "usd", "month", "5.00 USD")
    assert made.words == "budget of team t: 5.00 USD per month"
    unpriced = replace(made, kind="unpriced")
    assert unpriced.words == "budget of team t: 5.00 USD per month, which refuses a model without a price"
    assert RefusingLimit("key t/k", "concurrent", "requests", "", "4 requests").words.endswith("4 requests at once")
