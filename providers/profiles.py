"""Profiles: one row a vendor, saying which dialect it speaks and where it departs from it.

Never holds a secret, a branch for one vendor, or a knob that nothing reads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from providers.failure import FailureKind
from providers.unified import JsonObject, Operation

LogprobsMode = Literal["bool", "int", "either", "none"]
PromptForm = Literal["text", "texts", "tokens", "token_lists"]


@dataclass(frozen=True, slots=True)
class Auth:
    """How a key travels: `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or `none`."""

    style: Literal["bearer", "header", "none"] = "bearer"
    header: str = "Authorization"
    required: bool = True


@dataclass(frozen=True, slots=True)
class Logprobs:
    """How an operation asks for log probabilities, and how many alternatives it lists at most.

    `bool` is chat's `logprobs: true` with `top_logprobs`, `int` the completion API's count, `either` takes both.
    """

    mode: LogprobsMode
    most: int


@dataclass(frozen=True, slots=True)
class Wire:
    """One operation of a vendor: its path, the unified fields it honours and what they are called there."""

    path: str
    accepts: frozenset[str]
    rename: Mapping[str, str]
    max_tokens_field: str
    logprobs: Logprobs


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One vendor's row.

    `raw_prompts` says which models take a prompt as it is (`native`: all, `chat`: none, or a pattern over their names);
    prompts for the others are wrapped into a chat. Models that match a pattern do not chat. `structured` names a style of
    `providers.guided`. `context` says what the vendor does when prompt and limit pass the window: it obeys the unified field
    (`native`), refuses (`errors`), or shortens the answer by itself (`clamps`). `errors` maps the vendor's codes and
    statuses to failure kinds where the common reading would be wrong.
    """

    name: str
    dialect: str
    base_url: str | None
    auth: Auth
    wires: Mapping[Operation, Wire]
    raw_prompts: Literal["native", "chat"] | re.Pattern[str]
    model_in: Literal["body", "path"]
    api_version: str | None
    forwards_unknown: bool
    bounds: Mapping[str, tuple[float | None, float | None]]
    stop_most: int
    structured: str
    asks_usage: bool
    prompt_forms: frozenset[PromptForm]
    context: Literal["native", "errors", "clamps"]
    error_codes: Mapping[str, FailureKind]
    error_statuses: Mapping[int, FailureKind]
    error_patterns: tuple[tuple[re.Pattern[str], FailureKind], ...]
    overrides: tuple[tuple[re.Pattern[str], "Profile"], ...] = ()

    @property
    def key_required(self) -> bool:
        """Whether a deployment without a key cannot work."""
        return self.auth.required and self.auth.style != "none"

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces of the base URL, which the operator must fill in."""
        return tuple(re.findall(r"\{(\w+)\}", self.base_url or ""))

    def for_model(self, model: str) -> "Profile":
        """The row as it holds for one model name of the vendor."""
        for pattern, profile in self.overrides:
            if pattern.search(model):
                return profile
        return self

    def takes_raw_prompts(self, model: str) -> bool:
        """Whether this model's completion endpoint takes a prompt as it is."""
        if isinstance(self.raw_prompts, str):
            return self.raw_prompts == "native"
        return self.raw_prompts.search(model) is not None

    def chats(self, model: str) -> bool:
        """Whether this model can be asked by chat."""
        if Operation.CHAT not in self.wires:
            return False
        return isinstance(self.raw_prompts, str) or not self.takes_raw_prompts(model)


class ProfileError(ValueError):
    """A row of the packaged table is wrong; names the row and the knob."""


_COMMON = ("max_tokens", "temperature", "top_p", "n", "stop", "presence_penalty", "frequency_penalty", "seed", "user")
_BASE: Mapping[Operation, frozenset[str]] = {
    Operation.CHAT: frozenset(
        (*_COMMON, "logprobs", "logit_bias", "tools", "tool_choice", "parallel_tool_calls")
        + ("response_format", "guided", "images")
    ),
    Operation.COMPLETIONS: frozenset((*_COMMON, "logprobs", "logit_bias", "echo")),
}
"""What every OpenAI-compatible server is taken to honour unless its row says otherwise."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _ByOperation(_Row):
    all: list[str] = []
    chat: list[str] = []
    completions: list[str] = []

    def of(self, operation: Operation) -> list[str]:
        own = self.chat if operation is Operation.CHAT else self.completions
        return [*self.all, *own]


class _Names(_Row):
    all: dict[str, str] = {}
    chat: dict[str, str] = {}
    completions: dict[str, str] = {}

    def of(self, operation: Operation) -> dict[str, str]:
        own = self.chat if operation is Operation.CHAT else self.completions
        return {**self.all, **own}


class _AuthRow(_Row):
    style: Literal["bearer", "header", "none"] = "bearer"
    header: str = "Authorization"
    required: bool = True


class _LogprobsRow(_Row):
    chat: LogprobsMode = "bool"
    completions: LogprobsMode = "int"
    most: dict[Literal["chat", "completions"], int] = {}


class _ErrorsRow(_Row):
    codes: dict[str, str] = {}
    statuses: dict[int, str] = {}
    patterns: dict[str, str] = {}


class _ProfileRow(_Row):
    dialect: str = "openai"
    base_url: str | None = None
    auth: _AuthRow = _AuthRow()
    paths: dict[Literal["chat", "completions"], str | None] = {}
    raw_prompts: str = "native"
    model_in: Literal["body", "path"] = "body"
    api_version: str | None = None
    unknown_fields: Literal["forward", "refuse"] = "refuse"
    accepts: _ByOperation = _ByOperation()
    refuses: _ByOperation = _ByOperation()
    rename: _Names = _Names()
    max_tokens_field: dict[Literal["chat", "completions"], str] = {}
    bounds: dict[str, list[float | int | None]] = {}
    stop_most: int = 4
    logprobs: _LogprobsRow = _LogprobsRow()
    structured: str = "openai"
    usage: Literal["ask", "always"] = "ask"
    prompt_forms: list[PromptForm] = ["text", "texts", "tokens", "token_lists"]
    context: Literal["native", "errors", "clamps"] = "errors"
    errors: _ErrorsRow = _ErrorsRow()
    models: list[dict[str, object]] = []


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


def _profile(name: str, row: JsonObject) -> Profile:
    try:
        read = _ProfileRow.model_validate(row)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ProfileError(f"{name}.{where}: {error.errors()[0]['msg']}") from None
    plain = {key: value for key, value in row.items() if key != "models"}
    overrides: list[tuple[re.Pattern[str], Profile]] = []
    for entry in read.models:
        changes: JsonObject = {key: value for key, value in entry.items() if key != "match"}  # type: ignore[misc]
        overrides.append((re.compile(str(entry["match"])), _profile(name, merged(plain, changes))))
    return _built(name, read, tuple(overrides))


def _built(name: str, row: _ProfileRow, overrides: tuple[tuple[re.Pattern[str], Profile], ...]) -> Profile:
    raw: Literal["native", "chat"] | re.Pattern[str]
    raw = row.raw_prompts if row.raw_prompts in ("native", "chat") else re.compile(row.raw_prompts)  # type: ignore[assignment]
    return Profile(
        name=name,
        dialect=row.dialect,
        base_url=row.base_url,
        auth=Auth(row.auth.style, row.auth.header, row.auth.required),
        wires=MappingProxyType({op: wire for op in Operation if (wire := _wire(row, op)) is not None}),
        raw_prompts=raw,
        model_in=row.model_in,
        api_version=row.api_version,
        forwards_unknown=row.unknown_fields == "forward",
        bounds=MappingProxyType({key: (low, high) for key, (low, high) in row.bounds.items()}),
        stop_most=row.stop_most,
        structured=row.structured,
        asks_usage=row.usage == "ask",
        prompt_forms=frozenset(row.prompt_forms),
        context=row.context,
        error_codes={code: FailureKind(kind) for code, kind in row.errors.codes.items()},
        error_statuses={status: FailureKind(kind) for status, kind in row.errors.statuses.items()},
        error_patterns=tuple(
            (re.compile(text, re.IGNORECASE), FailureKind(kind)) for text, kind in row.errors.patterns.items()
        ),
        overrides=overrides,
    )


_PATHS = {Operation.CHAT: "/chat/completions", Operation.COMPLETIONS: "/completions"}


def _wire(row: _ProfileRow, operation: Operation) -> Wire | None:
    path = row.paths.get(operation.value, _PATHS[operation])
    if path is None:
        return None
    chat = operation is Operation.CHAT
    accepts = (_BASE[operation] | set(row.accepts.of(operation))) - set(row.refuses.of(operation))
    mode = row.logprobs.chat if chat else row.logprobs.completions
    most = row.logprobs.most.get(operation.value, 20 if chat else 5)
    return Wire(
        path=path,
        accepts=frozenset(accepts),
        rename=row.rename.of(operation),
        max_tokens_field=row.max_tokens_field.get(operation.value, "max_tokens"),
        logprobs=Logprobs(mode, most),
    )
