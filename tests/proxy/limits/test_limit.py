"""The texts of limits: which are valid limits, and which are not."""

from proxy.ledger.ledger_row import storable_text
from proxy.limits.limit import (
    NANO,
    UNLIMITED,
    USER_BYTES,
    EachUser,
    Limits,
    Period,
    Quota,
    Rate,
    ScopeBudget,
    ScopeSide,
    Subject,
    Unit,
    amount_words,
    budget_words,
    end_user,
    is_user_scope,
    limit_words,
    number_words,
    period_words,
    scopes_of,
    user_digest,
    user_scope,
)
from tests.support.looped import looped


@looped(
    "limits",
    [
        Limits(rates=(Rate(Unit.REQUESTS, 60, Period.MINUTE, 60),)),
        Limits(quotas=(Quota(Unit.TOKENS, 5_000_000, Period.DAY),)),
        Limits(concurrent=1),
    ],
)
def test_limits_are_true_with_any_limit_in_them(limits: Limits) -> None:
    assert limits


def test_no_limit_is_false() -> None:
    assert not UNLIMITED


@looped(
    ("unit", "amount", "words"),
    [
        (Unit.USD, 0, "0.00 USD"),
        (Unit.USD, 1_234_567 * NANO, "1234567.00 USD"),
        (Unit.USD, 39_996_000_000, "40.00 USD"),
        (Unit.USD, 1_250_000, "0.001250 USD"),
        (Unit.USD, 1, "0.000000001 USD"),
        (Unit.TOKENS, 1000, "1000 tokens"),
        (Unit.TOKENS, 1, "1 token"),
        (Unit.REQUESTS, 1, "1 request"),
    ],
)
def test_an_amount_has_its_unit_and_of_usd_the_digits_that_matter(unit: Unit, amount: int, words: str) -> None:
    assert amount_words(unit, amount) == words
    assert number_words(unit, amount) == words.split()[0]


def test_limits_and_budgets_are_told_as_they_were_written() -> None:
    assert (period_words(None), period_words(Period.WEEK)) == ("at once", "per week")
    rates = (Rate(Unit.REQUESTS, 60, Period.MINUTE, 60), Rate(Unit.TOKENS, 100, Period.SECOND, 10))
    assert limit_words(Limits(rates, (Quota(Unit.TOKENS, 7, Period.HOUR),), 3)) == (
        "60 requests per minute",
        "100 tokens per second, 10 in one go",
        "7 tokens per hour",
        "3 requests at once",
    )
    told = [budget_words(ScopeBudget(Unit.USD, amount, Period.MONTH)) for amount in (500 * NANO, 12_340_000_000)]
    assert told == ["500 USD per month", "12.34 USD per month"]


def test_a_client_counts_in_its_key_the_name_it_asks_for_its_team_and_among_all() -> None:
    found = scopes_of(ScopeSide.CLIENT, Subject("search", "ci", "fast"))
    assert found == ("key search/ci", "team search model fast", "team search", "all clients")


def test_without_a_key_there_is_no_scope_of_one() -> None:
    assert scopes_of(ScopeSide.CLIENT, Subject("anonymous", "", "fast"))[0] == "team anonymous model fast"


def test_a_target_counts_in_itself_its_model_and_its_vendor() -> None:
    found = scopes_of(ScopeSide.TARGET, Subject("t", "", "m", "v/a/b/eu"))
    assert found == ("deployment v/a/b/eu", "model v/a/b", "vendor v")


LONG = "é" * 200


@looped(
    ("name", "known"),
    [
        (None, None),
        ("", None),
        ("ann", "ann"),
        ("a" * USER_BYTES, "a" * USER_BYTES),
        (LONG, user_digest(LONG)),
        ("\0" * 100, user_digest("\0" * 100)),
        ("x" * 10**6, user_digest("x" * 10**6)),
        ("\ud800", "\ud800"),
    ],
)
def test_the_name_of_a_user_is_bounded_and_the_ledger_s_digest_of_it_is_the_same(
    name: str | None, known: str | None
) -> None:
    assert end_user(name) == known
    if known is not None:
        assert user_digest(storable_text(known)) == user_digest(known) == user_digest(name or "")


def test_a_user_counts_by_a_digest_that_stands_for_itself() -> None:
    digest = user_digest("ann")
    assert (len(digest), user_digest(digest)) == (32, digest)
    assert user_scope("a/b", "ann") == f"user a/b/{digest}"
    assert is_user_scope(user_scope("t", "ann"))
    assert not any(map(is_user_scope, scopes_of(ScopeSide.CLIENT, Subject("user t", "ci", "fast"))))
    assert user_digest(f"{digest}\n") != digest


def test_the_periods_of_users_are_those_of_the_calendar() -> None:
    rates = Limits((Rate(Unit.REQUESTS, 60, Period.MINUTE, 60),), (Quota(Unit.TOKENS, 7, Period.HOUR),), 3)
    assert EachUser(rates, (ScopeBudget(Unit.USD, 1, Period.DAY),)).periods == {Period.HOUR, Period.DAY}
    assert EachUser().periods == frozenset()
