"""The models on Bedrock's InvokeModel that take a prompt as it is: what each maker calls the members.

Never a socket's bytes and never a decision: this is the table that requests are written and answers read by.

Sources: "Inference request parameters and response fields for foundation models" pages (Amazon Titan Text, Meta Llama,
Mistral AI text completion, Cohere Command, DeepSeek), November 2026. The service's own model has these bodies as bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.unified import JsonObject


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a unified field goes, and the ends of what the maker takes, both included."""

    path: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One maker's body.

    `name` is a pattern over the model's id. `prompt` is the member of the prompt, `settings` are the fields besides it
    and `body` the members of every call. `most_stops` is 0 where stops are better looked for by the gateway. An answer
    holds its one choice as an object in a list under `choices`; a stream's piece may have the same members itself, as
    all do of makers without such a list. `text`, `reason`, `prompt_tokens` and `completion_tokens` are the names there,
    the counts under whichever of their names is there. A maker that tells no counts is always asked for a stream, at
    whose end the service tells its own.
    """

    name: re.Pattern[str]
    prompt: str
    settings: Mapping[str, Setting]
    text: str
    reason: str
    choices: str | None = None
    stops: str | None = None
    most_stops: int = 0
    body: JsonObject = field(default_factory=dict)
    prompt_tokens: str = ""
    completion_tokens: tuple[str, ...] = ()

    @property
    def streams_only(self) -> bool:
        """Whether clients that want the whole are answered out of a stream too."""
        return not self.prompt_tokens


_P = Setting("top_p", 0, 1)

FAMILIES: tuple[Family, ...] = (
    # Its stops may only be of a few patterns, so the gateway looks for all of them.
    Family(
        re.compile(r"amazon\.titan-(text|tg1)"),
        "inputText",
        {
            "max_tokens": Setting("textGenerationConfig.maxTokenCount", 1),
            "temperature": Setting("textGenerationConfig.temperature", 0, 1),
            "top_p": Setting("textGenerationConfig.topP", 0, 1),
        },
        text="outputText",
        reason="completionReason",
        choices="results",
        prompt_tokens="inputTextTokenCount",
        completion_tokens=("tokenCount", "totalOutputTextTokenCount"),
    ),
    Family(
        re.compile(r"meta\.llama"),
        "prompt",
        {"max_tokens": Setting("max_gen_len", 1), "temperature": Setting("temperature", 0, 1), "top_p": _P},
        text="generation",
        reason="stop_reason",
        prompt_tokens="prompt_token_count",
        completion_tokens=("generation_token_count",),
    ),
    Family(
        re.compile(r"mistral\.(mistral-7b|mixtral-8x7b|mistral-large-2402|mistral-small-2402)"),
        "prompt",
        {
            "max_tokens": Setting("max_tokens", 1),
            "temperature": Setting("temperature", 0, 1),
            "top_p": _P,
            "top_k": Setting("top_k", 1, 200),
        },
        text="text",
        reason="stop_reason",
        choices="outputs",
        stops="stop",
        most_stops=10,
    ),
    # Its stops may have 10 characters each.
    Family(
        re.compile(r"deepseek\.r1"),
        "prompt",
        {"max_tokens": Setting("max_tokens", 1), "temperature": Setting("temperature", 0, 1), "top_p": _P},
        text="text",
        reason="stop_reason",
        choices="choices",
    ),
    # Left alone it cuts the end of a prompt that is too long, in silence.
    Family(
        re.compile(r"cohere\.command-(text|light)"),
        "prompt",
        {
            "max_tokens": Setting("max_tokens", 1, 4096),
            "temperature": Setting("temperature", 0, 5),
            "top_p": Setting("p", 0, 1),
            "top_k": Setting("k", 0, 500),
        },
        text="text",
        reason="finish_reason",
        stops="stop_sequences",
        most_stops=4,
        body={"truncate": "NONE", "stream": True},
    ),
)


def family_of(*names: str) -> Family | None:
    """The family of a model by the names it goes by; None for models that do not take a prompt as it is."""
    return next((family for family in FAMILIES if any(family.name.search(name) for name in names)), None)
