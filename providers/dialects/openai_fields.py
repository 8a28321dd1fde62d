"""How each unified field is written on the OpenAI family's wire, compiled from a vendor's row.

Never the prompt, the address or the switches of a stream, and never a vendor's name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from providers.capabilities import Capabilities, feature_of
from providers.dialect import Target
from providers.failure import Refusal
from providers.guided import Unenforceable, constrain, format_members
from providers.profiles import Profile, Wire, merged
from providers.unified import Guided, JsonObject, JsonValue, LogprobsWanted, Operation, Params, is_neutral


@dataclass(slots=True)
class Draft:
    """A body in work, and what the answer's decoding will need to know of it."""

    target: Target
    operation: Operation
    params: Params
    stream: bool
    body: JsonObject
    table: Capabilities
    emulated: list[str] = field(default_factory=list)
    unwrap: bool = False


Encode = Callable[[Draft, object], None]
"""Writes one field's value into the draft. Raises Refusal, and then has written nothing."""


def unsupported(target: Target, name: str, reason: str = "") -> Refusal:
    """The refusal of a field, under the name the client used."""
    because = f": {reason}" if reason else ""
    return Refusal(name, f"'{name}' is not supported by {target.name}{because}.")


@lru_cache(maxsize=1024)
def encoders(profile: Profile, operation: Operation) -> Mapping[str, Encode]:
    """A writer for each field that an endpoint knows. Cached by the row, which lives as long as the process."""
    wire = profile.wires[operation]
    names = wire.accepts | {"context_length_exceeded_behavior"}
    return {name: _SPECIAL.get(name, _plain)(name, profile, wire) for name in names}


def put_fields(draft: Draft, profile: Profile, injected: frozenset[str]) -> None:
    """Write every field of the request. Raises Refusal for the first that the vendor cannot honour; a default that the
    surface filled in is a wish and not the client's word, so it is left out instead."""
    fields = encoders(profile, draft.operation)
    for name, value in draft.params.items():
        if profile.drops_neutral and _asks_nothing(draft, name, value):
            continue
        try:
            encode = fields.get(name)
            if encode is not None:
                encode(draft, value)
            elif not _asks_nothing(draft, name, value):
                raise not_native(draft, name, value)
        except Refusal:
            if name not in injected:
                raise
    if draft.unwrap and "logprobs" in draft.params:
        reason = "the choice is made inside an object whose tokens are not the text's"
        raise unsupported(draft.target, "logprobs", reason)


def not_native(draft: Draft, name: str, value: object) -> Refusal:
    """The refusal of a field that the vendor does not honour by itself; what the gateway emulates was taken out of the
    request before."""
    cell = draft.table[feature_of(name, value)]
    return unsupported(draft.target, value.field if isinstance(value, Guided) else name, cell.how)


def _asks_nothing(draft: Draft, name: str, value: object) -> bool:
    """Beside tools, the choice of none is a demand."""
    return is_neutral(name, value) and not (name == "tool_choice" and draft.params.get("tools"))


def _plain(name: str, profile: Profile, wire: Wire) -> Encode:
    write = _bounded(name, profile, wire.rename.get(name, name))
    return _worded(write, words) if (words := profile.words.get(name)) else write


def _worded(write: Encode, words: Mapping[str, str]) -> Encode:
    """A value under the vendor's word for it."""
    return lambda draft, value: write(draft, words.get(value, value) if isinstance(value, str) else value)


def _max_tokens(name: str, profile: Profile, wire: Wire) -> Encode:
    bounded = _bounded(name, profile, wire.max_tokens_field)

    def encode(draft: Draft, value: object) -> None:
        if value == 0 and draft.operation is Operation.CHAT:
            # Some servers take it for no limit at all.
            raise Refusal(name, f"'{name}' must be at least 1 on {draft.target.name}.", "invalid_value")
        bounded(draft, value)

    return encode


def _bounded(name: str, profile: Profile, to: str) -> Encode:
    low, high = profile.bounds.get(name, (None, None))
    *outer, last = to.split(".")

    def encode(draft: Draft, value: object) -> None:
        draft.body[to] = cast(JsonValue, value)  # Params holds JSON under these names

    def encode_nested(draft: Draft, value: object) -> None:
        body = draft.body
        for step in outer:
            # Copied on the way: a row's own members belong to every request.
            inner = body.get(step)
            body[step] = inner = {**inner} if isinstance(inner, dict) else {}
            body = inner
        body[last] = cast(JsonValue, value)

    write = encode_nested if outer else encode

    def encode_checked(draft: Draft, value: object) -> None:
        if not isinstance(value, int | float) or _within(value, low, high):
            write(draft, value)
        elif not is_neutral(name, value):
            message = f"'{name}' must be {_limits(low, high)} on {draft.target.name}."
            raise Refusal(name, message, "invalid_value")

    return write if low is None and high is None else encode_checked


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _limits(low: float | None, high: float | None) -> str:
    if low == high:
        return f"{low:g}"
    least = "" if low is None else f"at least {low:g}"
    most = "" if high is None else f"at most {high:g}"
    return " and ".join(limit for limit in (least, most) if limit)


def _unless_neutral(name: str, profile: Profile, wire: Wire) -> Encode:
    plain = _plain(name, profile, wire)

    def encode(draft: Draft, value: object) -> None:
        if not is_neutral(name, value):
            plain(draft, value)

    return encode


def _top_k(name: str, profile: Profile, wire: Wire) -> Encode:
    plain = _plain(name, profile, wire)

    def encode(draft: Draft, value: object) -> None:
        if not is_neutral(name, value):
            plain(draft, value)
        elif profile.top_k_off is not None:
            # Left out, it would be the server's own default, which is not "off".
            draft.body[wire.rename.get(name, name)] = profile.top_k_off

    return encode


def _stop(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        stops = list(value) if isinstance(value, tuple) else []
        most = draft.table.most_stops
        if most is not None and len(stops) > most:
            raise unsupported(draft.target, name, f"it takes at most {most} stop sequences")
        if stops:
            draft.body["stop"] = stops

    return encode


def _logprobs(name: str, profile: Profile, wire: Wire) -> Encode:
    wanted = wire.logprobs

    def encode(draft: Draft, value: object) -> None:
        if not isinstance(value, LogprobsWanted) or wanted.mode == "none":
            raise unsupported(draft.target, name)
        most = wanted.stream_most if draft.stream else wanted.most
        if value.top > most:
            where = f"{draft.target.name}, when streaming" if draft.stream and most < wanted.most else draft.target.name
            raise Refusal(name, f"'{name}' lists at most {most} tokens on {where}.", "invalid_value")
        least = 1 if wanted.mode in ("positive", "listed") else 0
        top = max(value.top, least)
        if wanted.mode == "positive":
            draft.body["logprobs"] = top
        elif wanted.mode == "int" or (wanted.mode == "either" and value.shape == "legacy" and value.top):
            draft.body["logprobs"] = value.top
        else:
            draft.body["logprobs"] = True
            if top:
                draft.body["top_logprobs"] = top

    return encode


def _constrained(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        given = name
        try:
            if isinstance(value, Guided):
                given = value.field
                constraint = constrain(profile.structured, value, draft.operation)
            elif isinstance(value, dict):
                constraint = format_members(profile.structured, value, draft.operation)
            else:
                raise TypeError(f"{name} holds {type(value).__name__}")
        except Unenforceable as reason:
            raise unsupported(draft.target, given, reason.reason) from None
        # Members of one holder may come from several fields (NIM's nvext).
        draft.body = merged(draft.body, constraint.members)
        draft.unwrap = draft.unwrap or constraint.unwrap
        if constraint.emulated:
            draft.emulated.append(given)

    return encode


def _echo(name: str, profile: Profile, wire: Wire) -> Encode:
    plain = _unless_neutral(name, profile, wire)

    def encode(draft: Draft, value: object) -> None:
        scored = draft.table["echo.logprobs"]
        if value and scored.refused and "logprobs" in draft.params:
            raise unsupported(draft.target, name, scored.how)
        plain(draft, value)

    return encode


def _tools(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        if tools := cast(list[JsonObject], value):
            draft.body[name] = [*tools] if profile.strict_tools else [_loose(draft, tool) for tool in tools]

    return encode


def _loose(draft: Draft, tool: JsonObject) -> JsonObject:
    """Without `strict`, which the vendor does not know; a promise that it cannot make is refused."""
    function = tool.get("function")
    if not isinstance(function, dict) or "strict" not in function:
        return tool
    if function["strict"]:
        raise unsupported(draft.target, "tools", "it cannot promise arguments that are 'strict'")
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}


def _tool_choice(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        if is_neutral(name, value) and not draft.params.get("tools"):
            return
        if draft.table[feature_of(name, value)].refused:
            raise not_native(draft, name, value)
        draft.body[name] = cast(JsonValue, value)

    return encode


def _images(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        # On chat they have become parts of the message.
        if draft.operation is Operation.COMPLETIONS and isinstance(value, tuple) and not is_neutral(name, value):
            lists: list[JsonValue] = [list(images) for images in value]
            draft.body["images"] = lists[0] if len(lists) == 1 else lists

    return encode


def _context(name: str, profile: Profile, wire: Wire) -> Encode:
    def encode(draft: Draft, value: object) -> None:
        if wire.context == "native":
            draft.body[name] = str(value)
        elif wire.context != "cuts" and "max_tokens" not in draft.params:
            # Only the prompt can be too long then, and that is an error whatever was asked.
            return
        elif draft.table[feature_of(name, value)].refused:
            raise not_native(draft, name, value)

    return encode


_SPECIAL: Mapping[str, Callable[[str, Profile, Wire], Encode]] = {
    "context_length_exceeded_behavior": _context,
    "max_tokens": _max_tokens,
    "stop": _stop,
    "top_k": _top_k,
    "logprobs": _logprobs,
    "guided": _constrained,
    "response_format": _constrained,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "images": _images,
    # Not every server knows every spelling of "off".
    "echo": _echo,
    "echo_last": _unless_neutral,
    "best_of": _unless_neutral,
    "suffix": _unless_neutral,
    "logit_bias": _unless_neutral,
    "metadata": _unless_neutral,
}
