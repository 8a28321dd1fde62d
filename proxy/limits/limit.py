"""The types of limits and budgets that a configuration compiles to, and their wording in logs, errors and reports.

A *scope* is the subject of a limit, written as a text such as `team search`. `SCOPE_KINDS` has one row for each kind.
Limits are counted, shared between processes, summed in the ledger and shown by this text. The scopes of a client are
known when its request is parsed: the request is refused if one of them is at its limit. The same holds for an end
user's scope, but clients may invent any number of users. The scopes of a target are known only when the target is to be
called: the target is skipped if one of them is at its limit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Final, Literal, NamedTuple


class Unit(StrEnum):
    """The unit that a limit counts. USD are counted in billionths."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    USD = "usd"


INDEX: Final[Mapping[Unit, int]] = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
"""The index of each unit in the amounts that a request takes. Headers show the first two."""


class Period(StrEnum):
    """The period of a limit. Limits per second or minute are rates. Longer ones are quotas of a calendar period."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


SECONDS: Final[Mapping[Period, float]] = {Period.SECOND: 1.0, Period.MINUTE: 60.0}
"""The length of the periods of rates in seconds."""

NANO: Final = 1_000_000_000
"""Billionths of a USD in one USD. Sums of integers are equal in any order."""

MOST_TOKENS: Final = 1 << 40
"""The most tokens that one request counts, against limits and in the ledger. Clients and vendors may send any number,
and the sum of all requests must fit in 64 bits."""

MOST_COST: Final = 1 << 44
"""The most cost that one request counts, in billionths of a USD: about 17,600 USD."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `burst + amount / period * t` units in any `t` seconds. `period` is a key of SECONDS."""

    unit: Unit
    amount: int
    period: Period
    burst: int


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `amount` units in each calendar period of an hour or longer, in the time zone of the configuration."""

    unit: Unit
    amount: int
    period: Period


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one scope. `concurrent` is the most requests in flight at once, `None` if there is no such
    limit."""

    rates: tuple[Rate, ...] = ()
    quotas: tuple[Quota, ...] = ()
    concurrent: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rates or self.quotas or self.concurrent is not None)


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True)
class ScopeBudget:
    """The budget of a scope for each calendar period: `amount` in billionths of a USD, or in tokens.

    `then` is the action once the part `at` (0 to 1) of the amount is spent: `warn`, `reject` or `route`. `route` sends
    requests to the model name `route` instead of the requested one. `unpriced` decides if models without a price are
    refused or not counted.
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
    """The limits of one team besides its budgets. `models` are limits of the team for single requested model names.
    `patience` is how many seconds a request may wait for a limit (0: it is refused at once)."""

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
        """The calendar periods in which anything is counted."""
        every: tuple[Quota | ScopeBudget, ...] = (*self.limits.quotas, *self.budgets)
        return frozenset(each.period for each in every)


class ScopeSide(StrEnum):
    """The side of a request that a scope belongs to."""

    CLIENT = "client"
    USER = "user"
    TARGET = "target"


class Subject(NamedTuple):
    """The labels of a request from which its scopes are made. `key` is the label of the team's key (empty if it has
    none). `model` is the label of the requested name. `target` is `vendor/model/deployment`, once the request is
    planned. `user` is the digest of the end user (empty if there is none)."""

    team: str
    key: str
    model: str
    target: str = ""
    user: str = ""

    @property
    def target_model(self) -> str:
        """The model of the target, as `vendor/model`."""
        return self.target.rpartition("/")[0]


ALL: Final = "all clients"
"""The scope of all requests."""


@dataclass(frozen=True, slots=True)
class ScopeKind:
    """One kind of scope: its side, and a function that returns its text for a subject, or an empty text if the subject
    has no such scope."""

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
"""The narrowest scope of each side comes first. If several limits are equally tight, that one is named."""


def scopes_of(side: ScopeSide, subject: Subject) -> tuple[str, ...]:
    """Return the scopes of one side in which a request is counted."""
    return tuple(text for kind in SCOPE_KINDS if kind.side is side and (text := kind.text(subject)))


USER_BYTES: Final = 256
"""The most bytes of an end user's name in UTF-8. A longer name is replaced by its digest."""

_DIGEST_BYTES: Final = 16
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")


def end_user(name: str | None) -> str | None:
    """Return the name of an end user in the form in which the ledger stores it, `None` if there is no name. Clients may
    send any text of any length."""
    if not name:
        return None
    if len(name) <= USER_BYTES // 4 or len(_written(name)) <= USER_BYTES:
        return name
    return user_digest(name)


def user_digest(name: str) -> str:
    """Return the 32 hex digits by which an end user is counted and shown: BLAKE2b of the name, as `b2sum -l 128` prints
    it. A name that already is such a digest is returned unchanged, because `/v1/messages` sends only a digest."""
    if _DIGEST.fullmatch(name):
        return name
    return blake2b(_written(name), digest_size=_DIGEST_BYTES).hexdigest()


def _written(name: str) -> bytes:
    """Return a name of any length in the form in which the ledger stores it."""
    return name.replace("\0", "\ufffd").encode(errors="replace")


def user_scope(team: str, name: str) -> str:
    """Return the scope of an end user of a team."""
    return scopes_of(ScopeSide.USER, Subject(team, "", "", user=user_digest(name)))[0]


def is_user_scope(scope: str) -> bool:
    """Return whether a scope belongs to an end user."""
    return scope.startswith("user ")


CENTS: Final = NANO // 10
"""From this amount on, in billionths of a USD, an amount is written to the cent."""

MILLIONTHS: Final = NANO // 1_000_000
"""From this amount on, in billionths of a USD, an amount is written to the millionth. A smaller one is written in full.
"""


def number_words(unit: Unit, amount: int) -> str:
    """Return an amount without its unit. USD are written to the cent, small amounts to 6 or 9 digits."""
    if unit is not Unit.USD:
        return str(amount)
    digits = 2 if amount >= CENTS or not amount else 6 if amount >= MILLIONTHS else 9
    return f"{amount / NANO:.{digits}f}"


def amount_words(unit: Unit, amount: int) -> str:
    """Return an amount with its unit."""
    word = "USD" if unit is Unit.USD else unit.value.removesuffix("s") if amount == 1 else unit.value
    return f"{number_words(unit, amount)} {word}"


def period_words(period: Period | None) -> str:
    """Return the text that follows an amount. `None` is the period of a limit on requests in flight."""
    return "at once" if period is None else f"per {period.value}"


def limit_words(limits: Limits) -> tuple[str, ...]:
    """Return a text for each limit of a scope."""
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
    """Return the amount and the period of a budget."""
    return f"{amount_words(budget.unit, budget.amount).replace('.00 ', ' ')} {period_words(budget.period)}"
