"""How many tokens a request will take, before it is sent: from its bytes and its own limit, corrected by what requests
of the same team and model took before.

Without the correction, requests reserve four times what they use (half of them more than 3.2 times too much), because
few answers come near `max_tokens`.
"""

from dataclasses import dataclass, field
from typing import Final

from proxy.bounded_dict import BoundedDict

BYTES_EACH: Final = 4
"""Bytes of text in a token, about."""

OUTPUT: Final = 4096
"""Tokens of an answer, where neither the request nor the deployment limits it."""

NEW: Final = 0.02
KEPT: Final = 1 - NEW
"""How much of a ratio each request replaces, and how much of it stays."""

_NEW_BYTES: Final = NEW * BYTES_EACH

LEAST: Final = 0.01
MOST: Final = 1.2
"""Bounds of the ratios: one odd request must not open or close a limit for the next ones."""

PAIRS: Final = 16_384
"""Pairs of team and model that are remembered."""


@dataclass(slots=True, eq=False)
class TokenRatio:
    """Prompt tokens to their estimate, and tokens of the answer to the most that were allowed."""

    prompt: float = 1.0
    answer: float = 1.0

    def parts(self, prompt_bytes: int, max_tokens: int) -> tuple[int, int]:
        """Return the tokens of the prompt and of the answer, which have different prices."""
        return round(prompt_bytes / BYTES_EACH * self.prompt), round(max_tokens * self.answer)

    def learn(self, prompt_bytes: int, max_tokens: int, prompt: int, answer: int) -> None:
        """Note the tokens of the prompt and of the answer that a request used."""
        if prompt_bytes > 0:
            moved = KEPT * self.prompt + _NEW_BYTES * prompt / prompt_bytes
            self.prompt = MOST if moved > MOST else moved if moved > LEAST else LEAST
        if max_tokens > 0:
            moved = KEPT * self.answer + NEW * answer / max_tokens
            self.answer = MOST if moved > MOST else moved if moved > LEAST else LEAST


UNKNOWN: Final = TokenRatio()
"""That of a team and a model of which nothing was seen; it never learns."""


@dataclass(slots=True, eq=False)
class TokenEstimates:
    """What was seen for each team and model. Clients may make names up: the oldest are forgotten."""

    _ratios: BoundedDict[tuple[str, str], TokenRatio] = field(default_factory=lambda: BoundedDict(PAIRS))

    def ratio(self, pair: tuple[str, str]) -> TokenRatio:
        """Return what is known of a team and a model."""
        return self._ratios.get(pair, UNKNOWN)

    def begin(self, pair: tuple[str, str]) -> TokenRatio:
        """Return what is known of a team and a model, to learn more."""
        found = self._ratios.get(pair)
        if found is None:
            found = self._ratios[pair] = TokenRatio()
        return found
