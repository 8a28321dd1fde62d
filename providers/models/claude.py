"""Facts about Claude models that decide how a request to one is written, by the model's name.

The names are those of Anthropic's API (`claude-opus-4-5-20251101`, `claude-3-5-haiku-latest`), of Vertex AI
(`claude-opus-4-5@20251101`), of Bedrock (`us.anthropic.claude-opus-4-5-20251101-v1:0`) and of resellers
(`anthropic/claude-opus-4.5`).

Sources: pydantic-ai 2.68.0 `profiles/anthropic` with its live probes, litellm 1.109.1 model map, @ai-sdk/anthropic
3.0.139, "Errors", "Models overview" and "Preserved thinking" pages, November 2026. One sampler: the vendor's 400 quoted
in litellm issue 15097 and open-webui/pipelines issue 546. No prefill from 4.6 on: vercel/ai issue 12296, openclaw issue
75395 (by OpenRouter), opencode issue 29760 (by Bedrock). Forced calls beside adaptive thinking from Opus 4.8 on:
langchain-aws pull requests 1141 and 1151. The effort without a word: "Effort" page, "What's new in Claude Opus 5.5".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

ThinkingKind = Literal["enabled", "adaptive", "between_tools", "disabled"]
"""Values of `thinking.type`; `enabled` is thinking with a budget of tokens."""

MIN_BUDGET = 1024
"""Tokens of the smallest budget; it must be below `max_tokens`."""

LEAST_TOP_P = 0.95
"""The smallest `top_p` that goes with thinking ("Extended thinking" page)."""

LEAST_ANSWER = 1024
"""Tokens that a budget of ours leaves for the text behind it, where the limit has room for both."""

BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 10_000,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""Tokens of thinking for each word of `reasoning_effort`, for models that take budgets and no words (pydantic-ai's)."""

EFFORT_WORDS = tuple(BUDGETS)
"""The words of `reasoning_effort` beside `none`, the lowest first."""


@dataclass(frozen=True, slots=True)
class ClaudeModel:
    """What the models of one generation take.

    `most_output` is the highest `max_tokens` (None: not known), `usual_output` the one to send where the client and the
    table give none: models that count it against their window beforehand get a small one. `thinking` are the types
    accepted, `thinks_unasked` says that a request without `thinking` gets it. `efforts` are the words of
    `output_config.effort`, lowest first, empty where the member is refused; `high_at_most` says that without thinking
    words above `high` are refused, `usual_effort` is the word that holds without any. `sampling` says that
    `temperature`, `top_p` and `top_k` are taken; with `one_sampler` the first two are not taken together. `prefill`
    says that the conversation may end in a text of the model, which the answer continues.
    `forced_choice` says that `tool_choice` may demand a call; no model takes that beside a budget of thinking, one with
    `unthinking_choice` beside no thinking at all.
    `blanks_thinking` says that the text of thinking is left out unless `display` asks for a summary. `binds_prefix`
    says that thinking may only come back behind an unchanged system text, tools and messages. `structured` says that
    it can be held to a schema, of the answer or of a strict tool (Claude 4.5 and later).
    """

    most_output: int | None
    usual_output: int
    thinking: frozenset[ThinkingKind]
    efforts: tuple[str, ...] = ()
    thinks_unasked: bool = False
    high_at_most: bool = False
    sampling: bool = True
    one_sampler: bool = False
    prefill: bool = True
    forced_choice: bool = True
    unthinking_choice: bool = False
    blanks_thinking: bool = False
    binds_prefix: bool = False
    structured: bool = True
    usual_effort: str = "high"

    @property
    def budgets(self) -> bool:
        """Whether thinking is asked for by a budget of tokens alone."""
        return "enabled" in self.thinking and "adaptive" not in self.thinking

    @property
    def always_thinks(self) -> bool:
        """Whether thinking cannot be switched off."""
        return self.thinks_unasked and "disabled" not in self.thinking

    def nearest_effort(self, word: str) -> str | None:
        """Return the model's word for one of EFFORT_WORDS: itself, else the next higher, else the highest; None where
        the model has no words."""
        rank = EFFORT_WORDS.index(word)
        higher = (own for own in self.efforts if EFFORT_WORDS.index(own) >= rank)
        return next(higher, self.efforts[-1] if self.efforts else None)


_BUDGET: frozenset[ThinkingKind] = frozenset({"enabled", "disabled"})
_THREE = ("low", "medium", "high")
_ALL = (*_THREE, "xhigh", "max")

_UNTHINKING = ClaudeModel(4_096, 4_096, frozenset(), structured=False)
# These refuse a prompt that does not fit their window together with max_tokens; later ones end the answer there.
_CLAUDE_4 = ClaudeModel(32_000, 4_096, _BUDGET, structured=False)
_CLAUDE_4_1 = replace(_CLAUDE_4, one_sampler=True)
_CLAUDE_4_5 = ClaudeModel(64_000, 64_000, _BUDGET, one_sampler=True)
_CLAUDE_4_6 = ClaudeModel(
    128_000,
    128_000,
    frozenset({"adaptive", "enabled", "disabled"}),
    (*_THREE, "max"),
    one_sampler=True,
    prefill=False,
    unthinking_choice=True,
)
_CLAUDE_4_7 = ClaudeModel(
    128_000, 128_000, frozenset({"adaptive", "disabled"}), _ALL, sampling=False, prefill=False, blanks_thinking=True
)
_SONNET_5 = replace(_CLAUDE_4_7, thinks_unasked=True)
_OPUS_5 = replace(_SONNET_5, high_at_most=True)
_SONNET_5_5 = replace(
    _OPUS_5, thinking=frozenset({"adaptive", "between_tools"}), forced_choice=False, binds_prefix=True
)
_FABLE_5 = replace(_SONNET_5, thinking=frozenset({"adaptive"}))
_MYTHOS_5_1 = replace(_FABLE_5, forced_choice=False)
_FABLE_5_1 = replace(_MYTHOS_5_1, binds_prefix=True)

_MODELS: Mapping[str, ClaudeModel] = {
    "opus-3": _UNTHINKING,
    "sonnet-3": _UNTHINKING,
    "haiku-3": _UNTHINKING,
    "sonnet-3-5": replace(_UNTHINKING, most_output=8_192),
    "haiku-3-5": replace(_UNTHINKING, most_output=8_192),
    "sonnet-3-7": replace(_CLAUDE_4, most_output=64_000),
    "opus-4": _CLAUDE_4,
    "opus-4-0": _CLAUDE_4,
    "opus-4-1": _CLAUDE_4_1,
    "sonnet-4": replace(_CLAUDE_4, most_output=64_000),
    "sonnet-4-0": replace(_CLAUDE_4, most_output=64_000),
    "sonnet-4-5": _CLAUDE_4_5,
    "haiku-4-5": _CLAUDE_4_5,
    "opus-4-5": replace(_CLAUDE_4_5, efforts=_THREE),
    "opus-4-6": _CLAUDE_4_6,
    "sonnet-4-6": _CLAUDE_4_6,
    "opus-4-7": replace(_CLAUDE_4_7, unthinking_choice=True),
    "opus-4-8": _CLAUDE_4_7,
    "sonnet-5": _SONNET_5,
    "opus-5": _OPUS_5,
    "haiku-5-5": replace(_OPUS_5, binds_prefix=True),
    "sonnet-5-5": _SONNET_5_5,
    "fable-5": _FABLE_5,
    "mythos-5": _FABLE_5,
    "mythos-5-1": _MYTHOS_5_1,
    "fable-5-1": _FABLE_5_1,
    "fable-5-2": _FABLE_5_1,
    "mythos-5-2": _FABLE_5_1,
    "opus-5-5": replace(_FABLE_5_1, usual_effort="medium"),
}
"""The models, by line and version."""

UNKNOWN = ClaudeModel(None, 16_384, frozenset({"enabled", "adaptive", "between_tools", "disabled"}), _ALL)
"""A model that is not in the table: a newer one, or a name of the operator's own. Nothing is refused beforehand; the
vendor answers for what it does not take."""

# The line and version in either order; a date or a revision may follow.
_NAME = re.compile(
    r"claude-(?:(?P<line>[a-z]+)-(?P<version>\d{1,2}(?:-\d{1,2})?)|(?P<early>\d{1,2}(?:-\d{1,2})?)-(?P<tier>[a-z]+))(?!\d)"
)


def usual_effort(*names: str) -> str | None:
    """Return the effort of the Claude model with one of these names where a request leaves it to the model ("Effort"
    page); None for other models, and for those that take budgets alone."""
    known = next((claude_model(name) for name in names if "claude" in name.lower()), None)
    return known.usual_effort if known is not None and "adaptive" in known.thinking else None


def fit_budget(budget: int, limit: int) -> int:
    """Return a budget for an answer of at most `limit` tokens, more than MIN_BUDGET, that leaves room for the text."""
    return max(MIN_BUDGET, min(budget, limit - LEAST_ANSWER))


@lru_cache(maxsize=1024)
def claude_model(name: str) -> ClaudeModel:
    """Return the facts about a model by its name in any spelling; UNKNOWN for one that is not in the table."""
    found = _NAME.search(name.lower().replace(".", "-"))
    if found is None:
        return UNKNOWN
    line, version = found["line"] or found["tier"], found["version"] or found["early"]
    return _MODELS.get(f"{line}-{version}", UNKNOWN)
