"""Facts about Claude models, by the model's name, that decide how a request to a model is written.

The names are the names of Anthropic's API (`claude-opus-4-5-20251101`, `claude-3-5-haiku-latest`), of Vertex AI
(`claude-opus-4-5@20251101`), of Bedrock (`us.anthropic.claude-opus-4-5-20251101-v1:0`) and of resellers
(`anthropic/claude-opus-4.5`).

Sources: pydantic-ai 2.68.0 `profiles/anthropic` with its live probes, litellm 1.109.1 model map, @ai-sdk/anthropic
3.0.139, "Errors", "Models overview" and "Preserved thinking" pages, November 2026. Source for `one_sampler`: the
vendor's 400 quoted in litellm issue 15097 and open-webui/pipelines issue 546. For no prefill from 4.6 on: vercel/ai
issue 12296, openclaw issue 75395 (by OpenRouter), opencode issue 29760 (by Bedrock). For forced calls beside adaptive
`thinking` from Opus 4.8 on: langchain-aws pull requests 1141 and 1151. For the default effort: "Effort" page, "What's
new in Claude Opus 5.5".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

ThinkingKind = Literal["enabled", "adaptive", "between_tools", "disabled"]
"""Values of `thinking.type`. `enabled` is reasoning with a budget of tokens."""

MIN_BUDGET = 1024
"""The smallest budget in tokens. A budget must be below `max_tokens`."""

LEAST_TOP_P = 0.95
"""The smallest `top_p` that is accepted with `thinking` ("Extended thinking" page)."""

MIN_TEXT_TOKENS = 1024
"""The tokens that a budget set by the gateway leaves for the text after the reasoning, if the limit is large enough for
both."""

BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 10_000,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""The reasoning budget in tokens for each word of `reasoning_effort`, for models that accept budgets and no words. The
numbers are pydantic-ai's."""

EFFORT_WORDS = tuple(BUDGETS)
"""The words of `reasoning_effort` except `none`, the lowest first."""


@dataclass(frozen=True, slots=True)
class ClaudeModel:
    """The properties of the models of one generation.

    `most_output` is the highest `max_tokens`, `None` if it is not known. `usual_output` is the `max_tokens` to send if
    neither the client nor the configuration sets one; it is small for models that count it against their context window
    in advance. `thinking` are the accepted values of `thinking.type`. `thinks_unasked` says that the model reasons if a
    request has no `thinking`. `efforts` are the accepted words of `output_config.effort`, lowest first, empty if the
    field is refused. `high_at_most` says that words above `high` are refused if `thinking` is disabled. `usual_effort`
    is the effort of a request without one. `sampling` says that `temperature`, `top_p` and `top_k` are accepted.
    `one_sampler` says that `temperature` and `top_p` are not accepted together. `prefill` says that the conversation
    may end in an assistant text, which the response continues.

    `forced_choice` says that `tool_choice` may require a call. No model accepts a required call together with a
    reasoning budget, and a model with `unthinking_choice` accepts it only without any reasoning. `blanks_thinking` says
    that the text of the reasoning is left out unless `display` requests a summary. `binds_prefix` says that reasoning
    may only be sent back after an unchanged system text, tools and messages. `structured` says that the model can be
    constrained to a schema, of the response or of a strict tool (Claude 4.5 and later).
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
        """Whether reasoning can be requested only by a budget of tokens."""
        return "enabled" in self.thinking and "adaptive" not in self.thinking

    @property
    def always_thinks(self) -> bool:
        """Whether reasoning cannot be disabled."""
        return self.thinks_unasked and "disabled" not in self.thinking

    def nearest_effort(self, word: str) -> str | None:
        """Return the model's word for one of EFFORT_WORDS: the word itself, otherwise the next higher word, otherwise
        the highest. `None` if the model has no words."""
        rank = EFFORT_WORDS.index(word)
        higher = (candidate for candidate in self.efforts if EFFORT_WORDS.index(candidate) >= rank)
        return next(higher, self.efforts[-1] if self.efforts else None)


_BUDGET_TYPES: frozenset[ThinkingKind] = frozenset({"enabled", "disabled"})
_THREE_EFFORTS = ("low", "medium", "high")
_ALL_EFFORTS = (*_THREE_EFFORTS, "xhigh", "max")

_WITHOUT_REASONING = ClaudeModel(4_096, 4_096, frozenset(), structured=False)
# Models up to 4.1 refuse a prompt that does not fit their window together with max_tokens. Later models end the
# response at the end of the window.
_CLAUDE_4 = ClaudeModel(32_000, 4_096, _BUDGET_TYPES, structured=False)
_CLAUDE_4_1 = replace(_CLAUDE_4, one_sampler=True)
_CLAUDE_4_5 = ClaudeModel(64_000, 64_000, _BUDGET_TYPES, one_sampler=True)
_CLAUDE_4_6 = ClaudeModel(
    128_000,
    128_000,
    frozenset({"adaptive", "enabled", "disabled"}),
    (*_THREE_EFFORTS, "max"),
    one_sampler=True,
    prefill=False,
    unthinking_choice=True,
)
_CLAUDE_4_7 = ClaudeModel(
    128_000,
    128_000,
    frozenset({"adaptive", "disabled"}),
    _ALL_EFFORTS,
    sampling=False,
    prefill=False,
    blanks_thinking=True,
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
    "opus-3": _WITHOUT_REASONING,
    "sonnet-3": _WITHOUT_REASONING,
    "haiku-3": _WITHOUT_REASONING,
    "sonnet-3-5": replace(_WITHOUT_REASONING, most_output=8_192),
    "haiku-3-5": replace(_WITHOUT_REASONING, most_output=8_192),
    "sonnet-3-7": replace(_CLAUDE_4, most_output=64_000),
    "opus-4": _CLAUDE_4,
    "opus-4-0": _CLAUDE_4,
    "opus-4-1": _CLAUDE_4_1,
    "sonnet-4": replace(_CLAUDE_4, most_output=64_000),
    "sonnet-4-0": replace(_CLAUDE_4, most_output=64_000),
    "sonnet-4-5": _CLAUDE_4_5,
    "haiku-4-5": _CLAUDE_4_5,
    "opus-4-5": replace(_CLAUDE_4_5, efforts=_THREE_EFFORTS),
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
"""The models by line and version."""

UNKNOWN = ClaudeModel(None, 16_384, frozenset({"enabled", "adaptive", "between_tools", "disabled"}), _ALL_EFFORTS)
"""The properties of a model that is not in the table above: a newer model, or a name that the operator invented. The
gateway refuses nothing in advance; the vendor refuses any field that the model does not accept."""

# The line and the version may be in either order. A date or a revision may follow.
_NAME = re.compile(
    r"claude-(?:(?P<line>[a-z]+)-(?P<version>\d{1,2}(?:-\d{1,2})?)|(?P<early>\d{1,2}(?:-\d{1,2})?)-(?P<tier>[a-z]+))(?!\d)"
)


def usual_effort(*names: str) -> str | None:
    """Return the default effort of the Claude model with one of these names, that is, of a request without an effort
    ("Effort" page). `None` for other models, and for models that accept only budgets."""
    known = next((claude_model(name) for name in names if "claude" in name.lower()), None)
    return known.usual_effort if known is not None and "adaptive" in known.thinking else None


def fit_budget(budget: int, limit: int) -> int:
    """Return the budget, reduced to leave tokens for the text of a response with at most `limit` tokens. `limit` must
    be above MIN_BUDGET."""
    return max(MIN_BUDGET, min(budget, limit - MIN_TEXT_TOKENS))


@lru_cache(maxsize=1024)
def claude_model(name: str) -> ClaudeModel:
    """Return the properties of a model by its name in any spelling; UNKNOWN if the name is not in the table."""
    found = _NAME.search(name.lower().replace(".", "-"))
    if found is None:
        return UNKNOWN
    line, version = found["line"] or found["tier"], found["version"] or found["early"]
    return _MODELS.get(f"{line}-{version}", UNKNOWN)
