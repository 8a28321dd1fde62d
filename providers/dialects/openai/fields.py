"""Writers of the unified fields on the OpenAI family's wire, compiled from a vendor's profile."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import cast

from providers.capabilities import feature_of
from providers.constraints.style_table import STYLES
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    check_limited_window,
    check_window,
    plain,
    put_constraint,
    unless_neutral,
    within,
)
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.request_fields import WINDOW, is_neutral
from providers.unified_request import LogprobsWanted, Operation

_Factory = Callable[[str, Profile, Operation], FieldWriter]
"""Makes the writer of a field for an upstream operation of a vendor."""


@lru_cache(maxsize=1024)
def writers(profile: Profile, operation: Operation) -> Mapping[str, FieldWriter]:
    """Return the writers of the fields that an upstream operation knows, for `put_fields`.

    Cached by the profile, which lives as long as the process.
    """
    factories = {**_FACTORIES, **_BY_OPERATION[operation]}
    names = profile.wires[operation].accepts | {WINDOW, "tool_choice"}
    made = {name: factories.get(name, _plain)(name, profile, operation) for name in names}
    if profile.drops_neutral:
        # Beside tools, the choice of none asks for something.
        made = {name: put if name == "tool_choice" else unless_neutral(name, put) for name, put in made.items()}
    return made


def _plain(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _bounded(name, profile, profile.wires[operation].rename.get(name, name))
    return _worded(write, words) if (words := profile.words.get(name)) else write


def _worded(write: FieldWriter, words: Mapping[str, str]) -> FieldWriter:
    """Write a value under the vendor's name for it."""
    return lambda draft, value: write(draft, words.get(value, value) if isinstance(value, str) else value)


def _bounded(name: str, profile: Profile, path: str) -> FieldWriter:
    low, high = profile.bounds.get(name, (None, None))
    return plain(path) if low is None and high is None else within(name, low, high, plain(path))


def _limit(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    return _bounded(name, profile, profile.wires[operation].max_tokens_field)


def _limit_above_zero(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _limit(name, profile, operation)

    def put(draft: RequestBody, value: object) -> None:
        if value == 0:
            # Some servers take it for no limit at all.
            raise draft.invalid(name, "must be at least 1")
        write(draft, value)

    return put


def _unless_neutral(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    return unless_neutral(name, _plain(name, profile, operation))


def _top_k(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _plain(name, profile, operation)
    path, off = profile.wires[operation].rename.get(name, name), profile.top_k_off

    def put(draft: RequestBody, value: object) -> None:
        if not is_neutral(name, value):
            write(draft, value)
        elif off is not None:
            # Left out, it would be the server's own default, which is not "off".
            draft.put(path, off)

    return put


def _stop(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        stops = list(value) if isinstance(value, tuple) else []
        most = draft.table.most_stops
        if most is not None and len(stops) > most:
            raise draft.unsupported(name, f"it takes at most {most} stop sequences")
        if stops:
            draft.body["stop"] = stops

    return put


def _logprobs(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    wanted = profile.wires[operation].logprobs

    def put(draft: RequestBody, value: object) -> None:
        if not isinstance(value, LogprobsWanted) or wanted.mode == "none":
            raise draft.unsupported(name)
        stream = draft.request.stream or profile.streams_only
        most = wanted.stream_most if stream else wanted.most
        if value.top > most:
            where = f"{draft.target.name}, when streaming" if stream and most < wanted.most else draft.target.name
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

    return put


def _constraint(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    style = STYLES[profile.structured][operation]
    return lambda draft, value: put_constraint(draft, style, value)


def _echo(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _unless_neutral(name, profile, operation)

    def put(draft: RequestBody, value: object) -> None:
        scored = draft.table["echo.logprobs"]
        if value and scored.refused and "logprobs" in draft.params:
            raise draft.unsupported(name, scored.how)
        write(draft, value)

    return put


def _tools(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        if tools := cast(list[JsonObject], value):
            draft.body[name] = [*tools] if profile.strict_tools else [_loose(tool) for tool in tools]

    return put


def _loose(tool: JsonObject) -> JsonObject:
    """Return a tool without `strict`, which the vendor does not know."""
    function = tool.get("function")
    if not isinstance(function, dict) or "strict" not in function:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}


def _tool_choice(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    known = name in profile.wires[operation].accepts

    def put(draft: RequestBody, value: object) -> None:
        if is_neutral(name, value) and not draft.params.get("tools"):
            return
        cell = draft.table[feature_of(name, value)]
        if cell.refused or not known:
            raise draft.unsupported(name, cell.how)
        draft.body[name] = cast(JsonValue, value)

    return put


def _images(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        if isinstance(value, tuple) and not is_neutral(name, value):
            lists: list[JsonValue] = [list(images) for images in value]
            draft.body["images"] = lists[0] if len(lists) == 1 else lists

    return put


def _in_message(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Write nothing: on chat the prompt's images have become parts of its message."""
    return lambda draft, value: None


def _window(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    by_habit = {"native": plain(name), "cuts": check_window}
    return by_habit.get(profile.wires[operation].context, check_limited_window)


_FACTORIES: Mapping[str, _Factory] = {
    WINDOW: _window,
    "stop": _stop,
    "top_k": _top_k,
    "logprobs": _logprobs,
    "guided": _constraint,
    "response_format": _constraint,
    "tools": _tools,
    "tool_choice": _tool_choice,
    # Not every server knows every spelling of "off".
    "echo": _echo,
    "echo_last": _unless_neutral,
    "best_of": _unless_neutral,
    "suffix": _unless_neutral,
    "logit_bias": _unless_neutral,
    "metadata": _unless_neutral,
}
_BY_OPERATION: Mapping[Operation, Mapping[str, _Factory]] = {
    Operation.CHAT: {"max_tokens": _limit_above_zero, "images": _in_message},
    Operation.COMPLETIONS: {"max_tokens": _limit, "images": _images},
}
