"""Limits and budgets compiled: bursts, quotas, billionths of a USD, and equal values that are the same object."""

from config.sections.limits_section import BudgetSection, LimitsSection
from config.sections.team_section import TeamSection
from config.table.table_schema import GatewayConfig
from proxy.limits.limit import NANO, UNLIMITED, EachUser, Limits, Period, Quota, Rate, ScopeBudget, Unit
from proxy.request_record import NO_TEAM
from proxy.routing.compile_limits import NO_LIMITS, LimitCompiler, compile_each_user
from tests.support.looped import looped


def limits(**keys: object) -> LimitsSection:
    return LimitsSection.model_validate(keys)


def team(**keys: object) -> TeamSection:
    return TeamSection.model_validate(keys)


def budget(**keys: object) -> ScopeBudget:
    compiler = LimitCompiler()
    compiler.team("t", team(budget=[BudgetSection.model_validate(keys)]))
    (made,) = compiler.budgets["team t"]
    return made


@looped(
    ("section", "client", "upstream"),
    [
        (limits(requests_per_minute=600), 600, 100),
        (limits(tokens_per_minute=200_000), 200_000, 33_333),
        (limits(requests_per_minute=5), 5, 1),
        (limits(requests_per_second=50), 50, 50),
        (limits(requests_per_minute=600, burst=30), 30, 30),
        (limits(requests_per_minute=600, burst=900), 900, 900),
        (limits(tokens_per_minute=600_000, burst=30), 600_000, 100_000),
    ],
)
def test_a_client_may_use_a_limit_at_once_and_a_deployment_gets_ten_seconds_of_it(
    section: LimitsSection, client: int, upstream: int
) -> None:
    (first,) = LimitCompiler().client("team t", section).rates
    (second,) = LimitCompiler().upstream("vendor v", section).rates
    assert (first.burst, second.burst) == (client, upstream)
    assert (first.unit, first.amount, first.period) == (second.unit, second.amount, second.period)


def test_seconds_and_minutes_flow_and_longer_periods_are_counted() -> None:
    keys = {f"{unit}_per_{period}": 60 for unit in Unit if unit is not Unit.USD for period in Period}
    made = LimitCompiler().client("team t", limits(**keys, concurrent=3))
    assert [(rate.unit, rate.period) for rate in made.rates] == [
        (unit, period) for unit in (Unit.REQUESTS, Unit.TOKENS) for period in (Period.SECOND, Period.MINUTE)
    ]
    assert made.quotas == tuple(
        Quota(unit, 60, period)
        for unit in (Unit.REQUESTS, Unit.TOKENS)
        for period in (Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH)
    )
    assert made.concurrent == 3


def test_a_budget_is_counted_in_whole_units() -> None:
    assert budget(usd=0.1, per="day") == ScopeBudget(Unit.USD, NANO // 10, Period.DAY)
    assert budget(usd=500, per="month", at=0.8, then="warn", unpriced="reject") == ScopeBudget(
        Unit.USD, 500 * NANO, Period.MONTH, 0.8, "warn", None, "reject"
    )
    assert budget(tokens=10_000_000, per="week", then={"route": "small"}) == ScopeBudget(
        Unit.TOKENS, 10_000_000, Period.WEEK, 1.0, "route", "small"
    )


@looped("cents", [1, 7, 29, 57, 113, 4711, 99_999_999_999])
def test_no_cent_of_a_budget_is_lost(cents: int) -> None:
    assert budget(usd=cents / 100, per="day").amount == cents * 10_000_000


def test_a_team_has_all_that_it_is_limited_to() -> None:
    compiler = LimitCompiler()
    made = compiler.team(
        "t", team(limits={"concurrent": 9, "models": {"fast": {"concurrent": 2}}}, on_limit={"queue": 5.0})
    )
    assert (made.own, made.models, made.patience) == (Limits(concurrent=9), {"fast": Limits(concurrent=2)}, 5.0)
    assert compiler.scopes == {"team t": Limits(concurrent=9), "team t model fast": Limits(concurrent=2)}


def test_nothing_written_is_no_limit_and_no_scope() -> None:
    compiler = LimitCompiler()
    assert compiler.team("t", team()) is NO_LIMITS
    assert compiler.client("key t/k", limits(burst=5)) is UNLIMITED
    assert (NO_LIMITS.own, dict(NO_LIMITS.models), NO_LIMITS.patience) == (UNLIMITED, {}, 0.0)
    assert (compiler.scopes, compiler.budgets) == ({}, {})


def test_equal_limits_are_one_value() -> None:
    compiler = LimitCompiler()
    sections = [team(limits={"requests_per_minute": 5}, budget=[BudgetSection(usd=5, per="day")]) for _ in range(3)]
    made = [compiler.team(f"t{number}", section) for number, section in enumerate(sections)]
    assert made[0] is made[1] is made[2]
    assert list(compiler.scopes) == ["team t0", "team t1", "team t2"]
    assert compiler.client("key t0/k", limits(requests_per_minute=5)) is made[0].own
    assert compiler.budgets["team t0"] is compiler.budgets["team t1"] is compiler.budgets["team t2"]
    assert made[0].own.rates == (Rate(Unit.REQUESTS, 5, Period.MINUTE, 5),)


def test_a_team_s_users_have_its_own_limits_or_those_of_the_config_file() -> None:
    teams = {
        "own": {"each_user": {"limits": {"requests_per_minute": 5}, "budget": [{"usd": 1, "per": "day"}]}},
        "none": {"each_user": {}},
        "built-in": {},
    }
    keys = {"version": 1, "each_user": {"limits": {"concurrent": 2}, "required": True}}
    found = compile_each_user(GatewayConfig.model_validate({**keys, "teams": teams}))
    assert found == {
        "own": EachUser(
            Limits((Rate(Unit.REQUESTS, 5, Period.MINUTE, 5),)), (ScopeBudget(Unit.USD, NANO, Period.DAY),)
        ),
        "built-in": EachUser(Limits(concurrent=2), required=True),
    }
    assert compile_each_user(GatewayConfig.model_validate(keys)) == {NO_TEAM: found["built-in"]}
    assert compile_each_user(GatewayConfig.model_validate({"version": 1})) == {}
