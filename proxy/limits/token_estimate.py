"""Estimates of the tokens that a request will use, made before it is sent. They are computed from its bytes and its
`max_tokens`, and corrected by the use of earlier requests of the same team and model.

Without the correction, requests reserve four times the tokens that they use (half of them more than 3.2 times too
many), because few responses come near `max_tokens`.
"""

from dataclasses import dataclass, field
from typing import Final

from proxy.bounded_dict import BoundedDict

TEXT_BYTES_PER_TOKEN: Final = 4
"""The approximate bytes of text in a token."""

DEFAULT_OUTPUT_TOKENS: Final = 4096
"""The assumed output tokens if neither the request nor the deployment limits them."""

NEW_WEIGHT: Final = 0.02
OLD_WEIGHT: Final = 1 - NEW_WEIGHT
"""The weights of the newest request and of the former ratio in the new ratio."""

_NEW_BYTES: Final = NEW_WEIGHT * TEXT_BYTES_PER_TOKEN

LEAST_RATIO: Final = 0.01
MOST_RATIO: Final = 1.2
"""The bounds of the ratios, because one unusual request must not open or close a limit for the next requests."""

MAX_PAIRS: Final = 16_384
"""The most pairs of team and model that are remembered."""


@dataclass(slots=True, eq=False)
class TokenRatio:
    """Two moving ratios. `prompt` is the ratio of used prompt tokens to estimated prompt tokens. `answer` is the ratio
    of used output tokens to the most output tokens that were allowed."""

    prompt: float = 1.0
    answer: float = 1.0

    def parts(self, prompt_bytes: int, max_tokens: int) -> tuple[int, int]:
        """Return the expected prompt tokens and output tokens, which have different prices."""
        return round(prompt_bytes / TEXT_BYTES_PER_TOKEN * self.prompt), round(max_tokens * self.answer)

    def learn(self, prompt_bytes: int, max_tokens: int, prompt: int, answer: int) -> None:
        """Update the ratios by the prompt tokens and output tokens that a request used."""
        if prompt_bytes > 0:
            moved = OLD_WEIGHT * self.prompt + _NEW_BYTES * prompt / prompt_bytes
            self.prompt = MOST_RATIO if moved > MOST_RATIO else moved if moved > LEAST_RATIO else LEAST_RATIO
        if max_tokens > 0:
            moved = OLD_WEIGHT * self.answer + NEW_WEIGHT * answer / max_tokens
            self.answer = MOST_RATIO if moved > MOST_RATIO else moved if moved > LEAST_RATIO else LEAST_RATIO


UNKNOWN_RATIO: Final = TokenRatio()
"""The ratio of a team and a model without any request so far. It is never updated."""


@dataclass(slots=True, eq=False)
class TokenEstimates:
    """The ratios of all pairs of team and model. Clients may invent model names, so the oldest pairs are forgotten."""

    _ratios: BoundedDict[tuple[str, str], TokenRatio] = field(default_factory=lambda: BoundedDict(MAX_PAIRS))

    def ratio(self, pair: tuple[str, str]) -> TokenRatio:
        """Return the ratio of a team and a model."""
        return self._ratios.get(pair, UNKNOWN_RATIO)

    def begin(self, pair: tuple[str, str]) -> TokenRatio:
        """Return the ratio of a team and a model, to be updated."""
        found = self._ratios.get(pair)
        if found is None:
            found = self._ratios[pair] = TokenRatio()
        return found
