"""Facts about models, by the model's name, that decide which fields and values a model accepts at every vendor that
hosts it.

A vendor's profile describes the vendor's API. The rules of the models are only here, and `with_facts` applies them to
any profile.

Sources, November 2026: OpenAI's "Reasoning models" page and the parameters that "Using GPT-5.2" names; pydantic-ai-slim
2.68.0 `profiles/openai`, probed, for the models that reason by default; vercel/ai issues 5609 and 10932,
huggingface/smolagents issue 1671, run-llama/llama_index issue 20865 and enricoros/big-AGI issues 930, 944 and 947 for
OpenAI's refusals; `providers.models.claude` for Claude; "Gemini API: Thinking" and its notes on sampling; xAI's
"Reasoning" page; "DeepSeek API docs: Reasoning model"; "Kimi API: Chat" for the fixed sampling (0.6 without reasoning:
MoonshotAI/kimi-code issue 686), models.dev pull request 749 for the same at OpenRouter; pydantic-ai-slim 2.68.0 for
Grok's words; "Command A Reasoning" page and litellm 1.109.1's map of models for Command's longest responses, "What is
Amazon Nova?" for Nova's longest responses; mistral-common's template and openclaw issue 57672 for call ids.
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

    `bounds` are the smallest and the largest value of a field. `unthinking` and `thinking` are bounds that apply
    instead while reasoning is off or on. `refuses` are fields that the model does not accept, `thinking_refuses` are
    fields that it does not accept while it reasons. `words` are its own words for values of `reasoning_effort`,
    `nearest` are the values that its words only approximate. With `one_sampler` it accepts `temperature` or `top_p`,
    not both. Without `prefill` the conversation may not end in an assistant text. Without `forced_choice` no tool
    choice may force a call; without `thinking_choice` the same applies while the model reasons. `thinks_unasked` is
    true if the model reasons by default. `omits` are fields that are left out if their value is neutral.
    `nine_character_ids` is true if call ids must be nine letters and digits. Without `blank_stops` no stop string may
    be blank. `most_output` is the largest `max_tokens`, `None` if it is not known.
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
        """Return these facts merged with others. If both have a value for a fact, the value of these facts is used."""
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
"""The facts about a model without any rules besides its vendor's profile."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Facts about the models whose lower-case names match. The facts apply at `hosts`."""

    match: re.Pattern[str]
    facts: ModelFacts
    hosts: frozenset[ModelHost]


_OPEN_WEIGHTS: frozenset[ModelHost] = frozenset({"makers", "any", "weights"})
"""The hosts of rules that belong to open weights or their template, and apply at every host of the weights."""
_CLOSED_WEIGHTS: frozenset[ModelHost] = frozenset({"makers", "any"})
"""The hosts of rules for models without open weights. A server of open weights may use such a name too, for clients
that know no other name, but the rules do not apply there."""
_MAKERS_ONLY: frozenset[ModelHost] = frozenset({"makers"})
"""The hosts of rules that a maker's own API has for open weights. Other hosts of the same weights sample as
requested."""
_FIELD_PASSED_ON: frozenset[ModelHost] = frozenset({"any"})
"""The hosts of rules for a field that hosts pass on to the model. A host with many makers' models has its own form of
such a field."""

_TEMPERATURE_ONE: Bounds = {"temperature": (1, 1)}
_PENALTIES = frozenset({"presence_penalty", "frequency_penalty"})
_SAMPLERS = frozenset({"top_p", "logprobs", "logit_bias"}) | _PENALTIES
_SAMPLERS_AND_STOP = _SAMPLERS | {"stop"}
_PREDICTION = frozenset({"prediction"})
_AUDIO_FIELDS = frozenset({"audio", "modalities"})
_OPENAI = r"(?:^|[/.:]|databricks-)(?:ft:)?"
_KIND = r"[a-z0-9.-]*-"
"""A pattern of the part between a model's number and the word for its kind."""
_ALWAYS_REASONS = ModelFacts(
    bounds=_TEMPERATURE_ONE,
    refuses=_SAMPLERS_AND_STOP | _AUDIO_FIELDS | {"prediction"},
    omits=frozenset({"temperature"}),
)
_MAY_REASON = ModelFacts(
    thinking={**_TEMPERATURE_ONE, "top_p": (1, 1)},
    thinking_refuses=frozenset({"logprobs", "logit_bias"}) | _PENALTIES,
    refuses=_AUDIO_FIELDS | {"stop", "prediction"},
    omits=frozenset({"temperature", "top_p", "logit_bias"}) | _PENALTIES,
)
_LOW_AT_LEAST = {"none": "low", "minimal": "low"}
_HIGH_AT_MOST = {"xhigh": "high", "max": "high"}
_LOW_HIGH_MAX = ModelFacts(
    words={**_LOW_AT_LEAST, "medium": "high", "xhigh": "max", "max": "max"}, nearest=frozenset({"none"})
)


def _row(match: str, facts: ModelFacts, hosts: frozenset[ModelHost]) -> _Row:
    return _Row(re.compile(match), facts, hosts)


_ROWS: tuple[_Row, ...] = (
    # Models that do not reason: "Unrecognized request argument supplied: reasoning_effort", "'verbosity' does not
    # support 'low' with this model".
    _row(
        rf"{_OPENAI}(gpt-4|gpt-3\.?5-turbo(?!-instruct)|chatgpt|gpt-5-chat)",
        ModelFacts(refuses=frozenset({"reasoning_effort", "verbosity"})),
        _CLOSED_WEIGHTS,
    ),
    # "This model does not support the requested modality".
    _row(
        rf"{_OPENAI}(gpt-(?:3\.?5|4)(?!{_KIND}(?:audio|image|realtime))|chatgpt|gpt-5-chat)",
        ModelFacts(refuses=_AUDIO_FIELDS),
        _CLOSED_WEIGHTS,
    ),
    # Only gpt-4o and gpt-4.1 have "Predicted outputs".
    _row(
        rf"{_OPENAI}(gpt-3\.?5-turbo(?!-instruct)|gpt-4(?!o|[.-]1(?![0-9])))",
        ModelFacts(refuses=_PREDICTION),
        _CLOSED_WEIGHTS,
    ),
    # "Model incompatible request arguments supplied: frequency_penalty, presence_penalty, temperature, top_p".
    _row(
        rf"{_OPENAI}gpt-{_KIND}search-(?:preview|api)",
        ModelFacts(
            bounds=_TEMPERATURE_ONE,
            refuses=_SAMPLERS | _AUDIO_FIELDS | {"n", "stop", "seed", "prediction", "parallel_tool_calls"},
            omits=frozenset({"temperature"}),
        ),
        _CLOSED_WEIGHTS,
    ),
    _row(
        rf"{_OPENAI}(o[0-9](?![a-z])|codex-|computer-use-|gpt-5(?!-chat|[.-][0-9](?![0-9])))",
        _ALWAYS_REASONS,
        _CLOSED_WEIGHTS,
    ),
    # "Unsupported parameter: 'parallel_tool_calls' is not supported with this model": they make one call per turn.
    _row(
        rf"{_OPENAI}(o[0-9](?![a-z])|codex-mini)",
        ModelFacts(refuses=frozenset({"parallel_tool_calls", "verbosity"})),
        _CLOSED_WEIGHTS,
    ),
    # "'low' is not supported with the 'gpt-5.1-codex-max' model. Supported values are: 'medium'."
    _row(rf"{_OPENAI}gpt-5(?:[.-][12])?-codex", ModelFacts(refuses=frozenset({"verbosity"})), _CLOSED_WEIGHTS),
    # From gpt-5.1 on models sample as requested while they do not reason: "The following parameters are only supported
    # when using GPT-5.2 with reasoning effort set to none". The exceptions are models that always reason.
    _row(
        rf"{_OPENAI}gpt-(5[.-][0-9]-chat|5[.-][12]-codex|5[.-][0-9]-(?:{_KIND})?pro(?![a-z])"
        rf"|[6-9](?:[.-][0-9])?-(?:{_KIND})?pro(?![a-z])|6-astra|6[.-]1-sol)",
        _ALWAYS_REASONS,
        _CLOSED_WEIGHTS,
    ),
    _row(
        rf"{_OPENAI}gpt-5[.-](?:[12](?!-codex)|[34])(?![0-9]|-chat|-(?:{_KIND})?pro(?![a-z]))",
        _MAY_REASON,
        _CLOSED_WEIGHTS,
    ),
    _row(
        rf"{_OPENAI}gpt-(?!6-astra|6[.-]1-sol)(?:5[.-][5-9]|[6-9](?:[.-][0-9])?)"
        rf"(?![0-9]|[.-][0-9]|-chat|-(?:{_KIND})?pro(?![a-z]))",
        replace(_MAY_REASON, thinks_unasked=True),
        _CLOSED_WEIGHTS,
    ),
    _row(
        "gpt-oss",
        ModelFacts(words={**_LOW_AT_LEAST, **_HIGH_AT_MOST}, nearest=frozenset({"none"})),
        _OPEN_WEIGHTS,
    ),
    # The models of the following names do not reason.
    _row(r"gemini-(1|2\.0)", ModelFacts(refuses=frozenset({"reasoning_effort", "thinking"})), _CLOSED_WEIGHTS),
    # These models silently ignore sampling settings, and later models will refuse them.
    _row(
        r"gemini-(3\.5-flash-lite|3\.[6-9]|3\.[1-9][0-9]|[4-9]|flash-latest|flash-lite-latest)",
        ModelFacts(bounds=_TEMPERATURE_ONE, refuses=frozenset({"logprobs", "top_p", "top_k"}) | _PENALTIES),
        _CLOSED_WEIGHTS,
    ),
    _row(r"gemini-(3|pro-latest)", ModelFacts(refuses=frozenset({"logprobs"}) | _PENALTIES), _CLOSED_WEIGHTS),
    _row(r"grok-(3-mini|4|code)", ModelFacts(refuses=frozenset({"stop"}) | _PENALTIES), _CLOSED_WEIGHTS),
    # "Argument not supported on this model: reasoning_effort".
    _row(
        r"grok-([12](?![0-9])|3(?!-mini)|4(?![.-][3-9])|code)",
        ModelFacts(refuses=frozenset({"reasoning_effort"})),
        _FIELD_PASSED_ON,
    ),
    _row("grok-3-mini", ModelFacts(words={"minimal": "low", "medium": "high", **_HIGH_AT_MOST}), _FIELD_PASSED_ON),
    _row(r"grok-4[.-]3", ModelFacts(words={"minimal": "low", **_HIGH_AT_MOST}), _FIELD_PASSED_ON),
    _row(
        r"grok-4[.-][56]",
        ModelFacts(words={**_LOW_AT_LEAST, **_HIGH_AT_MOST}, nearest=frozenset({"none"})),
        _FIELD_PASSED_ON,
    ),
    _row(
        r"grok-4[.-]7",
        ModelFacts(words={**_LOW_AT_LEAST, "max": "xhigh"}, nearest=frozenset({"none"})),
        _FIELD_PASSED_ON,
    ),
    # Log probabilities are refused, sampling is silently ignored; "Thinking mode does not support this tool_choice".
    # Only the maker's API uses this name.
    _row(
        "deepseek-reasoner",
        ModelFacts(refuses=frozenset({"logprobs", "temperature", "top_p"}) | _PENALTIES, forced_choice=False),
        _CLOSED_WEIGHTS,
    ),
    # The longest responses, including reasoning.
    _row("command-a-plus", ModelFacts(most_output=64_000), _CLOSED_WEIGHTS),
    _row("command-a-reasoning", ModelFacts(most_output=32_000), _CLOSED_WEIGHTS),
    _row("command-a(?!-plus|-reasoning)", ModelFacts(most_output=8_000), _CLOSED_WEIGHTS),
    _row("command-r", ModelFacts(most_output=4_096), _CLOSED_WEIGHTS),
    _row(r"nova-(micro|lite|pro)(?!-2)", ModelFacts(most_output=10_000), _CLOSED_WEIGHTS),
    # "invalid temperature: only 1 is allowed for this model".
    _row(
        r"kimi-.*thinking|kimi-k2\.[5-9]|kimi-k[3-9]",
        ModelFacts(
            bounds={**_TEMPERATURE_ONE, "top_p": (0.95, 0.95)},
            unthinking={"temperature": (0.6, 0.6)},
            refuses=_PENALTIES,
        ),
        _MAKERS_ONLY,
    ),
    _row(r"kimi-k3|glm-5\.[3-9]", _LOW_HIGH_MAX, _OPEN_WEIGHTS),
    _row(
        r"mistral|ministral|mixtral|codestral|devstral|magistral|pixtral|voxtral|mathstral",
        ModelFacts(nine_character_ids=True),
        _OPEN_WEIGHTS,
    ),
)

_FAMILY_NAMES = re.compile(
    r"claude|gpt|gemini|gemma|grok|deepseek|kimi|qwen|qwq|glm|llama|stral|mixtral|nova|command|nemotron|phi-|minimax"
    r"|(?:^|[/.:])o[0-9]"
)
"""Names that show the family of a model."""


@lru_cache(maxsize=4096)
def model_facts(host: ModelHost, upstream: str, model: str) -> ModelFacts:
    """Return the facts about a model by its name at the vendor. If that name does not show the model, the configured
    name is used. It is not used otherwise, because operators also name deployments after other models."""
    name = upstream.lower()
    if not _FAMILY_NAMES.search(name):
        name = model.lower()
    found = [row.facts for row in _ROWS if host in row.hosts and row.match.search(name)]
    if host in _CLOSED_WEIGHTS and (claude := claude_model(name)) is not UNKNOWN:
        found.append(_claude_facts(claude))
    return reduce(ModelFacts.over, found) if found else NO_FACTS


def _claude_facts(model: ClaudeModel) -> ModelFacts:
    samples = model.sampling and bool(model.thinking)
    return ModelFacts(
        thinking={**_TEMPERATURE_ONE, "top_p": (LEAST_TOP_P, 1)} if samples else {},
        thinking_refuses=frozenset({"top_k"}) if samples else frozenset(),
        thinking_choice=not (model.budgets or model.unthinking_choice),
        # A temperature of 1 is the maker's default and has no effect.
        bounds={} if model.sampling else _TEMPERATURE_ONE,
        refuses=frozenset() if model.sampling else frozenset({"top_p", "top_k"}),
        one_sampler=model.one_sampler,
        prefill=model.prefill,
        forced_choice=model.forced_choice,
        # "stop_sequences: each stop sequence must contain non-whitespace".
        blank_stops=False,
        most_output=model.most_output,
    )
