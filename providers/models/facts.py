"""Facts about models that decide what may be sent to one, wherever it is hosted, by the model's name.

A vendor's profile describes the vendor's API. The rules of the model behind it are here once, and `with_facts` lays
them over any profile.

Sources, November 2026: OpenAI's "Reasoning models" page and the parameters that "Using GPT-5.2" names;
pydantic-ai-slim 2.68.0 `profiles/openai`, probed, for which models reason unasked; vercel/ai issues 5609 and 10932,
huggingface/smolagents issue 1671, run-llama/llama_index issue 20865 and enricoros/big-AGI issues 930, 944 and 947 for
refusals of OpenAI's; `providers.models.claude` for Claude; "Gemini API: Thinking" and its notes on sampling; xAI's
"Reasoning" page; "DeepSeek API docs: Reasoning model"; "Kimi API: Chat" for the fixed sampling (0.6 without thinking:
MoonshotAI/kimi-code issue 686), models.dev pull request 749 for it at OpenRouter; pydantic-ai-slim 2.68.0 for Grok's
words; "Command A Reasoning" page and litellm 1.109.1's map of models for Command's longest responses, "What is Amazon
Nova?" for Nova's; mistral-common's template and openclaw issue 57672 for ids of calls.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from types import MappingProxyType

from providers.models.claude import LEAST_TOP_P, UNKNOWN, ClaudeModel, claude_model
from providers.profile import ModelHost

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The rules of a model.

    `bounds` are the least and the greatest value of a field, `unthinking` the bounds instead while thinking is off,
    `thinking` those while it is on. `refuses` are fields that it does not have, `thinking_refuses` those that it does
    not have while it thinks; without `thinking_choice` no choice of tools may force a call then. `words` are its own
    words for values of `reasoning_effort`, `nearest` the values whose word only comes near. With `one_sampler` it takes
    `temperature` or `top_p`, not both; without `prefill` the conversation may not end in a text of the model; without
    `forced_choice` no choice of tools may force a call. `nine_character_ids` says that ids of calls are nine letters
    and digits; without `blank_stops` no stop string may be blank. `most_output` is the greatest `max_tokens`, `None` if
    it is not known.
    """

    bounds: Bounds = field(default_factory=dict)
    unthinking: Bounds = field(default_factory=dict)
    thinking: Bounds = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    thinking_refuses: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    nearest: frozenset[str] = frozenset()
    one_sampler: bool = False
    prefill: bool = True
    forced_choice: bool = True
    thinking_choice: bool = True
    thinks_unasked: bool = False
    omits: frozenset[str] = frozenset()
    nine_character_ids: bool = False
    blank_stops: bool = True
    most_output: int | None = None

    def over(self, other: "ModelFacts") -> "ModelFacts":
        """Return these facts joined with others; of two values of one fact, this one's holds."""
        return ModelFacts(
            MappingProxyType({**other.bounds, **self.bounds}),
            MappingProxyType({**other.unthinking, **self.unthinking}),
            MappingProxyType({**other.thinking, **self.thinking}),
            self.refuses | other.refuses,
            self.thinking_refuses | other.thinking_refuses,
            MappingProxyType({**other.words, **self.words}),
            self.nearest | other.nearest,
            self.one_sampler or other.one_sampler,
            self.prefill and other.prefill,
            self.forced_choice and other.forced_choice,
            self.thinking_choice and other.thinking_choice,
            self.thinks_unasked or other.thinks_unasked,
            self.omits | other.omits,
            self.nine_character_ids or other.nine_character_ids,
            self.blank_stops and other.blank_stops,
            self.most_output or other.most_output,
        )


NO_FACTS = ModelFacts()
"""A model of which nothing is known that its vendor's profile does not say."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Facts about the models whose names match, which hold at `hosts`. Names are lower-case."""

    match: re.Pattern[str]
    facts: ModelFacts
    hosts: frozenset[ModelHost]


_WEIGHTS: frozenset[ModelHost] = frozenset({"makers", "any", "weights"})
"""Rules of the weights or their template, which go wherever these go."""
_CLOSED: frozenset[ModelHost] = frozenset({"makers", "any"})
"""Rules of models without open weights. A server of open weights may only bear such a name, for clients that know no
other."""
_MAKERS: frozenset[ModelHost] = frozenset({"makers"})
"""Rules of a maker's API for open weights: other hosts of these sample as requested."""
_PASSED: frozenset[ModelHost] = frozenset({"any"})
"""Rules of a field that hosts pass on to the model. A host that is called for many makers' models has its own."""

_ONE: Bounds = {"temperature": (1, 1)}
_PENALTIES = frozenset({"presence_penalty", "frequency_penalty"})
_SAMPLERS = frozenset({"top_p", "logprobs", "logit_bias"}) | _PENALTIES
_UNSAMPLED = _SAMPLERS | {"stop"}
_PREDICTED = frozenset({"prediction"})
_UNSPOKEN = frozenset({"audio", "modalities"})
_OPENAI = r"(?:^|[/.:]|databricks-)(?:ft:)?"
_KIND = r"[a-z0-9.-]*-"
"""What stands between a model's number and the word for its kind."""
_ALWAYS_REASONS = ModelFacts(
    bounds=_ONE, refuses=_UNSAMPLED | _UNSPOKEN | {"prediction"}, omits=frozenset({"temperature"})
)
_MAY_REASON = ModelFacts(
    thinking={**_ONE, "top_p": (1, 1)},
    thinking_refuses=frozenset({"logprobs", "logit_bias"}) | _PENALTIES,
    refuses=_UNSPOKEN | {"stop", "prediction"},
    omits=frozenset({"temperature", "top_p", "logit_bias"}) | _PENALTIES,
)
_THINKS_ALWAYS = {"none": "low", "minimal": "low"}
_NO_MORE = {"xhigh": "high", "max": "high"}
_LOW_HIGH_MAX = ModelFacts(
    words={**_THINKS_ALWAYS, "medium": "high", "xhigh": "max", "max": "max"}, nearest=frozenset({"none"})
)


def _row(match: str, facts: ModelFacts, hosts: frozenset[ModelHost]) -> _Row:
    return _Row(re.compile(match), facts, hosts)


_ROWS: tuple[_Row, ...] = (
    # Models that do not reason: "Unrecognized request argument supplied: reasoning_effort", "'verbosity' does not
    # support 'low' with this model".
    _row(
        rf"{_OPENAI}(gpt-4|gpt-3\.?5-turbo(?!-instruct)|chatgpt|gpt-5-chat)",
        ModelFacts(refuses=frozenset({"reasoning_effort", "verbosity"})),
        _CLOSED,
    ),
    # "This model does not support the requested modality".
    _row(
        rf"{_OPENAI}(gpt-(?:3\.?5|4)(?!{_KIND}(?:audio|image|realtime))|chatgpt|gpt-5-chat)",
        ModelFacts(refuses=_UNSPOKEN),
        _CLOSED,
    ),
    # "Predicted outputs" are of gpt-4o and gpt-4.1.
    _row(
        rf"{_OPENAI}(gpt-3\.?5-turbo(?!-instruct)|gpt-4(?!o|[.-]1(?![0-9])))", ModelFacts(refuses=_PREDICTED), _CLOSED
    ),
    # "Model incompatible request arguments supplied: frequency_penalty, presence_penalty, temperature, top_p".
    _row(
        rf"{_OPENAI}gpt-{_KIND}search-(?:preview|api)",
        ModelFacts(
            bounds=_ONE,
            refuses=_SAMPLERS | _UNSPOKEN | {"n", "stop", "seed", "prediction", "parallel_tool_calls"},
            omits=frozenset({"temperature"}),
        ),
        _CLOSED,
    ),
    _row(
        rf"{_OPENAI}(o[0-9](?![a-z])|codex-|computer-use-|gpt-5(?!-chat|[.-][0-9](?![0-9])))",
        _ALWAYS_REASONS,
        _CLOSED,
    ),
    # "Unsupported parameter: 'parallel_tool_calls' is not supported with this model": they make one call a turn.
    _row(
        rf"{_OPENAI}(o[0-9](?![a-z])|codex-mini)",
        ModelFacts(refuses=frozenset({"parallel_tool_calls", "verbosity"})),
        _CLOSED,
    ),
    # "'low' is not supported with the 'gpt-5.1-codex-max' model. Supported values are: 'medium'."
    _row(rf"{_OPENAI}gpt-5(?:[.-][12])?-codex", ModelFacts(refuses=frozenset({"verbosity"})), _CLOSED),
    # From gpt-5.1 on models sample as requested while they do not reason, but for those that always do: "The following
    # parameters are only supported when using GPT-5.2 with reasoning effort set to none".
    _row(
        rf"{_OPENAI}gpt-(5[.-][0-9]-chat|5[.-][12]-codex|5[.-][0-9]-(?:{_KIND})?pro(?![a-z])"
        rf"|[6-9](?:[.-][0-9])?-(?:{_KIND})?pro(?![a-z])|6-astra|6[.-]1-sol)",
        _ALWAYS_REASONS,
        _CLOSED,
    ),
    _row(
        rf"{_OPENAI}gpt-5[.-](?:[12](?!-codex)|[34])(?![0-9]|-chat|-(?:{_KIND})?pro(?![a-z]))",
        _MAY_REASON,
        _CLOSED,
    ),
    _row(
        rf"{_OPENAI}gpt-(?!6-astra|6[.-]1-sol)(?:5[.-][5-9]|[6-9](?:[.-][0-9])?)"
        rf"(?![0-9]|[.-][0-9]|-chat|-(?:{_KIND})?pro(?![a-z]))",
        replace(_MAY_REASON, thinks_unasked=True),
        _CLOSED,
    ),
    _row(
        "gpt-oss",
        ModelFacts(words={**_THINKS_ALWAYS, **_NO_MORE}, nearest=frozenset({"none"})),
        _WEIGHTS,
    ),
    # They do not reason.
    _row(r"gemini-(1|2\.0)", ModelFacts(refuses=frozenset({"reasoning_effort", "thinking"})), _CLOSED),
    # Sampling settings are ignored there in silence, and later models are to refuse them.
    _row(
        r"gemini-(3\.5-flash-lite|3\.[6-9]|3\.[1-9][0-9]|[4-9]|flash-latest|flash-lite-latest)",
        ModelFacts(bounds=_ONE, refuses=frozenset({"logprobs", "top_p", "top_k"}) | _PENALTIES),
        _CLOSED,
    ),
    _row(r"gemini-(3|pro-latest)", ModelFacts(refuses=frozenset({"logprobs"}) | _PENALTIES), _CLOSED),
    _row(r"grok-(3-mini|4|code)", ModelFacts(refuses=frozenset({"stop"}) | _PENALTIES), _CLOSED),
    # "Argument not supported on this model: reasoning_effort".
    _row(
        r"grok-([12](?![0-9])|3(?!-mini)|4(?![.-][3-9])|code)",
        ModelFacts(refuses=frozenset({"reasoning_effort"})),
        _PASSED,
    ),
    _row("grok-3-mini", ModelFacts(words={"minimal": "low", "medium": "high", **_NO_MORE}), _PASSED),
    _row(r"grok-4[.-]3", ModelFacts(words={"minimal": "low", **_NO_MORE}), _PASSED),
    _row(r"grok-4[.-][56]", ModelFacts(words={**_THINKS_ALWAYS, **_NO_MORE}, nearest=frozenset({"none"})), _PASSED),
    _row(r"grok-4[.-]7", ModelFacts(words={**_THINKS_ALWAYS, "max": "xhigh"}, nearest=frozenset({"none"})), _PASSED),
    # Log probabilities are refused, sampling ignored in silence; "Thinking mode does not support this tool_choice". The
    # name is the maker's API's alone.
    _row(
        "deepseek-reasoner",
        ModelFacts(refuses=frozenset({"logprobs", "temperature", "top_p"}) | _PENALTIES, forced_choice=False),
        _CLOSED,
    ),
    # The longest responses, thinking included.
    _row("command-a-plus", ModelFacts(most_output=64_000), _CLOSED),
    _row("command-a-reasoning", ModelFacts(most_output=32_000), _CLOSED),
    _row("command-a(?!-plus|-reasoning)", ModelFacts(most_output=8_000), _CLOSED),
    _row("command-r", ModelFacts(most_output=4_096), _CLOSED),
    _row(r"nova-(micro|lite|pro)(?!-2)", ModelFacts(most_output=10_000), _CLOSED),
    # "invalid temperature: only 1 is allowed for this model".
    _row(
        r"kimi-.*thinking|kimi-k2\.[5-9]|kimi-k[3-9]",
        ModelFacts(
            bounds={**_ONE, "top_p": (0.95, 0.95)},
            unthinking={"temperature": (0.6, 0.6)},
            refuses=_PENALTIES,
        ),
        _MAKERS,
    ),
    _row(r"kimi-k3|glm-5\.[3-9]", _LOW_HIGH_MAX, _WEIGHTS),
    _row(
        r"mistral|ministral|mixtral|codestral|devstral|magistral|pixtral|voxtral|mathstral",
        ModelFacts(nine_character_ids=True),
        _WEIGHTS,
    ),
)

_TELLING = re.compile(
    r"claude|gpt|gemini|gemma|grok|deepseek|kimi|qwen|qwq|glm|llama|stral|mixtral|nova|command|nemotron|phi-|minimax"
    r"|(?:^|[/.:])o[0-9]"
)
"""Names that say of which family a model is."""


@lru_cache(maxsize=4096)
def model_facts(host: ModelHost, upstream: str, model: str) -> ModelFacts:
    """Return the facts about a model by its name at the vendor, else, if that hides the model, by the configuration's
    name: operators call deployments by other models' names, too."""
    name = upstream.lower()
    if not _TELLING.search(name):
        name = model.lower()
    found = [row.facts for row in _ROWS if host in row.hosts and row.match.search(name)]
    if host in _CLOSED and (claude := claude_model(name)) is not UNKNOWN:
        found.append(_claude_facts(claude))
    return reduce(ModelFacts.over, found) if found else NO_FACTS


def _claude_facts(model: ClaudeModel) -> ModelFacts:
    samples = model.sampling and bool(model.thinking)
    return ModelFacts(
        thinking={**_ONE, "top_p": (LEAST_TOP_P, 1)} if samples else {},
        thinking_refuses=frozenset({"top_k"}) if samples else frozenset(),
        thinking_choice=not (model.budgets or model.unthinking_choice),
        # 1 is the maker's default, and has no effect.
        bounds={} if model.sampling else _ONE,
        refuses=frozenset() if model.sampling else frozenset({"top_p", "top_k"}),
        one_sampler=model.one_sampler,
        prefill=model.prefill,
        forced_choice=model.forced_choice,
        # "stop_sequences: each stop sequence must contain non-whitespace".
        blank_stops=False,
        most_output=model.most_output,
    )
