"""Writers of the unified fields for the OpenAI family, compiled from a vendor's profile, and the writer of other
fields.

Other fields are passed to the vendor, which accepts or refuses them. Sources for the cache settings, November 2026:
@openrouter/sdk 1.3.19; OpenAI's guide "Prompt caching".
"""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Final, cast

from providers.constraints.constraint_styles import field_of
from providers.constraints.style_table import STYLES
from providers.dialects.openai.tools import choice_writer, forces_a_tool, parallel_writer, tools_writer
from providers.dialects.shared.field_writers import (
    LONGEST_IDS,
    LONGEST_KEY,
    LONGEST_VALUE,
    MOST_PAIRS,
    few_pairs,
    short_id,
    write_nothing,
)
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    check_limited_window,
    check_window,
    plain,
    put_constraint,
    put_constraint_in_prompt,
    put_unknown,
    unless_neutral,
    within,
)
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, merged
from providers.profile import Profile
from providers.request_fields import WINDOW, is_neutral
from providers.unified_request import LogprobsWanted, Operation

_Factory = Callable[[str, Profile, Operation], FieldWriter]
"""Returns the writer of a field for an upstream operation of a vendor."""


@lru_cache(maxsize=1024)
def writers(profile: Profile, operation: Operation) -> Mapping[str, FieldWriter]:
    """Return the writers of the fields that an upstream operation knows, for `put_fields`.

    The cache is keyed by the profile, which lives as long as the process.
    """
    factories = {**_FACTORIES, **_BY_OPERATION[operation]}
    names = profile.wires[operation].accepts | {WINDOW, "tool_choice", "parallel_tool_calls"}
    compiled_writers = {name: factories.get(name, _plain)(name, profile, operation) for name in names}
    if profile.drops_neutral:
        # With tools, the choice `none` is not neutral.
        compiled_writers = {
            name: put if name == "tool_choice" else unless_neutral(name, put) for name, put in compiled_writers.items()
        }
    if profile.with_forced_tool:
        compiled_writers |= {
            name: _unless_forced(name, compiled_writers[name]) for name in _REASONING_FIELDS if name in compiled_writers
        }
    return compiled_writers


def _plain(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _bounded(name, profile, profile.wires[operation].rename.get(name, name))
    if words := profile.words.get(name):
        write = _with_vendor_words(name, write, words)
    if nearest := profile.nearest.get(name):
        write = _reported_if_inexact(name, write, nearest)
    other = profile.needs.get(name)
    return write if other is None else _only_with(name, other, write)


def _with_vendor_words(name: str, write: FieldWriter, words: Mapping[str, str | JsonObject]) -> FieldWriter:
    """Return a writer of the vendor's word for a value, or of the vendor's fields that mean the same. A field that the
    client sets directly is not overwritten."""

    def put(draft: RequestBody, value: object) -> None:
        word = words.get(value, value) if isinstance(value, str) else value
        if isinstance(word, dict):
            given = {other: member for other, member in draft.params.items() if other in word and other != name}
            draft.body = merged(merged(draft.body, word), cast(JsonObject, given))
        else:
            write(draft, word)

    return put


def _reported_if_inexact(name: str, write: FieldWriter, nearest: frozenset[str]) -> FieldWriter:
    """Return a writer that also reports the field as dropped if the vendor's word only approximates the value."""

    def put(draft: RequestBody, value: object) -> None:
        write(draft, value)
        if isinstance(value, str) and value in nearest:
            draft.dropped.append(name)

    return put


_REASONING_FIELDS: Final = ("reasoning_effort", "thinking")
_REASONING_OFF: Final = ("none", {"type": "disabled"})


def _unless_forced(name: str, write: FieldWriter) -> FieldWriter:
    """Return a writer that leaves out the reasoning effort if a forced call excludes reasoning. It reports the field as
    dropped unless the effort was off anyway."""

    def put(draft: RequestBody, value: object) -> None:
        if not forces_a_tool(draft.params):
            write(draft, value)
        elif value not in _REASONING_OFF:
            draft.dropped.append(name)

    return put


def _only_with(name: str, other: str, write: FieldWriter) -> FieldWriter:
    """Return a writer that requires another field to be true. Raises Refusal otherwise."""

    def put(draft: RequestBody, value: object) -> None:
        if not is_neutral(name, value):
            if draft.params.get(other) is not True:
                raise draft.unsupported(name, f"it takes it only with '{other}: true'")
            write(draft, value)

    return put


def _bounded(name: str, profile: Profile, path: str) -> FieldWriter:
    low, high = profile.bounds.get(name, (None, None))
    if low is None and high is None:
        return plain(path)
    # A setting that can have only one value is left out.
    return within(name, low, high, write_nothing if profile.drops_neutral and low == high else plain(path))


def _limit(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    return _bounded(name, profile, profile.wires[operation].max_tokens_field)


def _limit_above_zero(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    return partial(_above_zero, name, _limit(name, profile, operation))


def _above_zero(name: str, write: FieldWriter, draft: RequestBody, value: object) -> None:
    if value == 0:
        # Some servers read 0 as no limit at all.
        raise draft.invalid(name, "must be at least 1")
    write(draft, value)


def _unless_neutral(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    return unless_neutral(name, _plain(name, profile, operation))


def _id(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return the writer of an id. Hosted vendors limit its length as OpenAI does, or not at all. An engine has no
    limit."""
    write = _plain(name, profile, operation)
    return write if profile.engine else short_id(write, LONGEST_IDS[name])


put_pairs: FieldWriter = few_pairs("metadata", plain("metadata"), MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE)
"""Writes OpenAI's `metadata`."""


def _metadata(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _unless_neutral(name, profile, operation)
    # Profiles that accept `metadata` only beside another field are OpenAI's, so OpenAI's limits apply.
    return few_pairs(name, write, MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE) if name in profile.needs else write


def _top_k(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _plain(name, profile, operation)
    path, off = profile.wires[operation].rename.get(name, name), profile.top_k_off

    def put(draft: RequestBody, value: object) -> None:
        if not is_neutral(name, value):
            write(draft, value)
        elif off is not None:
            # If it were left out, the server would apply its own default, which is not "off".
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
            place = f"{draft.target.name}, when streaming" if stream and most < wanted.most else draft.target.name
            raise Refusal(name, f"'{name}' lists at most {most} tokens on {place}.", "invalid_value")
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
    strict = profile.strict_formats
    if strict == "always" and profile.format_beside_tools:
        return lambda draft, value: put_constraint(draft, style, value)

    def put(draft: RequestBody, value: object) -> None:
        tools = draft.params.get("tools")
        if tools and not profile.format_beside_tools and not is_neutral(name, value):
            put_constraint_in_prompt(draft, value, "it takes none beside tools")
            return
        put_constraint(draft, style, value)
        if strict == "never" or (strict == "alone" and (tools or draft.request.stream)):
            _request_without_strict(draft, field_of(value))

    return put


def _request_without_strict(draft: RequestBody, name: str) -> None:
    """Request the schema without its strict mode, and record that the response must be checked against it."""
    response_format = draft.body.get("response_format")
    json_schema = response_format.get("json_schema") if isinstance(response_format, dict) else None
    if isinstance(response_format, dict) and isinstance(json_schema, dict) and json_schema.get("strict"):
        draft.body["response_format"] = {**response_format, "json_schema": {**json_schema, "strict": False}}
        draft.unenforced.append(name)


def _echo(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    write = _unless_neutral(name, profile, operation)

    def put(draft: RequestBody, value: object) -> None:
        scored = draft.table["echo.logprobs"]
        if value and scored.refused and "logprobs" in draft.params:
            raise draft.unsupported(name, scored.how)
        write(draft, value)

    return put


def _images(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        if isinstance(value, tuple) and not is_neutral(name, value):
            lists: list[JsonValue] = [list(images) for images in value]
            draft.body["images"] = lists[0] if len(lists) == 1 else lists

    return put


def _in_message(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return a writer of nothing: in a chat the prompt's images are parts of its message."""
    return write_nothing


def _thinking(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    """Return a writer of Anthropic's object unchanged, or translated to OpenRouter's `reasoning` if the profile renames
    it."""
    path = profile.wires[operation].rename.get(name)
    if path is None:
        return _plain(name, profile, operation)

    def put(draft: RequestBody, value: object) -> None:
        match value:
            case {"type": "enabled", "budget_tokens": int(budget)}:
                draft.put(f"{path}.max_tokens", budget)
            case {"type": str(kind)}:
                draft.put(f"{path}.enabled", kind != "disabled")
            case _:
                raise draft.invalid(name, "needs a 'type'")

    return put


def _window(name: str, profile: Profile, operation: Operation) -> FieldWriter:
    # Vendors that refuse prompts that do not fit, and vendors without a limit, honour both values of the field.
    by_behavior = {"native": plain(name), "cuts": check_window, "errors": write_nothing, "never": write_nothing}
    return by_behavior.get(profile.wires[operation].context, check_limited_window)


_FACTORIES: Mapping[str, _Factory] = {
    WINDOW: _window,
    "stop": _stop,
    "top_k": _top_k,
    "logprobs": _logprobs,
    "guided": _constraint,
    "response_format": _constraint,
    "thinking": _thinking,
    "tools": tools_writer,
    "tool_choice": choice_writer,
    "parallel_tool_calls": parallel_writer,
    # A neutral value is left out, because not every server knows every way to write "off".
    "echo": _echo,
    "echo_last": _unless_neutral,
    "best_of": _unless_neutral,
    "suffix": _unless_neutral,
    "logit_bias": _unless_neutral,
    "metadata": _metadata,
    "user": _id,
    "prompt_cache_key": _id,
    "safety_identifier": _id,
}
_BY_OPERATION: Mapping[Operation, Mapping[str, _Factory]] = {
    Operation.CHAT: {"max_tokens": _limit_above_zero, "images": _in_message},
    Operation.COMPLETIONS: {"max_tokens": _limit, "images": _images},
}


# Fields outside the unified request -----------------------------------------------------------------------------------

_REASONING_FIELD: Final = "reasoning"
"""OpenRouter's field for reasoning. The surface reads the effort from it; its other keys say how reasoning is shown."""


def put_own_fields(draft: RequestBody, profile: Profile, reserved: Collection[str]) -> None:
    """Write the fields that the unified request does not know, by `put_unknown`. An object is merged with the field of
    the same name that the profile sets."""
    accepted = profile.takes | {_REASONING_FIELD} if _has_reasoning(profile) else profile.takes
    put_unknown(draft, reserved, accepted, joined={_REASONING_FIELD, *profile.body})


def _has_reasoning(profile: Profile) -> bool:
    """Return whether the vendor supports OpenRouter's `reasoning` field."""
    wire = profile.wires.get(Operation.CHAT)
    return wire is not None and wire.rename.get("reasoning_effort", "").startswith(f"{_REASONING_FIELD}.")
