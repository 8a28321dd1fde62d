"""A vendor's profile: the dialect of the vendor's API, and the deviations of the API from the dialect."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation, Task

LogprobsMode = Literal["bool", "listed", "int", "positive", "either", "none"]
PromptForm = Literal["text", "texts", "tokens", "token_lists"]
ToolChoice = Literal["auto", "none", "required", "named"]
StrictFormats = Literal["always", "alone", "never"]
FilesTaken = Literal["any", "pdf", "addressed", "none"]
ResponsesUse = Literal["never", "always", "tools", "tools_and_reasoning", "hosted"]
AtWindow = Literal["native", "errors", "clamps", "cuts", "never"]
HostedKind = Literal["web_search", "web_fetch", "code_execution"]
HostedStyle = Literal[
    "anthropic",
    "dashscope",
    "gemini",
    "groq",
    "groq_compound",
    "nova",
    "openrouter",
    "options",
    "perplexity",
    "perplexity_agent",
    "responses",
    "vertex",
    "xai",
    "zai",
]
AuthStyle = Literal["bearer", "header", "none"]
CredentialKind = Literal["aws", "google", "entra"]
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
ModelHost = Literal["makers", "any", "weights"]
ModelListStyle = Literal["openai", "anthropic", "gemini", "cohere", "ollama"]
HookName = Literal[
    "alternating_roles",
    "answered_results",
    "document_parts",
    "forty_character_call_ids",
    "inline_images",
    "instructions_from_users",
    "joined_text",
    "media_after_results",
    "named_tool_results",
    "nine_character_call_ids",
    "no_empty_text",
    "prefixed_last_turn",
    "reasoning_on_calls",
    "reasoning_on_turns",
    "signed_calls",
    "split_tool_results",
    "text_tool_results",
    "thinking_chunks",
]


@dataclass(frozen=True, slots=True)
class Auth:
    """How a key is sent: `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or not at all (`none`).

    `fallback` is the kind of credentials for deployments that have neither a key nor credentials of their own.
    `service` is the vendor's service name in AWS signatures, `scope` the scope of an access token. `exchange` is the
    endpoint at which a key is exchanged for access tokens, for vendors that do not accept the key itself.
    """

    style: AuthStyle = "bearer"
    header: str = "Authorization"
    required: bool = True
    fallback: CredentialKind | None = None
    service: str | None = None
    scope: str | None = None
    exchange: str | None = None


@dataclass(frozen=True, slots=True)
class Logprobs:
    """How log probabilities are requested, and the most alternatives in a non-streaming response and in a stream.

    `bool` is chat's `logprobs: true` with `top_logprobs`; `listed` is the same for vendors that require at least one
    alternative. `int` is the completion API's count; `positive` is a count for which 0 means no log probabilities.
    `either` accepts `bool` and `int`.
    """

    mode: LogprobsMode
    most: int
    stream_most: int


@dataclass(frozen=True, slots=True)
class Wire:
    """One operation of a vendor: its path, the unified fields that it supports, and the vendor's names of these fields.

    `context` is the vendor's behaviour if prompt and limit exceed the window. The vendor obeys the unified field
    (`native`), refuses the request (`errors`), shortens the response (`clamps`), cuts the prompt (`cuts`), or has no
    window (`never`).
    """

    path: str
    accepts: frozenset[str]
    rename: Mapping[str, str]
    max_tokens_field: str
    logprobs: Logprobs
    context: AtWindow


@dataclass(frozen=True, slots=True)
class TaskWire:
    """One task of a vendor: its path below the base URL and the name of its wire format.

    One call takes at most `most` inputs, and at most `most_tokens` tokens in all of them together (`None`: no such
    limit). `accepts` names the optional fields that the vendor supports. `rename` has the vendor's names of fields.
    `words` has, by field, the vendor's values for the gateway's values. `passes` names the vendor's own fields that
    clients may send, `body` holds fields that are sent with every call. `examples` are model names, one for each case
    that the task distinguishes.
    """

    path: str
    form: str
    most: int | None
    most_tokens: int | None
    accepts: frozenset[str]
    rename: Mapping[str, str]
    words: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    passes: frozenset[str] = frozenset()
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """The vendor's Responses API: its path below the base URL, and a pattern of the names of models that reason in this
    API.

    `when` decides which requests of other APIs are sent to the Responses API:
    - `never`: no request.
    - `always`: all requests, because the model has no other API.
    - `tools`: requests with tools, unless the effort is `none`.
    - `tools_and_reasoning`: requests with tools and an effort other than `none`.
    - `hosted`: only requests with a tool that the vendor runs, and not even requests of the API itself.

    With every value, requests with a tool that the vendor runs are sent to the Responses API. `format` is OpenRouter's
    name for the model's encrypted reasoning.

    If `openai`, the API has all fields of OpenAI's, so requests of the API itself are sent unchanged. Otherwise it is
    an API of the same form that refuses unknown fields: requests are written for it, with a constraint in
    `response_format`, and with texts and images as the only parts. `presets` is a pattern of names that are sent as
    `preset` instead of `model`; `None` if the vendor has none. `efforts` maps the client's words of effort to words
    that the model has only in this API.
    """

    path: str
    reasoning: re.Pattern[str]
    when: ResponsesUse
    format: str
    openai: bool = True
    presets: re.Pattern[str] | None = None
    efforts: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_own(self) -> bool:
        """Whether the client's Responses requests are sent to this vendor unchanged."""
        return self.openai and self.when != "hosted"

    def model_field(self, model: str) -> str:
        """Return the field of the body that names the model."""
        return "preset" if self.presets is not None and self.presets.fullmatch(model) else "model"


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """The place of the conversation's name in a call, by which the vendor finds the conversation's cache: a `header` of
    calls, or a `field` of bodies. If both are set, calls of the Responses API have the field, and other calls the
    header."""

    header: str | None
    field: str | None


@dataclass(frozen=True, slots=True)
class ErrorMeanings:
    """Failure kinds by a vendor's error code, status and message, if the common meaning would be wrong.

    `members` has kinds by a field of the error, `silent` by the status of a response without a message. A text that
    matches `text` is an error.
    """

    codes: Mapping[str, FailureKind]
    statuses: Mapping[int, FailureKind]
    patterns: tuple[tuple[re.Pattern[str], FailureKind], ...]
    members: Mapping[str, FailureKind]
    silent: Mapping[int, FailureKind]
    text: re.Pattern[str] | None


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The facts about one vendor.

    `engine` is true for a server that operators run themselves, `fetches_from_text` for one that fetches the images
    which a prompt names in Markdown. `examples` are model names, one for each case that the profile distinguishes.
    `overrides` are the profiles of models by a pattern of their names, `versions` the profiles before a date of the
    vendor's API, oldest first. `model_host` names the servers of the models, whose rules apply:
    - `makers`: the models' makers, to which the vendor passes requests on.
    - `weights`: a server of open weights.
    - `any`: either of the two.

    Prompts. `developer_role` and `content_parts` are true if messages may have that role, and content in parts.
    `named_roles` are the roles whose messages may have a name. `reasoning_members` are the fields in which an assistant
    message sends its reasoning back, one for each name that some version of the vendor's server reads. `hooks` name
    further changes to messages. `session` is the field or header in which a call names its conversation; `None` if
    there is none. `files` are the files that a message of a chat may hold: all files (`any`), PDFs by data or id
    (`pdf`), files by data, id or address (`addressed`), or no files (`none`). `raw_prompts` are the models that accept
    a prompt unchanged; prompts for other models are wrapped into a chat:
    - `native`: all models.
    - `chat`: no model.
    - `suffix`: no model, except to fill in the middle.
    - a pattern: the models whose names match. These models have no chat.

    Fields. `takes` names the fields that this vendor accepts and most vendors refuse: fields of the body, of messages,
    parts, calls and tools. `words` has, by field, the vendor's values for the client's values; an object holds fields
    of the body that have the same meaning. `nearest` are the client's values that the vendor's word only approximates.
    `needs` are fields that are only accepted together with another field that is true. `body` holds fields that are
    sent with every request. If `drops_neutral`, neutral values are not sent. `top_k_off` is the value that turns
    `top_k` off; if it is `None`, `top_k` must be left out. `blank_stops` is true if a stop string may be blank, which
    depends on the model.

    Constraints. `structured` names a style of `providers.constraints.constraint_styles`. `strict_formats` says when
    schemas may be strict; `alone` means only in requests without tools and without a stream. `format_beside_tools` is
    true if tools and a constraint may be used together. If `verifies`, the engine may ignore a constraint, so the
    response is checked.

    Tools. `tool_types` are patterns of the types of tools besides functions. With `bare_parameters` the schema of a
    function's parameters may be an object without properties. One request has at most `most_tools`. `with_forced_tool`
    holds fields of the body without which a choice that forces a call is refused. `hosted` names the forms of
    `providers.hosted_tools.hosted_forms` in which the vendor accepts tools that it runs itself and that other vendors
    have too. `not_hosted` has, by kind of hosted tool, the reason why the gateway cannot request such a tool.

    Responses. If `streams_only`, non-streaming responses are also read from streams. If `exact_streams`, the gateway
    may do the same if the configuration allows it, because a stream holds all fields of a non-streaming response,
    including usage. If `line_frames`, an event ends at the end of its line. `own_member` is a field of responses in
    which the vendor puts `usage` and `error`. If `usage_in_choices`, the first choice of a response may hold its usage.
    `errors` gives the failure kinds of the vendor's errors. `closing_ends_bill` is true if the vendor is known to bill
    only the tokens generated until the client closes a stream.

    Endpoints. `tokenizer` names the way in which the engine counts a prompt; `None` if it does not count prompts.
    `model_list` is the kind of list in which the vendor names its models; `None` if it has no list of the models that
    can be requested. `tasks` are the tasks besides generation that the vendor supports. `responses` is its Responses
    API; if it is `None`, requests of that API are translated into chats.
    """

    name: str
    dialect: str
    base_url: str | None
    auth: Auth
    engine: bool
    fetches_from_text: bool
    wires: Mapping[Operation, Wire]
    raw_prompts: Literal["native", "chat", "suffix"] | re.Pattern[str]
    model_in: Literal["body", "path"]
    api_version: str | None
    forwards_unknown: bool
    words: Mapping[str, Mapping[str, str | JsonObject]]
    nearest: Mapping[str, frozenset[str]]
    needs: Mapping[str, str]
    bounds: Mapping[str, tuple[float | None, float | None]]
    stop_most: int
    top_k_off: int | None
    tool_choices: frozenset[ToolChoice]
    with_forced_tool: Mapping[str, JsonValue]
    echo_logprobs: bool
    strict_tools: bool
    bare_parameters: bool
    most_tools: int | None
    files: FilesTaken
    structured: str
    strict_formats: StrictFormats
    format_beside_tools: bool
    verifies: bool
    tokenizer: TokenizerStyle | None
    model_list: ModelListStyle | None
    examples: tuple[str, ...]
    asks_usage: bool
    prompt_forms: frozenset[PromptForm]
    developer_role: bool
    named_roles: frozenset[str]
    takes: frozenset[str]
    tool_types: tuple[re.Pattern[str], ...]
    reasoning_members: tuple[str, ...]
    own_member: str | None
    usage_in_choices: bool
    content_parts: bool
    hooks: tuple[HookName, ...]
    streams_only: bool
    exact_streams: bool
    line_frames: bool
    drops_neutral: bool
    body: Mapping[str, JsonValue]
    errors: ErrorMeanings
    model_host: ModelHost
    tasks: Mapping[Task, TaskWire]
    responses: ResponsesWire | None
    hosted: Mapping[HostedKind, HostedStyle]
    not_hosted: Mapping[HostedKind, str]
    session: SessionLocation | None = None
    closing_ends_bill: bool = False
    overrides: tuple[tuple[re.Pattern[str], "Profile"], ...] = ()
    versions: tuple[tuple[str, "Profile"], ...] = ()
    blank_stops: bool = True

    @property
    def key_required(self) -> bool:
        """Whether a deployment cannot work without a key."""
        return self.auth.required and self.auth.style != "none"

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces in the base URL, for which the operator must write values."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", self.base_url or "")))

    def takes_tool(self, kind: object) -> bool:
        """Return whether a tool of this type may be offered."""
        if kind == "function":
            return True
        return isinstance(kind, str) and any(pattern.fullmatch(kind) for pattern in self.tool_types)

    def for_version(self, version: str | None) -> "Profile":
        """Return the profile for a version of the vendor's API. A version that is no date is the newest."""
        known = version or ""
        return next((profile for date, profile in self.versions if "" < known < date), self)

    def for_model(self, *names: str) -> "Profile":
        """Return the profile for a model, by any of its names: deployments on Azure have names of their own."""
        for pattern, profile in self.overrides:
            if any(pattern.search(name) for name in names):
                return profile
        return self

    def takes_raw_prompts(self, *names: str) -> bool:
        """Return whether the completion endpoint of the model with these names accepts any prompt unchanged."""
        pattern = self.raw_prompts
        if isinstance(pattern, str):
            return pattern == "native"
        return any(pattern.search(name) for name in names)

    def chats(self, *names: str) -> bool:
        """Return whether the model with these names has a chat endpoint."""
        if Operation.CHAT not in self.wires:
            return False
        return isinstance(self.raw_prompts, str) or not self.takes_raw_prompts(*names)
