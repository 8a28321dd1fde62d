"""Capabilities: for each field of a request, whether a deployment supports it, the gateway emulates it, it is left out,
or it is refused.

Encoders refuse by these cells, `shape` divides a request by them, `dragoman vendors` prints them, and the conformance
tests visit every cell.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from providers.request_fields import (
    ADVISORY_FIELDS,
    NEVER_DROPPED,
    REQUEST_FIELDS,
    STEERING,
    STOP_STRING,
    WINDOW,
    FieldClass,
    is_neutral,
)
from providers.unified_request import ContextBehavior, Guided, Operation, Params, UnifiedRequest


class Support(StrEnum):
    """How a field is treated."""

    NATIVE = "native"
    EMULATED = "emulated"
    LEFT_OUT = "left out"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Cell:
    """How one feature is treated. `how` is for people: the means by which the feature is emulated, or the reason why it
    is left out or refused."""

    support: Support
    how: str = ""

    @property
    def native(self) -> bool:
        """Whether the vendor supports the feature."""
        return self.support is Support.NATIVE

    @property
    def emulated(self) -> bool:
        """Whether the gateway emulates the feature, at least in part."""
        return self.support is Support.EMULATED

    @property
    def left_out(self) -> bool:
        """Whether a request is sent without the feature, which is then named in the response's headers."""
        return self.support is Support.LEFT_OUT

    @property
    def refused(self) -> bool:
        """Whether a request with the feature is refused."""
        return self.support is Support.REFUSED


NATIVE = Cell(Support.NATIVE)
REFUSED = Cell(Support.REFUSED)
LEFT_OUT = Cell(Support.LEFT_OUT, "it promises nothing about the response")
"""An advisory field that the vendor does not have."""


def emulated(how: str) -> Cell:
    """Return the cell of a feature that the gateway emulates by the means `how`."""
    return Cell(Support.EMULATED, how)


def refused(why: str) -> Cell:
    """Return the cell of a feature that is refused for the reason `why`."""
    return Cell(Support.REFUSED, why)


@dataclass(frozen=True, slots=True)
class Feature:
    """A field, or a use of a field that vendors treat differently from its other uses.

    `name` is the field's name, or `field.use`. `field` is the name in errors. `operations` are the operations whose
    clients can send it. `field_class` is the class of the field.
    """

    name: str
    field: str
    operations: tuple[Operation, ...]
    field_class: FieldClass


FEATURES: Mapping[str, Feature] = {
    **{
        name: Feature(name, each.name, each.operations, each.field_class)
        for each in REQUEST_FIELDS
        for name in each.features
    },
    "unknown": Feature("unknown", "unknown", tuple(Operation), STEERING),
}
"""Every feature of the unified request, in the order of its documentation. `unknown` is for fields outside it."""


NO_PROMISE = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Capabilities:
    """The treatment of every feature by the endpoint that receives a request.

    `most_stops` is the most stop strings that the endpoint accepts (`None`: any number), and `blank_stops` whether a
    stop may be blank. If `verifies`, the engine may ignore a constraint without an error, so the gateway checks the
    response. `strict_tools` names the rules by which the vendor enforces the arguments of strict tools: a name of
    `constraints.schema_rules.TOOL_RULES`, or NO_PROMISE. `counts` holds the values of
    `context_length_exceeded_behavior` for which the prompt must be counted first. `watched` are the params that the
    gateway may have to emulate; a request without them takes the fast path.
    """

    cells: Mapping[str, Cell]
    most_stops: int | None = 4
    blank_stops: bool = True
    verifies: bool = False
    strict_tools: str = NO_PROMISE
    counts: frozenset[str] = frozenset()
    watched: frozenset[str] = frozenset()

    def own_stops(self, stops: tuple[str, ...]) -> tuple[str, ...]:
        """Return the stops that the vendor detects itself."""
        own = stops if self.blank_stops else tuple(stop for stop in stops if stop.strip())
        return own[: self.most_stops]

    def leaves_to_gateway(self, params: Params) -> bool:
        """Return whether the gateway must emulate a part of a request with these params."""
        if self.watched.isdisjoint(params):
            return False
        # Most requests with stops have one stop, which nearly every vendor accepts.
        stops, used = params.get("stop", ()), self.watched.intersection(params)
        return used != {"stop"} or bool(params.get(STOP_STRING)) or self.own_stops(stops) != stops

    def __getitem__(self, feature: str) -> Cell:
        return self.cells[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)


ALWAYS: Mapping[str, Cell] = {each.name: NATIVE for each in REQUEST_FIELDS if each.by_gateway}
"""Features that the gateway implements itself, or passes on, for every vendor."""

FAN_OUT = emulated("one call for each")
RANKED = emulated("candidates ranked by their mean log probability")
UNSCORED = refused("it has no log probabilities to choose by")
UNSCORED_PROMPT = refused("it does not return the log probabilities of a prompt")
PREFIXED = emulated("the prompt is added before the text")
SCANNED = emulated("the gateway searches the text for it, and ends the text there")
APPENDED = emulated("the stop that matched is appended to the text")
WRAPPED = emulated("sent as one message of the user")
IN_MESSAGE = emulated("sent as parts of the message")
RESENT = emulated("called again with as many tokens as fit")
COUNTED = emulated("the prompt is counted first")
ONE_CALL = emulated("only the first call of a response is returned")
NOT_OFFERED = emulated("the tools are not offered")
BY_FORMAT = emulated("the response is constrained to the arguments of a call, and returned as the call")


def with_forced_calls(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return the cells of a vendor. If the vendor has response formats and cannot be forced to call a tool, calls are
    forced by the format of its response. The vendor needs no tools for this if its endpoint is a chat."""
    forced = {name: BY_FORMAT for name in _FORCED if cells[name].refused}
    chats = not cells["tools"].refused or cells["messages"].native or cells["prompt"] == WRAPPED
    return {**cells, **forced} if chats and not cells["response_format.json_schema"].refused else {**cells}


_FORCED = ("tool_choice.required", "tool_choice.named")


def missing(name: str) -> Cell:
    """Return the cell of a feature that a vendor does not have."""
    return LEFT_OUT if FEATURES[name].field in ADVISORY_FIELDS else REFUSED


def compiled(known: Collection[str], decided: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return a cell for every feature: as `decided`, else native if the field is `known`, else left out or refused."""
    cells = {name: NATIVE if name in known else missing(name) for name in FEATURES}
    return {**cells, **ALWAYS, **decided}


ONE_CHAT: Mapping[str, Cell] = {
    "prompt": WRAPPED,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": refused("it is called by chat, so prompts must be text"),
    "prompt.token_batch": refused("it is called by chat, so prompts must be text"),
    "messages": NATIVE,
    "images": IN_MESSAGE,
    "n": FAN_OUT,
    "echo.logprobs": UNSCORED_PROMPT,
    "unknown": refused("the vendor refuses fields it does not know"),
}
"""The cells of a vendor whose every call is one conversation with one response."""


def counted_first(cells: Mapping[str, Cell]) -> frozenset[str]:
    """Return the values of `context_length_exceeded_behavior` that are only supported by counting the prompt."""
    behaviors = get_args(ContextBehavior)
    return frozenset(name for name in behaviors if cells[f"context_length_exceeded_behavior.{name}"] == COUNTED)


def feature_of(name: str, value: object) -> str:
    """Return the feature that a param with this value uses."""
    match name, value:
        case "guided", Guided():
            return value.field
        case "response_format", dict():
            return f"response_format.{_format_kind(value)}"
        case "tool_choice", "auto":
            return "tools"
        case "tool_choice", _:
            return f"tool_choice.{value if isinstance(value, str) else 'named'}"
        case "context_length_exceeded_behavior", _:
            return f"{name}.{value}"
        case _:
            return name


def _format_kind(value: Mapping[str, object]) -> str:
    """Return the use of `response_format`. A JSON mode with a schema is `json_schema`, and so is an unknown type."""
    kind = value.get("type")
    known = f"response_format.{kind}" in FEATURES
    return "json_schema" if isinstance(value.get("schema"), dict) or not known else str(kind)


_NOT_BY_CELL = NEVER_DROPPED | {"guided", WINDOW}
"""Fields that are not decided by their cell alone, or that are dropped under another name."""


def refused_beside(name: str, request: UnifiedRequest, capabilities: Capabilities) -> Collection[str]:
    """Return a refused field of a request together with the others that the cells refuse as well. All of them can then
    be left out at once: each further attempt costs as much as the whole request."""
    unknown = request.unknown or {}
    if name in unknown and capabilities["unknown"].refused:
        return dict.fromkeys(each for each in unknown if each not in NEVER_DROPPED)
    alike = {
        each: None
        for each, value in request.params.items()
        if each not in _NOT_BY_CELL | request.injected
        and not is_neutral(each, value)
        and capabilities[feature_of(each, value)].refused
    }
    return alike if name in alike else {name: None}
