"""The words of limits and budgets, as a table compiles to them, and as the log, errors, status and dry runs tell them.

A *scope* is who or what is limited: one row of `SCOPE_KINDS` for each kind. It is a text, such as `team search`: by it
limits are counted, shared between processes, summed in the ledger and shown. The client's scopes are known as soon as a
request is parsed: one at its limit refuses the request. So is an end user's, but clients may make up any number of
users. A target's are known only when it is to be called: one at its limit has the target skipped.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Final, Literal, NamedTuple


class Unit(StrEnum):
    """What is counted. USD are counted in billionths."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    USD = "usd"


INDEX: Final[Mapping[Unit, int]] = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
"""Where the amount of a unit stands among those that a request takes. Headers speak of the first two."""


class Period(StrEnum):
    """The period of a limit. Seconds and minutes are rates, which flow; longer ones are quotas, by the calendar."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


SECONDS: Final[Mapping[Period, float]] = {Period.SECOND: 1.0, Period.MINUTE: 60.0}
"""The length of the periods that flow."""

NANO: Final = 1_000_000_000
"""Billionths of a USD in one: sums of integers are equal in any order."""

MOST_TOKENS: Final = 1 << 40
"""The most tokens that a request counts as, against limits and in the ledger: clients and vendors may write any number,
and sums of all requests have to fit 64 bits."""

MOST_COST: Final = 1 << 44
"""The same in billionths of a USD: about 17,600 USD."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `burst + amount / period * t` units in any `t` seconds. `period` is one of SECONDS."""

    unit: Unit
    amount: int
    period: Period
    burst: int


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `amount` units in each calendar period, HOUR or longer, in the table's time zone."""

    unit: Unit
    amount: int
    period: Period


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one scope. `concurrent` is the most requests under way at once, None for any number."""

    rates: tuple[Rate, ...] = ()
    quotas: tuple[Quota, ...] = ()
    concurrent: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rates or self.quotas or self.concurrent is not None)


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True)
class ScopeBudget:
    """What a scope may spend in each calendar period: `amount` in billionths of a USD, or in tokens.

    `then` says what happens from `at` (0 to 1) of it on: `warn`, `reject`, or `route`, which answers by the name
    `route` instead of the one asked for. `unpriced` says whether models without a price are refused or not counted.
    """

    unit: Unit
    amount: int
    period: Period
    at: float = 1.0
    then: Literal["warn", "reject", "route"] = "reject"
    route: str | None = None
    unpriced: Literal["reject", "ignore"] = "ignore"


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """What one team is limited to beside its budgets. `models` are limits of the team on single names that clients ask
    for. `patience` is how many seconds a request may wait for a limit (0: refused at once)."""

    own: Limits = UNLIMITED
    models: Mapping[str, Limits] = field(default_factory=dict)
    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class EachUser:
    """The limits and budgets of each end user of a team. `required` refuses requests without a user."""

    limits: Limits = UNLIMITED
    budgets: tuple[ScopeBudget, ...] = ()
    required: bool = False

    @property
    def periods(self) -> frozenset[Period]:
        """The calendar periods by which anything is counted."""
        every: tuple[Quota | ScopeBudget, ...] = (*self.limits.quotas, *self.budgets)
        return frozenset(each.period for each in every)


class ScopeSide(StrEnum):
    """Whose scope it is."""

    CLIENT = "client"
    USER = "user"
    TARGET = "target"


class Subject(NamedTuple):
    """The source of scopes: the team, the label of its key (empty: none), the label of the name asked for, of a
    request that was planned further the label of its target, `vendor/model/deployment`, and the digest of the end user
    (empty: none)."""

    team: str
    key: str
    model: str
    target: str = ""
    user: str = ""

    @property
    def target_model(self) -> str:
        """The model of the target."""
        return self.target.rpartition("/")[0]


ALL: Final = "all clients"
"""The scope of everything."""


@dataclass(frozen=True, slots=True)
class ScopeKind:
    """One kind of scope: whose it is, and its text for a subject, empty for one that has none of it."""

    side: ScopeSide
    text: Callable[[Subject], str]


SCOPE_KINDS: Final = (
    ScopeKind(ScopeSide.CLIENT, lambda of: f"key {of.team}/{of.key}" if of.key else ""),
    ScopeKind(ScopeSide.CLIENT, lambda of: f"team {of.team} model {of.model}"),
    ScopeKind(ScopeSide.CLIENT, lambda of: f"team {of.team}"),
    ScopeKind(ScopeSide.CLIENT, lambda _: ALL),
    ScopeKind(ScopeSide.USER, lambda of: f"user {of.team}/{of.user}" if of.user else ""),
    ScopeKind(ScopeSide.TARGET, lambda of: f"deployment {of.target}"),
    ScopeKind(ScopeSide.TARGET, lambda of: f"model {of.target_model}"),
    ScopeKind(ScopeSide.TARGET, lambda of: f"vendor {of.target.partition('/')[0]}"),
)
"""On each side the narrowest first: of several limits that are as tight, that one is named."""


def scopes_of(side: ScopeSide, subject: Subject) -> tuple[str, ...]:
    """Return the scopes of one side that a request counts in."""
    return tuple(text for kind in SCOPE_KINDS if kind.side is side and (text := kind.text(subject)))


USER_BYTES: Final = 256
"""Of the name of an end user, in UTF-8; a longer one is known by its digest."""

_DIGEST_BYTES: Final = 16
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")


def end_user(name: str | None) -> str | None:
    """Return the name of an end user as the ledger stores it, `None` if there is no name. Clients send any text of any
    length."""
    if not name:
        return None
    if len(name) <= USER_BYTES // 4 or len(_written(name)) <= USER_BYTES:
        return name
    return user_digest(name)


def user_digest(name: str) -> str:
    """Return 32 hex digits by which an end user is counted and shown: BLAKE2b of the name, as `b2sum -l 128` prints it.
    A name that is such a digest stands for itself: on `/v1/messages` it is all that is known of a user."""
    if _DIGEST.fullmatch(name):
        return name
    return blake2b(_written(name), digest_size=_DIGEST_BYTES).hexdigest()


def _written(name: str) -> bytes:
    """Return a name as the ledger writes it, but for its length."""
    return name.replace("\0", "\ufffd").encode(errors="replace")


def user_scope(team: str, name: str) -> str:
    """Return the scope of an end user of a team."""
    return scopes_of(ScopeSide.USER, Subject(team, "", "", user=user_digest(name)))[0]


def is_user_scope(scope: str) -> bool:
    """Return whether a scope is an end user's."""
    return scope.startswith("user ")


CENTS: Final = NANO // 10
"""The least amount in USD, in billionths, that is written to the cent."""

MILLIONTHS: Final = NANO // 1_000_000
"""The least amount in USD, in billionths, that is written to the millionth; less is written in full."""


def number_words(unit: Unit, amount: int) -> str:
    """Return an amount without its unit; of USD to the cent, or to the first digits of less."""
    if unit is not Unit.USD:
        return str(amount)
    digits = 2 if amount >= CENTS or not amount else 6 if amount >= MILLIONTHS else 9
    return f"{amount / NANO:.{digits}f}"


def amount_words(unit: Unit, amount: int) -> str:
    """Return an amount with its unit."""
    word = "USD" if unit is Unit.USD else unit.value.removesuffix("s") if amount == 1 else unit.value
    return f"{number_words(unit, amount)} {word}"


def period_words(period: Period | None) -> str:
    """Return what follows an amount; None is a limit on what is under way."""
    return "at once" if period is None else f"per {period.value}"


def limit_words(limits: Limits) -> tuple[str, ...]:
    """Return each limit of a scope."""
    every: tuple[Rate | Quota, ...] = (*limits.rates, *limits.quotas)
    amounts = [
        f"{amount_words(each.unit, each.amount)} {period_words(each.period)}"
        + (f", {each.burst} in one go" if isinstance(each, Rate) and each.burst != each.amount else "")
        for each in every
    ]
    return (
        *amounts,
        *([] if limits.concurrent is None else [f"{amount_words(Unit.REQUESTS, limits.concurrent)} at once"]),
    )


def budget_words(budget: ScopeBudget) -> str:
    """Return what a budget allows."""
    return f"{amount_words(budget.unit, budget.amount).replace('.00 ', ' ')} {period_words(budget.period)}"
