"""Convert LiteLLM's limits and budgets of teams and keys to `limits` and `budget`.

LiteLLM's budgets of 1h, 1d, 7d, 30d and 1mo are reset by the calendar, as this gateway's are. Any other duration
becomes the next longer period with the same amount, so that the spending does not exceed LiteLLM's. A budget that is
never reset, or less often than monthly, becomes a monthly one.

Source: `litellm_core_utils/duration_parser.py` and the types of keys, teams and budgets in litellm 1.108.7, November
2026.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.access import ClientNames
from proxy.cli.imports.table_draft import Block, DraftValue

MIN_USD: Final = 0.01
MAX_AMOUNT: Final = 10**12
MAX_CONCURRENT: Final = 10**6
MAX_USD: Final = 10**9
WARNING_SHARE: Final = 0.8
"""The share of a budget at which it warns. A soft budget becomes a warning budget of its amount divided by this share,
because a budget that warns only at 100% looks like a mistake."""

_LIMITS: Final = (
    ("rpm_limit", "requests_per_minute"),
    ("tpm_limit", "tokens_per_minute"),
    ("tpd_limit", "tokens_per_day"),
    ("max_parallel_requests", "concurrent"),
)
_OF_MODELS: Final = (("model_rpm_limit", "requests_per_minute"), ("model_tpm_limit", "tokens_per_minute"))
_WORDS: Final = {"hourly": "1h", "daily": "1d", "weekly": "7d", "monthly": "30d"}
_DURATION: Final = re.compile(r"([0-9]{1,6})(mo|[smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800, "mo": 2_592_000}
_PERIODS: Final = ((3600, "hour"), (86400, "day"), (604_800, "week"), (2_592_000, "month"))
_LONGER_PERIOD: Final = "has no period of the calendar (hour, day, week, month): written per {}, the same amount"


@dataclass(slots=True)
class RowAllowance:
    """The limits of a team or key: general limits, limits per model by LiteLLM's names, and budgets. `is_nothing` is
    set if the team or key may use nothing."""

    limits: dict[str, int] = field(default_factory=dict)
    of_models: dict[str, dict[str, int]] = field(default_factory=dict)
    budgets: list[Block] = field(default_factory=list)
    is_nothing: bool = False

    @property
    def needs_team(self) -> bool:
        """Whether the limits require a team: keys of the configuration cannot have limits per model."""
        return bool(self.of_models)

    @property
    def is_limited(self) -> bool:
        """Whether the team or key has any limit."""
        return bool(self.limits or self.of_models or self.budgets)

    def put(self, block: Block, known: ClientNames) -> None:
        """Write the limits and budgets to a team."""
        entries: dict[str, DraftValue] = {**self.limits}
        models: dict[str, DraftValue] = {
            known.names[name]: Block({**own}) for name, own in self.of_models.items() if name in known.names
        }
        if models:
            entries["models"] = Block(models)
        block.put("limits", Block(entries) if entries else None)
        budgets: list[DraftValue] = [*self.budgets]
        block.put("budget", budgets or None)


def read_allowance(row: ForeignSection, known: ClientNames) -> RowAllowance:
    """Return the limits of a row of a team or key. Limits of its budget apply if the row itself has none."""
    metadata = row.section("metadata")
    others = [row.section(key) for key in ("litellm_budget_table",) if key in row]
    found = RowAllowance()
    for key, name in _LIMITS:
        amount = _first_number([row, *others], key)
        if amount is not None and amount >= 1:
            found.limits[name] = int(min(amount, MAX_CONCURRENT if name == "concurrent" else MAX_AMOUNT))
        elif amount is not None:
            found.is_nothing = True
    for key, name in _OF_MODELS:
        for model, amount in _of_models(metadata.section(key)):
            if model in known.names and amount >= 1:
                found.of_models.setdefault(model, {})[name] = int(min(amount, MAX_AMOUNT))
            else:
                metadata.report_key(key, f"names a model that there is not, or none of 1 or more ({model}): not taken")
    spans = [source.text("budget_duration") for source in [row, *others]]
    duration = next((span for span in spans if span is not None), None)
    if others:
        row.text("budget_id")  # the name of the budget that is read here
    _read_budgets([row, *others], duration, found)
    return found


def _first_number(sections: list[ForeignSection], key: str) -> float | None:
    values = [section.number(key) for section in sections]
    return next((value for value in values if value is not None), None)


def _of_models(section: ForeignSection) -> Iterator[tuple[str, float]]:
    for name in section.written():
        amount = section.number(name)
        if amount is not None:
            yield name, amount


def budget_of_all(settings: ForeignSection) -> Block | None:
    """Return the budget of all clients, which is `max_budget` in litellm_settings."""
    return _budget_of(settings, "max_budget", "budget_duration")


def each_user_of(settings: ForeignSection) -> Block | None:
    """Return the budget of each end user, `max_end_user_budget` in litellm_settings, which has no period."""
    budget = _budget_of(settings, "max_end_user_budget")
    return None if budget is None else Block({"budget": budget})


def _budget_of(settings: ForeignSection, key: str, duration_key: str | None = None) -> Block | None:
    amount = settings.number(key)
    if amount is None:
        return None
    found = RowAllowance()
    _add(settings, key, found, (amount, None if duration_key is None else settings.text(duration_key)))
    if found.is_nothing:
        settings.report_key(key, "permits no spending at all: not taken")
    return found.budgets[0] if found.budgets else None


def _read_budgets(sources: list[ForeignSection], duration: str | None, found: RowAllowance) -> None:
    """Read the first hard budget, all windows, and the first soft budget."""
    hard, soft = ([(source, source.number(key)) for source in sources] for key in ("max_budget", "soft_budget"))
    for source, amount in hard:
        if amount is not None:
            _add(source, "max_budget", found, (amount, duration))
            break
    for source in sources:
        for window in source.sections("budget_limits"):
            amount, span = window.number("max_budget"), window.text("budget_duration")
            window.text("reset_at")
            if amount is not None:
                _add(source, "budget_limits", found, (amount, span))
    for source, amount in soft:
        if amount is not None:
            _add_soft(source, found, amount, duration)
            break


def _add_soft(row: ForeignSection, found: RowAllowance, amount: float, duration: str | None) -> None:
    if amount < MIN_USD:
        if amount:
            row.report_key("soft_budget", f"is less than {MIN_USD} USD, the least of a budget: not taken")
        return
    per, _ = period(duration)
    whole = round(min(amount / WARNING_SHARE, MAX_USD), 2)
    found.budgets.append(Block({"usd": whole, "per": per, "at": f"{WARNING_SHARE:.0%}", "then": "warn"}))


def _add(row: ForeignSection, key: str, found: RowAllowance, budget: tuple[float, str | None]) -> None:
    amount, duration = budget
    if amount < MIN_USD:
        found.is_nothing = True
        return
    per, is_exact = period(duration)
    if not is_exact:
        row.note(key, _LONGER_PERIOD.format(per))
    found.budgets.append(Block({"usd": min(amount, MAX_USD), "per": per}))


def period(duration: str | None) -> tuple[str, bool]:
    """Return the calendar period for a duration, and whether the period is as long as the duration."""
    text = _WORDS.get((duration or "").strip().lower(), duration or "")
    parts = _DURATION.fullmatch(text)
    seconds = int(parts[1]) * _SECONDS[parts[2]] if parts else 0
    if not seconds:
        return "month", False
    return next(((name, length == seconds) for length, name in _PERIODS if length >= seconds), ("month", False))
