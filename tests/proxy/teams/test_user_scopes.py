"""Limits of each end user: exact, independent of each other, bounded in number, and unchanged by reloads."""

import asyncio
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from providers.completion import Usage
from proxy.errors import GatewayError
from proxy.limits.limit import Period, user_digest
from proxy.request_record import Attempt, RequestRecord
from proxy.teams import user_scopes
from proxy.teams.team_limiter import Later
from proxy.teams.user_scopes import OLDEST_COMPARED
from tests.proxy.teams.kit import Desk, ended

HOSTILE = "x" * 1_000_000 + "\r\nset-cookie: a=b\0\ud800"


def admitted_request(desk: Desk, user: str | None, name: str = "v/m") -> RequestRecord:
    """Return an admitted request of a user."""
    record = RequestRecord("r", 0.0, "openai", "/", team="t", asked=name, user=user)
    assert desk.later(record, None, name) is None
    return record


def end_request(record: RequestRecord) -> None:
    """End a request that used one token of its prompt and one of its response."""
    record.attempts, record.usage = [Attempt("v/m/default", 0.0)], Usage(1, 1)
    assert record.held is not None
    record.held.end(record)


def passed_count(desk: Desk, user: str | None, count: int) -> int:
    """Return how many of `count` requests of a user pass."""
    found = 0
    for _ in range(count):
        try:
            admitted_request(desk, user)
            found += 1
        except GatewayError:
            continue
    return found


def scope(user: str) -> str:
    return f"user t/{user_digest(user)}"


def used(desk: Desk) -> dict[str, int]:
    return {each.scope: each.used for each in desk.limiter.users.views(desk.now, desk.wall)}


@pytest.mark.parametrize(
    "section",
    [
        "limits: {requests_per_day: 30}",
        "limits: {requests_per_minute: 30}",
        "limits: {concurrent: 30}",
        "budget: {usd: 0.0063, per: day}",
        "budget: {tokens: 3300, per: month}",
    ],
)
def test_each_user_has_the_limit_for_itself(section: str) -> None:
    """A request reserves 110 tokens, or 210 millionths of a USD."""
    desk = Desk(f"each_user: {{{section.replace('0.0063', '0.01')}}}")
    most = 47 if "usd" in section else 30
    assert [passed_count(desk, user, 60) for user in ("ann", "bob", HOSTILE)] == [most] * 3
    assert passed_count(desk, None, 60) == 60
    assert used(desk).keys() == {scope(user) for user in ("ann", "bob", HOSTILE)}


def test_the_limits_of_the_team_hold_too_and_the_narrower_one_is_named() -> None:
    desk = Desk("limits: {requests_per_day: 5}\neach_user: {limits: {requests_per_day: 3}}")
    assert [passed_count(desk, "ann", 4), passed_count(desk, "bob", 4)] == [3, 2]
    with pytest.raises(GatewayError) as of_team:
        admitted_request(desk, "bob")
    with pytest.raises(GatewayError) as of_user:
        admitted_request(desk, "ann")
    assert "team t" in of_team.value.facts.message
    assert scope("ann") in of_user.value.facts.message
    assert desk.used() == {"team t: requests day": 5}


def test_a_refusal_shows_a_digest_and_neither_name_nor_control_characters() -> None:
    desk = Desk("each_user: {limits: {requests_per_minute: 1}}")
    record = RequestRecord("r", 0.0, "openai", "/", team="t", user=HOSTILE)
    assert desk.later(record) is None
    with pytest.raises(GatewayError) as raised:
        desk.later(record)
    facts = raised.value.facts
    told = f"{facts.message}{facts.headers}{record.limit}"
    assert scope(HOSTILE) in told
    assert not any(each in told for each in ("xxx", "\r", "\n", "\0", "cookie"))
    assert desk.refused == [("t", "each user: requests per minute")]


def test_a_request_without_a_user_is_refused_only_if_one_is_required() -> None:
    desk = Desk("each_user: {required: true, limits: {requests_per_day: 9}}")
    with pytest.raises(GatewayError) as raised:
        admitted_request(desk, None)
    assert (raised.value.facts.status, raised.value.facts.param) == (400, "user")
    assert passed_count(desk, "ann", 1) == 1
    desk.use("each_user: {required: true}")
    with pytest.raises(GatewayError) as raised:
        admitted_request(desk, None)
    assert raised.value.facts.message.startswith("'user' is missing ('metadata.user_id' on /v1/messages): ")
    assert admitted_request(desk, "ann").held is None


def test_what_a_user_used_is_settled_in_its_scope() -> None:
    desk = Desk("each_user: {budget: {tokens: 1000, per: day}}")
    admitted_request(desk, "bob")
    ended(admitted_request(desk, "ann"), Usage(7, 3))
    assert used(desk) == {scope("ann"): 10, scope("bob"): 110}


def test_a_reload_keeps_what_users_used_and_ends_what_no_rule_holds_any_more() -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 9, concurrent: 9}}")
    record = admitted_request(desk, "ann")
    admitted_request(desk, "bob")
    desk.use("each_user: {limits: {requests_per_day: 9, concurrent: 9}}", ", limits: {requests_per_day: 99}")
    admitted_request(desk, "ann")
    desk.use("each_user: {limits: {requests_per_day: 2}}")
    assert passed_count(desk, "ann", 2) == 0
    assert passed_count(desk, "bob", 2) == 1
    desk.use("limits: {requests_per_day: 99}")
    assert used(desk) == {}
    ended(record, None)
    assert passed_count(desk, "ann", 2) == 2


def test_a_day_of_a_user_begins_anew_at_midnight_also_of_another_time_zone() -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 2}}")
    gone: list[str] = []
    desk.limiter.users.gone = gone.append

    def two_pass() -> None:
        for _ in range(2):
            end_request(admitted_request(desk, "ann"))
        assert passed_count(desk, "ann", 1) == 0

    two_pass()
    desk.wall += 43_200
    two_pass()
    assert gone == []
    desk.limiter.use(replace(desk.table, zone=ZoneInfo("Asia/Tokyo")))
    assert passed_count(desk, "ann", 1) == 0
    assert gone == [scope("ann")]
    desk.wall += 15 * 3600
    two_pass()


def wait_until_admitted(later: Later) -> None:
    """Wait until a request is admitted."""

    async def run() -> None:
        await later(5.0)

    asyncio.run(run())


def few(desk: Desk, most: int) -> None:
    desk.limiter.users._most = most


def test_millions_of_users_take_bounded_memory_and_none_is_refused_for_the_others() -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 2}}")
    few(desk, 100)
    for number in range(5_000):
        end_request(admitted_request(desk, f"user {number}"))
    assert len(desk.limiter.users) == 100


def test_who_used_much_is_forgotten_last_and_who_has_a_request_in_flight_never() -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 10}}")
    few(desk, 2 * OLDEST_COMPARED)
    running = [admitted_request(desk, f"running {number}") for number in range(3)]
    for _ in range(10):
        end_request(admitted_request(desk, "heavy"))
    for number in range(1_000):
        end_request(admitted_request(desk, f"user {number}"))
    assert passed_count(desk, "heavy", 1) == 0
    assert all(used(desk)[scope(f"running {number}")] == 1 for number in range(3))
    for record in running:
        end_request(record)
    many = [admitted_request(desk, f"all {number}") for number in range(3 * OLDEST_COMPARED)]
    assert len(desk.limiter.users) >= len(many)


def test_a_user_is_waited_for_until_the_ledger_has_told_what_it_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is read for a user's sums with the first request, and again after the user was forgotten."""
    desk = Desk("each_user: {limits: {requests_per_day: 3}}")
    known: set[str] = set()
    asked: list[str] = []

    async def learn(named: str, longest: float) -> bool:
        asked.append(named)
        state = desk.limiter.users.find(named)
        assert state is not None
        (counter,) = state.counters
        counter.load(counter.clock.start, 2, 0)
        known.add(named)
        return True

    users = desk.limiter.users
    users.known, users.learn, users.gone = known.__contains__, learn, known.discard

    async def first(user: str) -> RequestRecord:
        record = RequestRecord("r", 0.0, "openai", "/", team="t", user=user)
        later = desk.later(record)
        assert later is not None
        await later(5.0)
        return record

    async def run() -> None:
        ended(await first("ann"), Usage(1, 1))
        assert passed_count(desk, "ann", 2) == 0
        few(desk, 1)
        ended(await first("bob"), Usage(1, 1))
        assert len(desk.limiter.users) == 1
        await first("ann")

    asyncio.run(run())
    assert asked == [scope("ann"), scope("bob"), scope("ann")]


@pytest.mark.parametrize(("refuses", "status"), [(False, 0), (True, 503)])
def test_a_ledger_that_is_not_read_refuses_only_if_the_operator_said_so(refuses: bool, status: int) -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 3}}")

    async def learn(named: str, longest: float) -> bool:
        return False

    users = desk.limiter.users
    users.known, users.learn, users.refuses_unread = lambda named: False, learn, refuses
    record = RequestRecord("r", 0.0, "openai", "/", team="t", user="ann")

    later = desk.later(record)
    assert later is not None
    if not status:
        wait_until_admitted(later)
        return
    with pytest.raises(GatewayError) as raised:
        wait_until_admitted(later)
    assert raised.value.facts.status == status


def test_what_flows_needs_nothing_of_the_ledger() -> None:
    desk = Desk("each_user: {limits: {requests_per_minute: 1}}")
    desk.limiter.users.known = lambda named: False
    assert passed_count(desk, "ann", 2) == 1


def test_two_teams_with_one_name_of_a_user_are_two_users() -> None:
    assert user_scopes._team_of("user a/b/0f") == "a/b"
    assert user_scopes._team_of("team a") == ""


def test_what_a_user_spent_is_not_left_to_a_ledger_of_which_nothing_was_read() -> None:
    """The ledger holds the rows, but reports the user later: until then only its counter knows them."""
    desk = Desk("each_user: {limits: {requests_per_day: 9}}")
    known: set[str] = set()
    desk.limiter.users.known = known.__contains__
    record = RequestRecord("r", 0.0, "openai", "/", team="t", user="ann")
    later = desk.later(record)
    assert later is not None
    wait_until_admitted(later)
    desk.limiter.notes.mark = 1
    end_request(record)
    registry, (start, _) = desk.limiter.registry, desk.limiter.registry.periods(desk.wall)[Period.DAY]
    registry.load(Period.DAY, start, {}, 1)
    assert used(desk) == {scope("ann"): 1}
    known.add(scope("ann"))
    registry.load_some(Period.DAY, start, {scope("ann"): (4, 0, 0)}, 1)
    registry.load(Period.DAY, start, {}, 1)
    assert used(desk) == {scope("ann"): 4}
    assert not desk.limiter.notes.unloaded


def test_users_that_went_on_unknown_are_named_until_something_is_known_of_them() -> None:
    desk = Desk("each_user: {limits: {requests_per_day: 9}}")
    users, known = desk.limiter.users, set[str]()
    users.known = known.__contains__

    async def learn(named: str, longest: float) -> bool:
        return False

    users.learn = learn
    for name in ("ann", "bob", "eve"):
        later = desk.later(RequestRecord("r", 0.0, "openai", "/", team="t", user=name))
        assert later is not None
        wait_until_admitted(later)
    assert users.unknown(2) == [scope("ann"), scope("bob")]
    known.add(scope("ann"))
    assert users.unknown(9) == [scope("bob"), scope("eve")]
    desk.use("")
    assert users.unknown(9) == []
