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
    Referable,
    RequestedName,
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
"""The most seconds that a request may wait in a queue. A request that waits holds its body in memory, and its client
waits too."""

_THOUSANDS: Final = {"k": 10**3, "m": 10**6}
_AMOUNT: Final = r"^[0-9]{1,9}(\.[0-9]{1,3})?[kKmM]$"
PERCENT: Final = r"^[0-9]{1,3}(\.[0-9]{1,3})? ?%$"


def to_amount(value: object) -> object:
    """Convert text such as `200k` or `5M` to a number. Other values are returned unchanged, for the field to check."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_AMOUNT, value):
        raise refuse("must be a number, such as 600, 200k or 5M (k is 1,000, M is 1,000,000)")
    return int(Decimal(value[:-1]) * _THOUSANDS[value[-1].lower()])


def to_share(value: object) -> object:
    """Convert text such as `80%` to 0.8. Other values are returned unchanged. Raise an error for a number above 1,
    which is probably a percentage without its sign."""
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
"""Seconds that a request waits for a slot of a deployment with a concurrency limit. No setting changes it."""


class WrittenLimit(NamedTuple):
    """One limit of a section, and the key under which it is written."""

    key: str
    unit: LimitUnit
    period: LimitPeriod
    amount: int


class LimitsSection(Section):
    """The most that may be used. Limits per second and minute refill evenly, and `burst` may be used at once. Hours,
    days, weeks (from Monday) and months follow the calendar in `server.timezone`. A request must fit into every limit
    that applies to it, and a refused request uses up none."""

    requests_per_second: Amount = Field(default=None, description="Requests per second.")
    requests_per_minute: Amount = Field(default=None, description="Requests per minute.")
    requests_per_hour: Amount = Field(default=None, description="Requests in each hour of the clock.")
    requests_per_day: Amount = Field(default=None, description="Requests on each day.")
    requests_per_week: Amount = Field(default=None, description="Requests in each week.")
    requests_per_month: Amount = Field(default=None, description="Requests in each month.")
    tokens_per_second: Amount = Field(default=None, description="Tokens per second, of prompts and responses.")
    tokens_per_minute: Amount = Field(
        default=None,
        description="Tokens per minute, of prompts and responses. The estimated tokens of a request are reserved when "
        "it begins; its actual tokens count when it ends.",
    )
    tokens_per_hour: Amount = Field(default=None, description="Tokens in each hour of the clock.")
    tokens_per_day: Amount = Field(default=None, description="Tokens on each day.")
    tokens_per_week: Amount = Field(default=None, description="Tokens in each week.")
    tokens_per_month: Amount = Field(default=None, description="Tokens in each month.")
    concurrent: Concurrent = Field(
        default=None, description="Requests in flight at once; a stream counts until it ends."
    )
    burst: Burst = Field(
        default=None,
        description="Requests that may be used at once under the limits per second and minute. Built in: the limit "
        "itself for clients, teams and keys; for vendors, models and deployments, the requests that a limit per "
        "minute allows in 10 s.",
    )

    def amounts(self) -> Iterator[WrittenLimit]:
        """Yield the limits that are written, except `concurrent`."""
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

    models: dict[RequestedName, LimitsSection] = Field(
        default={},
        description="Further limits by the name that the team requests: a route, a model or a deployment.",
    )


class BudgetRoute(WordSection):
    """The action once a budget's share is spent: `warn` reports it in the log and in metrics, `reject` refuses
    requests, and a mapping with `route` sends the requests of the period to a cheaper name."""

    words = ("warn", "reject")
    short_form = "warn, reject"
    long_form = "{route: NAME}"

    route: TargetName = Field(
        description="The name that is used instead of the requested one: a route, a model or a deployment. Being "
        "written here allows it."
    )


class OnLimitQueue(WordSection):
    """The action for a request at a limit: `reject` returns 429 at once, a mapping with `queue` waits first."""

    words = ("reject",)
    short_form = "reject"
    long_form = "{queue: 5s}"

    queue: Patience = Field(
        description=f"The longest wait until the limit allows the request, {LONGEST_QUEUE:g}s at most."
    )


BudgetAction = Annotated[BudgetRoute | Literal["warn", "reject"], OrWord(BudgetRoute)]
OnLimit = Annotated[OnLimitQueue | Literal["reject"], OrWord(OnLimitQueue)]


class SpendingSection(Section):
    """The most that may be spent in each period, in USD or in tokens. The ledger preserves the spending across
    restarts."""

    usd: Dollars = Field(default=None, description="USD, by the prices of the models. Either this or tokens.")
    tokens: Amount = Field(default=None, description="Tokens, of prompts and responses. Either this or usd.")
    per: Annotated[BudgetPeriod, Referable()] = Field(
        description="The period, by the calendar in `server.timezone`; a week begins on Monday."
    )
    at: Share = Field(default=1.0, description="The share of the budget from which on `then` applies, such as 80%.")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.usd is None) == (self.tokens is None):
            raise refuse("must have one of usd and tokens")
        return self


class ClientSpendingSection(SpendingSection):
    """A budget of a client or of its users, with a setting for requests without a price."""

    unpriced: Unpriced = Field(
        default="ignore",
        description="Requests whose price is not known: ignore accepts them and counts them separately, reject "
        "refuses them. For a budget in USD.",
    )


class BudgetSection(ClientSpendingSection):
    """The most that clients may spend in each period, in USD or in tokens. The ledger preserves the spending across
    restarts."""

    then: BudgetAction = Field(
        default="reject",
        description="The action from then until the period ends: warn, reject (429 `insufficient_quota`, with the end "
        "of the period), or {route: NAME}.",
    )

    @property
    def route(self) -> str | None:
        """The name that is used from `at` on; `None` for another action."""
        return None if isinstance(self.then, str) else self.then.route


class TargetBudgetSection(SpendingSection):
    """The most that a vendor, a model or a deployment may cost in each period, in USD or in tokens. Models without a
    price cost 0 USD."""

    then: Annotated[Literal["warn", "reject"], Referable()] = Field(
        default="reject",
        description="The action from then until the period ends: warn, or reject. With reject, the deployments that "
        "this budget counts are skipped, and a request without any other gets 429 `insufficient_quota`.",
    )


class UserBudgetSection(ClientSpendingSection):
    """The budget of each user in each period, in USD or in tokens. The ledger preserves the spending across
    restarts."""

    then: Annotated[Literal["warn", "reject"], Referable()] = Field(
        default="reject",
        description="The action for requests of this user from then until the period ends: warn, or reject (429 "
        "`insufficient_quota`, with the end of the period).",
    )


AnyBudget: TypeAlias = BudgetSection | UserBudgetSection | TargetBudgetSection
"""A budget of any scope."""


class OneOrMany:
    """Annotation of a list. Editors accept one element instead, which the loader replaces by a list of one."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


Budgets = Annotated[list[BudgetSection], OneOrMany()]
UserBudgets = Annotated[list[UserBudgetSection], OneOrMany()]
TargetBudgets = Annotated[list[TargetBudgetSection], OneOrMany()]


class EachUserSection(Section):
    """Limits and budgets of each end user. A request names its user as `user` or `safety_identifier`, on `/v1/messages`
    as `metadata.user_id`. The same name at two teams is two users."""

    limits: LimitsSection = Field(
        default=LimitsSection(), description="The limits of each user, within the limits of the team."
    )
    budget: UserBudgets = Field(
        default_factory=list,
        description="The budget of each user, within the budget of the team: one budget, or a list of budgets that "
        "all apply.",
    )
    required: Switch = Field(
        default=False,
        description="Whether a request that names no user is refused with 400. If not, nothing of this section "
        "applies to it.",
    )

    @property
    def any(self) -> bool:
        """Whether there is any limit or budget."""
        return self.limits.any or bool(self.budget)
