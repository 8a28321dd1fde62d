"""Reads the body of a task's request field by field. All problems are collected before the request is refused.

A field that is null counts as absent, because voyageai 0.5.0 sends such fields. An unknown field counts as absent if
its value would be neutral in a chat. A field may have the name that another vendor's clients use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from providers.json_types import JsonObject, JsonValue
from providers.request_fields import is_neutral
from providers.tasks.embeddings import Truncate
from proxy.errors import FieldProblem, invalid_request
from proxy.surfaces.request import pass_through_fields as extras
from proxy.surfaces.request.field_rules import model
from proxy.surfaces.request.parse_json import load
from proxy.surfaces.request.rule_kinds import Check, Invalid, boolean, string

T = TypeVar("T")

MAX_TASK_ELEMENTS = 400_000
"""The most JSON elements of a body: 2,048 inputs may have 300,000 token ids (OpenAPI 2.3.0 "Create embeddings")."""


def truncation(value: JsonValue) -> Truncate:
    """Return which end of a long input may be cut. The value may be a boolean, or one of Cohere's words in upper or
    lower case."""
    if isinstance(value, bool):
        return "end" if value else "none"
    if isinstance(value, str) and value.lower() in ("none", "start", "end"):
        return cast(Truncate, value.lower())
    raise Invalid("must be true, false, 'NONE', 'START' or 'END'")


def _stream(value: JsonValue) -> bool:
    """Check that the client requests no stream."""
    if boolean(value):
        raise Invalid("is not possible: this response cannot be streamed", code="unsupported_parameter")
    return False


COMMON: Mapping[str, Check] = {
    "model": model,
    "stream": _stream,
    "user": string,
    "truncate": truncation,
    "inference_timeout": extras.timeout,
    "inference_extra_params": extras.params,
    "inference_extra_headers": extras.headers,
}
"""The fields that all tasks have, with their checks."""


@dataclass(slots=True)
class TaskFields:
    """One body while it is read. `values` holds the checked values of known fields under the unified names; `unknown`
    holds the other fields."""

    values: dict[str, object] = field(default_factory=dict)
    unknown: JsonObject = field(default_factory=dict)
    problems: list[FieldProblem] = field(default_factory=list)

    @property
    def truncate(self) -> Truncate:
        """The end of a long input that may be cut."""
        return cast(Truncate, self.values.get("truncate", "none"))

    def get(self, name: str, kind: type[T]) -> T | None:
        """Return a field's checked value; `None` if it is absent or invalid."""
        value = self.values.get(name)
        return value if isinstance(value, kind) else None

    def required(self, name: str, kind: type[T], otherwise: T) -> T:
        """Return the value of a required field. If it is missing, note the problem and return `otherwise`."""
        value = self.get(name, kind)
        if value is None and all(problem.loc[:1] != (name,) for problem in self.problems):
            self.refuse(name, Invalid("is required"))
        return otherwise if value is None else value

    def model(self, default: str | None) -> str:
        """Return the model, for which the configuration may have a default. If there is none, note the problem."""
        if "model" not in self.values and default is not None:
            return default
        return self.required("model", str, "")

    def refuse(self, name: str, bad: Invalid) -> None:
        """Add the problem of a field."""
        loc = (name, *bad.loc)
        path = ".".join(map(str, loc))
        self.problems.append(FieldProblem(loc, f"'{path}' {bad.message}.", bad.code))

    def checked(self, name: str, check: Callable[[], T]) -> T | None:
        """Return the result of a check; if it fails, note the problem and return `None`."""
        try:
            return check()
        except Invalid as bad:
            self.refuse(name, bad)
            return None

    def end(self) -> None:
        """Raise GatewayError if there are problems."""
        if self.problems:
            raise invalid_request(tuple(self.problems))


def read_fields(body: bytes, checks: Mapping[str, Check], aliases: Mapping[str, str]) -> TaskFields:
    """Return the fields of a body; `aliases` maps other names to the unified ones. Raises GatewayError for a body that
    is not an object."""
    known = {**COMMON, **checks}
    data = load(body, {*known, *aliases}, MAX_TASK_ELEMENTS)
    fields = TaskFields()
    for written, value in extras.with_own_timeout(data).items():
        if value is None:
            continue
        name = aliases.get(written, written)
        check = known.get(name)
        if check is None:
            if is_neutral(written, value):
                continue
            # Names that some servers read as the name of a protected field are refused too.
            passed = fields.checked(written, partial(extras.unknown_field, written, value))
            if passed is not None:
                fields.unknown[written] = passed
            continue
        found = fields.checked(written, partial(check, value))
        if found is not None and fields.values.setdefault(name, found) != found:
            fields.refuse(written, Invalid(f"differs from '{name}'", code="conflicting_parameters"))
    return fields
