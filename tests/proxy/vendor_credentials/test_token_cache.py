"""A token and its renewal, in virtual time: which calls wait, which do not, and how often a token is fetched."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from providers.failure import FailureKind, UpstreamError
from proxy.vendor_credentials.token_cache import (
    DEADLINE,
    LONGEST_PAUSE,
    REMEMBERED,
    Bearer,
    CachedToken,
    Fetched,
    Pause,
    Token,
)
from tests.proxy.kit.transport_calls import call
from tests.proxy.kit.virtual_time import named_after, run
from tests.proxy.vendor_credentials.kit import SECRET, Fetches, Numbered, Outcome, bearer

pytestmark = pytest.mark.smoke


HOUR = 3600.0
Scene = Callable[[CachedToken], Awaitable[None]]


def fetch_times(scene: Scene, *outcomes: Outcome, takes: float = 1.0) -> list[float]:
    """Run a scene with fetches of these outcomes; return when they began."""
    fetches = Fetches(list(outcomes), takes)

    async def main() -> None:
        held = fetches.held()
        await scene(held)
        await held.aclose()
        assert len(asyncio.all_tasks()) == 1

    run(main())
    return fetches.begun


def fetches_at(begun: list[float], *outcomes: Outcome, takes: float = 1.0) -> Callable[[Scene], Callable[[], None]]:
    """Make a test of a scene in which fetches with these outcomes begin at these times."""

    def decorate(scene: Scene) -> Callable[[], None]:
        def test() -> None:
            assert fetch_times(scene, *outcomes, takes=takes) == begun

        return named_after(scene, test)

    return decorate


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(moment: float) -> None:
    await asyncio.sleep(moment - now())


async def failure(held: CachedToken) -> FailureKind:
    """Return the failure of a call that gets no token."""
    with pytest.raises(UpstreamError) as caught:
        await held.token()
    assert caught.value.failure.message == "The gateway has no valid credential for the upstream at the moment."
    return caught.value.failure.kind


# Waiting calls --------------------------------------------------------------------------------------------------------


@fetches_at([0], HOUR)
async def test_a_hundred_calls_at_once_cause_one_fetch(held: CachedToken) -> None:
    tokens = await asyncio.gather(*(held.token() for _ in range(100)))
    assert set(tokens) == {Numbered(1)}
    assert now() == 1


@fetches_at([0, HOUR - 299], HOUR)
async def test_a_token_serves_to_five_minutes_before_its_end_and_is_renewed_beside_the_calls(held: CachedToken) -> None:
    await held.token()
    await until(HOUR - 300)
    assert await held.token() == Numbered(1)
    await until(HOUR - 299)
    assert [await held.token() for _ in range(100)] == [Numbered(1)] * 100
    assert now() == HOUR - 299
    await until(HOUR - 290)
    assert await held.token() == Numbered(2)


@fetches_at([0, 81], 100.0)
async def test_a_token_that_lives_for_minutes_is_renewed_at_four_fifths_of_its_life(held: CachedToken) -> None:
    await held.token()
    for moment in (50, 79, 80, 82, 100):
        await until(1 + moment)
        await held.token()


@fetches_at([0, HOUR + 1], HOUR)
async def test_a_token_whose_end_is_past_is_waited_for(held: CachedToken) -> None:
    await held.token()
    await until(1 + HOUR)
    assert set(await asyncio.gather(held.token(), held.token())) == {Numbered(2)}
    assert now() == HOUR + 2


def test_the_last_tokens_are_remembered_for_those_who_must_not_repeat_them() -> None:
    async def scene(held: CachedToken) -> None:
        assert list(held.secrets()) == []
        for number in range(1, REMEMBERED + 3):
            await held.token()
            await until(number * (HOUR + 1))
        told = [secret.get_secret_value() for secret in held.secrets()]
        assert told == [f"{SECRET}-{number}" for number in range(3, REMEMBERED + 3)]

    fetch_times(scene, HOUR)


@fetches_at([0], HOUR)
async def test_a_call_that_gives_up_leaves_the_fetch_to_the_others(held: CachedToken) -> None:
    waiting = [asyncio.create_task(held.token()) for _ in range(3)]
    await asyncio.sleep(0.5)
    waiting[0].cancel()
    assert await asyncio.gather(*waiting[1:]) == [Numbered(1)] * 2
    assert waiting[0].cancelled()


@fetches_at([0], HOUR)
async def test_a_call_that_gives_up_alone_leaves_a_token_for_the_next(held: CachedToken) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await held.token()
    await asyncio.sleep(1)
    assert await held.token() == Numbered(1)
    assert now() == 1.5


# Failing fetches ------------------------------------------------------------------------------------------------------


@fetches_at([0, 1], "no", HOUR)
async def test_all_who_wait_for_a_fetch_that_fails_are_told_and_the_next_call_tries_again(held: CachedToken) -> None:
    kinds = await asyncio.gather(*(failure(held) for _ in range(10)))
    assert set(kinds) == {FailureKind.AUTH}
    assert await held.token() == Numbered(2)


def test_fetches_that_go_on_failing_are_further_and_further_apart_and_calls_between_them_fail_at_once() -> None:
    async def scene(held: CachedToken) -> None:
        while now() < 100:
            assert await failure(held) is FailureKind.AUTH
            await asyncio.sleep(0.25)

    begun = fetch_times(scene, "no", takes=0.0)
    assert begun == [0, 0.25, 1.25, 3.25, 7.25, 15.25, 31.25, 63.25]


@fetches_at([0, 10, 20, 30, 50, 50], "no", "no", "no", 10.0, "no", takes=0.0)
async def test_a_fetch_that_works_ends_the_pauses(held: CachedToken) -> None:
    for _ in range(3):
        await failure(held)
        await asyncio.sleep(10)
    await held.token()
    await asyncio.sleep(20)
    await failure(held)
    await failure(held)


def test_a_renewal_that_fails_leaves_the_old_token_in_use_to_its_end() -> None:
    async def scene(held: CachedToken) -> None:
        await held.token()
        while now() < HOUR:
            assert await held.token() == Numbered(1)
            await asyncio.sleep(10)
        await until(HOUR + 1)
        assert await failure(held) is FailureKind.AUTH

    begun = fetch_times(scene, HOUR, "no")
    assert begun[:8] == [0, 3301, 3311, 3321, 3331, 3341, 3351, 3371]
    assert len(begun) < 15


@fetches_at([0, DEADLINE], None, HOUR)
async def test_a_fetch_that_hangs_is_given_up(held: CachedToken) -> None:
    assert await failure(held) is FailureKind.AUTH
    assert now() == DEADLINE
    assert await held.token() == Numbered(2)


def test_a_fault_of_ours_is_told_to_who_waits_and_not_run_into_by_every_call() -> None:
    begun = []

    async def fetch() -> Fetched:
        begun.append(now())
        raise LookupError("ours")

    async def main() -> None:
        held = CachedToken("test credentials of v/m", fetch, now)
        for _ in range(2):
            with pytest.raises(LookupError, match="ours"):
                await held.token()
        assert [await failure(held) for _ in range(5)] == [FailureKind.AUTH] * 5

    run(main())
    assert begun == [0, 0]


@pytest.mark.parametrize("lifetime", [0.0, -5.0])
def test_a_token_that_has_expired_when_it_comes_is_none(lifetime: float) -> None:
    async def scene(held: CachedToken) -> None:
        assert await failure(held) is FailureKind.AUTH

    assert fetch_times(scene, lifetime) == [0]


def test_the_log_says_what_failed_and_the_token_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(held: CachedToken) -> None:
        for _ in range(3):
            await failure(held)
            await asyncio.sleep(5)
        await held.token()
        assert SECRET not in repr(held) + repr(vars(held))

    with caplog.at_level(logging.DEBUG):
        fetch_times(scene, "the endpoint answered 500", None, -1.0, HOUR)
    assert [record.getMessage() for record in caplog.records if record.name == "dragoman"] == [
        "no test credentials of v/m: the endpoint answered 500",
        "no test credentials of v/m: no response within 15 s",
        "no test credentials of v/m: the token had already expired",
    ]
    assert SECRET not in caplog.text


# Tokens that are refused --------------------------------------------------------------------------------------------


@fetches_at([0, 1], HOUR)
async def test_a_refused_token_is_replaced_and_all_who_had_it_get_the_same_new_one(held: CachedToken) -> None:
    old = await held.token()
    others = await asyncio.gather(*(held.newer_than(old) for _ in range(100)))
    assert others == [Numbered(2)] * 100
    assert await held.newer_than(old) == Numbered(2)


@fetches_at([0, 1], HOUR)
async def test_others_go_on_with_a_refused_token_until_the_new_one_is_there(held: CachedToken) -> None:
    old = await held.token()
    waiting = asyncio.create_task(held.newer_than(old))
    await asyncio.sleep(0.5)
    assert await held.token() == old
    assert await waiting == Numbered(2) == await held.token()


@fetches_at([0, 1], HOUR, "no")
async def test_a_new_token_that_cannot_be_had_leaves_the_old_one(held: CachedToken) -> None:
    old = await held.token()
    assert await held.newer_than(old) is None
    assert await held.token() == old


@fetches_at([0, 0, 0, 1, 3, 7, 15, 31], HOUR, takes=0.0)
async def test_an_upstream_that_refuses_every_token_does_not_cause_a_fetch_for_every_call(held: CachedToken) -> None:
    while now() < 60:
        token: Token | None = await held.token()
        while token is not None:
            token = await held.newer_than(token)
        await asyncio.sleep(0.25)


@fetches_at([0, 0, 0, 100, 200], HOUR, takes=0.0)
async def test_a_token_that_was_good_for_a_while_is_replaced_again(held: CachedToken) -> None:
    for moment in (0, 0, 0, 100, 200):
        await until(max(now(), moment))
        await held.newer_than(await held.token())


# Parts --------------------------------------------------------------------------------------------------------------


def test_pauses_double_to_their_longest() -> None:
    pause = Pause()
    lengths = []
    for _ in range(12):
        pause.lengthen(1000.0)
        lengths.append(next(s for s in (0, 1, 2, 4, 8, 16, 32, 60) if pause.over(1000.0 + s)))
    assert lengths == [0, 1, 2, 4, 8, 16, 32, *[int(LONGEST_PAUSE)] * 5]
    pause.end()
    assert pause.over(0.0)


def test_an_access_token_travels_as_bearer_beside_the_target_s_own_headers() -> None:
    token = Bearer(bearer("t").value, {"x-goog-user-project": bearer("p").value})
    headers = token.credential(call("https://v.example/x")).headers()
    assert headers == {"X-Org": "acme", "x-goog-user-project": "p", "Authorization": "Bearer t"}
    assert [status for status in (200, 400, 401, 403, 500) if token.refused(status, {})] == [401]
    assert "canary" not in repr(bearer())
