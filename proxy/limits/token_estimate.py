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
"""How much of a ratio each request replaces."""

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


_UNKNOWN: Final = TokenRatio()


@dataclass(slots=True, eq=False)
class TokenEstimates:
    """What was seen for each team and model. Clients may make names up: the oldest are forgotten."""

    _ratios: BoundedDict[tuple[str, str], TokenRatio] = field(default_factory=lambda: BoundedDict(PAIRS))

    def tokens(self, team: str, model: str, prompt_bytes: int, max_tokens: int) -> int:
        """Return the tokens to reserve; one at least."""
        prompt, answer = self.parts(team, model, prompt_bytes, max_tokens)
        return max(1, prompt + answer)

    def parts(self, team: str, model: str, prompt_bytes: int, max_tokens: int) -> tuple[int, int]:
        """Return the tokens of the prompt and of the answer, which have different prices."""
        ratio = self._ratios.get((team, model), _UNKNOWN)
        return round(prompt_bytes / BYTES_EACH * ratio.prompt), round(max_tokens * ratio.answer)

    def learn(self, pair: tuple[str, str], prompt_bytes: int, max_tokens: int, used: tuple[int, int]) -> None:
        """Note what a request of a team and model used: tokens of the prompt, and of the answer."""
        ratio = self._ratios.get(pair)
        if ratio is None:
            ratio = self._ratios[pair] = TokenRatio()
        if prompt_bytes > 0:
            ratio.prompt = _moved(ratio.prompt, used[0] * BYTES_EACH / prompt_bytes)
        if max_tokens > 0:
            ratio.answer = _moved(ratio.answer, used[1] / max_tokens)


def _moved(before: float, seen: float) -> float:
    return min(MOST, max(LEAST, (1 - NEW) * before + NEW * seen))
