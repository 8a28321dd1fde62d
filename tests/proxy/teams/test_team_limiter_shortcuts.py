"""Shortcuts for good requests compared with the code that they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.pricing import cost
from proxy.limits.limit import NANO
from proxy.teams.limit_errors import limit_headers, limit_lines
from proxy.teams.team_limiter import RequestSize
from tests.proxy.teams.kit import Desk, ended, tokens_of


@given(
    st.lists(
        st.tuples(
            st.floats(0, 90),
            st.tuples(st.none() | st.integers(0, 10**5), st.none() | st.integers(0, 9000), st.integers(1, 3)),
            st.tuples(st.integers(0, 10**5), st.integers(0, 9000)),
            st.booleans(),
        ),
        max_size=8,
    ),
)
def test_each_shortcut_says_and_reserves_what_it_stands_for(
    requests: list[tuple[float, RequestSize, tuple[int, int], bool]],
) -> None:
    desk = Desk(
        "limits: {requests_per_minute: 100, tokens_per_minute: 20M, concurrent: 9}\nbudget: {usd: 5000000, per: day}"
    )
    price = desk.plan().targets[0].price
    assert price is not None
    for passed, size, (prompt, answer), ends in requests:
        desk.now += passed
        prompt_bytes, most, answers = size
        parts = desk.limiter.estimates.ratio(("t", "v/m")).parts(
            prompt_bytes or 0, (500 if most is None else most) * answers
        )
        before = desk.used()["team t: usd day"] if desk.used() else 0
        record = desk.ask(size)
        assert tokens_of(record) == (sum(parts) or 1)
        reserved = 0 if prompt_bytes is None else cost(price, Usage(*parts))
        assert reserved is not None
        wanted = None if prompt_bytes is None else round(reserved * NANO)
        assert desk.used()["team t: usd day"] - before == (wanted or 0)
        assert record.held is not None
        if ends:
            ended(record, Usage(prompt, answer))
            assert record.paid is not None
            assert record.cost == cost(price, Usage(prompt, answer))
            assert record.held.ended
        facts = desk.limiter.registry.facts(("team t",), desk.now, desk.wall)
        assert record.held.header_lines() == limit_lines(facts)
        assert limit_headers(facts) == record.held.headers()
        if not ends:
            ended(record, None, attempts=0)


def test_what_is_not_used_is_said_by_the_same_lines_until_it_is_another_limit() -> None:
    desk = Desk("limits: {requests_per_minute: 100}")
    said = []
    for limit in (100, 100, 70):
        desk.use(f"limits: {{requests_per_minute: {limit}}}")
        desk.now += 120
        record = desk.ask()
        desk.now += 120
        ended(record, Usage(1, 1))
        assert record.held is not None
        said += [record.held.header_lines(), record.held.header_lines()]
    assert said[0] is said[1] is said[2]
    assert ["limit-requests: 70" in each for each in said] == [False] * 4 + [True] * 2
