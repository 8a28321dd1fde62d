"""What Gemini's models take to set their thinking, as data, and the setting for each word of effort.

Sources: pydantic-ai 2.68.0 `profiles/google`, whose authors tried each model, and litellm 1.109.1's model map; budgets
by word from the "OpenAI compatibility" page, which the vendor's own endpoint follows; "Thinking" page, November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

MINIMAL, LOW, MEDIUM, HIGH = "MINIMAL", "LOW", "MEDIUM", "HIGH"

_ORDER = (MINIMAL, LOW, MEDIUM, HIGH)


@dataclass(frozen=True, slots=True)
class ThinkingRule:
    """How one family of models is told how much to think: by a level, by a budget of tokens, or not at all.

    `least` and `most` bound the budget, `stops` says that a budget of 0 turns thinking off.
    """

    levels: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    stops: bool = False

    @property
    def thinks(self) -> bool:
        """Whether the models think at all."""
        return bool(self.levels) or self.most > 0

    def level(self, word: str) -> tuple[str, bool]:
        """Return the level for a word of effort, and whether it is what the word says.

        A level that the models lack becomes the next higher one, or the highest.
        """
        wanted = _LEVELS[word]
        above = _ORDER[_ORDER.index(wanted) :]
        found = next((level for level in above if level in self.levels), self.levels[-1])
        return found, found == word.upper()

    def budget(self, tokens: int) -> int:
        """Return the nearest budget that the models take; -1 leaves it to them."""
        if tokens == -1 or (tokens == 0 and self.stops):
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
"""Levels by word. No model is documented to take the API's XHIGH."""

BUDGETS: Mapping[str, int] = {
    "none": 0,
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 32768,
}
"""Thinking tokens by word, before a model's own bounds."""

WORDS = tuple(_LEVELS)
"""Every word of effort, the least first."""

_NONE = ThinkingRule()
_BY_BUDGET = ThinkingRule(least=1, most=24576, stops=True)
_ALL = ThinkingRule((MINIMAL, LOW, MEDIUM, HIGH))
_NO_MINIMAL = ThinkingRule((LOW, MEDIUM, HIGH))
_RULES: tuple[tuple[re.Pattern[str], ThinkingRule], ...] = tuple(
    (re.compile(rf"(?:^|[/_-])(?:{names})"), rule)
    for names, rule in (
        (r"gemini-(?:1|2\.0)|gemini-2\.5-flash-image|gemma|learnlm|imagen", _NONE),
        (r"gemini-2\.5-pro", ThinkingRule(least=128, most=32768)),
        (r"gemini-2\.5-flash-lite", ThinkingRule(least=512, most=24576, stops=True)),
        (r"gemini-2", _BY_BUDGET),
        (r"gemini-3-pro", ThinkingRule((LOW, HIGH))),
        (r"gemini-3\.1-flash-(?:lite-)?image", ThinkingRule((MINIMAL, HIGH))),
        (r"gemini-3(?:\.[0-6])?-flash", _ALL),
    )
)
"""Rules by names of models, the first that fits."""

STOPS_ON_VERTEX = re.compile(r"(?:^|[/_-])gemini-3\.1-pro")
"""Models that take a budget of 0 on Vertex AI, though they have levels."""


@lru_cache(maxsize=4096)
def thinking_rule(*names: str) -> ThinkingRule:
    """Return the rule for a model with these names.

    Other names (`gemini-flash-latest`, tuned models, newer ones) count as the newest models, which lack MINIMAL.
    """
    for name in names:
        for pattern, rule in _RULES:
            if pattern.search(name):
                return rule
    return _NO_MINIMAL
