"""The failed requests that are recorded, their recorded fields, and the bounds of both."""

import orjson
from pydantic import TypeAdapter

from providers.failure import GATEWAY_MESSAGES, FailureKind
from proxy.admin.failed_requests import (
    MOST_ATTEMPTS,
    MOST_FAILED,
    MOST_MESSAGE,
    MOST_NAME,
    MOST_REFUSED,
    FailedRequest,
    FailedRequests,
    clipped,
    newest_of,
)
from proxy.request_outcomes import RefusingLimit
from proxy.request_record import Attempt, Outcome, RequestRecord
from tests.support.looped import looped


def record(name: str, outcome: Outcome = "upstream_error", *attempts: Attempt) -> RequestRecord:
    made = RequestRecord(name, 10.0, "openai", "/v1/completions", finished=10.25, outcome=outcome, status=502)
    made.team, made.asked, made.code, made.attempts = "search", "v/m", "upstream_error", list(attempts)
    return made


def recorded_requests(*records: RequestRecord) -> tuple[FailedRequest, ...]:
    times = iter(range(len(records)))
    requests = FailedRequests(lambda: float(next(times)))
    for each in records:
        requests.add(each, None)
    return requests.newest()


def test_a_failure_is_kept_with_its_attempts_and_their_causes_in_our_words() -> None:
    refused = Attempt("v/m/a", 10.0, 10.1, "connect", None, "The upstream refused.", cause="refused")
    failed = Attempt("v/*/b", 10.1, 10.25, "quota", 429, "Vendor: your prompt 'x'.", name="v/other/b")
    (found,) = recorded_requests(record("req-1", "upstream_error", refused, failed))
    assert (found.request_id, found.team, found.model, found.status) == ("req-1", "search", "v/m", 502)
    assert (found.outcome, found.code, found.milliseconds) == ("upstream_error", "upstream_error", 250)
    told = [(each.deployment, each.outcome, each.status, each.milliseconds, each.message) for each in found.attempts]
    assert told == [
        ("v/m/a", "connect", None, 100, "refused: The upstream refused."),
        ("v/other/b", "quota", 429, 150, GATEWAY_MESSAGES[FailureKind.QUOTA]),
    ]


@looped("outcome", ["ok", "shed", "client_gone"])
def test_what_is_nobody_s_failure_is_not_kept(outcome: Outcome) -> None:
    assert recorded_requests(record("r", outcome)) == ()


def test_refused_clients_push_out_no_failure() -> None:
    failed = [record(f"failed-{number}", "timeout") for number in range(MOST_FAILED + 5)]
    found = recorded_requests(*failed, *(record(f"denied-{number}", "denied") for number in range(500)))
    names = [each.request_id for each in found]
    assert len(names) == MOST_FAILED + MOST_REFUSED
    assert names[0] == "denied-499"
    assert names[MOST_REFUSED] == f"failed-{MOST_FAILED + 4}"
    assert names[-1] == "failed-5"


def test_of_several_processes_the_newest_are_kept() -> None:
    one, other = (
        recorded_requests(*(record(f"a{n}") for n in range(60))),
        recorded_requests(*(record(f"b{n}") for n in range(60))),
    )
    found = newest_of([one, other])
    assert len(found) == MOST_FAILED
    assert {each.request_id for each in found[:2]} == {"a59", "b59"}


def test_what_clients_and_vendors_choose_is_cut() -> None:
    attempts = [
        Attempt("v/*/a", 1.0, 2.0, "connect", None, "m" * 10**6, cause="dns", name="n" * 10**6) for _ in range(50)
    ]
    hostile = record("r" * 128, "upstream_error", *attempts)
    hostile.asked = "\udcff<b>" * 10**5
    found = recorded_requests(*(hostile for _ in range(MOST_FAILED)))
    assert len(found[0].attempts) == MOST_ATTEMPTS
    assert found[0].more == 50 - MOST_ATTEMPTS
    assert len(found[0].model) == MOST_NAME
    assert len(found[0].attempts[0].message) == MOST_MESSAGE
    dumped = TypeAdapter(tuple[FailedRequest, ...]).dump_json(found)
    assert len(dumped) < 400_000
    assert orjson.loads(dumped)[0]["model"].startswith("?<b>?<b>")


@looped(("text", "most", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 3, ""), ("ä\ud800", 9, "ä?")])
def test_a_cut_text_says_so_and_can_be_written(text: str, most: int, shown: str) -> None:
    assert clipped(text, most) == shown


def test_a_refused_request_is_kept_with_what_refused_it() -> None:
    limited, denied = record("limited", "limited"), record("denied", "denied")
    limited.limit = RefusingLimit("team search", "rate", "requests", "minute", "60 requests")
    denied.status, denied.client = 401, "192.0.2.7"
    limited.client = "192.0.2.8"
    found = {each.request_id: (each.limit, each.client) for each in recorded_requests(limited, denied)}
    assert found == {"limited": ("rate of team search: 60 requests per minute", ""), "denied": ("", "192.0.2.7")}
