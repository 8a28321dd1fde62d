"""The failures on the status page: the last one of each deployment, without any text of a vendor."""

from dataclasses import replace

import pytest

from providers.failure import Cause, Failure, FailureKind
from proxy.deployment_health.last_failures import LastFailures, Noted, latest, summary
from proxy.upstream.transport import fail
from tests.proxy.kit.transport_calls import TARGET
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


REFUSED = Failure(
    FailureKind.CONNECT, "The upstream refused the connection.", cause=Cause.REFUSED, peer="h:1", ours=True
)


@looped(
    ("failure", "said"),
    [
        (REFUSED, "connect: The upstream refused the connection (h:1)."),
        (Failure(FailureKind.SERVER, "words of the vendor's", 500), "server, status 500"),
        (fail(FailureKind.SERVER, "It hung up.").failure, "server: It hung up."),
        (replace(fail(FailureKind.MALFORMED, "A page.").failure, status=200), "malformed, status 200: A page."),
        (Failure(FailureKind.MALFORMED, "A page.", evidence="<their words>", ours=True), "malformed: A page."),
        (
            Failure(FailureKind.AUTH, "words of the vendor's", 401),
            "auth, status 401: The upstream refused the gateway's credential.",
        ),
        (Failure(FailureKind.TRUNCATED, "words of the vendor's"), "truncated"),
    ],
)
def test_a_failure_is_told_in_words_of_our_own(failure: Failure, said: str) -> None:
    assert summary(failure) == said


def test_the_last_failure_of_each_deployment_is_kept_with_its_time() -> None:
    now = [10.0]
    kept = LastFailures(lambda: now[0])
    kept.note(TARGET, Failure(FailureKind.SERVER, "", 500))
    now[0] = 12.5
    kept.note(TARGET, REFUSED)
    assert kept.noted == {TARGET.label: Noted("v/m/default", 12.5, summary(REFUSED))}


def test_what_a_request_is_to_blame_for_is_no_failure_of_the_deployment() -> None:
    kept = LastFailures(lambda: 0.0)
    kept.note(TARGET, Failure(FailureKind.INVALID_REQUEST, "", 400))
    assert kept.noted == {}


def test_names_that_clients_make_up_take_one_place_and_the_last_is_told() -> None:
    kept = LastFailures(lambda: 0.0)
    row = replace(TARGET, model_key="v/*")
    for number in range(100):
        kept.note(replace(row, model=f"m{number}"), REFUSED)
    assert list(kept.noted) == ["v/*/default"]
    assert kept.noted["v/*/default"].name == "v/m99/default"


def test_a_deployment_that_a_new_table_does_not_have_is_forgotten() -> None:
    kept = LastFailures(lambda: 0.0)
    kept.note(TARGET, REFUSED)
    kept.keep([TARGET.label, "v/n/default"])
    assert list(kept.noted) == [TARGET.label]
    kept.keep(["v/n/default"])
    assert kept.noted == {}


def test_of_several_processes_the_one_that_saw_it_last_tells() -> None:
    early, late = Noted("a", 1.0, "timeout"), Noted("a", 2.0, "auth")
    assert latest([{"a": late}, {"a": early, "b": early}]) == {"a": late, "b": early}
