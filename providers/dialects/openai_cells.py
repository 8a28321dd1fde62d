"""A vendor's row as a table of cells: what becomes of each feature on one endpoint of the OpenAI family.

Never a request, and never a rule that is not in the row: this is the row, read once.
"""

from collections.abc import Iterator
from functools import lru_cache

from providers.capabilities import (
    COUNTED,
    FAN_OUT,
    IN_MESSAGE,
    NATIVE,
    PREFIXED,
    RANKED,
    REFUSED,
    RESENT,
    SCANNED,
    WRAPPED,
    Capabilities,
    Cell,
    Support,
    compiled,
    counted_first,
    refused,
)
from providers.guided import support
from providers.profile_rows import AtWindow
from providers.profiles import Profile, Wire
from providers.unified import MAX_STOPS, Operation

_BY_CHAT = "it is asked by chat"
_UNKNOWN_WINDOW = "set 'context_window' in the table, so that the gateway can"


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, asked: Operation, sent: Operation, counted: bool) -> Capabilities:
    """The table for a client's endpoint `asked` that goes out on the endpoint `sent`.

    `counted` says that the prompt can be held against the window before it is sent. Cached by the row, which lives as
    long as the process.
    """
    wire = profile.wires[sent]
    cells = compiled(wire.accepts, {})
    cells.update(_prompts(profile, asked, sent, wire))
    cells.update(_candidates(wire))
    cells.update(_stops(profile, wire))
    cells.update(_echo(profile, asked, sent, wire))
    cells.update(_constraints(profile, sent, wire))
    cells.update(_tool_choices(profile, wire))
    cells.update(window_cells(wire, counted))
    cells["unknown"] = NATIVE if profile.forwards_unknown else refused("the vendor refuses fields it does not know")
    return Capabilities(
        cells,
        most_stops=profile.stop_most if "stop" in wire.accepts else 0,
        verifies=profile.verifies,
        counts=counted_first(cells),
        watched=frozenset(_watched(profile, cells)),
    )


def _watched(profile: Profile, cells: dict[str, Cell]) -> Iterator[str]:
    yield "stop"
    for name in ("n", "best_of", "echo", "include_stop_str_in_output"):
        if not cells[name].native:
            yield name
    if profile.verifies:
        yield from ("guided", "response_format")


def _prompts(profile: Profile, asked: Operation, sent: Operation, wire: Wire) -> Iterator[tuple[str, Cell]]:
    if asked is Operation.CHAT:
        yield "messages", NATIVE
        return
    if sent is Operation.CHAT:
        yield "prompt", WRAPPED
        yield "prompt.batch", FAN_OUT
        yield "prompt.tokens", refused(f"{_BY_CHAT}, so prompts must be text")
        yield "prompt.token_batch", refused(f"{_BY_CHAT}, so prompts must be text")
        yield "images", IN_MESSAGE if "images" in wire.accepts else REFUSED
        return
    forms = profile.prompt_forms
    ids = NATIVE if "tokens" in forms else refused("it takes prompts as text only")
    yield "prompt", NATIVE
    yield "prompt.batch", NATIVE if "texts" in forms else FAN_OUT
    yield "prompt.tokens", ids
    yield "prompt.token_batch", NATIVE if "token_lists" in forms else FAN_OUT if ids.native else ids


def _candidates(wire: Wire) -> Iterator[tuple[str, Cell]]:
    logprobs = "logprobs" in wire.accepts and wire.logprobs.mode != "none"
    yield "logprobs", NATIVE if logprobs else REFUSED
    yield "n", NATIVE if "n" in wire.accepts else FAN_OUT
    ranked = RANKED if logprobs else refused("it has no log probabilities to choose by")
    yield "best_of", NATIVE if "best_of" in wire.accepts else ranked


def _stops(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    own = "stop" in wire.accepts
    for name in ("stop", "stop.blank"):
        yield name, NATIVE if own else SCANNED
    yield "stop.many", NATIVE if own and profile.stop_most >= MAX_STOPS else SCANNED
    kept = "include_stop_str_in_output"
    yield kept, NATIVE if kept in wire.accepts else SCANNED


def _echo(profile: Profile, asked: Operation, sent: Operation, wire: Wire) -> Iterator[tuple[str, Cell]]:
    own = asked is sent and "echo" in wire.accepts
    cell = NATIVE if own else PREFIXED if asked is Operation.COMPLETIONS else REFUSED
    scored = own and sent is Operation.COMPLETIONS and profile.echo_logprobs and "logprobs" in wire.accepts
    yield "echo", cell
    unscored = cell if cell.refused else refused("it does not tell the log probabilities of a prompt")
    yield "echo.logprobs", NATIVE if scored else unscored


def _constraints(profile: Profile, sent: Operation, wire: Wire) -> Iterator[tuple[str, Cell]]:
    for name, held in support(profile.structured, sent).items():
        field = "guided" if name.startswith("guided") else "response_format"
        yield name, Cell(Support(held.how), held.detail) if field in wire.accepts else REFUSED


def _tool_choices(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    known = profile.tool_choices if "tool_choice" in wire.accepts else frozenset()
    only = refused(f"it takes only {', '.join(sorted(known))}") if known else REFUSED
    for word in ("none", "required", "named"):
        yield f"tool_choice.{word}", NATIVE if word in known else only


def window_cells(wire: Wire, counted: bool) -> Iterator[tuple[str, Cell]]:
    """What the vendor does by itself decides; where it does the other thing, the prompt must be counted first."""
    name = "context_length_exceeded_behavior"
    shortens = refused(f"it shortens the answer by itself instead of refusing; {_UNKNOWN_WINDOW} refuse")
    cuts = refused(f"it cuts the prompt by itself instead; {_UNKNOWN_WINDOW} hold prompts against it")
    by_habit: dict[AtWindow, tuple[Cell, Cell]] = {
        "native": (NATIVE, NATIVE),
        "never": (NATIVE, NATIVE),
        "errors": (RESENT, NATIVE),
        "clamps": (NATIVE, COUNTED if counted else shortens),
        "cuts": (COUNTED, COUNTED) if counted else (cuts, cuts),
    }
    yield f"{name}.truncate", by_habit[wire.context][0]
    yield f"{name}.error", by_habit[wire.context][1]
