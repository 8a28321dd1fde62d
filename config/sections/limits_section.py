"""The sections of limits and budgets of all clients, teams, keys, users, vendors, models and deployments."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.sections.section import OrWord, Section, WordSection
from config.sections.value_types import (
    DURATION_PATTERN,
    AskedName,
    Referable,
    Switch,
    TargetName,
    refuse,
    to_seconds,
)

LimitUnit = Literal["requests", "tokens"]
LimitPeriod = Literal["second", "minute", "hour", "day", "week", "month"]
BudgetPeriod = Literal["hour", "day", "week", "month"]

LIMIT_UNITS: Final[tuple[LimitUnit, ...]] = ("requests", "tokens")
LIMIT_PERIODS: Final[tuple[LimitPeriod, ...]] = ("second", "minute", "hour", "day", "week", "month")

LONGEST_QUEUE: Final = 60.0
"""Seconds; a request that waits holds its body in memory, and its client waits too."""

_THOUSANDS: Final = {"k": 10**3, "m": 10**6}
_AMOUNT: Final = r"^[0-9]{1,9}(\.[0-9]{1,3})?[kKmM]$"
PERCENT: Final = r"^[0-9]{1,3}(\.[0-9]{1,3})? ?%$"


def to_amount(value: object) -> object:
    """Convert text such as `200k` or `5M` to a number. Others are returned as they are, for the field to check."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_AMOUNT, value):
        raise refuse("must be a number, such as 600, 200k or 5M (k is 1,000, M is 1,000,000)")
    return int(Decimal(value[:-1]) * _THOUSANDS[value[-1].lower()])


def to_share(value: object) -> object:
    """Convert text such as `80%` to 0.8. Other values are returned as they are, but for a percentage without its
    sign."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 1:
        raise refuse("must be a share such as 80% or 0.8, at most 100%")
    if not isinstance(value, str):
        return value
    if not re.fullmatch(PERCENT, value):
        raise refuse("must be a share such as 80% or 0.8")
    return float(Decimal(value.rstrip("% ")) / 100)


Amount = Annotated[Annotated[int, Field(ge=1, le=10**12)] | None, Referable(to_amount, _AMOUNT, "count")]
Burst = Annotated[Annotated[int, Field(ge=1, le=10**9)] | None, Referable(to_amount, _AMOUNT, "count")]
Count = Annotated[int, Field(ge=1, le=1_000_000), Referable(to_amount, _AMOUNT, "count")]
Concurrent = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, Referable(to_amount, _AMOUNT, "count")]
Dollars = Annotated[Annotated[float, Field(ge=0.01, le=10**9)] | None, Referable()]
Share = Annotated[float, Field(gt=0, le=1), Referable(to_share, PERCENT, "share")]
Patience = Annotated[float, Field(gt=0, le=LONGEST_QUEUE), Referable(to_seconds, DURATION_PATTERN, "duration")]
Unpriced = Annotated[Literal["reject", "ignore"], Referable()]

CONCURRENT_WAIT: Final = 1.0
"""Seconds that a request waits for a slot of a deployment with a concurrency limit; no setting changes it."""


class WrittenLimit(NamedTuple):
    """One limit of a section, and the key that it stands under."""

    key: str
    unit: LimitUnit
    period: LimitPeriod
    amount: int


class LimitsSection(Section):
    """The most that may be used. Seconds and minutes flow: what is used comes back evenly, and `burst` may be used at
    once. Hours, days, weeks (from Monday) and months are those of the calendar in `server.timezone`. A request must fit
    into every limit that concerns it, and a refused one uses up none."""

    requests_per_second: Amount = Field(default=None, description="Requests a second.")
    requests_per_minute: Amount = Field(default=None, description="Requests a minute.")
    requests_per_hour: Amount = Field(default=None, description="Requests in each hour of the clock.")
    requests_per_day: Amount = Field(default=None, description="Requests on each day.")
    requests_per_week: Amount = Field(default=None, description="Requests in each week.")
    requests_per_month: Amount = Field(default=None, description="Requests in each month.")
    tokens_per_second: Amount = Field(default=None, description="Tokens a second, of prompts and answers.")
    tokens_per_minute: Amount = Field(
        default=None,
        description="Tokens a minute, of prompts and answers. What a request is likely to take is held from its "
        "beginning, what it took counts at its end.",
    )
    tokens_per_hour: Amount = Field(default=None, description="Tokens in each hour of the clock.")
    tokens_per_day: Amount = Field(default=None, description="Tokens on each day.")
    tokens_per_week: Amount = Field(default=None, description="Tokens in each week.")
    tokens_per_month: Amount = Field(default=None, description="Tokens in each month.")
    concurrent: Concurrent = Field(default=None, description="Requests under way at once, streams until they end.")
    burst: Burst = Field(
        default=None,
        description="Requests that may come at once under the limits per second and minute. Built in: for clients, "
        "teams and keys the limit itself; for vendors, models and deployments what a limit per minute lets through in "
        "10 s.",
    )

    def amounts(self) -> Iterator[WrittenLimit]:
        """Yield the limits that are written, but for `concurrent`."""
        for unit in LIMIT_UNITS:
            for period in LIMIT_PERIODS:
                key = f"{unit}_per_{period}"
                if (amount := getattr(self, key)) is not None:
                    yield WrittenLimit(key, unit, period, amount)

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        return self.concurrent is not None or next(self.amounts(), None) is not None


class TeamLimitsSection(LimitsSection):
    """The most that a team may use, over all its keys, and of single models."""

    models: dict[AskedName, LimitsSection] = Field(
        default={},
        description="Further limits by the name that the team asks for: a route, a model or a deployment.",
    )


class BudgetRoute(WordSection):
    """What happens once a budget's share is spent: `warn` says so in the log and in metrics, `reject` refuses, and a
    mapping with `route` has the requests of the period answered by a cheaper name."""

    words = ("warn", "reject")
    short_form = "warn, reject"
    long_form = "{route: NAME}"

    route: TargetName = Field(
        description="The name that answers instead of the one asked for: a route, a model or a deployment. Being "
        "written here grants it."
    )


class OnLimitQueue(WordSection):
    """What happens to a request at a limit: `reject` answers 429 at once, a mapping with `queue` waits first."""

    words = ("reject",)
    short_form = "reject"
    long_form = "{queue: 5s}"

    queue: Patience = Field(
        description=f"The longest wait until the limit lets the request through, {LONGEST_QUEUE:g}s at most."
    )


BudgetAction = Annotated[BudgetRoute | Literal["warn", "reject"], OrWord(BudgetRoute)]
OnLimit = Annotated[OnLimitQueue | Literal["reject"], OrWord(OnLimitQueue)]


class SpendingSection(Section):
    """What may be spent in each period, in USD or in tokens. What is spent survives restarts in the ledger."""

    usd: Dollars = Field(default=None, description="USD, by the prices of the models. This or tokens.")
    tokens: Amount = Field(default=None, description="Tokens, of prompts and answers. This or usd.")
    per: Annotated[BudgetPeriod, Referable()] = Field(
        description="The period, by the calendar in `server.timezone`; a week begins on Monday."
    )
    at: Share = Field(default=1.0, description="From which share of it on `then` happens, such as 80%.")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.usd is None) == (self.tokens is None):
            raise refuse("must have one of usd and tokens")
        return self


class ClientSpendingSection(SpendingSection):
    """A budget of a client or of its users, with a setting for requests without a price."""

    unpriced: Unpriced = Field(
        default="ignore",
        description="Requests whose price is not known: ignore lets them pass and counts them apart, "
        "reject refuses them. For a budget in USD.",
    )


class BudgetSection(ClientSpendingSection):
    """What clients may spend in each period, in USD or in tokens. What is spent survives restarts in the ledger."""

    then: BudgetAction = Field(
        default="reject",
        description="What happens then, until the period ends: warn, reject (429 `insufficient_quota`, with the end of "
        "the period), or {route: NAME}.",
    )

    @property
    def route(self) -> str | None:
        """The name that answers from `at` on, if one does."""
        return None if isinstance(self.then, str) else self.then.route


class TargetBudgetSection(SpendingSection):
    """What a vendor, a model or a deployment may cost in each period, in USD or in tokens. Models without a price count
    as nothing of USD."""

    then: Annotated[Literal["warn", "reject"], Referable()] = Field(
        default="reject",
        description="What happens then, until the period ends: warn, or reject, by which deployments that count there "
        "are skipped, and a request that has no other gets 429 `insufficient_quota`.",
    )


class UserBudgetSection(ClientSpendingSection):
    """The budget of each user in each period, in USD or in tokens. Spending survives restarts in the ledger."""

    then: Annotated[Literal["warn", "reject"], Referable()] = Field(
        default="reject",
        description="The action for requests of this user from then until the period ends: warn, or reject (429 "
        "`insufficient_quota`, with the end of the period).",
    )


AnyBudget: TypeAlias = BudgetSection | UserBudgetSection | TargetBudgetSection
"""A budget of any scope."""


class OneOrMany:
    """Annotation of a list: editors accept one element in its place, which the loader makes a list of one."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


Budgets = Annotated[list[BudgetSection], OneOrMany()]
UserBudgets = Annotated[list[UserBudgetSection], OneOrMany()]
TargetBudgets = Annotated[list[TargetBudgetSection], OneOrMany()]


class EachUserSection(Section):
    """Limits and budgets of each end user: a request names its user as `user` or `safety_identifier`, on
    `/v1/messages` as `metadata.user_id`. The same name at two teams is two users."""

    limits: LimitsSection = Field(
        default=LimitsSection(), description="The limits of each user, within the limits of the team."
    )
    budget: UserBudgets = Field(
        default_factory=list,
        description="The budget of each user, within the budget of the team: one budget, or a list of them, which "
        "all hold.",
    )
    required: Switch = Field(
        default=False,
        description="Whether a request that names no user is refused with 400. If not, nothing of this section holds "
        "for it.",
    )

    @property
    def any(self) -> bool:
        """Whether there is any limit or budget."""
        return self.limits.any or bool(self.budget)
