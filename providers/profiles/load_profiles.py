"""Loads the profiles of vendors from profiles.yaml."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal, TypeAlias

import yaml
from pydantic import ValidationError

from providers.constraints.style_table import STYLES
from providers.failure import COOLDOWN_KINDS, FailureKind
from providers.json_types import JsonObject, JsonValue, merged
from providers.profile import (
    Auth,
    ErrorMeanings,
    Logprobs,
    ModelListStyle,
    Profile,
    ResponsesWire,
    SessionLocation,
    TaskWire,
    Wire,
)
from providers.profiles.profile_schema import (
    ErrorsEntry,
    ProfileEntry,
    ResponsesEntry,
    TaskEntry,
    scoped_fields,
    scoped_names,
)
from providers.unified_request import Operation, Params


class ProfileError(ValueError):
    """The error for an invalid profile in the packaged file. The message names the profile and the key."""


@dataclass(frozen=True, slots=True)
class _FamilyDefaults:
    """The assumed behaviour of every OpenAI-compatible server for an operation, unless its profile says otherwise."""

    path: str
    accepts: frozenset[str]
    most_logprobs: int


_COMMON_FIELDS = frozenset(
    {"max_tokens", "temperature", "top_p", "n", "stop", "presence_penalty", "frequency_penalty", "seed", "user"}
    | {"logprobs", "logit_bias"}
)
_CHAT_FIELDS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format", "guided", "images"})
_FAMILY: Mapping[Operation, _FamilyDefaults] = {
    Operation.CHAT: _FamilyDefaults("/chat/completions", _COMMON_FIELDS | _CHAT_FIELDS, 20),
    Operation.COMPLETIONS: _FamilyDefaults("/completions", _COMMON_FIELDS | {"echo"}, 5),
}

_FIELDS = frozenset(Params.__annotations__)

_UNKNOWN_BY_DIALECT = {"openai": "forward"}
"""By dialect: the handling of fields outside the unified request unless a profile says otherwise. Servers of OpenAI's
family accept or refuse such fields themselves. `providers.client_extras` removes fields that name hosts, paths or code
before an engine gets them."""

_LISTS_BY_DIALECT: Mapping[str, ModelListStyle] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "cohere": "cohere",
    "ollama": "ollama",
}
"""By dialect: the kind of model list of its vendors, unless a profile says otherwise."""

_CASES = ("models", "before")
"""Keys of an entry that hold changes to the profile for some models or API versions."""

_FALLBACK_NEEDS = {"aws": "service", "entra": "scope"}
"""By kind of fallback credentials: the key that it requires."""


@cache
def load_profiles() -> Mapping[str, Profile]:
    """Return the packaged profiles by name. Each is built at its first access: a configuration uses only a few, and
    building all of them takes 40 ms."""
    return _LazyProfiles(_entries(files("providers.profiles").joinpath("profiles.yaml").read_text(encoding="utf-8")))


def parse_profiles(text: str) -> Mapping[str, Profile]:
    """Return the profiles in a YAML text. `extends` deep-merges an entry over another entry. Raises ProfileError."""
    return MappingProxyType(dict(_LazyProfiles(_entries(text))))


class _LazyProfiles(Mapping[str, Profile]):
    """The profiles of a file's entries. Each is built once, at its first access, which may raise ProfileError."""

    def __init__(self, entries: JsonObject) -> None:
        self._entries = entries
        self._build_profile: dict[str, Profile] = {}

    def __getitem__(self, name: str) -> Profile:
        if name not in self._entries:
            raise KeyError(name)
        if name not in self._build_profile:
            self._build_profile[name] = _profile(name, _with_inherited(name, self._entries, ()))
        return self._build_profile[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _entries(text: str) -> JsonObject:
    entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    if not isinstance(entries, dict):
        raise ProfileError("the file of profiles must be a map of entries")
    return entries


def _with_inherited(name: str, entries: JsonObject, below: tuple[str, ...]) -> JsonObject:
    """Return an entry merged over the entries that it extends. `below` are the names of the entries that extend it."""
    entry = entries.get(name)
    if not isinstance(entry, dict):
        raise ProfileError(f"{name}: no such entry, or not a map")
    if name in below:
        raise ProfileError(f"{name}: extends itself")
    parent = entry.get("extends")
    own = {key: value for key, value in entry.items() if key != "extends"}
    if parent is None:
        return own
    if not isinstance(parent, str):
        raise ProfileError(f"{name}.extends: must be an entry's name")
    return merged(_with_inherited(parent, entries, (*below, name)), own)


def _profile(name: str, written: JsonObject, path_of_entry: str = "") -> Profile:
    entry = _validate_entry(path_of_entry or name, written)
    return _build_profile(name, entry, tuple(_by_model(name, written, entry)), tuple(_by_version(name, written, entry)))


def _by_model(name: str, written: JsonObject, entry: ProfileEntry) -> Iterator[tuple[re.Pattern[str], Profile]]:
    for index, case in enumerate(entry.models):
        location = f"{name}.models.{index}"
        pattern = _pattern(f"{location}.match", case.get("match"))
        changes = {key: value for key, value in case.items() if key != "match"}
        yield pattern, _profile(name, _with_changes(location, written, changes, ()), location)


def _by_version(name: str, written: JsonObject, entry: ProfileEntry) -> Iterator[tuple[str, Profile]]:
    """Yield each date with the profile of the API versions before it, oldest first. The changes of a date also apply to
    all older versions."""
    for date in sorted(entry.before):
        location, older = f"{name}.before.{date}", written
        for later in sorted(entry.before, reverse=True):
            older = _with_changes(location, older, entry.before[later], ("models",)) if later >= date else older
        yield date, _profile(name, {**older, "models": [*_with_older_refusals(older, entry.models)]}, location)


def _with_older_refusals(older: JsonObject, models: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the changes for models, extended by the fields that an older version refuses: the older version refuses
    them for every model."""
    refused = older.get("refuses")
    for case in models:
        own = case.get("refuses")
        if not isinstance(own, dict) or not isinstance(refused, dict):
            yield case
            continue
        lists: JsonObject = {
            scope: [*_listed(refused.get(scope)), *_listed(own.get(scope))] for scope in {**refused, **own}
        }
        yield {**case, "refuses": lists}


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _with_changes(
    location: str, written: JsonObject, changes: JsonObject, remaining_cases: Sequence[str]
) -> JsonObject:
    """Return an entry with changes merged over it. Keys in `_CASES` are removed unless they are in
    `remaining_cases`."""
    if nested := [key_name for key_name in _CASES if key_name in changes]:
        raise ProfileError(f"{location}.{nested[0]}: is not allowed here")
    return merged(
        {key: value for key, value in written.items() if key not in _CASES or key in remaining_cases}, changes
    )


def _validate_entry(path_of_entry: str, written: JsonObject) -> ProfileEntry:
    try:
        entry = ProfileEntry.model_validate(written)
    except ValidationError as error:
        location = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ProfileError(f"{path_of_entry}.{location}: {error.errors()[0]['msg']}") from None
    for key_name, names in entry.fields().items():
        if unknown := sorted(set(names) - _FIELDS):
            raise ProfileError(f"{path_of_entry}.{key_name}: no unified field is called {unknown[0]!r}")
    if (needed := _FALLBACK_NEEDS.get(entry.auth.fallback or "")) and getattr(entry.auth, needed) is None:
        raise ProfileError(f"{path_of_entry}.auth.{needed}: is needed by the fallback {entry.auth.fallback!r}")
    if entry.structured not in STYLES:
        raise ProfileError(f"{path_of_entry}.structured: no style is called {entry.structured!r}")
    return entry


def _errors(name: str, entry: ErrorsEntry) -> ErrorMeanings:
    return ErrorMeanings(
        codes=MappingProxyType(dict(entry.codes)),
        statuses=MappingProxyType(dict(entry.statuses)),
        patterns=tuple(_error_patterns(name, entry.patterns)),
        members=MappingProxyType(dict(entry.members)),
        silent=MappingProxyType(dict(entry.silent)),
        text=None if entry.text is None else _pattern(f"{name}.errors.text", entry.text),
    )


def _error_patterns(name: str, patterns: Mapping[str, FailureKind]) -> Iterator[tuple[re.Pattern[str], FailureKind]]:
    """Yield the compiled patterns of messages. A pattern whose kind opens the circuit breaker must match the whole
    message, since vendors quote text that clients sent."""
    for text, kind in patterns.items():
        compiled = _pattern(f"{name}.errors.patterns", text, re.IGNORECASE)
        if kind in COOLDOWN_KINDS and not (text.startswith("^") and text.endswith("$")):
            raise ProfileError(f"{name}.errors.patterns: {text} must match the whole message to mean {kind.value}")
        yield compiled, kind


def _pattern(location: str, text: JsonValue, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise ProfileError(f"{location}: must be a pattern")
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise ProfileError(f"{location}: is not a pattern: {error}") from None


def _raw_prompts(name: str, text: str) -> Literal["native", "chat", "suffix"] | re.Pattern[str]:
    match text:
        case "native" | "chat" | "suffix":
            return text
        case _:
            return _pattern(f"{name}.raw_prompts", text)


_Overrides: TypeAlias = tuple[tuple[re.Pattern[str], Profile], ...]
_Versions: TypeAlias = tuple[tuple[str, Profile], ...]


def _build_profile(name: str, entry: ProfileEntry, overrides: _Overrides, versions: _Versions) -> Profile:
    return Profile(
        name=name,
        dialect=entry.dialect,
        base_url=entry.base_url,
        auth=Auth(**entry.auth.model_dump()),
        engine=entry.engine,
        fetches_from_text=entry.fetches_from_text,
        wires=MappingProxyType({op: wire for op in Operation if (wire := _wire(entry, op)) is not None}),
        raw_prompts=_raw_prompts(name, entry.raw_prompts),
        model_in=entry.model_in,
        api_version=entry.api_version,
        forwards_unknown=(entry.unknown_fields or _UNKNOWN_BY_DIALECT.get(entry.dialect)) == "forward",
        words=MappingProxyType(dict(entry.words)),
        nearest=MappingProxyType({field: frozenset(values) for field, values in entry.nearest.items()}),
        needs=MappingProxyType(dict(entry.needs)),
        bounds=MappingProxyType(dict(entry.bounds)),
        stop_most=entry.stop_most,
        top_k_off=entry.top_k_off,
        tool_choices=frozenset(entry.tool_choices),
        with_forced_tool=MappingProxyType(dict(entry.with_forced_tool)),
        echo_logprobs=entry.echo_logprobs,
        strict_tools=entry.strict_tools,
        bare_parameters=entry.bare_parameters,
        most_tools=entry.most_tools,
        files=entry.files,
        structured=entry.structured,
        strict_formats=entry.strict_formats,
        format_beside_tools=entry.format_beside_tools,
        verifies=entry.verify,
        tokenizer=entry.tokenizer,
        model_list=_model_list(entry),
        examples=tuple(entry.examples),
        asks_usage=entry.usage == "ask",
        prompt_forms=frozenset(entry.prompt_forms),
        developer_role=entry.developer_role,
        named_roles=frozenset(entry.named_roles),
        takes=frozenset(entry.takes),
        tool_types=tuple([_pattern(f"{name}.tool_types", text) for text in entry.tool_types]),
        reasoning_members=tuple(entry.reasoning_members),
        own_member=entry.own_member,
        usage_in_choices=entry.usage_in_choices,
        content_parts=entry.content_parts,
        hooks=tuple(entry.hooks),
        streams_only=entry.streams_only,
        exact_streams=entry.exact_streams,
        line_frames=entry.frames == "lines",
        drops_neutral=entry.neutral == "drop",
        body=MappingProxyType(dict(entry.body)),
        errors=_errors(name, entry.errors),
        model_host=entry.model_host or ("weights" if entry.engine else "any"),
        tasks=MappingProxyType({task: _task_wire(each) for task, each in entry.tasks.items() if each is not None}),
        responses=None if entry.responses is None else _responses_wire(name, entry.responses),
        hosted=MappingProxyType({kind: style for kind, style in entry.hosted.items() if style is not None}),
        not_hosted=MappingProxyType(dict(entry.not_hosted)),
        session=None if entry.session is None else SessionLocation(entry.session.header, entry.session.field),
        closing_ends_bill=entry.closing_ends_bill,
        overrides=overrides,
        versions=versions,
    )


def _model_list(entry: ProfileEntry) -> ModelListStyle | None:
    listed = entry.model_list or _LISTS_BY_DIALECT.get(entry.dialect)
    return None if listed == "none" else listed


def _wire(entry: ProfileEntry, operation: Operation) -> Wire | None:
    family = _FAMILY[operation]
    path = entry.paths.get(operation, family.path)
    if path is None:
        return None
    accepts = family.accepts.union(scoped_fields(entry.accepts, operation))
    most = entry.logprobs.most.get(operation, family.most_logprobs)
    return Wire(
        path=path,
        accepts=accepts.difference(scoped_fields(entry.refuses, operation)),
        rename=MappingProxyType(scoped_names(entry.rename, operation)),
        max_tokens_field=entry.max_tokens_field.get(operation, "max_tokens"),
        logprobs=Logprobs(entry.logprobs.mode(operation), most, entry.logprobs.stream_most.get(operation, most)),
        context=entry.context.get(operation, "errors"),
    )


def _task_wire(entry: TaskEntry) -> TaskWire:
    return TaskWire(
        path=entry.path,
        form=entry.form,
        most=entry.most,
        most_tokens=entry.most_tokens,
        accepts=frozenset(entry.accepts),
        rename=MappingProxyType(dict(entry.rename)),
        words=MappingProxyType({name: MappingProxyType(words) for name, words in entry.words.items()}),
        passes=frozenset(entry.passes),
        body=MappingProxyType(dict(entry.body)),
        examples=tuple(entry.examples),
    )


def _responses_wire(name: str, entry: ResponsesEntry) -> ResponsesWire:
    reasoning = _pattern(f"{name}.responses.reasoning", entry.reasoning)
    presets = None if entry.presets is None else _pattern(f"{name}.responses.presets", entry.presets)
    return ResponsesWire(
        entry.path, reasoning, entry.when, entry.format, entry.openai, presets, MappingProxyType(dict(entry.efforts))
    )
