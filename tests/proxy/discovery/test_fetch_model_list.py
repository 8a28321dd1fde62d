"""The pages of one model list, and its end."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.model_lists.read_model_list import ListedModel, ListPage, ListStyle, read_page
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from proxy.discovery import fetch_model_list
from proxy.discovery.fetch_model_list import (
    DEADLINE,
    MAX_BYTES,
    MAX_MODELS,
    MAX_PAGES,
    FetchedList,
    UnfetchedError,
    fetch_list,
)
from proxy.upstream.transport import RepeatableError, RepeatCause
from tests.proxy.discovery.kit import Given, ScriptedTransport, listing, table
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped

TARGET = table().wildcards["v"].targets[0]
GEMINI = replace(TARGET, profile=load_profiles()["gemini"])
ANTHROPIC = replace(TARGET, profile=load_profiles()["anthropic"])


def names(found: FetchedList) -> list[str]:
    return [model.name for model in found.models]


async def failure(transport: ScriptedTransport, *targets: Target) -> str:
    with pytest.raises(UnfetchedError) as caught:
        await fetch_list(transport, targets or (TARGET,))
    assert all(given.closed or given.released for given in transport.given)
    return caught.value.reason


def pages(cursor_of: Callable[[int], str | None], each: int = 1) -> ScriptedTransport:
    """Return Gemini's list in pages of `each` models, by the cursor of the page."""

    def answer(request: UpstreamRequest) -> Given:
        number = len(made.calls) - 1
        models = [{"name": f"models/m{number}-{position}"} for position in range(each)]
        return Given(orjson.dumps({"models": models, "nextPageToken": cursor_of(number)}))

    made = ScriptedTransport(answer)
    return made


async def test_a_list_is_fetched_with_the_deployment_s_own_target_and_read_once() -> None:
    transport = ScriptedTransport(lambda request: listing("a", "b", "a", "bad name"))
    assert await fetch_list(transport, (TARGET,)) == FetchedList((ListedModel("a"), ListedModel("b")), 1)
    assert [(call.method, call.url, call.target) for call in transport.calls] == [
        ("GET", "http://127.0.0.1:1/v1/models", TARGET)
    ]
    assert all(given.released for given in transport.given)


async def test_pages_are_followed_to_the_last_one() -> None:
    transport = pages(lambda number: f"to {number + 1}/&" if number < 3 else None, 2)
    found = await fetch_list(transport, (GEMINI,))
    assert names(found) == [f"m{number}-{position}" for number in range(4) for position in range(2)]
    asked = [parse_qs(urlsplit(call.url).query).get("pageToken") for call in transport.calls]
    assert asked == [None, ["to 1/&"], ["to 2/&"], ["to 3/&"]]


async def test_a_long_page_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def noted(style: ListStyle, data: bytes) -> ListPage:
        readers.append(threading.current_thread())
        return read_page(style, data)

    monkeypatch.setattr(fetch_model_list, "read_page", noted)
    for each, beside in ((10, False), (4000, True)):
        found = await fetch_list(pages(lambda number: None, each), (GEMINI,))
        assert len(found.models) == each
        assert (readers.pop() is not threading.main_thread()) is beside


async def test_claude_s_pages_end_where_there_are_no_more() -> None:
    def answer(request: UpstreamRequest) -> Given:
        return (
            listing("b", has_more=False, last_id="b")
            if "after_id" in request.url
            else listing("a", has_more=True, last_id="a")
        )

    transport = ScriptedTransport(answer)
    assert names(await fetch_list(transport, (ANTHROPIC,))) == ["a", "b"]
    assert {call.headers["anthropic-version"] for call in transport.calls} == {"2023-06-01"}


async def test_a_page_that_leads_back_to_itself_is_the_last_one() -> None:
    transport = pages(lambda number: "same")
    assert len((await fetch_list(transport, (GEMINI,))).models) == 2


async def test_pages_without_end_are_given_up() -> None:
    transport = pages(lambda number: f"{number}")
    assert f"more than {MAX_PAGES} pages" in await failure(transport, GEMINI)
    assert len(transport.calls) == MAX_PAGES


async def test_of_a_very_long_list_a_bounded_number_is_kept_and_the_rest_counted() -> None:
    transport = pages(lambda number: f"{number}" if number < 6 else None, 1000)
    found = await fetch_list(transport, (GEMINI,))
    assert (len(found.models), found.left_out) == (MAX_MODELS, 7000 - MAX_MODELS)


async def test_a_page_above_the_limit_is_not_read_to_its_end() -> None:
    transport = ScriptedTransport(lambda request: Given(b" " * (MAX_BYTES + 1)))
    assert f"larger than {MAX_BYTES} bytes" in await failure(transport)
    assert transport.given[0].closed


@in_virtual_time
async def test_a_vendor_that_takes_too_long_is_given_up_with_its_connection() -> None:
    transport = ScriptedTransport(lambda request: listing("a", wait=10 * DEADLINE))
    assert await failure(transport) == f"no whole list within {DEADLINE:g} s"
    assert transport.given[0].closed


@in_virtual_time
async def test_the_time_is_that_of_all_pages_and_deployments_together() -> None:
    def answer(request: UpstreamRequest) -> Given:
        number = len(transport.calls)
        return Given(orjson.dumps({"models": [], "nextPageToken": f"{number}"}), wait=DEADLINE / 4)

    transport = ScriptedTransport(answer)
    assert "no whole list" in await failure(transport, GEMINI)
    assert len(transport.calls) <= 5


@looped(
    ("answer", "reason"),
    [
        (Given(b'{"error": {"message": "sk-secret is wrong"}}', 401), "auth, status 401"),
        (Given(b'{"error": {"message": "slow down, sk-secret"}}', 429), "rate_limited, status 429"),
        (Given(b"<html>sk-secret</html>", 404), "not_found, status 404"),
        (Given(b"sk-secret", 500), "server, status 500"),
        (Given(b"", 302, headers={"location": "http://169.254.169.254/sk-secret"}), "status 302"),
        (Given(b"<html>sk-secret</html>"), "malformed: The upstream's response is not valid JSON."),
        (Given(b'{"sk-secret": []}'), "malformed: The upstream's response is not a list of models."),
    ],
)
async def test_a_failure_is_told_in_our_own_words(answer: Given, reason: str) -> None:
    told = await failure(ScriptedTransport(lambda request: answer))
    assert reason in told
    assert "sk-secret" not in told


async def test_the_next_deployment_is_asked_where_one_gives_no_list() -> None:
    down = UpstreamError(Failure(FailureKind.CONNECT, "refused", ours=True))
    other = replace(TARGET, base_url="http://127.0.0.1:3")

    def answer(request: UpstreamRequest) -> Given | UpstreamError:
        return down if request.target is TARGET else listing("a")

    transport = ScriptedTransport(answer)
    assert names(await fetch_list(transport, (TARGET, other))) == ["a"]
    assert "connect" in await failure(transport, TARGET, TARGET)


async def test_a_call_is_made_again_once_for_each_cause_that_says_nothing_about_the_vendor() -> None:
    stale = RepeatableError(Failure(FailureKind.STALE, "gone", ours=True), RepeatCause.STALE_CONNECTION)
    refreshed = RepeatableError(Failure(FailureKind.AUTH, "old", ours=True), RepeatCause.CREDENTIAL_REFRESHED)
    script: Iterator[Given | UpstreamError] = iter([stale, refreshed, listing("a")])
    transport = ScriptedTransport(lambda request: next(script))
    assert names(await fetch_list(transport, (TARGET,))) == ["a"]
    assert transport.repeats[2] == (RepeatCause.STALE_CONNECTION, RepeatCause.CREDENTIAL_REFRESHED)
    again = ScriptedTransport(lambda request: stale)
    assert "stale" in await failure(again)
    assert len(again.calls) == 2


async def test_a_profile_without_a_list_is_asked_for_none() -> None:
    transport = ScriptedTransport(lambda request: listing("a"))
    assert "no list" in await failure(transport, replace(TARGET, profile=load_profiles()["vertex"]))
    assert transport.calls == []
