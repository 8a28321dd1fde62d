"""Profiles: one row a vendor, saying which dialect it speaks and where it departs from it.

Never holds a secret, a branch for one vendor, or a knob that nothing reads.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

import yaml
from pydantic import ValidationError

from providers.failure import AGAINST_ALL, FailureKind
from providers.guided import STYLES
from providers.profile_rows import (
    AtWindow,
    HookName,
    LogprobsMode,
    OperationName,
    ProfileRow,
    PromptForm,
    TokenizerStyle,
    ToolChoice,
)
from providers.unified import JsonObject, JsonValue, Operation, Params


@dataclass(frozen=True, slots=True)
class Auth:
    """How a key travels: `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or `none`.

    `fallback` is the kind of credentials that a deployment takes when it has neither a key nor credentials of its own.
    `service` is the vendor's name in AWS's signatures, `scope` what an access token is to be for. `exchange` is the
    endpoint at which a key is exchanged for access tokens, where the vendor does not take the key itself.
    """

    style: Literal["bearer", "header", "none"] = "bearer"
    header: str = "Authorization"
    required: bool = True
    fallback: Literal["aws", "google", "entra"] | None = None
    service: str | None = None
    scope: str | None = None
    exchange: str | None = None


@dataclass(frozen=True, slots=True)
class Logprobs:
    """How an operation asks for log probabilities, and how many alternatives it lists at most, whole and streamed.

    `bool` is chat's `logprobs: true` with `top_logprobs`, `listed` the same where at least one must be listed; `int` is
    the completion API's count, `positive` a count whose 0 means none at all; `either` takes `bool` and `int`.
    """

    mode: LogprobsMode
    most: int
    stream_most: int


@dataclass(frozen=True, slots=True)
class Wire:
    """One operation of a vendor: its path, the unified fields it honours and what they are called there.

    `context` says what the vendor does when prompt and limit pass the window: it obeys the unified field (`native`),
    refuses (`errors`), shortens the answer by itself (`clamps`), cuts the prompt by itself (`cuts`), or has no window
    (`never`).
    """

    path: str
    accepts: frozenset[str]
    rename: Mapping[str, str]
    max_tokens_field: str
    logprobs: Logprobs
    context: AtWindow


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One vendor's row.

    `engine` says that it is a server which operators run themselves, not a hosted vendor; `fetches_from_text` that it
    fetches images which the text of a prompt names in Markdown.

    `raw_prompts` says which models take a prompt as it is (`native`: all, `chat`: none, `suffix`: none but to fill in
    the middle, or a pattern over their names); prompts for the others are wrapped into a chat. Models that match a
    pattern do not chat. `examples` are models for each of which the row means something else. `structured` names a
    style of `providers.guided`; `verifies` says that the engine may ignore a constraint in silence, so that the answer
    is held against it. `tokenizer` is how the engine counts a prompt, None where it does not. `developer_role` and
    `content_parts` say whether messages may have that role, and content in parts; `reasoning_member` under which name a
    message of the model carries its reasoning back; `hooks` name what else is done to messages. `words` hold by field
    the vendor's words for values of the client's. `streams_only` says that a whole answer is read from a stream too,
    `exact_streams` that one may be: a stream tells all that a plain whole answer does, its usage included.
    `line_frames` that an event ends with its line. `body` holds members of every request, and `drops_neutral` says that
    values which ask for nothing are not sent. `top_k_off` is how the vendor is told that `top_k` is off, None where
    only leaving it out does. The `error_*` members map the vendor's codes, statuses and messages to failure kinds where
    the common reading would be wrong; `silent_statuses` do so for answers without a word, and a text that `error_text`
    matches is an error. `versions` hold the row as it was before a date of the vendor's API, the oldest first.
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
    words: Mapping[str, Mapping[str, str]]
    bounds: Mapping[str, tuple[float | None, float | None]]
    stop_most: int
    top_k_off: int | None
    tool_choices: frozenset[ToolChoice]
    echo_logprobs: bool
    strict_tools: bool
    structured: str
    verifies: bool
    tokenizer: TokenizerStyle | None
    examples: tuple[str, ...]
    asks_usage: bool
    prompt_forms: frozenset[PromptForm]
    developer_role: bool
    reasoning_member: str | None
    content_parts: bool
    hooks: tuple[HookName, ...]
    streams_only: bool
    exact_streams: bool
    line_frames: bool
    drops_neutral: bool
    body: Mapping[str, JsonValue]
    error_codes: Mapping[str, FailureKind]
    error_statuses: Mapping[int, FailureKind]
    error_patterns: tuple[tuple[re.Pattern[str], FailureKind], ...]
    silent_statuses: Mapping[int, FailureKind]
    error_text: re.Pattern[str] | None
    overrides: tuple[tuple[re.Pattern[str], "Profile"], ...] = ()
    versions: tuple[tuple[str, "Profile"], ...] = ()

    @property
    def key_required(self) -> bool:
        """Whether a deployment without a key cannot work."""
        return self.auth.required and self.auth.style != "none"

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces of the base URL, which the operator must fill in."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", self.base_url or "")))

    def for_version(self, version: str | None) -> "Profile":
        """The row as it holds for a version of the vendor's API; one that is no date is the newest."""
        known = version or ""
        return next((profile for date, profile in self.versions if "" < known < date), self)

    def for_model(self, *names: str) -> "Profile":
        """The row as it holds for a model; each name it goes by counts, since Azure's deployments have free ones."""
        for pattern, profile in self.overrides:
            if any(pattern.search(name) for name in names):
                return profile
        return self

    def takes_raw_prompts(self, *names: str) -> bool:
        """Whether the completion endpoint of a model with these names takes any prompt as it is."""
        pattern = self.raw_prompts
        if isinstance(pattern, str):
            return pattern == "native"
        return any(pattern.search(name) for name in names)

    def chats(self, *names: str) -> bool:
        """Whether a model with these names can be asked by chat."""
        if Operation.CHAT not in self.wires:
            return False
        return isinstance(self.raw_prompts, str) or not self.takes_raw_prompts(*names)


class ProfileError(ValueError):
    """A row of the packaged table is wrong; names the row and the knob."""


_COMMON = ("max_tokens", "temperature", "top_p", "n", "stop", "presence_penalty", "frequency_penalty", "seed", "user")
_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_BASE: Mapping[Operation, frozenset[str]] = {
    Operation.CHAT: frozenset((*_COMMON, "logprobs", "logit_bias", *_TOOLS, "response_format", "guided", "images")),
    Operation.COMPLETIONS: frozenset((*_COMMON, "logprobs", "logit_bias", "echo")),
}
"""What every OpenAI-compatible server is taken to honour unless its row says otherwise."""

_FIELDS = frozenset(Params.__annotations__)

_CASES = ("models", "before")
"""Knobs that hold rows of their own."""

_FALLBACK_NEEDS = {"aws": "service", "entra": "scope"}
"""What credentials cannot do without, by kind: nobody else could say it where a deployment says nothing."""


@cache
def load_profiles() -> Mapping[str, Profile]:
    """The packaged rows by name. Raises ProfileError."""
    text = files("providers").joinpath("profiles.yaml").read_text(encoding="utf-8")
    return parse_profiles(text)


def parse_profiles(text: str) -> Mapping[str, Profile]:
    """Rows from YAML text; `extends` deep-merges another row. Raises ProfileError naming row and knob."""
    rows = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    if not isinstance(rows, dict):
        raise ProfileError("the table of profiles must be a map of rows")
    return MappingProxyType({name: _profile(name, _inherited(name, rows, ())) for name in rows})


def _inherited(name: str, rows: JsonObject, below: tuple[str, ...]) -> JsonObject:
    row = rows.get(name)
    if not isinstance(row, dict):
        raise ProfileError(f"{name}: no such row, or not a map")
    if name in below:
        raise ProfileError(f"{name}: extends itself")
    parent = row.get("extends")
    own = {key: value for key, value in row.items() if key != "extends"}
    if parent is None:
        return own
    if not isinstance(parent, str):
        raise ProfileError(f"{name}.extends: must be a row's name")
    return merged(_inherited(parent, rows, (*below, name)), own)


def merged(below: JsonObject, above: JsonObject) -> JsonObject:
    """Both maps, member by member; `above` wins, and lists are replaced whole."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _profile(name: str, row: JsonObject, place: str = "") -> Profile:
    read = _read(place or name, row)
    return _built(name, read, tuple(_by_model(name, row, read)), tuple(_by_version(name, row, read)))


def _by_model(name: str, row: JsonObject, read: ProfileRow) -> Iterator[tuple[re.Pattern[str], Profile]]:
    for index, entry in enumerate(read.models):
        where = f"{name}.models.{index}"
        pattern = _pattern(f"{where}.match", entry.get("match"))
        changes = {key: value for key, value in entry.items() if key != "match"}
        yield pattern, _profile(name, _overlaid(where, row, changes, ()), where)


def _by_version(name: str, row: JsonObject, read: ProfileRow) -> Iterator[tuple[str, Profile]]:
    """Oldest first. What was missing at a date was missing before it too."""
    for date in sorted(read.before):
        where, older = f"{name}.before.{date}", row
        for later in sorted(read.before, reverse=True):
            older = _overlaid(where, older, read.before[later], ("models",)) if later >= date else older
        yield date, _profile(name, older, where)


def _overlaid(where: str, row: JsonObject, changes: JsonObject, kept: Sequence[str]) -> JsonObject:
    """A row with changes laid over it, which say nothing of further cases themselves."""
    if nested := [knob for knob in _CASES if knob in changes]:
        raise ProfileError(f"{where}.{nested[0]}: may not stand here")
    return merged({key: value for key, value in row.items() if key not in _CASES or key in kept}, changes)


def _read(place: str, row: JsonObject) -> ProfileRow:
    try:
        read = ProfileRow.model_validate(row)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ProfileError(f"{place}.{where}: {error.errors()[0]['msg']}") from None
    for knob, names in read.fields().items():
        if unknown := sorted(set(names) - _FIELDS):
            raise ProfileError(f"{place}.{knob}: no unified field is called {unknown[0]!r}")
    if (needed := _FALLBACK_NEEDS.get(read.auth.fallback or "")) and getattr(read.auth, needed) is None:
        raise ProfileError(f"{place}.auth.{needed}: is needed by the fallback {read.auth.fallback!r}")
    if read.structured not in STYLES:
        raise ProfileError(f"{place}.structured: no style is called {read.structured!r}")
    return read


def _error_patterns(name: str, patterns: Mapping[str, FailureKind]) -> Iterator[tuple[re.Pattern[str], FailureKind]]:
    """The messages that mean something else than their status. Raises ProfileError for a part of one that would have a
    deployment left alone: a client's words that the vendor quotes may have it too."""
    for text, kind in patterns.items():
        compiled = _pattern(f"{name}.errors.patterns", text, re.IGNORECASE)
        if kind in AGAINST_ALL and not (text.startswith("^") and text.endswith("$")):
            raise ProfileError(f"{name}.errors.patterns: {text} must match the whole message to mean {kind.value}")
        yield compiled, kind


def _pattern(place: str, text: JsonValue, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise ProfileError(f"{place}: must be a pattern")
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise ProfileError(f"{place}: is not a pattern: {error}") from None


def _raw_prompts(name: str, text: str) -> Literal["native", "chat", "suffix"] | re.Pattern[str]:
    match text:
        case "native" | "chat" | "suffix":
            return text
        case _:
            return _pattern(f"{name}.raw_prompts", text)


def _built(
    name: str,
    row: ProfileRow,
    overrides: tuple[tuple[re.Pattern[str], Profile], ...],
    versions: tuple[tuple[str, Profile], ...],
) -> Profile:
    text = row.errors.text
    return Profile(
        name=name,
        dialect=row.dialect,
        base_url=row.base_url,
        auth=Auth(**row.auth.model_dump()),
        engine=row.engine,
        fetches_from_text=row.fetches_from_text,
        wires=MappingProxyType({op: wire for op in Operation if (wire := _wire(row, op)) is not None}),
        raw_prompts=_raw_prompts(name, row.raw_prompts),
        model_in=row.model_in,
        api_version=row.api_version,
        forwards_unknown=row.unknown_fields == "forward",
        words=MappingProxyType(dict(row.words)),
        bounds=MappingProxyType(dict(row.bounds)),
        stop_most=row.stop_most,
        top_k_off=row.top_k_off,
        tool_choices=frozenset(row.tool_choices),
        echo_logprobs=row.echo_logprobs,
        strict_tools=row.strict_tools,
        structured=row.structured,
        verifies=row.verify,
        tokenizer=row.tokenizer,
        examples=tuple(row.examples),
        asks_usage=row.usage == "ask",
        prompt_forms=frozenset(row.prompt_forms),
        developer_role=row.developer_role,
        reasoning_member=row.reasoning_member,
        content_parts=row.content_parts,
        hooks=tuple(row.hooks),
        streams_only=row.streams_only,
        exact_streams=row.exact_streams,
        line_frames=row.frames == "lines",
        drops_neutral=row.neutral == "drop",
        body=MappingProxyType(dict(row.body)),
        error_codes=MappingProxyType(dict(row.errors.codes)),
        error_statuses=MappingProxyType(dict(row.errors.statuses)),
        error_patterns=tuple(_error_patterns(name, row.errors.patterns)),
        silent_statuses=MappingProxyType(dict(row.errors.silent)),
        error_text=None if text is None else _pattern(f"{name}.errors.text", text),
        overrides=overrides,
        versions=versions,
    )


_PATHS = {Operation.CHAT: "/chat/completions", Operation.COMPLETIONS: "/completions"}


def _wire(row: ProfileRow, operation: Operation) -> Wire | None:
    name: OperationName = operation.value
    path = row.paths.get(name, _PATHS[operation])
    if path is None:
        return None
    chat = operation is Operation.CHAT
    most = row.logprobs.most.get(name, 20 if chat else 5)
    mode = row.logprobs.chat if chat else row.logprobs.completions
    return Wire(
        path=path,
        accepts=(_BASE[operation] | set(row.accepts.of(operation))) - set(row.refuses.of(operation)),
        rename=MappingProxyType(row.rename.of(operation)),
        max_tokens_field=row.max_tokens_field.get(name, "max_tokens"),
        logprobs=Logprobs(mode, most, row.logprobs.stream_most.get(name, most)),
        context=row.context.get(name, "errors"),
    )
