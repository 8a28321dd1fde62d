"""A vendor's profile: which dialect it speaks and where it departs from it."""

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
    endpoint where a key is exchanged for access tokens, for vendors that do not take the key itself.
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
    """How log probabilities are requested, and the most alternatives of a whole answer and of a stream.

    `bool` is chat's `logprobs: true` with `top_logprobs`, `listed` the same where at least one must be listed; `int` is
    the completion API's count, `positive` a count whose 0 means none at all; `either` takes `bool` and `int`.
    """

    mode: LogprobsMode
    most: int
    stream_most: int


@dataclass(frozen=True, slots=True)
class Wire:
    """One operation of a vendor: its path, the unified fields that it honours and their names there.

    `context` says what the vendor does when prompt and limit exceed the window: it obeys the unified field (`native`),
    refuses (`errors`), shortens the answer (`clamps`), cuts the prompt (`cuts`), or has no window (`never`).
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

    One call takes at most `most` inputs and `most_tokens` tokens in all of them together (None: no such limit).
    `accepts` names the optional fields that the vendor honours, `rename` their names there, `words` the vendor's values
    for ours, by field. `passes` names members of the vendor's own that clients may send, `body` holds members of every
    call. `examples` are model names, one for each case that the task tells apart.
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
    """The vendor's Responses API: its path below the base URL, and a pattern of the models that reason there.

    `when` says which requests of other APIs go there: none (`never`), all because the model has no other API
    (`always`), requests with tools unless the effort is `none` (`tools`), or with tools and another effort than `none`
    (`tools_and_reasoning`). Requests with a tool that the vendor runs always go there; with `hosted` no others do, not
    even requests of the API itself. `format` is OpenRouter's name for the model's encrypted reasoning.

    An `openai` one has all fields of OpenAI's API, so that requests of the API itself go there unchanged. Any other is
    an API of the same shape that refuses fields which it does not know: requests are written for it, with a constraint
    in `response_format`, and with texts and images as the only parts. `presets` is a pattern of names that are sent as
    `preset` in place of `model`, `None` if the vendor has none. `efforts` are the words of effort that the model has by
    this API alone, by the client's.
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
        """Whether requests of the API itself go there unchanged."""
        return self.openai and self.when != "hosted"

    def model_field(self, model: str) -> str:
        """Return the field of the body that names the model."""
        return "preset" if self.presets is not None and self.presets.fullmatch(model) else "model"


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a call names its conversation, so that the vendor finds the cache of that: a header of
    calls, but with a `field` not of those of the Responses API; and a field of bodies, but with a `header` only of
    those of the Responses API."""

    header: str | None
    field: str | None


@dataclass(frozen=True, slots=True)
class ErrorMeanings:
    """Failure kinds by a vendor's error code, status and message, where the common reading would be wrong.

    `members` has kinds by a field of the error, `silent` by the status of a response without a message; a text that
    `text` matches is an error.
    """

    codes: Mapping[str, FailureKind]
    statuses: Mapping[int, FailureKind]
    patterns: tuple[tuple[re.Pattern[str], FailureKind], ...]
    members: Mapping[str, FailureKind]
    silent: Mapping[int, FailureKind]
    text: re.Pattern[str] | None


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What is known of one vendor.

    `engine` marks a server that operators run themselves, `fetches_from_text` one that fetches the images which a
    prompt names in Markdown.

    `raw_prompts` says which models take a prompt as it is: all (`native`), none (`chat`), none but to fill in the
    middle (`suffix`), or those whose names match a pattern, which then do not chat. Prompts for other models are
    wrapped into a chat. `examples` are model names, one for each case that the profile tells apart. `structured` names
    a style of `providers.constraints.constraint_styles`, `strict_formats` when its schemas may be strict: `alone` is
    without tools and a stream; `format_beside_tools` says that tools and a constraint may stand together. `verifies`
    says that the engine may ignore a constraint, so that the answer is checked. `tokenizer` is how the engine counts a
    prompt, None where it does not. `model_list` is the kind of list in which the vendor names its models, None where it
    has none, or one of other things than what can be asked for. `developer_role` and `content_parts` say whether
    messages may have that role, and content in parts; `named_roles` are the roles whose messages may have a name;
    `takes` names members of the body, of messages, parts, calls and tools that most vendors refuse; `tool_types` are
    patterns of the types of tools beside functions. `reasoning_members` are the fields in which a message of the model
    carries its reasoning back, one for each name that some version of the vendor's server reads; `hooks` name further
    changes to messages. `words` are the vendor's values for values of the client's, by field; an object holds fields of
    the body that mean the same. `nearest` are the values whose word only comes near. `files` are the files that a
    message of a chat may hold: all as they are (`any`), PDFs by their data or id (`pdf`), those and addresses in the
    place of data (`addressed`), or `none`. `needs` are the fields that are taken only beside another one that is true.
    `bare_parameters` says that the schema of a function's parameters may be an object without properties; one request
    has at most `most_tools`. `with_forced_tool` holds the members of the body without which a choice that forces a call
    is refused. `streams_only` says that non-streaming responses are read from streams too, `exact_streams` that they
    may be: a stream holds all fields of a non-streaming response, usage included. With `line_frames` an event ends with
    its line. `body` holds members of every request; with `drops_neutral` neutral values are not sent. `top_k_off` is
    the value that turns `top_k` off, None where it must be left out. `own_member` is a member of answers in which the
    vendor puts `usage` and `error`; `usage_in_choices` says that the first choice of an answer may hold its usage.

    `errors` are the meanings of the vendor's errors. `model_host` says where the models run, and so which of their
    rules hold: at their makers, to which the vendor passes requests on (`makers`), on a server of open weights alone
    (`weights`), or at either (`any`). `hosted` names the forms of `providers.hosted_tools.hosted_forms` in which the
    vendor takes tools that it runs itself and that other vendors have too, `not_hosted` the reasons why the gateway can
    request none of a kind. `session` is the field or header in which a call names its conversation, `None` if there is
    none. `closing_ends_bill` is set if the vendor is known to bill of a stream that its client closes no more than it
    generated until then. `tasks` are the tasks besides generation that the vendor takes. `responses` is its Responses
    API, None where requests of that API are translated into chats. `overrides` are the profiles of models by a pattern
    of their names, `versions` those before a date of the vendor's API, oldest first. `blank_stops` says that a stop
    string may be blank, which the model decides."""

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
    session: SessionPlace | None = None
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
        """The names in braces in the base URL, which the operator must fill in."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", self.base_url or "")))

    def takes_tool(self, kind: object) -> bool:
        """Return whether a tool of this type may be offered."""
        if kind == "function":
            return True
        return isinstance(kind, str) and any(pattern.fullmatch(kind) for pattern in self.tool_types)

    def for_version(self, version: str | None) -> "Profile":
        """Return the profile for a version of the vendor's API; a version that is no date is the newest."""
        known = version or ""
        return next((profile for date, profile in self.versions if "" < known < date), self)

    def for_model(self, *names: str) -> "Profile":
        """Return the profile for a model, by any of its names: deployments on Azure have names of their own."""
        for pattern, profile in self.overrides:
            if any(pattern.search(name) for name in names):
                return profile
        return self

    def takes_raw_prompts(self, *names: str) -> bool:
        """Return whether the completion endpoint of the model with these names takes any prompt as it is."""
        pattern = self.raw_prompts
        if isinstance(pattern, str):
            return pattern == "native"
        return any(pattern.search(name) for name in names)

    def chats(self, *names: str) -> bool:
        """Return whether the model with these names has a chat endpoint."""
        if Operation.CHAT not in self.wires:
            return False
        return isinstance(self.raw_prompts, str) or not self.takes_raw_prompts(*names)
