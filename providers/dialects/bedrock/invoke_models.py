"""Lists the models on Bedrock's InvokeModel that accept a raw prompt, and the field names of each maker's bodies.

Sources: "Inference request parameters and response fields for foundation models" pages (Amazon Titan Text, Meta Llama,
Mistral AI text completion, Cohere Command, DeepSeek), November 2026. The service model declares these bodies as bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Setting:
    """The path of a unified field in the body, and the inclusive bounds of its value."""

    path: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InvokeFamily:
    """The body of one maker's models.

    `name` matches the model's id. `prompt` is the field of the prompt, `settings` maps the other unified fields, and
    `body` holds the constant fields of every call. `stops` is the field of the stop strings, which accepts at most
    `most_stops` of them. If there is no such field, the gateway finds the stop strings in the text.

    The other fields describe the response. `choices` is the list whose first object is the choice; in a stream, or
    without a list, the response itself may be the choice. `text`, `reason`, `prompt_tokens` and `completion_tokens` are
    field names; `completion_tokens` lists several names, of which the first that is present counts. A call to a maker
    whose responses have no token counts is always streamed, because the service adds its own counts to the end of a
    stream.
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
        """Whether calls are streamed even if the client requests a non-streaming response."""
        return not self.prompt_tokens


_TOP_P = Setting("top_p", 0, 1)

FAMILIES: tuple[InvokeFamily, ...] = (
    # The model accepts only a few patterns as stop strings, so the gateway finds all stop strings in the text.
    InvokeFamily(
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
    InvokeFamily(
        re.compile(r"meta\.llama"),
        "prompt",
        {"max_tokens": Setting("max_gen_len", 1), "temperature": Setting("temperature", 0, 1), "top_p": _TOP_P},
        text="generation",
        reason="stop_reason",
        prompt_tokens="prompt_token_count",
        completion_tokens=("generation_token_count",),
    ),
    InvokeFamily(
        re.compile(r"mistral\.(mistral-7b|mixtral-8x7b|mistral-large-2402|mistral-small-2402)"),
        "prompt",
        {
            "max_tokens": Setting("max_tokens", 1),
            "temperature": Setting("temperature", 0, 1),
            "top_p": _TOP_P,
            "top_k": Setting("top_k", 1, 200),
        },
        text="text",
        reason="stop_reason",
        choices="outputs",
        stops="stop",
        most_stops=10,
    ),
    # The model limits stop strings to 10 characters, so the gateway finds all stop strings in the text.
    InvokeFamily(
        re.compile(r"deepseek\.r1"),
        "prompt",
        {"max_tokens": Setting("max_tokens", 1), "temperature": Setting("temperature", 0, 1), "top_p": _TOP_P},
        text="text",
        reason="stop_reason",
        choices="choices",
    ),
    # Without `truncate` the model silently cuts the end of a prompt that is too long.
    InvokeFamily(
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


def family_of(*names: str) -> InvokeFamily | None:
    """Return the family of a model with these names, or `None` if the model does not accept raw prompts."""
    return next((family for family in FAMILIES if any(family.name.search(name) for name in names)), None)
