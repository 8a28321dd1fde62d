"""The capabilities of one operation of the OpenAI family, derived from a vendor's profile."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from providers.capabilities import (
    FAN_OUT,
    IN_MESSAGE,
    NATIVE,
    NO_PROMISE,
    NOT_OFFERED,
    ONE_CALL,
    PREFIXED,
    RANKED,
    REFUSED,
    SCANNED,
    UNSCORED,
    UNSCORED_PROMPT,
    WRAPPED,
    Capabilities,
    Cell,
    Support,
    compiled,
    counted_first,
    refused,
    with_forced_calls,
)
from providers.constraints.constraint_styles import constraint_cells
from providers.constraints.schema_rules import TOOL_RULES
from providers.constraints.style_table import STYLES
from providers.dialects.shared.request_body import unknown_cell, window_cells
from providers.profile import Profile, Wire
from providers.request_fields import STOP_STRING
from providers.unified_request import MAX_STOPS, Operation


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, operation: Operation, upstream: Operation, counted: bool) -> Capabilities:
    """Return the capabilities for a client's `operation` that is sent as the `upstream` operation.

    `counted` is true if the prompt can be checked against the context window before it is sent. The cache is keyed by
    the profile, which lives as long as the process.
    """
    wire = profile.wires[upstream]
    cells = compiled(wire.accepts, {})
    cells.update(_PROMPTS[operation, upstream](profile))
    cells.update(_candidates(wire))
    cells.update(_stops(profile, wire))
    cells.update(_echo(profile, operation, upstream, wire))
    cells.update(_constraints(profile, upstream, wire))
    cells.update(_tool_calls(profile, wire))
    cells.update(window_cells(wire, counted))
    cells.update(_beside_others(profile, wire))
    cells["unknown"] = unknown_cell(profile)
    cells = with_forced_calls(cells)
    return Capabilities(
        cells,
        most_stops=profile.stop_most if "stop" in wire.accepts else 0,
        blank_stops=profile.blank_stops,
        verifies=profile.verifies,
        strict_tools=_strict_tools(profile),
        counts=counted_first(cells),
        watched=frozenset(_watched(profile, cells)),
    )


def _beside_others(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    for name, other in profile.needs.items():
        if name in wire.accepts:
            yield name, Cell(Support.LEFT_OUT, f"it is sent only with '{other}: true'")


def _strict_tools(profile: Profile) -> str:
    if not profile.strict_tools:
        return NO_PROMISE
    return profile.structured if profile.structured in TOOL_RULES else "any"


def _watched(profile: Profile, cells: dict[str, Cell]) -> Iterator[str]:
    yield "stop"
    for name in ("n", "best_of", "echo", STOP_STRING, "parallel_tool_calls"):
        if not cells[name].native:
            yield name
    if profile.verifies:
        yield from ("guided", "response_format")


def _conversation(profile: Profile) -> Iterator[tuple[str, Cell]]:
    yield "messages", NATIVE


def _wrapped_prompt(profile: Profile) -> Iterator[tuple[str, Cell]]:
    text_only = refused("it is called by chat, so prompts must be text")
    yield "prompt", WRAPPED
    yield "prompt.batch", FAN_OUT
    yield "prompt.tokens", text_only
    yield "prompt.token_batch", text_only
    yield "images", IN_MESSAGE if "images" in profile.wires[Operation.CHAT].accepts else REFUSED


def _raw_prompt(profile: Profile) -> Iterator[tuple[str, Cell]]:
    forms = profile.prompt_forms
    ids = NATIVE if "tokens" in forms else refused("it takes prompts as text only")
    yield "prompt", NATIVE
    yield "prompt.batch", NATIVE if "texts" in forms else FAN_OUT
    yield "prompt.tokens", ids
    yield "prompt.token_batch", NATIVE if "token_lists" in forms else FAN_OUT if ids.native else ids


_PROMPTS: Mapping[tuple[Operation, Operation], Callable[[Profile], Iterator[tuple[str, Cell]]]] = {
    (Operation.CHAT, Operation.CHAT): _conversation,
    (Operation.COMPLETIONS, Operation.CHAT): _wrapped_prompt,
    (Operation.COMPLETIONS, Operation.COMPLETIONS): _raw_prompt,
}
"""By the client's operation and the upstream operation: the function that yields the cells of the prompt."""

_ECHO: Mapping[Operation, Cell] = {Operation.CHAT: REFUSED, Operation.COMPLETIONS: PREFIXED}
_SCORES_ECHO: Mapping[Operation, bool] = {Operation.CHAT: False, Operation.COMPLETIONS: True}
"""Whether an upstream operation can return the log probabilities of an echoed prompt."""


def _candidates(wire: Wire) -> Iterator[tuple[str, Cell]]:
    logprobs = "logprobs" in wire.accepts and wire.logprobs.mode != "none"
    yield "logprobs", NATIVE if logprobs else REFUSED
    yield "n", NATIVE if "n" in wire.accepts else FAN_OUT
    ranked = RANKED if logprobs else UNSCORED
    yield "best_of", NATIVE if "best_of" in wire.accepts else ranked


def _stops(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    own = "stop" in wire.accepts
    yield "stop", NATIVE if own else SCANNED
    yield "stop.blank", NATIVE if own and profile.blank_stops else SCANNED
    yield "stop.many", NATIVE if own and profile.stop_most >= MAX_STOPS else SCANNED
    yield STOP_STRING, NATIVE if STOP_STRING in wire.accepts else SCANNED


def _echo(profile: Profile, operation: Operation, upstream: Operation, wire: Wire) -> Iterator[tuple[str, Cell]]:
    own = operation is upstream and "echo" in wire.accepts
    cell = NATIVE if own else _ECHO[operation]
    scored = own and _SCORES_ECHO[upstream] and profile.echo_logprobs and "logprobs" in wire.accepts
    yield "echo", cell
    unscored = cell if cell.refused else UNSCORED_PROMPT
    yield "echo.logprobs", NATIVE if scored else unscored


def _constraints(profile: Profile, upstream: Operation, wire: Wire) -> Iterator[tuple[str, Cell]]:
    for name, cell in constraint_cells(STYLES[profile.structured][upstream]).items():
        field = "guided" if name.startswith("guided") else "response_format"
        yield name, cell if field in wire.accepts else REFUSED


def _tool_calls(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    choices = profile.tool_choices if "tool_choice" in wire.accepts else frozenset()
    refusal = refused(f"it takes only {', '.join(sorted(choices))}") if choices else REFUSED
    for choice in ("none", "required", "named"):
        yield f"tool_choice.{choice}", NATIVE if choice in choices else refusal
    if "tools" in wire.accepts and "none" not in choices:
        yield "tool_choice.none", NOT_OFFERED
    if "tools" in wire.accepts and "parallel_tool_calls" not in wire.accepts:
        yield "parallel_tool_calls", ONE_CALL
