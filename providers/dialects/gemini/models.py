"""The reasoning settings that Gemini's models accept, and the setting for each word of effort.

Sources: pydantic-ai 2.68.0 `profiles/google`, whose authors tested each model, and litellm 1.109.1's model map; for the
budget of each word the "OpenAI compatibility" page, which the vendor's own endpoint follows; "Thinking" page, November
2026.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

MINIMAL, LOW, MEDIUM, HIGH = "MINIMAL", "LOW", "MEDIUM", "HIGH"

_ORDER = (MINIMAL, LOW, MEDIUM, HIGH)


@dataclass(frozen=True, slots=True)
class ReasoningRule:
    """The reasoning setting of one family of models: a level, a budget of tokens, or no setting.

    `least` and `most` bound the budget. `can_switch_off` is true if a budget of 0 switches reasoning off.
    """

    levels: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    can_switch_off: bool = False

    @property
    def reasons(self) -> bool:
        """Whether the models reason at all."""
        return bool(self.levels) or self.most > 0

    def level(self, word: str) -> tuple[str, bool]:
        """Return the level for a word of effort, and whether the level means the same as the word.

        A level that the models lack becomes the next higher level if there is one, else the highest level.
        """
        wanted = _LEVELS[word]
        above = _ORDER[_ORDER.index(wanted) :]
        found = next((level for level in above if level in self.levels), self.levels[-1])
        return found, found == word.upper()

    def budget(self, tokens: int) -> int:
        """Return the nearest budget that the models accept. A budget of -1 leaves the budget to the model."""
        if tokens == -1 or (tokens == 0 and self.can_switch_off):
            return tokens
        return min(max(tokens, self.least), self.most)


_LEVELS: Mapping[str, str] = {
    "none": MINIMAL,
    "minimal": MINIMAL,
    "low": LOW,
    "medium": MEDIUM,
    "high": HIGH,
    "xhigh": HIGH,
    "max": HIGH,
}
"""The level for each word of effort. The API's level XHIGH is not used: no model is documented to accept it."""

BUDGETS: Mapping[str, int] = {
    "none": 0,
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 32768,
}
"""The budget in reasoning tokens for each word of effort, before a model's own bounds apply."""

EFFORT_WORDS = tuple(_LEVELS)
"""Every word of effort, the lowest first."""

_NO_REASONING = ReasoningRule()
_BY_BUDGET = ReasoningRule(least=1, most=24576, can_switch_off=True)
_ALL = ReasoningRule((MINIMAL, LOW, MEDIUM, HIGH))
_NO_MINIMAL = ReasoningRule((LOW, MEDIUM, HIGH))
_RULES: tuple[tuple[re.Pattern[str], ReasoningRule], ...] = tuple(
    (re.compile(rf"(?:^|[/_-])(?:{names})"), rule)
    for names, rule in (
        (r"gemini-(?:1|2\.0)|gemini-2\.5-flash-image|gemma|learnlm|imagen", _NO_REASONING),
        (r"gemini-2\.5-pro", ReasoningRule(least=128, most=32768)),
        (r"gemini-2\.5-flash-lite", ReasoningRule(least=512, most=24576, can_switch_off=True)),
        (r"gemini-2", _BY_BUDGET),
        (r"gemini-3-pro", ReasoningRule((LOW, HIGH))),
        (r"gemini-3\.1-flash-(?:lite-)?image", ReasoningRule((MINIMAL, HIGH))),
        (r"gemini-3(?:\.[0-6])?-flash", _ALL),
    )
)
"""The rules by model name. The first rule that matches counts."""

ZERO_BUDGET_ON_VERTEX = re.compile(r"(?:^|[/_-])gemini-3\.1-pro")
"""Models that accept a budget of 0 on Vertex AI, although they have levels."""


@lru_cache(maxsize=4096)
def reasoning_rule(*names: str) -> ReasoningRule:
    """Return the rule for a model with these names.

    Other names (`gemini-flash-latest`, tuned models, newer ones) count as the newest models, which lack MINIMAL.
    """
    for name in names:
        for pattern, rule in _RULES:
            if pattern.search(name):
                return rule
    return _NO_MINIMAL
