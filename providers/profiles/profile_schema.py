"""The schema of profiles.yaml: the keys of an entry and the values that each accepts."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic import JsonValue as AnyJson

from providers.failure import FailureKind
from providers.profile import (
    AtWindow,
    AuthStyle,
    CredentialKind,
    FilesTaken,
    HookName,
    HostedKind,
    HostedStyle,
    LogprobsMode,
    ModelHost,
    ModelListStyle,
    PromptForm,
    ResponsesUse,
    StrictFormats,
    TokenizerStyle,
    ToolChoice,
)
from providers.unified_request import Operation, Task

# YAML has only strings and lists, so enumerations and pairs are converted.
Kind = Annotated[FailureKind, Field(strict=False)]
Bounds = Annotated[tuple[float | None, float | None], Field(strict=False)]
OperationName = Annotated[Operation, Field(strict=False)]
Scope = Literal["all"] | OperationName
"""The operations to which a list of fields or of renamed fields applies."""
MessageRole = Literal["system", "user", "assistant", "tool"]
Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class StrictModel(BaseModel):
    """A mapping in which an unknown key is an error, and whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AuthEntry(StrictModel):
    """How the API key is sent, and the source of credentials if there is no key. See `providers.profile.Auth`."""

    style: AuthStyle = "bearer"
    header: str = "Authorization"
    required: bool = True
    fallback: CredentialKind | None = None
    service: str | None = None
    scope: str | None = None
    exchange: str | None = None


class LogprobsEntry(StrictModel):
    """How log probabilities are requested, and the most alternatives of non-streaming and streamed responses."""

    chat: LogprobsMode = "bool"
    completions: LogprobsMode = "int"
    most: dict[OperationName, int] = {}
    stream_most: dict[OperationName, int] = {}

    def mode(self, operation: Operation) -> LogprobsMode:
        """Return the mode of an operation."""
        return {Operation.CHAT: self.chat, Operation.COMPLETIONS: self.completions}[operation]


class ErrorsEntry(StrictModel):
    """The meanings of a vendor's errors.

    The failure kind is given by the vendor's error code, by status, by a pattern of the message, by the dotted path of
    a field that the error has (`members`), and by the status of a response without a message (`silent`). `text` is a
    pattern of texts that are errors.
    """

    codes: dict[str, Kind] = {}
    statuses: dict[int, Kind] = {}
    patterns: dict[str, Kind] = {}
    members: dict[str, Kind] = {}
    silent: dict[int, Kind] = {}
    text: str | None = None


TaskName = Annotated[Task, Field(strict=False)]


class TaskEntry(StrictModel):
    """One task other than generation. See `providers.profile.TaskWire`."""

    path: str
    form: str = "openai"
    most: int | None = None
    most_tokens: int | None = None
    accepts: list[str] = []
    rename: dict[str, str] = {}
    words: dict[str, dict[str, AnyJson]] = {}
    passes: list[str] = []
    body: dict[str, AnyJson] = {}
    examples: list[str] = []


class ResponsesEntry(StrictModel):
    """OpenAI's Responses API at a vendor. See `providers.profile.ResponsesWire`."""

    path: str
    reasoning: str
    when: ResponsesUse = "never"
    format: str
    openai: bool = True
    presets: str | None = None
    efforts: dict[str, str] = {}


class SessionEntry(StrictModel):
    """The header or field that names the conversation to a vendor. See `providers.profile.SessionPlace`."""

    header: str | None = None
    field: str | None = None


class ProfileEntry(StrictModel):
    """One vendor, including inherited keys. An item of `models` or `before` may have the same keys."""

    dialect: str = "openai"
    base_url: str | None = None
    auth: AuthEntry = AuthEntry()
    engine: bool = False
    fetches_from_text: bool = False
    paths: dict[OperationName, str | None] = {}
    raw_prompts: str = "native"
    model_in: Literal["body", "path"] = "body"
    api_version: str | None = None
    unknown_fields: Literal["forward", "refuse"] | None = None
    accepts: dict[Scope, list[str]] = {}
    refuses: dict[Scope, list[str]] = {}
    rename: dict[Scope, dict[str, str]] = {}
    max_tokens_field: dict[OperationName, str] = {}
    words: dict[str, dict[str, str | dict[str, AnyJson]]] = {}
    nearest: dict[str, list[str]] = {}
    needs: dict[str, str] = {}
    bounds: dict[str, Bounds] = {}
    stop_most: int = 4
    top_k_off: int | None = None
    tool_choices: list[ToolChoice] = ["auto", "none", "required", "named"]
    with_forced_tool: dict[str, AnyJson] = {}
    logprobs: LogprobsEntry = LogprobsEntry()
    echo_logprobs: bool = True
    strict_tools: bool = True
    bare_parameters: bool = True
    most_tools: int | None = None
    files: FilesTaken = "any"
    structured: str = "openai"
    strict_formats: StrictFormats = "always"
    format_beside_tools: bool = True
    verify: bool = False
    tokenizer: TokenizerStyle | None = None
    model_list: ModelListStyle | Literal["none"] | None = None
    examples: list[str] = ["model"]
    usage: Literal["ask", "always"] = "ask"
    prompt_forms: list[PromptForm] = ["text", "texts", "tokens", "token_lists"]
    developer_role: bool = False
    named_roles: list[MessageRole] = ["system", "user", "assistant", "tool"]
    takes: list[str] = []
    tool_types: list[str] = []
    reasoning_members: list[str] = []
    own_member: str | None = None
    usage_in_choices: bool = False
    content_parts: bool = True
    hooks: list[HookName] = []
    streams_only: bool = False
    exact_streams: bool = False
    frames: Literal["events", "lines"] = "events"
    neutral: Literal["send", "drop"] = "send"
    body: dict[str, AnyJson] = {}
    context: dict[OperationName, AtWindow] = {}
    tasks: dict[TaskName, TaskEntry | None] = {}
    responses: ResponsesEntry | None = None
    hosted: dict[HostedKind, HostedStyle | None] = {}
    not_hosted: dict[HostedKind, str] = {}
    session: SessionEntry | None = None
    closing_ends_bill: bool = False
    errors: ErrorsEntry = ErrorsEntry()
    model_host: ModelHost | None = None
    models: list[dict[str, AnyJson]] = []
    before: dict[Date, dict[str, AnyJson]] = {}

    def fields(self) -> dict[str, list[str]]:
        """Return the unified fields that the entry names, by the key that names them."""
        return {
            **{f"accepts.{operation}": scoped_fields(self.accepts, operation) for operation in Operation},
            **{f"refuses.{operation}": scoped_fields(self.refuses, operation) for operation in Operation},
            **{f"rename.{operation}": list(scoped_names(self.rename, operation)) for operation in Operation},
            "words": list(self.words),
            "nearest": list(self.nearest),
            "needs": [*self.needs, *self.needs.values()],
            "bounds": list(self.bounds),
        }


def scoped_fields(lists: Mapping[Scope, list[str]], operation: Operation) -> list[str]:
    """Return the fields that apply to an operation: the fields for all operations and its own."""
    return [*lists.get("all", ()), *lists.get(operation, ())]


def scoped_names(maps: Mapping[Scope, dict[str, str]], operation: Operation) -> dict[str, str]:
    """Return the vendor's names for an operation, by unified field. Names for the operation take precedence over names
    for all operations."""
    return {**maps.get("all", {}), **maps.get(operation, {})}
