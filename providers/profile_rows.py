"""Rows of profiles.yaml as written: which knobs there are and what each may hold. Never what a knob does."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic import JsonValue as AnyJson

from providers.failure import FailureKind
from providers.unified import Operation

LogprobsMode = Literal["bool", "listed", "int", "positive", "either", "none"]
PromptForm = Literal["text", "texts", "tokens", "token_lists"]
ToolChoice = Literal["auto", "none", "required", "named"]
AtWindow = Literal["native", "errors", "clamps", "cuts", "never"]
OperationName = Literal["chat", "completions"]
TokenizerStyle = Literal[
    "vllm",
    "sglang",
    "llamacpp",
    "anthropic",
    "anthropic_vertex",
    "bedrock",
    "bedrock_anthropic",
    "gemini",
    "tgi",
    "vertex",
]
HookName = Literal[
    "alternating_roles",
    "forty_character_call_ids",
    "inline_images",
    "joined_text",
    "named_tool_results",
    "names_of_users_only",
    "nine_character_call_ids",
    "no_empty_text",
    "reasoning_on_calls",
    "signed_calls",
    "split_tool_results",
    "text_tool_results",
]


class Row(BaseModel):
    """A strict map: an unknown knob is an error, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ByOperation(Row):
    """Unified fields, of both operations or of one."""

    all: list[str] = []
    chat: list[str] = []
    completions: list[str] = []

    def of(self, operation: Operation) -> list[str]:
        """Those that hold for an operation."""
        own = self.chat if operation is Operation.CHAT else self.completions
        return [*self.all, *own]


class Names(Row):
    """Unified fields to the vendor's names; a dot leads into a nested member."""

    all: dict[str, str] = {}
    chat: dict[str, str] = {}
    completions: dict[str, str] = {}

    def of(self, operation: Operation) -> dict[str, str]:
        """Those that hold for an operation."""
        own = self.chat if operation is Operation.CHAT else self.completions
        return {**self.all, **own}


class AuthRow(Row):
    """How a key travels, whether one is needed, which credentials are taken without one, and what those are for."""

    style: Literal["bearer", "header", "none"] = "bearer"
    header: str = "Authorization"
    required: bool = True
    fallback: Literal["aws", "google", "entra"] | None = None
    service: str | None = None
    scope: str | None = None
    exchange: str | None = None


class LogprobsRow(Row):
    """How log probabilities are asked for, and the most alternatives, whole and streamed."""

    chat: LogprobsMode = "bool"
    completions: LogprobsMode = "int"
    most: dict[OperationName, int] = {}
    stream_most: dict[OperationName, int] = {}


# Enumerations and pairs are written as words and lists in YAML.
Kind = Annotated[FailureKind, Field(strict=False)]
Bounds = Annotated[tuple[float | None, float | None], Field(strict=False)]
Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class ErrorsRow(Row):
    """Codes, statuses and patterns of messages to kinds of failure; `silent` are statuses of answers without a word,
    `text` a pattern over texts that are errors."""

    codes: dict[str, Kind] = {}
    statuses: dict[int, Kind] = {}
    patterns: dict[str, Kind] = {}
    silent: dict[int, Kind] = {}
    text: str | None = None


class ProfileRow(Row):
    """One vendor, with what it inherits; the same knobs may stand under a match in `models` or a date in `before`."""

    dialect: str = "openai"
    base_url: str | None = None
    auth: AuthRow = AuthRow()
    engine: bool = False
    fetches_from_text: bool = False
    paths: dict[OperationName, str | None] = {}
    raw_prompts: str = "native"
    model_in: Literal["body", "path"] = "body"
    api_version: str | None = None
    unknown_fields: Literal["forward", "refuse"] = "refuse"
    accepts: ByOperation = ByOperation()
    refuses: ByOperation = ByOperation()
    rename: Names = Names()
    max_tokens_field: dict[OperationName, str] = {}
    words: dict[str, dict[str, str]] = {}
    bounds: dict[str, Bounds] = {}
    stop_most: int = 4
    top_k_off: int | None = None
    tool_choices: list[ToolChoice] = ["auto", "none", "required", "named"]
    logprobs: LogprobsRow = LogprobsRow()
    echo_logprobs: bool = True
    strict_tools: bool = True
    structured: str = "openai"
    verify: bool = False
    tokenizer: TokenizerStyle | None = None
    examples: list[str] = ["model"]
    usage: Literal["ask", "always"] = "ask"
    prompt_forms: list[PromptForm] = ["text", "texts", "tokens", "token_lists"]
    developer_role: bool = False
    reasoning_member: str | None = None
    content_parts: bool = True
    hooks: list[HookName] = []
    streams_only: bool = False
    exact_streams: bool = False
    frames: Literal["events", "lines"] = "events"
    neutral: Literal["send", "drop"] = "send"
    body: dict[str, AnyJson] = {}
    context: dict[OperationName, AtWindow] = {}
    errors: ErrorsRow = ErrorsRow()
    models: list[dict[str, AnyJson]] = []
    before: dict[Date, dict[str, AnyJson]] = {}

    def fields(self) -> dict[str, list[str]]:
        """The unified fields that the row names, by the knob that names them."""
        return {
            **{f"accepts.{operation}": self.accepts.of(operation) for operation in Operation},
            **{f"refuses.{operation}": self.refuses.of(operation) for operation in Operation},
            **{f"rename.{operation}": list(self.rename.of(operation)) for operation in Operation},
            "words": list(self.words),
            "bounds": list(self.bounds),
        }
